"""The model of a chart, independent of the plotting library: layers, two axes, and texts.

``plot`` and ``interactive`` draw the same `Chart`, so both show the same. Times are ``datetime64``
in UTC without a zone, heights are floats in the unit of the axis, and a gap is not-a-number.
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
    """Times, numbers, or the ranks of the tick labels."""


@dataclass(frozen=True, eq=False)
class Line:
    """A line that stops at gaps; *marked* puts a marker on every point."""

    x: Positions
    y: Floats
    name: str
    colour: str | None = None
    """Default: the next colour of `colours.CYCLE`."""
    width: float = 1.6
    opacity: float = 1
    dashed: bool = False
    marked: bool = False
    hollow: Flags | None = None
    """For a marked line: which markers are hollow."""
    takes_kwargs: bool = False
    """Whether the keyword arguments of the chart go to this layer."""

    @property
    def has_hollow_markers(self) -> bool:
        """Return whether a marker is hollow."""
        return self.hollow is not None and bool(self.hollow.any())


@dataclass(frozen=True, eq=False)
class Points:
    """Points of one kind; with *strip*, *y* is a share of the height, outside of the data.

    *validators* are the indices for the hover text, where no axis shows them.
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
    texts: tuple[str, ...] = ()
    """The whole hover texts, instead of position and height."""


@dataclass(frozen=True, eq=False)
class Bars:
    """Bars at their positions, vertical or *horizontal*; *incomplete* bars have missing data."""

    x: Positions
    height: Floats
    name: str | None = None
    colour: str | None = None
    base: Floats | None = None
    width: Positions | float = 0.8
    incomplete: Flags | None = None
    horizontal: bool = False
    takes_kwargs: bool = True
    labels: tuple[str, ...] = ()
    """The texts at the ends of the bars."""
    texts: tuple[str, ...] = ()
    """The whole hover texts, instead of position and height."""


@dataclass(frozen=True, eq=False)
class Area:
    """The area between *low* and *high*; with *stepped*, a height is valid until the next position.

    *hover_amounts* are the amounts for the hover text, where an area lies behind others.
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
    """A dashed horizontal or *vertical* line across the chart."""

    y: float
    name: str
    vertical: bool = False


@dataclass(frozen=True, eq=False)
class Heatmap:
    """A map of cells: a row for each of *rows*, and columns of the length *step* from *start*.

    Each cell is one of *kinds* (name and colour; 0 is empty, the first kind is 1), or a number of
    *quantity*: where several cells are merged into one, a share from 0 to 100 %. Merged cells that
    have a kind have their share in *percent*.
    """

    start: np.datetime64
    step: np.timedelta64
    rows: list[str]
    cells: NDArray[Any]
    kinds: tuple[tuple[str, str], ...] = ()
    quantity: str | None = None
    """The name of the numbers, with their unit."""
    percent: Floats | None = None
    limits: tuple[float, float] | None = None
    """The ends of the colour scale of numbers that are not shares."""
    texts: NDArray[np.str_] | None = None
    """The whole hover texts of the cells."""
    has_validators: bool = True
    """Whether the rows are validators, which the hover text then names."""
    validators_per_row: int = 1
    """The number of validators that share a row, which has the name of the first."""


Layer: TypeAlias = Line | Points | Bars | Area | ReferenceLine | Heatmap


@dataclass(frozen=True)
class Axis:
    """The label, range and ticks of one axis."""

    label: str
    time_unit: str | None = None
    """For a time axis: the unit of its positions (slot, epoch, day, week, month)."""
    times: Positions | None = None
    """For a time axis: the times drawn."""
    tick_labels: tuple[str, ...] = ()
    """For a categorical axis: the labels, from rank 0."""
    maximum: float | None = None
    """Upper limit of the axis."""
    minimum: float | None = None
    """Lower limit of the axis."""
    include: tuple[float, ...] = ()
    """Values that the range of the axis has, also if nothing is drawn there."""
    logarithmic: bool = False
    zero_line: bool = False
    """Whether a line marks zero."""
    thousands: bool = False
    """Whether tick labels have thousands separators and no decimals."""
    integers: bool = False
    """Whether the numbers are indices, with a tick label only at whole numbers."""
    reverse: bool = False
    """Whether the first position is at the top."""

    @property
    def unit(self) -> str:
        """Return the unit at the end of the label."""
        unit = self.label.rpartition("(")[2].removesuffix(")") if self.label.endswith(")") else ""
        return unit.rpartition(", ")[2]


@dataclass(frozen=True)
class Chart:
    """A chart: its layers from back to front, its axes, and its texts."""

    x: Axis
    y: Axis
    layers: tuple[Layer, ...] = ()
    empty_note: str | None = None
    """Text of an empty chart: the reason."""
    single_note: str | None = None
    """Text of a chart with a single point."""
    corner_note: str | None = None
    """Text in the lower left corner."""
    legend: tuple[str, ...] = ()
    """The names in the legend, in order; also those of the second panel."""
    legend_title: str | None = None
    validators: int | None = None
    """For the caption: the number of validators."""
    days: Positions | None = None
    """For the caption: the days drawn, if the axis has their weeks."""
    note: str = ""
    """For the caption: what the heights leave out."""
    finding: str = ""
    """What the validators did, for ``title="auto"``: the end of a sentence."""
    is_simulated: bool = False
    """For the caption: whether a frame of the chart has simulated data."""
    panel: Chart | None = None
    """A second panel below, with its own vertical axis and the same horizontal one."""
    panel_share: float = 0.3
    """The share of the height for the second panel."""
