"""Participation flags of validators: what the attestations in blocks set, and what that pays.

A validator has three flags per epoch: timely source, timely target and timely head. The proposer
of a block earns a share of the base reward for each flag that its block is the first to set.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from beaconframes.consensus.registry import extend_zeros
from beaconframes.consensus.rewards import (
    FLAG_WEIGHTS,
    TIMELY_HEAD,
    TIMELY_SOURCE,
    TIMELY_TARGET,
    compute_base_reward_per_increment,
    compute_inclusion_rewards,
)
from beaconframes.consensus.spec import is_since
from beaconframes.errors import ResponseError, UsageError

if TYPE_CHECKING:
    from beaconframes.consensus.registry import Bools, Bytes, Ints, Message
    from beaconframes.consensus.shuffling import Committees
    from beaconframes.consensus.spec import Spec
    from beaconframes.consensus.state import BeaconState

WEIGHT_OF_FLAGS: Final = np.array(
    [sum(weight for flag, weight in FLAG_WEIGHTS.items() if flags & flag) for flags in range(8)],
    np.int64,
)
"""The sum of the weights for each combination of the three flags."""


def find_attesters(committees: Committees, attestation: Message) -> Ints:
    """Return the validators whose votes an attestation aggregates, committee by committee.

    *committees* are those of the epoch of the attestation's target. Since Electra, an attestation
    has one bit per committee of its slot, and the bits of these committees one after the other.
    """
    data = attestation["data"]
    slot = int(data["slot"])
    if "committee_bits" in attestation:
        chosen = np.flatnonzero(decode_bitvector(attestation["committee_bits"]))
        of_slot = committees.at_slot(slot)
        if len(chosen) == 0 or chosen[-1] >= len(of_slot):
            raise ResponseError(
                f"an attestation of slot {slot} names committees {chosen.tolist()}, but the slot "
                f"has {len(of_slot)}"
            )
        members = np.concatenate([of_slot[index] for index in chosen])
    else:
        members = committees.of(slot, int(data["index"]))
    try:
        bits = decode_bitlist(attestation["aggregation_bits"])
    except ValueError as error:
        raise ResponseError(
            f"an attestation of slot {slot} has invalid aggregation_bits: {error}"
        ) from None
    if len(bits) != len(members):
        raise ResponseError(
            f"an attestation of slot {slot} has {len(bits)} aggregation_bits, but its committees "
            f"have {len(members)} members",
            hint="The node is faulty, or the committees are those of another epoch",
        )
    return members[bits]


def decode_bitvector(text: str) -> Bools:
    """Return the bits of an SSZ bitvector."""
    data = np.frombuffer(bytes.fromhex(text[2:]), np.uint8)
    return np.unpackbits(data, bitorder="little").view(np.bool_)


def decode_bitlist(text: str) -> Bools:
    """Return the bits of an SSZ bitlist, whose highest set bit is the delimiter.

    Raises
    ------
    ValueError
        No bit is set in the last byte.
    """
    data = np.frombuffer(bytes.fromhex(text[2:]), np.uint8)
    if not len(data) or not data[-1]:
        raise ValueError("the delimiter bit is missing")
    length = 8 * len(data) - 9 + int(data[-1]).bit_length()
    bits: Bools = np.unpackbits(data, count=length, bitorder="little").view(np.bool_)
    return bits


class BlockParticipation:
    """The participation flags of the current and the previous epoch, updated block by block.

    Call `start_epoch` for each epoch, then `process_block` for each of its blocks, in order.
    Without an earlier state, start one epoch early: votes for an epoch are only included in this
    epoch and the next one. `process_block` returns None until all earlier votes are known.
    """

    def __init__(self, spec: Spec) -> None:
        """Start before any block: at genesis, or one epoch before the first of interest."""
        self._spec = spec
        self._committees: dict[int, Committees] = {}
        self._roots: dict[int, str] = {}
        self._increments = np.zeros(0, np.int64)
        self._base_reward_per_increment = 0
        self._has_earlier_votes = False
        self._last_slot = -1
        self.epoch: int | None = None
        self.previous: Bytes = np.zeros(0, np.uint8)
        self.current: Bytes = np.zeros(0, np.uint8)

    @classmethod
    def from_state(
        cls, spec: Spec, state: BeaconState, committees: Committees
    ) -> BlockParticipation:
        """Continue after a state: that of the last slot of an epoch, whose *committees* these are.

        The next call is `start_epoch` for the epoch after that state.
        """
        participation = cls(spec)
        participation.epoch = epoch = spec.epoch_of(state.slot)
        if state.slot + 1 != spec.first_slot_of(epoch + 1):
            raise UsageError(f"slot {state.slot} is not the last slot of epoch {epoch}")
        participation.previous = state.previous_participation
        participation.current = state.current_participation
        participation._committees[epoch] = committees
        participation._has_earlier_votes = True
        for slot in range(spec.first_slot_of(epoch), state.slot):
            root = state.block_roots[slot % spec.slots_per_historical_root]
            participation._roots[slot] = "0x" + bytes(root).hex()
        return participation

    def start_epoch(
        self,
        epoch: int,
        committees: Committees,
        effective_balances: Ints,
        total_active_balance: int,
    ) -> None:
        """Rotate the flags; the arguments are those of *epoch*, which follows the one before."""
        if self.epoch is not None and epoch != self.epoch + 1:
            raise UsageError(f"epoch {epoch} does not follow epoch {self.epoch}")
        last = committees.validators.max(initial=-1)
        if last >= len(effective_balances):
            raise ResponseError(
                f"the committees of epoch {epoch} have validator {last} of "
                f"{len(effective_balances)}",
                hint="The committees and the validators do not belong to the same state",
            )
        self._has_earlier_votes |= self.epoch is not None or epoch == 0
        spec = self._spec
        self.epoch = epoch
        self.previous = extend_zeros(self.current, len(effective_balances))
        self.current = np.zeros(len(effective_balances), np.uint8)
        self._committees = {epoch: committees} | {
            before: known for before, known in self._committees.items() if before == epoch - 1
        }
        first = spec.first_slot_of(epoch - 1)
        self._roots = {slot: root for slot, root in self._roots.items() if slot >= first}
        self._increments = effective_balances // spec.effective_balance_increment
        self._base_reward_per_increment = compute_base_reward_per_increment(
            spec, total_active_balance
        )

    def process_block(self, message: Message) -> int | None:
        """Set the flags of a block's attestations; return the proposer's reward for them, in gwei.

        *message* is the message of the signed block: ``data.message`` of the Beacon API.
        """
        slot = int(message["slot"])
        if self.epoch is None or self._spec.epoch_of(slot) != self.epoch:
            raise UsageError(f"the block of slot {slot} is not in epoch {self.epoch}")
        if slot <= self._last_slot:
            raise UsageError(f"the block of slot {slot} follows that of slot {self._last_slot}")
        self._last_slot = slot
        self._add_roots(slot, message["parent_root"])
        numerators = [
            self._process_attestation(slot, attestation)
            for attestation in message["body"]["attestations"]
        ]
        if not self._has_earlier_votes:
            return None
        return int(compute_inclusion_rewards(np.array(numerators, np.int64)).sum())

    def _add_roots(self, slot: int, parent_root: str) -> None:
        """Store the root of the last block as that of each slot up to the one before *slot*."""
        spec = self._spec
        before = slot - 1
        first = max(0, spec.first_slot_of(spec.epoch_of(slot) - 1))
        while before >= first and before not in self._roots:
            self._roots[before] = parent_root
            before -= 1

    def _process_attestation(self, slot: int, attestation: Message) -> int:
        """Set the flags of one attestation; return base reward times weight of the new ones."""
        target = int(attestation["data"]["target"]["epoch"])
        if target == self.epoch:
            participation = self.current
        elif target + 1 == self.epoch:
            participation = self.previous
        else:
            raise ResponseError(
                f"the block of slot {slot} includes an attestation of epoch {target}",
                hint="Blocks include attestations of their own epoch and of the one before",
            )
        if target not in self._committees and not self._has_earlier_votes:
            return 0
        attesters = find_attesters(self._committees[target], attestation)
        known = participation[attesters]
        new = self._compute_flags(slot, attestation["data"]) & ~known
        if not new.any():
            return 0
        participation[attesters] = known | new
        weighted = int(WEIGHT_OF_FLAGS[new] @ self._increments[attesters])
        return weighted * self._base_reward_per_increment

    def _compute_flags(self, slot: int, data: Message) -> np.uint8:
        """Return the flags that a vote earns in the block of *slot*.

        The source needs no comparison: a block whose attestation has another source is invalid.
        """
        spec = self._spec
        voted_slot, target = int(data["slot"]), data["target"]
        delay = slot - voted_slot
        flags = 0
        if delay <= math.isqrt(spec.slots_per_epoch):
            flags |= TIMELY_SOURCE
        if target["root"] == self._roots.get(spec.first_slot_of(int(target["epoch"]))):
            has_no_limit = is_since(spec.fork_at(spec.epoch_of(slot)), "deneb")
            if has_no_limit or delay <= spec.slots_per_epoch:
                flags |= TIMELY_TARGET
            has_head = data["beacon_block_root"] == self._roots.get(voted_slot)
            if has_head and delay == spec.min_attestation_inclusion_delay:
                flags |= TIMELY_HEAD
        return np.uint8(flags)
