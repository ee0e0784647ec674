"""Withdrawals: those that operators requested, and the sweep over all validators.

A block has up to sixteen. Requests come first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beaconframes.consensus.registry import Bools, Ints
    from beaconframes.simulator.preset import Preset
    from beaconframes.simulator.registry import Registry, WithdrawalRequest


@dataclass
class Withdrawals:
    """The withdrawals of an epoch, in the order of the blocks."""

    slots: Ints  # in the epoch
    validators: Ints
    amounts: Ints
    requests: list[WithdrawalRequest]
    """The requests of the first withdrawals, in their order."""


def process_withdrawals(
    preset: Preset,
    registry: Registry,
    epoch: int,
    blocks: Bools,
    start: int,
    switching: Sequence[int] = (),
) -> tuple[Withdrawals, int]:
    """Return the withdrawals of an epoch and the first validator of the next sweep.

    The validators *switching* to compounding credentials have no withdrawal in the epoch, unless
    the first blocks pay them before the switch. The sweep starts at validator *start*. Balances
    grow only at the end of an epoch, so that a validator has at most one withdrawal per epoch.
    """
    validator_count = registry.validator_count
    amounts = _find_withdrawable(registry, epoch)
    requests, requested = _take_requests(preset, registry, epoch) if blocks.any() else ([], [])
    asking = [request.validator for request in requests]
    amounts[asking] = 0
    queue = np.flatnonzero(amounts)
    queue = np.concatenate([queue[queue >= start], queue[queue < start]])
    paid_before = queue[: 2 * preset.max_withdrawals_per_payload]
    queue = queue[~np.isin(queue, np.setdiff1d(switching, paid_before))]
    reach = min(validator_count, preset.max_validators_per_withdrawals_sweep)
    distance = (queue - start) % validator_count
    slots: list[int] = []
    counts: list[int] = []
    taken = swept = 0
    space = preset.max_withdrawals_per_payload - len(requests)
    first_slot = int(np.argmax(blocks))
    for slot in np.flatnonzero(blocks).tolist():
        within = (
            int(np.searchsorted(distance, swept + reach)) if reach < validator_count else len(queue)
        )
        count = min(within - taken, space)
        full = count == space
        space = preset.max_withdrawals_per_payload  # only the first block pays requests
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
    swept_validators = queue[:taken]
    withdrawals = Withdrawals(
        np.concatenate([[first_slot] * len(requests), np.repeat(slots, counts)]).astype(np.int64),
        np.concatenate([asking, swept_validators]).astype(np.int64),
        np.concatenate([requested, amounts[swept_validators]]).astype(np.int64),
        requests,
    )
    return withdrawals, (start + swept) % validator_count


def _take_requests(
    preset: Preset, registry: Registry, epoch: int
) -> tuple[list[WithdrawalRequest], list[int]]:
    """Take the requests that are payable in an epoch, with the amounts that are paid."""
    payable: list[WithdrawalRequest] = []
    waiting: list[WithdrawalRequest] = []
    for request in registry.withdrawal_requests:
        is_ready = request.payable_from <= epoch
        has_room = len(payable) < preset.max_pending_partials_per_payload
        is_first = all(request.validator != other.validator for other in payable)
        (payable if is_ready and has_room and is_first else waiting).append(request)
    registry.withdrawal_requests = waiting
    amounts = [
        min(r.amount, int(registry.balance[r.validator]) - preset.min_activation_balance)
        for r in payable
    ]
    return payable, amounts


def _find_withdrawable(registry: Registry, epoch: int) -> Ints:
    """Return the amount that each validator can withdraw: the balance, the excess, or 0."""
    validator_count = registry.validator_count
    balance = registry.balance[:validator_count]
    max_effective = registry.max_effective[:validator_count]
    payable = registry.prefix[:validator_count] > 0
    is_full = payable & (registry.withdrawable[:validator_count] <= epoch)
    is_full_effective = registry.effective[:validator_count] == max_effective
    is_partial = payable & is_full_effective & (balance > max_effective)
    return np.where(is_full, balance, np.where(is_partial, balance - max_effective, 0))
