"""Charts of the members of sync committees: ranked, or slot by slot."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.analysis import sync_committees as sync
from beaconframes.charts import heatmap, series
from beaconframes.charts.caption import captioned
from beaconframes.charts.model import Axis, Chart, Points, ReferenceLine
from beaconframes.charts.sync_participation import build_missing_marks
from beaconframes.frames import check_choice, collect, drop_missing, select_columns, to_polars

if TYPE_CHECKING:
    from collections.abc import Iterator

    from narwhals.stable.v2.typing import IntoFrame

Show = Literal["rates", "matrix"]

_MAX_NAMED = 20  # Up to this many validator indices fit below the axis.
_LOWEST = 5
_KINDS = (
    ("Signed", colours.CYAN),
    ("Not signed", colours.RED),
    ("Missed block", colours.SLATE),
    ("Orphaned block", colours.PURPLE),
)
_MISSED, _ORPHANED = 3, 4


@captioned
def sync_members(blocks: IntoFrame, committees: IntoFrame, *, show: Show = "rates") -> Chart:
    """Build the share of blocks that each member signed, or the map of members and slots."""
    check_choice("show", show, get_args(Show))
    rows = to_polars(sync.sync_members(blocks, committees))
    if rows.is_empty():
        reason = series.explain_empty(blocks, "no proposed block of these committees")
        reason = series.explain_empty(committees, reason)
        axis = Axis("Member, best first"), Axis("Blocks signed (%)")
        return Chart(*axis, empty_note=f"No members to draw: {reason}")
    single_note = "One member only" if rows.height == 1 else None
    if show == "matrix":
        return _build_matrix(blocks, committees, rows, single_note)
    named = rows.height <= _MAX_NAMED
    ranks = np.arange(rows.height) + (0 if named else 1)
    validators = tuple(str(index) for index in rows["validator_index"])
    style = (colours.BLUE, "o", 3)
    members = Points(
        ranks,
        rows["rate"].to_numpy() * 100,
        "Member",
        *style,
        takes_kwargs=True,
        validators=validators,
    )
    mean = 100 * int(rows["signed"].sum()) / int(rows["duties"].sum())
    mean_line = ReferenceLine(mean, f"All members: {mean:.2f} %")
    worst = rows.tail(_LOWEST).reverse().select("validator_index", "rate")
    lowest = [f"validator {index}: {100 * rate:.1f} %" for index, rate in worst.iter_rows()]
    return Chart(
        Axis(
            "Validator, best first" if named else "Member, best first",
            tick_labels=validators if named else (),
        ),
        Axis("Blocks signed (%)"),
        (members, mean_line),
        single_note=single_note,
        # The best members come first, so the lower left corner is empty.
        corner_note=None if named else "\n".join(["Lowest:", *lowest]),
        legend=(members.name, mean_line.name),
    )


def _build_matrix(
    blocks: IntoFrame, committees: IntoFrame, ranked: pl.DataFrame, single_note: str | None
) -> Chart:
    """Build the heatmap of members and slots, the best member first."""
    columns = ["slot", "epoch", "time", "status", "sync_aggregate_bits"]
    rows = collect(
        drop_missing(select_columns(blocks, columns, loader="load_epoch_slots"), columns[:4])
    )
    seats = collect(
        select_columns(committees, sync.SEAT_COLUMNS, loader="load_sync_committees")
    ).drop_nulls()
    committee_periods = seats.select("start_epoch", "end_epoch").unique()
    in_committee_period = pl.any_horizontal(
        *(pl.col("epoch").is_between(first, last) for first, last in committee_periods.iter_rows())
    )
    # Scheduled slots are not part of the map.
    is_past = pl.col("status").is_in(["proposed", "missed", "orphaned"])
    rows = sync.select_one_per_slot(rows.filter(in_committee_period, is_past))
    first, count, start, step = heatmap.find_columns(rows, "slot")
    first_periods = seats.group_by("validator_index").agg(pl.col("period").min())
    order = ranked.join(first_periods, on="validator_index").sort(
        "period", "rate", "validator_index", descending=[False, True, False]
    )
    validators = order["validator_index"].to_list()
    ranks = order.select("validator_index").with_row_index("row")
    periods = order["period"].n_unique()
    chart = heatmap.build_heatmap(
        _build_cells(rows, seats, ranks, first),
        validators,
        (count, start, step),
        number="slot",
        rows_label=f"Validator, best {'of each period ' if periods > 1 else ''}at the top",
        kinds=_KINDS,
        shares="Blocks signed (%)",
        counted=2,
        single_note=single_note,
    )
    if chart.legend:
        return chart
    # Where slots are merged, slots without a block are marked above the map.
    marks = tuple(build_missing_marks(rows, {"missed": 1.02, "orphaned": 1.05}))
    return replace(chart, layers=(*chart.layers, *marks), legend=tuple(m.name for m in marks))


def _build_cells(
    rows: pl.DataFrame, seats: pl.DataFrame, ranks: pl.DataFrame, first: int
) -> Iterator[pl.DataFrame]:
    """Yield the cells of each period: signatures, and a column per slot without a block."""
    for blocks, period_seats, bits in sync.split_by_period(rows, seats):
        member_rows = period_seats.join(ranks, on="validator_index", maintain_order="left")[
            "row"
        ].to_numpy()
        slots = blocks["slot"].to_numpy() - first
        yield pl.DataFrame(
            {
                "row": np.tile(member_rows, len(slots)),
                "column": np.repeat(slots, len(member_rows)),
                "kind": 2 - bits.ravel(),
            }
        )
        begin, end = (
            period_seats.row(0, named=True)["start_epoch"],
            period_seats.row(0, named=True)["end_epoch"],
        )
        without_block = rows.filter(
            pl.col("epoch").is_between(begin, end) & pl.col("status").is_in(["missed", "orphaned"])
        )
        kind = pl.when(pl.col("status") == "missed").then(_MISSED).otherwise(_ORPHANED)
        columns = without_block.select(column=pl.col("slot") - first, kind=kind.cast(pl.UInt8))
        members = pl.DataFrame({"row": member_rows}).unique()
        yield members.join(columns, how="cross").select("row", "column", "kind")
