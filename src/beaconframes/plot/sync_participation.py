"""Participation in sync committees over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from beaconframes import analysis, colours
from beaconframes.frames import is_empty, to_polars
from beaconframes.plot import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from narwhals.stable.v2.typing import IntoFrame

# Lost slots stand in rows of their own beneath the data: (status, name, colour, marker, height).
_LOST = (
    ("missed", "Missed block", colours.RED, "|", 0.02),
    ("orphaned", "Orphaned block", colours.PURPLE, "x", 0.05),
)


def sync_participation(
    blocks: IntoFrame,
    committees: IntoFrame | None = None,
    *,
    every: Literal["slot", "epoch"] = "slot",
    ax: Axes | None = None,
    **kwargs: Any,
) -> Axes:
    """Draw which share of the sync committee signed, block by block or as means of epochs.

    *blocks* is what ``bf.load_epoch_slots(...)`` gives. Slots without a block in the chain have no
    participation: they are holes, and marked beneath the data as missed or orphaned. Epochs show
    the span from their lowest to their highest block as well. With *committees*, some or all rows
    of ``bf.load_sync_committees(...)``, a second line shows the seats in it alone.

    *kwargs* go to the ``Axes.plot`` of the participation.
    """
    rows = to_polars(analysis.sync_participation(blocks, committees, every=every))
    drawn = rows.drop_nulls("participation")
    lacking = "no rows" if is_empty(blocks) else "no proposed block that has one"
    with canvas.open_axes(ax) as axes:
        if drawn.is_empty():
            canvas.nothing(axes, f"No participation to draw: {lacking}")
        else:
            _everybody(axes, rows, every, kwargs)
            if "seats_participation" in rows.columns:
                _seats(axes, rows, every)
            if every == "slot":
                _lost(axes, rows)
            axes.set_ylim(top=min(axes.get_ylim()[1], 100.5))
            if len(axes.get_legend_handles_labels()[0]) > 1:
                canvas.legend(axes)
        if drawn.height == 1:
            canvas.note(axes, f"One {'block' if every == 'slot' else 'epoch'} only", y=0.4)
        canvas.time_axis(axes, f"{every.capitalize()} (UTC)", drawn["time"], every=every)
        axes.set_ylabel("Sync committee participation (% of seats)")
    return axes


def _everybody(ax: Axes, rows: pl.DataFrame, every: str, kwargs: dict[str, Any]) -> None:
    """Draw the participation of all seats; for epochs with the span of their blocks."""
    width = 0.7 if every == "slot" else 1.1
    look: dict[str, Any] = {"label": "All seats", "color": colours.BLUE, "linewidth": width}
    percent = rows["participation"] * 100
    canvas.line(ax, rows[every], rows["time"], percent, **look | kwargs)
    if every == "slot":
        return
    x, gaps = canvas.moments(rows["time"]), canvas.holes(rows["epoch"])
    low, high = (rows[edge].cast(pl.Float64).to_numpy() * 100 for edge in ("lowest", "highest"))
    lower, upper = canvas.broken(x, low, gaps), canvas.broken(x, high, gaps)[1]
    span: dict[str, Any] = {"color": colours.BLUE, "alpha": 0.2, "linewidth": 0}
    ax.fill_between(*lower, upper, label="Lowest to highest block", **span)


def _seats(ax: Axes, rows: pl.DataFrame, every: str) -> None:
    """Draw the participation of the chosen seats above that of all."""
    percent = rows["seats_participation"] * 100
    look = {"label": "Chosen seats", "color": colours.AMBER, "linewidth": 0.7}
    canvas.line(ax, rows[every], rows["time"], percent, **look)


def _lost(ax: Axes, rows: pl.DataFrame) -> None:
    """Mark the slots without a block in the chain, beneath the data."""
    ax.margins(y=0.12)
    for status, name, colour, marker, height in _LOST:
        slots = rows.filter(pl.col("status") == status)
        if slots.height:
            ax.plot(
                canvas.moments(slots["time"]),
                [height] * slots.height,
                label=f"{name} ({slots.height:,})",
                color=colour,
                marker=marker,
                linestyle="none",
                transform=ax.get_xaxis_transform(),
            )
