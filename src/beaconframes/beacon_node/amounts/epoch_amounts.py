"""The amounts of one epoch: what its duties earned, and whether that explains the balances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from beaconframes.consensus.epoch_moves import Move
    from beaconframes.consensus.registry import Bools, Ints
    from beaconframes.consensus.slot_income import SlotIncome

UNKNOWN = -1
"""A missed reward that the node does not state."""


class Deposit(NamedTuple):
    """One deposit that reached a balance."""

    slot: int
    validator_index: int
    amount_gwei: int


class Change(NamedTuple):
    """Changes of balance that income and transfers do not explain, all of one epoch."""

    epoch: int
    validators: Ints
    change: Ints
    explained: Ints


@dataclass(frozen=True, eq=False)
class EpochAmounts:
    """The amounts of one epoch; arrays have one entry for each of the *validators*."""

    epoch: int
    validators: Ints
    """Indices in ascending order."""
    is_rewarded: Bools
    """Whether the validator has attestation duties: active, or slashed and still penalized."""
    source: Ints
    target: Ints
    head: Ints
    inactivity: Ints
    has_balance: Bools
    balances: Ints
    """After the block of the first slot."""
    effective_balances: Ints
    slot_income: Sequence[SlotIncome]
    """Of all validators or of the chosen ones."""
    moves: Sequence[Move]
    """At the end of the epoch, without attestation rewards."""
    deposits: Sequence[Deposit]
    """In the order of their slots; those at the end of the epoch have its last slot."""
    missed: Mapping[str, Ints]
    """What the votes for source, target and head would have earned more if they were timely.

    `UNKNOWN` where the node does not state it.
    """
    proposals_missed: Mapping[int, int]
    fees_wei: Mapping[int, int | None] | None = None
    """Priority fees of the proposers: None if one is unknown, or if all are.

    Validators that proposed no block have none.
    """
    unexplained: Sequence[Change] = ()
    verified_until: int = -1
    """The last epoch whose changes of balance were compared; below *epoch* if none was."""


class AmountSource(Protocol):
    """Where the amounts of an epoch come from: states, rewards routes, or blocks alone."""

    def read(self, epoch: int, validators: Sequence[int] | None) -> EpochAmounts:
        """Return the amounts of an epoch, of some *validators* or of all."""


def find_positions(validators: Ints, indices: Ints) -> tuple[Ints, Bools]:
    """Return the place of each index among sorted *validators*, and whether it is one of them."""
    positions = np.searchsorted(validators, indices)
    is_chosen = positions < len(validators)
    is_chosen[is_chosen] = validators[positions[is_chosen]] == indices[is_chosen]
    return positions, is_chosen
