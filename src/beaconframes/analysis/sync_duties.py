"""Duties in sync committees: each duty, and members compared with their committee."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.analysis.engines import open_frame, return_table
from beaconframes.analysis.sync_committees import SEAT_COLUMNS, select_one_per_slot, split_by_period
from beaconframes.errors import UsageError
from beaconframes.frames import collect, drop_missing, select_columns, to_polars
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

_SIGNED = ["slot", "epoch", "status", "sync_aggregate_bits"]
_BLOCK = [*_SIGNED, "time"]


@show_elapsed
def sync_duties(
    blocks: IntoFrameT,
    committees: IntoFrame,
    validators: Iterable[int] | None = None,
) -> IntoFrameT:
    """List for every seat and slot whether it signed. One row per slot and seat.

    Parameters
    ----------
    blocks
        Frame of `load_epoch_slots`.
    committees
        Frame of `load_sync_committees`: seat *i* is bit *i* of a block's ``sync_aggregate_bits``,
        counted from the lowest bit of the first byte.
    validators
        Validators whose seats are listed. Default: all. A committee has 512 seats and a day 7,200
        slots, which makes millions of rows.

    Returns
    -------
    The same kind of frame as *blocks*
        ``slot``, ``epoch``, ``time``, ``period``, ``seat``, ``validator_index``, ``status`` of the
        slot, and ``signed``: null where the slot has no block in the chain (``missed``,
        ``orphaned``, ``scheduled``), which is not a fault of the member. Slots of periods that are
        missing in *committees* are left out. Sorted by slot and seat. This computes eagerly.
    """
    source = open_frame(blocks, _BLOCK, loader="load_epoch_slots")
    rows = select_one_per_slot(collect(drop_missing(source, ["slot", "epoch", "time", "status"])))
    seats = _select_seats(committees, validators)
    signatures = [
        period_seats.select("seat", *(pl.Series(str(i), bits[i] > 0) for i in range(len(proposed))))
        .unpivot(index="seat", variable_name="turn", value_name="signed")
        .join(proposed.select("slot").with_row_index("turn").cast({"turn": pl.String}), on="turn")
        .select("slot", "seat", "signed")
        for proposed, period_seats, bits in split_by_period(rows, seats)
    ]
    empty = pl.DataFrame(schema={"slot": pl.Int64, "seat": pl.Int64, "signed": pl.Boolean})
    duties = (
        rows.drop("sync_aggregate_bits")
        .join_where(
            seats,
            pl.col("epoch") >= pl.col("start_epoch"),
            pl.col("epoch") <= pl.col("end_epoch"),
        )
        .join(pl.concat([empty, *signatures]), on=["slot", "seat"], how="left")
        .select(*("slot", "epoch", "time", "period", "seat", "validator_index", "status", "signed"))
        .sort("slot", "seat")
    )
    return return_table(duties, source, blocks)


@show_elapsed
def sync_against_committee(
    blocks: IntoFrameT,
    committees: IntoFrame,
    validators: Iterable[int] | None = None,
) -> IntoFrameT:
    """Compare members with their whole committee. One row per validator and period.

    ``duties`` is the number of blocks times the seats held, ``signed`` the number of signatures and
    ``rate`` the share; ``committee_rate`` is the rate of all seats in *committees* over the same
    blocks, and ``difference`` is ``rate`` minus ``committee_rate``. ``blocks`` is the number of
    slots with a block in the chain; ``slots_without_block`` is the number of the others, which
    count for no member.

    The arguments are those of `sync_duties`; *committees* should have all seats of the committee.
    Sorted by period and validator. This computes eagerly.
    """
    source = open_frame(blocks, _SIGNED, loader="load_epoch_slots")
    rows = select_one_per_slot(collect(drop_missing(source, ["slot", "epoch", "status"])))
    seats = _select_seats(committees, None)
    is_missing = pl.col("status").is_in(["missed", "orphaned"])
    parts = []
    for proposed, period_seats, bits in split_by_period(rows, seats):
        first, last = period_seats["start_epoch"][0], period_seats["end_epoch"][0]
        missing_blocks = rows.filter(pl.col("epoch").is_between(first, last) & is_missing).height
        committee_rate = int(bits.sum()) / bits.size
        signed = period_seats.with_columns(signed=pl.Series(bits.sum(axis=0), dtype=pl.Int64))
        parts.append(
            signed.group_by("period", "validator_index")
            .agg(
                seats=pl.len().cast(pl.Int64),
                blocks=pl.lit(proposed.height, pl.Int64),
                slots_without_block=pl.lit(missing_blocks, pl.Int64),
                duties=pl.len().cast(pl.Int64) * proposed.height,
                signed=pl.sum("signed"),
            )
            .with_columns(
                rate=pl.col("signed") / pl.col("duties"), committee_rate=pl.lit(committee_rate)
            )
            .with_columns(difference=pl.col("rate") - pl.col("committee_rate"))
        )
    counts = ["period", "validator_index", "seats", "blocks", "slots_without_block", "duties"]
    empty = pl.DataFrame(
        schema=dict.fromkeys([*counts, "signed"], pl.Int64)
        | dict.fromkeys(["rate", "committee_rate", "difference"], pl.Float64)
    )
    result = pl.concat([empty, *parts])
    if validators is not None:
        result = result.filter(pl.col("validator_index").is_in(_list_indices(validators)))
    return return_table(result.sort("period", "validator_index"), source, blocks)


@show_elapsed
def sync_members(blocks: IntoFrameT, committees: IntoFrame) -> IntoFrameT:
    """Count the signatures of each member of sync committees. One row per validator, best first.

    ``duties`` is the number of proposed blocks times the seats that the validator held then (a
    validator can hold several seats), ``signed`` the number of bits that are set, ``rate`` the
    share. Blocks of periods that are missing in *committees* are left out, and so are members
    without a duty. This computes eagerly.
    """
    counts = ["seats", "duties", "signed"]
    members = to_polars(sync_against_committee(blocks, committees))
    sums = members.group_by("validator_index").agg(pl.sum(*counts))
    rates = sums.with_columns(rate=pl.col("signed") / pl.col("duties"))
    ranked = rates.sort("rate", "validator_index", descending=[True, False])
    return return_table(ranked, open_frame(blocks, _SIGNED, loader="load_epoch_slots"), blocks)


def _select_seats(committees: IntoFrame, validators: Iterable[int] | None) -> pl.DataFrame:
    seats = collect(
        select_columns(committees, SEAT_COLUMNS, loader="load_sync_committees")
    ).drop_nulls()
    seats = seats.cast(dict.fromkeys(SEAT_COLUMNS, pl.Int64))
    if validators is not None:
        seats = seats.filter(pl.col("validator_index").is_in(_list_indices(validators)))
    return seats


def _list_indices(validators: Iterable[int]) -> list[int]:
    try:
        return pl.Series(list(validators), dtype=pl.Int64, strict=True).to_list()
    except (TypeError, OverflowError) as error:
        raise UsageError(
            f"validators={validators!r} are not indices",
            hint="Pass whole numbers, such as range(9).",
        ) from error
