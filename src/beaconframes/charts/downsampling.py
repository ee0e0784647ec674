"""Fewer points for long lines and areas, which keep their extremes and their gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from beaconframes.charts.series import to_floats

if TYPE_CHECKING:
    from beaconframes.charts.model import Floats, Positions


def thin_line(x: Positions, y: Floats, most: int) -> tuple[Positions, Floats, int]:
    """Thin a line to about *most* points: the lowest and the highest of each group of neighbours.

    Returns the group size. Gaps as long as a group are kept. Several lines, between which time goes
    back, are never mixed.
    """
    each = -(-2 * len(x) // most) if len(x) > most else 1
    if each == 1:
        return x, y, 1
    lowest, highest = pl.col("y").arg_min().fill_null(0), pl.col("y").arg_max().fill_null(0)
    extremes = (
        _group_neighbours(x, y, each)
        .with_columns(y=pl.Series(y).fill_nan(None))
        .group_by("line", "gap", "group")
        .agg(low=pl.col("row").get(lowest), high=pl.col("row").get(highest))
    )
    at = np.unique(np.concatenate((extremes["low"], extremes["high"])))
    return x[at], y[at], each


def thin_area(
    x: Positions, low: Floats, high: Floats, most: int
) -> tuple[Positions, Floats, Floats, int]:
    """Thin an area to about *most* points: each spans the lowest to the highest of its neighbours.

    Returns the group size.
    """
    each = -(-len(x) // most)
    if each <= 1:
        return x, low, high, 1
    extremes = (
        _group_neighbours(x, high, each)
        .with_columns(
            low=pl.Series(np.fmin(low, high)).fill_nan(None),
            high=pl.Series(np.fmax(low, high)).fill_nan(None),
        )
        .group_by("line", "gap", "group")
        .agg(pl.first("row"), pl.min("low"), pl.max("high"))
        .sort("row")
    )
    return (
        x[extremes["row"].to_numpy()],
        to_floats(extremes["low"]),
        to_floats(extremes["high"]),
        each,
    )


def _group_neighbours(x: Positions, y: Floats, each: int) -> pl.DataFrame:
    """Return the line and the group of every point. One row per point."""
    build_steps = np.diff(x)
    typical = np.median(build_steps[build_steps > np.zeros(1, build_steps.dtype)])
    # The gap before another line, or one longer than a group, is a group of its own.
    long = (build_steps >= each * typical) & np.isnan(y[1:])
    gap = np.concatenate(([False], (x[1:] < x[:-1]) | long))
    row = np.arange(len(x))
    return pl.DataFrame({"row": row, "line": np.cumsum(gap), "gap": gap, "group": row // each})
