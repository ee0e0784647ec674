"""Yearly rates of daily income, beside the yield index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import polars as pl

from beaconframes.active_periods import END_OF_BALANCE, Lifetime, end_epoch
from beaconframes.analysis.aggregation import sum_known
from beaconframes.analysis.daily_rewards import ACTIVE_PERIOD, add_active_epochs
from beaconframes.analysis.engines import (
    check_distinct,
    list_columns,
    open_frame,
    resolve_chain,
    return_table,
    sum_by,
)
from beaconframes.frames import check_choice, collect, list_column_names, select_columns
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.calendar import Chain

Every = Literal["day", "all"]

_AMOUNTS = ["consensus_income_gwei", "execution_income_wei", "priority_fees_wei"]
_RATES = ["apr_on_32_eth", "apr_on_effective", "apr_as_index"]
_COMPARED = ["compared_consensus", "compared_fees", "compared_stake"]
_SUMS = ["share", "is_whole", "validator_days", "execution", "stake", *_COMPARED]
_INDEX = ["index_apr", "difference_bp"]
_WEI_PER_GWEI = 10**9


@show_elapsed
def daily_rates(
    daily: IntoFrameT,
    index: IntoFrame | None = None,
    *,
    validators: IntoFrame | None = None,
    every: Every = "day",
    by: str | Sequence[str] = (),
    chain: Chain | str | None = None,
) -> IntoFrameT:
    """Compute the yearly rates of daily income in three ways. One row per beacon day and group.

    The rates are those of `apr`, for validators with daily statistics.

    Parameters
    ----------
    daily
        Frame of `daily_income`.
    index
        Frame of `load_yield_index`. It adds ``index_apr`` and ``difference_bp``, as in `apr`.
    validators
        Frame of `load_validators`. With it, a day counts in the ratio of the epochs in which its
        validator has income, as in `apr`: those in which it is active, and with the columns
        ``slashed`` and ``withdrawable_epoch`` those in which a slashed validator has penalties
        after its exit. Days of a validator that is not in it are whole ones. ``apr_as_index``
        counts only validators that were active the whole day, as the index does.
    every
        ``"day"``, or ``"all"`` for one row.
    by
        Group columns, such as ``"validator_index"``. Default: all validators together.
    chain
        Chain of the days, as in `daily_income`.

    Returns
    -------
    The same kind of frame
        The columns of *by*, ``day``, ``validator_days``, ``consensus_income_gwei``,
        ``execution_income_wei``, ``apr_on_32_eth``, ``apr_on_effective`` and ``apr_as_index``.
        Rates are null if execution income is unknown, or if no validator is active. Sorted. This
        computes eagerly.
    """
    check_choice("every", every, get_args(Every))
    groups = list_columns(by, {*_SUMS, *_AMOUNTS, *_RATES, *_INDEX, "index_reward", "is_compared"})
    needed = ["day"] if validators is None else ["day", "validator_index"]
    columns = list(dict.fromkeys([*needed, *groups, "effective_balance_gwei", *_AMOUNTS]))
    check_distinct(daily, ["validator_index", "day"], groups, loader="analysis.daily_income")
    source = open_frame(daily, columns, loader="analysis.daily_income")
    rows = collect(source).with_columns(share=pl.lit(1.0), is_whole=pl.lit(value=True))
    if validators is not None:
        length = resolve_chain(chain, (daily, "day")).epochs_per_day
        rows = rows.with_columns(_find_shares(rows, validators, length))
    rows = _sum_days(rows, groups)
    if index is None:
        rows = rows.with_columns(
            index_reward=pl.lit(None, pl.Float64), is_compared=pl.lit(value=True)
        )
    else:
        check_distinct(index, ["day"], loader="load_yield_index")
        days = collect(select_columns(index, ["day", "apr"], loader="load_yield_index"))
        # Another name: the rate may be a group.
        rows = rows.join(days.rename({"apr": "index_apr"}), on="day", how="left").with_columns(
            index_reward=pl.col("index_apr") * pl.col("compared_stake"),
            is_compared=pl.col("index_apr").is_not_null(),
        )
    if every == "all":
        rows, keys = _sum_range(rows, groups), groups
    else:
        keys = list(dict.fromkeys([*groups, "day"]))
        rows = rows.sort(keys)
    income = pl.col("consensus_income_gwei") + _to_gwei("execution")
    compared = pl.col("compared_consensus") + _to_gwei("compared_fees")
    rows = rows.with_columns(
        execution_income_wei=pl.col("execution").cast(pl.Decimal(28, 0)),
        apr_on_32_eth=365 * income / (_drop_zeros("validator_days") * 32e9),
        apr_on_effective=365 * income / _drop_zeros("stake"),
        apr_as_index=365 * compared / _drop_zeros("compared_stake"),
    )
    columns = [*keys, "validator_days", *_AMOUNTS[:2], *_RATES]
    if index is not None:
        rows = rows.with_columns(
            index_apr=pl.col("index_reward") / _drop_zeros("compared_stake")
        ).with_columns(difference_bp=(pl.col("apr_as_index") - pl.col("index_apr")) * 1e4)
        columns += _INDEX
    return return_table(rows.select(columns), source, daily)


def _find_shares(rows: pl.DataFrame, validators: IntoFrame, length: int) -> list[pl.Series]:
    """Return the part of its day in which a validator has income, and if it is active all day."""
    check_distinct(validators, ["validator_index"], loader="load_validators")
    columns = [*ACTIVE_PERIOD, *(n for n in END_OF_BALANCE if n in list_column_names(validators))]
    periods = collect(select_columns(validators, columns, loader="load_validators"))
    # Indices of pandas may be floats, and the epochs of a period may be groups.
    index = pl.col("validator_index").cast(pl.Int64)
    periods, keys = periods.with_columns(index), rows.select(index, "day")

    def find_share(periods: pl.DataFrame) -> pl.Series:
        active = add_active_epochs(keys.unique(), periods, length)
        found = keys.join(active, on=["validator_index", "day"], how="left", maintain_order="left")
        return found["active_epochs"].fill_null(length) / length

    active = find_share(periods)
    if len(columns) == len(ACTIVE_PERIOD) + len(END_OF_BALANCE):
        periods = periods.with_columns(exit_epoch=end_epoch(Lifetime.PENALTIES, pl))
    return [find_share(periods).alias("share"), (active == 1).alias("is_whole")]


def _sum_days(rows: pl.DataFrame, groups: list[str]) -> pl.DataFrame:
    """Return amounts and stakes, one row per group and day; those of whole days are compared."""
    is_whole, stake = pl.col("is_whole"), pl.col("effective_balance_gwei")
    execution, fees = (pl.col(name).cast(pl.Int128) for name in _AMOUNTS[1:])
    return (
        rows.filter(stake > 0)
        .group_by(list(dict.fromkeys([*groups, "day"])))
        .agg(
            validator_days=pl.sum("share"),
            consensus_income_gwei=pl.sum("consensus_income_gwei"),
            execution=sum_known(execution),
            stake=(stake * pl.col("share")).sum(),
            compared_consensus=pl.col("consensus_income_gwei").filter(is_whole).sum(),
            compared_fees=sum_known(fees.filter(is_whole)),
            compared_stake=stake.filter(is_whole).sum(),
        )
    )


def _sum_range(days: pl.DataFrame, groups: list[str]) -> pl.DataFrame:
    """Return the sums over all *days*, and over those that are compared with the index."""
    is_compared = pl.col("is_compared")
    sums = {
        "execution": sum_known(pl.col("execution")),
        "compared_consensus": pl.col("compared_consensus").filter(is_compared).sum(),
        "compared_fees": sum_known(pl.col("compared_fees").filter(is_compared)),
        "compared_stake": pl.col("compared_stake").filter(is_compared).sum(),
    }
    totals = pl.sum("validator_days", "consensus_income_gwei", "stake", "index_reward")
    return sum_by(days, groups, totals, **sums)


def _to_gwei(name: str) -> pl.Expr:
    """Return the amounts in wei of a column in gwei, as floats."""
    return pl.col(name).cast(pl.Float64) / _WEI_PER_GWEI


def _drop_zeros(name: str) -> pl.Expr:
    """Return the stakes or days of a column as floats, null for 0."""
    return pl.when(pl.col(name) > 0).then(pl.col(name).cast(pl.Float64))
