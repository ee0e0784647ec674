"""Performance of validators over the last days on both layers, and the leaderboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from beaconframes.v1.income_history import IncomeHistory

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import ChainTables

REWARDS: Final = [name for name in IncomeHistory.schema() if name.endswith("_reward_gwei")]
PENALTIES: Final = [name for name in IncomeHistory.schema() if name.endswith("_penalty_gwei")]
_WINDOWS: Final = (1, 7, 31, 365)
_LEADERBOARD_SIZE: Final = 100


def build_performance(data: ChainTables) -> pl.DataFrame:
    """Return income and rank, one row per validator.

    The windows end with the last day that is over and final. They are null for a validator that
    was not active on a complete day, and a window is null if the income of a day in it is missing
    since the activation of the validator. Ranks are null unless the tables cover all validators.
    """
    size, stop = data.chain.epochs_per_day, data.days_end
    day, gwei = pl.col("day"), pl.col("gwei")
    columns = {days: f"performance_{days}d_gwei" for days in _WINDOWS}
    sums = (
        data.scan("income_history")
        .group_by("validator_index", day=pl.col("epoch") // size)
        .agg((pl.sum_horizontal(REWARDS) - pl.sum_horizontal(PENALTIES)).sum().alias("gwei"))
        .group_by("validator_index")
        .agg(
            *(
                gwei.filter(day.is_between(stop - days, stop - 1)).sum().alias(name)
                for days, name in columns.items()
            ),
            gwei.filter(day >= stop).sum().alias("performance_today_gwei"),
            gwei.sum().alias("performance_total_gwei"),
        )
        .collect(engine="streaming")
    )
    since = pl.col("activation_epoch").fill_null(data.head.epoch + 1)
    last = data.head.finalized_epoch
    epochs = {
        name: range(max(stop - days, 0) * size, stop * size) for days, name in columns.items()
    } | {
        "performance_today_gwei": range(stop * size, last + 1),
        "performance_total_gwei": range(last + 1),
    }
    is_ranked = (since // size < stop) & (stop - 1 in data.days)
    rows = (
        data.covered_validators.select("validator_index", "balance_gwei", "activation_epoch")
        .join(sums, "validator_index", how="left", maintain_order="left")
        .with_columns(is_ranked=is_ranked)
        .with_columns(
            pl.when(_is_covered(data, "income_history", needed, since))
            .then(pl.col(name).fill_null(0))
            .alias(name)
            for name, needed in epochs.items()
        )
        .with_columns(pl.when("is_ranked").then(pl.col(*columns.values())))
        .sort(columns[7], "validator_index", descending=[True, False], nulls_last=True)
    )
    has_ranks = data.coverage.validators is None and (
        rows.filter("is_ranked")[columns[7]].null_count() == 0
    )
    return rows.with_columns(
        rank_7d=pl.when(pl.col("is_ranked") & has_ranks).then(pl.int_range(1, pl.len() + 1))
    )


def build_leaderboard(data: ChainTables, performance: pl.DataFrame) -> pl.DataFrame:
    """Return the first hundred ranks of `build_performance`, with the balance at the day's end."""
    end = data.days_end * data.chain.epochs_per_day
    ends = data.scan("balance_history").filter(epoch=end).select("validator_index", "balance_gwei")
    top = performance.filter(pl.col("rank_7d") <= _LEADERBOARD_SIZE).sort("rank_7d")
    return top.drop("balance_gwei").join(
        ends.collect(), "validator_index", how="left", maintain_order="left"
    )


def build_execution_performance(data: ChainTables, blocks: pl.LazyFrame) -> pl.DataFrame:
    """Return the rewards of proposers from execution *blocks*, one row per validator.

    A sum is null if a block in it may be missing since the activation of the validator, or if the
    reward of one of its blocks is unknown.
    """
    size = data.chain.slots_per_epoch
    per_day = data.chain.epochs_per_day * size
    reward, slot = pl.col("producer_reward_wei"), pl.col("slot")
    firsts = {
        f"performance_{days}d_wei": max(data.head.slot - days * per_day + 1, 0)
        for days in _WINDOWS
    } | {"performance_total_wei": 0}  # fmt: skip
    sums = (
        blocks.filter(pl.col("proposer_index").is_not_null())
        .group_by(validator_index="proposer_index")
        .agg(
            pl.when(~(reward.is_null() & (slot >= first)).any())
            .then(reward.filter(slot >= first).sum())
            .alias(name)
            for name, first in firsts.items()
        )
        .collect()
    )
    since = pl.col("activation_epoch").fill_null(data.head.epoch + 1)
    has_blocks = pl.col("validator_index").is_in(sums["validator_index"].implode())
    zero = pl.lit(0, sums.schema["performance_total_wei"])
    epochs = {name: range(slot // size, data.head.epoch + 1) for name, slot in firsts.items()}
    return (
        data.covered_validators.select("validator_index", "activation_epoch")
        .join(sums, "validator_index", how="left", maintain_order="left")
        .with_columns(
            pl.when(_is_covered(data, "execution_blocks", needed, since))
            .then(pl.when(has_blocks).then(pl.col(name)).otherwise(zero))
            .alias(name)
            for name, needed in epochs.items()
        )
    )


def _is_covered(data: ChainTables, table: str, epochs: range, since: pl.Expr) -> pl.Expr:
    """Return whether a table covers *epochs*, for each validator from epoch *since* on."""
    if not epochs:
        return pl.lit(value=True)
    start = data.coverage.find_start(table, epochs[-1])
    if start is None:
        return since > epochs[-1]
    return (since >= start) | (epochs[0] >= start)
