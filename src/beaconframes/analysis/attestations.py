"""Effectiveness of attestations, and the reasons of late and missed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.analysis.aggregation import aggregate
from beaconframes.analysis.engines import (
    check_distinct,
    find_range,
    list_columns,
    move_to_engine,
    open_frame,
    resolve_chain,
    return_lazy,
    sort_rows,
)
from beaconframes.analysis.sync_committees import select_one_per_slot
from beaconframes.frames import drop_missing, map_rows, read_rows
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.analysis.engines import Lazy
    from beaconframes.calendar import Chain

_DUTY_COLUMNS = ["validator_index", "epoch", "attester_slot", "inclusion_slot", "status"]
_COUNTS = ["duties", "included", "missed", "late", "distance"]
_SHARES = {"inverse": "effectiveness", "possible": "effectiveness_possible"}


@show_elapsed
def attestation_effectiveness(
    attestations: IntoFrameT,
    blocks: IntoFrame | None = None,
    *,
    by: str | Sequence[str] = "validator_index",
    until: int | None = None,
) -> IntoFrameT:
    """Compute the effectiveness of attestations. One row per validator or group.

    Parameters
    ----------
    attestations
        Frame of `load_attestations`.
    blocks
        Frame of `load_epoch_slots`, of the same epochs and the one after. It separates slots
        without a block from faults of the validator.
    by
        Group columns. ``()`` is all validators together.
    until
        Last epoch that counts. Default: two before the latest epoch of the frame, because later
        duties can still be included. This reads the latest epoch eagerly. Duties with the
        status ``pending`` never count.

    Returns
    -------
    The same kind of frame
        ``duties``, ``included``, ``missed`` and ``late`` (included later than in the next slot) are
        counts. ``mean_distance`` is the mean number of slots until inclusion, of those included.
        ``effectiveness`` is the mean of 1 / distance over all duties, with 0 for a missed duty; the
        service's efficiency is 2 minus it. With *blocks*, ``effectiveness_possible`` measures the
        distance from the first slot that had a block instead; for slots missing in *blocks* it
        counts the distance from the next slot. Sorted, except for Dask.
    """
    groups = list_columns(by, [*_COUNTS, "mean_distance", *_SHARES, *_SHARES.values()])
    rows = _select_settled_duties(attestations, [*_DUTY_COLUMNS, *groups], until)
    names = ["inverse"]
    if blocks is not None:
        rows = rows.join(
            move_to_engine(_find_first_blocks(blocks), rows), on="attester_slot", how="left"
        )
        names.append("possible")
    rows = map_rows(rows, lambda part: _add_counts(part, [*groups, *_COUNTS, *names]))
    sums = aggregate(rows, groups, _COUNTS, **{name: ("sum", name) for name in names})
    result = map_rows(sums, lambda part: _compute_rates(part, groups, names))
    return return_lazy(sort_rows(result, groups), attestations)


@show_elapsed
def attestation_faults(
    attestations: IntoFrameT,
    blocks: IntoFrame | None = None,
    *,
    until: int | None = None,
    chain: Chain | str | None = None,
) -> IntoFrameT:
    """List missed and late attestations. One row per duty not included in the next slot.

    ``fault`` is ``missed`` or ``late``. ``reason`` is ``block missing`` where no block could have
    included the attestation earlier (for a missed one: until the end of the next epoch),
    ``own fault`` where an earlier block did not include it, and null where *blocks* does not cover
    the slots.

    The arguments are those of `attestation_effectiveness`; *chain* sets the slots per epoch.
    Its default is the chain of *attestations*, from ``time``; mainnet without times.
    Columns: ``validator_index``, ``epoch``, ``attester_slot``, ``inclusion_slot``, ``distance``,
    ``fault``, ``reason``. Sorted, except for Dask.
    """
    rows = _select_settled_duties(attestations, _DUTY_COLUMNS, until)
    slots_per_epoch = resolve_chain(chain, (attestations, "epoch")).slots_per_epoch
    if blocks is not None:
        rows = rows.join(
            move_to_engine(_find_first_blocks(blocks), rows), on="attester_slot", how="left"
        )
    result = map_rows(
        rows, lambda part: _classify_faults(part, slots_per_epoch, has_blocks=blocks is not None)
    )
    keys = ["epoch", "validator_index"]
    return return_lazy(sort_rows(result, keys), attestations)


def _select_settled_duties(attestations: IntoFrame, columns: list[str], until: int | None) -> Lazy:
    """Return the duties that can no longer be included."""
    groups = [name for name in columns if name not in _DUTY_COLUMNS]
    check_distinct(attestations, _DUTY_COLUMNS[:2], groups, loader="load_attestations")
    needed = ["epoch", "attester_slot", "status"]
    rows = drop_missing(open_frame(attestations, columns, loader="load_attestations"), needed)
    last = find_range(rows, "epoch")[1] - 2 if until is None else until
    return rows.filter(nw.col("epoch") <= last, nw.col("status") != "pending")


def _compute_distance() -> nw.Expr:
    """Return the expression for the slots until inclusion; null for missed duties."""
    return nw.when(nw.col("status") == "included").then(
        (nw.col("inclusion_slot") - nw.col("attester_slot")).cast(nw.Int64)
    )


def _add_counts(rows: Lazy, columns: list[str]) -> Lazy:
    distance = _compute_distance()
    included = ~distance.is_null()
    possible = nw.lit(0.0)
    if "possible" in columns:
        wait = nw.col("first_block") - nw.col("attester_slot")
        possible = wait.fill_null(1) / distance
    flags = {
        "duties": nw.lit(1),
        "included": included,
        "missed": ~included,
        "late": (distance > 1).fill_null(value=False),
        "distance": distance.fill_null(0),
    }
    return rows.with_columns(
        *(flag.cast(nw.Int64).alias(name) for name, flag in flags.items()),
        (1 / distance).fill_null(0.0).alias("inverse"),
        possible.fill_null(0.0).alias("possible"),
    ).select(*columns)


def _compute_rates(sums: Lazy, groups: list[str], names: list[str]) -> Lazy:
    mean_distance = nw.when(nw.col("included") > 0).then(nw.col("distance") / nw.col("included"))
    return sums.select(
        *groups,
        *_COUNTS[:-1],
        mean_distance.alias("mean_distance"),
        *((nw.col(name) / nw.col("duties")).alias(_SHARES[name]) for name in names),
    )


def _classify_faults(rows: Lazy, slots_per_epoch: int, *, has_blocks: bool) -> Lazy:
    distance = _compute_distance()
    missed = distance.is_null()
    reason = nw.lit(None, nw.String)
    if has_blocks:
        first_block, last_slot = nw.col("first_block"), (nw.col("epoch") + 2) * slots_per_epoch - 1
        ends_at = nw.when(missed).then(last_slot + 1).otherwise(nw.col("inclusion_slot"))
        # Null if `blocks` does not show whether there was an earlier block.
        reason = nw.when(first_block < ends_at).then(nw.lit("own fault"))
        no_block = (first_block >= ends_at) | (nw.col("covered_until") >= ends_at - 1)
        reason = reason.otherwise(nw.when(no_block).then(nw.lit("block missing")))
    return (
        rows.filter(missed | (distance > 1))
        .with_columns(
            nw.when(missed).then(nw.lit("missed")).otherwise(nw.lit("late")).alias("fault"),
            distance.alias("distance"),
            reason.alias("reason"),
        )
        .select(
            *(nw.col(name).cast(nw.Int64) for name in _DUTY_COLUMNS[:-1]),
            "distance",
            "fault",
            "reason",
        )
    )


def _find_first_blocks(blocks: IntoFrame) -> pl.DataFrame:
    """Return, for each slot, the first block after it and the last slot of the known interval."""
    rows = read_rows(blocks, ["slot", "status"], loader="load_epoch_slots")
    rows = select_one_per_slot(rows.filter(pl.col("status") != "scheduled"))
    interval = pl.col("slot") - pl.int_range(pl.len())  # equal for consecutive slots
    proposed = pl.when(pl.col("status") == "proposed").then(pl.col("slot"))
    return rows.select(
        (pl.col("slot") - 1).alias("attester_slot"),
        proposed.backward_fill().over(interval, order_by="slot").alias("first_block"),
        pl.col("slot").max().over(interval).alias("covered_until"),
    )
