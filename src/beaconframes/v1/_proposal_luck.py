"""Proposal luck, computed from validators and blocks for the local explorer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Collection

    from beaconframes.endpoint import View

SECONDS_PER_DAY = 86_400
ENOUGH_PROPOSALS = 8
MONTH = 30
YOUNG = ((5, "5 days"), (7, "week"), (MONTH, "month"))
OLD = (
    (365, "year", 12.0),
    (180, "6 months", 6.0),
    (150, "5 months", 5.0),
    (120, "4 months", 4.0),
    (90, "3 months", 3.0),
    (60, "2 months", 2.0),
    (45, "6 weeks", 1.5),
)
"""Time frames, longest first: days, name, and length in months."""


def compute_luck(validators: Collection[int], view: View) -> dict[str, Any]:
    """Return the proposal luck of *validators* at the chain head.

    Expected is one proposal a slot times the set's share of the active effective balance, over a
    time frame that grows until it holds enough proposals, as far as the set is old enough.
    """
    per_day = SECONDS_PER_DAY / view.chain.seconds_per_slot
    share, first_epoch = standing(validators, view)
    slots = proposals(validators, view)
    interval = 1 / share if share else 0.0
    age = (view.head.slot - first_epoch * view.chain.slots_per_epoch) / per_day
    days, frame = time_frame(age, expected_in_a_month=share * MONTH * per_day)
    begin = view.head.slot - days * per_day
    recent = sum(slot > begin for slot in slots)
    last = max(slots, default=None)
    if last is None and len(validators) == 1:
        last = first_epoch * view.chain.slots_per_epoch
    return {
        "proposal_luck": recent / (days * per_day * share) if recent and share else None,
        "average_proposal_interval": interval,
        "next_proposal_estimate_time": None
        if last is None or not share
        else view.chain.time_of("slot", round(last + interval)),
        "time_frame": frame if recent and share else None,
    }


def standing(validators: Collection[int], view: View) -> tuple[float, int]:
    """Return the share of the set in the active effective balance, and its first active epoch."""
    now = view.head.epoch
    is_active = (pl.col("activation_epoch") <= now) & (
        pl.col("exit_epoch").is_null() | (pl.col("exit_epoch") > now)
    )
    is_asked = pl.col("validator_index").is_in(sorted(validators))
    balance = pl.col("effective_balance_gwei")
    own, everyone, first = (
        view.scan("validators")
        .select(
            balance.filter(is_active & is_asked).sum().alias("own"),
            balance.filter(is_active).sum().alias("everyone"),
            pl.col("activation_epoch").filter(is_asked).min().alias("first"),
        )
        .collect()
        .row(0)
    )
    return (own / everyone if everyone else 0.0), now if first is None else first


def proposals(validators: Collection[int], view: View) -> list[int]:
    """Return the slots of the canonical blocks that *validators* proposed."""
    blocks = view.scan("blocks").filter(
        pl.col("status") == "proposed", pl.col("proposer_index").is_in(sorted(validators))
    )
    return blocks.select("slot").collect()["slot"].to_list()


def time_frame(age: float, *, expected_in_a_month: float) -> tuple[int, str]:
    """Return days and name of the time frame of luck, for a set that is *age* days old."""
    for days, name in YOUNG:
        if age < days:
            return days, name
    for days, name, months in OLD:
        if age > days and expected_in_a_month <= ENOUGH_PROPOSALS / months:
            return days, name
    return MONTH, "month"
