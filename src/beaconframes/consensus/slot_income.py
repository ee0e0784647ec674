"""Income and payments inside blocks: every change of a balance that a block makes, exact.

The parts of a block move balances in this order: withdrawals, slashings, attestations (the
proposer's reward), deposits, switches to compounding credentials, the sync aggregate. A balance
never falls below zero: an amount is what really reached or left the balance.

When operations of a block move a balance:

- A withdrawal, a slashing penalty and all rewards of a block: in that block.
- A deposit before Electra: in the block that includes it. Since Electra, a deposit or a request
  for one only joins the queue of pending deposits.
- A switch to compounding credentials (a consolidation request whose source is its target): in the
  block. The balance above 32 ETH leaves it and becomes a pending deposit.
- A consolidation request and a withdrawal request move nothing. The balance of a consolidation
  moves when its source is withdrawable, that of a withdrawal request in a later block.

`epoch_moves` has what moves between two epochs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from beaconframes.consensus.participation import decode_bitvector
from beaconframes.consensus.registry import (
    ADDRESS_PREFIX,
    COMPOUNDING_PREFIX,
    PubkeyIndex,
    decode_hex,
    extend_zeros,
    find_creating_deposit,
    is_slashable,
    sum_withdrawals,
)
from beaconframes.consensus.rewards import (
    compute_base_reward_per_increment,
    compute_sync_rewards,
)
from beaconframes.consensus.spec import is_since
from beaconframes.errors import ResponseError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from beaconframes.consensus.registry import Bools, Ints, Message, Registry
    from beaconframes.consensus.spec import Spec

KINDS: Final = (
    "withdrawal",
    "proposer_slashing_inclusion",
    "attester_slashing_inclusion",
    "slashing_penalty",
    "attestation_inclusion",
    "deposit",
    "switch_to_compounding",
    "sync_committee",
    "sync_inclusion",
)
"""The kinds of rows, in the order in which blocks move balances."""


class SlotIncome(NamedTuple):
    """What one kind of operation in a block added to a balance; negative if it took from it."""

    slot: int
    kind: str
    validator_index: int
    amount_gwei: int


@dataclass(eq=False)
class EpochRegistry:
    """The validators during the blocks of one epoch; `compute_slot_income` updates them."""

    spec: Spec
    epoch: int
    fork: str
    before: Registry
    """At the end of the epoch before."""
    after: Registry
    """At the end of this epoch."""
    balances: Ints
    """Before the next block."""
    slashed: Bools
    sync_committee: Ints
    seat_reward: int
    sync_inclusion_reward: int
    count: int
    """The number of validators before the next block."""
    credentials: dict[int, bytes] = field(default_factory=dict)
    """Withdrawal credentials that blocks of the epoch changed."""
    first_valid: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Slot and position of the deposit before Electra that created each new validator."""
    deposits: list[SlotIncome] = field(default_factory=list)
    """Each deposit that reached a balance; the rows of a block have their sums by validator."""

    @classmethod
    def build(
        cls,
        spec: Spec,
        epoch: int,
        *,
        before: Registry,
        after: Registry,
        balances: Ints,
        sync_committee: Ints,
        total_active_balance: int,
        blocks: Iterable[Message] = (),
    ) -> EpochRegistry:
        """Return the validators before the first block of *epoch*.

        *before* and *after* are a `BeaconState` or a `Registry`: at the last slot of the epoch
        before, and at the last slot of this one. *balances* are those after the transition into
        this epoch, which `compute_transition` returns. *blocks* are the messages of its blocks:
        before Electra, they show which deposits of new public keys are valid.
        """
        fork = spec.fork_at(epoch)
        if not is_since(fork, "altair"):
            raise UsageError(
                f"epoch {epoch} belongs to phase0, whose rewards are not supported",
                hint=f"Begin with epoch {spec.fork_epochs.get('altair')}, the first one of Altair",
            )
        seat, inclusion = compute_sync_rewards(
            compute_base_reward_per_increment(spec, total_active_balance),
            total_active_balance // spec.effective_balance_increment,
            spec.slots_per_epoch,
            len(sync_committee),
        )
        total = len(after.slashed)
        registry = cls(
            spec=spec,
            epoch=epoch,
            fork=fork,
            before=before,
            after=after,
            balances=extend_zeros(balances, total),
            slashed=extend_zeros(before.slashed, total),
            sync_committee=sync_committee,
            seat_reward=seat,
            sync_inclusion_reward=inclusion,
            count=len(balances),
        )
        if not is_since(fork, "electra"):
            registry.first_valid = find_creating_deposits(registry, blocks)
        return registry

    def __post_init__(self) -> None:
        """Prepare what every block needs."""
        self.pubkey_index = PubkeyIndex(self.after.pubkeys)
        self.members, self.member_of_seat = np.unique(self.sync_committee, return_inverse=True)

    def move(self, index: int, amount: int) -> int:
        """Change a balance, but never below zero; return the amount of the change."""
        old = int(self.balances[index])
        new = max(0, old + amount)
        self.balances[index] = new
        return new - old

    def get_credentials(self, index: int) -> bytes:
        """Return the withdrawal credentials of a validator before the next block."""
        changed = self.credentials.get(index)
        source = self.before if index < len(self.before.slashed) else self.after
        return changed or source.withdrawal_credentials[index].tobytes()


def compute_slot_income(
    registry: EpochRegistry, message: Message, attestation_reward: int
) -> list[SlotIncome]:
    """Return what a block moves, one row per kind and validator, and update the registry.

    *message* is the message of the signed block, *attestation_reward* what
    `BlockParticipation.process_block` returns for it. Blocks are passed in order, each once.
    """
    slot = int(message["slot"])
    if slot == 0:  # The genesis block is part of the genesis state.
        return []
    if registry.spec.epoch_of(slot) != registry.epoch:
        raise UsageError(f"the block of slot {slot} is not in epoch {registry.epoch}")
    body, proposer = message["body"], int(message["proposer_index"])
    moves: dict[tuple[str, int], int] = {}
    for kind, index, amount in _process_operations(registry, message, proposer, attestation_reward):
        if index >= len(registry.balances):
            raise ResponseError(
                f"the block of slot {slot} names validator {index} of {len(registry.balances)}",
                hint="The block and the states do not belong to the same chain",
            )
        moved = registry.move(index, amount)
        moves[kind, index] = moves.get((kind, index), 0) + moved
        if kind == "deposit":
            registry.count = max(registry.count, index + 1)
            registry.deposits.append(SlotIncome(slot, kind, index, moved))
    _process_sync_aggregate(registry, body["sync_aggregate"], proposer, slot, moves)
    return [
        SlotIncome(slot, kind, index, amount) for (kind, index), amount in moves.items() if amount
    ]


def find_slashings(body: Message) -> Iterator[tuple[str, int]]:
    """Yield "proposer" or "attester" and the accused validator for each slashing of a block.

    Validators that are not slashable, such as those slashed before, are among them.
    """
    for slashing in body["proposer_slashings"]:
        yield "proposer", int(slashing["signed_header_1"]["message"]["proposer_index"])
    for slashing in body["attester_slashings"]:
        first = {int(index) for index in slashing["attestation_1"]["attesting_indices"]}
        second = {int(index) for index in slashing["attestation_2"]["attesting_indices"]}
        for index in sorted(first & second):
            yield "attester", index


def _process_operations(
    registry: EpochRegistry, message: Message, proposer: int, attestation_reward: int
) -> Iterator[tuple[str, int, int]]:
    """Yield kind, validator and amount of each move before the sync aggregate, in order."""
    body = message["body"]
    payload = body.get("execution_payload", {})
    for withdrawal in payload.get("withdrawals", ()):
        yield "withdrawal", int(withdrawal["validator_index"]), -int(withdrawal["amount"])
    for kind, slashed in find_slashings(body):
        yield from _slash(registry, slashed, proposer, f"{kind}_slashing_inclusion")
    yield "attestation_inclusion", proposer, attestation_reward
    if not is_since(registry.fork, "electra"):
        slot = int(message["slot"])
        for place, deposit in enumerate(body["deposits"]):
            yield from _deposit(registry, deposit["data"], (slot, place))
    for change in body.get("bls_to_execution_changes", ()):
        address = decode_hex(change["message"]["to_execution_address"])
        index = int(change["message"]["validator_index"])
        registry.credentials[index] = bytes([ADDRESS_PREFIX]) + bytes(11) + address
    for request in body.get("execution_requests", {}).get("consolidations", ()):
        yield from _switch_to_compounding(registry, request)


def _slash(
    registry: EpochRegistry, index: int, proposer: int, kind: str
) -> Iterator[tuple[str, int, int]]:
    if not is_slashable(registry.before, registry.slashed, index, registry.epoch):
        return
    registry.slashed[index] = True
    spec, fork = registry.spec, registry.fork
    effective = int(registry.after.effective_balances[index])
    penalty = effective // spec.get_min_slashing_penalty_quotient(fork)
    yield "slashing_penalty", index, -penalty
    # The proposer is also the whistleblower, so that both rewards are its own.
    yield kind, proposer, effective // spec.get_whistleblower_reward_quotient(fork)


def _deposit(
    registry: EpochRegistry, deposit: Message, place: tuple[int, int]
) -> Iterator[tuple[str, int, int]]:
    """Yield the move of a deposit before Electra; *place* is its slot, and its position there."""
    index = registry.pubkey_index.find(decode_hex(deposit["pubkey"]))
    if index is None or place < registry.first_valid.get(index, place):
        return
    yield "deposit", index, int(deposit["amount"])


def find_creating_deposits(
    registry: EpochRegistry, blocks: Iterable[Message]
) -> dict[int, tuple[int, int]]:
    """Return slot and position of the deposit that created each validator of an epoch's *blocks*.

    The signature matters for new public keys alone. Whether it is valid shows in the registry at
    the end of the epoch: it has the key, the credentials of the first valid deposit, the balance.
    """
    after, messages = registry.after, list(blocks)
    new: dict[int, list[tuple[int, int, Message]]] = {}
    for message in messages:
        for place, deposit in enumerate(message["body"]["deposits"]):
            index = registry.pubkey_index.find(decode_hex(deposit["data"]["pubkey"]))
            if index is not None and index >= registry.count:
                entry = int(message["slot"]), place, deposit["data"]
                new.setdefault(index, []).append(entry)
    withdrawn = sum_withdrawals(messages) if new else {}
    found = {}
    for index, entries in new.items():
        creating = find_creating_deposit(
            [
                (decode_hex(data["withdrawal_credentials"]), int(data["amount"]))
                for _, _, data in entries
            ],
            after.withdrawal_credentials[index].tobytes(),
            int(after.balances[index]) + withdrawn.get(index, 0),
        )
        if creating is not None:
            found[index] = entries[creating][:2]
    return found


def _switch_to_compounding(
    registry: EpochRegistry, request: Message
) -> Iterator[tuple[str, int, int]]:
    """Yield the move of a switch: a consolidation request whose source is its target.

    The first request with the right address takes effect if the validator has compounding
    credentials at the end of the epoch. An exit or an inactive validator prevents the switch.
    """
    if decode_hex(request["source_pubkey"]) != decode_hex(request["target_pubkey"]):
        return
    index = registry.pubkey_index.find(decode_hex(request["source_pubkey"]))
    if index is None or registry.after.withdrawal_credentials[index, 0] != COMPOUNDING_PREFIX:
        return
    credentials = registry.get_credentials(index)
    if credentials[0] != ADDRESS_PREFIX or credentials[12:] != decode_hex(
        request["source_address"]
    ):
        return
    registry.credentials[index] = bytes([COMPOUNDING_PREFIX]) + credentials[1:]
    excess = int(registry.balances[index]) - registry.spec.min_activation_balance
    yield "switch_to_compounding", index, -max(0, excess)


def _process_sync_aggregate(
    registry: EpochRegistry,
    aggregate: Message,
    proposer: int,
    slot: int,
    moves: dict[tuple[str, int], int],
) -> None:
    """Reward the seats that signed and the proposer, and penalize the other seats."""
    seats, reward = registry.sync_committee, registry.seat_reward
    signed = decode_bitvector(aggregate["sync_committee_bits"])
    if len(signed) != len(seats):
        raise ResponseError(
            f"the sync aggregate of slot {slot} has {len(signed)} bits for {len(seats)} seats",
            hint="The node is faulty, or its spec has another SYNC_COMMITTEE_SIZE",
        )
    if registry.balances[registry.members].min() >= reward * len(seats):
        totals = np.zeros(len(registry.members), np.int64)
        np.add.at(totals, registry.member_of_seat, np.where(signed, reward, -reward))
        registry.balances[registry.members] += totals
        changes = zip(registry.members.tolist(), totals.tolist(), strict=True)
        moves.update({("sync_committee", index): total for index, total in changes})
        share = registry.sync_inclusion_reward * int(signed.sum())
        moves["sync_inclusion", proposer] = registry.move(proposer, share)
        return
    # A balance may reach zero: then the order of the seats matters.
    share = 0
    for index, has_signed in zip(seats.tolist(), signed.tolist(), strict=True):
        moved = registry.move(index, reward if has_signed else -reward)
        moves["sync_committee", index] = moves.get(("sync_committee", index), 0) + moved
        if has_signed:
            share += registry.move(proposer, registry.sync_inclusion_reward)
    moves["sync_inclusion", proposer] = share
