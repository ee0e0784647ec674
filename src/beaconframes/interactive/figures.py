"""Draw what a chart shows with plotly: the figure, its axes, and the words around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from beaconframes import colours
from beaconframes.charts.drawing import Dots, Grid, Level
from beaconframes.interactive.style import template
from beaconframes.interactive.traces import moments, traces

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from beaconframes.charts.drawing import Axis, Drawing

_DAY = 86_400_000  # Milliseconds.
_AROUND = {
    "slot": np.timedelta64(1, "m"),
    "epoch": np.timedelta64(20, "m"),
    "day": np.timedelta64(36, "h"),
    "week": np.timedelta64(11, "D"),
    "month": np.timedelta64(45, "D"),
}
# Between the ticks of few days, weeks or months: (most of them, how far, from where on).
_TICKS: dict[str, tuple[int, Any, str]] = {
    "day": (8, _DAY, "2000-01-01"),
    "week": (8, 7 * _DAY, "2000-01-03"),
    "month": (12, "M1", "2000-01-01"),
}
_STRIP = 0.1  # Of the height: where marks beneath the data, or above a map, stand.


def draw(drawing: Drawing, kwargs: dict[str, Any]) -> Figure:
    """Make the figure; *kwargs* go to its layout."""
    from plotly import graph_objects as go

    drawn, notes = [], []
    for layer in drawing.layers:
        some, note = traces(layer, drawing)
        drawn += some
        notes += [note] if note else []
    figure = go.Figure(drawn, {"template": template(), "barmode": "overlay"})
    figure.update_xaxes(_x_axis(drawing.x))
    figure.update_yaxes(_y_axis(drawing.y))
    figure.update_layout(showlegend=bool(drawing.legend))
    if any(isinstance(layer, Grid) for layer in drawing.layers):
        figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    if 19 * len(drawing.y.names) > 350:
        # As high as rows with a name each need.
        figure.update_layout(height=110 + 19 * len(drawing.y.names))
    if drawing.legend_title:
        figure.update_layout(legend_title_text=drawing.legend_title)
    _marks(figure, drawing)
    _levels(figure, drawing)
    _words(figure, drawing, notes)
    return figure.update_layout(kwargs)


def _x_axis(axis: Axis) -> dict[str, Any]:
    """Name the horizontal axis and say what stands on it."""
    look = _axis(axis)
    if axis.every is None:
        return look
    look |= {"type": "date", "hoverformat": "%b %-d, %Y"}
    if axis.every in {"slot", "epoch"}:
        look["hoverformat"] += ", %H:%M:%S UTC"
    if axis.times is None or not len(axis.times):
        return look
    count = len(np.unique(axis.times))
    if count == 1:
        around = _AROUND[axis.every]
        look["range"] = list(moments(np.array([axis.times[0] - around, axis.times[0] + around])))
    most, step, start = _TICKS.get(axis.every, (0, None, ""))
    if count <= most:
        look |= {"dtick": step, "tick0": start}
        look["tickformat"] = "%b\n%Y" if axis.every == "month" else "%b %-d\n%Y"
    return look


def _y_axis(axis: Axis) -> dict[str, Any]:
    """Name the vertical axis and say what stands on it."""
    look = _axis(axis)
    if axis.top is not None:
        look["autorangeoptions"] = {"maxallowed": axis.top}
    if axis.reverse:
        look["autorange"] = "reversed"
    return look


def _axis(axis: Axis) -> dict[str, Any]:
    look: dict[str, Any] = {"title": {"text": axis.label}}
    if axis.zero:
        look |= {"zeroline": True, "zerolinecolor": colours.SLATE, "zerolinewidth": 1}
    if axis.thousands or axis.whole:
        look["tickformat"] = ",.0f" if axis.thousands else "d"
    if axis.names:
        names = [name.replace("\n", "<br>") for name in axis.names]
        look |= {"tickvals": list(range(len(names))), "ticktext": names}
        look["range"] = [-0.5, len(names) - 0.5]
        if axis.reverse:
            look["range"].reverse()
    return look


def _marks(figure: Figure, drawing: Drawing) -> None:
    """Give marks in rows of their own a strip beneath the data, or above a map."""
    if not any(isinstance(layer, Dots) and layer.strip for layer in drawing.layers):
        return
    strip: dict[str, Any] = {"anchor": "x", "visible": False, "fixedrange": True}
    if any(isinstance(layer, Grid) for layer in drawing.layers):
        figure.update_layout(
            yaxis={"domain": [0, 1 - _STRIP]},
            yaxis2=strip | {"domain": [1 - _STRIP, 1], "range": [1, 1 + _STRIP]},
        )
    else:
        figure.update_layout(
            yaxis={"domain": [_STRIP, 1]},
            yaxis2=strip | {"domain": [0, _STRIP], "range": [0, _STRIP]},
            xaxis={"anchor": "y2"},
        )


def _levels(figure: Figure, drawing: Drawing) -> None:
    """Draw lines across the chart."""
    for layer in drawing.layers:
        if isinstance(layer, Level):
            figure.add_hline(
                layer.y,
                line={"color": colours.SLATE, "dash": "dash", "width": 1},
                name=layer.name,
                showlegend=True,
                legendrank=1000 + drawing.legend.index(layer.name),
            )


def _words(figure: Figure, drawing: Drawing, notes: list[str]) -> None:
    """Say what is not drawn, that a thing stands alone, and what was left out."""
    word: dict[str, Any] = {"xref": "paper", "yref": "paper", "showarrow": False}
    paper = {"bgcolor": colours.PAPER, "opacity": 0.9}
    if drawing.nothing:
        figure.add_annotation(word | paper, text=drawing.nothing, x=0.5, y=0.5)
        # An empty scale would mean nothing.
        figure.update_xaxes(showticklabels=False, ticks="")
        figure.update_yaxes(showticklabels=False, showgrid=False)
    if drawing.only:
        figure.add_annotation(word | paper, text=drawing.only, x=0.5, y=0.4)
    if drawing.corner:
        text = drawing.corner.replace("\n", "<br>")
        figure.add_annotation(word | paper, text=text, x=0.03, y=0.05, align="left")
    for note in notes[:1]:
        figure.add_annotation(
            word,
            text=note,
            x=0,
            y=1,
            yanchor="bottom",
            font={"size": 11, "color": colours.RULE},
        )
