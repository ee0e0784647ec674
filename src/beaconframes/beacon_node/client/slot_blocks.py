"""The slots of a range with their blocks, block roots and proposers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from beaconframes.beacon_node.client.block_checks import build_error, parse_block
from beaconframes.consensus.block_root import compute_block_root

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from beaconframes.beacon_node.client.signed_block import Body, ExecutionPayload, SignedBlock
    from beaconframes.consensus.spec import Spec
    from beaconframes.consensus.state import BeaconState

PROPOSED: Final = "proposed"
MISSED: Final = "missed"
ORPHANED: Final = "orphaned"


@dataclass(frozen=True)
class SlotBlock:
    """A slot with its block; None where there is no block, or where a value is unknown."""

    slot: int
    status: str
    """``proposed``, ``missed`` or ``orphaned``."""
    proposer_index: int | None = None
    root: str | None = None
    block: SignedBlock | None = None


def read_slots(
    spec: Spec, signed_blocks: Mapping[int, Any], *, proposers: Mapping[int, int]
) -> list[SlotBlock]:
    """Return the slots of *signed_blocks* in order, each with its canonical block.

    *signed_blocks* has the JSON of each slot's block, None for a slot without one. The root of a
    block follows from its content: `check_links` or `check_state` compares it with the chain.
    *proposers* has the proposers of missed slots.
    """
    slots: list[SlotBlock] = []
    child_root = None
    for slot in sorted(signed_blocks, reverse=True):
        signed = signed_blocks[slot]
        if signed is not None:
            block = parse_block(spec, slot, signed)
            root = compute_block_root(spec, signed["message"])
            index = None if slot == 0 else block.message.proposer_index
            slots.append(SlotBlock(slot, PROPOSED, index, root, block))
            child_root = block.message.parent_root.lower()
        elif slot == 0:  # Some clients do not have the genesis block.
            slots.append(SlotBlock(slot, PROPOSED, root=child_root))
        else:
            slots.append(SlotBlock(slot, MISSED))
    return add_proposers(slots[::-1], proposers)


def add_proposers(slots: Sequence[SlotBlock], proposers: Mapping[int, int]) -> list[SlotBlock]:
    """Return *slots* with the proposers of missed ones; those of blocks must be the same."""
    found = []
    for slot in slots:
        index, duty = slot.proposer_index, proposers.get(slot.slot)
        if index is not None and duty not in (None, index):
            raise build_error(
                slot.slot, f"message.proposer_index is {index}, but the duty was that of {duty}"
            )
        found.append(replace(slot, proposer_index=duty) if slot.status == MISSED else slot)
    return found


def check_links(slots: Sequence[SlotBlock], last_root: str | None = None) -> None:
    """Raise ResponseError unless each block of *slots* is the parent of the next one.

    *last_root* is the root that the chain states of the last block. A node that has lost a block
    answers as for a missed slot.
    """
    root = last_root and last_root.lower()
    for slot in reversed(slots):
        if slot.block is not None:
            _check_root(slot, root, f"the next block has the parent {root}")
            root = slot.block.message.parent_root.lower()


def check_state(spec: Spec, slots: Sequence[SlotBlock], state: BeaconState) -> None:
    """Raise ResponseError unless *slots* are those of the chain of a later *state*.

    A state has the roots of the last ``slots_per_historical_root`` slots; a slot without a block
    has the root of the block before.
    """
    check_links(slots)
    size = spec.slots_per_historical_root
    first = max(state.slot - size, 0)
    roots = {
        slot: "0x" + state.block_roots[slot % size].tobytes().hex()
        for slot in range(max(first, slots[0].slot - 1), state.slot)
    }
    for slot in slots:
        root = roots.get(slot.slot)
        if slot.status == PROPOSED:
            _check_root(slot, root, f"the state has the root {root}")
        elif root is not None and roots.get(slot.slot - 1, root) != root:
            raise build_error(slot.slot, f"it is missing, but the state has its root {root}")


def _check_root(slot: SlotBlock, root: str | None, contradiction: str) -> None:
    if root is not None and slot.root not in (None, root):
        raise build_error(
            slot.slot,
            f"its content has the root {slot.root}, but {contradiction}: the node has altered the "
            "block or has lost a later block, or the chain was reorganized between two requests",
        )


def read_orphan(spec: Spec, root: str, data: Any, *, slot: int) -> SlotBlock:
    """Return a block that is not part of the canonical chain."""
    block = parse_block(spec, slot, data)
    return SlotBlock(slot, ORPHANED, block.message.proposer_index, root.lower(), block)


_NO_HASH: Final = "0x" + "00" * 32


def get_payload(body: Body | None) -> ExecutionPayload | None:
    """Return the execution block; None before the Merge, when the payload is empty."""
    payload = body.execution_payload if body else None
    return payload if payload and payload.block_hash != _NO_HASH else None
