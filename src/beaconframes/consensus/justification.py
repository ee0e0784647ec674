"""Justification and finalization of epochs by the votes for their targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from beaconframes.consensus.rewards import TIMELY_TARGET

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from beaconframes.consensus.spec import Spec
    from beaconframes.consensus.state import BeaconState


@dataclass(frozen=True)
class Justification:
    """Justified and finalized epochs. The defaults are those at genesis."""

    bits: tuple[bool, bool, bool, bool] = (False, False, False, False)
    """Whether the current epoch and each of the three before it are justified."""
    previous_justified_epoch: int = 0
    current_justified_epoch: int = 0
    finalized_epoch: int = 0

    def advance(
        self, epoch: int, total_balance: int, previous_target: int, current_target: int
    ) -> Justification:
        """Return the justification after the transition at the end of *epoch*.

        The balances are those of all active validators, and of the unslashed ones that voted for
        the target of the epoch before and of *epoch*.
        """
        if epoch <= 1:
            return self
        justified = self.current_justified_epoch
        bits = [False, *self.bits[:3]]
        if previous_target * 3 >= total_balance * 2:
            justified, bits[1] = epoch - 1, True
        if current_target * 3 >= total_balance * 2:
            justified, bits[0] = epoch, True
        finalized = self.finalized_epoch
        for source, first, last in (
            (self.previous_justified_epoch, 1, 3),
            (self.previous_justified_epoch, 1, 2),
            (self.current_justified_epoch, 0, 2),
            (self.current_justified_epoch, 0, 1),
        ):
            if all(bits[first : last + 1]) and source + last == epoch:
                finalized = source
        return Justification(
            (bits[0], bits[1], bits[2], bits[3]), self.current_justified_epoch, justified, finalized
        )


def compute_next_justification(spec: Spec, state: BeaconState) -> Justification:
    """Return the justification after the transition at the end of the state's epoch."""
    epoch = spec.epoch_of(state.slot)

    def sum_target_votes(flags: NDArray[np.uint8], voted_epoch: int) -> int:
        voted = (flags & TIMELY_TARGET != 0) & state.is_active(voted_epoch) & ~state.slashed
        return int(state.effective_balances.sum(where=voted))

    return Justification(
        state.justification_bits,
        state.previous_justified_epoch,
        state.current_justified_epoch,
        state.finalized_epoch,
    ).advance(
        epoch,
        state.get_total_active_balance(spec),
        sum_target_votes(state.previous_participation, epoch - 1),
        sum_target_votes(state.current_participation, epoch),
    )
