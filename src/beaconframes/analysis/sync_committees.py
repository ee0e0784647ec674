"""Participation of sync committees: over time, and by member."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import polars as pl

from beaconframes.analysis.engines import check_distinct, open_frame, return_table
from beaconframes.errors import UsageError
from beaconframes.frames import check_choice, collect, drop_missing
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT
    from numpy.typing import NDArray

Step = Literal["slot", "epoch"]

_BLOCKS = "load_epoch_slots"
SEAT_COLUMNS = ("period", "seat", "validator_index", "start_epoch", "end_epoch")


@show_elapsed
def sync_participation(
    blocks: IntoFrameT, committees: IntoFrame | None = None, *, every: Step = "slot"
) -> IntoFrameT:
    """Compute the participation of sync committees. One row per slot or epoch.

    A row per slot has its ``status``; a slot without a block in the chain has no participation. A
    row per epoch has the mean, lowest and highest participation of its proposed blocks, and the
    numbers of slots with and without a proposed block.

    With *committees*, any seats of any periods, ``seats_participation`` is that of these seats
    alone, decoded from the bits of the blocks. This computes eagerly.
    """
    check_choice("every", every, get_args(Step))
    columns = ["slot", "epoch", "time", "status", "sync_aggregate_participation"]
    if committees is not None:
        columns.append("sync_aggregate_bits")
    source = open_frame(blocks, columns, loader=_BLOCKS)
    rows = select_one_per_slot(collect(drop_missing(source, columns[:4])))
    share = pl.col("sync_aggregate_participation").cast(pl.Float64)
    proposed = (pl.col("status") == "proposed") & share.is_finite()
    rows = rows.with_columns(pl.when(proposed).then(share).alias("participation"))
    names = ["participation"]
    if committees is not None:
        rows = rows.join(
            _compute_seat_participation(rows, committees),
            on="slot",
            how="left",
            maintain_order="left",
        )
        names.append("seats_participation")
    if every == "slot":
        return return_table(rows.select(*columns[:4], *names), source, blocks)
    per_epoch = rows.group_by("epoch").agg(
        pl.col("time").min(),
        pl.col(*names).mean(),
        pl.col("participation").min().alias("lowest"),
        pl.col("participation").max().alias("highest"),
        (pl.col("status") == "proposed").sum().cast(pl.Int64).alias("proposed_blocks"),
        pl.col("status").is_in(["missed", "orphaned"]).sum().cast(pl.Int64).alias("lost_blocks"),
    )
    return return_table(per_epoch.sort("epoch"), source, blocks)


def decode_bits(texts: Sequence[str], slots: Sequence[int]) -> NDArray[np.uint8]:
    """Decode the hex texts of sync aggregates into zeros and ones, one row per text.

    Column *i* is seat *i*: bits are counted from the lowest bit of the first byte.
    """
    for slot, text in zip(slots, texts, strict=True):
        if len(text) != len(texts[0]):
            raise UsageError(
                f"sync_aggregate_bits of slot {slot} has {len(text)} characters, others of its "
                f"committee have {len(texts[0])}",
                hint="Pass the blocks of one chain at a time.",
            )
    try:
        packed = bytes.fromhex("".join(text.removeprefix("0x") for text in texts))
    except ValueError:
        raise UsageError(
            f"sync_aggregate_bits of slots {slots[0]} to {slots[-1]} is not hex text",
            hint=f"Keep it as bf.{_BLOCKS}(...) returns it.",
        ) from None
    rows = np.frombuffer(packed, np.uint8).reshape(len(texts), -1)
    return np.unpackbits(rows, axis=1, bitorder="little")


def select_one_per_slot(rows: pl.DataFrame) -> pl.DataFrame:
    """Keep one block per slot: the proposed block before an orphaned one."""
    rank = pl.col("status").replace_strict({"proposed": 0, "orphaned": 1}, default=2)
    return rows.sort("slot", rank).unique("slot", keep="first", maintain_order=True)


def split_by_period(
    rows: pl.DataFrame, committees: IntoFrame
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame, NDArray[np.uint8]]]:
    """Yield, per period, its proposed blocks, its seats, and the signatures by block and seat.

    One period at a time, because the bits of a year of blocks are more than a gigabyte.
    """
    seats = collect(
        open_frame(committees, SEAT_COLUMNS, loader="load_sync_committees")
    ).drop_nulls()
    check_distinct(seats, ["period", "seat"], loader="load_sync_committees")
    proposed = rows.filter(
        (pl.col("status") == "proposed") & (pl.col("sync_aggregate_bits").str.len_chars() > 2)
    )
    for _, period_seats in seats.sort("period", "seat").group_by("period", maintain_order=True):
        first, last = (
            period_seats.row(0, named=True)["start_epoch"],
            period_seats.row(0, named=True)["end_epoch"],
        )
        blocks = proposed.filter(pl.col("epoch").is_between(first, last))
        if blocks.is_empty():
            continue
        bits = decode_bits(blocks["sync_aggregate_bits"].to_list(), blocks["slot"].to_list())
        positions = period_seats["seat"].to_numpy()
        wrong = positions[(positions < 0) | (positions >= bits.shape[1])]
        if wrong.size:
            raise UsageError(
                f"seat {wrong[0]} of period {period_seats['period'][0]} is outside of the "
                f"{bits.shape[1]} bits of its blocks",
                hint="Pass blocks and committees of the same chain.",
            )
        yield blocks, period_seats, bits[:, positions]


def _compute_seat_participation(rows: pl.DataFrame, committees: IntoFrame) -> pl.DataFrame:
    """Compute the participation of the seats in *committees*. One row per proposed block."""
    empty = pl.DataFrame(schema={"slot": rows.schema["slot"], "seats_participation": pl.Float64})
    parts = [
        blocks.select("slot", seats_participation=pl.Series(bits.mean(axis=1)))
        for blocks, _, bits in split_by_period(rows.drop_nulls("sync_aggregate_bits"), committees)
    ]
    return pl.concat([empty, *parts])
