"""Derived tables: all tables that the engine does not write.

The engine writes blocks, balances, income and events. The modules here make all other tables from
those rows, so that no two tables disagree. Tables that follow from the rows alone are those of
``derive``. Data without a source in the chain (prices, tokens, the pool's contracts) is generated
from hashes of the seed, under names that are clearly fictional.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from beaconframes.derive.daily_stats import build_daily_stats, find_stats_days
from beaconframes.simulator.derived import (
    accounts,
    deposits,
    duties,
    execution,
    operations,
    pool,
    slashings,
)
from beaconframes.v1.validator_stats import GENESIS_DEPOSITS, ValidatorStats

if TYPE_CHECKING:
    from beaconframes.simulator.derived.chain_data import ChainData
    from beaconframes.simulator.derived.duties import AttestationCollector

RANKINGS: Final = (
    "performance",
    "execution_performance",
    "leaderboard",
    "proposal_luck",
    "withdrawal_credentials",
)
"""Tables that describe the head, as ``derive`` builds them."""


def write_history_tables(data: ChainData, attestations: AttestationCollector) -> None:
    """Write the derived tables of duties, operations, blocks and days."""
    duties.write_tables(data, attestations)
    operations.write_tables(data)
    deposits.write_tables(data)
    slashings.write_tables(data)
    execution.write_tables(data)
    _write_daily_stats(data)


def write_head_tables(data: ChainData) -> None:
    """Write the derived tables that describe the head, from those of `write_history_tables`."""
    data.derive(*RANKINGS)
    accounts.write_tables(data)
    pool.write_tables(data)


def _write_daily_stats(data: ChainData) -> None:
    """Write the daily statistics; what the service has no value for is 0."""
    rows = build_daily_stats(data, find_stats_days(data))
    is_genesis = pl.col("day") == GENESIS_DEPOSITS
    deposits = pl.when(is_genesis).then(1).otherwise("deposits_count")
    data.add(ValidatorStats, rows.with_columns(deposits_count=deposits).fill_null(0))
