"""Yields, from the rewards of validators and the effective balances of V1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.v2.amounts import WEI_PER_GWEI, sum_known
from beaconframes.answers.v2.rewards import (
    EXECUTION,
    MISSED_CONSENSUS,
    MISSED_EXECUTION,
    scan_rewards,
)

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View

SECONDS_PER_YEAR = 365 * 86_400


def derive_rows(view: View) -> pl.LazyFrame:
    """Return income and stake, one row per validator per finalized epoch."""
    reward = pl.sum_horizontal(pl.col("^.*_reward_gwei$")) - pl.sum_horizontal(
        pl.col("^.*_penalty_gwei$")
    )
    stakes = view.scan("balance_history").select(
        "validator_index", "epoch", stake="effective_balance_gwei"
    )
    return (
        scan_rewards(view)
        .join(stakes, on=["validator_index", "epoch"], how="left")
        .select(
            "validator_index",
            "stake",
            last_epoch="epoch",
            consensus=reward,
            execution=EXECUTION.cast(pl.Float64) / WEI_PER_GWEI,
            missed_consensus=MISSED_CONSENSUS.cast(pl.Float64) / WEI_PER_GWEI,
            missed_execution=MISSED_EXECUTION.cast(pl.Float64) / WEI_PER_GWEI,
            epochs_per_year=pl.lit(SECONDS_PER_YEAR / view.chain.seconds_per_slot)
            / view.chain.slots_per_epoch,
        )
    )


def summarize(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return the yields of all rows together, one row; missed yields are negative."""
    epochs = pl.col("last_epoch").n_unique()
    stake = pl.col("stake").sum() / epochs
    periods_per_year = pl.col("epochs_per_year").first() / epochs
    earned = {
        "consensus_": sum_known("consensus"),
        "execution_": sum_known("execution"),
        "": sum_known("consensus") + sum_known("execution"),
    }
    missed = {layer: -sum_known(f"missed_{layer.rstrip('_')}") for layer in earned if layer}
    missed[""] = pl.sum_horizontal(missed.values(), ignore_nulls=False)
    shares = {f"{layer}roi": reward / stake for layer, reward in earned.items()}
    shares |= {f"{layer}apy": reward / stake * periods_per_year for layer, reward in earned.items()}
    shares |= {f"{layer}roi_missed": reward / stake for layer, reward in missed.items()}
    shares |= {
        f"{layer}apy_missed": reward / stake * periods_per_year for layer, reward in missed.items()
    }
    # A set without stake has no yield; the API documents a number.
    has_stake = (pl.col("stake_sum") > 0).fill_null(value=False)
    yields = pl.when(has_stake).then(pl.all()).otherwise(0.0)
    return (
        rows.select(stake_sum=pl.col("stake").sum(), **shares)
        .with_columns(yields, finality=pl.lit("finalized"))
        .drop("stake_sum")
    )
