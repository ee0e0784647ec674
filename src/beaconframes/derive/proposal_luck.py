"""The proposal luck of sets of validators, computed from validators and blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from beaconframes.derive.validator_tables import is_active
from beaconframes.v1.proposal_luck import ProposalLuck

if TYPE_CHECKING:
    from collections.abc import Collection

    from beaconframes.derive.chain_tables import ChainTables, View

_COUNT: Final = 10
SECONDS_PER_DAY = 86_400
MAX_EXPECTED_PROPOSALS = 8
MONTH_DAYS = 30
SHORT_TIME_FRAMES = ((5, "5 days"), (7, "week"), (MONTH_DAYS, "month"))
LONG_TIME_FRAMES = (
    (365, "year", 12.0),
    (180, "6 months", 6.0),
    (150, "5 months", 5.0),
    (120, "4 months", 4.0),
    (90, "3 months", 3.0),
    (60, "2 months", 2.0),
    (45, "6 weeks", 1.5),
)
"""Time frames longer than a month, longest first: days, name, and length in months."""


def build_proposal_luck(data: ChainTables) -> pl.DataFrame:
    """Return the luck of the first validators, separately and together.

    A set has no row unless all blocks since the activation of its first validator are covered.
    """
    first = data.validators.sort("validator_index").head(_COUNT)
    active = first.filter(pl.col("activation_epoch") <= data.head.epoch)
    since = dict(active.select("validator_index", "activation_epoch").iter_rows())
    indices = first["validator_index"].to_list()
    rows = []
    for members in [*([index] for index in indices), indices]:
        start = min((since[index] for index in members if index in since), default=data.head.epoch)
        if data.coverage.covers("blocks", range(start, data.head.epoch + 1)):
            name = ",".join(map(str, members))
            rows.append({"validators": name, **compute_luck(members, data)})
    return pl.DataFrame(rows, schema=ProposalLuck.schema())


def compute_luck(validators: Collection[int], view: View | ChainTables) -> dict[str, Any]:
    """Return the proposal luck of *validators* at the chain head.

    Luck is the number of proposals in a time frame over the expected number. Expected is one per
    slot, times the set's share of the active effective balance. The time frame is the longest one
    that the set is old enough for and in which at most eight proposals are expected, or a month. It
    is no longer than the blocks of the dataset go back: fewer slots have fewer expected proposals.
    """
    per_day = SECONDS_PER_DAY / view.chain.seconds_per_slot
    share, first_epoch = compute_share_and_start(validators, view)
    slots, slot_count = find_proposal_slots(validators, view)
    interval = 1 / share if share else 0.0
    age = (view.head.slot - view.chain.first_slot_of(first_epoch)) / per_day
    age = min(age, slot_count / per_day)
    days, frame = choose_time_frame(age, expected_in_a_month=share * MONTH_DAYS * per_day)
    counted = min(days * per_day, slot_count)
    recent = sum(slot > view.head.slot - counted for slot in slots)
    last = max(slots, default=None)
    if last is None and len(validators) == 1:
        last = view.chain.first_slot_of(first_epoch)
    return {
        "proposal_luck": recent / (counted * share) if recent and share else None,
        "average_proposal_interval": interval,
        "next_proposal_estimate_time": None
        if last is None or not share
        else view.chain.time_of("slot", round(last + interval)),
        "time_frame": frame if recent and share else None,
    }


def compute_share_and_start(
    validators: Collection[int], view: View | ChainTables
) -> tuple[float, int]:
    """Return the share of the set in the active effective balance, and its first active epoch."""
    now = view.head.epoch
    is_requested = pl.col("validator_index").is_in(sorted(validators))
    balance = pl.col("effective_balance_gwei")
    set_balance, total, first = (
        view.scan("validators")
        .select(
            balance.filter(is_active(now) & is_requested).sum().alias("set_balance"),
            balance.filter(is_active(now)).sum().alias("total"),
            pl.col("activation_epoch").filter(is_requested).min().alias("first"),
        )
        .collect()
        .row(0)
    )
    share = set_balance / total if total else 0.0
    return share, now if first is None else first


def find_proposal_slots(
    validators: Collection[int], view: View | ChainTables
) -> tuple[list[int], int]:
    """Return the slots of the blocks that *validators* proposed, and the number of slots so far."""
    is_theirs = pl.col("proposer_index").is_in(sorted(validators))
    is_proposed = pl.col("status") == "proposed"
    slots, first = (
        view.scan("blocks")
        .select(pl.col("slot").filter(is_proposed & is_theirs).implode(), first=pl.min("slot"))
        .collect()
        .row(0)
    )
    return slots, 0 if first is None else view.head.slot - first + 1


def choose_time_frame(age: float, *, expected_in_a_month: float) -> tuple[int, str]:
    """Return days and name of the time frame of luck, for a set that is *age* days old."""
    for days, name in SHORT_TIME_FRAMES:
        if age <= days:
            return days, name
    for days, name, months in LONG_TIME_FRAMES:
        if age > days and expected_in_a_month <= MAX_EXPECTED_PROPOSALS / months:
            return days, name
    return MONTH_DAYS, "month"
