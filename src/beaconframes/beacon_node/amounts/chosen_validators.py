"""Chosen validators at one slot, and what blocks and the transition between epochs move of them.

This is the part of `beaconframes.consensus` that needs no other validators: rewards come from the
rewards routes instead.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from beaconframes.beacon_node.client.validator_rows import build_registry
from beaconframes.consensus.registry import (
    ADDRESS_PREFIX,
    COMPOUNDING_PREFIX,
    Registry,
    decode_hex,
    find_creating_deposit,
    is_slashable,
)
from beaconframes.consensus.slot_income import find_slashings
from beaconframes.errors import ResponseError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from beaconframes.beacon_node.client.validator_rows import ValidatorRow
    from beaconframes.consensus.registry import Ints
    from beaconframes.consensus.spec import Spec

    Message = Mapping[str, Any]
    Entry = Mapping[str, Any]

NO_SIGNATURE: Final = "0xc0" + 95 * "00"
"""The signature of pending deposits that were a balance before: the point at infinity."""


class BalanceMove(NamedTuple):
    """A change of a balance; an amount of None is all that the balance has above 32 ETH."""

    kind: str
    validator_index: int
    amount_gwei: int | None


@dataclass(frozen=True, eq=False)
class ChosenValidators:
    """Those of the chosen validators that exist at one slot."""

    indices: Ints
    """In ascending order."""
    registry: Registry
    """Arrays with one entry for each of the *indices*."""

    @classmethod
    def from_rows(cls, rows: Sequence[ValidatorRow]) -> ChosenValidators:
        """Return the validators of a response."""
        ordered = sorted(rows, key=lambda row: row.index)
        indices = np.array([row.index for row in ordered], np.int64)
        if len(indices) > 1 and (repeated := indices[1:][np.diff(indices) == 0]).size:
            raise ResponseError(f"the response has validator {repeated[0]} twice")
        return cls(indices, build_registry(ordered))

    @cached_property
    def positions(self) -> dict[int, int]:
        """Return the place of each validator in the arrays."""
        return {index: place for place, index in enumerate(self.indices.tolist())}

    @cached_property
    def index_of_pubkey(self) -> dict[bytes, int]:
        """Return the validator of each public key."""
        keys = (key.tobytes() for key in self.registry.pubkeys)
        return dict(zip(keys, self.indices.tolist(), strict=True))

    def get(self, name: str, index: int) -> Any:
        """Return the value of a column of the registry for a validator; None if it is not there."""
        place = self.positions.get(index)
        return None if place is None else getattr(self.registry, name)[place]

    def get_credentials(self, index: int) -> bytes | None:
        """Return the withdrawal credentials of a validator; None if it does not exist."""
        found = self.get("withdrawal_credentials", index)
        return None if found is None else bytes(found.tobytes())

    def spread(self, values: NDArray[Any], indices: Ints) -> NDArray[Any]:
        """Return *values* of some *indices* in the order of these validators; zero for others."""
        full = np.zeros(len(self.indices), values.dtype)
        known = np.isin(indices, self.indices)
        full[np.searchsorted(self.indices, indices[known])] = values[known]
        return full


@dataclass(eq=False)
class BlockMoves:
    """Finds what blocks move besides rewards, block by block in the order of slots.

    *before* are the validators at the first slot of an epoch, *after* those at the first slot of
    the next one: the blocks are those after the former up to the latter.
    """

    spec: Spec
    before: ChosenValidators
    after: ChosenValidators
    blocks: Sequence[Message]
    switched: set[int] = field(default_factory=set)
    """Validators that have switched to compounding credentials."""
    credentials: dict[int, bytes] = field(default_factory=dict)
    """Withdrawal credentials that blocks have changed."""

    def __post_init__(self) -> None:
        """Start with those slashed before."""
        self.slashed = self.before.registry.slashed.copy()

    def find(self) -> dict[int, list[BalanceMove]]:
        """Return the moves by slot."""
        return {int(message["slot"]): list(self._find(message)) for message in self.blocks}

    def _find(self, message: Message) -> Iterator[BalanceMove]:
        body = message["body"]
        for withdrawal in body.get("execution_payload", {}).get("withdrawals", ()):
            index = int(withdrawal["validator_index"])
            if index in self.after.positions:
                yield BalanceMove("withdrawal", index, -int(withdrawal["amount"]))
        slot = int(message["slot"])
        epoch = self.spec.epoch_of(slot)
        for _, index in find_slashings(body):
            yield from self._slash(index, epoch, slot)
        for change in body.get("bls_to_execution_changes", ()):
            address = decode_hex(change["message"]["to_execution_address"])
            index = int(change["message"]["validator_index"])
            self.credentials[index] = bytes([ADDRESS_PREFIX]) + bytes(11) + address
        for request in body.get("execution_requests", {}).get("consolidations", ()):
            yield from self._switch(request)

    def _slash(self, index: int, epoch: int, slot: int) -> Iterator[BalanceMove]:
        place = self.before.positions.get(index)
        if place is None or not is_slashable(self.before.registry, self.slashed, place, epoch):
            return
        self.slashed[place] = True
        # The last block is the first one of the next epoch, with its effective balances.
        is_next = slot % self.spec.slots_per_epoch == 0
        source = self.after if is_next else self.before
        quotient = self.spec.get_min_slashing_penalty_quotient(self.spec.fork_at(epoch))
        penalty = int(source.get("effective_balances", index)) // quotient
        yield BalanceMove("slashing_penalty", index, -penalty)

    def _switch(self, request: Message) -> Iterator[BalanceMove]:
        """Yield the move of a switch to compounding credentials, as `slot_income` finds it."""
        index = self.after.index_of_pubkey.get(decode_hex(request["source_pubkey"]))
        if index is None or request["source_pubkey"] != request["target_pubkey"]:
            return
        known = self.credentials.get(index) or self.before.get_credentials(index)
        later = self.after.get_credentials(index)
        if known is None or later is None or later[0] != COMPOUNDING_PREFIX:
            return
        if known[0] != ADDRESS_PREFIX or known[12:] != decode_hex(request["source_address"]):
            return
        self.credentials[index] = bytes([COMPOUNDING_PREFIX]) + known[1:]
        self.switched.add(index)
        yield BalanceMove("switch_to_compounding", index, None)


def find_removed(before: Sequence[Entry], after: Sequence[Entry]) -> list[Entry]:
    """Return the entries of a queue that a later state of it does not have, in order."""
    left = Counter(map(_freeze, after))
    removed = []
    for entry in before:
        key = _freeze(entry)
        if left[key]:
            left[key] -= 1
        else:
            removed.append(entry)
    return removed


def find_applied_deposits(
    before: ChosenValidators,
    after: ChosenValidators,
    deposits: Sequence[Entry],
    withdrawn: Mapping[int, int],
) -> list[tuple[int, int]]:
    """Return place and validator of the *deposits* that reached a balance, in order.

    *before* and *after* have all validators of the deposits; blocks between have *withdrawn* these
    amounts by validator. A deposit for a new public key that comes before the one that created its
    validator has an invalid signature, and was dropped.
    """
    by_index: dict[int, list[int]] = {}
    for place, entry in enumerate(deposits):
        index = after.index_of_pubkey.get(decode_hex(entry["pubkey"]))
        if index is not None:
            by_index.setdefault(index, []).append(place)
    applied = []
    for index, places in by_index.items():
        first: int | None = 0
        if index not in before.positions:
            registered = after.get_credentials(index)
            assert registered is not None
            new = [
                (decode_hex(deposits[n]["withdrawal_credentials"]), int(deposits[n]["amount"]))
                for n in places
            ]
            received = int(after.get("balances", index)) + withdrawn.get(index, 0)
            first = find_creating_deposit(new, registered, received)
        if first is not None:
            applied += [(place, index) for place in places[first:]]
    return sorted(applied)


def find_upgrade_moves(blocks: BlockMoves, queue: Iterable[Entry]) -> list[BalanceMove]:
    """Return the balances that became pending deposits with the fork to Electra.

    *queue* is that after the first block since the fork.
    """
    moves = []
    for entry in queue:
        index = blocks.after.index_of_pubkey.get(decode_hex(entry["pubkey"]))
        if index is None or index in blocks.switched or entry["signature"] != NO_SIGNATURE:
            continue
        moves.append(BalanceMove("fork_upgrade", index, -int(entry["amount"])))
    return moves


def _freeze(entry: Entry) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in entry.items()))
