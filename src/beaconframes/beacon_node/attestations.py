"""Attestations in blocks: their signers, the duties that they fulfil, and the votes for blocks."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import polars as pl

from beaconframes.beacon_node.signed_block import build_error
from beaconframes.beacon_node.slot_blocks import PROPOSED
from beaconframes.beacon_node.tables import build_frame
from beaconframes.v1.attestations import Attestations
from beaconframes.v1.slot_attestations import SlotAttestations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from beaconframes.beacon_node.signed_block import Attestation
    from beaconframes.beacon_node.slot_blocks import SlotBlock
    from beaconframes.consensus.shuffling import Committees
    from beaconframes.consensus.spec import Spec

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

_NEVER: Final = 2**63 - 1


@dataclass(frozen=True, eq=False)
class SlotCommittees:
    """The committees of one slot, one after the other."""

    members: Ints
    starts: Ints
    """Where each committee starts in *members*, and where the last one ends."""

    @classmethod
    def build(cls, committees: Sequence[Ints]) -> SlotCommittees:
        """Return the committees of a slot, in the order of their indices."""
        sizes = [len(committee) for committee in committees]
        members = np.concatenate([np.zeros(0, np.int64), *committees])
        return cls(members, np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]))

    @property
    def count(self) -> int:
        """Return the number of committees."""
        return len(self.starts) - 1

    @cached_property
    def committee_indices(self) -> Ints:
        """Return the committee of each member."""
        return np.repeat(np.arange(self.count), np.diff(self.starts))


class CommitteeReader:
    """Finds the signers of attestations, by the committees of their slots."""

    def __init__(self, spec: Spec, committees: Mapping[int, Committees]) -> None:
        """Use the *committees* of some epochs, by epoch."""
        self._spec, self._committees = spec, committees
        self._slots: dict[int, SlotCommittees | None] = {}

    def at_slot(self, slot: int) -> SlotCommittees | None:
        """Return the committees of a slot, None if those of its epoch are unknown."""
        if slot not in self._slots:
            epoch = self._committees.get(self._spec.epoch_of(slot))
            self._slots[slot] = SlotCommittees.build(epoch.at_slot(slot)) if epoch else None
        return self._slots[slot]

    def find_signers(self, vote: IncludedVote) -> Ints | None:
        """Return the positions of the signers in the committees of the slot; None if unknown.

        Raises
        ------
        ResponseError
            The bits do not fit the committees.
        """
        slot = vote.attestation.data.slot
        committees = self.at_slot(slot)
        if committees is None:
            return None
        bits = vote.decode_bits()
        spanned = vote.list_committees(self._spec)
        if spanned and spanned[-1] >= committees.count:
            raise vote.build_error(
                f"names committee {spanned[-1]} of slot {slot}, which has {committees.count}"
            )
        starts = committees.starts
        sizes = [int(starts[index + 1] - starts[index]) for index in spanned]
        if len(bits) != sum(sizes):
            raise vote.build_error(
                f"has {len(bits)} aggregation bits, but its committees have {sum(sizes)} members"
            )
        if len(spanned) == committees.count:
            return np.flatnonzero(bits)
        if len(spanned) == 1:
            return np.flatnonzero(bits) + int(starts[spanned[0]])
        ranges = [np.arange(starts[index], starts[index + 1]) for index in spanned]
        return np.concatenate([np.zeros(0, np.int64), *ranges])[bits]


@dataclass(frozen=True)
class IncludedVote:
    """An attestation with its place in a block."""

    place: SlotBlock
    number: int
    attestation: Attestation

    def decode_bits(self) -> Bools:
        """Return the aggregation bits: one per committee member, without the delimiter bit."""
        try:
            return decode_bitlist(self.attestation.aggregation_bits)
        except ValueError as error:
            raise self.build_error(f"has invalid aggregation bits: {error}") from None

    def list_committees(self, spec: Spec) -> list[int]:
        """Return the committees that the attestation spans, in ascending order."""
        text = self.attestation.committee_bits
        if text is None:
            return [self.attestation.data.index]
        data = np.frombuffer(bytes.fromhex(text[2:]), np.uint8)
        if len(data) != -(-spec.max_committees_per_slot // 8):
            raise self.build_error(
                f"has {len(data)} bytes of committee bits, "
                f"but there are up to {spec.max_committees_per_slot} committees"
            )
        return [int(n) for n in np.flatnonzero(np.unpackbits(data, bitorder="little"))]

    def build_error(self, detail: str) -> Exception:
        """Return the error for an invalid attestation."""
        return build_error(self.place.slot, f"message.body.attestations[{self.number}] {detail}")


def decode_bitlist(text: str) -> Bools:
    """Return the bits of a bit list of the SSZ encoding, whose highest set bit ends the list.

    Raises
    ------
    ValueError
        No bit is set in the last byte.
    """
    data = np.frombuffer(bytes.fromhex(text[2:]), np.uint8)
    if not len(data) or not data[-1]:
        raise ValueError("the delimiter bit is missing")
    length = 8 * len(data) - 9 + int(data[-1]).bit_length()
    return np.unpackbits(data, count=length, bitorder="little").view(np.bool_)


def list_votes(spec: Spec, slots: Iterable[SlotBlock]) -> Iterator[IncludedVote]:
    """Yield the attestations in blocks, in order.

    Raises
    ------
    ResponseError
        An attestation is for the slot of its block or a later one, or for another epoch.
    """
    for place in slots:
        if place.block is None:
            continue
        for number, attestation in enumerate(place.block.message.body.attestations):
            vote, data = IncludedVote(place, number, attestation), attestation.data
            if data.slot >= place.slot:
                raise vote.build_error(f"is for slot {data.slot}, which is not before the block")
            if spec.epoch_of(data.slot) != data.target.epoch:
                raise vote.build_error(
                    f"is for slot {data.slot}, which is not in target epoch {data.target.epoch}"
                )
            if data.source.epoch > data.target.epoch:
                raise vote.build_error(f"has source epoch {data.source.epoch}, after its target")
            yield vote


def build_attestations(
    spec: Spec, epoch: int, committees: Committees, slots: Iterable[SlotBlock]
) -> pl.DataFrame:
    """Return the attestation duties of *epoch*, one row per validator.

    *slots* are those of *epoch* and of the next epoch, the last in which a block can include the
    attestation. Orphaned blocks do not count.
    """
    reader = CommitteeReader(spec, {epoch: committees})
    first = spec.first_slot_of(epoch)
    duty_slots = range(first, first + spec.slots_per_epoch)
    by_slot = {slot: reader.at_slot(slot) for slot in duty_slots}
    parts = {slot: part for slot, part in by_slot.items() if part is not None}
    inclusion = {slot: np.full(len(part.members), _NEVER) for slot, part in parts.items()}
    canonical = [slot for slot in slots if slot.status == PROPOSED]
    # From the last block to the first: the first inclusion is written last.
    for place in sorted(canonical, key=lambda place: place.slot, reverse=True):
        for vote in list_votes(spec, [place]):
            if vote.attestation.data.slot in inclusion:
                signers = reader.find_signers(vote)
                inclusion[vote.attestation.data.slot][signers] = place.slot
    return _build_duties(spec, epoch, parts, inclusion)


def _build_duties(
    spec: Spec, epoch: int, parts: Mapping[int, SlotCommittees], inclusion: Mapping[int, Ints]
) -> pl.DataFrame:
    members = np.concatenate([part.members for part in parts.values()])
    count = int(members.max(initial=-1)) + 1
    columns = {
        "attester_slot": np.repeat(list(parts), [len(part.members) for part in parts.values()]),
        "inclusion_slot": np.concatenate([inclusion[slot] for slot in parts]),
        "committee_index": np.concatenate([part.committee_indices for part in parts.values()]),
    }
    # Writing by validator index sorts the rows without a sort.
    has_duty = np.zeros(count, np.bool_)
    has_duty[members] = True
    by_validator = {}
    for name, values in columns.items():
        row = np.zeros(count, np.int64)
        row[members] = values
        by_validator[name] = row[has_duty]
    validators = np.flatnonzero(has_duty)
    included = pl.Series(by_validator["inclusion_slot"] != _NEVER)
    slots = pl.Series(by_validator["inclusion_slot"])
    return build_frame(
        Attestations,
        {
            **by_validator,
            "validator_index": validators,
            "epoch": np.full(len(validators), epoch),
            "inclusion_slot": slots.set(~included, None),
            "status": pl.select(
                pl.when(included).then(pl.lit("included")).otherwise(pl.lit("missed"))
            ).to_series(),
        },
        spec.chain,
    )


def build_slot_attestations(
    spec: Spec, slots: Iterable[SlotBlock], committees: Mapping[int, Committees]
) -> pl.DataFrame:
    """Return the attestations in blocks, one row per aggregate.

    *committees* are those of the epochs of the blocks and of the epoch before, by epoch. The
    validators of an aggregate whose committees are missing are null.
    """
    reader = CommitteeReader(spec, committees)
    rows = [_describe(vote, reader) for vote in list_votes(spec, slots)]
    names = [name for name in SlotAttestations.schema().names() if name != "time"]
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in names}
    # Arrays become lists of a column without a Python integer for each validator.
    columns["validators"] = pl.Series(
        "validators", columns["validators"], dtype=pl.List(pl.Int64), strict=False
    )
    return build_frame(SlotAttestations, columns, spec.chain)


def _describe(vote: IncludedVote, reader: CommitteeReader) -> dict[str, Any]:
    data, signers = vote.attestation.data, reader.find_signers(vote)
    committees = reader.at_slot(data.slot)
    return {
        "block_slot": vote.place.slot,
        "block_root": vote.place.root,
        "block_index": vote.number,
        "slot": data.slot,
        "committee_index": data.index,
        "validators": committees.members[signers] if committees is not None else None,
        "aggregation_bits": vote.attestation.aggregation_bits,
        "beacon_block_root": data.beacon_block_root,
        "source_epoch": data.source.epoch,
        "source_root": data.source.root,
        "target_epoch": data.target.epoch,
        "target_root": data.target.root,
        "signature": vote.attestation.signature,
    }


def count_votes(
    spec: Spec, slots: Iterable[SlotBlock], committees: Mapping[int, Committees]
) -> dict[str, int | None]:
    """Return the number of votes for each block root in the canonical blocks of *slots*.

    A vote that several aggregates contain counts once. A block has votes of its own epoch, and
    also of later slots until the next block. The number is None for a root with votes of an epoch
    whose committees are missing.
    """
    reader = CommitteeReader(spec, committees)
    voters: dict[tuple[str, int], Bools] = {}
    counts: dict[str, int | None] = defaultdict(int)
    for vote in list_votes(spec, [slot for slot in slots if slot.status == PROPOSED]):
        data = vote.attestation.data
        root, part = data.beacon_block_root.lower(), reader.at_slot(data.slot)
        if part is None:
            counts[root] = None
            continue
        if (root, data.slot) not in voters:
            voters[root, data.slot] = np.zeros(len(part.members), np.bool_)
        voters[root, data.slot][reader.find_signers(vote)] = True
    for (root, _), signed in voters.items():
        count = counts[root]
        counts[root] = None if count is None else count + int(signed.sum())
    return dict(counts)
