"""Duties to come that a node states: those of the rest of its epoch, and of the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from beaconframes.answers.v2.duty_slots import UpcomingDuties
from beaconframes.beacon_node.tables.declaration import LOAD, NOTHING, NodeTable

if TYPE_CHECKING:
    from collections.abc import Collection

    from beaconframes.beacon_node.client.api import BeaconApi
    from beaconframes.consensus.spec import Spec


def find_epochs(spec: Spec, head_slot: int) -> tuple[range, list[int]]:
    """Return the epochs whose duties a node states, and those with a request for the committee.

    Each of the first needs a request for proposers and one for attesters.
    """
    first = spec.epoch_of(head_slot)
    epochs, length = range(first, first + 2), spec.epochs_per_sync_committee_period
    since = spec.fork_epochs["altair"]
    return epochs, [e for e in epochs if e >= since and (e in (first, since) or e % length == 0)]


def read_upcoming_duties(
    api: BeaconApi, spec: Spec, head_slot: int, validators: Collection[int]
) -> pl.DataFrame:
    """Return the duties of validators after *head_slot*, one row per slot, validator and duty."""
    epochs, committee_epochs = find_epochs(spec, head_slot)
    rows: list[tuple[int, int, str]] = []
    members = set[int]()
    for epoch in epochs:
        slots = range(spec.first_slot_of(epoch), spec.first_slot_of(epoch + 1))
        rows += [(index, slot, "proposal") for slot, index in api.proposer_duties(epoch).items()]
        for duty in api.attester_duties(epoch, validators):
            rows.append((duty.validator_index, duty.slot, "attestation"))
        if epoch in committee_epochs:
            members = {duty.validator_index for duty in api.sync_duties(epoch, validators)}
        rows += [(index, slot, "sync_committee") for index in members for slot in slots]
    last = spec.first_slot_of(epochs.stop) - 1
    found = pl.DataFrame(rows, ["validator_index", "slot", "duty"], orient="row")
    is_upcoming = pl.col("validator_index").is_in([*validators]) & (pl.col("slot") > head_slot)
    found = found.filter(is_upcoming)
    return found.select(
        "validator_index",
        "slot",
        "duty",
        pl.lit(head_slot + 1).alias("first_slot"),
        pl.lit(last).alias("last_slot"),
    ).cast(pl.Schema(UpcomingDuties.schema()))


TABLES: Final = (NodeTable(UpcomingDuties, LOAD, NOTHING),)
