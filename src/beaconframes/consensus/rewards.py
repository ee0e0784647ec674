"""Formulas of rewards and penalties from the consensus specification, in whole gwei.

All divisions round down where the specification does. Arrays have one entry per validator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    # The registry has these, too, but it imports the specification, which imports this module.
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

TIMELY_SOURCE: Final = 1
TIMELY_TARGET: Final = 2
TIMELY_HEAD: Final = 4
"""The bits of a participation flag."""

TIMELY_SOURCE_WEIGHT: Final = 14
TIMELY_TARGET_WEIGHT: Final = 26
TIMELY_HEAD_WEIGHT: Final = 14
FLAG_WEIGHTS: Final = {
    TIMELY_SOURCE: TIMELY_SOURCE_WEIGHT,
    TIMELY_TARGET: TIMELY_TARGET_WEIGHT,
    TIMELY_HEAD: TIMELY_HEAD_WEIGHT,
}
SYNC_REWARD_WEIGHT: Final = 2
PROPOSER_WEIGHT: Final = 8
WEIGHT_DENOMINATOR: Final = 64


@dataclass(frozen=True, kw_only=True)
class RewardConstants:
    """The constants of a chain that every fork uses alike. The defaults are those of mainnet."""

    base_reward_factor: int = 64
    effective_balance_increment: int = 10**9
    hysteresis_quotient: int = 4
    hysteresis_downward_multiplier: int = 1
    hysteresis_upward_multiplier: int = 5


def compute_base_reward_per_increment(constants: RewardConstants, total_active_balance: int) -> int:
    """Return the base reward of one increment of effective balance per epoch."""
    increment = constants.effective_balance_increment
    return increment * constants.base_reward_factor // math.isqrt(total_active_balance)


def compute_flag_reward(
    weight: int, base: Ints, participating: int, active_increments: int
) -> Ints:
    """Return the reward of one participation flag for each validator, if it is timely."""
    return base * weight * participating // (active_increments * WEIGHT_DENOMINATOR)


def compute_flag_penalties(weight: int, base: Ints, missed: Bools) -> Ints:
    """Return the penalties of one participation flag (source or target; head has none)."""
    return np.where(missed, base * weight // WEIGHT_DENOMINATOR, 0)


def compute_inclusion_rewards(numerators: Ints) -> Ints:
    """Return the proposer's reward for each included attestation.

    A numerator is the sum of base reward times weight over the flags that an attestation sets.
    """
    weights = WEIGHT_DENOMINATOR - PROPOSER_WEIGHT
    return numerators // (weights * WEIGHT_DENOMINATOR // PROPOSER_WEIGHT)


def compute_sync_rewards(
    per_increment: int, active_increments: int, slots: int, seats: int
) -> tuple[int, int]:
    """Return the rewards of a sync committee seat and of the proposer per signature in a block.

    A seat that does not sign loses the amount of its reward.
    """
    total = per_increment * active_increments
    per_block = total * SYNC_REWARD_WEIGHT // WEIGHT_DENOMINATOR // slots
    seat = per_block // seats
    return seat, seat * PROPOSER_WEIGHT // (WEIGHT_DENOMINATOR - PROPOSER_WEIGHT)


def compute_slashing_amounts(
    effective_balance: int, penalty_quotient: int, whistleblower_quotient: int
) -> tuple[int, int, int]:
    """Return initial penalty, proposer reward and whistleblower reward of a slashing.

    The quotients are ``MIN_SLASHING_PENALTY_QUOTIENT`` and ``WHISTLEBLOWER_REWARD_QUOTIENT`` of the
    fork.
    """
    penalty = effective_balance // penalty_quotient
    reward = effective_balance // whistleblower_quotient
    proposer = reward * PROPOSER_WEIGHT // WEIGHT_DENOMINATOR
    return penalty, proposer, reward - proposer


def compute_correlation_penalty(
    constants: RewardConstants,
    effective_balance: int,
    slashed_balance: int,
    total_active_balance: int,
    multiplier: int,
    *,
    is_electra: bool = True,
) -> int:
    """Return the penalty half-way to withdrawal, which grows with the recently slashed balance.

    The multiplier is ``PROPORTIONAL_SLASHING_MULTIPLIER`` of the fork. Electra and later forks
    divide first; the forks before it round each penalty down to whole increments.
    """
    increment = constants.effective_balance_increment
    adjusted = min(slashed_balance * multiplier, total_active_balance)
    increments = effective_balance // increment
    if is_electra:
        return adjusted // (total_active_balance // increment) * increments
    return increments * adjusted // total_active_balance * increment


def compute_inactivity_penalties(
    effective_balances: Ints, scores: Ints, score_bias: int, penalty_quotient: int
) -> Ints:
    """Return the inactivity penalties of validators without a timely target vote."""
    return effective_balances * scores // (score_bias * penalty_quotient)


def update_effective_balances(
    constants: RewardConstants, balance: Ints, effective: Ints, max_effective: Ints
) -> Ints:
    """Return the effective balances after an epoch, with hysteresis."""
    increment = constants.effective_balance_increment
    step = increment // constants.hysteresis_quotient
    changed = (balance + step * constants.hysteresis_downward_multiplier < effective) | (
        effective + step * constants.hysteresis_upward_multiplier < balance
    )
    return np.where(changed, np.minimum(balance - balance % increment, max_effective), effective)
