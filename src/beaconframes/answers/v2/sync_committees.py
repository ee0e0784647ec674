"""Sync committees, from those of V1.

The shapes of the periods of validators and of the members of a period are not published; those
below are plausible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.v2.amounts import derive_finality
from beaconframes.schema import Count, Epoch, Hex, Period, Table, Text

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View


class SyncCommitteeMemberRecord(Table):
    """Members of sync committees. One row per period and validator."""

    validator_index = Count("Validator.", wire="validator.index")
    pubkey = Hex("BLS public key, 48 bytes.", wire="validator.public_key")
    seat_count = Count("Seats of the validator in the committee.")
    finality = Text("finalized once the period is over and final.")


class SyncCommitteePeriodRecord(Table):
    """Sync-committee periods. One row per period and validator."""

    validator_index = Count("Validator.", wire="validator.index")
    pubkey = Hex("BLS public key, 48 bytes.", wire="validator.public_key")
    period = Period("Period.")
    start_epoch = Epoch("First epoch of the period.", wire="epoch.start")
    end_epoch = Epoch("Last epoch of the period.", wire="epoch.end")
    seat_count = Count("Seats of the validator in the committee.")
    finality = Text("finalized once the period is over and final.")


def derive_rows(view: View) -> pl.LazyFrame:
    """Return sync committees, one row per period."""
    periods = view.scan("sync_committees").group_by("period").agg(pl.col("end_epoch").first())
    return periods.with_columns(finality=derive_finality(view, "end_epoch"))


def derive_members(view: View) -> pl.LazyFrame:
    """Return members, one row per period and validator; the newest period comes first."""
    keys = view.scan("validators").select("validator_index", "pubkey")
    return (
        view.scan("sync_committees")
        .group_by("period", "validator_index", "start_epoch", "end_epoch")
        .agg(seat_count=pl.len())
        .join(keys, on="validator_index", how="left")
        .sort("period", "validator_index", descending=[True, False])
        .with_columns(finality=derive_finality(view, "end_epoch"))
    )


def find_known_range(view: View, *requested: int) -> tuple[int, int]:
    """Return the first and the last slot of the periods whose committees are known.

    Without any committee, they are those *requested*.
    """
    first, last = (
        view.scan("sync_committees")
        .select(pl.col("start_epoch").min(), pl.col("end_epoch").max())
        .collect()
        .row(0)
    )
    if first is None:
        return requested[0], requested[1]
    return view.chain.first_slot_of(first), view.chain.last_slot_of(last)
