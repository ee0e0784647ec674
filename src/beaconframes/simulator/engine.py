"""The chain itself: one epoch after the other, every gwei accounted for.

What an epoch earns is settled at its end: the state at the first slot of the next epoch is this
epoch's state, plus net income, plus deposits, less withdrawals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from beaconframes.simulator import duties, rewards
from beaconframes.simulator.duties import NOBODY, PROPOSED, SCHEDULED
from beaconframes.simulator.epoch import Epoch
from beaconframes.simulator.events import Events
from beaconframes.simulator.income import Income
from beaconframes.simulator.preset import FAR_FUTURE
from beaconframes.simulator.settlement import Pending, settle
from beaconframes.simulator.sweep import sweep

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beaconframes.calendar import Chain
    from beaconframes.simulator.duties import Slots
    from beaconframes.simulator.fees import FeeTable
    from beaconframes.simulator.preset import Ints, Preset
    from beaconframes.simulator.registry import Plan, Registry


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
        fees: FeeTable,
    ) -> None:
        """Take the state at epoch *first*; slot *head* of epoch *last* is the latest."""
        self.chain, self.preset, self.registry, self.plan = chain, preset, registry, plan
        self.first, self.last, self.head = first, last, head
        self._seed, self._fees = seed, fees
        self._slots_rng = np.random.default_rng([seed, 2, 0])
        self._votes_rng = np.random.default_rng([seed, 2, 1])
        self._signatures_rng = np.random.default_rng([seed, 2, 2])
        self._fees_rng = np.random.default_rng([seed, 2, 3])
        self._events = Events(seed, preset, registry, plan)
        self._committees: dict[int, Ints] = {}
        self._pending = Pending()
        self._sweep_from = 0

    def run(self) -> Iterator[Epoch]:
        """Yield the epochs, in order."""
        here = self._draw(self.first)
        if self.first == 0:
            here.proposers[0], here.fates[0] = NOBODY, PROPOSED
        for number in range(self.first, self.last + 1):
            epoch = self._open(number, here)
            self._events.include(epoch)
            ahead = self._draw(number + 1)
            epoch.votes = duties.vote(self._votes_rng, np.flatnonzero(epoch.active), here, ahead)
            self._pending = settle(
                self.preset,
                self.registry,
                epoch,
                epoch.votes,
                self._pending,
                self._events.slashed_around(number),
            )
            self._close(epoch)
            yield epoch
            here = ahead

    def committee(self, period: int) -> Ints:
        """Return the seats of a sync committee, drawn when it is first asked for.

        Only validators that will not exit before the period ends are drawn.
        """
        if period not in self._committees:
            registry, known = self.registry, self.registry.known
            per = self.chain.epochs_per_sync_period
            now = min(max(period * per, self.first), self.last)
            stays = registry.active(now) & ~registry.slashed[:known]
            stays &= registry.exit[:known] == FAR_FUTURE
            stays &= self.plan.exit_request[:known] >= (period + 1) * per
            self._committees[period] = duties.draw_by_balance(
                np.random.default_rng([self._seed, 3, period]),
                registry.effective,
                np.flatnonzero(stays),
                self.chain.sync_committee_size,
            )
        return self._committees[period]

    def _draw(self, number: int) -> Slots:
        """Draw who proposes in an epoch and who will be there, one epoch ahead."""
        rng, registry = self._slots_rng, self.registry
        registry.online = duties.go_on_and_offline(rng, registry, self.plan, number)
        slots = duties.draw_slots(rng, registry, number, self.chain.slots_per_epoch)
        if number >= self.last:
            head = self.head if number == self.last else -1
            slots.fates[head + 1 :] = SCHEDULED
        return slots

    def _open(self, number: int, here: Slots) -> Epoch:
        registry, known, size = self.registry, self.registry.known, self.chain.slots_per_epoch
        active = registry.active(number)
        committee = self.committee(number // self.chain.epochs_per_sync_period)
        withdrawals, self._sweep_from = sweep(
            self.preset, registry, number, here.earning, self._sweep_from
        )
        return Epoch(
            number=number,
            balance=registry.balance[:known].copy(),
            effective=registry.effective[:known].copy(),
            active=active,
            total=int(registry.effective[:known][active].sum()),
            slots=here,
            income=Income(known),
            committee=committee,
            signed=duties.sign(self._signatures_rng, committee, here.online, size),
            withdrawals=withdrawals,
            fees=np.where(here.earning, self._fees.draw(self._fees_rng, size), 0),
            attestations=np.zeros(size, np.int64),
        )

    def _close(self, epoch: Epoch) -> None:
        """End the epoch: balances, activations, new validators, effective balances."""
        registry, known, votes = self.registry, self.registry.known, epoch.votes
        assert votes is not None
        included = votes.inclusion >= 0
        attested = epoch.number * self.chain.slots_per_epoch + votes.duty
        registry.last_attestation[votes.voters[included]] = attested[included]
        paid = epoch.withdrawals
        registry.withdrawn[paid.validators] += paid.amounts
        if epoch.number == self.last:
            return  # still running: what it earns is not settled yet
        registry.balance[:known] += epoch.income.net()
        registry.balance[paid.validators] -= paid.amounts
        self._activate(epoch.number)
        for _, validator, gwei in epoch.deposits:
            registry.known = max(registry.known, validator + 1)
            registry.balance[validator] += gwei
        known = registry.known
        registry.effective[:known] = rewards.update_effective(
            self.preset,
            registry.balance[:known],
            registry.effective[:known],
            registry.ceiling[:known],
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
