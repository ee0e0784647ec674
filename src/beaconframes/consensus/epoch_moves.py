"""What the transition at the end of an epoch moves between balances, besides attestation rewards.

The transition follows the last slot of an epoch. It moves balances in this order:

1. Rewards and penalties of the attestations of the epoch before (`attestation_rewards`).
   ``unpaid_penalty``: the part of these penalties that a balance of zero did not pay.
2. ``slashing_correlation``: the second penalty of a slashed validator, half-way to its withdrawal.
3. ``pending_deposit`` (since Electra): a deposit of the queue reaches the balance once its slot is
   finalized and the churn limit admits it. A top-up of a validator that is exiting waits until it
   is withdrawable, and does not count towards the limit then.
4. ``pending_consolidation`` (since Electra): the effective balance of the source moves to the
   target in the transition into the epoch in which the source is withdrawable.
5. ``fork_upgrade`` (once, into Electra): the whole balance of validators without an activation
   epoch, and what validators with compounding credentials have above 32 ETH, leave the balances
   and become pending deposits.

The moves follow from the state before the transition alone, computed as the specification does. A
comparison of two states would not separate them: the blocks and rewards of the next epoch change
the same balances and queues. One fact is not in that state: whether the signature of a deposit for
a new public key is valid. A deposit with an invalid one is dropped. The registry of a later state
has the keys that were accepted, and their balances show from which deposit on. Without a later
state, new keys count as valid; the moves of validators that exist already are exact in both cases.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from beaconframes.consensus.attestation_rewards import AttestationRewards, Justification
from beaconframes.consensus.registry import (
    COMPOUNDING_PREFIX,
    PubkeyIndex,
    find_creating_deposit,
    sum_withdrawals,
)
from beaconframes.consensus.rewards import compute_correlation_penalty
from beaconframes.consensus.spec import FAR_FUTURE_EPOCH, is_since
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from beaconframes.consensus.registry import Ints
    from beaconframes.consensus.spec import Spec
    from beaconframes.consensus.state import BeaconState

KINDS: Final = (
    "unpaid_penalty",
    "slashing_correlation",
    "pending_deposit",
    "pending_consolidation",
    "fork_upgrade",
)
"""The kinds of moves, in the order in which the transition makes them."""

GENESIS_SLOT: Final = 0
"""The slot of pending deposits that are no requests: excess balances and old deposits."""


class Move(NamedTuple):
    """What the transition at the end of *epoch* added to a balance; negative if it took from it."""

    epoch: int
    kind: str
    validator_index: int
    amount_gwei: int


@dataclass(frozen=True, eq=False)
class Transition:
    """The transition at the end of an epoch."""

    moves: list[Move]
    balances: Ints
    """Balances after the transition: before the first block of the next epoch."""
    deposits: list[Move]
    """Each pending deposit that reached a balance; the moves have their sums by validator."""


def compute_transition(
    spec: Spec,
    state: BeaconState,
    later_state: BeaconState | None = None,
    rewards: AttestationRewards | None = None,
    *,
    later_blocks: Iterable[Mapping[str, Any]] = (),
) -> Transition:
    """Return the moves of the transition at the end of the state's epoch, and the balances after.

    *state* is that of the epoch's last slot, *later_state* that of the next epoch's, and
    *later_blocks* are the messages of the blocks between. *rewards* are what this transition pays
    for attestations; without them, they are computed from *state*.
    """
    epoch = spec.epoch_of(state.slot)
    last_slot = spec.first_slot_of(epoch + 1) - 1
    if state.slot != last_slot:
        raise UsageError(
            f"the state of slot {state.slot} is not at the end of epoch {epoch}",
            hint=f"Use the state of slot {last_slot}",
        )
    process = _Process(spec, state, later_state, later_blocks)
    if epoch > 0:
        process.pay(rewards or AttestationRewards.from_state(spec, state))
    process.slash()
    if is_since(state.fork, "electra"):
        process.deposit()
        process.consolidate()
    elif is_since(spec.fork_at(epoch + 1), "electra"):
        process.upgrade()
    moves = [
        Move(epoch, kind, index, amount)
        for (kind, index), amount in process.moves.items()
        if amount
    ]
    return Transition(moves, process.balances, process.deposits)


class _Process:
    """One transition: its balances and moves so far."""

    def __init__(
        self,
        spec: Spec,
        state: BeaconState,
        later_state: BeaconState | None,
        later_blocks: Iterable[Mapping[str, Any]],
    ) -> None:
        self.spec = spec
        self.state = state
        self.later_state = later_state
        self.later_blocks = later_blocks
        self.epoch = spec.epoch_of(state.slot)
        self.total_active_balance = state.get_total_active_balance(spec)
        self.balances = state.balances.copy()
        self.moves: dict[tuple[str, int], int] = {}
        self.deposits: list[Move] = []

    @cached_property
    def finalized_epoch(self) -> int:
        """Return the epoch of the finalized checkpoint after the transition."""
        return Justification.after(self.spec, self.state).finalized_epoch

    def move(self, kind: str, index: int, amount: int) -> None:
        """Change a balance, but never below zero."""
        amount = max(amount, -int(self.balances[index]))
        self.balances[index] += amount
        self.moves[kind, index] = self.moves.get((kind, index), 0) + amount

    def pay(self, rewards: AttestationRewards) -> None:
        """Apply the rewards and penalties of attestations, part by part."""
        whole = self.balances.copy()
        for part in (rewards.source, rewards.target, rewards.head, rewards.inactivity):
            whole += part
            self.balances += part
            np.maximum(self.balances, 0, out=self.balances)
        unpaid = self.balances - whole
        for index in np.flatnonzero(unpaid).tolist():
            self.moves["unpaid_penalty", index] = int(unpaid[index])

    def slash(self) -> None:
        """Take the correlation penalties of slashed validators half-way to their withdrawal."""
        spec, state = self.spec, self.state
        half_way = self.epoch + spec.epochs_per_slashings_vector // 2
        is_due = state.slashed & (state.withdrawable_epochs == half_way)
        for index in np.flatnonzero(is_due).tolist():
            penalty = compute_correlation_penalty(
                spec,
                int(state.effective_balances[index]),
                int(state.slashings.sum()),
                self.total_active_balance,
                spec.get_proportional_slashing_multiplier(state.fork),
                is_electra=is_since(state.fork, "electra"),
            )
            self.move("slashing_correlation", index, -penalty)

    def deposit(self) -> None:
        """Apply pending deposits, as ``process_pending_deposits`` does."""
        due = self.find_due_deposits()
        new: dict[bytes, list[int]] = {}
        for place, (entry, index) in enumerate(due):
            if index is None:
                new.setdefault(entry["pubkey"].tobytes(), []).append(place)
        first_valid = self.find_creating_deposits(due, new)
        created: dict[bytes, int] = {}
        for place, (entry, known) in enumerate(due):
            pubkey, index = entry["pubkey"].tobytes(), known
            if index is None:
                creating = first_valid[pubkey]
                if creating is None or place < creating:
                    continue  # Its signature is invalid.
                if pubkey not in created:
                    created[pubkey] = len(self.balances)
                    self.balances = np.append(self.balances, np.int64(0))
                index = created[pubkey]
            amount = int(entry["amount"])
            self.move("pending_deposit", index, amount)
            self.deposits.append(Move(self.epoch, "pending_deposit", index, amount))

    def find_due_deposits(self) -> list[tuple[np.void, int | None]]:
        """Return the pending deposits that are not postponed, and their validators, if they exist.

        A signature is checked only after a deposit has counted towards the churn limit.
        """
        spec, state = self.spec, self.state
        queue = state.pending_deposits[: spec.max_pending_deposits_per_epoch]
        if not len(queue):
            return []
        finalized_slot = spec.first_slot_of(self.finalized_epoch)
        awaits_old_deposits = state.eth1_deposit_index < state.deposit_requests_start_index
        available = state.deposit_balance_to_consume + self.compute_churn_limit()
        pubkeys = PubkeyIndex(state.pubkeys)
        due: list[tuple[np.void, int | None]] = []
        for entry in queue:
            slot, amount = int(entry["slot"]), int(entry["amount"])
            if slot > finalized_slot or (slot > GENESIS_SLOT and awaits_old_deposits):
                break
            index = pubkeys.find(entry["pubkey"].tobytes())
            if index is None or state.withdrawable_epochs[index] > self.epoch:
                if index is not None and self.is_exiting(index):
                    continue  # Postponed until the validator is withdrawable.
                if amount > available:
                    break
                available -= amount
            due.append((entry, index))
        return due

    def find_creating_deposits(
        self, due: Sequence[tuple[np.void, int | None]], new: Mapping[bytes, Sequence[int]]
    ) -> dict[bytes, int | None]:
        """Return which of the deposits that are *due* created the validator of each *new* key.

        None if all signatures are invalid. Between the transition and the later state, only
        withdrawals change the balance of a new validator.
        """
        later = self.later_state
        if later is None or not new:
            return {pubkey: places[0] for pubkey, places in new.items()}
        pubkeys, withdrawn = PubkeyIndex(later.pubkeys), sum_withdrawals(self.later_blocks)
        found: dict[bytes, int | None] = {}
        for pubkey, places in new.items():
            found[pubkey] = None
            if (index := pubkeys.find(pubkey)) is not None:
                creating = find_creating_deposit(
                    [
                        (due[n][0]["withdrawal_credentials"].tobytes(), int(due[n][0]["amount"]))
                        for n in places
                    ],
                    later.withdrawal_credentials[index].tobytes(),
                    int(later.balances[index]) + withdrawn[index],
                )
                found[pubkey] = None if creating is None else places[creating]
        return found

    def compute_churn_limit(self) -> int:
        """Return the balance of deposits per epoch: ``get_activation_exit_churn_limit``."""
        spec = self.spec
        limit = max(
            spec.min_per_epoch_churn_limit_electra,
            self.total_active_balance // spec.churn_limit_quotient,
        )
        limit -= limit % spec.effective_balance_increment
        return min(limit, spec.max_per_epoch_activation_exit_churn_limit)

    def is_exiting(self, index: int) -> bool:
        """Return whether a validator has an exit epoch, or gets one in this transition."""
        state = self.state
        if state.exit_epochs[index] < FAR_FUTURE_EPOCH:
            return True
        is_active = bool(state.activation_epochs[index] <= self.epoch)
        return is_active and int(state.effective_balances[index]) <= self.spec.ejection_balance

    def consolidate(self) -> None:
        """Move the balances of pending consolidations whose source is withdrawable."""
        state = self.state
        for entry in state.pending_consolidations:
            source, target = int(entry["source_index"]), int(entry["target_index"])
            if state.slashed[source]:
                continue
            if state.withdrawable_epochs[source] > self.epoch + 1:
                break
            amount = min(int(self.balances[source]), int(state.effective_balances[source]))
            self.move("pending_consolidation", source, -amount)
            self.move("pending_consolidation", target, amount)

    def upgrade(self) -> None:
        """Take the balances that become pending deposits with the fork to Electra."""
        state = self.state
        is_waiting = state.activation_epochs == FAR_FUTURE_EPOCH
        is_waiting[self.find_activated()] = False
        for index in np.flatnonzero(is_waiting).tolist():
            self.move("fork_upgrade", index, -int(self.balances[index]))
        limit = self.spec.min_activation_balance
        is_compounding = state.withdrawal_credentials[:, 0] == COMPOUNDING_PREFIX
        for index in np.flatnonzero(is_compounding & (self.balances > limit)).tolist():
            self.move("fork_upgrade", index, limit - int(self.balances[index]))

    def find_activated(self) -> Ints:
        """Return the validators that get an activation epoch in this transition, before Electra."""
        spec, state = self.spec, self.state
        waiting = np.flatnonzero(
            (state.activation_epochs == FAR_FUTURE_EPOCH)
            & (state.activation_eligibility_epochs <= self.finalized_epoch)
        )
        order = np.argsort(state.activation_eligibility_epochs[waiting], kind="stable")
        active_count = int(state.is_active(self.epoch).sum())
        churn = max(spec.min_per_epoch_churn_limit, active_count // spec.churn_limit_quotient)
        if is_since(state.fork, "deneb"):
            churn = min(churn, spec.max_per_epoch_activation_churn_limit)
        return waiting[order][:churn]
