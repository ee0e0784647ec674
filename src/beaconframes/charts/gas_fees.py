"""Chart of gas fee tiers."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.charts import series
from beaconframes.charts.model import Axis, Bars, Chart, Line
from beaconframes.charts.series import Unit
from beaconframes.frames import check_choice

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

# Fastest first, with the expected time until inclusion. They are one quantity: shades of one hue.
_TIERS = {
    "rapid_wei": ("Rapid", "15 s", colours.BLUES[0]),
    "fast_wei": ("Fast", "1 min", colours.BLUES[1]),
    "standard_wei": ("Standard", "3 min", colours.BLUES[2]),
    "slow_wei": ("Slow", "10 min", colours.BLUES[3]),
}
_MAX_MARKERS = 200  # Markers of more readings than this overlap.
_GAP = 3  # A pause of more than three times the usual pause is a gap in the line.


def gas_fees(frame: IntoFrame, *, unit: Unit = "gwei") -> Chart:
    """Draw the price of gas for each tier: bars for one reading, lines for several.

    *frame* is the result of ``bf.load_gas_fees()``, or several results concatenated. Lines
    stop where the pause between readings is more than three times the usual pause.

    *kwargs* go to ``Axes.bar`` (one reading) or ``Axes.plot`` (several).
    """
    check_choice("unit", unit, get_args(Unit))
    rows = series.read_rows(frame, ["time"], loader="load_gas_fees", also=list(_TIERS))
    rows = rows.filter(pl.any_horizontal(pl.col(list(_TIERS)).is_not_null())).unique("time")
    rows = rows.sort("time")
    y = Axis(f"Gas price ({series.UNIT_NAMES[unit]})")
    if rows.is_empty():
        reason = series.explain_empty(frame, "no reading with a time and a fee")
        axis = Axis("Reading (UTC)", "slot")
        return Chart(axis, y, empty_note=f"No gas fees to draw: {reason}")
    if rows.height == 1:
        return _build_single_reading(rows, unit, y)
    times = series.to_datetime64(rows["time"])
    pauses = np.diff(times)
    gaps = pauses > _GAP * np.median(pauses)
    lines = []
    for tier, (name, wait, colour) in _TIERS.items():
        curve = series.insert_gaps(times, series.convert_amounts(rows[tier], unit), gaps)
        label = f"{name} (about {wait})"
        dotted = rows.height <= _MAX_MARKERS
        lines.append(Line(*curve, label, colour, marked=dotted, takes_kwargs=True))
    legend = tuple(line.name for line in lines)
    return Chart(Axis("Reading (UTC)", "slot", times), y, tuple(lines), legend=legend)


def _build_single_reading(rows: pl.DataFrame, unit: Unit, y: Axis) -> Chart:
    names = tuple(f"{name}\n{wait}" for name, wait, _ in _TIERS.values())
    bars = []
    for rank, (tier, (name, wait, colour)) in enumerate(_TIERS.items()):
        price = series.convert_amounts(rows[tier], unit)
        is_known = np.isfinite(price[0])
        shown = f"{price[0]:.6g} {series.UNIT_NAMES[unit]}" if is_known else "unknown"
        text = f"{name}, about {wait}: {shown}"
        bars.append(Bars(np.array([rank]), price, colour=colour, width=0.6, texts=(text,)))
    when = f"One reading: {series.format_day(rows['time'][0])}, {rows['time'][0]:%H:%M} UTC"
    return Chart(
        Axis("About how long until included", tick_labels=names), y, tuple(bars), note=when
    )
