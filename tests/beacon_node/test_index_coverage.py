"""The plan of an index: which tasks complete a dataset, and the status of its epochs."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from beaconframes.beacon_node.index.coverage import EpochTask, find_epochs, find_tasks, find_units
from beaconframes.beacon_node.index.verdicts import compute_coverage
from beaconframes.beacon_node.tables import INDEXED_TABLES, REWARD_TABLES
from beaconframes.beacon_node.tables.balance_moves import UnexplainedChanges
from beaconframes.calendar import Chain
from beaconframes.dataset import Dataset

from ..support.calls import count_calls

GENESIS = datetime(2026, 1, 1, tzinfo=UTC)
CHAIN = Chain("minimal", GENESIS, slots_per_epoch=8, seconds_per_slot=6, epochs_per_sync_period=8)
TABLES = ("income_history", "balance_history", "slot_income", "blocks", "sync_committees")


def cover(dataset, name, units, *, chosen, rows=None):
    """Store *rows* of a table, by default none, with the coverage *units*."""
    indexed = INDEXED_TABLES[name]
    empty = pl.DataFrame(schema=indexed.table.schema())
    with dataset.writing() as writer:
        writer.add_covered(
            name, empty if rows is None else rows, indexed.grid(chosen=chosen), units
        )


@pytest.fixture
def dataset(tmp_path):
    """An empty dataset."""
    return Dataset.create(tmp_path / "index", meta={})


def find_tasks_one_by_one(dataset, epochs, validators):
    """Return the tasks as the definition says: unit by unit."""
    tasks = []
    coverage = {name: dataset.coverage(name) for name in TABLES}
    for epoch in sorted(set(epochs)):
        names, found = [], set()
        for name in INDEXED_TABLES:
            if name not in TABLES:
                continue
            indexed = INDEXED_TABLES[name]
            first, last = find_units(indexed.unit, epoch, CHAIN)
            covered = coverage[name]
            for subject in map(str, validators) if indexed.by_validator else [""]:
                if not any(low <= first and last <= high for low, high in covered.get(subject, ())):
                    names.append(name)
                    found |= {int(subject)} if subject else set()
        if names:
            tasks.append(EpochTask(epoch, tuple(dict.fromkeys(names)), tuple(sorted(found))))
    return tasks


def test_find_tasks_of_scattered_coverage(dataset):
    dice = random.Random(5)
    for name in TABLES:
        size = {"slot": 8, "epoch": 1, "period": 1}[INDEXED_TABLES[name].unit]
        parts = {}
        for subject in "123" if INDEXED_TABLES[name].by_validator else ("",):
            # Slots may begin and end inside an epoch, which is then not covered.
            parts[subject] = tuple(
                (first * size + dice.choice((0, 1)), (first + 3) * size - dice.choice((0, 1)))
                for first in sorted(dice.sample(range(0, 60, 4), 6))
            )
        cover(dataset, name, parts, chosen=True)
    epochs = [*range(3, 30), *range(40, 62), 7]
    expected = find_tasks_one_by_one(dataset, epochs, (1, 2, 3))
    assert {task.validators for task in expected} > {(2,), (1, 2, 3)}
    assert expected == find_tasks(dataset, CHAIN, TABLES, epochs, (3, 1, 2))
    assert [] == find_tasks(dataset, CHAIN, TABLES, [], (1,))


@pytest.mark.parametrize(
    ("table", "units", "epochs"),
    [
        ("slot_income", [(0, 15)], ((0, 1),)),
        ("slot_income", [(0, 14)], ((0, 0),)),
        ("slot_income", [(1, 16)], ((1, 1),)),
        ("slot_income", [(4, 11), (12, 15), (16, 23)], ((2, 2),)),
        ("sync_committees", [(1, 2)], ((8, 23),)),
        ("income_history", [(3, 5)], ((3, 5),)),
    ],
)
def test_an_epoch_is_covered_if_all_its_units_are(table, units, epochs):
    assert epochs == find_epochs(INDEXED_TABLES[table].unit, units, CHAIN)


def test_find_tasks_of_a_year(dataset):
    """82,000 epochs of 100 validators: the plan does not look at each pair of them."""
    half = {str(index): ((0, 41_000),) for index in range(100)}
    cover(dataset, "income_history", half, chosen=True)
    tables = tuple(INDEXED_TABLES)
    tasks, calls = count_calls(find_tasks, dataset, CHAIN, tables, range(82_000), range(100))
    assert 250_000 > calls
    assert 82_000 == len(tasks)
    assert "income_history" not in tasks[41_000].tables
    assert ("income_history", 41_001) == (tasks[41_001].tables[0], tasks[41_001].epoch)


def test_coverage_of_a_year(dataset):
    """The status of 82,000 epochs of 100 validators: as quick as the plan."""

    def subjects(first, last):
        return {str(index): ((first, last),) for index in range(100)}

    changes = pl.DataFrame(
        {
            "validator_index": [7, 8],
            "epoch": [5, 5],
            "change_gwei": [9, 1],
            "explained_gwei": [10, 4],
        }
    ).with_columns(
        unexplained_gwei=pl.col("change_gwei") - pl.col("explained_gwei"),
        time=CHAIN.time_expr("epoch", pl.col("epoch")),
    )
    changes = changes.select(UnexplainedChanges.schema().names()).cast(UnexplainedChanges.schema())
    cover(dataset, "income_history", subjects(2, 82_001), chosen=True)
    cover(dataset, "unexplained_changes", subjects(2, 82_000), chosen=True, rows=changes)
    found, calls = count_calls(compute_coverage, dataset, CHAIN)
    assert 20_000 > calls
    assert list(range(2, 82_002)) == found["epoch"].to_list()
    counts = found.select("unexplained_count", "unexplained_gwei").rows()
    # The change of epoch 5 concerns the income of epochs 3 to 5.
    assert [(0, 0), (2, 4), (2, 4), (2, 4), (0, 0)] == counts[:5]
    status = found["status"].to_list()
    assert ["explained", "unexplained", "unexplained", "unexplained", "explained"] == status[:5]
    assert ["explained", "unverified", "unverified", "unverified"] == status[-4:]
    assert GENESIS + timedelta(seconds=2 * 48) == found["time"][0]


def test_coverage_of_an_empty_index(dataset):
    found = compute_coverage(dataset, CHAIN)
    assert 0 == found.height
    names = ["epoch", "time", "status", "unexplained_count", "unexplained_gwei", "remark"]
    assert names == found.columns


def test_an_index_of_chosen_validators_has_amounts_and_duties_of_these_only():
    by_validator = {name for name, each in INDEXED_TABLES.items() if each.by_validator}
    assert {*REWARD_TABLES, "attestations"} == by_validator
