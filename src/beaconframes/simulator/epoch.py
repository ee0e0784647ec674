"""The record of an epoch: the engine writes it, and all table writers read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from beaconframes.consensus.registry import Bools, Ints
    from beaconframes.simulator.duties import Attestations, Slots
    from beaconframes.simulator.income import Income
    from beaconframes.simulator.registry import WithdrawalRequest
    from beaconframes.simulator.withdrawals import Withdrawals


@dataclass
class Slashing:
    """A slashing that a block included, for an offence in another slot of the same epoch."""

    slot: int  # in the epoch
    validator: int
    kind: Literal["attester", "proposer"]
    offence_slot: int  # in the epoch; of a proposer, the slot of both blocks


@dataclass
class Epoch:
    """The state of an epoch and its events; balances are those after its first block."""

    number: int
    balance: Ints
    effective: Ints
    active: Bools
    active_balance: int  # total effective balance of the active validators, gwei
    slots: Slots
    income: Income
    first_block: Ints  # the part of the income that the block of the first slot paid
    committee: Ints
    sync_bits: Bools  # slots x seats
    withdrawals: Withdrawals
    fees: Ints  # per slot, wei
    included_attestations: Ints  # count per slot
    target_balance: int = 0  # effective balance of the timely target votes, gwei
    deposits: list[tuple[int, int, int]] = field(default_factory=list)  # slot, validator, gwei
    exits: list[tuple[int, int]] = field(default_factory=list)  # slot, validator
    slashings: list[Slashing] = field(default_factory=list)
    switches: list[tuple[int, int, int]] = field(default_factory=list)  # slot, validator, gwei
    # slot, validator, gwei
    rejected_requests: list[tuple[int, int, int]] = field(default_factory=list)
    bls_changes: list[tuple[int, int]] = field(default_factory=list)  # slot, validator
    withdrawal_requests: list[WithdrawalRequest] = field(default_factory=list)  # accepted
    attestations: Attestations = field(init=False)  # drawn after the operations
