"""Chart of the rows present in a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes import colours
from beaconframes.charts import heatmap, series
from beaconframes.charts.caption import captioned
from beaconframes.charts.model import Axis, Chart

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame


@captioned
def coverage(frame: IntoFrame) -> Chart:
    """Build the map of present and missing rows by validator and epoch."""
    columns = ["validator_index", "epoch", "time"]
    rows = series.read_rows(frame, columns, loader="load_income_history").unique(columns[:2])
    if rows.is_empty():
        reason = series.explain_empty(frame, "no row with a validator, an epoch and a time")
        axis = Axis("Epoch (UTC)", "epoch"), Axis("Validator")
        return Chart(*axis, empty_note=f"No coverage to draw: {reason}")
    first, count, start, step = heatmap.find_columns(rows, "epoch")
    validators = rows["validator_index"].unique().sort()
    ranks = validators.to_frame().with_row_index("row")
    cells = rows.join(ranks, on="validator_index").select(
        "row", column=pl.col("epoch") - first, kind=pl.lit(1, pl.UInt8)
    )
    present = rows.height / (len(validators) * count)
    return heatmap.build_heatmap(
        [cells],
        validators.to_list(),
        (count, start, step),
        number="epoch",
        rows_label=f"Validator ({100 * present:.4g} % of rows present)",
        kinds=(("Present", colours.BLUE), ("Missing", colours.GRID)),
        shares="Rows present (%)",
        counted=1,
        single_note="One epoch only" if count == 1 else None,
        whole=True,
    )
