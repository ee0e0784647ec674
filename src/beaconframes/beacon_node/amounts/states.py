"""Amounts of an epoch from states: all validators, from one SSZ state per epoch and the blocks.

The blocks of an epoch are replayed on the balances of the state before it. The result must equal
the balances of the state after it; what differs is unexplained.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from beaconframes.beacon_node.amounts.epoch_amounts import Change, Deposit, EpochAmounts
from beaconframes.beacon_node.chain.reader import CACHED_AMOUNTS
from beaconframes.consensus.attestation_rewards import AttestationRewards
from beaconframes.consensus.epoch_moves import compute_transition
from beaconframes.consensus.participation import BlockParticipation
from beaconframes.consensus.registry import extend_zeros
from beaconframes.consensus.slot_income import EpochRegistry, compute_slot_income

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beaconframes.beacon_node.chain.reader import ChainReader
    from beaconframes.consensus.epoch_moves import Transition
    from beaconframes.consensus.registry import Ints, Registry
    from beaconframes.consensus.slot_income import SlotIncome
    from beaconframes.consensus.state import BeaconState

REWARDS, TRANSITION, REPLAY = "attestation rewards", "transition", "replay"
"""Objects of an epoch that a reader caches."""
VERIFIED_LATER = 2
"""Epochs after which the attestation rewards of an epoch are in the balances."""


@dataclass(frozen=True, eq=False)
class Replay:
    """The blocks of an epoch, replayed on the balances before it."""

    slot_income: list[SlotIncome]
    deposits: list[SlotIncome]
    balances: Ints
    """After the block of the first slot."""
    effective_balances: Ints
    unexplained: Change


class StateAmounts:
    """Reads the amounts of an epoch from states."""

    def __init__(self, reader: ChainReader) -> None:
        """Request states and blocks from *reader*."""
        self.reader, self.spec = reader, reader.spec

    def read(self, epoch: int, validators: Sequence[int] | None) -> EpochAmounts:
        """Return the amounts of an epoch, of some *validators* or of all.

        Balances are compared up to two epochs later, as far as the node has states.
        """
        replay, messages = self.replay(epoch), self.reader.block_messages(epoch)
        proposers = self.reader.missed_proposers(epoch)
        later, transition = self.state(epoch + 1), self.transition(epoch)
        if self.reader.has_states:
            # Without states, the replay has checked the blocks.
            self.reader.check_blocks(epoch)
        # From here on, the states up to this epoch are not needed.
        changes, verified_until = self.compare(epoch)
        rewards, last_slot = self.rewards(epoch), self.reader.slots_of(epoch)[-1]
        if verified_until == epoch + VERIFIED_LATER:
            # The transitions that pay them have been compared.
            for number in range(epoch - VERIFIED_LATER, epoch + 1):
                self.reader.release(REWARDS, number)
        count = len(later.balances)
        indices = np.arange(count)
        chosen: Ints | slice = slice(None)
        if validators is not None:
            indices = chosen = np.array(sorted({v for v in validators if v < count}), np.int64)
        is_slashed = later.slashed & (epoch + 1 < later.withdrawable_epochs)
        is_rewarded = later.is_active(epoch) | is_slashed
        balances = extend_zeros(replay.balances, count)
        effective = extend_zeros(replay.effective_balances, count)
        exists = np.arange(count) < len(replay.balances)
        return EpochAmounts(
            epoch=epoch,
            validators=indices,
            is_rewarded=is_rewarded[chosen],
            source=extend_zeros(rewards.source, count)[chosen],
            target=extend_zeros(rewards.target, count)[chosen],
            head=extend_zeros(rewards.head, count)[chosen],
            inactivity=extend_zeros(rewards.inactivity, count)[chosen],
            has_balance=exists[chosen],
            balances=balances[chosen],
            effective_balances=effective[chosen],
            slot_income=replay.slot_income,
            moves=transition.moves,
            deposits=[
                *(Deposit(row.slot, *row[2:]) for row in replay.deposits),
                *(Deposit(last_slot, *row[2:]) for row in transition.deposits),
            ],
            missed={
                vote: extend_zeros(missed, count)[chosen] for vote, missed in rewards.missed.items()
            },
            proposals_missed=Counter(
                proposers[slot] for slot in proposers.keys() - messages.keys() - {0}
            ),
            unexplained=_select(changes, validators),
            verified_until=verified_until,
        )

    def compare(self, epoch: int) -> tuple[list[Change], int]:
        """Return the unexplained changes that concern the income of *epoch*, and the last epoch."""
        last = min(epoch + VERIFIED_LATER, self.reader.last_complete_epoch)
        found = []
        for number in range(epoch, last + 1):
            if number == epoch + VERIFIED_LATER:
                self.reader.release_states(epoch)
                for kind in (TRANSITION, REPLAY):
                    self.reader.release(kind, epoch - 1)
            found.append(self.replay(number).unexplained)
        return found, last

    def state(self, epoch: int) -> BeaconState:
        """Return the state after the last slot of an epoch, before the transition at its end."""
        return self.reader.state(epoch)

    def genesis_state(self) -> Registry:
        """Return the validators of genesis."""
        return self.reader.genesis_state()

    def rewards(self, epoch: int) -> AttestationRewards:
        """Return the attestation rewards for the duties of an epoch."""
        return self.reader.cached(
            REWARDS,
            epoch,
            lambda: AttestationRewards.from_state(self.spec, self.state(epoch + 1)),
            size=CACHED_AMOUNTS,
        )

    def transition(self, epoch: int) -> Transition:
        """Return the transition at the end of an epoch."""

        def compute() -> Transition:
            rewards = self.rewards(epoch - 1) if epoch > 0 else None
            state, later = self.state(epoch), self.state(epoch + 1)
            blocks = self.reader.block_messages(epoch + 1).values()
            return compute_transition(self.spec, state, later, rewards, later_blocks=blocks)

        return self.reader.cached(TRANSITION, epoch, compute, size=CACHED_AMOUNTS)

    def replay(self, epoch: int) -> Replay:
        """Return the blocks of an epoch, replayed."""
        return self.reader.cached(
            REPLAY, epoch, lambda: self._replay(epoch), size=VERIFIED_LATER + CACHED_AMOUNTS
        )

    def _replay(self, epoch: int) -> Replay:
        spec = self.spec
        after = self.state(epoch)
        if epoch == 0:
            before, start = self.genesis_state(), self.genesis_state().balances
        else:
            before, start = self.state(epoch - 1), self.transition(epoch - 1).balances
        inclusion_rewards = self.inclusion_rewards(epoch)
        messages = self.reader.block_messages(epoch)
        registry = EpochRegistry.build(
            spec,
            epoch,
            before=before,
            after=after,
            balances=start,
            sync_committee=self.reader.sync_committee(epoch),
            total_active_balance=after.get_total_active_balance(spec),
            blocks=messages.values(),
        )
        rows: list[SlotIncome] = []
        first_slot = spec.first_slot_of(epoch)
        balances = start
        for slot, message in messages.items():
            rows += compute_slot_income(registry, message, inclusion_rewards[slot])
            if slot == first_slot:
                balances = registry.balances[: registry.count].copy()
        expected = registry.balances
        differs = np.flatnonzero(expected != after.balances)
        known = extend_zeros(before.balances, len(expected))[differs]
        unexplained = Change(
            epoch, differs, after.balances[differs] - known, expected[differs] - known
        )
        if self.reader.has_states:
            # Cached while the state is in memory; without states they are requested when needed.
            self.reader.proposers(epoch)
        return Replay(
            rows,
            registry.deposits,
            balances,
            after.effective_balances,
            unexplained,
        )

    def inclusion_rewards(self, epoch: int) -> dict[int, int]:
        """Return the proposer's reward for the attestations of each block of an epoch, by slot."""
        reader, spec, after = self.reader, self.spec, self.state(epoch)
        if epoch == 0:
            participation = BlockParticipation(spec)
        else:
            before, committees = self.state(epoch - 1), reader.committees(epoch - 1)
            participation = BlockParticipation.from_state(spec, before, committees)
        total = after.get_total_active_balance(spec)
        participation.start_epoch(epoch, reader.committees(epoch), after.effective_balances, total)
        rewards = {}
        for slot, message in reader.block_messages(epoch).items():
            reward = participation.process_block(message)
            assert reward is not None  # The state before has the earlier votes.
            rewards[slot] = reward
        return rewards


def _select(changes: Sequence[Change], chosen: Sequence[int] | None) -> list[Change]:
    """Return the changes of the *chosen* validators, also of those created after the epoch."""
    found = []
    for change in changes:
        parts = (change.validators, change.change, change.explained)
        if chosen is not None:
            inside = np.isin(change.validators, chosen)
            parts = (parts[0][inside], parts[1][inside], parts[2][inside])
        if len(parts[0]):
            found.append(Change(change.epoch, *parts))
    return found
