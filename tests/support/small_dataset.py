"""A dataset made by hand: a chain of 160 short epochs, without a simulation."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl

from beaconframes.calendar import Chain
from beaconframes.dataset import Dataset
from beaconframes.endpoint.chain_metadata import describe_chain
from beaconframes.v1.attestations import Attestations
from beaconframes.v1.balance_history import BalanceHistory
from beaconframes.v1.sync_committees import SyncCommittees
from beaconframes.v1.validators import Validators

GENESIS = datetime(2026, 1, 1, tzinfo=UTC)
CHAIN = Chain("short", GENESIS, seconds_per_slot=2, slots_per_epoch=8, sync_committee_size=32)
EPOCHS = 160
VALIDATORS = 16
META = {
    "service": "hand-made",
    "chain": describe_chain(CHAIN),
    "latest_epoch": EPOCHS - 1,
    "finalized_epoch": EPOCHS - 3,
    "latest_slot": EPOCHS * 8 - 1,
}


def cells(validators=range(VALIDATORS), epochs=range(EPOCHS)):
    """Return one row per validator and epoch."""
    columns = [
        pl.DataFrame({name: list(values)}, schema={name: pl.Int64})
        for name, values in {"validator_index": validators, "epoch": epochs}.items()
    ]
    return columns[0].join(columns[1], how="cross")


def fit(table, rows):
    """Return *rows* with the columns of *table*; the others are null, the time is that of it."""
    if "epoch" in rows.columns and "time" in table.schema():
        rows = rows.with_columns(time=CHAIN.time_expr("epoch", pl.col("epoch")))
    return rows.select(
        (pl.col(name) if name in rows.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in table.schema().items()
    )


def duties(rows=None):
    """Return an included attestation duty per validator and epoch; validator n attests in n % 8."""
    slot = 8 * pl.col("epoch") + pl.col("validator_index") % 8
    rows = cells() if rows is None else rows
    return fit(
        Attestations,
        rows.with_columns(
            attester_slot=slot,
            inclusion_slot=slot + 1,
            status=pl.lit("included"),
            committee_index=0,
        ),
    )


def balances(rows=None):
    """Return a balance per validator and epoch: 32 ETH, and a gwei more in each epoch."""
    gwei = 32_000_000_000
    rows = cells() if rows is None else rows
    return fit(
        BalanceHistory,
        rows.with_columns(balance_gwei=gwei + pl.col("epoch"), effective_balance_gwei=pl.lit(gwei)),
    )


def validators(indices=range(VALIDATORS)):
    """Return active validators."""
    rows = pl.DataFrame({"validator_index": list(indices)}, schema={"validator_index": pl.Int64})
    text = pl.col("validator_index").cast(pl.String).str.zfill(96)
    return fit(
        Validators,
        rows.with_columns(
            pubkey="0x" + text,
            status=pl.lit("active_online"),
            slashed=pl.lit(value=False),
            balance_gwei=32 * 10**9,
            effective_balance_gwei=32 * 10**9,
            activation_eligibility_epoch=0,
            activation_epoch=0,
            withdrawal_credentials=pl.lit("0x01" + "0" * 62),
            name=pl.lit(""),
            total_withdrawals_gwei=0,
        ),
    )


def committees():
    """Return the sync committee of period 0: 32 seats, held by 16 validators."""
    seats = pl.DataFrame({"seat": range(32)}, schema={"seat": pl.Int64})
    last = CHAIN.epochs_per_sync_period - 1
    return fit(
        SyncCommittees,
        seats.with_columns(
            period=0, validator_index=pl.col("seat") % VALIDATORS, start_epoch=0, end_epoch=last
        ),
    )


def create(path, *, meta=None, **tables):
    """Create a dataset with these *tables*, frames by name; a triple adds a grid and coverage."""
    dataset = Dataset.create(path, meta={**META, **(meta or {})})
    with dataset.writing() as writer:
        for name, rows in tables.items():
            if isinstance(rows, tuple):
                writer.add_covered(name, *rows)
            else:
                writer.add(name, rows)
    return dataset
