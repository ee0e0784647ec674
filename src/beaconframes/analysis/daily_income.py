"""Income of many validators from their daily statistics: one row per day instead of 225."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import polars as pl

from beaconframes.analysis.aggregation import sum_known
from beaconframes.analysis.engines import (
    check_distinct,
    list_columns,
    open_frame,
    resolve_chain,
    return_table,
    sum_by,
)
from beaconframes.analysis.execution_income import BASIS, RECEIVED, UNKNOWN
from beaconframes.frames import check_choice, collect, drop_missing, select_columns
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.calendar import Chain

Every = Literal["day", "all"]

_KEYS = ["validator_index", "day"]
_AMOUNTS = ["consensus_income_gwei", "execution_income_wei", "priority_fees_wei"]
_RATES = ["apr_on_32_eth", "apr_on_effective", "apr_as_index"]
_BALANCES = ["start_balance_gwei", "end_balance_gwei"]
_MOVES = ["deposits_amount_gwei", "withdrawals_amount_gwei"]
_STAKE = "start_effective_balance_gwei"
_BLOCK = ["proposer_index", "epoch", "producer_reward_wei", "block_reward_wei"]
_WEI_PER_GWEI = 10**9
_CREDITED = 0.9
"""A balance that rose by this share of a deposit contains it: penalties are smaller."""
_LARGEST_RISE, _LARGEST_FALL = 0.01, 0.5
"""Shares of a balance that no validator earns or loses in a day."""


@show_elapsed
def daily_income(
    stats: IntoFrameT, blocks: IntoFrame | None = None, *, chain: Chain | str | None = None
) -> IntoFrameT:
    """Compute income from daily statistics. One row per validator and beacon day.

    For many validators and long ranges: the statistics have one row per day, an income history one
    per epoch. Consensus income is the change of the balance, less deposits, plus withdrawals. It
    has no components. A deposit counts on the day on which it reaches the balance, which is often
    later than that of its block.

    Parameters
    ----------
    stats
        Frame of `load_validator_stats`.
    blocks
        Frame of `load_produced_blocks`, of the same validators. Without it, execution income is
        unknown.
    chain
        Chain of the days; it sets the number of epochs in a day. Default: that of the frames, from
        ``time``; an unknown chain has the epochs of mainnet if only days are known.

    Returns
    -------
    The same kind of frame
        ``day``, ``time`` (start of the day, UTC), ``date`` (of this time), ``validator_index``,
        ``effective_balance_gwei`` at its start, ``consensus_income_gwei``,
        ``execution_income_wei``, ``net_income_wei``, ``withdrawals_gwei``, ``deposits_gwei``,
        ``priority_fees_wei`` (what the yield index counts) and ``execution_income_basis``. Days
        without balances are left out, and so are days on which the balance rose by more than 1 %
        without a deposit in *stats*, or fell to less than half without a withdrawal: these are
        consolidations, and deposits of earlier days; `daily_income_gaps` lists them. Sorted by
        day and validator. This computes eagerly.
    """
    columns = [*_KEYS, "time", _STAKE, *_BALANCES]
    source = open_frame(stats, [*columns, *_MOVES], loader="load_validator_stats")
    check_distinct(stats, _KEYS, loader="load_validator_stats")
    length = resolve_chain(chain, (blocks, "slot"), (stats, "day")).epochs_per_day
    rows = collect(drop_missing(source, columns)).filter(pl.col("day") >= 0)
    deposits, withdrawals = (pl.col(name).fill_null(0) for name in _MOVES)
    change = pl.col("end_balance_gwei") - pl.col("start_balance_gwei")
    rows = rows.with_columns(
        date=pl.col("time").dt.date(),
        effective_balance_gwei=pl.col(_STAKE),
        change=change + withdrawals,
        withdrawals_gwei=withdrawals,
        deposits_gwei=deposits,
    )
    rows = _credit_deposits(rows).with_columns(
        consensus_income_gwei=pl.col("change") - pl.col("deposits_gwei")
    )
    # The balance of a new validator begins with 0 on the day of its deposit.
    income = pl.col("consensus_income_gwei")
    balance = pl.col("start_balance_gwei") + pl.col("deposits_gwei")
    is_moved = (income > balance * _LARGEST_RISE) | (income < -balance * _LARGEST_FALL)
    rows = rows.filter(~is_moved)
    received = fees = pl.lit(None, pl.Int128)
    if blocks is not None:
        rows = rows.join(sum_blocks(blocks, length), on=_KEYS, how="left")
        received, fees = (
            pl.when("has_block").then(name).otherwise(0).cast(pl.Int128)
            for name in ("received", "fees")
        )
    consensus = pl.col("consensus_income_gwei").cast(pl.Int128) * _WEI_PER_GWEI
    rows = rows.with_columns(received=received, fees=fees).with_columns(
        priority_fees_wei=pl.col("fees").cast(pl.Decimal(28, 0)),
        execution_income_wei=pl.col("received").cast(pl.Decimal(28, 0)),
        net_income_wei=(consensus + pl.col("received")).cast(pl.Decimal(28, 0)),
        **{
            BASIS: pl.when(pl.col("received").is_null())
            .then(pl.lit(UNKNOWN))
            .otherwise(pl.lit(RECEIVED))
        },
    )
    result = rows.select(
        "day",
        "time",
        "date",
        "validator_index",
        "effective_balance_gwei",
        "consensus_income_gwei",
        "execution_income_wei",
        "net_income_wei",
        "withdrawals_gwei",
        "deposits_gwei",
        "priority_fees_wei",
        BASIS,
    )
    return return_table(result.sort("day", "validator_index"), source, stats)


@show_elapsed
def daily_rates(
    daily: IntoFrameT,
    index: IntoFrame | None = None,
    *,
    every: Every = "day",
    by: str | Sequence[str] = (),
) -> IntoFrameT:
    """Compute the yearly rates of daily income in three ways. One row per beacon day and group.

    The rates are those of `apr`, for validators with daily statistics: all of their days are whole.

    Parameters
    ----------
    daily
        Frame of `daily_income`.
    index
        Frame of `load_yield_index`. It adds ``index_apr`` and ``difference_bp``, as in `apr`.
    every
        ``"day"``, or ``"all"`` for one row.
    by
        Group columns, such as ``"validator_index"``. Default: all validators together.

    Returns
    -------
    The same kind of frame
        The columns of *by*, ``day``, ``validator_days``, ``consensus_income_gwei``,
        ``execution_income_wei``, ``apr_on_32_eth``, ``apr_on_effective`` and ``apr_as_index``.
        Rates are null if execution income is unknown. Sorted. This computes eagerly.
    """
    check_choice("every", every, get_args(Every))
    groups = list_columns(by, {"validator_days", *_AMOUNTS, *_RATES})
    columns = ["day", *groups, "effective_balance_gwei", *_AMOUNTS]
    source = open_frame(daily, columns, loader="daily_income")
    rows = _sum_days(collect(source), groups)
    if index is None:
        rows = rows.with_columns(
            index_reward=pl.lit(None, pl.Float64), is_compared=pl.lit(value=True)
        )
    else:
        days = collect(select_columns(index, ["day", "apr"], loader="load_yield_index"))
        rows = rows.join(days, on="day", how="left").with_columns(
            index_reward=pl.col("apr") * pl.col("stake"), is_compared=pl.col("apr").is_not_null()
        )
    if every == "all":
        rows, keys = _sum_range(rows, groups), groups
    else:
        keys = list(dict.fromkeys([*groups, "day"]))
        rows = rows.with_columns(
            compared_consensus="consensus_income_gwei",
            compared_fees="fees",
            compared_stake="stake",
        ).sort(keys)
    income = pl.col("consensus_income_gwei") + _to_gwei("execution")
    compared = pl.col("compared_consensus") + _to_gwei("compared_fees")
    rows = rows.with_columns(
        execution_income_wei=pl.col("execution").cast(pl.Decimal(28, 0)),
        apr_on_32_eth=365 * income / (pl.col("validator_days") * 32e9),
        apr_on_effective=365 * income / _drop_zeros("stake"),
        apr_as_index=365 * compared / _drop_zeros("compared_stake"),
    )
    columns = [*keys, "validator_days", *_AMOUNTS[:2], *_RATES]
    if index is not None:
        rows = rows.with_columns(
            index_apr=pl.col("index_reward") / _drop_zeros("compared_stake")
        ).with_columns(difference_bp=(pl.col("apr_as_index") - pl.col("index_apr")) * 1e4)
        columns += ["index_apr", "difference_bp"]
    return return_table(rows.select(columns), source, daily)


def _sum_days(rows: pl.DataFrame, groups: list[str]) -> pl.DataFrame:
    """Return amounts and stakes, one row per group and day."""
    execution, fees = (pl.col(name).cast(pl.Int128) for name in _AMOUNTS[1:])
    return (
        # On the day of the first deposit, the stake at the start of the day is 0.
        rows.filter(pl.col("effective_balance_gwei") > 0)
        .group_by(list(dict.fromkeys([*groups, "day"])))
        .agg(
            validator_days=pl.len().cast(pl.Int64),
            consensus_income_gwei=pl.sum("consensus_income_gwei"),
            execution=sum_known(execution),
            fees=sum_known(fees),
            stake=pl.sum("effective_balance_gwei").cast(pl.Int128),
        )
    )


def _sum_range(days: pl.DataFrame, groups: list[str]) -> pl.DataFrame:
    """Return the sums over all *days*, and over those that are compared with the index."""
    is_compared = pl.col("is_compared")
    sums = {
        "execution": sum_known(pl.col("execution")),
        "fees": sum_known(pl.col("fees")),
        "compared_consensus": pl.col("consensus_income_gwei").filter(is_compared).sum(),
        "compared_fees": sum_known(pl.col("fees").filter(is_compared)),
        "compared_stake": pl.col("stake").filter(is_compared).sum(),
    }
    totals = pl.sum("validator_days", "consensus_income_gwei", "stake", "index_reward")
    return sum_by(days, groups, totals, **sums)


def _to_gwei(name: str) -> pl.Expr:
    """Return the amounts in wei of a column in gwei, as floats."""
    return pl.col(name).cast(pl.Float64) / _WEI_PER_GWEI


def _drop_zeros(name: str) -> pl.Expr:
    """Return the stakes of a column as floats, null for 0."""
    return pl.when(pl.col(name) > 0).then(pl.col(name).cast(pl.Float64))


def _credit_deposits(rows: pl.DataFrame) -> pl.DataFrame:
    """Move deposits to the day on which the balance rose by them; drop those that come later."""
    amounts = rows.filter(pl.col("deposits_gwei").sum().over("validator_index") > 0)
    credited: list[tuple[int, int, int]] = []
    for (validator,), days in amounts.sort("day").group_by("validator_index", maintain_order=True):
        waiting: list[int] = []
        for day, deposit, change in days.select("day", "deposits_gwei", "change").iter_rows():
            if deposit:
                waiting.append(deposit)
            total, left = 0, change
            while waiting and left > waiting[0] * _CREDITED:
                left -= waiting[0]
                total += waiting.pop(0)
            credited.append((int(str(validator)), day, total))
    table = pl.DataFrame(credited, [*_KEYS, "credited"], orient="row").cast(pl.Int64)
    joined = rows.join(table, on=_KEYS, how="left")
    return joined.with_columns(deposits_gwei=pl.col("credited").fill_null(0)).drop("credited")


def sum_blocks(blocks: IntoFrame, length: int) -> pl.DataFrame:
    """Sum what validators received by day; null where the payment of a block is unknown."""
    lazy = open_frame(blocks, _BLOCK, loader="load_produced_blocks")
    rows = collect(drop_missing(lazy, _BLOCK[:2]))
    amount, fees = (pl.col(name).cast(pl.Int128) for name in _BLOCK[2:])
    return rows.group_by(
        validator_index=pl.col("proposer_index").cast(pl.Int64),
        day=(pl.col("epoch") // length).cast(pl.Int64),
    ).agg(
        received=sum_known(amount),
        fees=sum_known(fees),
        has_block=pl.lit(value=True),
    )
