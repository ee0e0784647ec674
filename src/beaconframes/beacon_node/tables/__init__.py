"""The tables of a node, each with its rows."""

from __future__ import annotations

from typing import Final

from beaconframes.beacon_node.tables import (
    attestations,
    balance_moves,
    blocks,
    deposits,
    execution_blocks,
    income,
    operations,
    readings,
    state,
)
from beaconframes.beacon_node.tables.declaration import BLOCKS, DEPOSIT, HEAD, INCOME, LOAD
from beaconframes.beacon_node.tables.derived import DERIVED_TABLES

NODE_TABLES: Final = (
    income.INCOME_HISTORY,
    income.BALANCE_HISTORY,
    attestations.ATTESTATIONS,
    balance_moves.SLOT_INCOME,
    balance_moves.EPOCH_MOVES,
    balance_moves.DEPOSIT_EVENTS,
    balance_moves.TRANSFER_EVENTS,
    balance_moves.SWITCH_EVENTS,
    income.MISSED_REWARD_EVENTS,
    balance_moves.UNEXPLAINED_CHANGES,
    blocks.BLOCK_ROWS,
    attestations.SLOT_ATTESTATIONS,
    operations.ATTESTER_SLASHINGS,
    operations.PROPOSER_SLASHINGS,
    operations.VOLUNTARY_EXITS,
    operations.SLOT_DEPOSITS,
    operations.DEPOSIT_REQUESTS,
    operations.BLOB_COMMITMENTS,
    operations.EXECUTION_REQUESTS,
    operations.SLOT_WITHDRAWALS,
    operations.VALIDATOR_WITHDRAWALS,
    operations.BLS_CHANGES,
    blocks.GRAFFITI_WALL,
    state.SYNC_COMMITTEES,
    execution_blocks.EXECUTION_BLOCKS,
    state.VALIDATORS,
    state.LATEST_STATE,
    state.VALIDATOR_QUEUE,
    deposits.DEPOSITS,
    deposits.DEPOSIT_ORIGIN,
    readings.GAS_FEES,
    readings.ADDRESS_BALANCES,
    *DERIVED_TABLES,
)
"""All tables of a node; those of an epoch in the order of writing."""

TABLES_BY_NAME: Final = {each.name: each for each in NODE_TABLES}
INDEXED_TABLES: Final = {each.name: each for each in NODE_TABLES if each.rows is not None}
"""The tables that are written epoch by epoch."""
REWARD_TABLES: Final = tuple(n for n, each in INDEXED_TABLES.items() if each.needs is INCOME)
BLOCK_TABLES: Final = tuple(n for n, each in INDEXED_TABLES.items() if each.needs is BLOCKS)
LARGE_TABLES: Final = tuple(n for n, each in INDEXED_TABLES.items() if each.is_large)
READINGS: Final = frozenset(each.name for each in NODE_TABLES if each.unit == LOAD)
DEPOSITS: Final = frozenset(each.name for each in NODE_TABLES if each.unit == DEPOSIT)
GROWING_TABLES: Final = {e.name: e.unit for e in DERIVED_TABLES if e.unit != HEAD}
"""Derived tables whose final rows stay, and the column that orders them."""
EXECUTION_TABLES: Final = frozenset(
    each.name for each in NODE_TABLES if all("execution" in needs for needs in each.needs)
)
"""Tables that only an execution node makes possible."""
