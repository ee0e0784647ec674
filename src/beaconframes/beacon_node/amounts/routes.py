"""Amounts of an epoch from the rewards routes: chosen validators, without SSZ states.

An epoch needs three requests: attestation rewards, validators at its first slot, proposer duties.
Own blocks need one more each, as do the slots of a period in the sync committee.

Balances show whether the rewards are right. Between the first slots of two epochs, a balance
changes by the rewards and by what else moves it. Where rewards do not explain the change, the
blocks of the epoch and the queues of Electra are requested. What is still left is unexplained, and
so are rewards with a part that the specification cannot pay.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from beaconframes.beacon_node.amounts.block_income import read_income
from beaconframes.beacon_node.amounts.chosen_validators import (
    BalanceMove,
    BlockMoves,
    ChosenValidators,
)
from beaconframes.beacon_node.amounts.epoch_amounts import UNKNOWN, Change, Deposit, EpochAmounts
from beaconframes.beacon_node.amounts.moved_balances import MovedBalances
from beaconframes.beacon_node.amounts.reward_checks import find_contradicted
from beaconframes.beacon_node.amounts.states import VERIFIED_LATER
from beaconframes.beacon_node.amounts.transition_moves import TransitionMoves
from beaconframes.beacon_node.chain.cached_node import RequestCache
from beaconframes.consensus.spec import is_since
from beaconframes.errors import IntegrityError, NotFound, NotServed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from beaconframes.beacon_node.chain.reader import ChainReader
    from beaconframes.consensus.epoch_moves import Move
    from beaconframes.consensus.registry import Bools, Ints
    from beaconframes.consensus.slot_income import SlotIncome

    T = TypeVar("T")
    Chosen = tuple[int, ...] | None

VOTES: Final = ("source", "target", "head")
PARTS: Final = (*VOTES, "inactivity")
CACHED_OBJECTS: Final = 60
"""Rewards, validators and intervals that are cached: those of six epochs or more."""


class Rewards(NamedTuple):
    """Attestation rewards; arrays with one entry for each validator at the next epoch's start."""

    is_rewarded: Bools
    parts: dict[str, Ints]
    ideal: dict[str, Ints]
    """What timely votes earn; `UNKNOWN` if the node does not state it."""
    is_contradicted: Bools
    """Whether a part is one that no vote can have; see `find_contradicted`."""


@dataclass(frozen=True, eq=False)
class Interval:
    """What moved balances from the first slot of the epoch before to the first slot of an epoch.

    Both balances are those after the slot's block.
    """

    slot_income: list[SlotIncome]
    moves: list[Move]
    """In the transition between both epochs, without attestation rewards."""
    deposits: list[Deposit]
    """Those of other validators are among them: a deposit has a position among all of a slot."""
    missed: Counter[tuple[int, int]]
    """Missed proposals by epoch and validator."""
    unexplained: Change


class RouteAmounts:
    """Reads the amounts of an epoch from the rewards routes."""

    def __init__(self, reader: ChainReader) -> None:
        """Request rewards, validators, duties and blocks from *reader*."""
        self.reader, self.spec, self.api = reader, reader.spec, reader.api
        self._cache = RequestCache(CACHED_OBJECTS)
        self._transitions = TransitionMoves(reader)

    def read(self, epoch: int, validators: Sequence[int] | None) -> EpochAmounts:
        """Return the amounts of an epoch, of some *validators* or of all.

        Balances are compared up to two epochs later, as far as the node has them.
        """
        chosen = None if validators is None else tuple(sorted(set(validators)))
        until = min(epoch + VERIFIED_LATER, self.reader.head_epoch)
        intervals = [self.interval(number, chosen) for number in range(epoch, until + 1)]
        now, later = self.validators(epoch, chosen), self.validators(epoch + 1, chosen)
        rewards = self.rewards(epoch, chosen)
        # The block of an epoch's first slot belongs to the interval before it.
        first, second, *_ = intervals

        def of_epoch(rows: list[Any]) -> list[Any]:
            return [row for row in rows if self.spec.epoch_of(row.slot) == epoch]

        return EpochAmounts(
            epoch=epoch,
            validators=later.indices,
            is_rewarded=rewards.is_rewarded,
            source=rewards.parts["source"],
            target=rewards.parts["target"],
            head=rewards.parts["head"],
            inactivity=rewards.parts["inactivity"],
            has_balance=np.isin(later.indices, now.indices),
            balances=later.spread(now.registry.balances, now.indices),
            effective_balances=later.spread(now.registry.effective_balances, now.indices),
            slot_income=of_epoch(first.slot_income + second.slot_income),
            moves=[row for row in first.moves + second.moves if row.epoch == epoch],
            deposits=of_epoch(first.deposits + second.deposits),
            missed=self._find_missed(epoch, chosen, rewards, until),
            proposals_missed={
                index: count
                for (number, index), count in (first.missed + second.missed).items()
                if number == epoch
            },
            unexplained=[
                interval.unexplained
                for interval in intervals
                if len(interval.unexplained.validators)
            ],
            verified_until=until,
        )

    def _find_missed(
        self, epoch: int, chosen: Chosen, rewards: Rewards, until: int
    ) -> dict[str, Ints]:
        """Return what votes of an epoch missed. Slashed validators cannot earn anything."""
        validators = self.validators(epoch + 1, chosen)
        end = self.validators(min(epoch + 2, until), chosen)
        can_earn = rewards.is_rewarded & ~validators.spread(end.registry.slashed, end.indices)
        return {
            vote: np.where(can_earn & (rewards.parts[vote] <= 0), ideal, 0)
            for vote, ideal in rewards.ideal.items()
        }

    def validators(self, epoch: int, chosen: Chosen) -> ChosenValidators:
        """Return the chosen validators after the block of the epoch's first slot."""

        def read() -> ChosenValidators:
            slot = self.spec.first_slot_of(epoch)
            try:
                rows = self.api.validators(slot, chosen)
            except NotFound as error:
                if self.api.header(slot) is not None:
                    raise
                raise NotServed(
                    f"epoch {epoch} starts with slot {slot}, which has no block, and the node has "
                    f"no state of such a slot: {error.message}",
                    hint="Use a node that has these states, or one with SSZ states",
                ) from error
            if chosen is not None:
                requested = set(chosen)
                rows = [row for row in rows if row.index in requested]
            return ChosenValidators.from_rows(rows)

        return self._cached("validators", epoch, chosen, read)

    def rewards(self, epoch: int, chosen: Chosen) -> Rewards:
        """Return the rewards for the attestation duties of an epoch."""
        return self._cached("rewards", epoch, chosen, lambda: self._read_rewards(epoch, chosen))

    def interval(self, epoch: int, chosen: Chosen) -> Interval:
        """Return what moved balances since the first slot of the epoch before."""
        return self._cached("interval", epoch, chosen, lambda: self._read_interval(epoch, chosen))

    def _cached(self, kind: str, epoch: int, chosen: Chosen, read: Callable[[], T]) -> T:
        return self._cache.get((kind, epoch, chosen), read)

    def _read_rewards(self, epoch: int, chosen: Chosen) -> Rewards:
        validators = self.validators(epoch + 1, chosen)
        registry = validators.registry
        is_slashed = registry.slashed & (epoch + 1 < registry.withdrawable_epochs)
        is_rewarded = registry.is_active(epoch) | is_slashed
        ids = validators.indices[is_rewarded].tolist()
        rows = self.api.attestation_rewards(epoch, None if chosen is None else ids)
        parts = {
            part: validators.spread(getattr(rows, part), rows.validator_indices) for part in PARTS
        }
        if chosen is None:
            is_rewarded = np.isin(validators.indices, rows.validator_indices)
        effective = registry.effective_balances.tolist()
        ideal = {
            vote: np.array([rows.ideal.get((vote, gwei), UNKNOWN) for gwei in effective], np.int64)
            for vote in VOTES
        }
        contradicted = find_contradicted(
            self.spec, epoch, registry, parts, ideal, has_all=chosen is None
        )
        return Rewards(is_rewarded, parts, ideal, contradicted)

    def _read_interval(self, epoch: int, chosen: Chosen) -> Interval:
        after = self.validators(epoch, chosen)
        empty = np.zeros(0, np.int64)
        if epoch == 0:
            return Interval([], [], [], Counter(), Change(0, empty, empty, empty))
        before = self.validators(epoch - 1, chosen)
        self._check_pubkeys(epoch, before, after)
        missed = Counter[tuple[int, int]]()
        parts, contradicted = self._read_parts(epoch, before, after, chosen)
        income = read_income(self.reader, epoch, self._slots_until(epoch), after, missed)
        start = after.spread(before.registry.balances, before.indices)

        def move_balances(
            blocks: Mapping[int, list[BalanceMove]], transition: Sequence[BalanceMove]
        ) -> tuple[MovedBalances, Bools]:
            result = MovedBalances(after, start.copy(), self.spec.min_activation_balance)
            for slot in self._slots_until(epoch):
                if slot % self.spec.slots_per_epoch == 0:
                    result.add_transition(epoch - 1, parts, transition)
                result.add_slot(slot, [*income.get(slot, ()), *blocks.get(slot, ())])
            return result, result.balances != after.registry.balances

        deposits: list[Deposit] = []
        result, differs = move_balances({}, ())
        was_slashed = after.spread(before.registry.slashed, before.indices)
        if differs.any() or (was_slashed != after.registry.slashed).any():
            messages = self._read_blocks(epoch)
            block_moves = BlockMoves(self.spec, before, after, messages)
            moves = block_moves.find()
            deposits = self._read_block_deposits(epoch, after, messages)
            for slot, index, amount in deposits:
                if index in after.positions:
                    moves[slot].append(BalanceMove("deposit", index, amount))
            result, differs = move_balances(moves, ())
            if differs.any():
                # Without the routes of queues, what left them stays unexplained.
                with suppress(NotServed):
                    transition, applied = self._transitions.read(epoch, block_moves)
                    deposits += applied
                    result, differs = move_balances(moves, transition)
        change = after.registry.balances - start
        explained = result.balances - start
        # Parts whose errors cancel do not explain the change that has their sum.
        explained -= np.where(contradicted, sum(parts.values()), 0)
        differs |= contradicted
        return Interval(
            result.slot_income,
            result.moves,
            sorted(deposits, key=lambda deposit: deposit.slot),
            missed,
            Change(epoch, after.indices[differs], change[differs], explained[differs]),
        )

    def _read_parts(
        self, epoch: int, before: ChosenValidators, after: ChosenValidators, chosen: Chosen
    ) -> tuple[dict[str, Ints], Bools]:
        """Return the rewards that the transition into *epoch* pays, and which are contradicted."""
        if epoch == 1:
            return {}, np.zeros(len(after.indices), np.bool_)
        rewards = self.rewards(epoch - 2, chosen)
        parts = {part: after.spread(rewards.parts[part], before.indices) for part in PARTS}
        return parts, after.spread(rewards.is_contradicted, before.indices)

    def _check_pubkeys(self, epoch: int, before: ChosenValidators, after: ChosenValidators) -> None:
        """Raise IntegrityError if a validator has another public key than an epoch before."""
        _, old, new = np.intersect1d(before.indices, after.indices, return_indices=True)
        differs = (before.registry.pubkeys[old] != after.registry.pubkeys[new]).any(axis=1)
        if differs.any():
            raise IntegrityError(
                f"{self.api.version()}: epoch {epoch}: validator {before.indices[old][differs][0]} "
                f"has another public key than in epoch {epoch - 1}",
                hint="Check that the address is that of one chain, and update the client",
            )

    def _slots_until(self, epoch: int) -> range:
        """Return the slots after the first one of the epoch before, up to that of *epoch*."""
        first = self.spec.first_slot_of(epoch)
        return range(first - self.spec.slots_per_epoch + 1, first + 1)

    # What only some epochs need.

    def _read_blocks(self, epoch: int) -> list[Mapping[str, Any]]:
        """Return the messages of the blocks since the first slot before *epoch*, in order."""
        signed_blocks = self.reader.signed_blocks(epoch - 1)
        last = self.spec.first_slot_of(epoch)
        signed_blocks[last] = self.reader.signed_block(last)
        found = (signed_blocks.get(slot) for slot in self._slots_until(epoch))
        return [block["message"] for block in found if block is not None]

    def _read_block_deposits(
        self, epoch: int, chosen: ChosenValidators, messages: Sequence[Mapping[str, Any]]
    ) -> list[Deposit]:
        """Return the deposits of blocks up to the first slot of *epoch*, before Electra."""
        by_slot = [
            (int(message["slot"]), deposit["data"])
            for message in messages
            if not is_since(self.spec.fork_at(self.spec.epoch_of(int(message["slot"]))), "electra")
            for deposit in message["body"]["deposits"]
        ]
        entries = [entry for _, entry in by_slot]
        return [
            Deposit(by_slot[place][0], index, int(entries[place]["amount"]))
            for place, index in self._transitions.find_applied(epoch, chosen, entries, messages)
        ]
