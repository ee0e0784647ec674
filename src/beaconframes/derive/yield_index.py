"""The yield index (ETH.STORE): one row per day, by its published definition.

The index of a day covers the validators that were active the whole day: at its first slot, and not
exiting before its end. Their consensus rewards are the end balance minus the start balance, minus
deposits, plus withdrawals. Ether that a consolidation moves to a validator counts as a deposit, and
what it takes away as a withdrawal. Together with the priority fees of their blocks, divided by the
sum of their effective balances, times 365, this is the yearly rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from beaconframes.derive.balance_moves import TRANSFERS, WITHDRAWALS, find_deposits, scan_moves
from beaconframes.derive.chain_tables import fit_table
from beaconframes.v1.yield_index import YieldIndex

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beaconframes.calendar import Chain
    from beaconframes.derive.chain_tables import ChainTables

_WEI_PER_GWEI: Final = 10**9
_WINDOWS: Final = (7, 31)
LONGEST_WINDOW: Final = max(_WINDOWS)
"""The most days of a trailing mean."""

_STATES: Final = 2  # at the start and at the end of a day


@dataclass(frozen=True)
class Day:
    """The sums of a day over the validators that were active throughout: gwei, fees in wei."""

    number: int
    start: int
    end: int
    effective: int
    deposits: int
    withdrawals: int
    fees: int

    @property
    def consensus(self) -> int:
        """Return consensus rewards minus penalties, in gwei."""
        return self.end - self.start - self.deposits + self.withdrawals


def sum_days(data: ChainTables, days: range | None = None) -> list[Day]:
    """Return the sums of *days*, or of all days; a day is left out if a part of it is missing.

    The balances at its start and its end are needed, the deposits and withdrawals between them and
    the fees of its blocks.
    """
    moves = scan_moves(data)
    if moves is None or data.coverage.validators is not None:
        return []
    size = data.chain.epochs_per_day
    # Only the balances at the ends of a day are needed.
    starts = {
        day
        for first, last in data.coverage.epochs_of("balance_history")
        for day in range(-(-first // size), last // size + 1)
    }
    covered = (
        day
        for day in sorted(starts)
        if (days is None or day in days)
        and (day + 1) in starts
        and day < data.days_end
        and _covers_moves(data, day)
    )
    sums = (sum_day(data, day, moves) for day in covered)
    return [day for day in sums if day is not None]


def _covers_moves(data: ChainTables, day: int) -> bool:
    """Return whether all moves of balances on a day are covered, and all fees."""
    tables = (find_deposits(data), data.find_table(*WITHDRAWALS), data.find_table(TRANSFERS))
    # The first block of the next day is in the end balance.
    return data.covers_day("income_history", day) and all(
        data.covers_day(table, day, extra_epochs=1) for table in tables if table
    )


def sum_day(data: ChainTables, day: int, moves: pl.LazyFrame) -> Day | None:
    """Return the sums of a day.

    None if a balance is missing, a fee is unknown, or no validator was active throughout.
    """
    epochs = data.epochs_of_day(day)
    start, end = epochs.start, epochs.stop
    is_active = (pl.col("activation_epoch") <= start) & (
        pl.col("exit_epoch").is_null() | (pl.col("exit_epoch") >= end)
    )
    members = data.validators.filter(is_active).select("validator_index")
    balances = (
        data.scan("balance_history")
        .filter(pl.col("epoch").is_in([start, end]))
        .join(members.lazy(), "validator_index", how="semi")
        .group_by("epoch")
        .agg(pl.len(), pl.col("balance_gwei", "effective_balance_gwei").sum())
        .collect()
    )
    sums = {epoch: gwei for epoch, count, *gwei in balances.iter_rows() if count == members.height}
    fees = (
        data.scan("income_history")
        .filter(
            pl.col("epoch").is_between(start, end, closed="left"),
            pl.col("tx_fee_reward_wei").ne_missing(0),
        )
        .join(members.lazy(), "validator_index", how="semi")
        .select("tx_fee_reward_wei")
        .collect()["tx_fee_reward_wei"]
    )
    if len(sums) < _STATES or fees.null_count():
        return None
    # The first block of a day is in its start balance: it counts for the day before.
    first, last = (epoch * data.chain.slots_per_epoch for epoch in (start, end))
    gwei = pl.col("amount_gwei")
    received, left = (
        moves.filter(pl.col("slot").is_between(first, last, closed="right"))
        .join(members.lazy(), "validator_index", how="semi")
        .select(received=gwei.filter(gwei > 0).sum(), left=-gwei.filter(gwei < 0).sum())
        .collect()
        .row(0)
    )
    return Day(
        number=day,
        start=sums[start][0],
        end=sums[end][0],
        effective=sums[start][1],
        deposits=received,
        withdrawals=left,
        fees=sum(map(int, fees)),
    )


def build_yield_index(days: Sequence[Day], chain: Chain, first: int = 0) -> pl.DataFrame:
    """Return the yield index, one row per day.

    Trailing means start with day *first* at the earliest. A mean is null if one of its days is
    missing.
    """
    windows = [(window, _find_windows(days, window, first)) for window in _WINDOWS]
    rates = {
        "apr": [_compute_rate(day.consensus * _WEI_PER_GWEI + day.fees, day) for day in days],
        "cl_apr": [_round_rate(day.consensus * _WEI_PER_GWEI, day) for day in days],
        "el_apr": [_round_rate(day.fees, day) for day in days],
    }
    sums = {
        "consensus_rewards": [day.consensus * _WEI_PER_GWEI for day in days],
        "tx_fees": [day.fees for day in days],
    }
    columns: dict[str, Any] = {"day": [day.number for day in days]}
    for name, values in rates.items():
        columns[name] = values
        for window, parts in windows:
            columns[f"{name}_avg_{window}d"] = [
                math.fsum(values[part]) / len(values[part]) if part else None for part in parts
            ]
    for name, amounts in sums.items():
        columns[f"{name}_sum_wei"] = amounts
        for window, parts in windows:
            columns[f"{name}_avg_{window}d_wei"] = [
                _round_mean(amounts[part]) if part else None for part in parts
            ]
    columns |= {
        "deposits_sum_wei": [day.deposits * _WEI_PER_GWEI for day in days],
        "effective_balances_sum_wei": [day.effective * _WEI_PER_GWEI for day in days],
        "start_balances_sum_wei": [day.start * _WEI_PER_GWEI for day in days],
        "end_balances_sum_wei": [day.end * _WEI_PER_GWEI for day in days],
        "total_rewards_wei": [day.consensus * _WEI_PER_GWEI + day.fees for day in days],
    }
    wei = {name: pl.Int128 for name in columns if name.endswith("_wei")}
    schema = {**dict.fromkeys(columns, pl.Float64), **wei, "day": pl.Int64}
    rows = pl.DataFrame(columns, schema=schema).with_columns(
        time=chain.time_expr("day", pl.col("day")),
        day_end=chain.time_expr("day", pl.col("day") + 1),
    )
    return fit_table(YieldIndex, rows)


def _compute_rate(wei: int, day: Day) -> float:
    return float(Fraction(365 * wei, day.effective * _WEI_PER_GWEI))


def _round_rate(wei: int, day: Day) -> float:
    """Return the rate rounded to 16 digits, halves away from zero as in databases."""
    rate = Decimal(365 * wei) / Decimal(day.effective * _WEI_PER_GWEI)
    return float(rate.quantize(Decimal("1e-16"), ROUND_HALF_UP))


def _find_windows(days: Sequence[Day], window: int, first: int) -> list[slice | None]:
    """Return the positions of the last days before the end of each day; None if one is missing."""
    windows: list[slice | None] = []
    for position, day in enumerate(days):
        size = min(window, day.number - first + 1)
        start = position - size + 1
        is_whole = start >= 0 and days[start].number == day.number - size + 1
        windows.append(slice(start, position + 1) if is_whole else None)
    return windows


def _round_mean(amounts: Sequence[int]) -> int:
    """Return the mean as an integer, halves away from zero as in databases."""
    total, count = sum(amounts), len(amounts)
    size = (2 * abs(total) + count) // (2 * count)
    return size if total >= 0 else -size
