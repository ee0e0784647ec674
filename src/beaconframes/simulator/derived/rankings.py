"""Performance of validators over the last days on both layers, and the leaderboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from beaconframes.simulator.income import PENALTIES, REWARDS
from beaconframes.v1.execution_performance import ExecutionPerformance
from beaconframes.v1.leaderboard import Leaderboard
from beaconframes.v1.performance import Performance

if TYPE_CHECKING:
    from beaconframes.simulator.derived.chain_data import ChainData

_WINDOWS: Final = (1, 7, 31, 365)
_LEADERBOARD_SIZE: Final = 100


def write_tables(data: ChainData, daily_stats: pl.DataFrame, produced: pl.DataFrame) -> None:
    """Write performance and leaderboard, from *daily_stats* and the *produced* blocks."""
    rows = compute_performance(data)
    data.add(Performance, rows.sort("validator_index"))
    data.add(ExecutionPerformance, compute_execution_performance(data, produced))
    ends = daily_stats.filter(day=data.days.stop - 1).select(
        "validator_index", balance_gwei="end_balance_gwei"
    )
    top = rows.filter(pl.col("rank_7d") <= _LEADERBOARD_SIZE).sort("rank_7d").drop("balance_gwei")
    data.add(Leaderboard, top.join(ends, "validator_index", maintain_order="left"))


def compute_performance(data: ChainData) -> pl.DataFrame:
    """Return income and rank, one row per validator; null without a complete active day."""
    day, stop = pl.col("day"), data.days.stop
    income = pl.sum_horizontal(REWARDS) - pl.sum_horizontal(PENALTIES)
    sums = (
        data.scan("income_history")
        .group_by("validator_index", day=pl.col("epoch") // data.chain.epochs_per_day)
        .agg(income.sum().alias("gwei"))
        .group_by("validator_index")
        .agg(
            *(
                pl.col("gwei").filter(day.is_between(stop - days, stop - 1)).sum()
                .alias(f"performance_{days}d_gwei")
                for days in _WINDOWS
            ),
            pl.col("gwei").filter(day >= stop).sum().alias("performance_today_gwei"),
            pl.col("gwei").sum().alias("performance_total_gwei"),
        )
        .collect(engine="streaming")
    )  # fmt: skip
    first_day = pl.col("activation_epoch") // data.chain.epochs_per_day
    windows = [f"performance_{days}d_gwei" for days in _WINDOWS]
    is_ranked = (first_day < stop).fill_null(value=False) & bool(data.days)
    rows = (
        data.validators.select("validator_index", "balance_gwei", is_ranked=is_ranked)
        .join(sums, "validator_index", how="left", maintain_order="left")
        .with_columns(pl.col(r"^performance_.*$").fill_null(0))
        .with_columns(pl.when("is_ranked").then(pl.col(windows)))
        .sort("performance_7d_gwei", "validator_index", descending=[True, False], nulls_last=True)
    )
    return rows.with_columns(rank_7d=pl.when("is_ranked").then(pl.int_range(1, pl.len() + 1)))


def compute_execution_performance(data: ChainData, produced: pl.DataFrame) -> pl.DataFrame:
    """Return block rewards of proposers, one row per validator."""
    per_day = data.chain.epochs_per_day * data.chain.slots_per_epoch
    reward, slot = pl.col("producer_reward_wei"), pl.col("slot")
    sums = produced.group_by(validator_index="proposer_index").agg(
        *(
            reward.filter(slot > data.head.slot - days * per_day).sum()
            .alias(f"performance_{days}d_wei")
            for days in _WINDOWS
        ),
        reward.sum().alias("performance_total_wei"),
    )  # fmt: skip
    return (
        data.validators.select("validator_index")
        .join(sums, "validator_index", how="left", maintain_order="left")
        .with_columns(pl.col(r"^performance_.*$").fill_null(0))
    )
