"""Checks of the parts of attestation rewards that the rewards routes state.

Balances confirm the sum of the parts. Errors that cancel within one validator are found here: each
part is an amount that the specification can pay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from beaconframes.beacon_node.amounts.epoch_amounts import UNKNOWN
from beaconframes.consensus.registry import compute_total_active_balance
from beaconframes.consensus.rewards import (
    TIMELY_HEAD_WEIGHT,
    TIMELY_SOURCE_WEIGHT,
    TIMELY_TARGET_WEIGHT,
    WEIGHT_DENOMINATOR,
    compute_base_reward_per_increment,
    compute_flag_reward,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.consensus.registry import Bools, Ints, Registry
    from beaconframes.consensus.spec import Spec

WEIGHTS: Final = {
    "source": TIMELY_SOURCE_WEIGHT,
    "target": TIMELY_TARGET_WEIGHT,
    "head": TIMELY_HEAD_WEIGHT,
}


def find_contradicted(
    spec: Spec,
    epoch: int,
    registry: Registry,
    parts: Mapping[str, Ints],
    ideal: Mapping[str, Ints],
    *,
    has_all: bool,
) -> Bools:
    """Return which validators have a part for *epoch* that no vote of theirs can have.

    A vote earns the *ideal* reward, nothing, or the penalty of its weight. *registry* has the
    validators in the epoch after. If it *has_all* of the chain, rewards and penalties follow from
    their balances. Otherwise, the penalties of all validators must follow from one base reward, and
    rewards that the node does not state are not checked.
    """
    increments = registry.effective_balances // spec.effective_balance_increment
    contradicted = _is_no_inactivity_penalty(spec, epoch, registry, parts["inactivity"])
    contradicted |= parts["head"] < 0  # Only rewards.
    base = None
    if has_all:
        total = compute_total_active_balance(spec, registry, epoch + 1)
        base = compute_base_reward_per_increment(spec, total)
        active_increments = total // spec.effective_balance_increment
    for vote, weight in WEIGHTS.items():
        is_timely = parts[vote] > 0
        expected = ideal[vote]
        if base is not None:
            participating = int(increments @ is_timely)
            expected = compute_flag_reward(
                weight, increments * base, participating, active_increments
            )
        contradicted |= is_timely & (expected != UNKNOWN) & (parts[vote] != expected)
    return contradicted | _find_wrong_penalties(increments, parts, base)


def _find_wrong_penalties(increments: Ints, parts: Mapping[str, Ints], base: int | None) -> Bools:
    """Return which validators have a penalty that does not follow from the base reward.

    *base* is the base reward of one increment; None if it is unknown. A penalty is a part of the
    base reward, rounded down, so that it limits the base reward on both sides.
    """
    wrong = np.zeros(len(increments), np.bool_)
    lows, highs = [], []
    for vote in ("source", "target"):
        places = np.flatnonzero(parts[vote] < 0)
        shares = WEIGHTS[vote] * increments[places]
        if not shares.all():
            wrong[places[shares == 0]] = True
            places, shares = places[shares > 0], shares[shares > 0]
        scaled = -parts[vote][places] * WEIGHT_DENOMINATOR
        low, high = -(-scaled // shares), (scaled + WEIGHT_DENOMINATOR - 1) // shares
        lows.append(low)
        highs.append(high)
        if base is not None:
            wrong[places[(low > base) | (high < base)]] = True
    if base is None:
        low, high = np.concatenate(lows), np.concatenate(highs)
        if len(low) and low.max() > high.min():
            # One of them is wrong, and it is unknown which one.
            wrong |= (parts["source"] < 0) | (parts["target"] < 0)
    return wrong


def _is_no_inactivity_penalty(spec: Spec, epoch: int, registry: Registry, amounts: Ints) -> Bools:
    """Return which inactivity penalties are those of no inactivity score, which is an integer."""
    quotient = spec.inactivity_score_bias * spec.get_inactivity_penalty_quotient(
        spec.fork_at(epoch + 1)
    )
    effective = np.maximum(registry.effective_balances, 1)
    scores = -(amounts * quotient // effective)
    is_wrong: Bools = registry.effective_balances * scores // quotient != -amounts
    return is_wrong
