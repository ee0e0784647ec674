"""Turn one layer of a chart into traces of plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from beaconframes import colours
from beaconframes.charts import series
from beaconframes.charts.drawing import Area, Bars, Dots, Grid, Level, Line
from beaconframes.interactive.outlines import faded, outline

if TYPE_CHECKING:
    from beaconframes.charts.drawing import Axis, Drawing, Layer, Places

MOST = 20_000
"""Points of a line: more have no room on a screen, and a browser needs seconds for them."""

_PAINTED = 5_000  # More dots than this are painted by WebGL; lines are quicker without it.
_SYMBOLS = {"o": "circle", "|": "line-ns-open", "x": "x-thin-open", "X": "x", "D": "diamond"}
# The scale of shares leaves the upper right corner to the legend.
_BESIDE = {"len": 0.8, "y": 0, "yanchor": "bottom"}


def traces(layer: Layer, drawing: Drawing) -> tuple[list[Any], str | None]:
    """Give the traces of *layer*, and a note when it shows fewer points than there are."""
    match layer:
        case Line():
            return _line(layer, drawing)
        case Dots():
            return [_dots(layer, drawing)], None
        case Bars():
            return [_bars(layer, drawing)], None
        case Area():
            return _area(layer, drawing)
        case Grid():
            return _grid(layer, drawing), None
        case Level():
            return [], None


def moments(x: Places) -> Places:
    """Shorten times to what they need as text, which is how plotly takes them."""
    if x.dtype.kind != "M":
        return x
    seconds = x.astype("datetime64[s]")
    return seconds if (seconds == x).all() else x.astype("datetime64[ms]")


def _hover(drawing: Drawing, y: str = "y") -> str:
    """Say place, height with its unit, and name: a text of ours, whatever the data hold."""
    height = f"%{{{y}:{_digits(drawing.y)}}} {_unit(drawing.y)}"
    return f"%{{x}}<br>{height}<extra>%{{fullData.name}}</extra>"


def _unit(axis: Axis) -> str:
    """Find the unit that the name of an axis ends in."""
    unit = axis.label.rpartition("(")[2].removesuffix(")") if axis.label.endswith(")") else ""
    return unit.rpartition(", ")[2]


def _digits(axis: Axis) -> str:
    """Give as many digits as tell something: all of an amount, few of a share."""
    return ",.6~r" if "%" in axis.label else ",.12~r"


def _place(layer: Line | Dots | Bars | Area, drawing: Drawing) -> dict[str, Any]:
    """Say under which name, and where, the legend has the layer."""
    name = layer.name or ""
    look: dict[str, Any] = {"name": name.replace("\n", "<br>"), "showlegend": False}
    if name in drawing.legend:
        look |= {"showlegend": True, "legendrank": 1000 + drawing.legend.index(name)}
    return look | {"legendgroup": name}


def _scatter(count: int) -> Any:
    from plotly import graph_objects as go

    return go.Scattergl if count > _PAINTED else go.Scatter


def _line(layer: Line, drawing: Drawing) -> tuple[list[Any], str | None]:
    from plotly import graph_objects as go

    x, y, each = series.thinned(layer.x, layer.y, MOST)
    note = None
    if each > 1:
        note = (
            f"{len(layer.x):,} points: of every {each:,} neighbours the lowest and the highest are "
            "drawn; shorter holes are not"
        )
    colour = layer.colour or colours.CYCLE[_rank(layer, drawing) % len(colours.CYCLE)]
    look: dict[str, Any] = _place(layer, drawing) | {
        "mode": "lines+markers" if layer.marked else "lines",
        "line": {"width": layer.width, "color": colour, "dash": "dash" if layer.dashed else None},
        "opacity": layer.opacity,
        "connectgaps": False,
        "hovertemplate": _hover(drawing),
    }
    if layer.marked:
        hollow = layer.hollow if layer.hollow is not None and each == 1 else np.zeros(len(x), bool)
        fill = np.where(hollow, colours.PAPER, colour)
        look["marker"] = {"size": 6, "color": fill, "line": {"color": colour, "width": 1.5}}
    drawn = [go.Scatter(x=moments(x), y=y, **look)]
    # A point with a hole on either side has no line to be seen by: it gets a marker.
    alone = [] if layer.marked else series.lonely(y)
    if alone:
        look |= {"mode": "markers", "marker": {"size": 5, "color": colour}, "showlegend": False}
        drawn.append(_scatter(len(alone))(x=moments(x[alone]), y=y[alone], **look))
    return drawn, note


def _rank(layer: Layer, drawing: Drawing) -> int:
    """Count the layers before this one."""
    return next(i for i, other in enumerate(drawing.layers) if other is layer)


def _dots(layer: Dots, drawing: Drawing) -> Any:
    symbol = _SYMBOLS[layer.symbol]
    marker: dict[str, Any] = {
        "symbol": symbol,
        "size": max(3, 1.6 * layer.size),
        "color": layer.colour,
    }
    if layer.hollow:
        marker["symbol"] += "-open"
    if symbol.startswith(("line", "x-thin")):
        marker["line"] = {"width": 1.5, "color": layer.colour}
    look = _place(layer, drawing) | {"mode": "markers", "marker": marker}
    if layer.strip:
        look |= {"yaxis": "y2", "hovertemplate": "%{x}<extra>%{fullData.name}</extra>"}
    elif drawing.y.names:
        look["hovertemplate"] = "%{x}<br>validator %{text}<extra>%{fullData.name}</extra>"
    elif drawing.y.whole:
        look["hovertemplate"] = "%{x}<br>validator %{y:d}<extra>%{fullData.name}</extra>"
    else:
        look["hovertemplate"] = _hover(drawing)
    if layer.who:
        look["text"] = layer.who
        if not drawing.x.every:
            look["hovertemplate"] = look["hovertemplate"].replace("%{x}", "validator %{text}")
    return _scatter(len(layer.x))(x=moments(layer.x), y=layer.y, **look)


def _bars(layer: Bars, drawing: Drawing) -> Any:
    from plotly import graph_objects as go

    width: Any = layer.width
    if isinstance(width, np.ndarray):
        width = width / np.timedelta64(1, "ms")
    marker: dict[str, Any] = {"color": layer.colour or colours.BLUE, "line": {"width": 0}}
    if layer.cut is not None and layer.cut.any():
        shapes = np.where(layer.cut, "/", "")
        stripes = {"shape": shapes, "fgcolor": colours.PAPER, "size": 6, "solidity": 0.25}
        # Otherwise the stripes replace the bar instead of lying on it.
        marker["pattern"] = stripes | {"fillmode": "overlay"}
    look = _place(layer, drawing) | {"marker": marker, "width": width, "base": layer.base}
    axis = drawing.x if layer.lying else drawing.y
    names = drawing.y.names if layer.lying else drawing.x.names
    where = "%{x}"
    if names:
        look["text"] = [names[int(rank)].replace("\n", ", ") for rank in layer.x]
        look["textposition"] = "none"
        where = "%{text}"
    # Of a bar that stands on others plotly would tell the height of all.
    look["customdata"] = layer.height
    look["hovertemplate"] = (
        f"{where}<br>%{{customdata:{_digits(axis)}}} {_unit(axis)}"
        f"<extra>{'%{fullData.name}' if layer.name else ''}</extra>"
    )
    if layer.lying:
        return go.Bar(y=layer.x, x=layer.height, orientation="h", **look)
    return go.Bar(x=moments(layer.x), y=layer.height, **look)


def _area(layer: Area, drawing: Drawing) -> tuple[list[Any], str | None]:
    from plotly import graph_objects as go

    x, low, high, each = series.enveloped(layer.x, layer.low, layer.high, MOST)
    note = f"{len(layer.x):,} points: of every {each:,} neighbours the extremes are drawn"
    own = np.where(abs(low) > abs(high), low, high)
    if layer.own is not None and each == 1:
        own = layer.own
    around, heights, amounts = outline(x, low, high, own, steps=layer.steps)
    trace = go.Scatter(
        x=moments(around),
        y=heights,
        customdata=amounts,
        mode="lines",
        fill="toself",
        fillcolor=faded(layer.colour, layer.opacity),
        line={"width": 0.5 if layer.steps else 0, "color": layer.colour},
        hoveron="points",
        hovertemplate=_hover(drawing, "customdata"),
        **_place(layer, drawing),
    )
    return [trace], note if each > 1 else None


def _grid(layer: Grid, drawing: Drawing) -> list[Any]:
    from plotly import graph_objects as go

    starts = layer.start + layer.step * np.arange(layer.cells.shape[1])
    look: dict[str, Any] = {
        "x": moments(starts),
        # Cells stand between one start and the next, and tell their start.
        "xperiod": layer.step / np.timedelta64(1, "ms"),
        "xperiod0": str(moments(starts[:1])[0]),
        "xperiodalignment": "middle",
        "y": layer.rows,
        "z": layer.cells,
    }
    where = "%{x}<br>validator %{y}<br>"
    if layer.shares is not None:
        look |= {
            "colorscale": colours.SHARES,
            "zmin": min(90, np.nanmin(layer.cells, initial=100)),
            "zmax": 100,
            "colorbar": {"title": {"text": layer.shares, "side": "right"}} | _BESIDE,
        }
        return [go.Heatmap(hovertemplate=where + "%{z:.2f} %<extra></extra>", **look)]
    names = np.array(["", *(name.replace("\n", " ") for name, _ in layer.kinds)])
    paints = ["rgba(0,0,0,0)", *(colour for _, colour in layer.kinds)]
    scale = [(edge / len(paints), paint) for i, paint in enumerate(paints) for edge in (i, i + 1)]
    cells = go.Heatmap(
        colorscale=scale,
        zmin=-0.5,
        zmax=len(paints) - 0.5,
        showscale=False,
        text=names[layer.cells],
        hovertemplate=where + "%{text}<extra></extra>",
        **look,
    )
    explained = [
        go.Scatter(
            x=[None],
            y=[None],
            mode="markers",
            marker={"symbol": "square", "size": 10, "color": colour},
            name=name.replace("\n", "<br>"),
            showlegend=True,
            legendrank=1000 + drawing.legend.index(name),
        )
        for name, colour in layer.kinds
        if name in drawing.legend
    ]
    return [cells, *explained]
