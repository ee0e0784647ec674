"""What a chart shows, in the terms of no library: layers on two axes, and the words around them.

``plot`` and ``interactive`` draw the same `Chart`, so that both say the same. Times are
``datetime64`` in UTC without a zone, heights are floats in the unit that the axis names, and a hole
is not-a-number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Kinds: TypeAlias = tuple[tuple[str, str], ...]
    Floats: TypeAlias = NDArray[np.float64]
    Flags: TypeAlias = NDArray[np.bool_]
    Positions: TypeAlias = NDArray[Any]
    """Times, numbers, or the rank of names that the axis has."""


@dataclass(frozen=True, eq=False)
class Line:
    """A line that stops at holes; *marked* puts a dot on every point."""

    x: Positions
    y: Floats
    name: str
    colour: str | None = None
    """Left out: the next of the ten."""
    width: float = 1.6
    opacity: float = 1
    dashed: bool = False
    marked: bool = False
    hollow: Flags | None = None
    """Of a marked line: which dots are hollow."""
    takes_kwargs: bool = False
    """Whether it takes the keyword arguments of the chart."""


@dataclass(frozen=True, eq=False)
class Points:
    """Points of one kind; in the *strip* they stand in a row of their own, *y* from 0 to 1.

    *who* are the validators to tell, where no axis does.
    """

    x: Positions
    y: Floats
    name: str
    colour: str
    symbol: str = "o"
    size: float = 4
    hollow: bool = False
    strip: bool = False
    takes_kwargs: bool = False
    validators: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Bars:
    """Bars over (or, lying, beside) their places; *cut* marks those that lack data."""

    x: Positions
    height: Floats
    name: str | None = None
    colour: str | None = None
    base: Floats | None = None
    width: Positions | float = 0.8
    incomplete: Flags | None = None
    horizontal: bool = False
    takes_kwargs: bool = True


@dataclass(frozen=True, eq=False)
class Area:
    """What lies between *low* and *high*; *steps* keeps each height up to the next place.

    *own* are the amounts to tell, where an area lies behind others.
    """

    x: Positions
    low: Floats
    high: Floats
    name: str
    colour: str
    hover_amounts: Floats | None = None
    opacity: float = 1
    stepped: bool = False
    takes_kwargs: bool = False


@dataclass(frozen=True, eq=False)
class ReferenceLine:
    """A dashed line across the chart."""

    y: float
    name: str


@dataclass(frozen=True, eq=False)
class Heatmap:
    """A map of cells: a row per *rows*, columns of the length *step* from *start* on.

    Each cell is one of *kinds* (name and colour; 0 is nothing, the first kind is 1), or, where
    several are folded into one, a share from 0 to 100 % that *shares* names.
    """

    start: np.datetime64
    step: np.timedelta64
    rows: list[str]
    cells: NDArray[Any]
    kinds: tuple[tuple[str, str], ...] = ()
    shares: str | None = None


Layer: TypeAlias = Line | Points | Bars | Area | ReferenceLine | Heatmap


@dataclass(frozen=True)
class Axis:
    """What one axis says."""

    label: str
    time_unit: str | None = None
    """Of an axis of time: what stands beside each other (slot, epoch, day, week, month)."""
    times: Positions | None = None
    """Of an axis of time: the times drawn."""
    tick_labels: tuple[str, ...] = ()
    """Of an axis of names: the names, from rank 0 on."""
    maximum: float | None = None
    """What the axis does not go beyond."""
    zero_line: bool = False
    """Whether zero has a line."""
    thousands: bool = False
    """Whether numbers are whole and large."""
    integers: bool = False
    """Whether numbers are indices: never divided, never shortened."""
    reverse: bool = False
    """Whether the first stands at the top."""


@dataclass(frozen=True)
class Chart:
    """A chart: its layers from the back to the front, its axes, and what it has to say."""

    x: Axis
    y: Axis
    layers: tuple[Layer, ...] = ()
    empty_note: str | None = None
    """Why nothing is drawn."""
    single_note: str | None = None
    """That a single thing is drawn."""
    corner_note: str | None = None
    """What stands in the lower left corner, where nothing else is."""
    legend: tuple[str, ...] = ()
    """The names that the legend explains, in its order."""
    legend_title: str | None = None
