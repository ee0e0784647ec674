"""The sweep of withdrawals: sixteen a block, round and round the validators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from beaconframes.simulator.preset import Bools, Ints, Preset
    from beaconframes.simulator.registry import Registry


@dataclass
class Withdrawals:
    """What the blocks of an epoch paid out; in the order of payment."""

    slots: Ints  # in the epoch
    validators: Ints
    amounts: Ints

    def counts(self, slots: int) -> Ints:
        """Return the number of withdrawals in each slot."""
        return np.bincount(self.slots, minlength=slots)


def sweep(
    preset: Preset, registry: Registry, epoch: int, blocks: Bools, start: int
) -> tuple[Withdrawals, int]:
    """Pay out what is due, from validator *start* on; return it and where the next block goes on.

    Rewards and deposits are settled when the epoch ends, so what is due does not grow meanwhile,
    and who was paid is due nothing until the next epoch.
    """
    known = registry.known
    due = _due(registry, epoch)
    queue = np.flatnonzero(due)
    queue = np.concatenate([queue[queue >= start], queue[queue < start]])
    reach = min(known, preset.max_validators_per_withdrawals_sweep)
    distance = (queue - start) % known
    slots: list[int] = []
    counts: list[int] = []
    paid = gone = 0
    for slot in np.flatnonzero(blocks).tolist():
        within = int(np.searchsorted(distance, gone + reach)) if reach < known else len(queue)
        count = min(within - paid, preset.max_withdrawals_per_payload)
        full = count == preset.max_withdrawals_per_payload
        if count:
            slots.append(slot)
            counts.append(count)
            paid += count
        # Not counted round the circle: who was paid already is due nothing the second time.
        gone = (
            int(distance[paid - 1]) + 1
            if full
            else gone + preset.max_validators_per_withdrawals_sweep
        )
    validators = queue[:paid]
    return (
        Withdrawals(np.repeat(slots, counts).astype(np.int64), validators, due[validators]),
        (start + gone) % known,
    )


def _due(registry: Registry, epoch: int) -> Ints:
    """Return what each validator would be paid now: everything, what is above the cap, or 0."""
    known = registry.known
    balance, ceiling = registry.balance[:known], registry.ceiling[:known]
    payable = registry.prefix[:known] > 0
    leaves = payable & (registry.withdrawable[:known] <= epoch)
    above = payable & (registry.effective[:known] == ceiling) & (balance > ceiling)
    return np.where(leaves, balance, np.where(above, balance - ceiling, 0))
