"""Compaction of an index: one validator's rows are in few files."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest

from beaconframes.beacon_node.index import epoch_writer
from beaconframes.beacon_node.index.epoch_writer import compact_before, compact_rest
from beaconframes.beacon_node.tables import INDEXED_TABLES
from beaconframes.calendar import Chain
from beaconframes.dataset import Dataset, segments

# Two groups of three epochs and one of two are a day.
CHAIN = Chain("slow", datetime(2026, 1, 1, tzinfo=UTC), seconds_per_slot=540, slots_per_epoch=20)
VALIDATORS = 40
BALANCES = INDEXED_TABLES["balance_history"]


def build_rows(epoch):
    """Return the balances of an epoch, sorted as an index writes them."""
    rows = pl.DataFrame({"validator_index": range(VALIDATORS)}).select(
        "validator_index",
        epoch=pl.lit(epoch),
        time=CHAIN.time_expr("epoch", pl.lit(epoch)),
        balance_gwei=pl.col("validator_index") * 1000 + epoch,
        effective_balance_gwei=pl.lit(32 * 10**9),
    )
    return rows.select(BALANCES.table.schema().names()).cast(BALANCES.table.schema())


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    """A dataset whose segments have up to 80 rows: of ten validators in a day."""
    monkeypatch.setattr(segments, "ROWS", 80)
    monkeypatch.setattr(epoch_writer, "GROUP", 3)
    return Dataset.create(tmp_path / "index", meta={})


def store(dataset, epochs, *, compacts):
    """Store balances epoch by epoch, and compact as a run of an index does."""
    for epoch in epochs:
        with dataset.writing() as writer:
            writer.add_covered(
                "balance_history", build_rows(epoch), BALANCES.grid(chosen=False),
                {"": ((epoch, epoch),)},
            )  # fmt: skip
        if compacts:
            compact_before(dataset, CHAIN, epoch + 1)


def count_files(dataset, validator):
    """Return the number of files that may have rows of a validator."""
    bounds = {"validator_index": (validator, validator)}
    return sum(each.may_contain(bounds) for each in dataset.segments("balance_history"))


def test_a_day_is_sorted_by_validator(dataset):
    """Step 11, item 5: one validator's rows of a day are in one file, not in one per epoch."""
    assert 8 == CHAIN.epochs_per_day
    store(dataset, range(7), compacts=True)
    # Two groups, and the last epoch of the day that is not complete.
    assert [3] * VALIDATORS == [count_files(dataset, index) for index in range(VALIDATORS)]
    store(dataset, range(7, 10), compacts=True)
    # A day, and two epochs of the next one.
    assert [1 + 2] * VALIDATORS == [count_files(dataset, index) for index in range(VALIDATORS)]
    of_day = [each for each in dataset.segments("balance_history") if each.rows > VALIDATORS]
    assert [80] * 4 == [each.rows for each in of_day]
    assert sorted(each.ranges["validator_index"] for each in of_day) == [
        (first, first + 9) for first in range(0, VALIDATORS, 10)
    ]
    expected = pl.concat(build_rows(epoch) for epoch in range(10)).sort("validator_index", "epoch")
    found = dataset.scan("balance_history").collect().sort("validator_index", "epoch")
    assert expected.equals(found)
    assert {"": ((0, 9),)} == dataset.coverage("balance_history")
    assert [] == dataset.verify()


def test_an_interrupted_compaction_is_made_up_for(dataset):
    """A run that was killed before a compaction: the end of the next run compacts."""
    store(dataset, range(10), compacts=False)
    assert 10 == count_files(dataset, 7)
    compact_rest(dataset, CHAIN, range(10))
    assert 1 + 2 == count_files(dataset, 7)
    before = dataset.segments("balance_history")
    compact_rest(dataset, CHAIN, range(10))
    assert before == dataset.segments("balance_history")
