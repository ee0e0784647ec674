"""The daily yield index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes import colours
from beaconframes.frames import collect, is_empty, known, take
from beaconframes.plot import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from narwhals.stable.v2.typing import IntoFrame

# Per series: name, colour of the days, of the 7-day and of the 31-day average.
_WHOLE = {"": ("", colours.GREY, colours.BLUE, colours.RED)}
_LAYERS = {
    "cl_": ("Consensus, ", colours.CYAN, colours.BLUE, colours.PURPLE),
    "el_": ("Execution, ", colours.AMBER, colours.ORANGE, colours.RED),
}


def yield_index(
    frame: IntoFrame, *, split: bool = False, ax: Axes | None = None, **kwargs: Any
) -> Axes:
    """Draw the yield index in percent a year: days as dots, averages over 7 and 31 days as lines.

    *frame* is what ``bf.load_yield_index(...)`` gives; the averages are those that it brings. With
    *split* the consensus and the execution layer are drawn apart. Lines stop where days are
    missing.

    *kwargs* go to the ``Axes.plot`` of the dots.
    """
    series = _LAYERS if split else _WHOLE
    rates = [f"{layer}apr{window}" for layer in series for window in ("", "_avg_7d", "_avg_31d")]
    columns = ["day", "time", *rates]
    taken = known(take(frame, columns, loader="load_yield_index"), columns[:2])
    percent = pl.col(rates).cast(pl.Float64) * 100
    rows = (
        collect(taken)
        .sort("day")
        .with_columns(pl.when(percent.is_finite()).then(percent))
        .filter(pl.any_horizontal(pl.col(rates).is_not_null()))
    )
    lacking = "no rows" if is_empty(frame) else "no row that has a day, a time and a rate"
    with canvas.open_axes(ax) as axes:
        if rows.is_empty():
            canvas.nothing(axes, f"No yield to draw: {lacking}")
        else:
            for layer, look in series.items():
                _series(axes, rows, f"{layer}apr", look, kwargs)
            canvas.legend(axes)
        if rows.height == 1:
            canvas.note(axes, "One day only", y=0.4)
        canvas.time_axis(axes, "Day (UTC)", rows["time"], every="day")
        axes.set_ylabel("Yield (APR, %)")
    return axes


def _series(
    ax: Axes, rows: pl.DataFrame, rate: str, look: tuple[str, ...], kwargs: dict[str, Any]
) -> None:
    """Draw one rate: its days, and its averages where the service gave any."""
    name, dots, week, month = look
    style: dict[str, Any] = {"marker": "o", "linestyle": "none", "markersize": 2.5, "color": dots}
    days = {"label": f"{name}daily".capitalize()} | style | kwargs
    ax.plot(canvas.moments(rows["time"]), rows[rate].to_numpy(), **days)
    for window, colour in (("7", week), ("31", month)):
        label = f"{name}{window}-day average".capitalize()
        y = rows[f"{rate}_avg_{window}d"]
        if y.count():
            canvas.line(ax, rows["day"], rows["time"], y, color=colour, label=label)
