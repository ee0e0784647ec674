"""Overviews of epochs: validators, balances, participation, and what the blocks include."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from beaconframes.derive.validator_tables import is_active
from beaconframes.intervals import clip_intervals, numbers_of

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import ChainTables

_STATUSES: Final = ("proposed", "missed", "orphaned", "scheduled")
COUNTS: Final = (
    "attestations_count",
    "attester_slashings_count",
    "proposer_slashings_count",
    "deposits_count",
    "withdrawals_count",
    "voluntary_exits_count",
)
"""Columns of blocks that count their operations."""


def build_epochs(data: ChainTables, epochs: range | None = None) -> pl.DataFrame:
    """Return the overviews of *epochs*, or of all, whose balances and blocks are covered.

    The balances of all validators are needed. Participation follows from income, and is null
    without it: a validator has voted if it has no penalty for its target vote.
    """
    coverage, last = data.coverage, data.head.epoch
    first, stop = (0, last + 1) if epochs is None else (epochs.start, min(epochs.stop, last + 1))
    found = [
        epoch
        for epoch in numbers_of(clip_intervals(coverage.epochs_of("blocks"), first, stop - 1))
        if coverage.covers("balance_history", range(epoch, epoch + 1))
        and coverage.validators is None
    ]
    epoch = pl.col("epoch")
    near = epoch.is_between(min(found, default=0), max(found, default=-1)) & epoch.is_in(found)
    rows = (
        _sum_active_balances(data, near)
        .join(_count_operations(data, near), "epoch")
        .join(_sum_missing_votes(data, near), "epoch", how="left")
        .sort("epoch")
    )
    has_income = [coverage.covers("income_history", range(e, e + 1)) for e in rows["epoch"]]
    has_votes = pl.Series(has_income, dtype=pl.Boolean) & ~pl.col("is_unknown").fill_null(
        value=False
    )
    missing = pl.col("missing_gwei").fill_null(0)
    rows = rows.with_columns(
        time=data.chain.time_expr("epoch", epoch),
        finalized=epoch <= data.head.finalized_epoch,
        rewards_exported=pl.Series(has_income, dtype=pl.Boolean),
        average_validator_balance_gwei=pl.col("total_validator_balance_gwei")
        // pl.col("validators_count"),
        voted_ether_gwei=pl.when(has_votes).then(pl.col("eligible_ether_gwei") - missing),
        blocks_count="proposed_blocks",
    )
    amounts = rows.select("voted_ether_gwei", "eligible_ether_gwei").iter_rows()
    # Integers of Python: a float has too few digits for the stake of a large chain.
    rates = [None if voted is None or not total else voted / total for voted, total in amounts]
    return rows.with_columns(global_participation_rate=pl.Series(rates, dtype=pl.Float64))


def _sum_active_balances(data: ChainTables, is_wanted: pl.Expr) -> pl.DataFrame:
    """Return number and balances of active validators, for epochs with all of their balances."""
    balances = data.scan("balance_history").filter(is_wanted)
    rows = (
        _select_active(data, balances)
        .group_by("epoch")
        .agg(
            validators_count=pl.len().cast(pl.Int64),
            total_validator_balance_gwei=pl.col("balance_gwei").sum(),
            eligible_ether_gwei=pl.col("effective_balance_gwei").sum(),
        )
        .collect(engine="streaming")
    )
    starts, ends = (
        data.validators[name].drop_nulls().sort().to_numpy()
        for name in ("activation_epoch", "exit_epoch")
    )
    epochs = rows["epoch"].to_numpy()
    active = starts.searchsorted(epochs, side="right") - ends.searchsorted(epochs, side="right")
    return rows.filter(rows["validators_count"].to_numpy() == np.asarray(active))


def _count_operations(data: ChainTables, is_wanted: pl.Expr) -> pl.DataFrame:
    """Return the number of blocks by status, and of the operations in canonical ones."""
    status = pl.col("status")
    return (
        data.scan("blocks")
        .filter(is_wanted)
        .group_by("epoch")
        .agg(
            *((status == name).sum().cast(pl.Int64).alias(f"{name}_blocks") for name in _STATUSES),
            *(pl.col(name).filter(status == "proposed").sum() for name in COUNTS),
        )
        .collect()
    )


def _sum_missing_votes(data: ChainTables, is_wanted: pl.Expr) -> pl.DataFrame:
    """Return the effective balance of active validators without a target vote, by epoch."""
    key = ["validator_index", "epoch"]
    schema = pl.Schema({"epoch": pl.Int64, "missing_gwei": pl.Int64, "is_unknown": pl.Boolean})
    if not data.find_table("income_history"):
        return schema.to_frame()
    penalty = pl.col("attestation_target_penalty_gwei")
    income = data.scan("income_history").filter(is_wanted, penalty.ne_missing(0))
    return (
        _select_active(data, income.select(*key, is_unknown=penalty.is_null()))
        .join(data.scan("balance_history").select(*key, "effective_balance_gwei"), key)
        .group_by("epoch")
        .agg(missing_gwei=pl.col("effective_balance_gwei").sum(), is_unknown=pl.any("is_unknown"))
        .collect()
    )


def _select_active(data: ChainTables, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return the *rows* of validators that are active in the epoch of the row."""
    periods = data.validators.lazy().select("validator_index", "activation_epoch", "exit_epoch")
    return rows.join(periods, "validator_index").filter(is_active(pl.col("epoch")))
