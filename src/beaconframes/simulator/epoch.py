"""What happened in an epoch: the one thing that the engine makes and everybody else reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from beaconframes.simulator.duties import Slots, Votes
    from beaconframes.simulator.income import Income
    from beaconframes.simulator.preset import Bools, Ints
    from beaconframes.simulator.sweep import Withdrawals


@dataclass
class Slashing:
    """A slashing that a block included, for an offence in another slot of the same epoch."""

    slot: int  # in the epoch
    validator: int
    kind: Literal["attester", "proposer"]
    offence: int  # slot in the epoch; of a proposer, where the twin is


@dataclass
class Epoch:
    """Everything that happened in an epoch; balances are those at its first slot."""

    number: int
    balance: Ints
    effective: Ints
    active: Bools
    total: int  # of the effective balances of the active, gwei
    slots: Slots
    income: Income
    committee: Ints
    signed: Bools  # slots x seats
    withdrawals: Withdrawals
    fees: Ints  # per slot, wei
    attestations: Ints  # included, per slot
    voted: int = 0  # effective balance that voted for the right target, gwei
    deposits: list[tuple[int, int, int]] = field(default_factory=list)  # slot, validator, gwei
    exits: list[tuple[int, int]] = field(default_factory=list)  # slot, validator
    slashings: list[Slashing] = field(default_factory=list)
    bls_changes: list[tuple[int, int]] = field(default_factory=list)  # slot, validator
    votes: Votes | None = None
