"""All endpoints of V1, with their tables and loaders."""
# ruff: noqa: F401, PLE0604 - the name of a loader is that of its endpoint

from beaconframes.v1.address_balances import ADDRESS_BALANCES, load_address_balances
from beaconframes.v1.attestation_efficiency import (
    ATTESTATION_EFFICIENCY,
    load_attestation_efficiency,
)
from beaconframes.v1.attestations import ATTESTATIONS, load_attestations
from beaconframes.v1.attester_slashings import ATTESTER_SLASHINGS, load_attester_slashings
from beaconframes.v1.balance_history import BALANCE_HISTORY, load_balance_history
from beaconframes.v1.bls_changes import BLS_CHANGES, load_bls_changes
from beaconframes.v1.chart import CHARTS, load_chart
from beaconframes.v1.deposit_origin import DEPOSIT_ORIGIN, load_deposit_origin
from beaconframes.v1.deposits import DEPOSITS, load_deposits
from beaconframes.v1.epoch_slots import EPOCH_SLOTS, load_epoch_slots
from beaconframes.v1.epochs import EPOCHS, load_epochs
from beaconframes.v1.execution_blocks import EXECUTION_BLOCKS, load_execution_blocks
from beaconframes.v1.execution_performance import EXECUTION_PERFORMANCE, load_execution_performance
from beaconframes.v1.gas_fees import GAS_FEES, load_gas_fees
from beaconframes.v1.graffiti_wall import GRAFFITI_WALL, load_graffiti_wall
from beaconframes.v1.income_history import INCOME_HISTORY, load_income_history
from beaconframes.v1.latest_state import LATEST_STATE, load_latest_state
from beaconframes.v1.leaderboard import LEADERBOARD, load_leaderboard
from beaconframes.v1.names import NAMES, load_names
from beaconframes.v1.performance import PERFORMANCE, load_performance
from beaconframes.v1.pool_stats import POOL_STATS, load_pool_stats
from beaconframes.v1.pool_validators import POOL_VALIDATORS, load_pool_validators
from beaconframes.v1.produced_blocks import PRODUCED_BLOCKS, load_produced_blocks
from beaconframes.v1.proposal_luck import PROPOSAL_LUCK, load_proposal_luck
from beaconframes.v1.proposals import PROPOSALS, load_proposals
from beaconframes.v1.proposer_slashings import PROPOSER_SLASHINGS, load_proposer_slashings
from beaconframes.v1.slot_attestations import SLOT_ATTESTATIONS, load_slot_attestations
from beaconframes.v1.slot_deposits import SLOT_DEPOSITS, load_slot_deposits
from beaconframes.v1.slot_withdrawals import SLOT_WITHDRAWALS, load_slot_withdrawals
from beaconframes.v1.slots import SLOTS, load_slots
from beaconframes.v1.sync_committees import SYNC_COMMITTEES, load_sync_committees
from beaconframes.v1.token_balances import TOKEN_BALANCES, load_token_balances
from beaconframes.v1.transaction_deposits import TRANSACTION_DEPOSITS, load_transaction_deposits
from beaconframes.v1.validator_queue import VALIDATOR_QUEUE, load_validator_queue
from beaconframes.v1.validator_stats import VALIDATOR_STATS, load_validator_stats
from beaconframes.v1.validator_withdrawals import VALIDATOR_WITHDRAWALS, load_validator_withdrawals
from beaconframes.v1.validators import VALIDATORS, load_validators
from beaconframes.v1.voluntary_exits import VOLUNTARY_EXITS, load_voluntary_exits
from beaconframes.v1.withdrawal_credentials import (
    WITHDRAWAL_CREDENTIALS,
    load_withdrawal_credentials,
)
from beaconframes.v1.yield_index import YIELD_INDEX, load_yield_index

ENDPOINTS = (
    VALIDATORS,
    INCOME_HISTORY,
    BALANCE_HISTORY,
    PROPOSALS,
    ATTESTATIONS,
    VALIDATOR_WITHDRAWALS,
    DEPOSITS,
    BLS_CHANGES,
    EXECUTION_PERFORMANCE,
    PERFORMANCE,
    ATTESTATION_EFFICIENCY,
    PROPOSAL_LUCK,
    VALIDATOR_STATS,
    LEADERBOARD,
    DEPOSIT_ORIGIN,
    WITHDRAWAL_CREDENTIALS,
    VALIDATOR_QUEUE,
    LATEST_STATE,
    EPOCHS,
    EPOCH_SLOTS,
    SLOTS,
    SLOT_ATTESTATIONS,
    ATTESTER_SLASHINGS,
    PROPOSER_SLASHINGS,
    SLOT_WITHDRAWALS,
    VOLUNTARY_EXITS,
    SLOT_DEPOSITS,
    TRANSACTION_DEPOSITS,
    SYNC_COMMITTEES,
    GRAFFITI_WALL,
    YIELD_INDEX,
    EXECUTION_BLOCKS,
    PRODUCED_BLOCKS,
    ADDRESS_BALANCES,
    TOKEN_BALANCES,
    GAS_FEES,
    NAMES,
    POOL_STATS,
    POOL_VALIDATORS,
)

__all__ = ["CHARTS", "ENDPOINTS", "load_chart", *(f"load_{e.name}" for e in ENDPOINTS)]
