"""Chart of balances over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import polars as pl

from beaconframes import colours
from beaconframes.charts import series, validator_lines
from beaconframes.charts.caption import captioned
from beaconframes.charts.model import Axis, Chart, Line
from beaconframes.charts.series import Unit
from beaconframes.frames import check_choice

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

By = Literal["total", "validator"]

_COLUMNS = ["validator_index", "epoch", "time", "balance_gwei", "effective_balance_gwei"]


@captioned
def balances(frame: IntoFrame, *, unit: Unit = "eth", by: By = "validator") -> Chart:
    """Build the lines of balances by epoch: in total, or by validator."""
    check_choice("unit", unit, get_args(Unit))
    check_choice("by", by, get_args(By))
    rows = series.read_rows(frame, _COLUMNS, loader="load_balance_history")
    x = Axis("Epoch (UTC)", "epoch", series.to_datetime64(rows["time"]))
    quantity = "Sum of balances" if by == "total" else "Balance"
    y = Axis(f"{quantity} ({series.UNIT_NAMES[unit]})", thousands=unit == "gwei")
    if rows.is_empty():
        reason = series.explain_empty(frame, "no row with an epoch, a time and a balance")
        return Chart(x, y, empty_note=f"No balances to draw: {reason}")
    single_note = "One epoch only" if rows["epoch"].n_unique() == 1 else None
    if by == "total":
        lines, title = _build_totals(rows, unit), None
    elif rows["validator_index"].n_unique() == 1:
        rows, title = rows.sort("epoch"), f"Validator {rows['validator_index'][0]}"
        lines = [
            _build_line(rows, "balance_gwei", "Balance", unit),
            _build_line(rows, "effective_balance_gwei", "Effective balance", unit),
        ]
    else:
        drawn = rows.with_columns(
            number="epoch",
            y=pl.Series(series.convert_amounts(rows["balance_gwei"], unit)),
            complete=True,
        )
        lines, title = validator_lines.build_lines(drawn, marked=False)
    names = tuple(line.name for line in lines)
    return Chart(x, y, tuple(lines), single_note=single_note, legend=names, legend_title=title)


def _build_totals(rows: pl.DataFrame, unit: Unit) -> list[Line]:
    """Build the lines of the exact sums; the legend has the number of validators."""
    amounts = pl.col("balance_gwei", "effective_balance_gwei").cast(pl.Decimal(38, 0)).sum()
    sums = rows.group_by("epoch").agg(pl.min("time"), amounts, count=pl.len()).sort("epoch")
    min_count, max_count = min(sums["count"]), max(sums["count"])
    count = f"{max_count:,}" if min_count == max_count else f"{min_count:,} to {max_count:,}"
    of_validators = f"of {count} validator{'' if max_count == 1 else 's'}"
    return [
        _build_line(sums, "balance_gwei", f"Balance\n{of_validators}", unit),
        _build_line(sums, "effective_balance_gwei", "Effective balance", unit),
    ]


def _build_line(rows: pl.DataFrame, column: str, name: str, unit: Unit) -> Line:
    curve = series.build_curve(
        rows["epoch"], rows["time"], series.convert_amounts(rows[column], unit)
    )
    takes_kwargs = column == "balance_gwei"
    colour = colours.BLUE if takes_kwargs else colours.SLATE
    return Line(
        *curve,
        name,
        colour,
        1.2 if takes_kwargs else 1,
        dashed=not takes_kwargs,
        takes_kwargs=takes_kwargs,
    )
