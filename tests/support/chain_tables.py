"""Tables in memory for the tests of derived tables: a chain with days of four short epochs."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
from polars.testing import assert_frame_equal

from beaconframes.calendar import Chain
from beaconframes.derive import ChainTables, Coverage
from beaconframes.endpoint import Head

GENESIS = datetime(2026, 1, 1, tzinfo=UTC)
ETH = 10**9
# 8 slots an epoch and 32 seats, as in the minimal preset; 4 epochs a day keep the tables small.
CHAIN = Chain(
    "short-days",
    GENESIS,
    seconds_per_slot=2700,
    slots_per_epoch=8,
    epochs_per_sync_period=2,
    sync_committee_size=32,
)
VALIDATOR = {
    "pubkey": "0x00",
    "balance_gwei": 32 * ETH,
    "activation_eligibility_epoch": 0,
    "activation_epoch": 0,
    "exit_epoch": None,
    "withdrawal_credentials": "0x01",
}


class MemoryTables:
    """Frames by name, with the interface of a dataset."""

    def __init__(self, frames):
        self.frames = frames

    def tables(self):
        """Return the names of the tables."""
        return list(self.frames)

    def scan(self, table, *, schema=None):
        """Return the rows of a table, or none with the *schema*."""
        if table not in self.frames and schema is not None:
            return pl.LazyFrame(schema=schema)
        return self.frames[table].lazy()


def build_tables(frames, *, epochs=None, last=15, chain=CHAIN, validators=None, **tables):
    """Return tables that cover the *epochs*, by default all to the *last*, which is final."""
    coverage = Coverage(((0, last),) if epochs is None else epochs, tables, validators)
    head = Head(last, last, (last + 1) * chain.slots_per_epoch - 1)
    return ChainTables(MemoryTables(frames), chain, head, coverage)


def build_validators(*changes):
    """Return validators of genesis, each with the given changes."""
    rows = [{"validator_index": index, **VALIDATOR, **row} for index, row in enumerate(changes)]
    types = {"exit_epoch": pl.Int64, "activation_epoch": pl.Int64}
    return pl.DataFrame(rows, schema_overrides=types)


def build_balances(balances, effective=32 * ETH):
    """Return balances by validator and epoch; *balances* has the amounts of each epoch."""
    rows = [
        (index, epoch, gwei, effective)
        for epoch, amounts in balances.items()
        for index, gwei in enumerate(amounts)
        if gwei is not None
    ]
    names = ["validator_index", "epoch", "balance_gwei", "effective_balance_gwei"]
    return pl.DataFrame(rows, dict.fromkeys(names, pl.Int64), orient="row")


def build_amounts(*rows):
    """Return amounts by slot and validator."""
    names = ["slot", "validator_index", "amount_gwei"]
    return pl.DataFrame(rows, dict.fromkeys(names, pl.Int64), orient="row")


def build_income(*rows, **columns):
    """Return income by validator and epoch: an amount in gwei each, and fees in wei."""
    from beaconframes.v1.income_history import IncomeHistory

    frame = pl.DataFrame(
        rows,
        ["validator_index", "epoch", "attestation_target_reward_gwei", "tx_fee_reward_wei"],
        orient="row",
    )
    return frame.select(
        (pl.col(name) if name in frame.columns else pl.lit(columns.get(name, 0)))
        .cast(dtype)
        .alias(name)
        for name, dtype in IncomeHistory.schema().items()
        if name != "time"
    )


def build_blocks(*blocks, epochs=range(16)):
    """Return a missed slot for each slot of the *epochs* except those of the given blocks."""
    from beaconframes.v1._blocks import Blocks

    missed = {
        slot: {"slot": slot, "status": "missed", "proposer_index": 0}
        for epoch in epochs
        for slot in range(epoch * 8, epoch * 8 + 8)
    }
    for block in blocks:
        missed.pop(block["slot"], None)
    counts = {name: 0 for name in Blocks.schema() if name.endswith("_count")}
    defaults = counts | {"status": "proposed", "sync_aggregate_bits": None, "proposer_index": 0}
    rows = [defaults | row for row in (*missed.values(), *blocks)]
    frame = pl.DataFrame(rows, schema_overrides={"sync_aggregate_bits": pl.String})
    root = pl.when(status="proposed").then(pl.format("0x{}", "slot"))
    return frame.with_columns(epoch=pl.col("slot") // 8, block_root=root).sort("slot", "status")


def assert_served(table, rows):
    """Assert that a local explorer can send the rows, and that a client reads the same ones."""
    received = table.decode([table.encode(rows, CHAIN)], CHAIN)
    assert_frame_equal(rows, received, check_row_order=False)
