"""Lines of validators: a coloured line each, all in grey with their median, or quantile bands."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.charts import series
from beaconframes.charts.model import Area, Layer, Line, Points

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from beaconframes.charts.model import Chart

MAX_LINES = 50
"""More lines than this cover each other."""

_MOST_TIMES = 8  # Extremes that span more than this times 80 % of the validators are cut off.
_WHOLE = 10_000
"""Heights from here on are named without decimals."""
_EDGE = 0.04
"""The share of the axis at each end, so that the marker of an outlier is not cut."""


class ValidatorLayers(NamedTuple):
    """The layers of validators, and their legend."""

    layers: tuple[Layer, ...]
    legend: tuple[str, ...]
    legend_title: str | None = None
    limits: tuple[float, float] | None = None
    """The limits of the axis, if the extremes are so far away that nothing else would be seen."""

    def add_to(self, chart: Chart) -> Chart:
        """Return the chart with these layers."""
        y = chart.y
        if self.limits is not None:
            y = replace(y, minimum=self.limits[0], maximum=self.limits[1])
        return replace(
            chart, y=y, layers=self.layers, legend=self.legend, legend_title=self.legend_title
        )


def build_layers(rows: pl.DataFrame, *, marked: bool) -> ValidatorLayers:
    """Build the layers of validators.

    *rows* has ``validator_index``, ``number`` (of the epoch, day, ...; a line stops where numbers
    are missing), ``time``, ``y`` and ``complete``, which is false for the hollow markers of a
    *marked* line.
    """
    count = rows["validator_index"].n_unique()
    if count > MAX_LINES:
        return _build_bands(rows, count, marked=marked)
    rows = rows.sort("validator_index", "time")
    if count <= series.MAX_NAMED:
        frames = rows.partition_by("validator_index", maintain_order=True)
        lines = [build_line(own, str(own["validator_index"][0]), marked=marked) for own in frames]
        return ValidatorLayers(tuple(lines), tuple(line.name for line in lines), "Validator")
    # One line for all validators, with a gap between one validator and the next.
    gaps = series.find_gaps(rows["number"]) | series.find_gaps(rows["validator_index"], most=0)
    x, y = series.insert_gaps(series.to_datetime64(rows["time"]), series.to_floats(rows["y"]), gaps)
    all_validators = Line(x, y, f"Each of {count:,} validators", colours.GREY, 0.6, 0.5)
    medians = rows.group_by("number").agg(_TIME, pl.median("y"), _COMPLETE).sort("number")
    median = build_line(medians, "Median", colours.BLUE, marked=marked)
    return ValidatorLayers((all_validators, median), (all_validators.name, median.name))


_TIME = pl.first("time")
# A few validators without all epochs do not change the quantiles.
_COMPLETE = (pl.mean("complete") >= 0.9).alias("complete")


def _build_bands(rows: pl.DataFrame, count: int, *, marked: bool) -> ValidatorLayers:
    """Build the median of many validators, the band of 80 % of them, and their extremes."""
    quantiles = {"lowest": 0, "low": 0.1, "y": 0.5, "high": 0.9, "highest": 1}
    by_number = (
        rows.group_by("number")
        .agg(
            _TIME,
            _COMPLETE,
            *(pl.quantile("y", share, "linear").alias(name) for name, share in quantiles.items()),
        )
        .sort("number")
    )
    median = build_line(by_number, f"Median of {count:,} validators", colours.BLUE, marked=marked)
    inner = build_band(by_number, "low", "high", "10 % to 90 % of them", 0.35)
    sides = {name: by_number[name].to_numpy() for name in ("lowest", "low", "high", "highest")}
    low, high = np.nanmin(sides["low"]), np.nanmax(sides["high"])
    lowest, highest = np.nanmin(sides["lowest"]), np.nanmax(sides["highest"])
    if 0 < _MOST_TIMES * (high - low) < highest - lowest:
        limits = series.find_limits(lowest, low, high, highest)
        outliers = tuple(_build_outliers(rows, limits))
        legend = _name_layers((median, inner, *outliers))
        room = _EDGE * (limits[1] - limits[0])
        ends = (limits[0] - room, limits[1] + room)
        return ValidatorLayers((inner, median, *outliers), legend, limits=ends)
    outer = build_band(by_number, "lowest", "highest", "Lowest to highest", 0.15)
    return ValidatorLayers((outer, inner, median), _name_layers((median, inner, outer)))


def _name_layers(layers: Iterable[Layer]) -> tuple[str, ...]:
    return tuple(str(layer.name) for layer in layers if isinstance(layer, Line | Area | Points))


def _build_outliers(rows: pl.DataFrame, limits: tuple[float, float]) -> Iterator[Points]:
    """Build markers at the edges of the axis, of the extremes that are outside of it."""
    ends = (("Lowest", rows["y"].arg_min(), -1, "v"), ("Highest", rows["y"].arg_max(), 1, "^"))
    for (name, row, sign, symbol), limit in zip(ends, limits, strict=True):
        if row is None or sign * rows["y"][row] <= sign * limit:
            continue
        validator = str(rows["validator_index"][row])
        height = rows["y"][row]
        digits = 2 + math.ceil(math.log10(abs(height) / (limits[1] - limits[0]) or 1))
        shown = f"{height:,.0f}" if abs(height) >= _WHOLE else f"{height:,.{max(4, digits)}g}"
        label = f"{name}: {shown},\nvalidator {validator}"
        time = series.to_datetime64(rows["time"][row : row + 1])
        yield Points(
            time, np.array([limit]), label, colours.RED, symbol, 7, validators=(validator,)
        )


def build_band(
    rows: pl.DataFrame, low: str, high: str, name: str, opacity: float, colour: str = colours.BLUE
) -> Area:
    """Build the area between two columns."""
    x, bottom = series.build_curve(rows["number"], rows["time"], series.to_floats(rows[low]))
    _, top = series.build_curve(rows["number"], rows["time"], series.to_floats(rows[high]))
    return Area(x, bottom, top, name, colour, opacity=opacity)


def build_line(
    rows: pl.DataFrame, name: str, colour: str | None = None, *, marked: bool = True
) -> Line:
    """Build one line, with a marker per row; the marker is hollow where the row is not complete."""
    x, y = series.build_curve(rows["number"], rows["time"], series.to_floats(rows["y"]))
    if not marked:
        return Line(x, y, name, colour, 1, takes_kwargs=True)
    incomplete = (~rows["complete"]).cast(pl.Float64).to_numpy()
    hollow = series.build_curve(rows["number"], rows["time"], incomplete)[1] > 0
    return Line(x, y, name, colour, marked=True, hollow=hollow, takes_kwargs=True)
