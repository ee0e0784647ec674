"""Attestation duties: what became of each, and how soon it was included; to be drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.charts import grids, series
from beaconframes.charts.drawing import Axis, Bars, Drawing
from beaconframes.frames import choose

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

Show = Literal["map", "distance"]

_COLUMNS = ["validator_index", "epoch", "time", "status", "attester_slot"]
_FAR = 10  # Distances from this one on share a bar.


def attestations(frame: IntoFrame, *, show: Show = "map", late: int = 2) -> Drawing:
    """Prepare the chart of ``plot.attestations`` and ``interactive.attestations``."""
    choose("show", show, get_args(Show))
    series.whole("late", late, None, "Pass the slots from which on it is late; 1 is the next slot.")
    rows = series.rows_of(
        frame, _COLUMNS, loader="load_attestations", also=["inclusion_slot"]
    ).filter(pl.col("status").is_in(["included", "missed"]))
    lacking = series.lacking(frame, "no duty that has an epoch, a time and a status")
    nothing = f"No attestations to draw: {lacking}" if rows.is_empty() else None
    only = "One attestation only" if rows.height == 1 else None
    distance = pl.col("inclusion_slot").cast(pl.Int64) - pl.col("attester_slot").cast(pl.Int64)
    rows = rows.with_columns(distance=distance)
    if show == "distance":
        return _distances(rows, nothing, only)
    if nothing:
        axis = Axis("Epoch (UTC)", "epoch"), Axis("Validator")
        return Drawing(*axis, nothing=nothing)
    first, count, start, step = grids.numbered(rows, "epoch")
    validators = rows["validator_index"].unique().sort()
    ranks = validators.to_frame().with_row_index("row")
    kind = (
        pl.when(pl.col("status") == "missed")
        .then(3)
        .when(pl.col("distance") >= late)
        .then(2)
        .otherwise(1)
    )
    cells = rows.join(ranks, on="validator_index").select(
        "row", column=pl.col("epoch") - first, kind=kind.cast(pl.UInt8)
    )
    prompt = "Included in the next slot" if late == 2 else f"Included within {late - 1} slots"
    behind = f"Included late ({late} slots\nbehind or more)"
    kinds = ((prompt, colours.CYAN), (behind, colours.AMBER), ("Missed", colours.RED))
    return grids.drawing(
        [cells],
        validators.to_list(),
        (count, start, step),
        number="epoch",
        rows_label="Validator",
        kinds=kinds,
        shares=f"{prompt} (% of duties)",
        counted=3,
        only=only,
    )


def _distances(rows: pl.DataFrame, nothing: str | None, only: str | None) -> Drawing:
    """Count how many slots after their own attestations were included."""
    y = Axis("Share of attestation duties (%)")
    if nothing:
        return Drawing(Axis("Inclusion distance (slots)"), y, nothing=nothing)
    included = rows.filter(pl.col("status") == "included")["distance"].drop_nulls()
    furthest = min(_FAR, max([1, *included]))
    counts = [int((included == distance).sum()) for distance in range(1, furthest)]
    last = str(furthest)
    if (included > furthest).any():
        last = f"{furthest}+"
    counts.append(int((included >= furthest).sum()))
    missed = int((rows["status"] == "missed").sum())
    share = np.array([*counts, missed]) * 100 / rows.height
    names = (*(str(distance) for distance in range(1, furthest)), last, "missed")
    ranks = np.arange(len(names))
    inside = Bars(ranks[:-1], share[:-1], "Included", colours.BLUE)
    outside = Bars(ranks[-1:], share[-1:], f"Missed ({missed:,})", colours.RED)
    label = f"Inclusion distance (slots), {rows.height:,} duties"
    legend = ("Included", f"Missed ({missed:,})")
    return Drawing(Axis(label, names=names), y, (inside, outside), only=only, legend=legend)
