"""Derived tables: all tables that the engine does not write.

The engine writes blocks, balances, income and events. The modules here make all other tables from
those rows, so that no two tables disagree. Tables that follow from the rows alone are those of
``derive``. Data without a source in the chain (prices, tokens, the pool's contracts) is generated
from hashes of the seed, under names that are clearly fictional.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes.simulator.derived import (
    accounts,
    deposits,
    duties,
    execution,
    operations,
    pool,
    service_tables,
    slashings,
)

if TYPE_CHECKING:
    from beaconframes.simulator.derived.chain_data import ChainData
    from beaconframes.simulator.derived.duties import AttestationCollector


def write_derived_tables(data: ChainData, attestations: AttestationCollector) -> None:
    """Write all derived tables, each after the tables that it needs."""
    duties.write_tables(data, attestations)
    operations.write_tables(data)
    deposits.write_tables(data)
    slashings.write_tables(data)
    produced = execution.write_tables(data)
    service_tables.write_daily_stats(data)
    service_tables.write_rankings(data, produced)
    service_tables.write_luck(data)
    accounts.write_tables(data, produced)
    pool.write_tables(data)


__all__ = ["write_derived_tables"]
