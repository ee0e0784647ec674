"""The yield index: one row per day, by its published definition.

Of the validators that were active the whole day: what they earned (end balance less start balance,
less deposits, plus withdrawals) and the priority fees of their blocks, over the sum of their
effective balances, times 365.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from beaconframes.simulator import rewards, tables
from beaconframes.simulator.preset import ETH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beaconframes.calendar import Chain
    from beaconframes.simulator.epoch import Epoch
    from beaconframes.simulator.preset import Bools, Ints, Preset
    from beaconframes.simulator.registry import Registry

_WEI: Final = 10**9  # in a gwei
_WINDOWS: Final = (7, 31)


@dataclass(frozen=True)
class Day:
    """The sums of a day, over the validators that were active throughout; fees in wei."""

    number: int
    start: int
    end: int
    effective: int
    deposits: int
    withdrawals: int
    fees: int

    @property
    def consensus(self) -> int:
        """Return consensus rewards less penalties, in gwei."""
        return self.end - self.start - self.deposits + self.withdrawals


class Days:
    """Adds epochs up to days."""

    def __init__(self, chain: Chain, registry: Registry, finalized: int) -> None:
        """Keep the days whose end is no later than the first slot of the *finalized* epoch."""
        self._per_day, self._registry, self._finalized = chain.epochs_per_day, registry, finalized
        self.days: list[Day] = []
        self._first_start = (0, 0)
        self._start: tuple[Ints, Ints, Bools] | None = None

    def add(self, epoch: Epoch) -> None:
        """Take an epoch in."""
        if epoch.number % self._per_day == 0:
            if self._start is None:
                active = epoch.active
                self._first_start = (
                    int(epoch.balance[active].sum()),
                    int(epoch.effective[active].sum()),
                )
            elif epoch.number <= self._finalized:
                self._close(epoch)
            self._start = epoch.balance, epoch.effective, epoch.active
            size = len(self._registry.balance)
            self._deposits, self._withdrawals, self._fees = np.zeros((3, size), np.int64)
        for _, validator, gwei in epoch.deposits:
            self._deposits[validator] += gwei
        # Nobody is paid twice in an epoch.
        self._withdrawals[epoch.withdrawals.validators] += epoch.withdrawals.amounts
        self._fees[: len(epoch.balance)] += epoch.income.fees

    @property
    def beginning(self) -> tuple[int, int]:
        """Return balance and effective balance with which the first day begins, in gwei."""
        if self.days:
            return self.days[0].start, self.days[0].effective
        return self._first_start

    def _close(self, epoch: Epoch) -> None:
        assert self._start is not None
        balance, effective, active = self._start
        whole = np.flatnonzero(active & (self._registry.exit[: len(active)] >= epoch.number))
        self.days.append(
            Day(
                number=epoch.number // self._per_day - 1,
                start=int(balance[whole].sum()),
                end=int(epoch.balance[whole].sum()),
                effective=int(effective[whole].sum()),
                deposits=int(self._deposits[whole].sum()),
                withdrawals=int(self._withdrawals[whole].sum()),
                fees=sum(self._fees[whole].tolist()),
            )
        )


def past(
    seed: int, days: int, start: int, effective: int, *, preset: Preset, mean_fee: int, chain: Chain
) -> list[Day]:
    """Return a model of the days before the detailed ones, continuous with their beginning.

    Going back from *start* and *effective*, the first detailed day's sums: the stake was smaller,
    yields were higher by the inverse root, fees had their seasons.
    """
    rng = np.random.default_rng([seed, 6])
    slots = chain.epochs_per_day * chain.slots_per_epoch
    stake = effective
    modelled: list[Day] = []
    for number in range(days - 1, -1, -1):
        deposits = int(rng.integers(1, 64)) * ETH if rng.integers(0, 3) == 0 else 0
        # A validator of 1600 joins every day, in the mean; rounded by chance, not always down.
        thousandths = int(rng.integers(0, 2 * 1000 * stake // (32 * ETH) // 1600 + 1))
        joined = 32 * ETH * ((thousandths + int(rng.integers(0, 1000))) // 1000)
        # However long the past of however few: never more than a hundredth of them a day.
        most = stake // ETH // 100 * ETH
        joined, deposits = min(joined, most // 32 // ETH * 32 * ETH), min(deposits, most)
        stake, end = stake - joined - deposits, start - joined
        # What all duties done would earn; a few in a hundred are missed.
        per_increment = rewards.base_reward_per_increment(preset, stake)
        ideal = stake // preset.effective_balance_increment * per_increment * chain.epochs_per_day
        consensus = ideal * int(rng.integers(962_000, 972_000)) // 10**6
        # Per million, so that the result is the same wherever it is computed.
        season = round(10**6 * (1 + 0.18 * math.sin(2 * math.pi * (number + 40) / 365)))
        weekday = 1_040_000 if number % 7 < 5 else 900_000
        rush = int(rng.integers(850_000, 1_150_000)) * (2 if rng.integers(0, 40) == 0 else 1)
        fees = slots * mean_fee * season // 10**6 * weekday // 10**6 * rush // 10**6
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
                fees=fees + int(rng.integers(0, _WEI)),
            )
        )
    return modelled[::-1]


def index(days: Sequence[Day], chain: Chain) -> pl.DataFrame:
    """Return the yield index. One row per day, trailing means over the days there are."""
    rates = {
        "apr": [_rate(day.consensus * _WEI + day.fees, day) for day in days],
        "cl_apr": [_rounded(day.consensus * _WEI, day) for day in days],
        "el_apr": [_rounded(day.fees, day) for day in days],
    }
    sums = {
        "consensus_rewards": [day.consensus * _WEI for day in days],
        "tx_fees": [day.fees for day in days],
    }
    columns: dict[str, Any] = {"day": [day.number for day in days]}
    for name, values in rates.items():
        columns[name] = values
        for window in _WINDOWS:
            columns[f"{name}_avg_{window}d"] = [
                math.fsum(part) / len(part) for part in _trailing(values, window)
            ]
    for name, amounts in sums.items():
        columns[f"{name}_sum_wei"] = amounts
        for window in _WINDOWS:
            columns[f"{name}_avg_{window}d_wei"] = [
                _mean(part) for part in _trailing(amounts, window)
            ]
    columns |= {
        "deposits_sum_wei": [day.deposits * _WEI for day in days],
        "effective_balances_sum_wei": [day.effective * _WEI for day in days],
        "start_balances_sum_wei": [day.start * _WEI for day in days],
        "end_balances_sum_wei": [day.end * _WEI for day in days],
        "total_rewards_wei": [day.consensus * _WEI + day.fees for day in days],
    }
    wei = {name: pl.Int128 for name in columns if name.endswith("_wei")}
    schema = {**dict.fromkeys(columns, pl.Float64), **wei, "day": pl.Int64}
    rows = pl.DataFrame(columns, schema=schema).with_columns(
        time=chain.time_expr("day", pl.col("day")),
        day_end=chain.time_expr("day", pl.col("day") + 1),
    )
    return tables.frame("yield_index", rows.to_dict())


def _rate(wei: int, day: Day) -> float:
    return float(Fraction(365 * wei, day.effective * _WEI))


def _rounded(wei: int, day: Day) -> float:
    """Return the rate to sixteen places, halves away from zero as databases round."""
    rate = Decimal(365 * wei) / Decimal(day.effective * _WEI)
    return float(rate.quantize(Decimal("1e-16"), ROUND_HALF_UP))


def _trailing(values: Sequence[Any], window: int) -> list[Sequence[Any]]:
    return [values[max(0, end - window) : end] for end in range(1, len(values) + 1)]


def _mean(amounts: Sequence[int]) -> int:
    """Return the mean as a whole number, halves away from zero as databases round."""
    total, count = sum(amounts), len(amounts)
    size = (2 * abs(total) + count) // (2 * count)
    return size if total >= 0 else -size
