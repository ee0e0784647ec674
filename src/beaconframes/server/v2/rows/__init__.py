"""The rows of generation 2: derived from those of generation 1, so that both tell one story."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes.server.v2.rows import (
    apy_roi,
    balances,
    blocks,
    duties,
    entities,
    machine_metrics,
    machine_names,
    metadata,
    performance,
    proposal_slots,
    queues,
    rewards,
    slot,
    slot_withdrawals,
    sync_committees,
    validators,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from beaconframes.endpoint import View

TABLES: Mapping[str, Callable[[View], pl.LazyFrame]] = {
    "validators": validators.rows,
    "balances": balances.rows,
    "metadata": metadata.rows,
    "rewards": rewards.rows,
    "rewards_aggregate": rewards.rows_to_add,
    "performance": performance.rows,
    "performance_aggregate": performance.rows_to_add,
    "apy_roi": apy_roi.rows,
    "proposal_slots": proposal_slots.rows,
    "slot": slot.rows,
    "slot_withdrawals": slot_withdrawals.rows,
    "block": blocks.rows,
    "block_rewards": blocks.rewards,
    "slot_attestation_duties": duties.attestations,
    "slot_sync_committee_duties": duties.sync_committees,
    "sync_committee": sync_committees.rows,
    "queues": queues.rows,
    "machine_metrics": machine_metrics.rows,
    "network_performance": performance.rows_to_add,
    "entities": entities.rows,
    "sub_entities": entities.rows,
    "machine_names": machine_names.rows,
}
"""All rows of an endpoint, from which a request selects; in the order in which they are sent."""

SUMMARIES: Mapping[str, Callable[[pl.LazyFrame], pl.LazyFrame]] = {
    "network_performance": performance.summary,
    "rewards_aggregate": rewards.summary,
    "sub_entities": entities.summary,
    "entities": entities.summary,
    "apy_roi": apy_roi.summary,
    "performance_aggregate": performance.summary,
}
"""What is made of the selected rows, where the answer is about all of them at once."""

RANGELESS = {
    "block",
    "block_rewards",
    "machine_metrics",
    "machine_names",
    "metadata",
    "queues",
    "slot",
    "slot_attestation_duties",
    "slot_sync_committee_duties",
}
"""Endpoints whose answers do not say which part of the chain they are of."""

RENEWED = {"entities", "sub_entities"}
"""Endpoints whose answers say when their figures were worked out."""
