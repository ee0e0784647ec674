"""Traces of plotly for each kind of layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from beaconframes import colours
from beaconframes.charts import downsampling, series
from beaconframes.charts.model import Area, Bars, Heatmap, Line, Points, ReferenceLine

if TYPE_CHECKING:
    from beaconframes.charts.model import Axis, Chart, Floats, Layer, Positions
    from beaconframes.colours import Theme

PIXELS_PER_INCH = 100
"""So that figures, lines and markers have about the same size in both libraries."""
PIXELS_PER_POINT = PIXELS_PER_INCH / 72

MAX_POINTS = 20_000
"""Maximum points of a line: a browser needs seconds for more, and a screen cannot show them."""

_WEBGL_POINTS = 5_000  # More points than this are drawn by WebGL; lines are faster without it.
_SYMBOLS = {
    "o": "circle",
    "|": "line-ns-open",
    "x": "x-thin-open",
    "X": "x",
    "D": "diamond",
    "^": "triangle-up",
    "v": "triangle-down",
}
# The colour bar leaves the upper right corner to the legend.
_COLORBAR = {"len": 0.8, "y": 0, "yanchor": "bottom", "thickness": 14}


def build_traces(layer: Layer, chart: Chart, theme: Theme) -> tuple[list[Any], str | None]:
    """Return the traces of *layer*, and a note if it has been thinned."""
    match layer:
        case Line():
            return _build_line(layer, chart, theme)
        case Points():
            return [_build_points(layer, chart, theme)], None
        case Bars():
            return _build_bars(layer, chart, theme), None
        case Area():
            return _build_area(layer, chart, theme)
        case Heatmap():
            return _build_heatmap(layer, chart, theme), None
        case ReferenceLine():
            return [], None


def shorten_times(x: Positions) -> Positions:
    """Shorten times to their resolution: plotly sends them as text."""
    if x.dtype.kind != "M":
        return x
    seconds = x.astype("datetime64[s]")
    return seconds if (seconds == x).all() else x.astype("datetime64[ms]")


def _format_hover(chart: Chart, y: str = "y") -> str:
    """Return the hover template: position, height with its unit, and name; no text of the data."""
    height = f"%{{{y}:{_choose_digits(chart.y)}}} {chart.y.unit}"
    return f"%{{x}}<br>{height}<extra>%{{fullData.name}}</extra>"


def _choose_digits(axis: Axis) -> str:
    return ",.6~r" if "%" in axis.label else ",.12~r"


def _describe_legend(name: str | None, chart: Chart) -> dict[str, Any]:
    name = name or ""
    options: dict[str, Any] = {"name": name.replace("\n", " "), "showlegend": False}
    if name in chart.legend:
        options |= {"showlegend": True, "legendrank": 1000 + chart.legend.index(name)}
    return options | {"legendgroup": name}


def _build_swatch(
    layer: Line | Bars, chart: Chart, marker: dict[str, Any], **options: Any
) -> list[Any]:
    """Build the swatch of a layer in the legend; none if the legend does not name the layer.

    Without it, plotly draws the swatch like the first point, which may be hatched or hollow.
    """
    entry = _describe_legend(layer.name, chart)
    if not entry["showlegend"]:
        return []
    mode = "lines+markers" if options else "markers"
    swatch = {"type": "scatter", "x": [None], "y": [None], "mode": mode, "marker": marker}
    return [swatch | options | entry]


def build_square(colour: str, **options: Any) -> dict[str, Any]:
    """Build a square in the legend that the plot does not have."""
    marker = {"symbol": "square", "size": 10, "color": colour}
    square = {"type": "scatter", "x": [None], "y": [None], "mode": "markers", "marker": marker}
    return square | options


def _choose_type(count: int) -> str:
    return "scattergl" if count > _WEBGL_POINTS else "scatter"


def _build_line(layer: Line, chart: Chart, theme: Theme) -> tuple[list[Any], str | None]:
    x, y, each = downsampling.thin_line(layer.x, layer.y, MAX_POINTS)
    note = None
    if each > 1:
        note = (
            f"{len(layer.x):,} points: the lowest and the highest of every {each:,} neighbors are "
            "drawn; shorter gaps are not visible"
        )
    rank = chart.layers.index(layer) % len(colours.CYCLE)
    colour = theme.adapt(layer.colour or colours.CYCLE[rank])
    options: dict[str, Any] = _describe_legend(layer.name, chart) | {
        "mode": "lines+markers" if layer.marked else "lines",
        "line": {
            "width": layer.width * PIXELS_PER_POINT,
            "color": colour,
            "dash": "dash" if layer.dashed else None,
        },
        "opacity": layer.opacity,
        "connectgaps": False,
        "hovertemplate": _format_hover(chart),
    }
    swatch: list[Any] = []
    if layer.marked:
        hollow = layer.hollow if layer.hollow is not None and each == 1 else np.zeros(len(x), bool)
        fill = np.where(hollow, theme.paper, colour)
        options["marker"] = {"size": 6, "color": fill, "line": {"color": colour, "width": 1.5}}
        if hollow.any():
            swatch = _build_swatch(layer, chart, {"size": 6, "color": colour}, line=options["line"])
            options["showlegend"] = False
    drawn = [*swatch, {"type": "scatter", "x": shorten_times(x), "y": y, **options}]
    # A line does not show an isolated point, so it gets a marker.
    isolated = [] if layer.marked else series.find_isolated_points(y)
    if isolated:
        options |= {"mode": "markers", "marker": {"size": 5, "color": colour}, "showlegend": False}
        options |= {"type": _choose_type(len(isolated))}
        drawn.append({"x": shorten_times(x[isolated]), "y": y[isolated], **options})
    return drawn, note


def _build_points(layer: Points, chart: Chart, theme: Theme) -> Any:
    symbol = _SYMBOLS[layer.symbol]
    marker: dict[str, Any] = {
        "symbol": symbol,
        "size": max(3, 1.6 * layer.size),
        "color": theme.adapt(layer.colour),
    }
    if layer.hollow:
        marker["symbol"] += "-open"
    if symbol.startswith(("line", "x-thin")):
        marker["line"] = {"width": 1.5, "color": theme.adapt(layer.colour)}
    options = _describe_legend(layer.name, chart) | {"mode": "markers", "marker": marker}
    if layer.strip:
        options |= {"yaxis": "y2", "hovertemplate": "%{x}<extra>%{fullData.name}</extra>"}
    elif chart.y.tick_labels:
        options["hovertemplate"] = "%{x}<br>validator %{text}<extra>%{fullData.name}</extra>"
    elif chart.y.integers:
        options["hovertemplate"] = "%{x}<br>validator %{y:d}<extra>%{fullData.name}</extra>"
    else:
        options["hovertemplate"] = _format_hover(chart)
    if layer.texts:
        options |= {"text": layer.texts, "hovertemplate": "%{text}<extra></extra>"}
    if layer.validators:
        options["text"] = layer.validators
        if not chart.x.time_unit:
            options["hovertemplate"] = options["hovertemplate"].replace("%{x}", "validator %{text}")
    options |= {"type": _choose_type(len(layer.x))}
    return {"x": shorten_times(layer.x), "y": layer.y, **options}


def _build_bars(layer: Bars, chart: Chart, theme: Theme) -> list[Any]:
    width: Any = layer.width
    if isinstance(width, np.ndarray):
        width = width / np.timedelta64(1, "ms")
    marker: dict[str, Any] = {
        "color": theme.adapt(layer.colour or colours.BLUE),
        "line": {"width": 0},
    }
    swatch: list[Any] = []
    if layer.incomplete is not None and layer.incomplete.any():
        swatch = _build_swatch(layer, chart, {"symbol": "square", "size": 10} | marker)
        shapes = np.where(layer.incomplete, "/", "")
        stripes = {"shape": shapes, "fgcolor": theme.paper, "size": 6, "solidity": 0.25}
        # Without this, the stripes replace the bar.
        marker["pattern"] = stripes | {"fillmode": "overlay"}
    options = _describe_legend(layer.name, chart) | {
        "type": "bar",
        "marker": marker,
        "width": width,
        "base": layer.base,
    }
    if swatch:
        options["showlegend"] = False
    axis = chart.x if layer.horizontal else chart.y
    names = chart.y.tick_labels if layer.horizontal else chart.x.tick_labels
    where = "%{x}"
    if names:
        options["hovertext"] = [names[int(rank)].replace("\n", ", ") for rank in layer.x]
        where = "%{hovertext}"
    if layer.labels:
        options |= {"text": layer.labels, "textposition": "outside", "cliponaxis": False}
    # For stacked bars plotly would show the height of the stack.
    options["customdata"] = layer.height
    options["hovertemplate"] = (
        f"{where}<br>%{{customdata:{_choose_digits(axis)}}} {axis.unit}"
        f"<extra>{'%{fullData.name}' if layer.name else ''}</extra>"
    )
    if layer.texts:
        options |= {"hovertext": layer.texts, "hovertemplate": "%{hovertext}<extra></extra>"}
    if layer.horizontal:
        return [*swatch, {"y": layer.x, "x": layer.height, "orientation": "h", **options}]
    return [*swatch, {"x": shorten_times(layer.x), "y": layer.height, **options}]


def _build_area(layer: Area, chart: Chart, theme: Theme) -> tuple[list[Any], str | None]:
    x, low, high, each = downsampling.thin_area(layer.x, layer.low, layer.high, MAX_POINTS)
    note = f"{len(layer.x):,} points: the extremes of every {each:,} neighbors are drawn"
    own = np.where(abs(low) > abs(high), low, high)
    if layer.hover_amounts is not None and each == 1:
        own = layer.hover_amounts
    around, heights, amounts = _build_outline(x, low, high, own, steps=layer.stepped)
    trace = _describe_legend(layer.name, chart) | {
        "type": "scatter",
        "x": shorten_times(around),
        "y": heights,
        "customdata": amounts,
        "mode": "lines",
        "fill": "toself",
        "fillcolor": _format_rgba(theme.adapt(layer.colour), layer.opacity),
        "line": {"width": 0.5 if layer.stepped else 0, "color": theme.adapt(layer.colour)},
        "hoveron": "points",
        "hovertemplate": _format_hover(chart, "customdata"),
    }
    return [trace], note if each > 1 else None


def _build_outline(
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


def _format_rgba(colour: str, opacity: float) -> str:
    """Format a colour with an opacity."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def _build_heatmap(layer: Heatmap, chart: Chart, theme: Theme) -> list[Any]:
    starts = layer.start + layer.step * np.arange(layer.cells.shape[1])
    options: dict[str, Any] = {
        "type": "heatmap",
        "x": shorten_times(starts),
        # Cells lie between one start and the next; the hover text has their start.
        "xperiod": layer.step / np.timedelta64(1, "ms"),
        "xperiod0": str(shorten_times(starts[:1])[0]),
        "xperiodalignment": "middle",
        "y": layer.rows,
        "z": layer.cells,
    }
    where = "%{x}<br>validator %{y}<br>" if layer.has_validators else "%{x}<br>"
    if layer.validators_per_row > 1:
        where = f"%{{x}}<br>{layer.validators_per_row} validators from %{{y}}<br>"
    if not layer.kinds:
        lowest, highest = layer.limits or (min(90, np.nanmin(layer.cells, initial=100)), 100)
        options |= {
            "colorscale": colours.SHARES,
            "zmin": lowest,
            "zmax": highest,
            "colorbar": {"title": {"text": layer.quantity, "side": "right"}} | _COLORBAR,
            "text": layer.texts,
        }
        hover = where + "%{z:.2f} %" if layer.texts is None else "%{text}"
        return [options | {"hovertemplate": hover + "<extra></extra>"}]
    kinds = [(name, theme.adapt(colour)) for name, colour in layer.kinds]
    names = np.array(["", *(name.replace("\n", " ") for name, _ in kinds)])
    paints = ["rgba(0,0,0,0)", *(colour for _, colour in kinds)]
    scale = [(edge / len(paints), paint) for i, paint in enumerate(paints) for edge in (i, i + 1)]
    texts = names[layer.cells]
    if layer.percent is not None:
        # The whole names of all cells would take most of a page.
        shares = np.char.mod("%.2f", layer.percent)
        texts = np.where(np.isfinite(layer.percent), shares, texts)
        where += f"{layer.quantity}: "
    cells = options | {
        "colorscale": scale,
        "zmin": -0.5,
        "zmax": len(paints) - 0.5,
        "showscale": False,
        "text": texts,
        "hovertemplate": where + "%{text}<extra></extra>",
    }
    legend_entries = [
        build_square(colour, **_describe_legend(name, chart))
        for name, colour in kinds
        if name in chart.legend
    ]
    return [cells, *legend_entries]
