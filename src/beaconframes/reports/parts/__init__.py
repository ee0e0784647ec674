"""The frames of a report, one module per part: arranged results of `beaconframes.analysis`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes.errors import UsageError
from beaconframes.reports.completeness import build_marks, hide_unknown
from beaconframes.reports.input_frames import PartMissing
from beaconframes.reports.parts import answer, groups, over_time, problems, trust, upcoming

if TYPE_CHECKING:
    from collections.abc import Callable

    from beaconframes.reports.input_frames import Frames, Inputs


_PARTS: dict[str, Callable[[Inputs, Frames], Frames]] = {
    "income": over_time.build_income,
    "value": over_time.build_value,
    "rates": over_time.build_rates,
    "effectiveness": over_time.build_effectiveness,
    "balances": over_time.build_balances,
    "proposals": over_time.build_proposals,
    "luck": over_time.build_luck,
    "sync": over_time.build_sync,
    "withdrawals": over_time.build_withdrawals,
    "problems": problems.build_problems,
    "validators": groups.build_validators,
    "groups": groups.build_groups,
    "comparison": answer.build_comparison,
    "upcoming": upcoming.build_upcoming,
    "missed rewards": problems.build_missed_rewards,
    "reconciliation": trust.build_reconciliation,
    "inputs": trust.build_inputs,
    "facts": trust.build_facts,
    "summary": answer.build_summary,
}
"""The parts in the order in which they are made: later ones use the frames of earlier ones."""
_OF_EPOCHS = ("network", "sync_epochs", "sync_luck", "unexplained")
"""The frames of other parts that daily statistics do not make."""


def build_frames(inputs: Inputs) -> tuple[Frames, dict[str, str]]:
    """Return the frames of all parts, and the reason of each part that is left out."""
    frames: Frames = {}
    left_out: dict[str, str] = {}
    if not inputs.has_epochs:
        left_out = dict.fromkeys(_OF_EPOCHS, "daily statistics have no rows of epochs")
    for name, build in _PARTS.items():
        try:
            frames.update(hide_unknown(inputs, build(inputs, frames)))
        except PartMissing as error:
            left_out[name] = str(error)
        except UsageError as error:
            # A check of the analysis found that the rows of a source do not fit together.
            left_out[name] = error.message
    return frames | build_marks(inputs, frames), left_out
