"""Modeled days of the yield index, before the first epoch that is simulated in detail."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from beaconframes.consensus import rewards
from beaconframes.derive.validator_tables import is_active
from beaconframes.derive.yield_index import Day, build_yield_index, sum_days
from beaconframes.simulator.preset import ETH
from beaconframes.v1.yield_index import YieldIndex

if TYPE_CHECKING:
    from beaconframes.calendar import Chain
    from beaconframes.simulator.derived.chain_data import ChainData
    from beaconframes.simulator.preset import Preset

_WEI_PER_GWEI: Final = 10**9


def write_table(data: ChainData, preset: Preset, mean_fee: int) -> None:
    """Write the yield index: modeled days, then the days that are simulated in detail."""
    days = sum_days(data)
    # Without a complete day, the model continues the balances of the first one.
    start = (days[0].start, days[0].effective) if days else _find_first_balances(data)
    number = -(-data.first // data.chain.epochs_per_day)
    past = range(number - int(data.meta["history_days"]), number)
    modeled = model_past_days(
        data.seed, past, *start, preset=preset, mean_fee=mean_fee, chain=data.chain
    )
    days = [*modeled, *days]
    first = days[0].number if days else 0
    data.add(YieldIndex, build_yield_index(days, data.chain, first))


def _find_first_balances(data: ChainData) -> tuple[int, int]:
    """Return balance and effective balance of active validators when the first day starts."""
    start = -(-data.first // data.chain.epochs_per_day) * data.chain.epochs_per_day
    epoch = start if start <= data.head.epoch else data.first
    rows = data.scan("balance_history").filter(epoch=epoch).collect()
    rows = rows.join(data.validators.filter(is_active(epoch)), "validator_index", how="semi")
    balance, effective = rows.select("balance_gwei", "effective_balance_gwei").sum().row(0)
    return balance, effective


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
    """Return modeled *days* before the first detailed day, which continue its balances.

    *start* and *effective* are balance and effective balance of the first detailed day. Earlier
    days have a smaller stake and, by its inverse root, higher yields. Fees have a seasonal pattern.
    """
    rng = np.random.default_rng([seed, 6])
    slots = chain.epochs_per_day * chain.slots_per_epoch
    stake = effective
    modeled: list[Day] = []
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
        modeled.append(
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
    return modeled[::-1]
