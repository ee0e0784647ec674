"""Committees and proposers of an epoch: seeds, the swap-or-not shuffle, proposer sampling."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from beaconframes.consensus.spec import (
    DOMAIN_BEACON_ATTESTER,
    DOMAIN_BEACON_PROPOSER,
    Spec,
    is_since,
)
from beaconframes.errors import ResponseError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from beaconframes.consensus.registry import Ints
    from beaconframes.consensus.state import BeaconState

_BLOCK = 256
"""The number of positions that one hash decides in a round of the shuffle."""


@dataclass(frozen=True, eq=False)
class Committees:
    """The attestation committees of an epoch, with *per_slot* committees in each slot."""

    epoch: int
    first_slot: int
    per_slot: int
    validators: Ints
    """The members of all committees in order of slot and index."""
    bounds: Ints
    """The first member of each committee in `validators`, and the end of the last one."""

    @classmethod
    def from_api(cls, spec: Spec, epoch: int, data: Sequence[Mapping[str, Any]]) -> Committees:
        """Return the committees that the route ``states/{state_id}/committees`` lists.

        Rows are sorted by slot and index. Old versions of Lodestar label every row with slot 0:
        those rows are taken in the order of the response.
        """
        slots = spec.slots_per_epoch
        rows = [_parse_committee(row) for row in data]
        if not rows or len(rows) % slots:
            raise ResponseError(
                f"the node lists {len(rows)} committees for epoch {epoch}; "
                f"each of its {slots} slots must have the same number of committees"
            )
        per_slot = len(rows) // slots
        if any(slot for slot, _, _ in rows):
            rows.sort(key=lambda row: row[:2])
            _check_labels(rows, spec.first_slot_of(epoch), per_slot)
        members = [each for _, _, each in rows]
        validators = np.concatenate(members)
        unique, counts = np.unique(validators, return_counts=True)
        if len(unique) < len(validators):
            raise ResponseError(
                f"the node lists validator {unique[counts > 1][0]} more than once in the "
                f"committees of epoch {epoch}"
            )
        bounds = np.cumsum([0, *map(len, members)], dtype=np.int64)
        return cls(epoch, spec.first_slot_of(epoch), per_slot, validators, bounds)

    def of(self, slot: int, index: int) -> Ints:
        """Return the members of committee *index* of a slot."""
        place = self._find_slot(slot) + index
        if not 0 <= index < self.per_slot:
            raise ResponseError(
                f"slot {slot} has no committee {index}; it has {self.per_slot} committees"
            )
        return self.validators[self.bounds[place] : self.bounds[place + 1]]

    def at_slot(self, slot: int) -> list[Ints]:
        """Return the members of each committee of a slot."""
        bounds = self.bounds_of(slot).tolist()
        return [self.validators[start:end] for start, end in itertools.pairwise(bounds)]

    def bounds_of(self, slot: int) -> Ints:
        """Return the part of `bounds` of the committees of a slot, and the end of the last one."""
        place = self._find_slot(slot)
        return self.bounds[place : place + self.per_slot + 1]

    def _find_slot(self, slot: int) -> int:
        """Return the place of the first committee of a slot in `bounds`."""
        place = (slot - self.first_slot) * self.per_slot
        if not 0 <= place < len(self.bounds) - 1:
            raise ResponseError(
                f"slot {slot} is not in epoch {self.epoch}, whose committees are used"
            )
        return place


def compute_committees(spec: Spec, state: BeaconState, epoch: int) -> Committees:
    """Return the committees of an epoch: the state's next one, or any one before it.

    A state stores the seeds of the last ``epochs_per_historical_vector`` epochs.
    """
    current = spec.epoch_of(state.slot)
    mix_epoch = epoch - spec.min_seed_lookahead - 1
    if not (0 <= epoch <= current + spec.min_seed_lookahead) or (
        current >= mix_epoch + spec.epochs_per_historical_vector
    ):
        raise UsageError(
            f"the committees of epoch {epoch} do not follow from the state of epoch {current}",
            hint="Use a state of this epoch or of the one before it",
        )
    active = _find_active(state, epoch)
    shuffled = shuffle(
        active, _compute_seed(spec, state, epoch, DOMAIN_BEACON_ATTESTER), spec.shuffle_round_count
    )
    slots = spec.slots_per_epoch
    per_slot = len(active) // slots // spec.target_committee_size
    per_slot = max(1, min(spec.max_committees_per_slot, per_slot))
    bounds = np.arange(per_slot * slots + 1) * len(active) // (per_slot * slots)
    return Committees(epoch, spec.first_slot_of(epoch), per_slot, shuffled, bounds)


def compute_proposers(spec: Spec, state: BeaconState, epoch: int) -> Ints:
    """Return the proposer of each slot of the state's epoch; since Fulu also of the next one."""
    current, slots = spec.epoch_of(state.slot), spec.slots_per_epoch
    known = 1 if state.proposer_lookahead is None else len(state.proposer_lookahead) // slots
    if not current <= epoch < current + known:
        raise UsageError(
            f"the proposers of epoch {epoch} do not follow from the state of epoch {current}",
            hint="Use a state of the same epoch",
        )
    if state.proposer_lookahead is not None:
        start = (epoch - current) * slots
        return state.proposer_lookahead[start : start + slots]
    active = _find_active(state, epoch)
    seed = _compute_seed(spec, state, epoch, DOMAIN_BEACON_PROPOSER)
    first, most = spec.first_slot_of(epoch), int(state.effective_balances[active].max())
    return np.array([
        _sample_proposer(spec, state, active, most, _hash(seed + _encode(slot)))
        for slot in range(first, first + slots)
    ])  # fmt: skip


def shuffle(validators: Ints, seed: bytes, round_count: int) -> Ints:
    """Return *validators* in the order of ``compute_shuffled_index``.

    A round mirrors the positions up to its pivot, and those after it, and swaps each pair if a bit
    of its hash is set. Whole halves are swapped in one step, as slices.
    """
    count = len(validators)
    shuffled = validators.astype(np.uint32)
    blocks = [number.to_bytes(4, "little") for number in range(count // _BLOCK + 1)]
    for number in reversed(range(round_count if count else 0)):
        prefix = seed + bytes([number])
        pivot = _compute_pivot(prefix, count)
        _swap_pairs(shuffled, 0, pivot + 1, prefix, blocks)
        _swap_pairs(shuffled, pivot + 1, count, prefix, blocks)
    return shuffled.astype(np.int64)


def _swap_pairs(
    shuffled: NDArray[np.uint32], start: int, end: int, prefix: bytes, blocks: list[bytes]
) -> None:
    """Swap each position from *start* with its mirror before *end*, if the mirror's bit is set."""
    half = (end - start) // 2
    if not half:
        return
    first_block = (end - half) // _BLOCK
    sha256 = hashlib.sha256
    hashes = b"".join([
        sha256(prefix + block).digest() for block in blocks[first_block : (end - 1) // _BLOCK + 1]
    ])  # fmt: skip
    bits = np.unpackbits(np.frombuffer(hashes, np.uint8), bitorder="little")
    bits = bits[end - half - first_block * _BLOCK : end - first_block * _BLOCK]
    low, high = shuffled[start : start + half], shuffled[end - half : end][::-1]
    difference = (low ^ high) * bits[::-1]
    low ^= difference
    high ^= difference


def _sample_proposer(spec: Spec, state: BeaconState, active: Ints, most: int, seed: bytes) -> int:
    """Return the first candidate that its effective balance lets pass a random test.

    *most* is the largest effective balance of the *active* validators.
    """
    count = len(active)
    prefixes = [seed + bytes([number]) for number in range(spec.shuffle_round_count)]
    rounds = [(prefix, _compute_pivot(prefix, count)) for prefix in prefixes]
    # Electra compares two random bytes; earlier forks compare one.
    width = 2 if is_since(state.fork, "electra") else 1
    limit, largest = 2 ** (8 * width) - 1, spec.get_max_effective_balance(state.fork)
    # Where no active validator can pass, the candidate does not matter.
    possible = (
        (int(active[_shuffle_index(attempt % count, rounds, count)]), value)
        for attempt, value in enumerate(_draw_values(seed, width))
        if most * limit >= largest * value
    )
    return next(
        candidate
        for candidate, value in possible
        if int(state.effective_balances[candidate]) * limit >= largest * value
    )


def _draw_values(seed: bytes, width: int) -> Iterator[int]:
    """Yield random integers of *width* bytes, without end."""
    for number in itertools.count():
        random = _hash(seed + _encode(number))
        for place in range(0, len(random), width):
            yield int.from_bytes(random[place : place + width], "little")


def _shuffle_index(index: int, rounds: list[tuple[bytes, int]], count: int) -> int:
    """Return ``compute_shuffled_index`` of one position."""
    sha256 = hashlib.sha256
    for prefix, pivot in rounds:
        flip = (pivot - index) % count
        position = flip if flip > index else index  # noqa: FURB136 - max() takes twice as long
        source = sha256(prefix + (position // _BLOCK).to_bytes(4, "little")).digest()
        if source[position % _BLOCK // 8] >> position % 8 & 1:
            index = flip
    return index


def _compute_pivot(prefix: bytes, count: int) -> int:
    return int.from_bytes(_hash(prefix)[:8], "little") % count


def _compute_seed(spec: Spec, state: BeaconState, epoch: int, domain: bytes) -> bytes:
    mix_epoch = epoch - spec.min_seed_lookahead - 1
    mix = state.randao_mixes[mix_epoch % spec.epochs_per_historical_vector]
    return _hash(domain + _encode(epoch) + mix.tobytes())


def _find_active(state: BeaconState, epoch: int) -> Ints:
    active = np.flatnonzero(state.is_active(epoch))
    if not len(active):
        raise ResponseError(f"no validator of the state is active in epoch {epoch}")
    return active


def _parse_committee(row: Mapping[str, Any]) -> tuple[int, int, Ints]:
    """Return slot, index and members of a committee."""
    try:
        slot, index = int(row["slot"]), int(row["index"])
        members = np.array(row["validators"], np.int64)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise _invalid_committee(row) from None
    if members.ndim != 1 or (members < 0).any():
        raise _invalid_committee(row)
    return slot, index, members


def _invalid_committee(row: object) -> ResponseError:
    return ResponseError(f"the node lists an invalid committee: {row!r:.200}")


def _check_labels(rows: list[tuple[int, int, Ints]], first_slot: int, per_slot: int) -> None:
    """Refuse sorted committees that are not 0 to *per_slot* - 1 of each slot of the epoch."""
    for place, (slot, index, _) in enumerate(rows):
        expected = (first_slot + place // per_slot, place % per_slot)
        if (slot, index) != expected:
            raise ResponseError(
                f"the node lists committee {index} of slot {slot} in place of committee "
                f"{expected[1]} of slot {expected[0]}",
                hint="The node answered for another epoch, or left committees out",
            )


def _encode(value: int) -> bytes:
    return value.to_bytes(8, "little")


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
