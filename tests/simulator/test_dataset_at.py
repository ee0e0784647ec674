"""A simulated dataset as of an earlier head: later rows are hidden, states are those of then."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from beaconframes.calendar import HOODI
from beaconframes.endpoint import Head
from beaconframes.simulator import simulate, simulation
from beaconframes.simulator.dataset_at import COMPUTED, DERIVED, DatasetAt

NO_TIME = {"names", "token_balances"}
"""Tables that are the same at every head."""


def end_of(dataset):
    """Return the head of a whole dataset."""
    meta = dataset.meta
    return Head(meta["latest_epoch"], meta["finalized_epoch"], meta["latest_slot"])


def before(dataset, epochs, slot=9):
    """Return the dataset as of a slot some epochs before its end."""
    epoch = dataset.meta["latest_epoch"] - epochs
    return DatasetAt(dataset, Head(epoch, epoch - 2, epoch * 32 + slot))


def test_at_its_own_head_a_dataset_is_unchanged(hoodi):
    """E9: every table, also those that are computed for a head, equals the stored one."""
    shown = DatasetAt(hoodi, end_of(hoodi))

    assert hoodi.meta == shown.meta
    for table in hoodi.tables():
        assert_frame_equal(hoodi.scan(table).collect(), shown.scan(table).collect())


def test_no_row_is_later_than_the_head(hoodi):
    """E9: slots, epochs and days of every table; only schedules and estimates reach further."""
    shown = before(hoodi, 40)
    slot, epoch = shown.head.slot, shown.head.epoch
    ahead = {
        ("blocks", "slot"), ("sync_committees", "end_epoch"), ("sync_committees", "start_epoch"),
        ("validators", "exit_epoch"), ("validators", "withdrawable_epoch"),
        ("validators", "activation_epoch"), ("attestations", "attester_slot"),
    }  # fmt: skip
    # Another test compares the derived tables with those of a shorter chain.
    for table in hoodi.tables().keys() - DERIVED.keys():
        rows = shown.scan(table).collect()
        known = {"block_slot", "slot", "epoch", "day", "period"} & set(rows.columns)
        assert known or table in {*COMPUTED, *NO_TIME}, table
        for name in rows.columns:
            if rows[name].dtype != pl.Int64 or (table, name) in ahead:
                continue
            newest = rows[name].max()
            if name.endswith("slot") and newest is not None:
                assert newest <= slot, (table, name)
            if (name == "epoch" or name.endswith("_epoch")) and newest is not None:
                assert newest <= epoch, (table, name)
    scheduled = shown.scan("blocks").filter(pl.col("slot") > slot).collect()
    assert ["scheduled"] * 22 == scheduled["status"].to_list()


def test_scheduled_slots_have_only_their_proposer(hoodi):
    """E9: the slots after the head look like those at the end of the dataset."""
    empty = hoodi.scan("blocks").filter(status="scheduled").collect()
    later = before(hoodi, 40).scan("blocks").filter(status="scheduled").collect()

    known = ["slot", "epoch", "time", "proposer_index"]
    assert 1 == empty.drop(known).n_unique()
    assert_frame_equal(empty.drop(known)[:1], later.drop(known).unique())
    assert 0 == later["proposer_index"].null_count()


def test_an_exit_appears_with_its_block(hoodi):
    """E9: before, the validator has no exit epoch; after, it is exiting."""
    exits = hoodi.scan("exit_events").sort("slot").collect()
    slot, validator = exits.row(0)
    epoch = slot // 32
    rows = [
        DatasetAt(hoodi, Head(epoch, epoch - 2, number))
        .scan("validators").filter(validator_index=validator).collect().row(0, named=True)
        for number in (slot - 1, slot)
    ]  # fmt: skip

    assert [None, epoch + 5] == [row["exit_epoch"] for row in rows]
    assert [None, epoch + 5 + 256] == [row["withdrawable_epoch"] for row in rows]
    assert ["active", "exiting"] == [row["status"].partition("_")[0] for row in rows]


def test_the_balance_of_a_validator_is_that_of_the_epoch(hoodi):
    """E9: as `load_balance_history` returns it, for the validators that exist by then."""
    shown = before(hoodi, 100)
    expected = hoodi.scan("balance_history").filter(epoch=shown.head.epoch)
    columns = ["validator_index", "balance_gwei", "effective_balance_gwei"]

    rows = shown.scan("validators").select(columns).collect()

    assert_frame_equal(expected.select(columns).collect(), rows)
    assert rows.height < hoodi.scan("validators").collect().height


@pytest.mark.more
@pytest.mark.parametrize("epochs", [20, 33])
def test_it_equals_a_chain_that_ends_there(tmp_path, monkeypatch, epochs):
    """E9: a simulation that stops at the head has the same rows, except for random texts.

    Hashes, fees of builders and deposits in the last block depend on the length of a simulation.
    """
    end = (1333 * 225 + 59) * 32 + 7  # the first epoch is that of a day
    arguments = {"validators": 60, "seed": 4, "history_days": 3, "chain": "hoodi"}
    whole = simulate(tmp_path / "whole", epochs=60, ends=HOODI.time_of("slot", end), **arguments)
    plan = simulation.create_registry

    def plan_whole(seed, validators, first, _last, per_day):
        return plan(seed, validators, first, end // 32, per_day)

    head = end - 32 * (60 - epochs) + 9
    monkeypatch.setattr(simulation, "create_registry", plan_whole)
    short = simulate(
        tmp_path / "short", epochs=epochs, ends=HOODI.time_of("slot", head), **arguments
    )
    shown = DatasetAt(whole, end_of(short))
    drawn = {
        "address_balances", "deposit_origin", "deposit_requests", "deposits", "execution_blocks",
        "execution_performance", "gas_fees", "graffiti_wall",
    }  # fmt: skip
    random = ["graffiti_text", "exec_", "relay_"]
    assert head == short.meta["latest_slot"]
    for table in set(short.tables()) - drawn:
        expected, rows = short.scan(table).collect(), shown.scan(table).collect()
        if table == "sync_committees":  # the next committee is drawn when it is known
            expected, rows = (
                r.filter(pl.col("start_epoch") <= head // 32) for r in (expected, rows)
            )
        columns = [
            name
            for name, dtype in expected.schema.items()
            if not name.startswith(tuple(random))
            and not (dtype == pl.String and expected[name].str.starts_with("0x").any())
        ]
        assert_frame_equal(expected.select(columns), rows.select(columns))
