"""The state and the settings of the network.

The shapes of both answers are not published; these are plausible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.schema import Count, Epoch, Flag, Slot, Table, Text, UnixTime

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View


class StateRecord(Table):
    """The state of the network. One row."""

    current_slot = Slot("Latest slot, where existing clients read it.")
    current_epoch = Epoch("Its epoch.")
    slot = Slot("Latest slot.", wire="latest.slot")
    epoch = Epoch("Epoch of the latest slot.", wire="latest.epoch")
    time = UnixTime("Start of the latest slot, UTC.", wire="latest.timestamp")
    finalized_slot = Slot("Last slot of the finalized epoch.", wire="finalized.slot")
    finalized_epoch = Epoch("Latest finalized epoch.", wire="finalized.epoch")
    finalized_time = UnixTime("Start of that slot, UTC.", wire="finalized.timestamp")
    last_proposed_slot = Slot("Latest slot with a block.")
    finality_delay = Count("Epochs between the latest and the finalized one.")
    syncing = Flag("Whether the node is behind the chain.")


class ConfigRecord(Table):
    """The settings of the network. One row."""

    chain = Text("Name of the chain.")
    genesis_time = UnixTime("Start of slot 0, UTC.", wire="genesis_timestamp")
    seconds_per_slot = Count("Seconds of a slot.")
    slots_per_epoch = Count("Slots of an epoch.")
    epochs_per_sync_committee_period = Count("Epochs of a sync-committee period.")
    sync_committee_size = Count("Seats of a sync committee.")
    altair_fork_epoch = Epoch("First epoch with a sync committee.")


def derive_state(view: View) -> pl.LazyFrame:
    """Return the state, one row."""
    chain, head = view.chain, view.head
    final = head.latest("slot", chain, finalized=True)
    return view.scan("latest_state").select(
        "last_proposed_slot",
        "finality_delay",
        "syncing",
        slot=pl.lit(head.slot),
        epoch=pl.lit(head.epoch),
        current_slot=pl.lit(head.slot),
        current_epoch=pl.lit(head.epoch),
        time=chain.time_expr("slot", pl.lit(head.slot)),
        finalized_slot=pl.lit(final),
        finalized_epoch=pl.lit(head.finalized_epoch),
        finalized_time=chain.time_expr("slot", pl.lit(final)),
    )


def derive_config(view: View) -> pl.LazyFrame:
    """Return the settings, one row."""
    chain = view.chain
    return pl.LazyFrame(
        {
            "chain": [chain.name],
            "genesis_time": [chain.genesis],
            "seconds_per_slot": [chain.seconds_per_slot],
            "slots_per_epoch": [chain.slots_per_epoch],
            "epochs_per_sync_committee_period": [chain.epochs_per_sync_period],
            "sync_committee_size": [chain.sync_committee_size],
            "altair_fork_epoch": [chain.first_sync_epoch],
        }
    )
