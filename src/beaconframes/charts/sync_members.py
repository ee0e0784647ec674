"""Charts of the members of sync committees: ranked, slot by slot, or in strips."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import polars as pl

from beaconframes import analysis, colours
from beaconframes.analysis import sync_committees as sync
from beaconframes.charts import heatmap, series
from beaconframes.charts.model import Axis, Chart, Heatmap, Points, ReferenceLine
from beaconframes.charts.sync_participation import build_missing_marks
from beaconframes.frames import check_choice, collect, read_rows, select_columns, to_polars

if TYPE_CHECKING:
    from collections.abc import Iterator

    from narwhals.stable.v2.typing import IntoFrame

Show = Literal["rates", "matrix"]

_MAX_NAMED = 20  # Up to this many validator indices fit below the axis.
_LOWEST = 5
_MOST_LISTED = 60  # More indices do not fit into the corner of the chart.
_STRIPS, _MOST_COLUMNS = 30, 200  # Of the chart of a report.
_KINDS = (("Signed", colours.BLUE), ("Not signed", colours.RED))


def sync_members(blocks: IntoFrame, committees: IntoFrame, *, show: Show = "rates") -> Chart:
    """Draw the share of blocks that each member of sync committees signed, best first.

    *blocks* is the result of ``bf.load_epoch_slots(...)``, and *committees* the result of
    ``bf.load_sync_committees(...)`` or some of its rows. The share counts the proposed blocks of
    the member's periods that are in *blocks*. Members without a signature are named.

    With *show* ``"matrix"``, there is a row per member and a column per slot instead: signed or not
    signed. Slots without a block, which no member could sign, are empty, and marked above. With
    more than 1,024 slots or members, a cell has several of them, as the axis labels state; its
    colour is then the share of blocks signed.

    *kwargs* go to the ``Axes.plot`` of the members, or to ``Axes.imshow``.
    """
    check_choice("show", show, get_args(Show))
    rows = to_polars(analysis.sync_members(blocks, committees))
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
    rates = rows["rate"].to_numpy() * 100
    members = Points(
        ranks, rates, "Member", colours.BLUE, "o", 3, takes_kwargs=True, validators=validators
    )
    mean = 100 * int(rows["signed"].sum()) / int(rows["duties"].sum())
    mean_line = ReferenceLine(mean, f"All members: {mean:.2f} %")
    return Chart(
        Axis(
            "Validator, best first" if named else "Member, best first",
            tick_labels=validators if named else (),
        ),
        Axis("Blocks signed (%)"),
        (members, mean_line),
        single_note=single_note,
        # The best members come first, so the lower left corner is empty.
        corner_note=None if named else _name_lowest(rows),
        legend=(members.name, mean_line.name),
    )


def _name_lowest(rows: pl.DataFrame) -> str:
    """Name every member without a signature, and the lowest of the others."""
    idle = rows.filter(signed=0)["validator_index"].sort().to_list()
    lines = []
    if idle:
        listed = ", ".join(map(str, idle[:_MOST_LISTED]))
        if len(idle) > _MOST_LISTED:
            listed += f" and {len(idle) - _MOST_LISTED:,} more"
        lines = textwrap.wrap(f"Signed no block ({len(idle):,}): {listed}", 46)
    lowest = rows.filter(pl.col("signed") > 0, pl.col("rate") < 1).tail(_LOWEST).reverse()
    if lowest.height:
        lines.append("Lowest of the others:" if idle else "Lowest:")
        for index, rate in lowest.select("validator_index", "rate").iter_rows():
            lines.append(f"validator {index}: {100 * rate:.1f} %")
    return "\n".join(lines)


def _build_matrix(
    blocks: IntoFrame, committees: IntoFrame, ranked: pl.DataFrame, single_note: str | None
) -> Chart:
    """Build the heatmap of members and slots, the best member first."""
    columns = ["slot", "epoch", "time", "status", "sync_aggregate_bits"]
    rows = read_rows(blocks, columns, loader="load_epoch_slots", required=columns[:4])
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
        quantity="Blocks signed (%)",
        counted=2,
        single_note=single_note,
    )
    # Slots without a block are marked above the map: columns of them would hide the signatures.
    marks = tuple(build_missing_marks(rows, {"missed": 1.02, "orphaned": 1.05}))
    names = tuple(mark.name for mark in marks)
    return replace(chart, layers=(*chart.layers, *marks), legend=(*chart.legend, *names))


def _build_cells(
    rows: pl.DataFrame, seats: pl.DataFrame, ranks: pl.DataFrame, first: int
) -> Iterator[pl.DataFrame]:
    """Yield the cells of each period, one per seat and proposed block."""
    for blocks, period_seats, bits in sync.split_by_period(rows, seats):
        members = period_seats.join(ranks, on="validator_index", maintain_order="left")
        member_rows = members["row"].to_numpy()
        slots = blocks["slot"].to_numpy() - first
        yield pl.DataFrame(
            {
                "row": np.tile(member_rows, len(slots)),
                "column": np.repeat(slots, len(member_rows)),
                "kind": 2 - bits.ravel(),
            }
        )


def build_sync_chart(duties: pl.DataFrame) -> Chart:
    """Build the strips of the members that signed least, from `analysis.sync_income` by epoch."""
    reward = pl.sum("reward_gwei")
    rate = 100 * reward / (reward + pl.sum("penalty_gwei"))
    rates = duties.group_by("validator_index").agg(rate=rate).sort("rate", "validator_index")
    members = rates.head(_STRIPS)["validator_index"].sort()
    first, count, start, length = heatmap.find_columns(duties, "epoch")
    step = heatmap.compute_bin_size(count, _MOST_COLUMNS)
    size = -(-count // step)
    rows = pl.DataFrame({"validator_index": members}).with_row_index("row")
    column = ((pl.col("epoch") - first) // step).alias("column")
    cells = duties.group_by("validator_index", column).agg(rate=rate)
    cells = cells.join(rows, on="validator_index")
    table = np.full((members.len(), size), np.nan)
    table[cells["row"].to_numpy(), cells["column"].to_numpy()] = cells["rate"].to_numpy()
    names = [str(index) for index in members]
    strips = Heatmap(start, step * length, names, table, quantity="Signed (%)")
    times = start + np.arange(size) * step * length
    return Chart(Axis("Time (UTC)", "epoch", times), Axis("Validator"), (strips,))
