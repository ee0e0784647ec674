"""Legend, caption and notes of a chart in matplotlib."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import Bbox

from beaconframes.charts.caption import wrap_parts
from beaconframes.colours import RULE
from beaconframes.plot.style import read_theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import BboxBase

    from beaconframes.charts.model import Chart

_NARROW = 360  # In points, 5 inches: narrower charts have their legend below.
_CAPTION = "caption"
"""The identifier of the text, also in SVG files."""

_LINE = 14  # The height of a line of text, in points.
_CHARACTER = 0.56  # The mean width of a character, as a share of the font size.
_MOST_IN_A_COLUMN = 3  # Labels of a legend below a chart.
_MOST_POINTS = 20_000  # With more, matplotlib needs long to find the best place of a legend.


class _LegendBelow(Legend):
    """A legend below the label of the horizontal axis, wherever the tick labels push it."""

    def get_bbox_to_anchor(self) -> BboxBase:
        """Return the point to which the upper left corner is attached, in pixels."""
        ax: Any = self.axes
        label = ax.xaxis.label.get_window_extent()
        return Bbox.from_bounds(ax.yaxis.label.get_window_extent().x0, label.y0, 0, 0)


def measure_room(ax: Axes) -> tuple[float, float]:
    """Return the width and height of *ax* with its labels, in points, before the layout."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    place = ax.get_position(original=True)
    # The default margins of matplotlib take about a fifth.
    width, height = (72 * inches for inches in figure.get_size_inches())
    return min(1, place.width / 0.78) * width, min(1, place.height / 0.78) * height


def is_narrow(ax: Axes) -> bool:
    """Return whether *ax* has room for a legend only below."""
    return measure_room(ax)[0] < _NARROW


def measure_height(ax: Axes, lower: Axes) -> float:
    """Return about how high the axes are, together with a second panel *lower*, in points."""
    captions = (text.get_text() for text in lower.texts if text.get_gid() == _CAPTION)
    height = sum(measure_room(one)[1] for one in {ax, lower}) - 50
    height -= sum(10 * text.count("\n") + 10 for text in captions)
    legend = lower.get_legend()
    figure = ax.get_figure(root=True)
    if isinstance(legend, _LegendBelow) and figure is not None:
        height -= legend.get_window_extent().height * 72 / figure.dpi
    return height


def read_font_size() -> float:
    """Return the font size of the settings, in points: usually 10, less in figures for print."""
    size: float = mpl.rcParams["font.size"]
    return size


def measure_width(text: str) -> float:
    """Return about how wide the longest line of *text* is, in units of the font size."""
    return _CHARACTER * max(map(len, text.split("\n")), default=0) or _CHARACTER


def wrap_text(text: str, width: float, size: float) -> str:
    """Wrap the lines of *text* at *width*, both in points, for this font size."""
    most = max(9, int(width / (_CHARACTER * size)))
    return "\n".join(textwrap.fill(line, most, break_long_words=False) for line in text.split("\n"))


def add_legend(ax: Axes, lower: Axes, chart: Chart) -> Legend:
    """Add the legend: at the right; below, if the chart is narrow; inside, without a layout.

    *lower* is the second panel, below which such a legend is, or *ax* itself.
    """
    handles, names = ax.get_legend_handles_labels()
    if lower is not ax:
        lower_handles, lower_names = lower.get_legend_handles_labels()
        handles, names = [*handles, *lower_handles], [*names, *lower_names]
    # Artists that were on the caller's Axes before follow our own.
    order = [*chart.legend, *names]
    chosen = [handles[i] for i in sorted(range(len(names)), key=lambda i: order.index(names[i]))]
    options: dict[str, Any] = {"title": chart.legend_title, "alignment": "left"}
    options["borderaxespad"] = 0.1
    figure = ax.get_figure(root=True)
    assert figure is not None
    width = measure_room(ax)[0]
    if figure.get_layout_engine() is None:
        # Nothing makes room outside of the axes.
        above: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 3}
        legend = ax.legend(handles=chosen, **options, **above)
        if ax.get_title() or not _is_free(legend, ax, figure):
            few = sum(np.size(line.get_xdata()) for line in ax.lines) < _MOST_POINTS
            place: dict[str, Any] = {
                "loc": "best" if few else "upper left",
                "frameon": True,
                "framealpha": 0.85,
            }
            legend = ax.legend(handles=chosen, fontsize="small", **options | place)
    elif width < _NARROW:
        labels = [str(handle.get_label()) for handle in chosen]
        longest = max(len(line) for label in labels for line in label.split("\n"))
        size, widest = 0.9 * read_font_size(), _CHARACTER * longest + 5
        columns = int(width / (size * widest))
        if columns < 2 and len(chosen) > _MOST_IN_A_COLUMN:
            # Two columns of smaller letters leave more room for the chart.
            columns, options["fontsize"] = 2, max(0.7 * size, min(size, width / (2 * widest)))
        lower.legend_ = legend = _LegendBelow(
            lower,
            chosen,
            labels,
            loc="upper left",
            ncols=max(1, columns),
            **options | {"borderaxespad": 0.4, "frameon": False},
        )
    else:
        right: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1)}
        legend = ax.legend(handles=chosen, **options, **right)
    for handle in legend.legend_handles:
        # Small markers need a larger one in the legend.
        if isinstance(handle, Line2D):
            handle.set_markersize(max(handle.get_markersize(), 4))
        # The swatch is that of the first bar, which may be hatched.
        if isinstance(handle, Patch):
            handle.set_hatch("")
    return legend


def add_caption(ax: Axes, parts: list[str], legend: Legend | None, *, wide: bool = False) -> None:
    """Add the caption below the axis label and the legend; leave it out where it has no room.

    With *wide*, it begins below the labels of the vertical axis.
    """
    figure = ax.get_figure(root=True)
    assert figure is not None
    width = measure_room(ax)[0]
    is_narrow = width < _NARROW
    width -= 10 if is_narrow else 50
    size = 0.8 * read_font_size()
    text = "\n".join(wrap_parts(parts, int(width / (_CHARACTER * size))))
    if not text:
        return
    above = legend if isinstance(legend, _LegendBelow) else ax.xaxis.label
    caption = ax.annotate(
        text,
        xy=(0, 0),
        xycoords=(ax.yaxis.label if is_narrow or wide else "axes fraction", above),
        xytext=(0, -3),
        textcoords="offset points",
        verticalalignment="top",
        fontsize=size,
        color=read_theme(ax, outside=True).adapt(RULE),
        gid=_CAPTION,
        parse_math=False,
    )
    if figure.get_layout_engine() is None and not _is_free(caption, ax, figure):
        caption.set_visible(False)


def _is_free(artist: Any, ax: Axes, figure: Figure) -> bool:
    """Return whether *artist* is within the figure, and does not cover other axes."""
    box = artist.get_window_extent()
    whole = figure.bbox
    if box.x0 < whole.x0 or box.x1 > whole.x1 or box.y0 < whole.y0 or box.y1 > whole.y1:
        return False
    others = (other for other in figure.axes if other is not ax and other.get_visible())
    return not any((room := other.get_tightbbox()) and room.overlaps(box) for other in others)


def write_note(
    ax: Axes, text: str, *, x: float = 0.5, y: float = 0.5, ha: str = "center", va: str = "center"
) -> None:
    """Write *text* into the axes."""
    box = {"facecolor": read_theme(ax).paper, "edgecolor": "none", "alpha": 0.85}
    # The caller's settings may be for another background.
    colour = ax.xaxis.label.get_color()
    width, height = measure_room(ax)
    lines = wrap_text(text, width - 90, read_font_size()).split("\n")
    most = max(3, int(0.5 * (height - 90) / _LINE))
    if width < _NARROW and len(lines) > most:
        # A note covers at most half of a small chart.
        lines[most - 1 :] = ["..."]
    text = "\n".join(lines)
    ax.text(x, y, text, transform=ax.transAxes, ha=ha, va=va, bbox=box, color=colour)
