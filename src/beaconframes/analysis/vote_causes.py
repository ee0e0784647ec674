"""Why votes were late or missed: from their rewards, and from duties and blocks where known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.analysis.attestations import attestation_faults
from beaconframes.frames import read_rows, to_polars

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.calendar import Chain

_KEYS = ["validator_index", "epoch"]
_OF_REWARDS = {
    "head": "wrong or late head",
    "target": "wrong target",
    "late": "source too late",
}
_IN_NEXT_SLOT = {"head": "wrong head", "target": "wrong target"}
_OF_INCLUSION = {
    ("late", "block missing"): "included late after a missing block",
    ("late", None): "included late",
    ("late", "own fault"): "included late",
    ("missed", "block missing"): "missed without a block to include it",
    ("missed", "own fault"): "missed although blocks were proposed",
}


def add_causes(
    losses: pl.DataFrame,
    attestations: IntoFrame | None,
    slots: IntoFrame | None,
    *,
    until: int | None,
    clock: Chain,
) -> pl.DataFrame:
    """Add the ``cause`` of each loss; null for a missed vote of which nothing else is known."""
    fault = pl.col("fault")
    cause = fault.replace_strict(_OF_REWARDS, default=None, return_dtype=pl.String)
    if attestations is None:
        return losses.with_columns(cause=cause)
    found = attestation_faults(attestations, slots, until=until, chain=clock)
    faults = to_polars(found).select(*_KEYS, inclusion="fault", reason="reason")
    duties = _list_included(attestations)
    rows = losses.join(faults, on=_KEYS, how="left").join(duties, on=_KEYS, how="left")
    known = pl.lit(None, pl.String)
    for (inclusion, reason), text in _OF_INCLUSION.items():
        is_this = (pl.col("inclusion") == inclusion) & pl.col("reason").eq_missing(pl.lit(reason))
        known = pl.when(is_this).then(pl.lit(text)).otherwise(known)
    in_next_slot = fault.replace_strict(_IN_NEXT_SLOT, default=None, return_dtype=pl.String)
    in_time = pl.when(pl.col("is_included") & pl.col("inclusion").is_null()).then(in_next_slot)
    rows = rows.with_columns(cause=pl.coalesce(known, in_time, cause))
    return rows.drop("inclusion", "reason", "is_included")


def _list_included(attestations: IntoFrame) -> pl.DataFrame:
    columns = [*_KEYS, "status"]
    rows = read_rows(attestations, columns, loader="load_attestations")
    return rows.select(*_KEYS, is_included=pl.col("status") == "included").unique(_KEYS)


def describe_causes(losses: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Return the causes with their numbers as ``detail``, the most frequent first, by *keys*."""
    counts = losses.drop_nulls("cause").group_by(*keys, "cause").agg(count=pl.len())
    counts = counts.sort("count", "cause", descending=[True, False])
    text = pl.format("{} {}", "count", "cause")
    return counts.group_by(keys, maintain_order=True).agg(detail=text.str.join(", "))
