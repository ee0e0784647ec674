"""Gas fee tiers, to be drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.charts import series
from beaconframes.charts.drawing import Axis, Bars, Drawing, Line
from beaconframes.charts.series import Unit
from beaconframes.frames import choose

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

# Fastest first, with how long one waits for the next block that takes it.
_TIERS = {
    "rapid_wei": ("Rapid", "15 seconds", colours.RED),
    "fast_wei": ("Fast", "1 minute", colours.AMBER),
    "standard_wei": ("Standard", "3 minutes", colours.BLUE),
    "slow_wei": ("Slow", "10 minutes", colours.SLATE),
}
_DOTTED = 200  # Dots of more readings than this run into each other.
_PAUSE = 3  # Times the usual time between readings: a longer one is a hole.


def gas_fees(frame: IntoFrame, *, unit: Unit = "gwei") -> Drawing:
    """Prepare the chart of ``plot.gas_fees`` and ``interactive.gas_fees``."""
    choose("unit", unit, get_args(Unit))
    rows = series.rows_of(frame, ["time"], loader="load_gas_fees", also=list(_TIERS))
    rows = rows.filter(pl.any_horizontal(pl.col(list(_TIERS)).is_not_null())).unique("time")
    rows = rows.sort("time")
    y = Axis(f"Price of gas ({series.UNIT_NAMES[unit]} per unit of gas)")
    if rows.is_empty():
        lacking = series.lacking(frame, "no reading that has a time and a fee")
        axis = Axis("Reading (UTC)", "slot")
        return Drawing(axis, y, nothing=f"No gas fees to draw: {lacking}")
    if rows.height == 1:
        return _reading(rows, unit, y)
    times = series.moments(rows["time"])
    pauses = np.diff(times)
    gaps = pauses > _PAUSE * np.median(pauses)
    lines = []
    for tier, (name, wait, colour) in _TIERS.items():
        curve = series.broken(times, series.heights(rows[tier], unit), gaps)
        label = f"{name} (about {wait})"
        dotted = rows.height <= _DOTTED
        lines.append(Line(*curve, label, colour, marked=dotted, main=True))
    legend = tuple(line.name for line in lines)
    return Drawing(Axis("Reading (UTC)", "slot", times), y, tuple(lines), legend=legend)


def _reading(rows: pl.DataFrame, unit: Unit, y: Axis) -> Drawing:
    """Draw a single reading as bars, fastest first."""
    names = tuple(f"{name}\nabout {wait}" for name, wait, _ in _TIERS.values())
    bars = tuple(
        Bars(np.array([rank]), series.heights(rows[tier], unit), colour=colour, width=0.6)
        for rank, (tier, (_, _, colour)) in enumerate(_TIERS.items())
    )
    when = f"{series.day_name(rows['time'][0])}, {rows['time'][0]:%H:%M} UTC"
    return Drawing(Axis(f"Wait until included: one reading, {when}", names=names), y, bars)
