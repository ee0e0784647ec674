"""All derived tables: what each needs, and the function that builds its rows."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from beaconframes.derive.attestation_efficiency import build_attestation_efficiency
from beaconframes.derive.balance_moves import DEPOSITS, WITHDRAWALS, find_deposits
from beaconframes.derive.chain_tables import ChainTables, fit_table
from beaconframes.derive.daily_stats import build_daily_stats, find_stats_days
from beaconframes.derive.epochs import build_epochs
from beaconframes.derive.proposal_luck import build_proposal_luck
from beaconframes.derive.rankings import (
    build_execution_performance,
    build_leaderboard,
    build_performance,
)
from beaconframes.derive.validator_tables import (
    build_validator_withdrawals,
    build_withdrawal_credentials,
)
from beaconframes.derive.yield_index import LONGEST_WINDOW, build_yield_index, sum_days
from beaconframes.v1.attestation_efficiency import AttestationEfficiency
from beaconframes.v1.epochs import Epochs
from beaconframes.v1.execution_performance import ExecutionPerformance
from beaconframes.v1.leaderboard import Leaderboard
from beaconframes.v1.performance import Performance
from beaconframes.v1.proposal_luck import ProposalLuck
from beaconframes.v1.validator_stats import ValidatorStats
from beaconframes.v1.validator_withdrawals import ValidatorWithdrawals
from beaconframes.v1.withdrawal_credentials import WithdrawalCredentials
from beaconframes.v1.yield_index import YieldIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from beaconframes.schema import Table

Rows: TypeAlias = "Iterable[pl.DataFrame]"


@dataclass(frozen=True)
class Derivation:
    """A derived table; of each of its *sources* one table must exist.

    ``build`` takes the epochs and the days of tables that grow; None for all.
    """

    table: type[Table]
    sources: tuple[tuple[str, ...], ...]
    build: Callable[[ChainTables, range | None, range | None], Rows]
    _: KW_ONLY
    needs_all_validators: bool = False


def derive_tables(
    data: ChainTables,
    *,
    names: Collection[str] | None = None,
    epochs: range | None = None,
    days: range | None = None,
) -> Iterator[tuple[type[Table], pl.DataFrame]]:
    """Yield the rows of each table that can be derived, in the columns of the table.

    A table may have several frames: ``validator_stats`` has one for each day, so that memory holds
    one day. A table without rows has one empty frame.

    Parameters
    ----------
    data
        The tables to read. All of them must be stored before.
    names
        Names of the tables to derive, by default all.
    epochs, days
        The epochs of ``epochs`` and ``validator_withdrawals``, and the days of ``validator_stats``
        and ``yield_index``, by default all. Day -1 has the deposits of genesis.
    """
    obstacles = find_obstacles(data)
    for derivation in DERIVATIONS:
        table = derivation.table
        if table.table_name in obstacles or (names is not None and table.table_name not in names):
            continue
        has_rows = False
        for rows in derivation.build(data, epochs, days):
            if rows.height:
                has_rows = True
                yield table, fit_table(table, rows)
        if not has_rows:
            yield table, table.empty()


def find_obstacles(data: ChainTables) -> dict[str, str]:
    """Return the tables that cannot be derived, each with the reason."""
    obstacles = {}
    for derivation in DERIVATIONS:
        reasons = [
            f"the table {' or '.join(sources)} is missing"
            for sources in derivation.sources
            if data.find_table(*sources) is None
        ]
        if DEPOSITS in derivation.sources and not reasons and find_deposits(data) is None:
            reasons.append(f"the chain has deposit requests, but no table {DEPOSITS[0]}")
        if derivation.needs_all_validators and data.coverage.validators is not None:
            reasons.append(
                f"it needs all validators, and {len(data.coverage.validators)} are covered"
            )
        if reasons:
            obstacles[derivation.table.table_name] = "; ".join(reasons)
    return obstacles


def _derive_daily_stats(data: ChainTables, _: range | None, days: range | None) -> Rows:
    for day in find_stats_days(data):
        if days is None or day in days:
            yield build_daily_stats(data, [day])


def _derive_yield_index(data: ChainTables, _: range | None, days: range | None) -> Rows:
    # Means need the days before.
    near = None if days is None else range(days.start - LONGEST_WINDOW + 1, days.stop)
    rows = build_yield_index(sum_days(data, near), data.chain)
    yield (
        rows
        if days is None
        else rows.filter(pl.col("day").is_between(days.start, days.stop, closed="left"))
    )


def _derive_validator_withdrawals(data: ChainTables, epochs: range | None, _: object) -> Rows:
    rows = data.scan("slot_withdrawals")
    if epochs is not None:
        epoch = data.epoch_of("block_slot")
        rows = rows.filter(epoch.is_between(epochs.start, epochs.stop, closed="left"))
    yield build_validator_withdrawals(data, rows)


_BALANCES = (("validators",), ("balance_history",))
_INCOME = ("income_history",)

DERIVATIONS = (
    Derivation(
        Epochs,
        (*_BALANCES, ("blocks",)),
        lambda data, epochs, _: [build_epochs(data, epochs)],
        needs_all_validators=True,
    ),
    Derivation(ValidatorStats, _BALANCES, _derive_daily_stats),
    Derivation(
        YieldIndex,
        (*_BALANCES, _INCOME, DEPOSITS, WITHDRAWALS),
        _derive_yield_index,
        needs_all_validators=True,
    ),
    Derivation(
        Performance,
        (("validators",), _INCOME),
        lambda data, *_: [build_performance(data)],
    ),
    Derivation(
        Leaderboard,
        (*_BALANCES, _INCOME),
        lambda data, *_: [build_leaderboard(data, build_performance(data))],
        needs_all_validators=True,
    ),
    Derivation(
        ExecutionPerformance,
        (("validators",), ("execution_blocks",)),
        lambda data, *_: [build_execution_performance(data, data.scan("execution_blocks"))],
    ),
    Derivation(
        AttestationEfficiency,
        (("validators",), ("attestations",)),
        lambda data, *_: [build_attestation_efficiency(data)],
    ),
    Derivation(
        ProposalLuck,
        (("validators",), ("blocks",)),
        lambda data, *_: [build_proposal_luck(data)],
        needs_all_validators=True,
    ),
    Derivation(
        ValidatorWithdrawals,
        (("slot_withdrawals",), ("blocks",)),
        _derive_validator_withdrawals,
    ),
    Derivation(
        WithdrawalCredentials,
        (("validators",),),
        lambda data, *_: [build_withdrawal_credentials(data)],
    ),
)
"""The derived tables, in the order in which they are derived."""
