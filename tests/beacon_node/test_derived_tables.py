"""Derived tables of an index that grows: new days are added, old ones are not derived again."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from beaconframes.beacon_node.index import derived_tables
from beaconframes.beacon_node.index.coverage import find_units
from beaconframes.beacon_node.tables import INDEXED_TABLES
from beaconframes.dataset import Dataset
from beaconframes.derive import ChainTables, Coverage
from beaconframes.endpoint import Head
from beaconframes.endpoint.chain_metadata import ChainMetadata

from .conftest import UNTIL

GROWING = list(derived_tables.GROWING_TABLES)
TABLES = ("attestations", "balance_history", "blocks", "deposit_events", "income_history",
          "slot_withdrawals", "sync_committees", "transfer_events")  # fmt: skip


@pytest.fixture
def derivations(monkeypatch):
    """The epochs and days of each derivation of growing tables."""
    found = []

    def spy(data, *, names, **selection):
        if set(names) & set(GROWING):
            found.append((selection["epochs"], selection["days"]))
        return original(data, names=names, **selection)

    original = derived_tables.derive_tables
    monkeypatch.setattr(derived_tables, "derive_tables", spy)
    monkeypatch.setattr(derived_tables, "DERIVATIONS", ())  # Without the tables of the head.
    return found


def grow(folder, index, last, without=(), validators=None):
    """Extend a copy of an index up to an epoch, on a chain with four epochs a day, and derive."""
    source = Dataset.open(index)
    is_new = not folder.exists()
    dataset = Dataset.create(folder, meta=source.meta) if is_new else Dataset.open(folder)
    chain = replace(ChainMetadata.parse(source.meta).chain, seconds_per_slot=2700)
    covered = {}
    with dataset.writing() as writer:
        for name, grid in source.grids().items():
            indexed = INDEXED_TABLES[name]
            if name in TABLES and name not in without:
                first, end = (find_units(indexed.unit, epoch, chain) for epoch in (0, last))
                units = {"": ((first[0], end[1]),)}
                writer.add_covered(name, source.scan(name).collect(), grid, units)
                covered[name] = ((0, last),)
    dataset.replace_tables({"validators": source.scan("validators").collect()})
    head = Head(last, last, last * 8 + 7)
    data = ChainTables(dataset, chain, head, Coverage(((0, last),), covered, validators))
    derived_tables.write_derived_tables(dataset, data)
    return {
        name: dataset.scan(name).collect().sort(pl.all())
        for name in GROWING
        if name in dataset.tables()
    }


@pytest.mark.more
def test_new_days_are_added(tmp_path, electra_folder, derivations):
    """Days have four epochs here; a day is over when the epoch after it is final."""
    grow(tmp_path / "grown", electra_folder, 2)
    short = Dataset.open(tmp_path / "grown").scan("validator_stats").collect()
    grow(tmp_path / "grown", electra_folder, 6)
    grown = grow(tmp_path / "grown", electra_folder, UNTIL)
    whole = grow(tmp_path / "whole", electra_folder, UNTIL)

    assert short.is_empty()
    # The genesis deposits are written with the first whole day.
    expected = [(range(3), range(-1, 0)), (range(7), range(-1, 1)), (range(7, 12), range(1, 2))]
    assert derivations[:3] == expected
    assert whole["validator_stats"]["day"].unique().to_list() == [-1, 0, 1]
    assert whole["epochs"].height == UNTIL + 1
    for name, rows in whole.items():
        assert rows.equals(grown[name]), name


@pytest.mark.more
def test_a_table_that_is_added_later_changes_old_days(tmp_path, electra_folder, derivations):
    """Without attestations, missed ones are unknown; later they are known from day 0 on."""
    before = grow(tmp_path / "grown", electra_folder, 6, without=("attestations",))
    after = grow(tmp_path / "grown", electra_folder, 6)

    assert before["validator_stats"].filter(day=0)["missed_attestations"].null_count() > 0
    assert after["validator_stats"].filter(day=0)["missed_attestations"].null_count() == 0
    assert derivations[1][1] == range(-1, 1)


@pytest.mark.more
def test_daily_statistics_explain_the_change_of_each_balance(tmp_path, electra_folder, derivations):
    """M3: the first block of a day is in its start balance, and so are its withdrawals."""
    stats = grow(tmp_path / "whole", electra_folder, UNTIL)["validator_stats"].filter(
        pl.col("day") >= 0
    )
    stored = Dataset.open(electra_folder)
    votes = stored.scan("income_history").select(
        "validator_index",
        # The end of the next epoch pays them.
        day=(pl.col("epoch") + 1) // 4,
        gwei=pl.sum_horizontal(pl.col("^attestation_.*_reward_gwei$"))
        - pl.sum_horizontal("^attestation_.*_penalty_gwei$", "finality_delay_penalty_gwei"),
    )
    in_blocks = stored.scan("slot_income").filter(~pl.col("kind").is_in(["withdrawal", "deposit"]))
    moves = stored.scan("epoch_moves").filter(pl.col("kind") != "pending_deposit")
    parts = [
        votes,
        in_blocks.select("validator_index", day=(pl.col("slot") - 1) // 32, gwei="amount_gwei"),
        moves.select("validator_index", day=pl.col("epoch") // 4, gwei="amount_gwei"),
    ]
    keys = ["validator_index", "day"]
    sums = pl.concat(parts).group_by(keys).agg(pl.sum("gwei")).collect()

    rows = stats.join(sums, on=keys, how="left").with_columns(pl.col("gwei").fill_null(0))
    change = pl.col("end_balance_gwei") - pl.col("start_balance_gwei")
    paid = pl.col("withdrawals_amount_gwei") - pl.col("deposits_amount_gwei")
    first_blocks = stored.scan("validator_withdrawals").filter(pl.col("slot") % 32 == 0).collect()
    assert first_blocks.height > 0
    assert rows.height > 140
    assert rows.filter(change + paid != pl.col("gwei")).is_empty()


@pytest.mark.more
def test_other_validators_are_derived_again(tmp_path, electra_folder, derivations):
    """What is derived for some validators may miss days of others."""
    for chosen in ({1}, {1}, {1, 2}, {2}):
        grow(tmp_path / "grown", electra_folder, 6, validators=frozenset(chosen))

    assert derivations == [(range(7), range(-1, 1))] * 3


@pytest.mark.more
def test_rows_of_older_rules_are_derived_again(tmp_path, electra_folder, derivations):
    """An index of an earlier version has statistics that follow in another way."""
    grow(tmp_path / "grown", electra_folder, 6)
    dataset = Dataset.open(tmp_path / "grown")
    known = dataset.meta[derived_tables.SOURCES]
    with dataset.writing() as writer:
        writer.set_meta(
            {derived_tables.SOURCES: {name: known[name] for name in known if name != "rules"}}
        )
    grow(tmp_path / "grown", electra_folder, 6)
    grow(tmp_path / "grown", electra_folder, 6)

    assert derivations == [(range(7), range(-1, 1))] * 2
