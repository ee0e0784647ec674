"""Withdrawals: the sweep over all validators, with up to sixteen withdrawals per block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from beaconframes.simulator.preset import Bools, Ints, Preset
    from beaconframes.simulator.registry import Registry


@dataclass
class Withdrawals:
    """The withdrawals of an epoch, in the order of the blocks."""

    slots: Ints  # in the epoch
    validators: Ints
    amounts: Ints

    def count_per_slot(self, slots: int) -> Ints:
        """Return the number of withdrawals in each slot."""
        return np.bincount(self.slots, minlength=slots)


def process_withdrawals(
    preset: Preset, registry: Registry, epoch: int, blocks: Bools, start: int
) -> tuple[Withdrawals, int]:
    """Return the withdrawals of an epoch and the first validator of the next sweep.

    The sweep starts at validator *start*. Balances grow only at the end of an epoch, so that a
    validator has at most one withdrawal per epoch.
    """
    validator_count = registry.validator_count
    amounts = _find_withdrawable(registry, epoch)
    queue = np.flatnonzero(amounts)
    queue = np.concatenate([queue[queue >= start], queue[queue < start]])
    reach = min(validator_count, preset.max_validators_per_withdrawals_sweep)
    distance = (queue - start) % validator_count
    slots: list[int] = []
    counts: list[int] = []
    taken = swept = 0
    for slot in np.flatnonzero(blocks).tolist():
        within = (
            int(np.searchsorted(distance, swept + reach)) if reach < validator_count else len(queue)
        )
        count = min(within - taken, preset.max_withdrawals_per_payload)
        full = count == preset.max_withdrawals_per_payload
        if count:
            slots.append(slot)
            counts.append(count)
            taken += count
        # A sweep that passes all validators finds no second withdrawal of any.
        swept = (
            int(distance[taken - 1]) + 1
            if full
            else swept + preset.max_validators_per_withdrawals_sweep
        )
    validators = queue[:taken]
    return (
        Withdrawals(np.repeat(slots, counts).astype(np.int64), validators, amounts[validators]),
        (start + swept) % validator_count,
    )


def _find_withdrawable(registry: Registry, epoch: int) -> Ints:
    """Return the amount that each validator can withdraw: the balance, the excess, or 0."""
    validator_count = registry.validator_count
    balance, max_effective = (
        registry.balance[:validator_count],
        registry.max_effective[:validator_count],
    )
    payable = registry.prefix[:validator_count] > 0
    is_full = payable & (registry.withdrawable[:validator_count] <= epoch)
    is_partial = (
        payable
        & (registry.effective[:validator_count] == max_effective)
        & (balance > max_effective)
    )
    return np.where(is_full, balance, np.where(is_partial, balance - max_effective, 0))
