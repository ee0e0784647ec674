"""Amounts of an epoch from blocks: for nodes that have neither SSZ states nor rewards routes.

Participation, inactivity scores, justification and slashings follow from all blocks since genesis.
With the validators route, they make up the parts of a state that amounts depend on.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np

from beaconframes.beacon_node.amounts.states import StateAmounts
from beaconframes.beacon_node.client.validator_rows import build_whole_registry
from beaconframes.consensus.registry import Registry, extend_zeros
from beaconframes.consensus.replay import Replay
from beaconframes.consensus.spec import is_since
from beaconframes.consensus.state import BeaconState
from beaconframes.errors import BadRequest, NotFound, NotServed, ServerError, ServiceError

if TYPE_CHECKING:
    from beaconframes.beacon_node.chain.reader import ChainReader
    from beaconframes.consensus.registry import Ints

CACHED_EPOCHS = 10
"""Replayed epochs that are cached.

Tasks that run at the same time need up to eight. An epoch before them needs a new replay.
"""


class ReplayedEpoch(NamedTuple):
    """What a replay knows of an epoch."""

    state: BeaconState
    """The state after its last slot: the parts that amounts depend on."""
    inclusion_rewards: dict[int, int]
    """The proposer's reward for the attestations of each block, by slot."""


class ReplayAmounts(StateAmounts):
    """Reads the amounts of an epoch from a replay of all blocks before it.

    Epochs are replayed in order, from genesis to the one that is read.
    """

    def __init__(self, reader: ChainReader) -> None:
        """Request blocks, committees and validators from *reader*, which has no states."""
        super().__init__(reader)
        self._lock = threading.Lock()
        self._start()

    def _start(self) -> None:
        self._replayed = Replay(self.spec)
        self._epochs: dict[int, ReplayedEpoch] = {}
        self._slashings: Ints = np.zeros(self.spec.epochs_per_slashings_vector, np.int64)

    def state(self, epoch: int) -> BeaconState:
        """Return the parts of a state that amounts depend on, after the last slot of an epoch."""
        return self.replay_until(epoch).state

    def inclusion_rewards(self, epoch: int) -> dict[int, int]:
        """Return the proposer's reward for the attestations of each block of an epoch, by slot."""
        return self.replay_until(epoch).inclusion_rewards

    def genesis_state(self) -> Registry:
        """Return the validators of genesis."""
        api = self.reader.api
        return self.reader.cached("genesis", 0, lambda: build_whole_registry(api.validators(0)))

    def replay_until(self, epoch: int) -> ReplayedEpoch:
        """Return a replayed epoch, after all epochs before it."""
        with self._lock:
            if epoch not in self._epochs and epoch < self._replayed.next_epoch:
                self._start()
            while epoch not in self._epochs:
                number = self._replayed.next_epoch
                self._epochs[number] = self._replay_epoch(number)
                self._epochs.pop(number - CACHED_EPOCHS, None)
            return self._epochs[epoch]

    def _replay_epoch(self, epoch: int) -> ReplayedEpoch:
        spec, reader, replayed = self.spec, self.reader, self._replayed
        fork = spec.fork_at(epoch)
        if is_since(fork, "electra"):
            raise NotServed(
                f"epoch {epoch} belongs to {fork}, whose income cannot be replayed from blocks",
                hint="Use a node with SSZ states or rewards routes",
            )
        try:
            # An epoch without one of its blocks would change the amounts of all later ones.
            reader.check_blocks(epoch)
            blocks = list(reader.block_messages(epoch).values())
            last = reader.slots_of(epoch)[-1]
            registry = build_whole_registry(reader.request_state(last, reader.api.validators))
            committees = reader.committees(epoch)
            sync_committee = reader.sync_committee(epoch)
        except (NotFound, NotServed, BadRequest, ServerError) as error:
            _refuse(epoch, error)
        try:
            replayed.process_blocks(epoch, blocks, committees, registry)
            self._add_slashings(epoch, registry)
            justification = replayed.justification
            count = len(registry.slashed)
            empty = np.zeros((0, 32), np.uint8)
            state = BeaconState(
                **vars(registry),
                fork=fork,
                slot=spec.first_slot_of(epoch + 1) - 1,
                activation_eligibility_epochs=np.zeros(count, np.int64),
                previous_participation=extend_zeros(replayed.participation.previous, count),
                current_participation=extend_zeros(replayed.participation.current, count),
                inactivity_scores=replayed.inactivity_scores,
                slashings=self._slashings.copy(),
                randao_mixes=empty,
                block_roots=empty,
                justification_bits=justification.bits,
                previous_justified_epoch=justification.previous_justified_epoch,
                current_justified_epoch=justification.current_justified_epoch,
                finalized_epoch=justification.finalized_epoch,
                current_sync_committee=sync_committee,
                next_sync_committee=sync_committee[:0],
            )
            replayed.end_epoch()
        except BaseException:
            # A replay that ended within an epoch cannot be continued.
            self._start()
            raise
        return ReplayedEpoch(state, replayed.inclusion_rewards)

    def _add_slashings(self, epoch: int, registry: Registry) -> None:
        before = self._epochs[epoch - 1].state if epoch else self.genesis_state()
        count = len(registry.slashed)
        is_new = registry.slashed & ~extend_zeros(before.slashed, count)
        slot = epoch % self.spec.epochs_per_slashings_vector
        self._slashings[slot] = registry.effective_balances.sum(where=is_new)


def _refuse(epoch: int, error: ServiceError) -> NoReturn:
    raise NotServed(
        f"the income of this node's chain must be replayed from genesis, and epoch {epoch} cannot "
        f"be: {error.message}",
        hint="Use a node with the blocks, validators and committees of all epochs, with SSZ "
        "states, or with rewards routes",
        endpoint=error.endpoint,
    ) from error
