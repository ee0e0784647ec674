"""The yield index: one row per day, by its published definition.

The index of a day covers the validators that were active the whole day: their income (end balance
minus start balance minus deposits plus withdrawals) and the priority fees of their blocks, divided
by the sum of their effective balances, times 365.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from beaconframes.consensus import rewards
from beaconframes.simulator import tables
from beaconframes.simulator.preset import ETH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beaconframes.calendar import Chain
    from beaconframes.simulator.epoch import Epoch
    from beaconframes.simulator.preset import Bools, Ints, Preset
    from beaconframes.simulator.registry import Registry

_WEI_PER_GWEI: Final = 10**9
_WINDOWS: Final = (7, 31)


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


class DayCollector:
    """Collects the sums of days from epochs."""

    def __init__(self, chain: Chain, registry: Registry, finalized: int) -> None:
        """Collect days that end at or before the first slot of the *finalized* epoch."""
        self._per_day, self._registry, self._finalized = chain.epochs_per_day, registry, finalized
        self.days: list[Day] = []
        self._first_start: tuple[int, int] | None = None
        self._start: tuple[Ints, Ints, Bools] | None = None
        self._reset()

    def add(self, epoch: Epoch) -> None:
        """Add an epoch."""
        # Balances are those after the first block: its withdrawals belong to the day that ends.
        is_first = epoch.withdrawals.slots == 0
        self._add_withdrawals(epoch, is_first)
        is_start = epoch.number % self._per_day == 0
        if self._first_start is None or (is_start and self._start is None):
            active = epoch.active
            self._first_start = (
                int(epoch.balance[active].sum()),
                int(epoch.effective[active].sum()),
            )
        if is_start:
            if self._start is not None and epoch.number <= self._finalized:
                self._finish_day(epoch)
            self._start = epoch.balance, epoch.effective, epoch.active
            self._reset()
        for _, validator, gwei in epoch.deposits:
            self._deposits[validator] += gwei
        self._add_withdrawals(epoch, ~is_first)
        self._fees[: len(epoch.balance)] += epoch.income.fees

    def _reset(self) -> None:
        size = len(self._registry.balance)
        self._deposits, self._withdrawals, self._fees = np.zeros((3, size), np.int64)

    def _add_withdrawals(self, epoch: Epoch, included: Bools) -> None:
        """Add some withdrawals; a validator has at most one per epoch."""
        validators, amounts = epoch.withdrawals.validators, epoch.withdrawals.amounts
        self._withdrawals[validators[included]] += amounts[included]

    @property
    def first_start(self) -> tuple[int, int]:
        """Return balance and effective balance at the start of the first day, in gwei.

        A chain without the start of a day has those of its first epoch.
        """
        if self.days:
            return self.days[0].start, self.days[0].effective
        return self._first_start or (0, 0)

    def _finish_day(self, epoch: Epoch) -> None:
        assert self._start is not None
        balance, effective, active = self._start
        throughout = np.flatnonzero(active & (self._registry.exit[: len(active)] >= epoch.number))
        self.days.append(
            Day(
                number=epoch.number // self._per_day - 1,
                start=int(balance[throughout].sum()),
                end=int(epoch.balance[throughout].sum()),
                effective=int(effective[throughout].sum()),
                deposits=int(self._deposits[throughout].sum()),
                withdrawals=int(self._withdrawals[throughout].sum()),
                fees=sum(self._fees[throughout].tolist()),
            )
        )


def model_past_days(
    seed: int,
    days: range,
    start: int,
    effective: int,
    *,
    preset: Preset,
    mean_fee: int,
    chain: Chain,
) -> list[Day]:
    """Return modelled *days* before the first detailed day, which continue its balances.

    *start* and *effective* are balance and effective balance of the first detailed day. Earlier
    days have a smaller stake and, by its inverse root, higher yields. Fees have a seasonal pattern.
    """
    rng = np.random.default_rng([seed, 6])
    slots = chain.epochs_per_day * chain.slots_per_epoch
    stake = effective
    modelled: list[Day] = []
    for number in reversed(days):
        deposits = int(rng.integers(1, 64)) * ETH if rng.integers(0, 3) == 0 else 0
        # One new validator per 1600 joins each day on average; rounded at random, not always down.
        thousandths = int(rng.integers(0, 2 * 1000 * stake // (32 * ETH) // 1600 + 1))
        joined = 32 * ETH * ((thousandths + int(rng.integers(0, 1000))) // 1000)
        # At most a hundredth of the stake per day, for small chains with a long past.
        limit = stake // ETH // 100 * ETH
        joined, deposits = min(joined, limit // 32 // ETH * 32 * ETH), min(deposits, limit)
        stake, end = stake - joined - deposits, start - joined
        # Rewards of a validator without missed duties; a few percent are missed.
        per_increment = rewards.compute_base_reward_per_increment(preset, stake)
        ideal = stake // preset.effective_balance_increment * per_increment * chain.epochs_per_day
        consensus = ideal * int(rng.integers(962_000, 972_000)) // 10**6
        # Rounded to millionths, so that all systems give the same result.
        season = round(10**6 * (1 + 0.18 * math.sin(2 * math.pi * (number + 40) / 365)))
        weekday = 1_040_000 if number % 7 < 5 else 900_000
        peak = int(rng.integers(850_000, 1_150_000)) * (2 if rng.integers(0, 40) == 0 else 1)
        fees = slots * mean_fee * season // 10**6 * weekday // 10**6 * peak // 10**6
        swept = consensus * int(rng.integers(960_000, 1_040_000)) // 10**6
        start = end - consensus - deposits + swept
        modelled.append(
            Day(
                number=number,
                start=start,
                end=end,
                effective=stake,
                deposits=deposits,
                withdrawals=swept,
                fees=fees + int(rng.integers(0, _WEI_PER_GWEI)),
            )
        )
    return modelled[::-1]


def build_yield_index(days: Sequence[Day], chain: Chain) -> pl.DataFrame:
    """Return the yield index, one row per day; trailing means cover the available days."""
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
        for window in _WINDOWS:
            columns[f"{name}_avg_{window}d"] = [
                math.fsum(part) / len(part) for part in _slice_trailing(values, window)
            ]
    for name, amounts in sums.items():
        columns[f"{name}_sum_wei"] = amounts
        for window in _WINDOWS:
            columns[f"{name}_avg_{window}d_wei"] = [
                _round_mean(part) for part in _slice_trailing(amounts, window)
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
    return tables.build_frame("yield_index", rows.to_dict())


def _compute_rate(wei: int, day: Day) -> float:
    return float(Fraction(365 * wei, day.effective * _WEI_PER_GWEI))


def _round_rate(wei: int, day: Day) -> float:
    """Return the rate rounded to 16 digits, halves away from zero as in databases."""
    rate = Decimal(365 * wei) / Decimal(day.effective * _WEI_PER_GWEI)
    return float(rate.quantize(Decimal("1e-16"), ROUND_HALF_UP))


def _slice_trailing(values: Sequence[Any], window: int) -> list[Sequence[Any]]:
    return [values[max(0, end - window) : end] for end in range(1, len(values) + 1)]


def _round_mean(amounts: Sequence[int]) -> int:
    """Return the mean as an integer, halves away from zero as in databases."""
    total, count = sum(amounts), len(amounts)
    size = (2 * abs(total) + count) // (2 * count)
    return size if total >= 0 else -size
