"""Figure, axes, legend and texts of a chart in matplotlib."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib import dates
from matplotlib import pyplot as plt
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from beaconframes import colours
from beaconframes.errors import UsageError
from beaconframes.plot.layers import draw_layer
from beaconframes.plot.style import style

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

    from beaconframes.charts.model import Axis, Chart

_AROUND = {
    "slot": np.timedelta64(1, "m"),
    "epoch": np.timedelta64(20, "m"),
    "day": np.timedelta64(36, "h"),
    "week": np.timedelta64(11, "D"),
    "month": np.timedelta64(45, "D"),
}


_REMEDIES = {
    "title": "Set it on the result: .set_title(...)",
    "figsize": "Draw on Axes of this size: ax=plt.subplots(figsize=...)[1]",
    "xlabel": "Set it on the result: .set_xlabel(...)",
    "ylabel": "Set it on the result: .set_ylabel(...)",
    "xlim": "Set it on the result: .set_xlim(...)",
    "ylim": "Set it on the result: .set_ylim(...)",
}
"""What to use instead of arguments that users expect from other libraries."""


def draw_chart(chart: Chart, ax: Axes | None, kwargs: dict[str, Any]) -> Axes:
    """Draw on *ax*, or on new Axes in our style; *kwargs* go to the layers that take them."""
    with open_axes(ax, kwargs, len(chart.y.tick_labels)) as axes:
        for layer in chart.layers:
            draw_layer(axes, layer, chart.legend, kwargs)
        if chart.empty_note:
            _write_note(axes, chart.empty_note)
            if not axes.has_data():
                # Ticks without data are misleading.
                axes.set_xticks([])
                axes.set_yticks([])
        if chart.single_note:
            # Below the middle, where the single point is.
            _write_note(axes, chart.single_note, y=0.4)
        if chart.corner_note:
            _write_corner_note(axes, chart.corner_note)
        _set_x_axis(axes, chart.x)
        _set_y_axis(axes, chart.y)
        if chart.legend:
            _add_legend(axes, chart)
    return axes


@contextmanager
def open_axes(ax: Axes | None, kwargs: dict[str, Any], rows: int = 0) -> Iterator[Axes]:
    """Yield the Axes to draw on: those of the caller, unchanged, or new ones in our style.

    A new figure belongs to pyplot, because a notebook shows only such figures. Its height has room
    for *rows* tick labels. Raises UsageError for *kwargs* that matplotlib does not accept.
    """
    for name in kwargs:
        if name in _REMEDIES:
            raise UsageError(f"charts have no argument {name}=", hint=_REMEDIES[name])
    try:
        with _open_styled_axes(ax, rows) as axes:
            yield axes
    except AttributeError as error:
        # matplotlib names an unknown argument in such an error.
        if unknown := next((name for name in kwargs if f"'{name}'" in str(error)), None):
            raise UsageError(
                f"charts have no argument {unknown}=, and matplotlib refuses it",
                hint="The documentation of the chart has its arguments",
            ) from None
        raise


@contextmanager
def _open_styled_axes(ax: Axes | None, rows: int) -> Iterator[Axes]:
    """Yield *ax*, or new Axes in our style; close a new figure if drawing fails."""
    if ax is not None:
        yield ax
        return
    with style():
        width, height = mpl.rcParams["figure.figsize"]
        size = (width, max(height, 0.17 * rows + 0.8))
        figure, ax = plt.subplots(figsize=size, layout="constrained")
        # Ticks are created when first drawn, outside of this block: set their style now.
        now = mpl.rcParams
        grid = {"grid_color": now["grid.color"], "grid_linewidth": now["grid.linewidth"]}
        ax.tick_params(
            axis="x",
            color=now["xtick.color"],
            labelcolor=now["xtick.labelcolor"],
            labelsize=now["xtick.labelsize"],
            length=now["xtick.major.size"],
            **grid,
        )
        ax.tick_params(
            axis="y",
            color=now["ytick.color"],
            labelcolor=now["ytick.labelcolor"],
            labelsize=now["ytick.labelsize"],
            length=now["ytick.major.size"],
            **grid,
        )
        try:
            yield ax
        except BaseException:
            plt.close(figure)
            raise


def _set_x_axis(ax: Axes, axis: Axis) -> None:
    """Set label and ticks of the horizontal axis."""
    # The label is at the left, because the ticks' year or date is at the right.
    ax.set_xlabel(axis.label, loc="left" if axis.time_unit else "center")
    if axis.time_unit and axis.times is not None and len(axis.times):
        _set_time_ticks(ax, axis.times, axis.time_unit)
    if axis.tick_labels:
        slanted: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        many = sum(max(map(len, name.split("\n"))) for name in axis.tick_labels) > 70
        ax.set_xticks(range(len(axis.tick_labels)), axis.tick_labels, **slanted if many else {})
    if axis.zero_line:
        ax.axvline(0, color=colours.SLATE, linewidth=0.8)
    if axis.thousands:
        ax.xaxis.set_major_formatter("{x:,.0f}")


def _set_y_axis(ax: Axes, axis: Axis) -> None:
    """Set label and ticks of the vertical axis."""
    ax.set_ylabel(f"{axis.label}\n{axis.note}" if axis.note else axis.label)
    if axis.tick_labels:
        ax.set_yticks(range(len(axis.tick_labels)), axis.tick_labels)
        ax.set_ylim(-0.6, len(axis.tick_labels) - 0.4)
    if axis.zero_line:
        ax.axhline(0, color=colours.SLATE, linewidth=0.8)
    if axis.thousands or axis.integers:
        ax.yaxis.set_major_formatter("{x:,.0f}" if axis.thousands else "{x:.0f}")
    elif isinstance(formatter := ax.yaxis.get_major_formatter(), ScalarFormatter):
        # Show whole balances, not their offsets from 32.
        formatter.set_useOffset(False)
    if axis.integers:
        ax.yaxis.set_major_locator(MaxNLocator(nbins="auto", integer=True))
    if axis.maximum is not None:
        ax.set_ylim(top=min(ax.get_ylim()[1], axis.maximum))
    if axis.reverse and not ax.yaxis_inverted():
        ax.invert_yaxis()


def _set_time_ticks(ax: Axes, times: Any, every: str) -> None:
    """Set UTC ticks for *times*, none finer than *every*."""
    buckets = len(np.unique(times))
    if buckets == 1:
        # matplotlib would show years around a single moment.
        ax.set_xlim(times[0] - _AROUND[every], times[0] + _AROUND[every])
    locator: dates.DateLocator
    span = (times.max() - times.min()) // np.timedelta64(1, "D")
    if every == "week" and span < 16 * 7:
        # Weeks without a bar count, too: the axis shows them.
        every_nth = -(-(span // 7 + 1) // 8)
        locator = dates.WeekdayLocator(dates.MO, every_nth, "UTC")  # type: ignore[no-untyped-call]
    elif every == "month" and span < 8 * 30:
        locator = dates.MonthLocator(tz="UTC")  # type: ignore[no-untyped-call]
    elif every == "day" and span < 8:
        locator = dates.DayLocator(tz="UTC")  # type: ignore[no-untyped-call]
    else:
        # As many ticks as there are buckets: with more, months would be divided into days.
        fewest = min(buckets, 3) if every in {"day", "week", "month"} else 3
        locator = dates.AutoDateLocator("UTC", fewest, 8)  # type: ignore[no-untyped-call]
    formatter = dates.ConciseDateFormatter(locator, "UTC")  # type: ignore[no-untyped-call]
    formatter.formats[2] = formatter.zero_formats[2] = "%b %d"
    formatter.offset_formats[2] = "%Y"
    formatter.zero_formats[3] = "%b %d"
    formatter.offset_formats[3:] = ["%b %d, %Y"] * 3
    formatter.formats[5], formatter.zero_formats[5] = ":%S", "%H:%M"
    formatter.offset_formats[5] = "%b %d, %Y %H:%M"
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(formatter)


def _add_legend(ax: Axes, chart: Chart) -> None:
    """Add the legend outside of the data."""
    handles, names = ax.get_legend_handles_labels()
    # Artists that were on the caller's Axes before follow our own.
    order = [*chart.legend, *names]
    chosen = [handles[i] for i in sorted(range(len(names)), key=lambda i: order.index(names[i]))]
    figure = ax.get_figure(root=True)
    if figure is not None and figure.get_layout_engine() is None:
        # Without a layout engine there is room only above the axes.
        place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 3}
    else:
        place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1)}
    title = chart.legend_title
    drawn = ax.legend(handles=chosen, title=title, alignment="left", borderaxespad=0.1, **place)
    for handle in drawn.legend_handles:
        # Small markers need a larger one in the legend.
        if isinstance(handle, Line2D):
            handle.set_markersize(max(handle.get_markersize(), 4))
        # The swatch is that of the first bar, which may be hatched.
        if isinstance(handle, Patch):
            handle.set_hatch("")


def _write_note(ax: Axes, text: str, *, y: float = 0.5) -> None:
    """Write *text* in the middle of the axes."""
    box = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "alpha": 0.85}
    ax.text(0.5, y, text, transform=ax.transAxes, ha="center", va="center", bbox=box)


def _write_corner_note(ax: Axes, text: str) -> None:
    """Write *text* in the lower left corner."""
    box = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "alpha": 0.85}
    ax.text(0.03, 0.05, text, transform=ax.transAxes, va="bottom", bbox=box)
