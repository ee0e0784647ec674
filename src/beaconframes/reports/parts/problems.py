"""What to look at: what was lost, and what V2 states as missed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes import analysis

if TYPE_CHECKING:
    from beaconframes.reports.input_frames import Frames, Inputs


PROBLEM_INPUTS = ("stats", "proposals", "blocks", "network", "index", "attestations", "slots")
"""The inputs that `analysis.problems` takes by name."""

_MISSED = {
    "attestation_head_missed_wei": "head votes",
    "attestation_source_missed_wei": "source votes",
    "attestation_target_missed_wei": "target votes",
    "sync_committee_missed_wei": "sync committees",
    "proposal_missed_cl_reward_wei": "blocks, consensus layer",
    "proposal_missed_el_reward_wei": "blocks, execution layer",
    "total_missed_wei": "total",
}


def build_problems(inputs: Inputs, frames: Frames) -> Frames:
    """Return what was lost, and what to look at."""
    (validators,) = inputs.require("validators")
    options: dict[str, Any] = {name: inputs.get(name) for name in PROBLEM_INPUTS}
    income, balances = inputs.get("income"), inputs.get("balances")
    # Exits are those of the requested range, which may end within a day.
    _, last = inputs.period or (inputs.first, inputs.last)
    found = analysis.problems(
        validators, income, balances, epoch=last, chain=inputs.chain, **options
    )
    return {"problems": found}


def build_missed_rewards(inputs: Inputs, frames: Frames) -> Frames:
    """Return what V2 states as missed rewards, by duty."""
    (rewards,) = inputs.require("missed_rewards")
    index = ["window", "first_epoch", "last_epoch"]
    rows = rewards.head(1).unpivot(
        list(_MISSED), index=index, variable_name="duty", value_name="missed_wei"
    )
    duty = pl.col("duty").replace_strict(_MISSED)
    return {"missed_rewards": rows.select(duty, "missed_wei", *index)}
