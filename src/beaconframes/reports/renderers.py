"""Rendering of the charts of a report: to SVG, or to plotly."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

from beaconframes import colours

if TYPE_CHECKING:
    from beaconframes.reports.pictures import Picture

_WIDTH = 4.9
"""The width of a chart in inches: texts are readable on a phone and in two columns on paper."""
_SMALL = (1.5, 0.95)
"""The size of a small multiple in inches."""
_MOST_TICKS = 4
"""Ticks of a time axis that fit into an interactive chart on a phone."""
_GREY, _FAINT = "#7d8593", "rgba(128, 136, 150, 0.25)"
"""Text and grid of interactive charts: readable on light and on dark pages."""
_NAMES = ["ink", "rule", "grid", "paper", "amber", "red", "grey", "purple"]
_NAMES += ["brown", "orange", "green", "slate", "cyan", "teal"]
_VARIABLES = {getattr(colours, name.upper()): name for name in _NAMES} | {"#000000": "ink"}
"""Colours of an SVG that follow the reader's setting; other colours are readable on both."""


def render_svg(picture: Picture) -> str:
    """Return a picture as SVG for a page: its colours follow the reader's setting."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from beaconframes.plot import canvas
    from beaconframes.plot.style import style

    options: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": picture.name,
        # Formulas in tick labels take half of the time.
        "axes.formatter.use_mathtext": False,
        # A factor such as 1e-4 above an axis of ETH is easy to overlook.
        "axes.formatter.limits": (-7, 12),
    }
    with style(), mpl.rc_context(options):
        if picture.labels:
            return _render_small(picture)
        figure = Figure(figsize=(_WIDTH, picture.height), layout="constrained")
        canvas.draw_chart(picture.charts[0], {}, caption="", ax=figure.subplots())
        return _write_svg(figure, picture.name)


def _render_small(picture: Picture) -> str:
    """Return small multiples of one scale, each an SVG: the page arranges them in columns."""
    from matplotlib.figure import Figure

    from beaconframes.plot import canvas

    figure = Figure(figsize=_SMALL)
    for chart in picture.charts:
        first = figure.axes[0] if figure.axes else None
        axes = figure.add_axes((0.3, 0.18, 0.68, 0.66), sharex=first, sharey=first)
        canvas.draw_chart(chart, {}, caption="", ax=axes)
    found = []
    for number, (shown, label) in enumerate(zip(figure.axes, picture.labels, strict=True)):
        _reduce(shown, label)
        for axes in figure.axes:
            axes.set_visible(axes is shown)
        found.append(_write_svg(figure, f"{picture.name}{number}"))
    return f'<div class="small">{"".join(found)}</div>'


def _reduce(axes: Any, label: str) -> None:
    """Give the Axes of a small multiple a title, and few ticks."""
    from matplotlib import dates
    from matplotlib.ticker import MaxNLocator

    axes.set_title(label, fontsize=8, pad=3)
    axes.set_xlabel("")
    axes.yaxis.set_major_locator(MaxNLocator(2))
    axes.xaxis.set_major_locator(MaxNLocator(2))
    axes.xaxis.set_major_formatter(dates.DateFormatter("%b %d", tz="UTC"))  # type: ignore[no-untyped-call]
    axes.tick_params(labelsize=7)


def _write_svg(figure: Any, name: str) -> str:
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    FigureCanvasSVG(figure)
    if (layout := figure.get_layout_engine()) is not None:
        # savefig would draw the whole figure twice to arrange it once.
        layout.execute(figure)
        figure.set_layout_engine(None)
    file = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(file, format="svg", transparent=True, metadata=nothing)
    return _adapt_svg(file.getvalue(), name)


def _adapt_svg(text: str, name: str) -> str:
    """Return the SVG element alone, with variables for the colours of text, rules and paper."""
    text = text[text.index("<svg") :]
    text = re.sub(r' (?:width|height)="[\d.]+pt"', "", text, count=2)
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var(--{variable}, {colour})")
    # Coordinates to a tenth of a point: a third of the size. Text between tags stays.
    text = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d+\.\d)\d+", r"\1", tag[0]), text)
    text = re.sub(r"\n\s*", "\n", text)
    # Their names are hashes of coordinates, whose last digits differ between processes.
    for number, clip in enumerate(re.findall(r'<clipPath id="(\w+)"', text)):
        text = text.replace(clip, f"clip{number}")
    # The same identifiers may occur in another picture of the page.
    text = re.sub(r'(id="|url\(#|href="#)', rf"\1{name}-", text)
    return text.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)


def render_plotly(picture: Picture) -> str:
    """Return a picture as an interactive chart, without the library."""
    from beaconframes.interactive.figure import build_figure

    if picture.labels:
        return render_svg(picture)
    chart = picture.charts[0]
    # Entries of the legend are below each other on a phone.
    height = 340 + (22 * len(chart.legend) if chart.panel else 0)
    figure = build_figure(chart, {"height": height}, caption="")
    clear = "rgba(0, 0, 0, 0)"
    figure.update_layout(paper_bgcolor=clear, plot_bgcolor=clear, font_color=_GREY, margin_t=12)
    if chart.panel:
        figure.update_layout(yaxis2_nticks=3)
    if chart.x.time_unit and chart.x.times is not None and len(chart.x.times) > _MOST_TICKS:
        # Ticks of more days overlap on a phone.
        figure.update_xaxes(dtick=None, nticks=_MOST_TICKS)
    for update in (figure.update_xaxes, figure.update_yaxes):
        update(gridcolor=_FAINT, linecolor=_GREY, tickcolor=_GREY, tickfont_color=_GREY)
    page: str = figure.to_html(
        full_html=False, include_plotlyjs=False, div_id=f"chart-{picture.name}"
    )
    return page
