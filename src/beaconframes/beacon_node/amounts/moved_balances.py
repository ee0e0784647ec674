"""Balances of validators, moved as a chain moves them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from beaconframes.consensus.epoch_moves import Move
from beaconframes.consensus.slot_income import KINDS, SlotIncome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from beaconframes.beacon_node.amounts.chosen_validators import BalanceMove, ChosenValidators
    from beaconframes.consensus.registry import Ints


@dataclass(eq=False)
class MovedBalances:
    """Balances, moved in the order in which the chain moves them; none falls below zero."""

    validators: ChosenValidators
    balances: Ints
    minimum: int
    """What a switch to compounding credentials leaves in the balance."""
    slot_income: list[SlotIncome] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)

    def add_slot(self, slot: int, moves: Sequence[BalanceMove]) -> None:
        """Apply the moves of a block."""
        sums: Counter[tuple[str, int]] = Counter()
        for move in sorted(moves, key=lambda move: KINDS.index(move.kind)):
            sums[move.kind, move.validator_index] += self._move(move)
        self.slot_income += [
            SlotIncome(slot, kind, index, amount)
            for (kind, index), amount in sums.items()
            if amount
        ]

    def add_transition(
        self, epoch: int, rewards: Mapping[str, Ints], moves: Sequence[BalanceMove]
    ) -> None:
        """Pay attestation *rewards*, part by part, and apply the other moves at an epoch's end."""
        sums: Counter[tuple[str, int]] = Counter()
        whole = self.balances.copy()
        for amounts in rewards.values():
            whole += amounts
            self.balances = np.maximum(self.balances + amounts, 0)
        for place in np.flatnonzero(self.balances != whole).tolist():
            index = int(self.validators.indices[place])
            sums["unpaid_penalty", index] = int(self.balances[place] - whole[place])
        for move in moves:
            sums[move.kind, move.validator_index] += self._move(move)
        self.moves += [
            Move(epoch, kind, index, amount) for (kind, index), amount in sums.items() if amount
        ]

    def _move(self, move: BalanceMove) -> int:
        place = self.validators.positions[move.validator_index]
        old = int(self.balances[place])
        amount = move.amount_gwei
        if amount is None:
            amount = -max(0, old - self.minimum)
        self.balances[place] = new = max(0, old + amount)
        return new - old
