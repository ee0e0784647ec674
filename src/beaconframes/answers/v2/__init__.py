"""The rows of V2, derived from the tables of V1, so that both versions always agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes.answers.v2 import (
    apy_roi,
    blocks,
    duties,
    duty_slots,
    entities,
    machine_metrics,
    network,
    operations,
    performance,
    queues,
    rewards,
    validators,
)
from beaconframes.v2.yield_index import YieldIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    import polars as pl

    from beaconframes.derive.chain_tables import View
    from beaconframes.schema import Table

ROWS: Mapping[str, Callable[[View], pl.LazyFrame]] = {
    "validators": validators.derive_rows,
    "balances": validators.derive_balances,
    "metadata": validators.derive_metadata,
    "rewards": rewards.derive_rows,
    "rewards_aggregate": rewards.derive_rows_to_sum,
    "performance": performance.derive_rows,
    "performance_aggregate": performance.derive_rows_to_sum,
    "apy_roi": apy_roi.derive_rows,
    "proposal_slots": duty_slots.derive_proposals,
    "attestation_slots": duty_slots.derive_attestations,
    "deposit_slots": operations.derive_deposit_slots,
    "withdrawal_slots": operations.derive_withdrawal_slots,
    "upcoming_duty_slots": duty_slots.derive_upcoming,
    "sync_committee_periods": duty_slots.derive_committee_members,
    "validator_queues": queues.derive_places,
    "slot": blocks.derive_slots,
    "slot_withdrawals": operations.derive_withdrawals,
    "block": blocks.derive_blocks,
    "block_rewards": blocks.derive_rewards,
    "slot_attestation_duties": duties.derive_attestations,
    "slot_sync_committee_duties": duties.derive_sync_committees,
    "slot_deposits": operations.derive_deposits,
    "state": network.derive_state,
    "config": network.derive_config,
    "sync_committee": duty_slots.derive_committees,
    "sync_committee_validators": duty_slots.derive_committee_members,
    "queues": queues.derive_rows,
    "old_queues": queues.derive_old_rows,
    "machine_metrics": machine_metrics.derive_rows,
    "network_performance": performance.derive_all_rows_to_sum,
    "entities": entities.derive_rows,
    "sub_entities": entities.derive_rows,
    "owners": entities.derive_parties,
    "operators": entities.derive_parties,
    "machine_names": machine_metrics.derive_names,
    "yield_index": apy_roi.derive_index,
}
"""Functions that return all rows of an endpoint, in answer order; requests select from them."""

RECORDS: Mapping[str, type[Table]] = {
    "attestation_slots": duty_slots.AttestationSlotRecord,
    "deposit_slots": operations.OperationSlotRecord,
    "withdrawal_slots": operations.OperationSlotRecord,
    "upcoming_duty_slots": duty_slots.UpcomingDutyRecord,
    "sync_committee_periods": duty_slots.SyncCommitteePeriodRecord,
    "validator_queues": queues.ValidatorQueueRecord,
    "slot_deposits": operations.SlotDepositRecord,
    "state": network.StateRecord,
    "config": network.ConfigRecord,
    "sync_committee_validators": duty_slots.SyncCommitteeMemberRecord,
    "owners": entities.PartyRecord,
    "operators": entities.PartyRecord,
    "yield_index": YieldIndex,
}
"""Plausible records of the endpoints whose shape is not published; others have their table's."""

SUMMARIES: Mapping[str, Callable[[pl.LazyFrame], pl.LazyFrame]] = {
    "network_performance": performance.summarize,
    "rewards_aggregate": rewards.summarize,
    "sub_entities": lambda rows: entities.summarize(rows, "sub_entity"),
    "entities": entities.summarize,
    "apy_roi": apy_roi.summarize,
    "performance_aggregate": performance.summarize,
    "attestation_slots": duty_slots.summarize_attestations,
    "deposit_slots": operations.summarize,
    "withdrawal_slots": operations.summarize,
    "owners": entities.summarize_parties,
    "operators": entities.summarize_parties,
}
"""Functions that summarize the selected rows, for answers about all rows together."""

WITHOUT_RANGE = {
    "block",
    "block_rewards",
    "config",
    "machine_metrics",
    "machine_names",
    "metadata",
    "old_queues",
    "queues",
    "slot",
    "slot_attestation_duties",
    "slot_deposits",
    "slot_sync_committee_duties",
    "slot_withdrawals",
    "state",
}
"""Endpoints whose answers do not state the range that they cover."""

RANGES: Mapping[str, Callable[[View, int, int], tuple[int, int]]] = {
    "attestation_slots": duty_slots.find_attested_range,
    "upcoming_duty_slots": duty_slots.find_upcoming_range,
    "sync_committee_periods": duty_slots.find_known_range,
}
"""The slots that were searched, given those of the request, where these differ."""

UNPAGED = {"machine_metrics", "sync_committee_validators"}
"""Endpoints that return all rows in one answer, whatever page a request names."""

UNSENT: Mapping[str, Collection[str]] = {
    "metadata": {"owner", "operator"},
    "queues": {"finality"},
    "yield_index": {"more"},
}
"""Fields that the table has for future answers of the service, and its documentation does not."""

STORED = {"yield_index"}
"""Endpoints whose rows a table has as they are; their answers state what it does not cover."""

BY_EPOCH = {"slot_attestation_duties", "slot_sync_committee_duties"}
"""Endpoints of slots whose rows have an epoch, by which the tables are read."""

HOURLY = {"entities", "sub_entities", "owners", "operators"}
"""Endpoints that are updated hourly; their answers state the time of the update."""

SUNSETS = dict.fromkeys(("entities", "sub_entities"), "Thu, 17 Dec 2026 10:00:00 GMT")
"""Endpoints that the service will remove, with the announced time."""
