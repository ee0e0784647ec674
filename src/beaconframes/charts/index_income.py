"""The income of validators if they had earned the yield index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes import colours
from beaconframes.analysis.engines import resolve_chain
from beaconframes.analysis.income_columns import AMOUNTS
from beaconframes.charts import series
from beaconframes.charts.model import Line

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.charts.series import Unit

_DEFAULT_STAKE = 32_000_000_000  # In gwei: the effective balance of most validators.


def build_expected_income(
    income: IntoFrame,
    yield_index: IntoFrame,
    balances: IntoFrame | None,
    drawn: pl.DataFrame,
    every: str,
    unit: Unit,
    *,
    rate: str,
    cumulative: bool,
) -> Line:
    """Build the line of the income at the *rate* of the yield index, for the rows of an income.

    Each row of *income* counts with the effective balance of its validators, by default 32 ETH. The
    line has a point for each row *drawn*, and stops where the index has no day.
    """
    # Rows with a missing amount are not in the income either.
    columns = ["validator_index", "epoch", "time", *AMOUNTS[:-1]]
    epochs = series.read_rows(income, columns, loader="load_income_history")
    by_epoch = epochs.group_by("epoch").agg(pl.first("time"), count=pl.len()).sort("time")
    index_columns = ["time", "day_end", rate]
    days = series.read_rows(yield_index, index_columns, loader="load_yield_index").sort("time")
    own = epochs.select("validator_index").unique()
    expected = _add_stake(by_epoch, own, balances).join_asof(
        days, on="time", check_sortedness=False, coalesce=True
    )
    a_year = 365 * resolve_chain(None, (by_epoch, "epoch")).epochs_per_day
    gwei = pl.col("count") * pl.col("stake") * pl.col(rate) / a_year
    expected = expected.with_columns(gwei=pl.when(pl.col("time") < pl.col("day_end")).then(gwei))
    time = pl.col("time")
    period = time if every == "epoch" else time.dt.truncate(series.LENGTHS[every])
    is_known = pl.col("gwei").is_not_null().all()
    sums = expected.group_by(period=period).agg(gwei=pl.when(is_known).then(pl.sum("gwei")))
    rows = drawn.select("time", "number").join(
        sums, left_on="time", right_on="period", how="left", maintain_order="left"
    )
    if cumulative:
        # After an unknown period, the sum is unknown.
        is_lost = pl.col("gwei").is_null().cum_max()
        rows = rows.with_columns(pl.when(~is_lost).then(pl.col("gwei").cum_sum()).alias("gwei"))
    heights = series.to_floats(rows.select(series.convert_gwei(pl.col("gwei"), unit)).to_series())
    x, y = series.build_curve(rows["number"], rows["time"], heights)
    stake = "" if balances is not None else ", 32 ETH each"
    return Line(x, y, f"At the yield index{stake}", colours.RED, 1.4, dashed=True)


def _add_stake(
    by_epoch: pl.DataFrame, validators: pl.DataFrame, balances: IntoFrame | None
) -> pl.DataFrame:
    """Add the mean effective balance of the *validators*, in gwei, at the latest balances known."""
    if balances is None:
        return by_epoch.with_columns(stake=pl.lit(_DEFAULT_STAKE, pl.Float64))
    columns = ["validator_index", "time", "effective_balance_gwei"]
    rows = series.read_rows(balances, columns, loader="load_balance_history")
    rows = rows.join(validators, on="validator_index", how="semi")
    means = rows.group_by("time").agg(stake=pl.mean("effective_balance_gwei")).sort("time")
    joined = by_epoch.join_asof(means, on="time", check_sortedness=False, coalesce=True)
    return joined.with_columns(pl.col("stake").backward_fill())
