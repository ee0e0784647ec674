"""Attestations in blocks: their signers, the duties that they fulfill, and the votes for blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from beaconframes.beacon_node.client.block_checks import build_error
from beaconframes.beacon_node.client.slot_blocks import PROPOSED
from beaconframes.consensus.participation import decode_bitlist, decode_bitvector

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from beaconframes.beacon_node.client.signed_block import Attestation
    from beaconframes.beacon_node.client.slot_blocks import SlotBlock
    from beaconframes.consensus.registry import Bools, Ints
    from beaconframes.consensus.shuffling import Committees
    from beaconframes.consensus.spec import Spec
    from beaconframes.errors import ResponseError


@dataclass(frozen=True, eq=False)
class SlotCommittees:
    """The committees of one slot, one after the other."""

    members: Ints
    sizes: Ints

    @classmethod
    def build(cls, committees: Committees, slot: int) -> SlotCommittees:
        """Return the committees of a slot, in the order of their indices."""
        bounds = committees.bounds_of(slot)
        return cls(committees.validators[bounds[0] : bounds[-1]], np.diff(bounds))

    @cached_property
    def starts(self) -> Ints:
        """Return where each committee starts among the members."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def indices(self) -> Ints:
        """Return the committee of each member."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)


@dataclass(frozen=True, eq=False)
class IncludedVote:
    """An attestation in a block, with its signers."""

    place: SlotBlock
    number: int
    """Position among the attestations of the block, from 0."""
    attestation: Attestation
    committees: SlotCommittees | None = None
    """The committees of the attested slot; None if unknown."""
    start: int = 0
    """Position of the first bit among the members of the committees."""
    bits: Bools | None = None
    """Whether each member signed, from *start* on; None if the committees are unknown."""

    @property
    def slot(self) -> int:
        """Return the attested slot."""
        return self.attestation.data.slot

    def select(self, by_member: NDArray[Any]) -> NDArray[Any]:
        """Return the part of an array of the slot's members that the bits describe, as a view."""
        assert self.bits is not None
        return by_member[self.start : self.start + len(self.bits)]

    def build_error(self, detail: str) -> ResponseError:
        """Return the error for an invalid attestation."""
        return build_error(self.place.slot, f"message.body.attestations[{self.number}] {detail}")


def read_votes(
    spec: Spec, slots: Iterable[SlotBlock], committees: Mapping[int, Committees]
) -> list[IncludedVote]:
    """Return the attestations in the blocks of *slots*, in order, with their signers.

    *committees* has those of each attested epoch: the epochs of the blocks, and the epoch before.
    The signers of other epochs are unknown.

    Raises
    ------
    ResponseError
        An attestation contradicts its block or its committees; names slot and attestation.
    """
    by_slot: dict[int, SlotCommittees | None] = {}
    votes: list[IncludedVote] = []
    for place in slots:
        attestations = place.block.message.body.attestations if place.block else ()
        for number, attestation in enumerate(attestations):
            vote = IncludedVote(place, number, attestation)
            _check_data(spec, vote)
            if vote.slot not in by_slot:
                epoch = committees.get(spec.epoch_of(vote.slot))
                by_slot[vote.slot] = SlotCommittees.build(epoch, vote.slot) if epoch else None
            part = by_slot[vote.slot]
            votes.append(vote if part is None else _find_signers(spec, vote, part))
    return votes


def _check_data(spec: Spec, vote: IncludedVote) -> None:
    """Raise ResponseError for an attestation that no block can include."""
    data = vote.attestation.data
    if data.slot >= vote.place.slot:
        raise vote.build_error(f"is for slot {data.slot}, which is not before the block")
    if spec.epoch_of(data.slot) != data.target.epoch:
        raise vote.build_error(
            f"is for slot {data.slot}, which is not in target epoch {data.target.epoch}"
        )
    if data.source.epoch > data.target.epoch:
        raise vote.build_error(f"has source epoch {data.source.epoch}, after its target")
    # Since Electra, committee_bits replace the index, which is always 0.
    limit = spec.max_committees_per_slot if vote.attestation.committee_bits is None else 1
    if data.index >= limit:
        raise vote.build_error(f"has index {data.index}, but it must be below {limit}")


def _find_signers(spec: Spec, vote: IncludedVote, committees: SlotCommittees) -> IncludedVote:
    """Return the attestation with its signers; since Electra it spans several committees."""
    bits = decode_bitlist(vote.attestation.aggregation_bits)
    count = len(committees.sizes)
    spanned = _list_committees(spec, vote)
    if spanned and spanned[-1] >= count:
        raise vote.build_error(f"names committee {spanned[-1]} of slot {vote.slot}, of {count}")
    size = int(committees.sizes[spanned].sum())
    if len(bits) != size:
        raise vote.build_error(
            f"has {len(bits)} aggregation_bits, but its committees have {size} members"
        )
    start = int(committees.starts[spanned[0]]) if spanned else 0
    if len(spanned) not in (1, count):
        is_spanned = np.zeros(count, np.bool_)
        is_spanned[spanned] = True
        start, signed = 0, np.repeat(is_spanned, committees.sizes)
        signed[signed] = bits
        bits = signed
    return replace(vote, committees=committees, start=start, bits=bits)


def _list_committees(spec: Spec, vote: IncludedVote) -> list[int]:
    """Return the committees that an attestation spans, in ascending order."""
    text = vote.attestation.committee_bits
    if text is None:
        return [vote.attestation.data.index]
    bits = decode_bitvector(text)
    if len(bits) // 8 != -(-spec.max_committees_per_slot // 8):
        raise vote.build_error(
            f"has {len(bits) // 8} bytes of committee_bits, "
            f"but there are up to {spec.max_committees_per_slot} committees"
        )
    spanned: list[int] = np.flatnonzero(bits).tolist()
    return spanned


def count_votes(votes: Iterable[IncludedVote]) -> dict[str, int | None]:
    """Return the number of votes for each block root that canonical blocks include.

    A vote in several aggregates counts once. The number is None for a root with votes whose
    committees are unknown. Votes for a block are in blocks of its epoch and of the next two: the
    last one includes late votes of the next epoch that were cast for an old block.
    """
    voters: dict[tuple[str, int], Bools] = {}
    counts: dict[str, int | None] = {}
    for vote in votes:
        if vote.place.status != PROPOSED:
            continue
        root = vote.attestation.data.beacon_block_root.lower()
        counts.setdefault(root, 0)
        if vote.committees is None or vote.bits is None:
            counts[root] = None
            continue
        if (root, vote.slot) not in voters:
            voters[root, vote.slot] = np.zeros(len(vote.committees.members), np.bool_)
        signed = vote.select(voters[root, vote.slot])
        signed |= vote.bits
    for (root, _), signed in voters.items():
        count = counts[root]
        counts[root] = None if count is None else count + int(signed.sum())
    return counts
