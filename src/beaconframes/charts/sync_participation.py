"""Chart of the participation in sync committees over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.analysis import sync_committees as sync
from beaconframes.analysis.sync_committees import (
    Step,  # noqa: TC001 - the command line reads its values
)
from beaconframes.charts import series, validator_lines
from beaconframes.charts.model import Area, Axis, Chart, Layer, Line, Points
from beaconframes.frames import to_polars

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

_MOST_SLOTS = 640  # More blocks cover each other.
# Slots without a block are marked in rows below the data: status, name, colour, symbol, height.
_MISSING = (
    ("missed", "Missed block", colours.RED, "|", 0.02),
    ("orphaned", "Orphaned block", colours.PURPLE, "x", 0.05),
)


def sync_participation(
    blocks: IntoFrame, committees: IntoFrame | None = None, *, every: Step | None = None
) -> Chart:
    """Draw the share of the sync committee that signed, by block or as means of epochs.

    By default, up to 640 slots are drawn by block, and more by epoch.

    *blocks* is the result of ``bf.load_epoch_slots(...)``. Slots without a block in the chain have
    no participation: the line stops there, and a marker below the data says whether the block was
    missed or orphaned. For epochs, a band spans the lowest to the highest block. With *committees*,
    some or all rows of ``bf.load_sync_committees(...)``, a second line shows these seats alone.

    *kwargs* go to the ``Axes.plot`` of the participation.
    """
    if every is None:
        slots = series.read_rows(blocks, ["slot"], loader="load_epoch_slots")
        every = "slot" if slots.height <= _MOST_SLOTS else "epoch"
    rows = to_polars(sync.sync_participation(blocks, committees, every=every))
    drawn = rows.drop_nulls("participation")
    x = Axis(f"{every.capitalize()} (UTC)", every, series.to_datetime64(drawn["time"]))
    y = Axis("Sync committee participation (% of seats)", maximum=100.5)
    if drawn.is_empty():
        reason = series.explain_empty(blocks, "no proposed block with participation")
        return Chart(x, y, empty_note=f"No participation to draw: {reason}")
    layers = _build_all_seats(rows, every)
    if "seats_participation" in rows.columns:
        percent = series.to_floats(rows["seats_participation"]) * 100
        curve = series.build_curve(rows[every], rows["time"], percent)
        layers.append(Line(*curve, "Selected seats", colours.ORANGE, 0.7))
    if every == "slot":
        layers += build_missing_marks(rows, {status: height for status, *_, height in _MISSING})
    elif drawn.height > 1:
        layers.append(_build_lowest(drawn))
    names = tuple(layer.name for layer in layers if isinstance(layer, Line | Area | Points))
    block = "block" if every == "slot" else "epoch"
    single_note = f"One {block} only" if drawn.height == 1 else None
    return Chart(
        x, y, tuple(layers), single_note=single_note, legend=names if len(names) > 1 else ()
    )


def _build_all_seats(rows: pl.DataFrame, every: str) -> list[Layer]:
    """Build the participation of all seats; for epochs with the range of their blocks."""
    percent = series.to_floats(rows["participation"]) * 100
    curve = series.build_curve(rows[every], rows["time"], percent)
    width = 0.7 if every == "slot" else 1.1
    line = Line(*curve, "All seats", colours.BLUE, width, takes_kwargs=True)
    if every == "slot":
        return [line]
    blocks = rows.select(pl.col("lowest", "highest") * 100, "time", number="epoch")
    name = "Lowest to highest block"
    return [line, validator_lines.build_band(blocks, "lowest", "highest", name, 0.2)]


def _build_lowest(rows: pl.DataFrame) -> Points:
    """Build the marker of the block with the lowest participation, by name."""
    (lowest,) = rows.sort("lowest", rows.columns[0]).head(1).to_dicts()
    share = np.array([100 * float(lowest["lowest"])])
    x = series.to_datetime64(rows.filter(epoch=lowest["epoch"])["time"])
    label = f"Lowest block: {share[0]:.1f} %"
    return Points(x, share, label, colours.RED, "v", 6)


def build_missing_marks(rows: pl.DataFrame, heights: dict[str, float]) -> list[Points]:
    """Build markers of the slots without a block in the chain, one row per status."""
    marks = []
    for status, name, colour, symbol, _ in _MISSING:
        slots = rows.filter(pl.col("status") == status)
        if slots.height and status in heights:
            x, y = series.to_datetime64(slots["time"]), np.full(slots.height, heights[status])
            label = f"{name} ({slots.height:,})"
            marks.append(Points(x, y, label, colour, symbol, strip=True))
    return marks
