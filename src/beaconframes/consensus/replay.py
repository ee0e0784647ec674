"""Attestation rewards without states and without rewards routes, epoch by epoch from genesis.

Rewards depend on two values that no route but that of whole states has: inactivity scores, and
which epochs are justified. Both follow from all blocks since genesis.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from beaconframes.consensus.attestation_rewards import AttestationRewards, Justification
from beaconframes.consensus.participation import BlockParticipation
from beaconframes.consensus.registry import (
    compute_total_active_balance,
    extend_zeros,
    is_slashable,
)
from beaconframes.consensus.slot_income import find_slashings
from beaconframes.consensus.spec import is_since
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beaconframes.consensus.registry import Ints, Message, Registry
    from beaconframes.consensus.shuffling import Committees
    from beaconframes.consensus.spec import Spec


class Replay:
    """Participation, inactivity scores and justification of a chain, up to an epoch."""

    def __init__(self, spec: Spec) -> None:
        """Start at genesis; the next epoch is 0."""
        if not is_since(spec.fork_at(0), "altair"):
            raise UsageError(
                f"{spec.name} began with phase0, which cannot be replayed",
                hint="Use the rewards routes or the debug states of a node",
            )
        self.spec = spec
        self.next_epoch = 0
        self.participation = BlockParticipation(spec)
        self.justification = Justification((False, False, False, False), 0, 0, 0)
        self.inactivity_scores: Ints = np.zeros(0, np.int64)
        self.inclusion_rewards: dict[int, int] = {}
        """By slot of the last epoch: the proposer's reward for attestations, in gwei."""
        self._registry: Registry | None = None

    def process_blocks(
        self,
        epoch: int,
        blocks: Sequence[Message],
        committees: Committees,
        registry: Registry,
    ) -> None:
        """Process all blocks of an epoch; then call `end_epoch`.

        *registry* has the validators at any slot of *epoch*, such as the first one.
        """
        if epoch != self.next_epoch:
            raise UsageError(
                f"epoch {epoch} cannot be replayed after epoch {self.next_epoch - 1}"
                if self.next_epoch
                else f"a replay from genesis cannot start with epoch {epoch}",
                hint=f"Epochs must be consecutive: the next one is {self.next_epoch}",
            )
        total = compute_total_active_balance(self.spec, registry, epoch)
        self.participation.start_epoch(epoch, committees, registry.effective_balances, total)
        self.inactivity_scores = extend_zeros(self.inactivity_scores, len(registry.slashed))
        slashed, withdrawable = registry.slashed.copy(), registry.withdrawable_epochs.copy()
        self.inclusion_rewards = {}
        for message in blocks:
            reward = self.participation.process_block(message)
            self.inclusion_rewards[int(message["slot"])] = reward or 0
            for _, index in find_slashings(message["body"]):
                if is_slashable(registry, slashed, index, epoch):
                    slashed[index] = True
                    end = epoch + self.spec.epochs_per_slashings_vector
                    withdrawable[index] = max(withdrawable[index], end)
        self._registry = replace(registry, slashed=slashed, withdrawable_epochs=withdrawable)

    def end_epoch(self) -> AttestationRewards | None:
        """Update justification and scores at the end of an epoch; return what it pays.

        The rewards are those for the duties of the epoch before; None for epoch 0.
        """
        registry = self._registry
        if registry is None:
            raise UsageError("no epoch has been started", hint="Call process_blocks first")
        self._registry = None
        spec, epoch, flags = self.spec, self.next_epoch, self.participation
        self.next_epoch += 1
        if epoch == 0:
            return None
        self.justification = self.justification.process_flags(
            spec, registry, epoch, flags.previous, flags.current
        )
        rewards, self.inactivity_scores = AttestationRewards.compute(
            spec,
            spec.fork_at(epoch),
            epoch - 1,
            registry,
            participation=flags.previous,
            inactivity_scores=self.inactivity_scores,
            is_leak=self.justification.is_leak(spec, epoch),
        )
        return rewards
