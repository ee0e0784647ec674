"""Chart of the number of proposals by day and outcome."""

from __future__ import annotations

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.charts import series
from beaconframes.charts.model import Axis, Bars, Chart

_OUTCOMES = {"proposed": colours.BLUE, "missed": colours.RED, "orphaned": colours.AMBER}


def build_outcomes_chart(proposals: pl.DataFrame, tz: str = "UTC") -> Chart:
    """Build stacked bars of the number of proposals, from rows with ``time`` and ``status``.

    Days are those of the time zone *tz*.
    """
    status = pl.col("status")
    counts = (
        proposals.group_by(date=pl.col("time").dt.convert_time_zone(tz).dt.date())
        .agg((status == name).sum().alias(name) for name in _OUTCOMES)
        .sort("date")
    )
    times = series.read_dates(counts)
    base, layers = np.zeros(counts.height), []
    for name, colour in _OUTCOMES.items():
        height = series.to_floats(counts[name])
        if height.any():
            width = np.full(len(times), series.DAY_BAR)
            layers.append(Bars(times, height, name.capitalize(), colour, base, width))
            base = base + height
    legend = tuple(str(layer.name) for layer in layers)
    axes = Axis("Day", "day", times), Axis("Proposals", integers=True)
    return Chart(*axes, tuple(layers), legend=legend)
