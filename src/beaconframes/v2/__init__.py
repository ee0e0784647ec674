"""All endpoints of V2 with their tables and loaders, and the sets of validators.

::

    bf.v2.load_rewards([1, 2, 3], since=-10)
    bf.v2.load_rewards_aggregate(bf.v2.dashboard(7), "30d")
"""
# ruff: noqa: F401, PLE0604 - the name of a loader is that of its endpoint

from beaconframes.endpoint.validator_sets import (
    dashboard,
    deposit_address,
    entity,
    operator,
    owner,
    validators,
    withdrawal,
)
from beaconframes.misspelled_names import missing_name
from beaconframes.v2._v1_comparison import same_as_v1
from beaconframes.v2.apy_roi import APY_ROI, load_apy_roi
from beaconframes.v2.attestation_slots import ATTESTATION_SLOTS, load_attestation_slots
from beaconframes.v2.balances import BALANCES, load_balances
from beaconframes.v2.block import BLOCK, load_block
from beaconframes.v2.block_rewards import BLOCK_REWARDS, load_block_rewards
from beaconframes.v2.config import CONFIG, load_config
from beaconframes.v2.deposit_slots import DEPOSIT_SLOTS, load_deposit_slots
from beaconframes.v2.entity_list import ENTITIES, load_entities
from beaconframes.v2.machine_metrics import MACHINE_METRICS, load_machine_metrics
from beaconframes.v2.machine_names import MACHINE_NAMES, load_machine_names
from beaconframes.v2.metadata import METADATA, load_metadata
from beaconframes.v2.network_performance import NETWORK_PERFORMANCE, load_network_performance
from beaconframes.v2.operators import OPERATORS, load_operators
from beaconframes.v2.owners import OWNERS, load_owners
from beaconframes.v2.performance import PERFORMANCE, load_performance
from beaconframes.v2.performance_aggregate import PERFORMANCE_AGGREGATE, load_performance_aggregate
from beaconframes.v2.proposal_slots import PROPOSAL_SLOTS, load_proposal_slots
from beaconframes.v2.queues import QUEUES, load_queues
from beaconframes.v2.rewards import REWARDS, load_rewards
from beaconframes.v2.rewards_aggregate import REWARDS_AGGREGATE, load_rewards_aggregate
from beaconframes.v2.slot import SLOT, load_slot
from beaconframes.v2.slot_attestation_duties import (
    SLOT_ATTESTATION_DUTIES,
    load_slot_attestation_duties,
)
from beaconframes.v2.slot_deposits import SLOT_DEPOSITS, load_slot_deposits
from beaconframes.v2.slot_sync_committee_duties import (
    SLOT_SYNC_COMMITTEE_DUTIES,
    load_slot_sync_committee_duties,
)
from beaconframes.v2.slot_withdrawals import SLOT_WITHDRAWALS, load_slot_withdrawals
from beaconframes.v2.state import STATE, load_state
from beaconframes.v2.sub_entities import SUB_ENTITIES, load_sub_entities
from beaconframes.v2.sync_committee import SYNC_COMMITTEE, load_sync_committee
from beaconframes.v2.sync_committee_periods import (
    SYNC_COMMITTEE_PERIODS,
    load_sync_committee_periods,
)
from beaconframes.v2.sync_committee_validators import (
    SYNC_COMMITTEE_VALIDATORS,
    load_sync_committee_validators,
)
from beaconframes.v2.upcoming_duty_slots import UPCOMING_DUTY_SLOTS, load_upcoming_duty_slots
from beaconframes.v2.validator_list import VALIDATORS, load_validators
from beaconframes.v2.validator_queues import VALIDATOR_QUEUES, load_validator_queues
from beaconframes.v2.withdrawal_slots import WITHDRAWAL_SLOTS, load_withdrawal_slots
from beaconframes.v2.yield_index import YIELD_INDEX, load_yield_index

ENDPOINTS = (
    VALIDATORS,
    BALANCES,
    METADATA,
    REWARDS,
    REWARDS_AGGREGATE,
    PERFORMANCE,
    PERFORMANCE_AGGREGATE,
    APY_ROI,
    PROPOSAL_SLOTS,
    ATTESTATION_SLOTS,
    DEPOSIT_SLOTS,
    WITHDRAWAL_SLOTS,
    UPCOMING_DUTY_SLOTS,
    SYNC_COMMITTEE_PERIODS,
    VALIDATOR_QUEUES,
    SLOT,
    SLOT_WITHDRAWALS,
    BLOCK,
    BLOCK_REWARDS,
    SLOT_ATTESTATION_DUTIES,
    SLOT_SYNC_COMMITTEE_DUTIES,
    SLOT_DEPOSITS,
    STATE,
    CONFIG,
    SYNC_COMMITTEE,
    SYNC_COMMITTEE_VALIDATORS,
    QUEUES,
    MACHINE_METRICS,
    NETWORK_PERFORMANCE,
    ENTITIES,
    SUB_ENTITIES,
    OWNERS,
    OPERATORS,
    MACHINE_NAMES,
    YIELD_INDEX,
)

__all__ = [
    *(f"load_{e.name}" for e in ENDPOINTS),
    "validators",
    "dashboard",
    "withdrawal",
    "deposit_address",
    "entity",
    "owner",
    "operator",
    "same_as_v1",
]


def __getattr__(name: str) -> object:
    """Raise an AttributeError that suggests a public name."""
    raise missing_name(__name__, name, __all__)


def __dir__() -> list[str]:
    """Return the public names, for completion."""
    return __all__
