"""The slots of a range with their blocks, block roots and proposers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from beaconframes.beacon_node.client.block_checks import build_error, check_validators, parse_block

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from beaconframes.beacon_node.client.signed_block import Body, ExecutionPayload, SignedBlock
    from beaconframes.consensus.spec import Spec
    from beaconframes.consensus.state import BeaconState
    from beaconframes.errors import ResponseError

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
    spec: Spec,
    signed_blocks: Mapping[int, Any],
    *,
    proposers: Mapping[int, int],
    last_root: str | None = None,
    roots: Mapping[int, str] | None = None,
) -> list[SlotBlock]:
    """Return the slots of *signed_blocks* in order, each with its canonical block.

    *signed_blocks* has the JSON of each slot's block, None for a slot without one. The root of a
    block is the parent root of the next block; *last_root* is the root of the last block. Without
    it, that root is None: request ``/eth/v1/beacon/headers/{slot}``, or add later slots to
    *signed_blocks*. *proposers* has the proposers of missed slots.

    A node that has lost a block answers as for a missed slot. *roots* has the roots of some slots
    from headers: one that is not the parent root of the next block is a `ResponseError`. Those of
    `find_roots_to_check` are enough.
    """
    slots: list[SlotBlock] = []
    child_root = last_root.lower() if last_root else None
    known = {slot: root.lower() for slot, root in (roots or {}).items()}
    for slot in sorted(signed_blocks, reverse=True):
        if signed_blocks[slot] is None:
            slots.append(_build_empty_slot(slot, proposers, child_root))
            continue
        child_root = child_root or known.get(slot)
        if known.get(slot) not in (None, child_root):
            raise _build_root_error(
                slot, known[slot], f"the next block has the parent {child_root}"
            )
        block = parse_block(spec, slot, signed_blocks[slot])
        slots.append(_build_slot(block, child_root, proposers.get(slot)))
        child_root = block.message.parent_root.lower()
    return slots[::-1]


def find_roots_to_check(slots: Sequence[SlotBlock]) -> list[int]:
    """Return the slots of blocks that the next slot does not confirm: it has no block.

    Only these roots are wrong if the node has lost a block, or if the last root is unknown.
    """
    canonical = [slot for slot in slots if slot.status != ORPHANED]
    has_next = [slot.status == PROPOSED for slot in canonical[1:]] + [False]
    return [
        slot.slot
        for slot, confirmed in zip(canonical, has_next, strict=True)
        if slot.status == PROPOSED and not confirmed
    ]


def apply_state_roots(
    spec: Spec, slots: Sequence[SlotBlock], state: BeaconState
) -> list[SlotBlock]:
    """Return *slots* with the block roots that a later state has, after a check of all of them.

    A state has the roots of the last ``slots_per_historical_root`` slots; a slot without a block
    has the root of the block before. Its registry has all validators that earlier blocks name.

    Raises
    ------
    ResponseError
        The node has lost a block, the slots belong to another chain than the state, or a block
        names a validator that is not in the state.
    """
    size = spec.slots_per_historical_root
    first = min((slot.slot for slot in slots), default=0) - 1
    roots = {
        slot: "0x" + state.block_roots[slot % size].tobytes().hex()
        for slot in range(max(state.slot - size, first, 0), state.slot)
    }
    checked = []
    for slot in slots:
        if slot.block is not None and slot.status == PROPOSED and slot.slot <= state.slot:
            check_validators(slot.block, len(state.balances))
        root = roots.get(slot.slot)
        if root is None or slot.status == ORPHANED:
            checked.append(slot)
        elif slot.status == PROPOSED:
            if slot.root not in (None, root):
                raise _build_root_error(slot.slot, slot.root, f"the state has the root {root}")
            parent = None if slot.block is None else slot.block.message.parent_root.lower()
            if parent is not None and roots.get(slot.slot - 1, parent) != parent:
                raise build_error(
                    slot.slot,
                    f"its parent is {parent}, but the state has the root {roots[slot.slot - 1]} "
                    "before it: the chain was reorganized between two requests",
                )
            checked.append(replace(slot, root=root))
        else:
            if roots.get(slot.slot - 1, root) != root:
                raise build_error(slot.slot, f"it is missing, but the state has its root {root}")
            checked.append(slot)
    return checked


def _build_root_error(slot: int, root: str | None, contradiction: str) -> ResponseError:
    """Return the error for a root that another answer of the node contradicts."""
    return build_error(
        slot,
        f"its root is {root}, but {contradiction}. The node has lost a later block, or the chain "
        "was reorganized between two requests",
    )


def read_orphan(spec: Spec, root: str, data: Any, *, slot: int) -> SlotBlock:
    """Return a block that is not part of the canonical chain."""
    block = parse_block(spec, slot, data)
    return SlotBlock(slot, ORPHANED, block.message.proposer_index, root.lower(), block)


def _build_empty_slot(slot: int, proposers: Mapping[int, int], child_root: str | None) -> SlotBlock:
    """Return a slot without a block. Some clients do not have the genesis block."""
    if slot == 0:
        return SlotBlock(slot, PROPOSED, root=child_root)
    return SlotBlock(slot, MISSED, proposers.get(slot))


def _build_slot(block: SignedBlock, root: str | None, proposer: int | None) -> SlotBlock:
    """Return a slot with its canonical block; genesis has no proposer."""
    slot, index = block.message.slot, block.message.proposer_index
    if slot == 0:
        return SlotBlock(slot, PROPOSED, None, root, block)
    if proposer not in (None, index):
        raise build_error(
            slot, f"message.proposer_index is {index}, but the duty was that of {proposer}"
        )
    return SlotBlock(slot, PROPOSED, index, root, block)


_NO_HASH: Final = "0x" + "00" * 32


def get_payload(body: Body | None) -> ExecutionPayload | None:
    """Return the execution block; None before the Merge, when the payload is empty."""
    payload = body.execution_payload if body else None
    return payload if payload and payload.block_hash != _NO_HASH else None
