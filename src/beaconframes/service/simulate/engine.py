"""The chain itself: one epoch after the other, every gwei accounted for.

What an epoch earns is settled at its end: the state at the first slot of the next epoch is this
epoch's state, plus net income, plus deposits, less withdrawals.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from beaconframes.service.simulate import duties, fees, rewards
from beaconframes.service.simulate.duties import NOBODY, VARIANTS, Fate, Slots, Votes
from beaconframes.service.simulate.income import Income
from beaconframes.service.simulate.preset import FAR_FUTURE
from beaconframes.service.simulate.sweep import Withdrawals, sweep

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beaconframes.calendar import Chain
    from beaconframes.service.simulate.preset import Bools, Ints, Preset
    from beaconframes.service.simulate.registry import Plan, Registry


@dataclass
class Slashing:
    """A slashing that a block included; ``second`` tells whether a twin block was the offence."""

    slot: int  # in the epoch
    validator: int
    kind: str
    offence: int  # slot in the epoch


@dataclass
class Epoch:
    """Everything that happened in an epoch; balances are those at its first slot."""

    number: int
    balance: Ints
    effective: Ints
    active: Bools
    slots: Slots
    income: Income
    committee: Ints
    signed: Bools
    withdrawals: Withdrawals
    votes: Votes
    fees: Ints  # per slot, wei
    attestations: Ints  # per slot
    eligible_gwei: int = 0
    voted_gwei: int = 0
    deposits: list[tuple[int, int, int]] = field(default_factory=list)  # slot, validator, gwei
    exits: list[tuple[int, int]] = field(default_factory=list)  # slot, validator
    slashings: list[Slashing] = field(default_factory=list)


@dataclass
class Late:
    """Votes of the previous epoch that this epoch's blocks include."""

    voters: Ints
    weights: Ints
    codes: Ints


class Engine:
    """Runs the chain from its first detailed epoch to its head."""

    def __init__(
        self,
        seed: int,
        chain: Chain,
        preset: Preset,
        registry: Registry,
        plan: Plan,
        *,
        first: int,
        last: int,
        head: int,
    ) -> None:
        """Take the state at epoch *first*; slot *head* of epoch *last* is the latest."""
        self.chain, self.preset, self.registry, self.plan = chain, preset, registry, plan
        self.first, self.last, self.head = first, last, head
        self.committees: dict[int, Ints] = {}
        self._seed = seed
        self._rng = {
            topic: np.random.default_rng([seed, 2, number])
            for number, topic in enumerate(("slots", "votes", "signatures", "events", "fees"))
        }
        stake = int(registry.effective[: registry.known].sum())
        self._fees = fees.FeeTable(stake)
        self._due_deposits: list[tuple[int, int]] = []
        self._slashed: list[tuple[int, int]] = []  # epoch, effective balance
        self._sweep_from = 0
        self._late = Late(*(np.empty(0, np.int64) for _ in range(3)))

    def run(self) -> Iterator[Epoch]:
        """Yield the epochs, in order; each belongs to the caller until the next is asked for."""
        here = self._draw(self.first)
        if self.first == 0:
            here.proposers[0], here.fates[0] = NOBODY, Fate.PROPOSED
        for number in range(self.first, self.last + 1):
            epoch, here = self._step(number, here)
            yield epoch

    def committee(self, period: int) -> Ints:
        """Return the seats of a sync committee; drawn when its period begins, or is next."""
        if period not in self.committees:
            per = self.chain.epochs_per_sync_period
            begins = max(period * per, self.first)
            stays = self.plan.exit_request[: self.registry.known] >= (period + 1) * per
            stays &= self.registry.active(min(begins, self.last)) & ~self._is_slashed()
            stays &= self.registry.exit[: self.registry.known] == FAR_FUTURE
            self.committees[period] = duties.draw_by_balance(
                np.random.default_rng([self._seed, 3, period]),
                self.registry.effective,
                np.flatnonzero(stays),
                self.chain.sync_committee_size,
            )
        return self.committees[period]

    def _is_slashed(self) -> Bools:
        return self.registry.slashed[: self.registry.known]

    def _draw(self, number: int) -> Slots:
        size = self.chain.slots_per_epoch
        rng = self._rng["slots"]
        self.registry.online = duties.go_on_and_offline(rng, self.registry, self.plan, number)
        slots = duties.draw_slots(rng, self.registry, self.registry.online, number, size)
        if number >= self.last:
            head = self.head if number == self.last else NOBODY
            slots.fates[head + 1 :] = Fate.SCHEDULED
        return slots

    def _step(self, number: int, here: Slots) -> tuple[Epoch, Slots]:
        registry, preset, plan = self.registry, self.preset, self.plan
        known, size = registry.known, self.chain.slots_per_epoch
        balance, effective = registry.balance[:known].copy(), registry.effective[:known].copy()
        active = registry.active(number)
        total = int(effective[active].sum())
        committee = self.committee(number // self.chain.epochs_per_sync_period)
        income = Income(known)
        withdrawals, self._sweep_from = sweep(
            preset, registry, number, here.earning, self._sweep_from
        )
        epoch = Epoch(
            number,
            balance,
            effective,
            active,
            here,
            income,
            committee,
            duties.sign(self._rng["signatures"], committee, here.online, size),
            withdrawals,
            votes=None,  # type: ignore[arg-type]
            fees=np.where(here.earning, self._fees.draw(self._rng["fees"], size), 0),
            attestations=np.zeros(size, np.int64),
            eligible_gwei=total,
        )
        blocks = np.flatnonzero(here.earning)
        self._include_slashings(epoch, blocks)
        self._include_exits(epoch, blocks)
        self._include_deposits(epoch, blocks)
        ahead = self._draw(number + 1)

        increments = effective // preset.effective_balance_increment
        per_increment = rewards.base_reward_per_increment(preset, total)
        epoch.votes = duties.vote(self._rng["votes"], np.flatnonzero(active), here, ahead)
        self._reward_votes(epoch, increments, per_increment)
        self._reward_inclusion(epoch, increments * per_increment)
        self._reward_signatures(epoch, per_increment, total)
        self._punish_slashed(epoch, total)
        income.missed = _count(here.proposers, (here.fates > Fate.PROPOSED), known)
        np.add.at(income.fees, here.proposers[here.earning], epoch.fees[here.earning])
        self._settle(epoch)
        return epoch, ahead

    def _include_slashings(self, epoch: Epoch, blocks: Ints) -> None:
        kind = self.plan.slashings.get(epoch.number)
        registry, rng = self.registry, self._rng["events"]
        if kind is None or len(blocks) < 2:
            return
        slot = int(rng.choice(blocks[1:]))
        here = epoch.slots
        whole = epoch.active & ~self._is_slashed() & (registry.exit[: registry.known] == FAR_FUTURE)
        whole &= registry.prefix[: registry.known] == 1
        whole[: self.plan.steady] = False
        # Who still has a block to propose stays whole, so that every block is a valid one.
        whole[here.proposers[slot:][here.proposers[slot:] != NOBODY]] = False
        before = [int(s) for s in blocks if s < slot and whole[here.proposers[s]]]
        if kind == "proposer" and before:
            offence = before[-1]
            validator = int(here.proposers[offence])
        elif whole.any():
            kind, offence = "attester", max(0, slot - 2)
            validator = int(rng.choice(np.flatnonzero(whole)))
        else:
            return
        self._slash(epoch, Slashing(slot, validator, kind, offence))

    def _slash(self, epoch: Epoch, slashing: Slashing) -> None:
        preset, registry, validator = self.preset, self.registry, slashing.validator
        effective = int(epoch.effective[validator])
        penalty, proposer_share, reporter_share = rewards.slashing_amounts(preset, effective)
        reporter = int(epoch.slots.proposers[slashing.slot])
        epoch.income["slashing_penalty_gwei"][validator] += penalty
        epoch.income["proposer_slashing_inclusion_reward_gwei"][reporter] += proposer_share
        epoch.income["slashing_reward_gwei"][reporter] += reporter_share
        epoch.slashings.append(slashing)
        self._leave(validator, epoch.number)
        registry.slashed[validator] = True
        registry.withdrawable[validator] = max(
            int(registry.withdrawable[validator]),
            epoch.number + preset.epochs_per_slashings_vector,
        )
        self._slashed.append((epoch.number, effective))

    def _include_exits(self, epoch: Epoch, blocks: Ints) -> None:
        for validator in self.plan.exits.get(epoch.number, ()):
            if len(blocks) and self.registry.exit[validator] == FAR_FUTURE:
                slot = int(self._rng["events"].choice(blocks))
                epoch.exits.append((slot, validator))
                self._leave(validator, epoch.number)

    def _leave(self, validator: int, epoch: int) -> None:
        leaves = epoch + 1 + self.preset.max_seed_lookahead
        delay = self.preset.min_validator_withdrawability_delay
        self.registry.exit[validator] = leaves
        self.registry.withdrawable[validator] = leaves + delay

    def _include_deposits(self, epoch: Epoch, blocks: Ints) -> None:
        """Include what has arrived; without a block it waits, and indices keep their order."""
        self._due_deposits += self.plan.arrivals.get(epoch.number, [])
        self._due_deposits += self.plan.top_ups.get(epoch.number, [])
        if not len(blocks):
            return
        staying = [
            (validator, gwei)
            for validator, gwei in self._due_deposits
            if self.registry.exit[validator] == FAR_FUTURE
        ]
        slots = np.sort(self._rng["events"].choice(blocks, len(staying)))
        epoch.deposits = [
            (slot, *deposit) for slot, deposit in zip(slots.tolist(), staying, strict=True)
        ]
        self._due_deposits = []

    def _reward_votes(self, epoch: Epoch, increments: Ints, per_increment: int) -> None:
        preset, votes, income = self.preset, epoch.votes, epoch.income
        registry, known = self.registry, len(epoch.balance)
        slashed = registry.slashed[:known]
        base = increments * per_increment
        # The specification's "eligible": the active, and the slashed until they may withdraw.
        eligible = epoch.active | (slashed & (epoch.number + 1 < registry.withdrawable[:known]))
        income.entitled = eligible
        active_increments = epoch.eligible_gwei // preset.effective_balance_increment
        for flag, weight in (
            ("source", preset.timely_source_weight),
            ("target", preset.timely_target_weight),
            ("head", preset.timely_head_weight),
        ):
            timely = np.zeros(known, np.bool_)
            timely[votes.voters] = getattr(votes, flag)
            timely &= ~slashed
            income[f"attestation_{flag}_reward_gwei"][:] = rewards.flag_rewards(
                preset, weight, base, increments, timely, active_increments
            )
            if flag != "head":
                income[f"attestation_{flag}_penalty_gwei"][:] = rewards.flag_penalties(
                    preset, weight, base, eligible & ~timely
                )
            if flag == "target":
                epoch.voted_gwei = int(epoch.effective[timely].sum())
        included = votes.inclusion >= 0
        slot = epoch.number * self.chain.slots_per_epoch + votes.duty
        registry.last_attestation[votes.voters[included]] = slot[included]

    def _reward_inclusion(self, epoch: Epoch, base: Ints) -> None:
        """Pay the proposers for the attestations that their blocks include."""
        preset, votes, size = self.preset, epoch.votes, self.chain.slots_per_epoch
        weights = (
            votes.source * preset.timely_source_weight
            + votes.target * preset.timely_target_weight
            + votes.head * preset.timely_head_weight
        )
        codes = (votes.inclusion * size + votes.duty) * VARIANTS + votes.variant
        now = (votes.inclusion >= 0) & (votes.inclusion < size)
        later = votes.inclusion >= size
        block = size * VARIANTS
        for voters, weight, code in (
            (self._late.voters, self._late.weights, self._late.codes),
            (votes.voters[now], weights[now], codes[now]),
        ):
            # Every value is an integer far below 2**53, so the float sums are exact.
            sums = np.bincount(code, base[voters] * weight, size * block).astype(np.int64)
            shares = rewards.inclusion_rewards(preset, sums).reshape(size, block).sum(axis=1)
            count = np.bincount(code, minlength=size * block).reshape(size, block)
            epoch.attestations += (count > 0).sum(axis=1)
            np.add.at(
                epoch.income["proposer_attestation_inclusion_reward_gwei"],
                epoch.slots.proposers[epoch.slots.earning],
                shares[epoch.slots.earning],
            )
        self._late = Late(votes.voters[later], weights[later], codes[later] - size * block)

    def _reward_signatures(self, epoch: Epoch, per_increment: int, total: int) -> None:
        earning = epoch.slots.earning
        known = len(epoch.balance)
        seat, proposer = rewards.sync_rewards(
            self.preset,
            per_increment,
            total // self.preset.effective_balance_increment,
            self.chain.slots_per_epoch,
            self.chain.sync_committee_size,
        )
        signed = epoch.signed[earning]
        got = signed.sum(axis=0)
        for kind, count in (("reward", got), ("penalty", len(signed) - got)):
            per_validator = np.bincount(epoch.committee, count, known).astype(np.int64)
            epoch.income[f"sync_committee_{kind}_gwei"][:] = per_validator * seat
        np.add.at(
            epoch.income["proposer_sync_inclusion_reward_gwei"],
            epoch.slots.proposers[earning],
            signed.sum(axis=1) * proposer,
        )

    def _punish_slashed(self, epoch: Epoch, total: int) -> None:
        vector = self.preset.epochs_per_slashings_vector
        known = len(epoch.balance)
        half_way = self.registry.withdrawable[:known] == epoch.number + vector // 2
        for validator in np.flatnonzero(half_way & self.registry.slashed[:known]):
            around = sum(gwei for when, gwei in self._slashed if when > epoch.number - vector)
            penalty = rewards.correlation_penalty(
                self.preset, int(epoch.effective[validator]), around, total
            )
            epoch.income["slashing_penalty_gwei"][validator] += penalty

    def _settle(self, epoch: Epoch) -> None:
        """End the epoch: balances, activations, new validators, effective balances."""
        registry, preset, known = self.registry, self.preset, self.registry.known
        paid = epoch.withdrawals
        registry.balance[:known] += epoch.income.net()
        registry.balance[paid.validators] -= paid.amounts
        registry.withdrawn[paid.validators] += paid.amounts
        self._activate(epoch.number)
        for _, validator, gwei in epoch.deposits:
            registry.known = max(registry.known, validator + 1)
            registry.balance[validator] += gwei
        known = registry.known
        registry.effective[:known] = rewards.update_effective(
            preset,
            registry.balance[:known],
            registry.effective[:known],
            np.where(registry.prefix[:known] == 2, registry.ceiling[:known], 32 * 10**9),
        )

    def _activate(self, number: int) -> None:
        registry, preset, known = self.registry, self.preset, self.registry.known
        ready = (registry.eligibility[:known] == FAR_FUTURE) & (
            registry.effective[:known] >= preset.min_activation_balance
        )
        for validator in np.flatnonzero(ready).tolist():
            registry.eligibility[validator] = number + 1
            registry.queue.append(validator)
        finalized = number - preset.finality_distance
        for validator in registry.queue[: preset.max_activations_per_epoch]:
            if registry.eligibility[validator] <= finalized:
                registry.activation[validator] = number + 1 + preset.max_seed_lookahead
                registry.queue.remove(validator)


def _count(validators: Ints, which: Bools, known: int) -> Ints:
    return np.bincount(validators[which & (validators != NOBODY)], minlength=known)
