"""The reader of a chain: blocks, states and duties of a node, checked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from beaconframes.beacon_node.chain.cached_node import CACHED_EPOCHS, CachedNode
from beaconframes.beacon_node.chain.votes import read_votes
from beaconframes.beacon_node.client.slot_blocks import (
    MISSED,
    SlotBlock,
    add_proposers,
    check_links,
    check_state,
    read_slots,
)
from beaconframes.beacon_node.execution.payments import read_payments
from beaconframes.consensus.shuffling import compute_committees, compute_proposers
from beaconframes.consensus.state import SharedColumns, decode_state
from beaconframes.errors import (
    BadRequest,
    NotFound,
    ResponseError,
    ServerError,
    ServiceError,
)
from beaconframes.memory import map_large_arrays

if TYPE_CHECKING:
    from collections.abc import Callable

    from beaconframes.beacon_node.chain.votes import IncludedVote
    from beaconframes.beacon_node.client.api import BeaconApi
    from beaconframes.beacon_node.execution.payments import BlockPayment
    from beaconframes.consensus.registry import Ints
    from beaconframes.consensus.shuffling import Committees
    from beaconframes.consensus.spec import Spec
    from beaconframes.consensus.state import BeaconState

T = TypeVar("T")

CACHED_VOTES = 4
"""Epochs whose votes are cached: those for an epoch are in the blocks of three, for two threads."""
CACHED_AMOUNTS = 2
"""Epochs whose amounts by validator are cached: tens of megabytes each for all of mainnet."""
MANY_VALIDATORS = 500_000
"""Validators from which two epochs at a time would need more than 2 GB."""


class ChainReader(CachedNode):
    """Reads a chain from a node, for any number of threads."""

    def __init__(self, api: BeaconApi, spec: Spec, **options: Any) -> None:
        """Read from *api*; the *options* are those of `CachedNode`."""
        super().__init__(api, spec, **options)
        self._columns = SharedColumns()
        self.orphans: dict[str, SlotBlock] = {}
        """Blocks that may be orphaned, by root."""
        self.has_large_states = False
        """Whether memory holds the states of one epoch only; known after the first state."""

    def signed_block(self, slot: int) -> dict[str, Any] | None:
        """Return the signed block of a slot as JSON, None if the slot has no block."""
        self.check_closed()
        return self._blocks.get(slot, lambda: self.api.block(slot))

    def signed_blocks(self, epoch: int) -> dict[int, dict[str, Any] | None]:
        """Return the signed block of each slot of an epoch as JSON, up to the head."""
        slots = [slot for slot in self.slots_of(epoch) if slot <= self.head_slot]
        return self.request_all(self.signed_block, slots)

    def block_messages(self, epoch: int) -> dict[int, dict[str, Any]]:
        """Return the messages of the blocks of an epoch by slot, in order."""
        return {
            slot: block["message"]
            for slot, block in self.signed_blocks(epoch).items()
            if block is not None
        }

    def slots(self, epoch: int) -> list[SlotBlock]:
        """Return the slots of an epoch with their blocks and proposers, checked."""
        self.check_blocks(epoch)
        return add_proposers(self._parse_slots(epoch), self.missed_proposers(epoch))

    def _parse_slots(self, epoch: int) -> list[SlotBlock]:
        """Return the slots of an epoch with their blocks, without requests for duties."""

        def parse() -> list[SlotBlock]:
            return read_slots(self.spec, self.signed_blocks(epoch), proposers={})

        return self.cached("parsed slots", epoch, parse)

    def check_blocks(self, epoch: int) -> None:
        """Raise ResponseError if a block of an epoch is invalid, altered, or if one is lost."""

        def check() -> None:
            slots = self._parse_slots(epoch)
            if self.has_state(epoch) and epoch < self.last_complete_epoch:
                # The state has the root of each slot, and shows a block that the node has lost.
                check_state(self.spec, slots, self.state(epoch + 1))
            else:
                check_links(slots, self._find_last_root(epoch))

        self.cached("checked blocks", epoch, check)

    def _find_last_root(self, epoch: int) -> str | None:
        """Return the root of the last block of an epoch, as the next block or a header has it."""
        if epoch < self.last_complete_epoch:
            for message in self.block_messages(epoch + 1).values():
                return str(message["parent_root"])
        last = max(self.block_messages(epoch), default=None)
        return None if last is None else self._request_root(last)

    def header(self, slot: int) -> dict[str, Any] | None:
        """Return root and header of the block of a slot; None if the slot has none."""
        size = 2 * self.spec.slots_per_epoch
        return self.cached("headers", slot, lambda: self.api.header(slot), size=size)

    def check_missed(self, slot: int) -> None:
        """Raise ResponseError if a slot without a block lies between blocks that are not linked.

        A node that has lost a block answers as for a missed slot.
        """
        parent = next(filter(None, map(self.header, range(slot - 1, -1, -1))), None)
        child = next(filter(None, map(self.header, range(slot + 1, self.head_slot + 1))), None)
        # Some clients do not have the genesis block; the head has no next block.
        if parent is None or child is None:
            return
        first, last = (each["header"]["message"] for each in (parent, child))
        if last["parent_root"].lower() != parent["root"].lower():
            raise ResponseError(
                f"the node has no block between the slots {first['slot']} and {last['slot']}, but "
                f"the block of slot {last['slot']} has the parent {last['parent_root']}, which is "
                f"not that of slot {first['slot']}",
                hint="The node has lost a block, or the chain was reorganized. Try again, or use "
                "another node",
            )

    def _request_root(self, slot: int) -> str:
        header = self.api.header(slot)
        if header is None:
            raise ResponseError(
                f"the node has the block of slot {slot}, but not its header",
                hint="The chain may have been reorganized. Try again",
            )
        return str(header["root"])

    def payments(self, epoch: int) -> list[BlockPayment]:
        """Return what the execution blocks of an epoch paid; there must be an execution node."""

        def read() -> list[BlockPayment]:
            assert self.execution is not None
            return read_payments(self.execution, self.slots(epoch))

        return self.cached("payments", epoch, read)

    def votes(self, epoch: int) -> list[IncludedVote]:
        """Return the attestations in the blocks of an epoch, with their signers."""
        self.check_blocks(epoch)
        return self._read_votes(epoch)

    def votes_without_last_root(self, epoch: int) -> list[IncludedVote]:
        """Return the attestations of `votes`, without a check of the last block of the epoch.

        That check needs the state of the next epoch. The state of this one confirms the others.
        """
        if not self.has_state(epoch):
            return self.votes(epoch)
        check_state(self.spec, self._parse_slots(epoch), self.state(epoch))
        return self._read_votes(epoch)

    def _read_votes(self, epoch: int) -> list[IncludedVote]:
        def read() -> list[IncludedVote]:
            near = {number: self.committees(number) for number in (epoch - 1, epoch) if number >= 0}
            return read_votes(self.spec, self._parse_slots(epoch), near)

        return self.cached("votes", epoch, read, size=CACHED_VOTES)

    def state(self, epoch: int) -> BeaconState:
        """Return the state after the last slot of an epoch, before the transition at its end."""
        self.check_closed()
        return self._states.get(epoch, lambda: self._read_state(epoch))

    def _decode_state(self, state_id: int | str) -> BeaconState:
        """Request a state, and free the response, which is larger than the state."""
        state = self._columns.share(decode_state(self.api.state(state_id), self.spec))
        self.has_large_states = len(state.balances) > MANY_VALIDATORS
        if self.has_large_states:
            map_large_arrays()
        return state

    def _read_state(self, epoch: int) -> BeaconState:
        last = self.slots_of(epoch)[-1]
        # In the epoch of the head, clients refuse later slots, each with another error.
        state = self.request_state(min(last, self.head_slot), self._decode_state)
        if state.slot >= last:
            return replace(state, slot=last)
        # Within an epoch only blocks change a state, besides the root of each slot.
        root = bytes.fromhex(self._request_root(state.slot)[2:])
        roots = state.block_roots.copy()
        places = np.arange(state.slot, last) % self.spec.slots_per_historical_root
        roots[places] = np.frombuffer(root, np.uint8)
        return replace(state, slot=last, block_roots=roots)

    def request_state(self, slot: int, request: Callable[[int], T]) -> T:
        """Return the answer of *request* for the state of *slot*.

        Some clients have no state of a skipped slot: then for that of the epoch's last block.
        """
        try:
            return request(slot)
        except (NotFound, ServiceError):
            slots = list(self.block_messages(self.spec.epoch_of(slot)))
            if not slots or slot in slots:
                raise
            return request(slots[-1])

    def genesis_state(self) -> BeaconState:
        """Return the state of genesis, with which epoch 0 starts."""
        try:
            return self.cached("genesis", 0, lambda: self._decode_state("genesis"))
        except (BadRequest, NotFound, ServerError) as error:
            # Some clients delete it although they have the state of the first slots.
            hint = "Leave out epoch 0, which starts with the state of genesis: since=1"
            error.hint = f"{hint}. {error.hint}" if error.hint else hint
            raise

    def committees(self, epoch: int) -> Committees:
        """Return the attestation committees of an epoch."""
        first = self.slots_of(epoch)[0]

        def read() -> Committees:
            if self.has_state(epoch):
                return compute_committees(self.spec, self.state(epoch), epoch)
            return self.request_state(first, lambda slot: self.api.committees(slot, epoch))

        return self.cached("committees", epoch, read)

    def proposers(self, epoch: int) -> dict[int, int]:
        """Return the proposer of each slot of an epoch."""

        def read() -> dict[int, int]:
            if not self.has_state(epoch):
                return self.api.proposer_duties(epoch)
            found = compute_proposers(self.spec, self.state(epoch), epoch)
            return dict(zip(self.slots_of(epoch), found.tolist(), strict=True))

        # They are needed again after their state was freed.
        return self.cached("proposers", epoch, read, size=2 * CACHED_EPOCHS)

    def missed_proposers(self, epoch: int) -> dict[int, int]:
        """Return the proposers of an epoch that blocks do not name: those of slots without one.

        None if the node has no proposer duties of the epoch.
        """
        has_missed = any(slot.status == MISSED for slot in self._parse_slots(epoch))
        return self.proposers(epoch) if has_missed and self.has_proposers(epoch) else {}

    def sync_committee(self, epoch: int) -> Ints:
        """Return the validator of each seat of the sync committee in an epoch."""
        period = epoch // self.spec.epochs_per_sync_committee_period
        first = self.slots_of(epoch)[0]

        def read() -> Ints:
            if first > self.head_slot:
                return self.api.sync_committee("head", epoch)
            if self.has_state(epoch):
                return self.state(epoch).current_sync_committee
            return self.request_state(first, lambda slot: self.api.sync_committee(slot, epoch))

        return self.cached("sync_committee", period, read)
