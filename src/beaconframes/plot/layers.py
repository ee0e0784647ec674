"""The layers of a chart in matplotlib: one call for each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import dates
from matplotlib.colors import to_rgba
from matplotlib.ticker import MaxNLocator

from beaconframes import colours
from beaconframes.charts.model import Area, Bars, Heatmap, Line, Points, ReferenceLine
from beaconframes.charts.series import find_isolated_points
from beaconframes.plot.annotations import is_narrow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer

    from beaconframes.charts.model import Flags, Layer
    from beaconframes.colours import Theme

_ROWS_NAMED = 20  # Up to this many rows of a heatmap have a label each.
_NARROW = 280  # In points, without labels.
_NARROW_BAR = 1.0  # In points.
_OUTLINE = {"edgecolor", "ec", "linewidth", "lw"}
_LABEL_HEIGHT = 6.5  # In points, of the smallest label with its distance to the next.
_EVERY = (5, 10, 20, 50, 100, 200, 500)  # Otherwise, the distance between labeled rows.


def draw_layer(
    ax: Axes, layer: Layer, named: tuple[str, ...], kwargs: dict[str, Any], theme: Theme
) -> None:
    """Draw *layer*; *kwargs* go to its call if the layer takes them.

    *named* are the kinds of cells of a heatmap that are in the legend.
    """
    match layer:
        case Line():
            _draw_line(ax, layer, kwargs if layer.takes_kwargs else {}, theme)
        case Points():
            _draw_points(ax, layer, kwargs if layer.takes_kwargs else {}, theme)
        case Bars():
            _draw_bars(ax, layer, kwargs if layer.takes_kwargs else {}, theme)
        case Area():
            _draw_area(ax, layer, kwargs if layer.takes_kwargs else {}, theme)
        case Heatmap():
            _draw_heatmap(ax, layer, named, kwargs, theme)
        case ReferenceLine():
            style: dict[str, Any] = {
                "color": theme.adapt(colours.SLATE),
                "linestyle": "--",
                "linewidth": 1,
            }
            (ax.axvline if layer.vertical else ax.axhline)(layer.y, label=layer.name, **style)


def _draw_line(ax: Axes, layer: Line, kwargs: dict[str, Any], theme: Theme) -> None:
    style: dict[str, Any] = {"linewidth": layer.width, "label": layer.name}
    if layer.colour:
        style["color"] = theme.adapt(layer.colour)
    if layer.opacity < 1:
        style["alpha"] = layer.opacity
    if layer.dashed:
        style["linestyle"] = "--"
    # A line does not show an isolated point, so it gets a marker.
    isolated = find_isolated_points(layer.y)
    if layer.marked:
        style["marker"] = "o"
    elif isolated:
        style |= {"marker": "o", "markevery": isolated}
    if "marker" in kwargs:
        style.pop("markevery", None)
    (drawn,) = ax.plot(layer.x, layer.y, **style | kwargs)
    if layer.hollow is not None and (layer.hollow.any() or layer.marked):
        incomplete: dict[str, Any] = {
            "color": drawn.get_color(),
            "markerfacecolor": theme.paper,
        }
        front = drawn.get_zorder() + 0.1
        ax.plot(layer.x[layer.hollow], layer.y[layer.hollow], "o", zorder=front, **incomplete)


def _draw_points(ax: Axes, layer: Points, kwargs: dict[str, Any], theme: Theme) -> None:
    style: dict[str, Any] = {"marker": layer.symbol, "linestyle": "none", "label": layer.name}
    style |= {"color": theme.adapt(layer.colour), "markersize": layer.size}
    if layer.hollow:
        style["markerfacecolor"] = "none"
    if layer.strip:
        ax.margins(y=0.12)
        style |= {"transform": ax.get_xaxis_transform(), "clip_on": False}
    ax.plot(layer.x, layer.y, **style | kwargs)


def _draw_bars(ax: Axes, layer: Bars, kwargs: dict[str, Any], theme: Theme) -> None:
    style: dict[str, Any] = {"height" if layer.horizontal else "width": layer.width}
    if layer.name:
        style["label"] = layer.name
    if layer.colour:
        style["color"] = theme.adapt(layer.colour)
    if layer.base is not None:
        style["left" if layer.horizontal else "bottom"] = layer.base
    bars = (ax.barh if layer.horizontal else ax.bar)(layer.x, layer.height, **style | kwargs)
    if layer.horizontal:
        ax.grid(visible=False, axis="y")
        ax.grid(axis="x")
    for bar in bars:
        # The base of a bar that is part of a stack, or a range, must not limit the axis.
        if layer.base is not None if layer.horizontal else bar.get_y():
            bar.sticky_edges.x.clear()
            bar.sticky_edges.y.clear()
    if layer.labels:
        # The caller's settings may be for another background.
        colour = ax.xaxis.label.get_color()
        ax.bar_label(bars, layer.labels, padding=2, fontsize="small", color=colour)
        ax.margins(y=0.12)
    if not layer.horizontal and _are_narrow(ax, bars):
        _outline_bars(bars, kwargs)
    elif layer.incomplete is not None:
        _hatch_bars(bars, layer.incomplete, theme)


def _hatch_bars(bars: BarContainer, incomplete: Flags, theme: Theme) -> None:
    for bar in np.array(bars, object)[incomplete]:
        bar.set(hatch="/////", edgecolor=theme.paper, linewidth=0)


def _outline_bars(bars: BarContainer, kwargs: dict[str, Any]) -> None:
    """Keep bars visible that are narrower than a pixel; they have no room for stripes."""
    if _OUTLINE & kwargs.keys():
        return
    for bar in bars:
        bar.set(edgecolor=bar.get_facecolor(), linewidth=0.5)


def _are_narrow(ax: Axes, bars: BarContainer) -> bool:
    """Return whether a bar is narrower than about a pixel, at the size of the figure."""
    low, high = ax.get_xlim()
    figure = ax.get_figure(root=True)
    assert figure is not None
    room = 72 / figure.dpi * ax.get_window_extent().width
    narrowest = min((bar.get_width() for bar in bars), default=np.inf)
    return bool(narrowest * room < _NARROW_BAR * abs(high - low))


def _draw_area(ax: Axes, layer: Area, kwargs: dict[str, Any], theme: Theme) -> None:
    style: dict[str, Any] = {"label": layer.name, "color": theme.adapt(layer.colour)}
    # The outline keeps a step visible that is narrower than a pixel.
    style["linewidth"] = 0.5 if layer.stepped else 0
    if layer.stepped:
        style["step"] = "post"
    if layer.opacity < 1:
        style["alpha"] = layer.opacity
    ax.fill_between(layer.x, layer.low, layer.high, **style | kwargs)


def _draw_heatmap(
    ax: Axes, layer: Heatmap, named: tuple[str, ...], kwargs: dict[str, Any], theme: Theme
) -> None:
    cells = layer.cells
    count, columns = cells.shape
    ends = dates.date2num(np.array([layer.start, layer.start + columns * layer.step]))  # type: ignore[no-untyped-call]
    style: dict[str, Any] = {"extent": (*ends, count - 0.5, -0.5), "aspect": "auto"}
    room, figure = ax.get_window_extent(), ax.get_figure(root=True)
    assert figure is not None
    # Legend and labels take about a third of the room.
    if columns <= 0.65 * room.width and count <= 0.65 * room.height:
        style["interpolation"] = "nearest"
    else:
        # matplotlib blends along both axes: repeat the cells of an axis that has room for them.
        down, across = int(room.height // count) or 1, int(room.width // columns) or 1
        cells = cells.repeat(down, axis=0).repeat(across, axis=1)
    if layer.kinds:
        # As colours, cells smaller than a pixel are blended; as numbers, some would be dropped.
        kinds = [(name, theme.adapt(colour)) for name, colour in layer.kinds]
        table = [to_rgba("white", 0), *(to_rgba(colour) for _, colour in kinds)]
        ax.imshow(np.array(table, np.float32)[cells], **style | kwargs)
        for name, colour in kinds:
            if name in named:
                ax.plot([], [], "s", color=colour, label=name)
    else:
        lowest, highest = layer.limits or (min(90, np.nanmin(cells, initial=100)), 100)
        scale: dict[str, Any] = {"cmap": colours.SHARES, "vmin": lowest, "vmax": highest}
        drawn = ax.imshow(cells, **scale | style | kwargs)
        # Beside a narrow chart, the bar would take a third of the width, and its label be cut.
        place: dict[str, Any] = {}
        if is_narrow(ax):
            place = {"location": "bottom", "ticks": MaxNLocator(4)}
        figure.colorbar(drawn, ax=ax, label=layer.quantity, **place)
    ax.set(xlim=ends, ylim=(count - 0.5, -0.5))
    ax.xaxis_date("UTC")
    ax.grid(visible=False)
    width, height = (72 / figure.dpi * size for size in (room.width, room.height))
    # A narrow chart has its legend and its caption below.
    most = int((0.45 if width < _NARROW else 0.8) * height / _LABEL_HEIGHT)
    each = 1 if count <= min(_ROWS_NAMED, most) else next(n for n in _EVERY if 8 * n >= count)
    rows = range(0, count, each)
    ax.set_yticks(rows, [layer.rows[row] for row in rows])
