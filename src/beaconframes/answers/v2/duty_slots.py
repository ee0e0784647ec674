"""Slots and periods with duties: proposals, attestations, sync committees, and duties to come.

Only the shapes of proposals and of committees are published; the others are plausible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.v2.amounts import derive_finality
from beaconframes.schema import Count, Epoch, Hex, Period, Slot, Table, Text

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View


class AttestationSlotRecord(Table):
    """Slots to attest. One row per slot."""

    slot = Slot("Attested slot.")
    validator_count = Count("Selected validators that had to attest in it.")
    finality = Text("Always finalized.")


class UpcomingDutyRecord(Table):
    """Slots with future duties. One row per slot, validator and duty."""

    validator_index = Count("Validator.", wire="validator.index")
    pubkey = Hex("BLS public key, 48 bytes.", wire="validator.public_key")
    slot = Slot("Slot of the duty.")
    duty = Text("attestation, proposal or sync_committee.")


class UpcomingDuties(Table):
    """Future duties that a node has stated. One row per slot, validator and duty."""

    validator_index = Count("Validator.", key=True)
    slot = Slot("Slot of the duty.", key=True)
    duty = Text("attestation, proposal or sync_committee.", key=True)
    first_slot = Slot("The slot after the head of the node.")
    last_slot = Slot("The last slot whose duties the node has stated.")


def derive_proposals(view: View) -> pl.LazyFrame:
    """Return proposal slots, one row per slot, newest first."""
    keys = view.scan("validators").select("validator_index", "pubkey")
    canonical = pl.col("exec_block_number").filter(pl.col("status") == "proposed")
    return (
        view.scan("blocks")
        .filter(pl.col("proposer_index").is_not_null())
        .group_by("slot", validator_index="proposer_index")
        .agg(block_number=canonical.first())
        .join(keys, on="validator_index", how="left")
        .sort("slot", descending=True)
        .with_columns(finality=pl.lit("finalized"))
    )


def derive_attestations(view: View) -> pl.LazyFrame:
    """Return attestation duties of the final epochs that V1 has, one row per validator and slot."""
    final = view.scan("attestations").filter(pl.col("epoch") <= view.head.finalized_epoch)
    return final.select("validator_index", slot="attester_slot")


def summarize_attestations(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return the count of validators, one row per slot, newest first."""
    slots = rows.group_by("slot").agg(validator_count=pl.len())
    return slots.sort("slot", descending=True).with_columns(finality=pl.lit("finalized"))


def find_attested_range(view: View, first: int, last: int) -> tuple[int, int]:
    """Return the part of a range of slots that has attestation duties in V1."""
    oldest = derive_attestations(view).select(pl.col("slot").min()).collect().item()
    first = max(first, last + 1 if oldest is None else oldest)
    return first, max(last, first - 1)


def derive_upcoming(view: View) -> pl.LazyFrame:
    """Return the duties in the rest of the current epoch, one row per slot, validator and duty.

    A node has stated those of the next epoch, too.
    """
    keys = view.scan("validators").select("validator_index", "pubkey")
    if view.has_table(UpcomingDuties.table_name):
        stated = _scan_stated(view).drop("first_slot", "last_slot")
        return stated.join(keys, on="validator_index").sort("slot", "validator_index", "duty")
    first, last = find_upcoming_range(view)
    period = view.head.epoch // view.chain.epochs_per_sync_period
    is_upcoming = pl.col("slot").is_between(first, last)
    members = view.scan("sync_committees").filter(pl.col("period") == period)
    slots = pl.LazyFrame({"slot": range(first, last + 1)}, schema={"slot": pl.Int64})
    duties = {
        "attestation": view.scan("attestations").select("validator_index", slot="attester_slot"),
        "proposal": view.scan("blocks").select("slot", validator_index="proposer_index"),
        "sync_committee": members.select("validator_index").unique().join(slots, how="cross"),
    }
    rows = [
        found.filter(is_upcoming).select("validator_index", "slot", duty=pl.lit(duty))
        for duty, found in duties.items()
    ]
    return pl.concat(rows).join(keys, on="validator_index").sort("slot", "validator_index", "duty")


def _scan_stated(view: View) -> pl.LazyFrame:
    """Return what a node has stated; what an index has grown past is no longer to come."""
    stated = view.scan(UpcomingDuties.table_name)
    return stated.filter(pl.col("slot") > view.head.slot)


def find_upcoming_range(view: View, *_: int) -> tuple[int, int]:
    """Return the slots of the current epoch after the head; there are none after its last slot."""
    if view.has_table(UpcomingDuties.table_name):
        stated = _scan_stated(view).select(pl.min("first_slot"), pl.max("last_slot")).collect()
        first, last = stated.row(0)
        if first is not None:
            return first, last
    return view.head.slot + 1, view.chain.last_slot_of(view.head.epoch)


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


def derive_committees(view: View) -> pl.LazyFrame:
    """Return sync committees, one row per period."""
    periods = view.scan("sync_committees").group_by("period").agg(pl.col("end_epoch").first())
    return periods.with_columns(finality=derive_finality(view, "end_epoch"))


def derive_committee_members(view: View) -> pl.LazyFrame:
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
