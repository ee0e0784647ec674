"""Figure, axes, legend and texts of a chart in matplotlib."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib import dates
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, ScalarFormatter

from beaconframes import colours
from beaconframes.charts.alt_text import describe_chart
from beaconframes.charts.caption import list_caption_parts
from beaconframes.charts.series import (
    MARGINS,
    check_figsize,
    check_texts,
    count_times,
    format_plainly,
)
from beaconframes.errors import BeaconframesError, UsageError
from beaconframes.frames import first_line
from beaconframes.plot.alt_text import add_alt_text
from beaconframes.plot.annotations import (
    add_caption,
    add_legend,
    is_narrow,
    measure_height,
    measure_room,
    measure_width,
    read_font_size,
    wrap_text,
    write_note,
)
from beaconframes.plot.layers import draw_layer
from beaconframes.plot.style import read_theme, style

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beaconframes.charts.model import Axis, Chart

_Y_LABELS = 60
"""About how wide the labels of the vertical axis are, in points: a title is in the middle of the
rest, and constrained layouts make no room for it."""
_SET_ON_AXES = ("xlabel", "ylabel", "xlim", "ylim")
"""Arguments that users expect from other libraries."""


class NumberFormatter(ScalarFormatter):
    """Formats the numbers of ticks as text; only their power of ten is a formula.

    A formula takes several milliseconds to parse.
    """

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the text of a tick, in plotly's form: with separators of thousands."""
        text = super().__call__(x, pos).removeprefix(r"$\mathdefault{").removesuffix("}$")
        return f"{x:,.0f}" if text == f"{x:.0f}" else text


_FEWEST_TICKS = {dates.YEARLY: 4, dates.MONTHLY: 5, dates.MINUTELY: 5, dates.SECONDLY: 5}
"""For how many ticks any axis has room, by the distance between them."""


class TimeLocator(dates.AutoDateLocator):
    """Computes the ticks of a range of time once: matplotlib reads them thirty times per figure."""

    _range: tuple[float, float] | None = None
    _ticks: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Also allow few ticks on narrow axes.

        One tick per year, day, hour or minute, for ranges of less than three of them.
        """
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]
        self.intervald[dates.MONTHLY] += [12, 24]
        self.intervald[dates.HOURLY] += [24, 48]
        self.intervald[dates.MINUTELY] += [60, 120]
        self.intervald[dates.SECONDLY] += [60, 120]
        # Otherwise, such a range could have a single tick.
        for each, fewest in _FEWEST_TICKS.items():
            self.maxticks[each] = max(fewest, self.maxticks[each])

    def __call__(self) -> Any:
        """Return the ticks of the range that the axis shows."""
        assert self.axis is not None
        shown = self.axis.get_view_interval()
        if tuple(shown) != self._range:
            self._range, self._ticks = tuple(shown), super().__call__()  # type: ignore[no-untyped-call]
        return self._ticks


def draw_chart(
    chart: Chart,
    kwargs: dict[str, Any],
    *,
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    caption: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw on *ax*, or on new Axes in our style; *kwargs* go to the layers that take them."""
    check_texts(caption=caption)
    with open_axes(ax, kwargs, title, figsize, len(chart.y.tick_labels)) as axes:
        lower = _add_panel(axes, chart.panel_share, is_new=ax is None) if chart.panel else axes
        _draw_layers(axes, chart, chart.legend, kwargs)
        if chart.panel:
            _draw_layers(lower, chart.panel, chart.legend, kwargs)
        if chart.empty_note:
            write_note(axes, chart.empty_note)
            if not axes.has_data():
                # Ticks without data are misleading.
                axes.set_xticks([])
                axes.set_yticks([])
        if chart.single_note:
            # Below the middle, where the single point is.
            write_note(axes, chart.single_note, y=0.4)
        if chart.corner_note:
            write_note(axes, chart.corner_note, x=0.03, y=0.05, ha="left", va="bottom")
        _set_x_axis(lower, chart.x)
        legend = add_legend(axes, lower, chart) if chart.legend else None
        parts = list_caption_parts(chart) if caption is None else [caption]
        # Names take much of the width, numbers do not.
        wide = max(map(len, chart.y.tick_labels), default=0) > 12
        add_caption(lower, parts, legend, wide=wide)
        height = measure_height(axes, lower)
        if chart.panel:
            height *= 0.85  # There is a gap between the panels.
            _set_y_axis(lower, chart.panel.y, height * chart.panel_share)
            # The tick labels of the upper panel are those of the lower one.
            axes.tick_params(axis="x", labelbottom=False)
            axes.xaxis.get_offset_text().set_visible(False)
            height *= 1 - chart.panel_share
        _set_y_axis(axes, chart.y, height)
        add_alt_text(axes, describe_chart(chart, title))
    return axes


def _draw_layers(ax: Axes, chart: Chart, names: tuple[str, ...], kwargs: dict[str, Any]) -> None:
    """Draw the layers of one panel; *names* are those in the legend."""
    theme = read_theme(ax)
    for layer in chart.layers:
        draw_layer(ax, layer, names, kwargs, theme)


def _add_panel(ax: Axes, share: float, *, is_new: bool) -> Axes:
    """Add Axes with the same horizontal axis below *ax*, which gives up a *share* of its height."""
    figure, place = ax.figure, ax.get_subplotspec()
    if place is None:
        x0, y0, width, height = ax.get_position().bounds
        ax.set_position((x0, y0 + height * share, width, height * (1 - share)))
        lower = figure.add_axes((x0, y0, width, height * (share - 0.05)), sharex=ax)
    else:
        grid = place.subgridspec(2, 1, height_ratios=(1 - share, share), hspace=0.1)
        ax.set_subplotspec(grid[0])
        lower = figure.add_subplot(grid[1], sharex=ax)
    if is_new:
        _set_tick_style(lower)
    return lower


@contextmanager
def open_axes(
    ax: Axes | None,
    kwargs: dict[str, Any],
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    rows: int = 0,
) -> Iterator[Axes]:
    """Yield the Axes to draw on: those of the caller, unchanged, or new ones in our style.

    A new figure belongs to pyplot, because a notebook shows only such figures. Its height has room
    for *rows* tick labels. Raises UsageError for *kwargs* that matplotlib does not accept.
    """
    for name in kwargs:
        if name in _SET_ON_AXES:
            hint = f"Set it on the result: .set_{name}(...)"
            raise UsageError(f"charts have no argument {name}=", hint=hint)
    if ax is not None and not isinstance(ax, Axes):
        raise UsageError(
            f"ax= is a {type(ax).__name__}, not Axes",
            hint="Pass one of the Axes of plt.subplots(), such as axes[0].",
        )
    check_texts(title=title)
    if figsize is not None:
        figsize = check_figsize(figsize)
        if ax is not None:
            raise UsageError(
                "figsize= is the size of a new figure, but ax= is part of another figure",
                hint="Set the size of that one: plt.subplots(figsize=...).",
            )
    with _name_refused(kwargs), _open_styled_axes(ax, figsize, rows) as axes:
        if title is not None:
            # A $ is an amount of money, not the start of a formula.
            width = measure_room(axes)[0] - _Y_LABELS
            axes.set_title(wrap_text(title, width, 12), parse_math=False)
        yield axes


@contextmanager
def _name_refused(kwargs: dict[str, Any]) -> Iterator[None]:
    """Raise a `UsageError` for arguments of the chart that matplotlib refuses."""
    try:
        yield
    except BeaconframesError:
        raise
    except (AttributeError, TypeError, ValueError) as error:
        if not kwargs:
            raise
        # matplotlib names an unknown argument in such an error.
        unknown = next((name for name in kwargs if f"'{name}'" in str(error)), None)
        reason = f"this chart has no argument {unknown}=, and matplotlib refuses it"
        if unknown is None or not isinstance(error, AttributeError):
            reason = f"matplotlib refuses {', '.join(kwargs)}: {first_line(error).rstrip('.')}"
        hint = "The documentation of the chart has its arguments"
        raise UsageError(reason, hint=hint) from None


@contextmanager
def _open_styled_axes(
    ax: Axes | None, figsize: tuple[float, float] | None, rows: int
) -> Iterator[Axes]:
    """Yield *ax*, or new Axes in our style; close a new figure if drawing fails."""
    if ax is not None:
        yield ax
        return
    with style():
        width, height = mpl.rcParams["figure.figsize"]
        size = figsize or (width, max(height, 0.17 * rows + 0.8))
        figure, ax = plt.subplots(figsize=size, layout="constrained")
        _set_tick_style(ax)
        try:
            yield ax
        except BaseException:
            plt.close(figure)
            raise


def _set_tick_style(ax: Axes) -> None:
    """Set the style of ticks, which are created when first drawn, outside of our settings."""
    now: Any = mpl.rcParams
    for side, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        axis.set_tick_params(
            color=now[f"{side}tick.color"],
            labelcolor=now[f"{side}tick.labelcolor"],
            labelsize=now[f"{side}tick.labelsize"],
            length=now[f"{side}tick.major.size"],
            grid_color=now["grid.color"],
            grid_linewidth=now["grid.linewidth"],
        )


def _set_x_axis(ax: Axes, axis: Axis) -> None:
    width = measure_room(ax)[0] - _measure_sides(ax)
    # The label is at the left, because the ticks' year or date is at the right.
    label = wrap_text(axis.label, width - 110, read_font_size())
    ax.set_xlabel(label, loc="left" if axis.time_unit else "center")
    if axis.time_unit and axis.times is not None and len(axis.times):
        _set_time_ticks(ax, axis.times, axis.time_unit, most=max(3, min(8, int(width / 62))))
    if axis.tick_labels:
        slanted: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        # At the default width, there is room for 70 characters.
        many = sum(max(map(len, name.split("\n"))) for name in axis.tick_labels) > 70 / 530 * width
        ax.set_xticks(range(len(axis.tick_labels)), axis.tick_labels, **slanted if many else {})
    if axis.zero_line:
        ax.axvline(0, color=read_theme(ax).adapt(colours.SLATE), linewidth=0.8)
    if axis.thousands:
        ax.xaxis.set_major_formatter("{x:,.0f}")
    elif not axis.time_unit and type(ax.xaxis.get_major_formatter()) is ScalarFormatter:
        ax.xaxis.set_major_formatter(NumberFormatter(useOffset=False))
        # A short range of large numbers has long ones.
        low, high = ax.get_xlim()
        if high - low < abs(high) / 100:
            ax.xaxis.set_major_locator(MaxNLocator(4))


def _measure_sides(ax: Axes) -> float:
    """Return about how much room long tick labels and a colour bar take, in points."""
    # Without the ticks themselves, which are created when they are drawn.
    labels = ax.yaxis.get_major_formatter().format_ticks(list(ax.yaxis.get_majorticklocs()))
    # Numbers are short, but written as formulas.
    longest = max((len(label) for label in labels if not label.startswith("$")), default=0)
    # The bar of a narrow chart is below it.
    has_bar = any(image.colorbar is not None for image in ax.images) and not is_narrow(ax)
    return 6 * max(0, longest - 5) + 80 * has_bar


def _set_y_label(ax: Axes, text: str, height: float) -> None:
    """Set the label of the vertical axis, which has room for *height* points."""
    ax.set_ylabel(label := wrap_text(text, height, read_font_size()))
    # A panel of a small chart may have less room than the longest word, which would be cut.
    if (fitting := height / measure_width(label)) < read_font_size():
        ax.yaxis.label.set_fontsize(max(6, fitting))


def _set_y_axis(ax: Axes, axis: Axis, height: float) -> None:
    """Set label and ticks of the vertical axis, whose label has room for *height* points."""
    _set_y_label(ax, axis.label, height)
    if axis.tick_labels:
        ax.set_yticks(range(len(axis.tick_labels)), axis.tick_labels)
        ax.set_ylim(-0.6, len(axis.tick_labels) - 0.4)
    if axis.zero_line:
        ax.axhline(0, color=read_theme(ax).adapt(colours.SLATE), linewidth=0.8)
    if axis.logarithmic:
        _set_log_ticks(ax, thousands=axis.thousands)
    elif axis.thousands or axis.integers:
        ax.yaxis.set_major_formatter("{x:,.0f}" if axis.thousands else "{x:.0f}")
    elif type(ax.yaxis.get_major_formatter()) is ScalarFormatter:
        # Show whole balances, not their offsets from 32.
        ax.yaxis.set_major_formatter(NumberFormatter(useOffset=False))
    if axis.integers:
        ax.yaxis.set_major_locator(MaxNLocator(nbins="auto", integer=True))
    _set_range(ax, axis)
    if axis.reverse and not ax.yaxis_inverted():
        ax.invert_yaxis()


def _set_range(ax: Axes, axis: Axis) -> None:
    """Set the range of the vertical axis, as far as it does not follow from what is drawn."""
    if axis.maximum is not None:
        ax.set_ylim(top=min(ax.get_ylim()[1], axis.maximum))
    if axis.minimum is not None:
        ax.set_ylim(bottom=max(ax.get_ylim()[0], axis.minimum))
    if axis.include:
        ends = (*ax.get_ylim(), *axis.include)
        ax.set_ylim(min(ends), max(ends))


def _set_log_ticks(ax: Axes, *, thousands: bool) -> None:
    """Make the vertical axis logarithmic, with plain numbers at its ticks."""
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    # Less than a decade needs other numbers than 1, 2 and 5.
    locator = LogLocator(subs=(1, 2, 5)) if high > 8 * low else MaxNLocator(6)
    ax.yaxis.set_major_locator(locator)
    ax.yaxis.set_major_formatter(
        lambda x, _: f"{x:,.0f}" if thousands and x >= 1 else format_plainly(x)
    )
    ax.yaxis.set_minor_formatter(NullFormatter())


def _set_time_ticks(ax: Axes, times: Any, every: str, *, most: int) -> None:
    """Set about *most* UTC ticks or fewer for *times*, none finer than *every*."""
    buckets = count_times(times)
    if buckets == 1:
        # matplotlib would show years around a single moment.
        ax.set_xlim(times[0] - MARGINS[every], times[0] + MARGINS[every])
    locator: dates.DateLocator
    span = (times.max() - times.min()) // np.timedelta64(1, "D")
    if every == "week" and span < 16 * 7:
        # Weeks without a bar count, too: the axis shows them.
        every_nth = -(-(span // 7 + 1) // most)
        locator = dates.WeekdayLocator(dates.MO, every_nth, "UTC")  # type: ignore[no-untyped-call]
    elif every == "month" and span < most * 30:
        locator = dates.MonthLocator(tz="UTC")  # type: ignore[no-untyped-call]
    elif every == "day" and span < most:
        locator = dates.DayLocator(tz="UTC")  # type: ignore[no-untyped-call]
    else:
        # As many ticks as there are buckets: with more, months would be divided into days.
        fewest = min(buckets, 3) if every in {"day", "week", "month"} else 3
        locator = TimeLocator("UTC", fewest, most)
    formatter = dates.ConciseDateFormatter(locator, "UTC")  # type: ignore[no-untyped-call]
    formatter.formats[2] = formatter.zero_formats[2] = "%b %d"
    formatter.offset_formats[2] = "%Y"
    formatter.zero_formats[3] = "%b %d"
    formatter.offset_formats[3:] = ["%b %d, %Y"] * 3
    formatter.formats[5], formatter.zero_formats[5] = ":%S", "%H:%M"
    formatter.offset_formats[5] = "%b %d, %Y %H:%M"
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(formatter)
