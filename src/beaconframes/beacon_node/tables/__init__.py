"""The tables of a node, each with its rows."""

from __future__ import annotations

from typing import Final

from beaconframes.beacon_node.tables import (
    attestations,
    balance_moves,
    blocks,
    deposits,
    income,
    operations,
    readings,
    state,
    upcoming,
)
from beaconframes.beacon_node.tables.declaration import (
    BLOCKS,
    DEPOSIT,
    DUTIES,
    EXECUTION,
    HEAD,
    INCOME,
    LOAD,
    NOTHING,
    PAYMENTS,
    NodeTable,
)
from beaconframes.v1.attestation_efficiency import AttestationEfficiency
from beaconframes.v1.epochs import Epochs
from beaconframes.v1.execution_performance import ExecutionPerformance
from beaconframes.v1.leaderboard import Leaderboard
from beaconframes.v1.performance import Performance
from beaconframes.v1.proposal_luck import ProposalLuck
from beaconframes.v1.validator_stats import ValidatorStats
from beaconframes.v1.withdrawal_credentials import WithdrawalCredentials
from beaconframes.v1.yield_index import YieldIndex

# The rows of an epoch or a day stay once they are final; the other tables are replaced.
DERIVED_TABLES: Final = (
    NodeTable(Epochs, "epoch", tuple(tuple(dict.fromkeys(("blocks", *n))) for n in INCOME)),
    NodeTable(ValidatorStats, "day", INCOME),
    NodeTable(YieldIndex, "day", tuple((*needs, "execution") for needs in INCOME)),
    NodeTable(Performance, HEAD, INCOME),
    NodeTable(Leaderboard, HEAD, INCOME),
    NodeTable(ExecutionPerformance, HEAD, PAYMENTS),
    NodeTable(AttestationEfficiency, HEAD, DUTIES),
    NodeTable(ProposalLuck, HEAD, BLOCKS),
    NodeTable(WithdrawalCredentials, HEAD, NOTHING),
)
"""Tables that follow from other tables; `beaconframes.derive` has their rows."""

NODE_TABLES: Final = (
    *income.TABLES,
    *balance_moves.TABLES,
    *attestations.TABLES,
    *blocks.TABLES,
    *operations.TABLES,
    *state.TABLES,
    *deposits.TABLES,
    *readings.TABLES,
    *upcoming.TABLES,
    *DERIVED_TABLES,
)
"""All tables of a node; those of an epoch in the order of writing."""

TABLES_BY_NAME: Final = {each.name: each for each in NODE_TABLES}
INDEXED_TABLES: Final = {each.name: each for each in NODE_TABLES if each.rows is not None}
"""The tables that are written epoch by epoch."""
REWARD_TABLES: Final = tuple(n for n, each in INDEXED_TABLES.items() if each.needs == INCOME)
BLOCK_TABLES: Final = tuple(n for n, each in INDEXED_TABLES.items() if each.needs == BLOCKS)
LARGE_TABLES: Final = tuple(n for n, each in INDEXED_TABLES.items() if each.is_large)
READINGS: Final = frozenset(
    each.name for each in NODE_TABLES if each.unit == LOAD and each.needs == EXECUTION
)
"""Tables that a load reads from an execution node."""
DEPOSITS: Final = frozenset(each.name for each in NODE_TABLES if each.unit == DEPOSIT)
GROWING_TABLES: Final = {e.name: e.unit for e in DERIVED_TABLES if e.unit != HEAD}
"""Derived tables whose final rows stay, and the column that orders them."""
EXECUTION_TABLES: Final = frozenset(
    each.name for each in NODE_TABLES if all("execution" in needs for needs in each.needs)
)
"""Tables that only an execution node makes possible."""
