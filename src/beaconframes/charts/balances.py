"""Chart of balances over time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

import polars as pl

from beaconframes import colours
from beaconframes.analysis.engines import check_distinct
from beaconframes.charts import series, validator_lines
from beaconframes.charts.model import Axis, Chart, Line
from beaconframes.charts.series import Unit
from beaconframes.frames import check_choice

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

By = Literal["total", "validator"]
Show = Literal["difference", "balance"]

_COLUMNS = ["validator_index", "epoch", "time", "balance_gwei", "effective_balance_gwei"]
_MOST = 0.9
_BALANCE, _EFFECTIVE = pl.col("balance_gwei"), pl.col("effective_balance_gwei")
_DIFFERENCE = (_BALANCE - _EFFECTIVE).alias("difference_gwei")


def balances(
    frame: IntoFrame,
    *,
    unit: Unit | None = None,
    by: By = "validator",
    show: Show = "difference",
) -> Chart:
    """Draw balances by epoch, as the difference to the effective balance: per validator, or in sum.

    *frame* is the result of ``bf.load_balance_history(...)``. The difference is what a validator
    has earned since its last withdrawal, or since its effective balance changed. With *show*
    ``"balance"``, balances are drawn; that of a single validator beside its effective balance.

    Up to ten validators have a coloured line each; up to 50 are drawn in grey with their median. Of
    more, the median, the band of 80 % of them, and the extremes are drawn. With *by* ``"total"``,
    balances are summed exactly. Lines stop where epochs are missing.

    *unit* is that of the axis; by default ETH, or gwei for differences below 0.001 ETH.

    *kwargs* go to the ``Axes.plot`` of the balances (of many validators: of the median).
    """
    if unit is not None:
        check_choice("unit", unit, get_args(Unit))
    check_choice("by", by, get_args(By))
    check_choice("show", show, get_args(Show))
    rows = series.read_rows(frame, _COLUMNS, loader="load_balance_history")
    check_distinct(frame, ["validator_index", "epoch"], loader="load_balance_history")
    unit = unit or _choose_unit(rows, by, show)
    x = Axis("Epoch (UTC)", "epoch", series.to_datetime64(rows["time"]))
    y = Axis(f"{_name_quantity(by, show)} ({series.UNIT_NAMES[unit]})", thousands=unit == "gwei")
    if rows.is_empty():
        reason = series.explain_empty(frame, "no row with an epoch, a time and a balance")
        return Chart(x, y, empty_note=f"No balances to draw: {reason}")
    single_note = "One epoch only" if rows["epoch"].n_unique() == 1 else None
    chart = Chart(x, y, single_note=single_note)
    if show == "difference":
        chart = replace(chart, note=_describe_effective(rows["effective_balance_gwei"]))
    if by == "total":
        return _add_totals(chart, rows, unit, show)
    if rows["validator_index"].n_unique() == 1:
        name = f"Validator {rows['validator_index'][0]}"
        return _add_lines(chart, rows.sort("epoch"), unit, show, "Balance", name)
    amounts = _DIFFERENCE if show == "difference" else _BALANCE
    drawn = rows.select(
        "validator_index",
        "time",
        number="epoch",
        y=series.convert_gwei(amounts, unit),
        complete=pl.lit(value=True),
    )
    return validator_lines.build_layers(drawn, marked=False).add_to(chart)


def _choose_unit(rows: pl.DataFrame, by: By, show: Show) -> Unit:
    """Return the unit in which most of the heights have few digits."""
    if show == "balance" or rows.is_empty():
        return "eth"
    size = rows.select(_DIFFERENCE.abs().quantile(_MOST)).item()
    count = rows["validator_index"].n_unique() if by == "total" else 1
    return series.choose_unit(size * count)


def _name_quantity(by: By, show: Show) -> str:
    """Return the start of the axis label."""
    if show == "difference":
        plural = "s" if by == "total" else ""
        return f"Balance{plural} minus effective balance{plural}"
    return "Sum of balances" if by == "total" else "Balance"


def _describe_effective(effective: pl.Series) -> str:
    ends = effective.unique().sort()
    eth = dict.fromkeys(f"{ends[i] / 1e9:,.6g}" for i in (0, -1))
    return f"effective balance {' to '.join(eth)} ETH"


def _add_totals(chart: Chart, rows: pl.DataFrame, unit: Unit, show: Show) -> Chart:
    """Add the lines of the exact sums; the legend has the number of validators."""
    amounts = pl.col("balance_gwei", "effective_balance_gwei").cast(pl.Decimal(38, 0)).sum()
    sums = rows.group_by("epoch").agg(pl.min("time"), amounts, count=pl.len()).sort("epoch")
    min_count, max_count = min(sums["count"]), max(sums["count"])
    count = f"{max_count:,}" if min_count == max_count else f"{min_count:,} to {max_count:,}"
    name = f"Balance\nof {count} validator{'' if max_count == 1 else 's'}"
    return _add_lines(chart, sums, unit, show, name, None)


def _add_lines(
    chart: Chart, rows: pl.DataFrame, unit: Unit, show: Show, name: str, title: str | None
) -> Chart:
    """Add the line of the differences; or of the balances, with the effective balance."""
    if show == "difference":
        line = _build_line(rows.with_columns(_DIFFERENCE), "difference_gwei", name, unit)
        return replace(chart, layers=(line,))
    lines = (
        _build_line(rows, "balance_gwei", name, unit),
        _build_line(rows, "effective_balance_gwei", "Effective balance", unit),
    )
    return replace(
        chart, layers=lines, legend=tuple(line.name for line in lines), legend_title=title
    )


def _build_line(rows: pl.DataFrame, column: str, name: str, unit: Unit) -> Line:
    heights = rows.select(series.convert_gwei(pl.col(column), unit)).to_series()
    curve = series.build_curve(rows["epoch"], rows["time"], series.to_floats(heights))
    if column == "effective_balance_gwei":
        return Line(*curve, name, colours.SLATE, 1, dashed=True)
    return Line(*curve, name, colours.BLUE, 1.2, takes_kwargs=True)
