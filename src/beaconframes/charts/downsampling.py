"""Downsampling of long lines and areas: extremes and long gaps stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from beaconframes.charts.series import to_floats

if TYPE_CHECKING:
    from beaconframes.charts.model import Floats, Positions


def thin_line(x: Positions, y: Floats, most: int) -> tuple[Positions, Floats, int]:
    """Thin a line to about *most* points: the lowest and the highest of each group of neighbors.

    Returns the group size. Gaps as long as a group are kept. Points of several lines, between which
    time goes back, are never in one group.
    """
    group_size = -(-2 * len(x) // most) if len(x) > most else 1
    if group_size == 1:
        return x, y, 1
    lowest, highest = pl.col("y").arg_min().fill_null(0), pl.col("y").arg_max().fill_null(0)
    extremes = (
        _group_neighbors(x, y, group_size)
        .with_columns(y=pl.Series(y).fill_nan(None))
        .group_by("line", "gap", "group")
        .agg(low=pl.col("row").get(lowest), high=pl.col("row").get(highest))
    )
    positions = np.unique(np.concatenate((extremes["low"], extremes["high"])))
    return x[positions], y[positions], group_size


def thin_area(
    x: Positions, low: Floats, high: Floats, most: int
) -> tuple[Positions, Floats, Floats, int]:
    """Thin an area to about *most* points: each spans the lowest to the highest of its neighbors.

    Returns the group size.
    """
    group_size = -(-len(x) // most)
    if group_size <= 1:
        return x, low, high, 1
    extremes = (
        _group_neighbors(x, high, group_size)
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
        group_size,
    )


def _group_neighbors(x: Positions, y: Floats, group_size: int) -> pl.DataFrame:
    """Return the line and the group of every point. One row per point."""
    steps = np.diff(x)
    typical = np.median(steps[steps > np.zeros(1, steps.dtype)])
    # The gap before another line, or one longer than a group, is a group of its own.
    is_long_gap = (steps >= group_size * typical) & np.isnan(y[1:])
    is_gap = np.concatenate(([False], (x[1:] < x[:-1]) | is_long_gap))
    row = np.arange(len(x))
    return pl.DataFrame(
        {"row": row, "line": np.cumsum(is_gap), "gap": is_gap, "group": row // group_size}
    )
