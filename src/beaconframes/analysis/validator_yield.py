"""The yield of your own validators, by the definition of the yield index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.analysis.aggregation import sum_known
from beaconframes.analysis.engines import open_frame, return_table
from beaconframes.analysis.income import income as sum_income
from beaconframes.frames import collect, drop_missing, read_rows, to_polars
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

_DAYS = ["day", "time", "day_end"]
_BALANCES = ["validator_index", "epoch", "time", "effective_balance_gwei"]
_STAKE = "effective_balance_gwei"
_RATES = ("apr", "cl_apr", "el_apr")
_RATE_COLUMNS = ("day", "time", "validators", *_RATES)


@show_elapsed
def own_yield(income: IntoFrameT, balances: IntoFrame, days: IntoFrame) -> IntoFrameT:
    """Compute the daily yield of the validators in an income history. One row per day.

    ``apr`` is 365 times the income of the day over the effective balances at its start, as in the
    yield index whose *days* these are (they begin at the hour of genesis); ``cl_apr`` and
    ``el_apr`` are its parts. Like the index, they count priority fees, relay payments not
    included. ``validators`` is the number of validators counted: those with a balance at the day's
    first epoch and with income rows for each of its epochs. Days without such a validator are left
    out. ``apr`` and ``el_apr`` are null on a day with priority fees missing. This computes eagerly.
    """
    rates = compute_own_rates(income, balances, days).select(*_RATE_COLUMNS)
    source = open_frame(income, ["time"], loader="load_income_history")
    return return_table(rates, source, income)


def compute_own_rates(income: IntoFrame, balances: IntoFrame, days: IntoFrame) -> pl.DataFrame:
    """Compute `own_yield` with standard errors, such as ``apr_error``. One row per day.

    The errors follow from the differences between validators; they are null for a single one.
    """
    day_bounds = read_rows(days, _DAYS, loader="load_yield_index").sort("time")
    by_epoch = to_polars(sum_income(income, every="epoch", by="validator_index"))
    stakes = collect(
        drop_missing(open_frame(balances, _BALANCES, loader="load_balance_history"), _BALANCES)
    )
    # The length of an epoch is taken from the rows, because chains differ.
    epoch_span = pl.max("first_epoch") - pl.min("first_epoch")
    length = (pl.max("time") - pl.min("time")) / pl.when(epoch_span > 0).then(epoch_span)
    day_bounds = day_bounds.join(by_epoch.select(length.alias("length")), how="cross")
    first_stakes = _add_day(stakes, day_bounds).filter(
        pl.col("time") < pl.col("begin") + pl.col("length")
    )
    return (
        _add_day(by_epoch, day_bounds)
        .group_by("day", "validator_index")
        .agg(
            pl.sum("consensus_income_gwei"),
            sum_known(pl.col("execution_income_wei")),
            pl.col("begin", "end", "length").first(),
            epochs=pl.len(),
        )
        .filter(pl.col("epochs") == ((pl.col("end") - pl.col("begin")) / pl.col("length")).round())
        .join(
            first_stakes.select("day", "validator_index", "effective_balance_gwei"),
            on=["day", "validator_index"],
        )
        .with_columns(
            cl_apr=pl.col("consensus_income_gwei").cast(pl.Float64),
            el_apr=pl.col("execution_income_wei").cast(pl.Float64) / 1e9,
        )
        .with_columns(apr=pl.col("cl_apr") + pl.col("el_apr"))
        .group_by("day", time=pl.col("begin"))
        .agg(
            pl.len().cast(pl.Int64).alias("validators"),
            *((365 * sum_known(pl.col(name)) / pl.sum(_STAKE)).alias(name) for name in _RATES),
            *(_compute_error(name) for name in _RATES),
        )
        .sort("day")
    )


def _compute_error(name: str) -> pl.Expr:
    """Return the standard error of a rate: of the mean of amounts, but for the stake of each."""
    amounts, stakes = pl.col(name), pl.col(_STAKE)
    difference = amounts - stakes * (sum_known(amounts) / stakes.sum())
    count = pl.len()
    variance = (difference**2).sum() * count / (count - 1)
    error = 365 * variance.sqrt() / stakes.sum()
    return pl.when((count > 1) & ~amounts.is_null().any()).then(error).alias(f"{name}_error")


def _add_day(rows: pl.DataFrame, day_bounds: pl.DataFrame) -> pl.DataFrame:
    """Add to each of *rows* its day; rows outside of all days are left out."""
    days = day_bounds.rename({"time": "begin", "day_end": "end"})
    return (
        rows.sort("time")
        .join_asof(days, left_on="time", right_on="begin", check_sortedness=False)
        .filter(pl.col("time") < pl.col("end"))
    )
