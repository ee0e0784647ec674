"""Formulas of rewards and penalties from the consensus specification, in whole gwei.

All divisions round down where the specification does. Arrays have one entry per validator.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from beaconframes.simulator.preset import Bools, Ints, Preset


def compute_base_reward_per_increment(preset: Preset, total_active_balance: int) -> int:
    """Return the base reward of one increment of effective balance per epoch."""
    increment = preset.effective_balance_increment
    return increment * preset.base_reward_factor // math.isqrt(total_active_balance)


def compute_flag_rewards(
    preset: Preset, weight: int, base: Ints, increments: Ints, timely: Bools, active_increments: int
) -> Ints:
    """Return the rewards of one participation flag, for the *timely* unslashed validators."""
    participating = int(increments[timely].sum())
    reward = compute_flag_reward(preset, weight, base, participating, active_increments)
    return np.where(timely, reward, 0)


def compute_flag_reward(
    preset: Preset, weight: int, base: Ints, participating: int, active_increments: int
) -> Ints:
    """Return the reward of one participation flag for each validator, if it is timely."""
    return base * weight * participating // (active_increments * preset.weight_denominator)


def compute_flag_penalties(preset: Preset, weight: int, base: Ints, missed: Bools) -> Ints:
    """Return the penalties of one participation flag (source or target; head has none)."""
    return np.where(missed, base * weight // preset.weight_denominator, 0)


def compute_inclusion_rewards(preset: Preset, numerators: Ints) -> Ints:
    """Return the proposer's reward for each included attestation.

    A numerator is the sum of base reward times weight over the flags that an attestation sets.
    """
    weights = preset.weight_denominator - preset.proposer_weight
    return numerators // (weights * preset.weight_denominator // preset.proposer_weight)


def compute_sync_rewards(
    preset: Preset, per_increment: int, active_increments: int, slots: int, seats: int
) -> tuple[int, int]:
    """Return the rewards of a sync committee seat and of the proposer per signature in a block.

    A seat that does not sign loses the amount of its reward.
    """
    total = per_increment * active_increments
    per_block = total * preset.sync_reward_weight // preset.weight_denominator // slots
    seat = per_block // seats
    proposer = preset.proposer_weight
    return seat, seat * proposer // (preset.weight_denominator - proposer)


def compute_slashing_amounts(preset: Preset, effective_balance: int) -> tuple[int, int, int]:
    """Return initial penalty, proposer reward and whistleblower reward of a slashing."""
    penalty = effective_balance // preset.min_slashing_penalty_quotient
    reward = effective_balance // preset.whistleblower_reward_quotient
    proposer = reward * preset.proposer_weight // preset.weight_denominator
    return penalty, proposer, reward - proposer


def compute_correlation_penalty(
    preset: Preset, effective_balance: int, slashed_balance: int, total_active_balance: int
) -> int:
    """Return the penalty half-way to withdrawal, which grows with the recently slashed balance."""
    increment = preset.effective_balance_increment
    adjusted = min(slashed_balance * preset.proportional_slashing_multiplier, total_active_balance)
    return adjusted // (total_active_balance // increment) * (effective_balance // increment)


def update_effective_balances(
    preset: Preset, balance: Ints, effective: Ints, max_effective: Ints
) -> Ints:
    """Return the effective balances after an epoch, with hysteresis."""
    increment = preset.effective_balance_increment
    step = increment // preset.hysteresis_quotient
    changed = (balance + step * preset.hysteresis_downward_multiplier < effective) | (
        effective + step * preset.hysteresis_upward_multiplier < balance
    )
    return np.where(changed, np.minimum(balance - balance % increment, max_effective), effective)
