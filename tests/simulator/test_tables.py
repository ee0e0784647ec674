"""Test what all tables of a simulated chain have in common: columns, keys, times, amounts."""

from datetime import datetime

import polars as pl
import pytest

from beaconframes.v1 import ENDPOINTS

from ..support.simulated_chain import assert_empty

WRITTEN_BY_EPOCH = ("income_history", "balance_history")
"""The tables whose rows the simulator writes epoch by epoch; all others are in key order."""


def test_every_table_has_rows_with_the_columns_of_its_loader(simulated):
    """Every table of an endpoint has rows, with the columns that its loader returns."""
    for endpoint in ENDPOINTS:
        table = endpoint.table
        rows = getattr(simulated, table.table_name, pl.DataFrame())
        assert rows.height, f"no module of simulator/derived adds rows of {table.__name__}"
        assert table.schema() == rows.schema


def test_keys_are_unique_and_sorted(simulated):
    """No key occurs twice; tables are in key order, those of every epoch by epoch first."""
    for endpoint in ENDPOINTS:
        key, name = endpoint.table.key(), endpoint.table.table_name
        rows = getattr(simulated, name)
        order = ["epoch", "validator_index"] if name in WRITTEN_BY_EPOCH else key
        assert rows.height == rows.select(key).unique().height, name
        assert rows.select(order).equals(rows.select(order).sort(order, nulls_last=True)), name


@pytest.mark.parametrize(
    ("table", "unit", "seconds"),
    [
        ("income_history", "epoch", 384),
        ("balance_history", "epoch", 384),
        ("epochs", "epoch", 384),
        ("attestations", "epoch", 384),
        ("blocks", "slot", 12),
        ("graffiti_wall", "slot", 12),
        ("validator_withdrawals", "slot", 12),
        ("bls_changes", "slot", 12),
        ("execution_blocks", "slot", 12),
        ("slot_attestations", "block_slot", 12),
        ("slot_withdrawals", "block_slot", 12),
        ("slot_deposits", "block_slot", 12),
        ("voluntary_exits", "block_slot", 12),
        ("attester_slashings", "block_slot", 12),
        ("proposer_slashings", "block_slot", 12),
        ("yield_index", "day", 86_400),
        ("validator_stats", "day", 86_400),
    ],
)
def test_times_are_those_of_the_clock(simulated, table, unit, seconds):
    """A time is the start of its slot, epoch or day: 12 seconds per slot, 32 slots per epoch."""
    genesis = datetime.fromisoformat(simulated.meta["chain"]["genesis"])
    rows = getattr(simulated, table)

    expected = genesis + pl.duration(seconds=pl.col(unit) * seconds)
    assert rows.height
    assert_empty(rows.filter(pl.col("time") != expected))


def test_metadata_have_the_range_of_epochs(simulated):
    """The metadata state that the dataset is simulated, its seed and its head."""
    meta = simulated.meta
    epochs = simulated.meta["epochs"]
    first = 225 * meta["history_days"]

    assert (True, "simulated") == (meta["simulated"], meta["service"])
    assert (first, first + epochs - 1) == (meta["first_epoch"], meta["latest_epoch"])
    assert meta["latest_epoch"] - 2 == meta["finalized_epoch"]
    assert meta["latest_slot"] // 32 == meta["latest_epoch"]
    assert [] == simulated.dataset.verify()


def test_amounts_are_never_negative_and_never_floats(simulated):
    """No amount is negative, and none is a float."""
    for table in ("income_history", "balance_history", "withdrawal_events", "deposit_events"):
        rows = getattr(simulated, table)
        amounts = rows.select(pl.col(r"^.*_(gwei|wei)$"))
        assert not any(dtype.is_float() for dtype in amounts.dtypes)
        assert all(low >= 0 for low in amounts.min().row(0))
