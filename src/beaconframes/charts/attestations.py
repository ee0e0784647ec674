"""Charts of attestation duties: outcome by epoch, and inclusion distance."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.analysis.engines import check_distinct
from beaconframes.charts import heatmap, series
from beaconframes.charts.model import Axis, Bars, Chart, Heatmap
from beaconframes.frames import check_choice, check_count

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.charts.model import Kinds

Show = Literal["map", "distance"]

_COLUMNS = ["validator_index", "epoch", "time", "status", "attester_slot"]
_MAX_DISTANCE = 10  # One bar has all distances of at least this.
_MAX_ROWS = 100  # More validators share rows: a row needs a few pixels to be seen.
_PENDING = 4
_FEW = 5  # Percent of the duties of a merged cell.


def attestations(frame: IntoFrame, *, show: Show = "map", late: int = 2) -> Chart:
    """Draw the outcome of attestation duties: a row per validator, a column per epoch.

    *frame* is the result of ``bf.load_attestations(...)``. An attestation is late if it was
    included *late* or more slots after its own slot. A missed attestation may have had no block
    that could include it. A pending one can still be included; it is grey, and not counted. With
    more than 100 validators or 1,024 epochs, a cell has several of them, as the axis labels state.
    It then is missed if more than 5 % of its duties are, or else late if more than 5 % of them are.

    With *show* ``"distance"``, bars show the number of slots until inclusion, in percent of the
    duties that are not pending.

    *kwargs* go to ``Axes.imshow``, or to ``Axes.bar``.
    """
    check_choice("show", show, get_args(Show))
    hint = "Pass the number of slots from which an attestation is late; 1 is the next slot."
    check_count("late", late, hint=hint)
    rows = series.read_rows(
        frame, _COLUMNS, loader="load_attestations", also=["inclusion_slot"]
    ).filter(pl.col("status").is_in(["included", "missed", "pending"]))
    check_distinct(frame, ["validator_index", "epoch"], loader="load_attestations")
    reason = series.explain_empty(frame, "no duty with an epoch, a time and a status")
    empty_note = f"No attestations to draw: {reason}" if rows.is_empty() else None
    single_note = "One attestation only" if rows.height == 1 else None
    distance = pl.col("inclusion_slot").cast(pl.Int64) - pl.col("attester_slot").cast(pl.Int64)
    rows = rows.with_columns(distance=distance)
    if show == "distance":
        if not empty_note and (rows["status"] == "pending").all():
            empty_note = "No attestations to draw: all of them are pending"
        return _build_distances(rows, empty_note, single_note)
    if empty_note:
        axis = Axis("Epoch (UTC)", "epoch"), Axis("Validator")
        return Chart(*axis, empty_note=empty_note)
    first, count, start, step = heatmap.find_columns(rows, "epoch")
    validators = rows["validator_index"].unique().sort()
    ranks = validators.to_frame().with_row_index("row")
    kind = (
        pl.when(pl.col("status") == "pending")
        .then(_PENDING)
        .when(pl.col("status") == "missed")
        .then(3)
        .when(pl.col("distance") >= late)
        .then(2)
        .otherwise(1)
    )
    cells = rows.join(ranks, on="validator_index").select(
        "row", column=pl.col("epoch") - first, kind=kind.cast(pl.UInt8)
    )
    in_time_label = (
        "Included in the next slot" if late == 2 else f"Included within {late - 1} slots"
    )
    late_label = f"Included late ({late} slots\nbehind or more)"
    kinds = [(in_time_label, colours.BLUE), (late_label, colours.AMBER), ("Missed", colours.RED)]
    if (rows["status"] == "pending").any():
        kinds.append(("Pending", colours.GREY))
    chart = heatmap.build_heatmap(
        [cells],
        validators.to_list(),
        (count, start, step),
        number="epoch",
        rows_label="Validator",
        kinds=tuple(kinds),
        quantity=f"{in_time_label} (% of duties)",
        counted=3,
        single_note=single_note,
        most_rows=_MAX_ROWS,
    )
    chart = replace(chart, validators=len(validators))
    if chart.legend:
        return chart
    merged_kinds = (
        kinds[0],
        (f"Late: more than {_FEW} %", colours.AMBER),
        (f"Missed: more than {_FEW} %", colours.RED),
        ("Missed: more than half", colours.INK),
        ("Pending", colours.GREY),
    )
    return _color_merged_cells(chart, cells, step, merged_kinds)


def _color_merged_cells(
    chart: Chart, cells: pl.DataFrame, epoch: np.timedelta64, kinds: Kinds
) -> Chart:
    """Draw each merged cell in one colour: that of missed or late duties, if they are not few."""
    (layer,) = (layer for layer in chart.layers if isinstance(layer, Heatmap))
    shape = layer.cells.shape
    row = pl.col("row") // layer.validators_per_row
    column = pl.col("column") // int(layer.step // epoch)
    place = cells.select((row * shape[1] + column) * (_PENDING + 1) + pl.col("kind")).to_series()
    counts = np.bincount(place.to_numpy(), minlength=layer.cells.size * (_PENDING + 1))
    _, in_time, late, missed, pending = np.moveaxis(counts.reshape(*shape, -1), -1, 0)
    settled = in_time + late + missed
    is_kind = [
        100 * missed > 50 * settled,
        100 * missed > _FEW * settled,
        100 * late > _FEW * settled,
        settled > 0,
        pending > 0,
    ]
    numbers = np.select(is_kind, [4, 3, 2, 1, 5]).astype(np.uint8)
    legend = tuple(name for number, (name, _) in enumerate(kinds, 1) if (numbers == number).any())
    drawn = replace(layer, cells=numbers, kinds=kinds, percent=layer.cells)
    return replace(chart, layers=(drawn,), legend=legend)


def _build_distances(rows: pl.DataFrame, empty_note: str | None, single_note: str | None) -> Chart:
    y = Axis("Share of attestation duties (%)")
    if empty_note:
        return Chart(Axis("Inclusion distance (slots)"), y, empty_note=empty_note)
    settled = rows.filter(pl.col("status") != "pending").height
    included = rows.filter(pl.col("status") == "included")["distance"].drop_nulls()
    furthest = min(_MAX_DISTANCE, max([1, *included]))
    counts = [int((included == distance).sum()) for distance in range(1, furthest)]
    counts.append(int((included >= furthest).sum()))
    last = f"{furthest}+" if (included > furthest).any() else str(furthest)
    missed = int((rows["status"] == "missed").sum())
    share = np.array([*counts, missed]) * 100 / settled
    names = (*(str(distance) for distance in range(1, furthest)), last, "missed")
    ranks = np.arange(len(names))
    labels = tuple(_format_share(number) for number in share)
    texts = (*(f"distance {name}" for name in names[:-1]), "missed")
    texts = tuple(f"{label} % {text}" for text, label in zip(texts, labels, strict=True))
    kinds = {"Included": colours.BLUE, f"Missed ({missed:,})": colours.RED}
    bars = tuple(
        Bars(ranks[part], share[part], name, colour, labels=labels[part], texts=texts[part])
        for (name, colour), part in zip(kinds.items(), (slice(-1), slice(-1, None)), strict=True)
    )
    note = f"{settled:,} duties"
    if pending := rows.height - settled:
        note += f", {pending:,} more are pending"
    return Chart(
        Axis("Inclusion distance (slots)", tick_labels=names),
        y,
        bars,
        single_note=single_note,
        legend=tuple(kinds),
        note=note,
    )


def _format_share(share: float) -> str:
    """Format a percentage: 0 is none at all, and 100 all."""
    if 0 < share < 0.01:
        return "<0.01"
    if 99.99 < share < 100:
        return ">99.99"
    return f"{share:.2f}".rstrip("0").rstrip(".")
