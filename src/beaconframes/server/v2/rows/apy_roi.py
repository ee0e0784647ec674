"""Yields, from the income and the effective balances of generation 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.server.v2.rows.rewards import income

if TYPE_CHECKING:
    from beaconframes.endpoint import View

SECONDS_OF_A_YEAR = 365 * 86_400
GWEI = 10.0**9


def rows(view: View) -> pl.LazyFrame:
    """Return what every validator earned and had at stake in every finalized epoch."""
    gain = pl.sum_horizontal(pl.col("^.*_reward_gwei$")) - pl.sum_horizontal(
        pl.col("^.*_penalty_gwei$")
    )
    stakes = view.scan("balance_history").select(
        "validator_index", "epoch", stake="effective_balance_gwei"
    )
    return (
        income(view)
        .join(stakes, on=["validator_index", "epoch"], how="left")
        .select(
            "validator_index",
            "stake",
            last_epoch="epoch",
            consensus=gain,
            execution=pl.col("tx_fee_reward_wei").cast(pl.Float64) / GWEI,
            a_year=pl.lit(SECONDS_OF_A_YEAR / view.chain.seconds_per_slot)
            / view.chain.slots_per_epoch,
        )
    )


def summary(found: pl.LazyFrame) -> pl.LazyFrame:
    """Return the yields of all rows together; what was missed is not known there."""
    epochs = pl.col("last_epoch").n_unique()
    stake = pl.col("stake").sum() / epochs
    years = pl.col("a_year").first() / epochs
    earned = {
        "consensus_": pl.col("consensus").sum(),
        "execution_": pl.col("execution").sum(),
        "": pl.col("consensus").sum() + pl.col("execution").sum(),
    }
    shares = {f"{layer}roi": gain / stake for layer, gain in earned.items()}
    shares |= {f"{layer}apy": gain / stake * years for layer, gain in earned.items()}
    nothing = {f"{name}_missed": pl.lit(0.0) for name in shares}
    return found.select(**shares).with_columns(**nothing, finality=pl.lit("finalized"))
