"""Statistics that a service computes: days, rankings and luck of validators, as in ``derive``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.derive.daily_stats import build_daily_stats, find_stats_days
from beaconframes.derive.proposal_luck import build_proposal_luck
from beaconframes.derive.rankings import (
    build_execution_performance,
    build_leaderboard,
    build_performance,
)
from beaconframes.v1.execution_performance import ExecutionPerformance
from beaconframes.v1.leaderboard import Leaderboard
from beaconframes.v1.performance import Performance
from beaconframes.v1.proposal_luck import ProposalLuck
from beaconframes.v1.validator_stats import GENESIS_DEPOSITS, ValidatorStats

if TYPE_CHECKING:
    from beaconframes.simulator.derived.chain_data import ChainData


def write_daily_stats(data: ChainData) -> None:
    """Write the daily statistics; what the service has no value for is 0."""
    rows = build_daily_stats(data, find_stats_days(data))
    is_genesis = pl.col("day") == GENESIS_DEPOSITS
    deposits = pl.when(is_genesis).then(1).otherwise("deposits_count")
    data.add(ValidatorStats, rows.with_columns(deposits_count=deposits).fill_null(0))


def write_rankings(data: ChainData, produced: pl.DataFrame) -> None:
    """Write performance and leaderboard; *produced* has the paid block rewards."""
    rows = build_performance(data)
    data.add(Performance, rows)
    data.add(ExecutionPerformance, build_execution_performance(data, produced.lazy()))
    data.add(Leaderboard, build_leaderboard(data, rows))


def write_luck(data: ChainData) -> None:
    """Write the luck of the first validators."""
    data.add(ProposalLuck, build_proposal_luck(data))
