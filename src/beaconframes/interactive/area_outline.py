"""Outlines of areas, so that plotly fills each interval and nothing between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from beaconframes.charts.model import Floats, Positions


def build_outline(
    x: Positions, low: Floats, high: Floats, own: Floats, *, steps: bool
) -> tuple[Positions, Floats, Floats]:
    """Build the outline of every interval: forward above, back below; a gap separates intervals.

    Returns its positions, its heights, and the amount for the hover text at each point. With
    *steps*, each height is valid until the next position.
    """
    parts = []
    intervals = np.ma.clump_unmasked(np.ma.masked_invalid(high + low))  # type: ignore[no-untyped-call]
    for interval in intervals:
        places, above, below, amounts = x[interval], high[interval], low[interval], own[interval]
        if steps:
            places = np.repeat(places, 2)[1:]
            above, below, amounts = (np.repeat(y, 2)[:-1] for y in (above, below, amounts))
        parts.append(
            (
                np.concatenate((places, places[::-1], places[:1])),
                np.concatenate((above, below[::-1], [np.nan])),
                np.concatenate((amounts, amounts[::-1], [np.nan])),
            )
        )
    around, heights, amounts = (np.concatenate(some) for some in zip(*parts, strict=True))
    return around, heights, amounts


def format_rgba(colour: str, opacity: float) -> str:
    """Format a colour with an opacity."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"
