"""Balances over time, to be drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import polars as pl

from beaconframes import colours
from beaconframes.charts import crowd, series
from beaconframes.charts.drawing import Axis, Drawing, Line
from beaconframes.charts.series import Unit
from beaconframes.frames import choose

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

By = Literal["total", "validator"]

_COLUMNS = ["validator_index", "epoch", "time", "balance_gwei", "effective_balance_gwei"]


def balances(frame: IntoFrame, *, unit: Unit = "eth", by: By = "validator") -> Drawing:
    """Prepare the chart of ``plot.balances`` and ``interactive.balances``."""
    choose("unit", unit, get_args(Unit))
    choose("by", by, get_args(By))
    rows = series.rows_of(frame, _COLUMNS, loader="load_balance_history")
    x = Axis("Epoch (UTC)", "epoch", series.moments(rows["time"]))
    whose = "Sum of balances" if by == "total" else "Balance"
    y = Axis(f"{whose} ({series.UNIT_NAMES[unit]})", thousands=unit == "gwei")
    if rows.is_empty():
        lacking = series.lacking(frame, "no row that has an epoch, a time and a balance")
        return Drawing(x, y, nothing=f"No balances to draw: {lacking}")
    only = "One epoch only" if rows["epoch"].n_unique() == 1 else None
    if by == "total":
        lines, title = _sums(rows, unit), None
    elif rows["validator_index"].n_unique() == 1:
        rows, title = rows.sort("epoch"), f"Validator {rows['validator_index'][0]}"
        lines = [
            _line(rows, "balance_gwei", "Balance", unit),
            _line(rows, "effective_balance_gwei", "Effective balance", unit),
        ]
    else:
        drawn = rows.with_columns(
            number="epoch",
            y=pl.Series(series.heights(rows["balance_gwei"], unit)),
            complete=True,
        )
        lines, title = crowd.lines(drawn, marked=False)
    names = tuple(line.name for line in lines)
    return Drawing(x, y, tuple(lines), only=only, legend=names, legend_title=title)


def _sums(rows: pl.DataFrame, unit: Unit) -> list[Line]:
    """Add all balances up, exactly, and tell of how many validators they are."""
    amounts = pl.col("balance_gwei", "effective_balance_gwei").cast(pl.Decimal(38, 0)).sum()
    sums = rows.group_by("epoch").agg(pl.min("time"), amounts, count=pl.len()).sort("epoch")
    least, most = min(sums["count"]), max(sums["count"])
    count = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    whose = f"of {count} validator{'' if most == 1 else 's'}"
    return [
        _line(sums, "balance_gwei", f"Balance\n{whose}", unit),
        _line(sums, "effective_balance_gwei", "Effective balance", unit),
    ]


def _line(rows: pl.DataFrame, column: str, name: str, unit: Unit) -> Line:
    curve = series.curve(rows["epoch"], rows["time"], series.heights(rows[column], unit))
    main = column == "balance_gwei"
    colour = colours.BLUE if main else colours.SLATE
    return Line(*curve, name, colour, 1.2 if main else 1, dashed=not main, main=main)
