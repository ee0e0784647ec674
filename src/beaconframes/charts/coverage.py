"""What of a dataset is there, to be drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes import colours
from beaconframes.charts import grids, series
from beaconframes.charts.drawing import Axis, Drawing

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame


def coverage(frame: IntoFrame) -> Drawing:
    """Prepare the chart of ``plot.coverage`` and ``interactive.coverage``."""
    columns = ["validator_index", "epoch", "time"]
    rows = series.rows_of(frame, columns, loader="load_income_history").unique(columns[:2])
    if rows.is_empty():
        lacking = series.lacking(frame, "no row that has a validator, an epoch and a time")
        axis = Axis("Epoch (UTC)", "epoch"), Axis("Validator")
        return Drawing(*axis, nothing=f"No coverage to draw: {lacking}")
    first, count, start, step = grids.numbered(rows, "epoch")
    validators = rows["validator_index"].unique().sort()
    ranks = validators.to_frame().with_row_index("row")
    cells = rows.join(ranks, on="validator_index").select(
        "row", column=pl.col("epoch") - first, kind=pl.lit(1, pl.UInt8)
    )
    there = rows.height / (len(validators) * count)
    return grids.drawing(
        [cells],
        validators.to_list(),
        (count, start, step),
        number="epoch",
        rows_label=f"Validator ({100 * there:.4g} % of rows there)",
        kinds=(("There", colours.BLUE), ("Absent", colours.GRID)),
        shares="Rows there (%)",
        counted=1,
        only="One epoch only" if count == 1 else None,
        whole=True,
    )
