"""Income of an epoch: rewards and penalties of each duty, per validator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from beaconframes.derive.rankings import PENALTIES, REWARDS

if TYPE_CHECKING:
    from beaconframes.consensus.registry import Ints

PARTS = REWARDS + PENALTIES
MISSED = (
    "attestation_head_missed_gwei",
    "attestation_source_missed_gwei",
    "attestation_target_missed_gwei",
)
"""Rewards that a timely vote would have earned."""
_ROW = {name: row for row, name in enumerate(PARTS)}


class Income:
    """The amounts of one epoch: one array of non-negative amounts per reward or penalty."""

    def __init__(self, validator_count: int) -> None:
        self.amounts = np.zeros((len(PARTS), validator_count), np.int64)
        self.missed = np.zeros((len(MISSED), validator_count), np.int64)
        self.fees = np.zeros(validator_count, np.int64)  # wei
        self.missed_proposals = np.zeros(validator_count, np.int64)
        # Eligible for rewards and penalties: has a row.
        self.is_eligible = np.zeros(validator_count, np.bool_)

    def __getitem__(self, part: str) -> Ints:
        """Return the amounts of one reward or penalty, which the caller may change in place."""
        amounts: Ints = self.amounts[_ROW[part]]
        return amounts

    def net(self) -> Ints:
        """Return rewards minus penalties, in gwei."""
        net: Ints = self.amounts[: len(REWARDS)].sum(0) - self.amounts[len(REWARDS) :].sum(0)
        return net
