"""Colours of charts by name; the same kind of data has the same colour in all charts.

A chart names the colours for white paper. On a dark background, its `Theme` replaces those that
have too little contrast there.

Each has a contrast of at least 3 on its background. Lines differ by at least 7 % of the distance
of black and white in Oklab, also for readers with protanopia, deuteranopia or tritanopia.
Both styles, ``plot/beaconframes.mplstyle`` and ``interactive/style.py``, have them in this order.
"""

from __future__ import annotations

from dataclasses import dataclass

BLUE = "#3f90da"
AMBER = "#b78d19"
RED = "#bd1f01"
GREY = "#8d8f88"
PURPLE = "#832db6"
BROWN = "#573222"
ORANGE = "#bf5f19"
GREEN = "#418b53"
SLATE = "#717581"
CYAN = "#0a637b"

BLUES = ("#092a57", "#154d8c", "#2572be", "#5198d8")
"""Shades of one hue, for ordered kinds of one quantity."""

TEAL = "#399aa0"
"""An area with markers on it: it has a contrast of 3 on paper, and `INK` has 3 on it."""

CYCLE = (BLUE, AMBER, RED, GREY, PURPLE, BROWN, ORANGE, GREEN, SLATE, CYAN)

INK = "#1f2937"
RULE = "#6b7280"
GRID = "#e5e7eb"
PAPER = "#ffffff"

SHARES = "cividis"
"""Colour scale of shares: perceptually uniform, and available in both libraries."""

_ON_DARK = {
    AMBER: "#ffa90e",
    RED: "#df0d07",
    GREY: "#8b8b8c",
    PURPLE: "#8641f0",
    BROWN: "#8a6458",
    ORANGE: "#e87637",
    GREEN: "#c4f0a2",
    SLATE: "#99aebe",
    CYAN: "#92dadd",
    INK: "#e5e7eb",
    RULE: "#9ca3af",
    GRID: "#3b4252",
    TEAL: "#2f8288",
    # The fastest stands out most on any background.
    BLUES[0]: "#b9d6f3",
    BLUES[1]: "#7db4ec",
    BLUES[2]: "#4a8fd6",
    BLUES[3]: "#3a73b0",
}
"""The colours on a dark background. The others have a contrast of at least 3 there."""


@dataclass(frozen=True)
class Theme:
    """The background of a chart, and the colours that are readable on it."""

    paper: str = PAPER

    @property
    def is_dark(self) -> bool:
        """Whether white is easier to read on the background than black."""
        return compute_luminance(self.paper) < 0.18

    @property
    def cycle(self) -> tuple[str, ...]:
        """The colours of lines, in order."""
        return tuple(self.adapt(colour) for colour in CYCLE)

    def adapt(self, colour: str) -> str:
        """Return a colour as it is drawn on this background."""
        if colour == PAPER:
            return self.paper
        return _ON_DARK.get(colour, colour) if self.is_dark else colour


def compute_luminance(colour: str) -> float:
    """Return the relative luminance of a colour such as ``"#3f90da"``, as WCAG 2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
