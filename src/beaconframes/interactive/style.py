"""The style of the charts in plotly, like ``plot.style``; importing this changes no settings."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from beaconframes import colours

if TYPE_CHECKING:
    from collections.abc import Iterator

AROUND_PLOT = 160
"""Pixels of the height of a figure that axis titles, caption and legend usually need."""

# plotly's button that uploads the data of a chart, by its names in different versions.
_UPLOADS = ("sendChartToCloud", "sendDataToCloud")


@cache
def template() -> Any:
    """Return the template of every figure: its style, on white paper.

    Figures with it have no button that uploads them, wherever they are shown.
    """
    from plotly import graph_objects as go

    axis = {
        "gridcolor": colours.GRID,
        "linecolor": colours.RULE,
        "tickcolor": colours.RULE,
        "ticks": "outside",
        "ticklen": 4,
        "showline": True,
        "zeroline": False,
        "automargin": True,
        "exponentformat": "power",
        "minexponent": 7,
        "separatethousands": True,
    }
    return go.layout.Template(
        layout={
            "colorway": colours.CYCLE,
            "paper_bgcolor": colours.PAPER,
            "plot_bgcolor": colours.PAPER,
            "font": {"family": "DejaVu Sans, Verdana, sans-serif", "size": 12}
            | {"color": colours.INK},
            "height": 300 + AROUND_PLOT,
            "margin": {"l": 30, "r": 20, "t": 40, "b": 30},
            # A pixel smaller than usual: beside long tick labels, a phone would cut its end.
            "xaxis": axis | {"showgrid": False, "title": {"standoff": 16, "font": {"size": 13}}},
            "yaxis": axis | {"ticks": "", "title": {"standoff": 12}},
            # Below the chart, so that it fits into any width.
            "legend": {
                # Every entry is a group of its own: only groups are as wide as their names.
                "traceorder": "grouped",
                "itemsizing": "constant",
                "tracegroupgap": 2,
                "orientation": "h",
                "yref": "container",
                "y": 0,
                "yanchor": "bottom",
                "x": 0,
                "xref": "container",
            },
            "hoverlabel": {"align": "left", "namelength": -1},
            "dragmode": "pan",
            "modebar": {"remove": _UPLOADS},
        }
    )


def choose_template(chosen: Any = None) -> Any:
    """Return the template of a figure: ours, with the *chosen* one of the user on top.

    Without one, plotly's default template counts as chosen if it is dark.
    """
    from plotly import graph_objects as go
    from plotly import io

    if chosen is None:
        default = go.Layout(template=io.templates.default).template
        if not read_theme(default).is_dark:
            return template()
        chosen = default
    return io.templates.merge_templates(template(), go.Layout(template=chosen).template)


def read_theme(chosen: Any) -> colours.Theme:
    """Return the theme for the background of a template."""
    from PIL import ImageColor

    background = chosen.layout.plot_bgcolor or chosen.layout.paper_bgcolor
    try:
        red, green, blue, *_ = ImageColor.getrgb(background or colours.PAPER)
    except ValueError:
        return colours.Theme()  # For example rgba(0,0,0,0.5).
    return colours.Theme(f"#{red:02x}{green:02x}{blue:02x}")


@contextmanager
def style() -> Iterator[None]:
    """Make plotly figures in the style of beaconframes inside the ``with`` block.

    The end of the block restores plotly's default template.
    """
    from plotly import io

    before = io.templates.default
    io.templates.default = choose_template()
    try:
        yield
    finally:
        io.templates.default = before
