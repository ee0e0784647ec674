"""The rows of V2, derived from the tables of V1, so that both versions always agree."""

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
    from collections.abc import Callable, Collection, Mapping

    import polars as pl

    from beaconframes.endpoint import View

ROWS: Mapping[str, Callable[[View], pl.LazyFrame]] = {
    "validators": validators.derive_rows,
    "balances": balances.derive_rows,
    "metadata": metadata.derive_rows,
    "rewards": rewards.derive_rows,
    "rewards_aggregate": rewards.derive_rows_to_sum,
    "performance": performance.derive_rows,
    "performance_aggregate": performance.derive_rows_to_sum,
    "apy_roi": apy_roi.derive_rows,
    "proposal_slots": proposal_slots.derive_rows,
    "slot": slot.derive_rows,
    "slot_withdrawals": slot_withdrawals.derive_rows,
    "block": blocks.derive_rows,
    "block_rewards": blocks.derive_rewards,
    "slot_attestation_duties": duties.derive_attestations,
    "slot_sync_committee_duties": duties.derive_sync_committees,
    "sync_committee": sync_committees.derive_rows,
    "queues": queues.derive_rows,
    "machine_metrics": machine_metrics.derive_rows,
    "network_performance": performance.derive_rows_to_sum,
    "entities": entities.derive_rows,
    "sub_entities": entities.derive_rows,
    "machine_names": machine_names.derive_rows,
}
"""Functions that return all rows of an endpoint, in answer order; requests select from them."""

SUMMARIES: Mapping[str, Callable[[pl.LazyFrame], pl.LazyFrame]] = {
    "network_performance": performance.summarize,
    "rewards_aggregate": rewards.summarize,
    "sub_entities": entities.summarize,
    "entities": entities.summarize,
    "apy_roi": apy_roi.summarize,
    "performance_aggregate": performance.summarize,
}
"""Functions that summarize the selected rows, for answers about all rows together."""

WITHOUT_RANGE = {
    "block",
    "block_rewards",
    "machine_metrics",
    "machine_names",
    "metadata",
    "queues",
    "slot",
    "slot_attestation_duties",
    "slot_sync_committee_duties",
    "slot_withdrawals",
}
"""Endpoints whose answers do not state the range that they cover."""

UNPAGED = {"machine_metrics"}
"""Endpoints that return all rows in one answer, whatever page a request names."""

UNSENT: Mapping[str, Collection[str]] = {
    "metadata": {"owner", "operator"},
    "queues": {"finality"},
}
"""Fields that the table has for future answers of the service, and its documentation does not."""

HOURLY = {"entities", "sub_entities"}
"""Endpoints that are updated hourly; their answers state the time of the update."""
