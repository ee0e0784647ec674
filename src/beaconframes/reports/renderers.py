"""Rendering of the charts of a report: to SVG, or to plotly."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

from beaconframes import colours
from beaconframes.reports.pictures import arrange

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beaconframes.charts.model import Chart
    from beaconframes.reports.pictures import Picture

_WIDTH = 7.4
_GREY, _FAINT = "#7d8593", "rgba(128, 136, 150, 0.25)"
"""Text and grid of interactive charts: readable on light and on dark pages."""
_VARIABLES = {
    colours.INK: "ink",
    colours.RULE: "rule",
    colours.GRID: "grid",
    colours.SLATE: "slate",
    colours.PAPER: "paper",
    "#000000": "ink",
}
"""Colours of an SVG that follow the reader's setting; colours of data are readable on both."""


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
        figure = Figure(figsize=(_WIDTH, picture.height), layout="constrained")
        for axes, chart, label in _iterate_axes(figure, picture):
            canvas.draw_chart(chart, {}, caption="", ax=axes)
            if label is not None:
                _reduce(axes, label)
        file = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", transparent=True, metadata=nothing)
    return _adapt_svg(file.getvalue(), picture)


def _iterate_axes(figure: Any, picture: Picture) -> Iterator[tuple[Any, Chart, str | None]]:
    """Yield the Axes of each chart of a picture, with the label of a small multiple."""
    if not picture.labels:
        yield figure.subplots(), picture.charts[0], None
        return
    lines, columns = arrange(len(picture.charts))
    grid = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes in grid[len(picture.charts) :]:
        axes.set_visible(False)
    yield from zip(grid, picture.charts, picture.labels, strict=False)


def _reduce(axes: Any, label: str) -> None:
    """Make the Axes of a small multiple: a title, and few ticks."""
    from matplotlib import dates
    from matplotlib.ticker import MaxNLocator

    axes.set_title(label, fontsize=8)
    axes.set_xlabel("")
    axes.yaxis.set_major_locator(MaxNLocator(2))
    axes.xaxis.set_major_locator(MaxNLocator(2))
    axes.xaxis.set_major_formatter(dates.DateFormatter("%b %d", tz="UTC"))  # type: ignore[no-untyped-call]
    axes.tick_params(labelsize=7)


def _adapt_svg(text: str, picture: Picture) -> str:
    """Return the SVG element alone, with variables for the colours of text, rules and paper."""
    text = text[text.index("<svg") :]
    text = re.sub(r' (?:width|height)="[\d.]+pt"', "", text, count=2)
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    for colour, name in _VARIABLES.items():
        text = text.replace(colour, f"var(--{name}, {colour})")
    # Coordinates to a tenth of a point: a third of the size. Text between tags stays.
    text = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d+\.\d)\d+", r"\1", tag[0]), text)
    text = re.sub(r"\n\s*", "\n", text)
    # The same identifiers may occur in another picture of the page.
    text = re.sub(r'(id="|url\(#|href="#)', rf"\1{picture.name}-", text)
    return text.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)


def render_plotly(picture: Picture) -> str:
    """Return a picture as an interactive chart, without the library."""
    from beaconframes.interactive.figure import build_figure

    if picture.labels:
        return render_svg(picture)
    figure = build_figure(picture.charts[0], {"height": 380})
    clear = "rgba(0, 0, 0, 0)"
    figure.update_layout(paper_bgcolor=clear, plot_bgcolor=clear, font_color=_GREY)
    for update in (figure.update_xaxes, figure.update_yaxes):
        update(gridcolor=_FAINT, linecolor=_GREY, tickcolor=_GREY, tickfont_color=_GREY)
    page: str = figure.to_html(
        full_html=False, include_plotlyjs=False, div_id=f"chart-{picture.name}"
    )
    return page
