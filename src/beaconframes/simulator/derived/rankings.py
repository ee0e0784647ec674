"""What validators earned over the last days, on both layers, and who earned most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from beaconframes.simulator.income import PENALTIES, REWARDS
from beaconframes.v1.execution_performance import ExecutionPerformance
from beaconframes.v1.leaderboard import Leaderboard
from beaconframes.v1.performance import Performance

if TYPE_CHECKING:
    from beaconframes.simulator.derived.source import Source

_WINDOWS: Final = (1, 7, 31, 365)
_TOP: Final = 100


def write(source: Source, days: pl.DataFrame, produced: pl.DataFrame) -> None:
    """Write income and ranks, from the *days* of the validators and the *produced* blocks."""
    rows = performance(source)
    source.add(Performance, rows.sort("validator_index"))
    source.add(ExecutionPerformance, execution_performance(source, produced))
    ends = days.filter(day=source.days.stop - 1).select(
        "validator_index", balance_gwei="end_balance_gwei"
    )
    top = rows.filter(pl.col("rank_7d") <= _TOP).sort("rank_7d").drop("balance_gwei")
    source.add(Leaderboard, top.join(ends, "validator_index", maintain_order="left"))


def performance(source: Source) -> pl.DataFrame:
    """Return income and rank. One row per validator; null where it has not seen a whole day."""
    day, stop = pl.col("day"), source.days.stop
    income = pl.sum_horizontal(REWARDS) - pl.sum_horizontal(PENALTIES)
    sums = (
        source.scan("income_history")
        .group_by("validator_index", day=pl.col("epoch") // source.chain.epochs_per_day)
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
    began = pl.col("activation_epoch") // source.chain.epochs_per_day
    windows = [f"performance_{days}d_gwei" for days in _WINDOWS]
    counts = (began < stop).fill_null(value=False) & bool(source.days)
    rows = (
        source.validators.select("validator_index", "balance_gwei", counts=counts)
        .join(sums, "validator_index", how="left", maintain_order="left")
        .with_columns(pl.col(r"^performance_.*$").fill_null(0))
        .with_columns(pl.when("counts").then(pl.col(windows)))
        .sort("performance_7d_gwei", "validator_index", descending=[True, False], nulls_last=True)
    )
    return rows.with_columns(rank_7d=pl.when("counts").then(pl.int_range(1, pl.len() + 1)))


def execution_performance(source: Source, produced: pl.DataFrame) -> pl.DataFrame:
    """Return what the proposers got for their blocks. One row per validator."""
    per_day = source.chain.epochs_per_day * source.chain.slots_per_epoch
    got, slot = pl.col("producer_reward_wei"), pl.col("slot")
    sums = produced.group_by(validator_index="proposer_index").agg(
        *(
            got.filter(slot > source.head.slot - days * per_day).sum()
            .alias(f"performance_{days}d_wei")
            for days in _WINDOWS
        ),
        got.sum().alias("performance_total_wei"),
    )  # fmt: skip
    return (
        source.validators.select("validator_index")
        .join(sums, "validator_index", how="left", maintain_order="left")
        .with_columns(pl.col(r"^performance_.*$").fill_null(0))
    )
