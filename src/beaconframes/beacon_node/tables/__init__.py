"""The tables of a node, each with its rows."""

from __future__ import annotations

from typing import Final

from beaconframes.beacon_node.tables import (
    attestations,
    balance_moves,
    blocks,
    deposits,
    derived,
    income,
    operations,
    readings,
    state,
    upcoming,
)
from beaconframes.beacon_node.tables.declaration import (
    BLOCKS,
    DEPOSIT,
    EXECUTION,
    HEAD,
    INCOME,
    LOAD,
)

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
    *derived.TABLES,
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
GROWING_TABLES: Final = {e.name: e.unit for e in derived.TABLES if e.unit != HEAD}
"""Derived tables whose final rows stay, and the column that orders them."""
EXECUTION_TABLES: Final = frozenset(
    each.name for each in NODE_TABLES if all("execution" in needs for needs in each.needs)
)
"""Tables that only an execution node makes possible."""
