"""The engine: it processes a chain epoch by epoch.

The registry has the balances before the first block of an epoch; the rewards of the epoch reach
them at its end. An `Epoch` has the balances after its first block, as nodes report them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from beaconframes.consensus import rewards
from beaconframes.consensus.spec import FAR_FUTURE_EPOCH
from beaconframes.simulator import duties
from beaconframes.simulator.block_operations import BlockOperations
from beaconframes.simulator.duties import NO_PROPOSER, PROPOSED, SCHEDULED
from beaconframes.simulator.epoch import Epoch
from beaconframes.simulator.epoch_processing import (
    PendingAttestations,
    process_rewards_and_penalties,
)
from beaconframes.simulator.income import Income
from beaconframes.simulator.withdrawals import process_withdrawals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beaconframes.calendar import Chain
    from beaconframes.consensus.registry import Ints
    from beaconframes.simulator.duties import Slots
    from beaconframes.simulator.fees import FeeTable
    from beaconframes.simulator.preset import Preset
    from beaconframes.simulator.registry import EventPlan, Registry


class Engine:
    """Runs the chain from its first detailed epoch to its head."""

    def __init__(
        self,
        seed: int,
        chain: Chain,
        preset: Preset,
        registry: Registry,
        plan: EventPlan,
        *,
        first: int,
        last: int,
        head: int,
        fees: FeeTable,
    ) -> None:
        """Start at epoch *first* with the state in *registry*; end at slot *head* of *last*."""
        self.chain, self.preset, self.registry, self.plan = chain, preset, registry, plan
        self.first, self.last, self.head = first, last, head
        self._seed, self._fees = seed, fees
        self._slots_rng = np.random.default_rng([seed, 2, 0])
        self._sync_rng = np.random.default_rng([seed, 2, 2])
        self._fees_rng = np.random.default_rng([seed, 2, 3])
        self._operations = BlockOperations(seed, preset, registry, plan)
        self._committees: dict[int, Ints] = {}
        self._pending = PendingAttestations()
        self._next_withdrawal_validator = 0

    def run(self) -> Iterator[Epoch]:
        """Yield the epochs, in order."""
        current = self._draw_slots(self.first)
        if self.first == 0:
            current.proposers[0], current.statuses[0] = NO_PROPOSER, PROPOSED
        for number in range(self.first, self.last + 1):
            epoch = self._start_epoch(number, current)
            self._operations.process(epoch)
            upcoming = self._draw_slots(number + 1)
            validators = np.flatnonzero(epoch.active)
            epoch.attestations = duties.draw_attestations(
                self._seed,
                number,
                validators,
                current.online[validators],
                np.concatenate([current.canonical, upcoming.canonical]),
            )
            self._pending = process_rewards_and_penalties(
                self.preset,
                self.registry,
                epoch,
                self._pending,
                self._operations.sum_recent_slashings(number),
            )
            _apply_first_block(epoch)
            self._finish_epoch(epoch)
            yield epoch
            current = upcoming

    def committee(self, period: int) -> Ints:
        """Return the validators of a sync committee by seat, drawn on the first call for a period.

        Only validators that do not exit before the end of the period are drawn.
        """
        if period not in self._committees:
            registry, validator_count = self.registry, self.registry.validator_count
            epochs_per_period = self.chain.epochs_per_sync_period
            epoch = min(max(period * epochs_per_period, self.first), self.last)
            candidates = registry.active(epoch) & ~registry.slashed[:validator_count]
            candidates &= registry.exit[:validator_count] == FAR_FUTURE_EPOCH
            candidates &= (
                self.plan.exit_request_epoch[:validator_count] >= (period + 1) * epochs_per_period
            )
            self._committees[period] = duties.draw_by_balance(
                np.random.default_rng([self._seed, 3, period]),
                registry.effective,
                np.flatnonzero(candidates),
                self.chain.sync_committee_size,
            )
        return self._committees[period]

    def _draw_slots(self, number: int) -> Slots:
        """Draw the proposers and the online validators of an epoch, one epoch in advance."""
        rng, registry = self._slots_rng, self.registry
        registry.online = duties.draw_online(rng, registry, self.plan, number)
        slots = duties.draw_slots(rng, registry, number, self.chain.slots_per_epoch)
        if number >= self.last:
            head = self.head if number == self.last else -1
            slots.statuses[head + 1 :] = SCHEDULED
        return slots

    def _start_epoch(self, number: int, slots: Slots) -> Epoch:
        registry, size = self.registry, self.chain.slots_per_epoch
        validator_count = registry.validator_count
        active = registry.active(number)
        committee = self.committee(number // self.chain.epochs_per_sync_period)
        withdrawals, self._next_withdrawal_validator = process_withdrawals(
            self.preset,
            registry,
            number,
            slots.rewarded,
            self._next_withdrawal_validator,
            self.plan.switches.get(number, ()),
        )
        return Epoch(
            number=number,
            balance=registry.balance[:validator_count].copy(),
            effective=registry.effective[:validator_count].copy(),
            active=active,
            active_balance=int(registry.effective[:validator_count][active].sum()),
            slots=slots,
            income=Income(validator_count),
            first_block=np.zeros(validator_count, np.int64),
            committee=committee,
            sync_bits=duties.draw_sync_bits(self._sync_rng, committee, slots.online, size),
            withdrawals=withdrawals,
            fees=np.where(slots.rewarded, self._fees.draw(self._fees_rng, size), 0),
            included_attestations=np.zeros(size, np.int64),
        )

    def _finish_epoch(self, epoch: Epoch) -> None:
        """Update balances, activations, deposits and effective balances at the end of an epoch."""
        registry, attestations = self.registry, epoch.attestations
        included = attestations.inclusion_slots >= 0
        attested = epoch.number * self.chain.slots_per_epoch + attestations.slots
        registry.last_attestation[attestations.validators[included]] = attested[included]
        withdrawals = epoch.withdrawals
        registry.withdrawn[withdrawals.validators] += withdrawals.amounts
        if epoch.number == self.last:
            return  # the epoch has not ended yet
        registry.balance[: len(epoch.balance)] += epoch.income.net()
        registry.balance[withdrawals.validators] -= withdrawals.amounts
        self._process_activations(epoch.number)
        for _, validator, gwei in epoch.deposits:
            registry.validator_count = max(registry.validator_count, validator + 1)
            registry.balance[validator] += gwei
        validator_count = registry.validator_count
        registry.effective[:validator_count] = rewards.update_effective_balances(
            self.preset,
            registry.balance[:validator_count],
            registry.effective[:validator_count],
            registry.max_effective[:validator_count],
        )

    def _process_activations(self, number: int) -> None:
        registry, preset = self.registry, self.preset
        validator_count = registry.validator_count
        ready = (registry.eligibility[:validator_count] == FAR_FUTURE_EPOCH) & (
            registry.effective[:validator_count] >= preset.min_activation_balance
        )
        for validator in np.flatnonzero(ready).tolist():
            registry.eligibility[validator] = number + 1
            registry.activation_queue.append(validator)
        finalized = number - preset.finality_distance
        for validator in registry.activation_queue[: preset.max_activations_per_epoch]:
            if registry.eligibility[validator] <= finalized:
                registry.activation[validator] = number + 1 + preset.max_seed_lookahead
                registry.activation_queue.remove(validator)


def _apply_first_block(epoch: Epoch) -> None:
    """Add the block of the first slot to the balances; no deposit is in that block."""
    withdrawals = epoch.withdrawals
    is_first = withdrawals.slots == 0
    epoch.balance += epoch.first_block
    epoch.balance[withdrawals.validators[is_first]] -= withdrawals.amounts[is_first]
