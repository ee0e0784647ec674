"""Yields, from rewards and effective balances of validators, and the yield index of V1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.v2.amounts import WEI_PER_GWEI, find_last_epoch, sum_known
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
    """Return income and stake, one row per validator and day."""
    length = view.chain.seconds_per_slot * view.chain.slots_per_epoch
    days = view.derive(sum_yields, days="last_epoch")
    return days.with_columns(epochs_per_year=pl.lit(SECONDS_PER_YEAR / length))


def sum_yields(view: View) -> pl.LazyFrame:
    """Return income in gwei, stake and epochs, one row per validator and day."""
    reward = pl.sum_horizontal(pl.col("^.*_reward_gwei$")) - pl.sum_horizontal(
        pl.col("^.*_penalty_gwei$")
    )
    stakes = view.scan("balance_history").select(
        "validator_index", "epoch", stake="effective_balance_gwei"
    )
    wei = {
        "execution": EXECUTION,
        "missed_consensus": MISSED_CONSENSUS,
        "missed_execution": MISSED_EXECUTION,
    }
    return (
        scan_rewards(view)
        .select("validator_index", "epoch", consensus=reward, **wei)
        .join(stakes, on=["validator_index", "epoch"], how="left")
        .with_columns(last_epoch=find_last_epoch(view))
        .group_by("validator_index", "last_epoch")
        .agg(
            pl.col("stake").sum(),
            sum_known("consensus"),
            *(sum_known(name).cast(pl.Float64) / WEI_PER_GWEI for name in wei),
            # Validators may share epochs, so that counts of epochs cannot be added.
            epochs=pl.col("epoch").cast(pl.Int32),
        )
    )


def summarize(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return the yields of all rows together, one row; missed yields are negative."""
    epochs = pl.col("epochs").explode().n_unique()
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


def derive_index(view: View) -> pl.LazyFrame:
    """Return the yield index, one row per day, newest first."""
    days = view.scan("yield_index").sort("day", descending=True)
    return days.with_columns(finality=pl.lit("finalized"))
