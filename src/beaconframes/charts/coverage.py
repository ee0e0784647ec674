"""Chart of the rows present in a frame."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from beaconframes import colours
from beaconframes.charts import heatmap, series
from beaconframes.charts.model import Axis, Chart

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame


_LOADED, _NOT_ACTIVE = 1, 2
_ACTIVE_PERIOD = ["activation_epoch", "exit_epoch"]


def coverage(frame: IntoFrame, validators: IntoFrame | None = None) -> Chart:
    """Draw which rows are loaded and which are missing: a row per validator, a column per epoch.

    *frame* has one row per validator and epoch, such as the results of
    ``bf.load_income_history(...)``, ``bf.load_balance_history(...)`` and
    ``bf.load_attestations(...)``. The map spans the first to the last epoch of the frame. With
    *validators*, the result of ``bf.load_validators(...)``, epochs in which a validator was not
    active are separate from missing ones, and validators without any row are drawn, too.

    With more than 1,024 validators or epochs, a cell has several of them, as the axis labels state;
    its colour is then the share of rows that are loaded.

    *kwargs* go to ``Axes.imshow``.
    """
    columns = ["validator_index", "epoch", "time"]
    rows = series.read_rows(frame, columns, loader="load_income_history").unique(columns[:2])
    if rows.is_empty():
        reason = series.explain_empty(frame, "no row with a validator, an epoch and a time")
        axis = Axis("Epoch (UTC)", "epoch"), Axis("Validator")
        return Chart(*axis, empty_note=f"No coverage to draw: {reason}")
    first, count, start, step = heatmap.find_columns(rows, "epoch")
    loaded = rows.select(
        "validator_index", column=pl.col("epoch") - first, kind=pl.lit(_LOADED, pl.UInt8)
    )
    indices, cells, missing = rows["validator_index"], loaded, "Missing, or not active"
    kinds = [("Loaded", colours.BLUE)]
    if validators is not None:
        known = series.read_rows(
            validators, ["validator_index"], loader="load_validators", also=_ACTIVE_PERIOD
        )
        indices, missing = pl.concat([indices, known["validator_index"]]), "Missing"
        cells = pl.concat([loaded, _find_inactive_epochs(known, loaded, first, count)])
        kinds.append(("Not active", colours.GRID))
    indices = indices.unique().sort()
    ranks = indices.to_frame().with_row_index("row")
    due = len(indices) * count - (cells.height - loaded.height)
    chart = heatmap.build_heatmap(
        [cells.join(ranks, on="validator_index").drop("validator_index")],
        indices.to_list(),
        (count, start, step),
        number="epoch",
        rows_label=f"Validator ({_format_share(loaded.height, due)} of rows loaded)",
        kinds=(*kinds, (missing, colours.AMBER)),
        quantity="Rows loaded (%)",
        counted=1,
        single_note="One epoch only" if count == 1 else None,
        whole=True,
        not_due=None if validators is None else _NOT_ACTIVE,
    )
    return replace(chart, validators=len(indices))


def _find_inactive_epochs(
    validators: pl.DataFrame, loaded: pl.DataFrame, first: int, count: int
) -> pl.DataFrame:
    """Return the cells of epochs in which a validator was not active. One row per cell."""
    periods = validators.unique("validator_index").select(
        "validator_index",
        *((pl.col(name) - first).fill_null(count).clip(0, count) for name in _ACTIVE_PERIOD),
    )
    before = pl.int_ranges(0, "activation_epoch")
    after = pl.int_ranges(pl.max_horizontal(_ACTIVE_PERIOD), count)
    cells = (
        periods.select("validator_index", column=pl.concat_list(before, after))
        .explode("column")
        .drop_nulls()
        .with_columns(kind=pl.lit(_NOT_ACTIVE, pl.UInt8))
        .cast(loaded.schema)
    )
    return cells.join(loaded, on=["validator_index", "column"], how="anti").select(loaded.columns)


def _format_share(part: int, whole: int) -> str:
    """Return a percentage that is 100 % only if nothing is missing."""
    return f"{min(100 * part / whole, 99.99 if part < whole else 100.0):.4g} %"
