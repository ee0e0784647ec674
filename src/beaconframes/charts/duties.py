"""Chart of duties in a row per validator: attestations of a day, sync seats, next proposals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes import colours
from beaconframes.analysis.engines import resolve_chain
from beaconframes.charts import series
from beaconframes.charts.model import Axis, Chart, Points
from beaconframes.errors import UsageError
from beaconframes.frames import check_count

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.calendar import Chain

# Name, colour, symbol, and size in points.
_KINDS = {
    "included": ("Attestation in time", colours.BLUE, "|", 10),
    "late": ("Attestation late", colours.AMBER, "|", 10),
    "missed": ("Attestation missed", colours.RED, "|", 10),
    "pending": ("Attestation pending", colours.GREY, "|", 10),
    "seat": ("Next epoch in the sync committee", colours.CYAN, "|", 6),
    "proposal": ("Next proposal", colours.PURPLE, "D", 7),
}
_COLUMNS = ["validator_index", "epoch", "time", "status", "attester_slot"]
_MOST_ROWS = 10


def duties(
    frame: IntoFrame,
    upcoming: IntoFrame | None = None,
    committees: IntoFrame | None = None,
    *,
    late: int = 2,
) -> Chart:
    """Draw the duties of each validator in a row: the last 24 hours, and what comes next.

    *frame* is the result of ``bf.load_attestations(...)``: each attestation of its last day is a
    mark at its slot. It is late if it was included *late* or more slots after its own slot. With
    *upcoming*, the result of ``bf.v2.load_upcoming_duty_slots(...)``, diamonds are the next
    proposals. With *committees*, the result of ``bf.load_sync_committees(...)``, small marks are
    the next epochs in which the validator is in the sync committee. At most 10 validators have a
    row. ``figsize=(7.6, 2)`` suffices for one.

    *kwargs* go to ``Axes.plot``.
    """
    check_count("late", late, hint="Pass a number of slots; 1 is the next slot.")
    rows = series.read_rows(frame, _COLUMNS, loader="load_attestations", also=["inclusion_slot"])
    rows = rows.filter(pl.col("status").is_in(list(_KINDS)))
    if rows.is_empty():
        reason = series.explain_empty(frame, "no duty with an epoch, a time and a status")
        axes = Axis("Slot (UTC)", "slot"), Axis("Validator")
        return Chart(*axes, empty_note=f"No duties to draw: {reason}")
    chain = resolve_chain(None, (rows, "epoch"))
    rows = rows.filter(pl.col("epoch") > pl.col("epoch").max() - chain.epochs_per_day)
    validators = rows["validator_index"].unique().sort()
    if len(validators) > _MOST_ROWS:
        raise UsageError(
            f"{len(validators):,} validators have no room in the chart duties",
            hint=f"Pass rows of {_MOST_ROWS} or fewer, or use the chart attestations.",
        )
    distance = pl.col("inclusion_slot") - pl.col("attester_slot")
    is_late = (pl.col("status") == "included") & (distance >= late)
    kind = pl.when(is_late).then(pl.lit("late")).otherwise("status")
    parts = [rows.select("validator_index", kind=kind, slot="attester_slot")]
    if committees is not None:
        parts.append(_list_seats(committees, chain, rows["epoch"].max()))
    if upcoming is not None:
        parts.append(_list_proposals(upcoming))
    ranks = validators.to_frame().with_row_index("row")
    drawn = pl.concat(parts).join(ranks, on="validator_index", maintain_order="left")
    drawn = drawn.with_columns(time=chain.time_expr("slot", pl.col("slot")))
    layers = tuple(
        _build_points(drawn.filter(pl.col("kind") == kind), kind)
        for kind in _KINDS
        if kind in drawn["kind"]
    )
    names = tuple(map(str, validators))
    return Chart(
        Axis("Slot (UTC)", "slot", series.to_datetime64(drawn["time"])),
        Axis("Validator", tick_labels=names, reverse=True),
        layers,
        single_note="One attestation only" if rows.height == 1 else None,
        legend=tuple(layer.name for layer in layers),
        validators=len(names),
    )


def _list_seats(committees: IntoFrame, chain: Chain, latest: Any) -> pl.DataFrame:
    """List the first slots of the epochs with a sync seat, after the epoch *latest*."""
    columns = ["validator_index", "start_epoch", "end_epoch"]
    seats = series.read_rows(committees, columns, loader="load_sync_committees").unique(columns)
    epochs = pl.int_ranges(pl.max_horizontal("start_epoch", latest + 1), pl.col("end_epoch") + 1)
    listed = seats.select("validator_index", slot=epochs).explode("slot").drop_nulls()
    slot = chain.first_slot_of(pl.col("slot"))
    return listed.select("validator_index", kind=pl.lit("seat"), slot=slot)


def _list_proposals(upcoming: IntoFrame) -> pl.DataFrame:
    columns = ["validator_index", "duty", "slot"]
    found = series.read_rows(upcoming, columns, loader="v2.load_upcoming_duty_slots")
    found = found.filter(pl.col("duty") == "proposal")
    return found.select("validator_index", kind=pl.lit("proposal"), slot="slot")


def _build_points(rows: pl.DataFrame, kind: str) -> Points:
    """Build the marks of one kind, with the validator, slot and time of each in its hover text."""
    name, colour, symbol, size = _KINDS[kind]
    texts = rows.select(
        pl.format(
            "{}, validator {}<br>slot {}, {} UTC",
            pl.lit(name),
            "validator_index",
            "slot",
            pl.col("time").dt.strftime("%b %-d, %H:%M:%S"),
        )
    )
    return Points(
        series.to_datetime64(rows["time"]),
        series.to_floats(rows["row"]),
        f"{name} ({rows.height:,})",
        colour,
        symbol,
        size,
        takes_kwargs=True,
        texts=tuple(texts.to_series()),
    )
