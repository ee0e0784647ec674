"""Rewards and penalties for the attestations of an epoch, for all validators together.

The state after the last slot of epoch e + 1 has everything for the duties of epoch e: the
transition that follows this slot pays them. It first updates justification and inactivity scores,
and both decide the amounts. So they are computed here as well, from the same state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from beaconframes.consensus.registry import compute_total_active_balance, compute_total_balance
from beaconframes.consensus.rewards import (
    FLAG_WEIGHTS,
    TIMELY_HEAD,
    TIMELY_SOURCE,
    TIMELY_TARGET,
    compute_base_reward_per_increment,
    compute_flag_penalties,
    compute_flag_reward,
    compute_inactivity_penalties,
)
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from beaconframes.consensus.registry import Bools, Bytes, Ints, Registry
    from beaconframes.consensus.spec import Spec
    from beaconframes.consensus.state import BeaconState

_GENESIS_EPOCH: Final = 0

FLAGS: Final = {"source": TIMELY_SOURCE, "target": TIMELY_TARGET, "head": TIMELY_HEAD}


@dataclass(frozen=True)
class Justification:
    """What is justified and finalized; *bits* for the current epoch and the three before it."""

    bits: tuple[bool, bool, bool, bool]
    previous_justified_epoch: int
    current_justified_epoch: int
    finalized_epoch: int

    @classmethod
    def from_state(cls, state: BeaconState) -> Justification:
        """Return the justification that a state has."""
        return cls(
            state.justification_bits,
            state.previous_justified_epoch,
            state.current_justified_epoch,
            state.finalized_epoch,
        )

    @classmethod
    def after(cls, spec: Spec, state: BeaconState) -> Justification:
        """Return the justification after the transition at the end of the state's epoch."""
        return cls.from_state(state).process_flags(
            spec,
            state,
            spec.epoch_of(state.slot),
            state.previous_participation,
            state.current_participation,
        )

    def process_flags(
        self, spec: Spec, registry: Registry, epoch: int, previous: Bytes, current: Bytes
    ) -> Justification:
        """Return the justification after the transition at the end of *epoch*.

        *previous* and *current* are the participation flags for the epoch before, and for *epoch*.
        """
        targets = [
            compute_total_balance(
                spec,
                registry,
                registry.is_active(number) & ~registry.slashed & ((flags & TIMELY_TARGET) != 0),
            )
            for number, flags in ((epoch - 1, previous), (epoch, current))
        ]
        total = compute_total_active_balance(spec, registry, epoch)
        return self.process_epoch(epoch, total, *targets)

    def process_epoch(
        self,
        epoch: int,
        total_active_balance: int,
        previous_target_balance: int,
        current_target_balance: int,
    ) -> Justification:
        """Return the justification after the transition at the end of *epoch*.

        The target balances are those of unslashed validators with a timely target vote for the
        epoch before, and for *epoch* itself.
        """
        if epoch <= _GENESIS_EPOCH + 1:
            return self
        justified = self.current_justified_epoch
        bits = [False, *self.bits[:3]]
        if previous_target_balance * 3 >= total_active_balance * 2:
            justified, bits[1] = epoch - 1, True
        if current_target_balance * 3 >= total_active_balance * 2:
            justified, bits[0] = epoch, True
        finalized = self.finalized_epoch
        for source, first, distance in (
            (self.previous_justified_epoch, 1, 3),
            (self.previous_justified_epoch, 1, 2),
            (self.current_justified_epoch, 0, 2),
            (self.current_justified_epoch, 0, 1),
        ):
            if source + distance == epoch and all(bits[first : distance + 1]):
                finalized = source
        return Justification(
            (bits[0], bits[1], bits[2], bits[3]),
            self.current_justified_epoch,
            justified,
            finalized,
        )

    def is_leak(self, spec: Spec, epoch: int) -> bool:
        """Return whether the transition at the end of *epoch* is part of an inactivity leak.

        Call it on the justification that this transition has updated.
        """
        delay = max(epoch - 1, _GENESIS_EPOCH) - self.finalized_epoch
        return delay > spec.min_epochs_to_inactivity_penalty


@dataclass(frozen=True, eq=False)
class AttestationRewards:
    """Signed amounts in gwei, by validator, for the attestation duties of an epoch."""

    epoch: int
    source: Ints
    target: Ints
    head: Ints
    inactivity: Ints
    late: dict[str, tuple[Ints, Ints]]
    """Validators whose votes for source, target or head were late, with the rewards they missed."""
    is_leak: bool

    @property
    def missed(self) -> dict[str, Ints]:
        """Return what the votes for source, target and head would have earned if timely."""
        missed = {vote: np.zeros(len(self.source), np.int64) for vote in self.late}
        for vote, (validators, amounts) in self.late.items():
            missed[vote][validators] = amounts
        return missed

    @property
    def total(self) -> Ints:
        """Return the sum of the four amounts."""
        return self.source + self.target + self.head + self.inactivity

    @classmethod
    def compute(
        cls,
        spec: Spec,
        fork: str,
        epoch: int,
        registry: Registry,
        *,
        participation: Bytes,
        inactivity_scores: Ints,
        is_leak: bool,
    ) -> tuple[AttestationRewards, Ints]:
        """Return the amounts for the duties of *epoch*, and the inactivity scores with them.

        They are paid at the end of epoch + 1, whose *fork* and *registry* these are.
        *participation* has the flags for *epoch*; *inactivity_scores* are those before the
        transition.
        """
        was_active, slashed = registry.is_active(epoch), registry.slashed
        is_eligible = was_active | (slashed & (epoch + 1 < registry.withdrawable_epochs))
        participation = np.where(was_active & ~slashed, participation, 0)
        scores = update_inactivity_scores(
            spec,
            inactivity_scores,
            is_eligible,
            (participation & TIMELY_TARGET) != 0,
            is_leak=is_leak,
        )
        total_active_balance = compute_total_active_balance(spec, registry, epoch + 1)
        # Often less than half of the registry is eligible; the others have no amounts.
        chosen = np.flatnonzero(is_eligible)
        effective, flags = registry.effective_balances[chosen], participation[chosen]
        increments = effective // spec.effective_balance_increment
        active_increments = total_active_balance // spec.effective_balance_increment
        base = increments * compute_base_reward_per_increment(spec, total_active_balance)
        can_earn = ~slashed[chosen] & (not is_leak)  # A leak pays no rewards; penalties remain.
        amounts, late = {}, {}
        for flag, weight in FLAG_WEIGHTS.items():
            timely = (flags & flag) != 0
            reward = compute_flag_reward(weight, base, int(increments @ timely), active_increments)
            amount = amounts[flag] = np.where(timely & can_earn, reward, 0)
            is_late = ~timely & can_earn
            late[flag] = chosen[is_late], reward[is_late]
            if flag != TIMELY_HEAD:
                amount -= compute_flag_penalties(weight, base, ~timely)
        penalties = compute_inactivity_penalties(
            effective,
            scores[chosen],
            spec.inactivity_score_bias,
            spec.get_inactivity_penalty_quotient(fork),
        )
        penalties[(flags & TIMELY_TARGET) != 0] = 0

        def spread(values: Ints) -> Ints:
            full = np.zeros(len(is_eligible), np.int64)
            full[chosen] = values
            return full

        rewards = cls(
            epoch,
            source=spread(amounts[TIMELY_SOURCE]),
            target=spread(amounts[TIMELY_TARGET]),
            head=spread(amounts[TIMELY_HEAD]),
            inactivity=spread(-penalties),
            late={name: late[flag] for name, flag in FLAGS.items()},
            is_leak=is_leak,
        )
        return rewards, scores

    @classmethod
    def from_state(cls, spec: Spec, state: BeaconState) -> AttestationRewards:
        """Return the amounts for the duties of the epoch before that of *state*.

        The state must be that of the last slot of its epoch, because later blocks of the epoch
        include more attestations.
        """
        current = spec.epoch_of(state.slot)
        if state.slot + 1 != spec.first_slot_of(current + 1) or current == _GENESIS_EPOCH:
            raise UsageError(
                f"the state of slot {state.slot} has not the rewards of an epoch",
                hint="Use the state of the last slot of epoch 1 or later: "
                "it has the rewards for the duties of the epoch before",
            )
        rewards, _ = cls.compute(
            spec,
            state.fork,
            current - 1,
            state,
            participation=state.previous_participation,
            inactivity_scores=state.inactivity_scores,
            is_leak=Justification.after(spec, state).is_leak(spec, current),
        )
        return rewards


def update_inactivity_scores(
    spec: Spec, scores: Ints, is_eligible: Bools, is_timely_target: Bools, *, is_leak: bool
) -> Ints:
    """Return the inactivity scores after the transition at the end of an epoch."""
    updated = scores + np.where(is_timely_target, -1, spec.inactivity_score_bias)
    np.maximum(updated, 0, out=updated)
    if not is_leak:
        updated -= spec.inactivity_score_recovery_rate
        np.maximum(updated, 0, out=updated)
    np.copyto(updated, scores, where=~is_eligible)
    return updated
