"""Generation 2: every endpoint, its rows and its loader, and the ways to name validators.

::

    bf.v2.load_rewards([1, 2, 3], since=-10)
    bf.v2.load_rewards_aggregate(bf.v2.dashboard(7), "30d")
"""

from beaconframes.endpoint.sets import (
    dashboard,
    deposit_address,
    entities,
    entity,
    validators,
    withdrawal,
)
from beaconframes.v2.block import BLOCK, load_block
from beaconframes.v2.block_rewards import BLOCK_REWARDS, load_block_rewards
from beaconframes.v2.machine_names import MACHINE_NAMES, load_machine_names
from beaconframes.v2.rewards import REWARDS, load_rewards
from beaconframes.v2.rewards_aggregate import REWARDS_AGGREGATE, load_rewards_aggregate
from beaconframes.v2.slot import SLOT, load_slot
from beaconframes.v2.slot_withdrawals import SLOT_WITHDRAWALS, load_slot_withdrawals
from beaconframes.v2.validator_list import VALIDATORS, load_validators

ENDPOINTS = (
    VALIDATORS,
    REWARDS,
    REWARDS_AGGREGATE,
    SLOT,
    SLOT_WITHDRAWALS,
    BLOCK,
    BLOCK_REWARDS,
    MACHINE_NAMES,
)

__all__ = [
    "ENDPOINTS",
    "dashboard",
    "deposit_address",
    "entities",
    "entity",
    "load_block",
    "load_block_rewards",
    "load_machine_names",
    "load_rewards",
    "load_rewards_aggregate",
    "load_slot",
    "load_slot_withdrawals",
    "load_validators",
    "validators",
    "withdrawal",
]
