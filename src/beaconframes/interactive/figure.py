"""Figure, axes, legend and texts of a chart in plotly."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from beaconframes import colours
from beaconframes.charts.alt_text import describe_chart
from beaconframes.charts.caption import list_caption_parts, wrap_parts
from beaconframes.charts.model import Bars, Heatmap, Points, ReferenceLine
from beaconframes.charts.series import (
    MARGINS,
    check_figsize,
    check_texts,
    count_times,
    format_plainly,
)
from beaconframes.errors import UsageError, require_package
from beaconframes.frames import first_line
from beaconframes.interactive.style import AROUND_PLOT, choose_template, read_theme
from beaconframes.interactive.traces import (
    PIXELS_PER_INCH,
    PIXELS_PER_POINT,
    build_traces,
    shorten_times,
)
from beaconframes.text import shorten

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from beaconframes.charts.model import Axis, Chart
    from beaconframes.colours import Theme

_PANEL_HEIGHT = 540  # Of a figure of two panels, in pixels.
_LEGEND_HEIGHT, _CHARACTER = 60, 7.1  # Pixels.
_PHONE = 360  # The narrowest width in pixels, for titles of figures without a width.
_CAPTION_WIDTH = 46  # In characters, which fit into that width.
_NOTE_WIDTH = 38  # So do these in the plot.
_DAY = 86_400_000  # Milliseconds.
# Ticks of few days, weeks or months: (maximum count, days, distance, first tick).
_TICKS: dict[str, tuple[int, int, Any, str]] = {
    "day": (8, 1, _DAY, "2000-01-01"),
    "week": (8, 7, 7 * _DAY, "2000-01-03"),
    "month": (12, 30, "M1", "2000-01-01"),
}
_STRIP = 0.1  # Share of the height for markers below the data, or above a heatmap.


def build_figure(
    chart: Chart,
    kwargs: dict[str, Any],
    *,
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    caption: str | None = None,
) -> Figure:
    """Build the figure; *kwargs* go to its layout."""
    figure, theme = open_figure(kwargs)
    notes = []
    for layer in chart.layers:
        some, note = build_traces(layer, chart, theme)
        figure.add_traces(some)
        notes += [note] if note else []
    figure.update_layout(barmode="overlay")
    figure.update_xaxes(_describe_x_axis(chart.x, theme) | _find_ends(chart))
    figure.update_yaxes(_describe_y_axis(chart.y, theme))
    figure.update_layout(showlegend=bool(chart.legend))
    if any(isinstance(layer, Heatmap) for layer in chart.layers):
        figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    if 19 * len(chart.y.tick_labels) > 350:
        # Each labeled row needs 19 pixels.
        figure.layout.template.layout.height = AROUND_PLOT + 19 * len(chart.y.tick_labels)
    if chart.legend_title:
        figure.update_layout(legend_title_text=chart.legend_title)
    if chart.panel:
        notes += _add_panel(figure, chart, chart.panel, theme)
    _add_strip(figure, chart)
    _add_reference_lines(figure, chart, theme)
    _add_notes(figure, chart, notes, theme)
    check_texts(caption=caption)
    parts = list_caption_parts(chart) if caption is None else [caption]
    # The caption is below the middle of the plot, which long tick labels move to the right.
    longest = max(
        (len(line) for name in chart.y.tick_labels for line in name.split("\n")), default=0
    )
    width = min(_CAPTION_WIDTH, int(64 - 1.2 * longest))
    add_texts(figure, title, figsize, parts, describe_chart(chart, title), width)
    _wrap_y_titles(figure, chart)
    return update_layout(figure, kwargs)


def open_figure(kwargs: dict[str, Any]) -> tuple[Figure, Theme]:
    """Return a new figure in our style, or with the *template* of the user, and its theme."""
    require_package("plotly", "bf.interactive")
    from beaconframes.interactive.accessible_figure import AccessibleFigure

    wanted = kwargs.pop("template", None)
    try:
        template = choose_template(wanted)
    except ValueError:
        raise UsageError(
            f"plotly refuses template={shorten(wanted)}",
            hint='Pass the name of a template, such as template="plotly_dark".',
        ) from None
    return AccessibleFigure(layout={"template": template}), read_theme(template)


def add_texts(
    figure: Figure,
    title: str | None,
    figsize: tuple[float, float] | None,
    caption: list[str],
    alt_text: str,
    caption_width: int = _CAPTION_WIDTH,
) -> None:
    """Set title, size, caption and text alternative."""
    check_texts(title=title)
    width, height = check_figsize(figsize) if figsize is not None else (None, None)
    if width is not None and height is not None:
        figure.update_layout(width=PIXELS_PER_INCH * width, height=PIXELS_PER_INCH * height)
    if title is not None:
        most = int((figure.layout.width or _PHONE) / 9)
        lines = [line for part in title.split("\n") for line in textwrap.wrap(part, most)]
        # plotly draws the first of several lines above its place, and cuts it there.
        place: dict[str, Any] = {"yref": "container", "y": 1, "yanchor": "top"}
        place["pad"] = {"t": 12 if len(lines) == 1 else 24}
        figure.update_layout(
            title={"text": "<br>".join(lines)} | place, margin_t=22 + 22 * len(lines)
        )
    lines = wrap_parts(caption, caption_width)
    if any(lines):
        label = figure.layout.xaxis.title.text or ""
        # A second line of the axis title has the right distance from the tick labels.
        figure.update_xaxes(
            title_text=f"{label}<br><span style='font-size:11px'>{'<br>'.join(lines)}</span>"
        )
    figure.update_layout(meta={"alt_text": alt_text})


def update_layout(figure: Figure, kwargs: dict[str, Any]) -> Figure:
    """Apply *kwargs* to the layout; raise UsageError for those that plotly does not accept."""
    try:
        return figure.update_layout(kwargs)
    except ValueError as error:
        raise UsageError(
            f"plotly refuses {', '.join(kwargs)}: {first_line(error)}",
            hint="The documentation of the chart has its arguments",
        ) from None


def _describe_x_axis(axis: Axis, theme: Theme) -> dict[str, Any]:
    layout = _describe_axis(axis, theme)
    if axis.time_unit is None:
        return layout
    layout |= {"type": "date", "hoverformat": "%b %-d, %Y"}
    if axis.time_unit in {"slot", "epoch"}:
        layout["hoverformat"] += ", %H:%M:%S UTC"
    if axis.times is None or not len(axis.times):
        return layout
    if count_times(axis.times) == 1:
        around = MARGINS[axis.time_unit]
        layout["range"] = list(
            shorten_times(np.array([axis.times[0] - around, axis.times[0] + around]))
        )
    most, days, step, start = _TICKS.get(axis.time_unit, (0, 1, None, ""))
    # Days without a value count, too: the axis shows them.
    if (axis.times.max() - axis.times.min()) // np.timedelta64(days, "D") < most:
        layout |= {"dtick": step, "tick0": start}
        layout["tickformat"] = "%b\n%Y" if axis.time_unit == "month" else "%b %-d\n%Y"
    return layout


def _find_ends(chart: Chart) -> dict[str, Any]:
    """Return the ends of a time axis with bars: plotly would add half of the time between them."""
    bars = [layer for layer in chart.layers if isinstance(layer, Bars) and chart.x.time_unit]
    if not bars:
        return {}
    ends = [(one.x.min() - np.max(one.width), one.x.max() + np.max(one.width)) for one in bars]
    first, last = shorten_times(np.array([min(ends)[0], max(end for _, end in ends)]))
    return {"autorangeoptions": {"clipmin": first, "clipmax": last}}


def _describe_y_axis(axis: Axis, theme: Theme) -> dict[str, Any]:
    layout = _describe_axis(axis, theme)
    limits: dict[str, Any] = {"clipmax": axis.maximum, "clipmin": axis.minimum}
    limits["include"] = axis.include or None
    if known := {name: limit for name, limit in limits.items() if limit is not None}:
        layout["autorangeoptions"] = known
    if axis.logarithmic:
        ticks = [digit * 10.0**power for power in range(-9, 20) for digit in (1, 2, 5)]
        texts = [format_plainly(tick) for tick in ticks]
        layout |= {"type": "log", "tickvals": ticks, "ticktext": texts}
    if axis.reverse:
        layout["autorange"] = "reversed"
    return layout


def _describe_axis(axis: Axis, theme: Theme) -> dict[str, Any]:
    layout: dict[str, Any] = {"title": {"text": axis.label}}
    if axis.zero_line:
        layout |= {
            "zeroline": True,
            "zerolinecolor": theme.adapt(colours.SLATE),
            "zerolinewidth": 1,
        }
    if axis.thousands or axis.integers:
        layout["tickformat"] = ",.0f" if axis.thousands else "d"
    if axis.tick_labels:
        names = [name.replace("\n", "<br>") for name in axis.tick_labels]
        layout |= {"tickvals": list(range(len(names))), "ticktext": names}
        layout["range"] = [-0.5, len(names) - 0.5]
        if axis.reverse:
            layout["range"].reverse()
    return layout


def _add_panel(figure: Figure, chart: Chart, panel: Chart, theme: Theme) -> list[str]:
    """Add the second panel, and return its notes."""
    below = replace(panel, legend=chart.legend)
    notes = []
    for layer in panel.layers:
        traces, note = build_traces(layer, below, theme)
        figure.add_traces([trace | {"yaxis": "y2"} for trace in traces])
        notes += [note] if note else []
    figure.layout.template.layout.height = _PANEL_HEIGHT
    figure.update_layout(
        xaxis={"anchor": "y2"},
        yaxis={"domain": [chart.panel_share + 0.03, 1]},
        yaxis2=_describe_y_axis(panel.y, theme) | {"domain": [0, chart.panel_share - 0.03]},
    )
    return notes


def _wrap_y_titles(figure: Figure, chart: Chart) -> None:
    """Wrap the titles of the vertical axes at the heights of their panels."""
    height = (figure.layout.height or figure.layout.template.layout.height) - AROUND_PLOT
    shares = {"yaxis": 1.0}
    if chart.panel:
        height -= _LEGEND_HEIGHT
        shares = {"yaxis": 1 - chart.panel_share, "yaxis2": chart.panel_share}
    for name, share in shares.items():
        title = figure.layout[name].title
        most = max(12, int(share * height / _CHARACTER))
        title.text = "<br>".join(textwrap.wrap(title.text, most))


def _add_strip(figure: Figure, chart: Chart) -> None:
    """Reserve a strip for markers below the data, or above a heatmap."""
    if not any(isinstance(layer, Points) and layer.strip for layer in chart.layers):
        return
    strip: dict[str, Any] = {"anchor": "x", "visible": False, "fixedrange": True}
    if any(isinstance(layer, Heatmap) for layer in chart.layers):
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


def _add_reference_lines(figure: Figure, chart: Chart, theme: Theme) -> None:
    for layer in chart.layers:
        if isinstance(layer, ReferenceLine):
            (figure.add_vline if layer.vertical else figure.add_hline)(
                layer.y,
                line={
                    "color": theme.adapt(colours.SLATE),
                    "dash": "dash",
                    "width": PIXELS_PER_POINT,
                },
                name=layer.name,
                showlegend=True,
                legendrank=1000 + chart.legend.index(layer.name),
            )


def _add_notes(figure: Figure, chart: Chart, notes: list[str], theme: Theme) -> None:
    """Add the texts: an empty chart, a single point, and thinned lines."""
    word: dict[str, Any] = {"xref": "paper", "yref": "paper", "showarrow": False}
    paper = {"bgcolor": theme.paper, "opacity": 0.9}
    if chart.empty_note:
        text = "<br>".join(textwrap.wrap(chart.empty_note, _NOTE_WIDTH))
        figure.add_annotation(word | paper, text=text, x=0.5, y=0.5)
        # Ticks without data are misleading.
        figure.update_xaxes(showticklabels=False, ticks="")
        figure.update_yaxes(showticklabels=False, showgrid=False)
    if chart.single_note:
        figure.add_annotation(word | paper, text=chart.single_note, x=0.5, y=0.4)
    if chart.corner_note:
        text = chart.corner_note.replace("\n", "<br>")
        figure.add_annotation(word | paper, text=text, x=0.03, y=0.05, align="left")
    for note in notes[:1]:
        figure.add_annotation(
            word,
            text=note,
            x=0,
            y=1,
            yanchor="bottom",
            font={"size": 11, "color": theme.adapt(colours.RULE)},
        )
