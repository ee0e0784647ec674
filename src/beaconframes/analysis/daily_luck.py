"""Luck without a row per epoch: from the daily yield index, and from daily statistics."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal, get_args

import polars as pl

from beaconframes.analysis.daily_income import STAKES, find_stake
from beaconframes.analysis.daily_rewards import ACTIVE_PERIOD, add_active_epochs
from beaconframes.analysis.engines import list_columns, open_frame, resolve_chain, return_table
from beaconframes.analysis.luck import proposal_luck
from beaconframes.errors import UsageError
from beaconframes.frames import check_choice, collect, drop_missing, select_columns, to_polars
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.calendar import Chain

Every = Literal["epoch", "day"]

_WEI_PER_GWEI = 10**9
_TOTAL = "effective_balances_sum_wei"
_BLOCK = ["slot", "epoch", "status", "proposer_index"]


@show_elapsed
def total_balances(
    index: IntoFrameT, *, every: Every = "epoch", chain: Chain | str | None = None
) -> IntoFrameT:
    """Return the effective balance of all validators. One row per epoch, or per beacon day.

    It takes the place of `load_epochs` in `proposal_luck` and `sync_luck`: one row per day is
    loaded instead of 225. The balance of all validators changes little in a day.

    Parameters
    ----------
    index
        Frame of `load_yield_index`. Rows that repeat count once.
    every
        ``"epoch"``, or ``"day"``.
    chain
        Chain of the days; it sets the number of epochs in a day. Default: that of *index*, from
        ``time``; mainnet without times.

    Returns
    -------
    The same kind of frame
        ``epoch`` or ``day``, and ``eligible_ether_gwei``. Sorted. This computes eagerly.
    """
    check_choice("every", every, get_args(Every))
    columns = ["day", _TOTAL]
    source = open_frame(index, columns, loader="load_yield_index")
    length = resolve_chain(chain, (index, "day")).epochs_per_day
    gwei = (pl.col(_TOTAL).cast(pl.Int128) // _WEI_PER_GWEI).cast(pl.Int64)
    days = collect(drop_missing(source, columns)).select("day", eligible_ether_gwei=gwei).unique()
    if twice := days.filter(pl.col("day").is_duplicated())["day"].to_list():
        raise UsageError(
            f"the yield index has several balances of day {min(twice)}",
            hint="Pass the index of one chain, loaded at one time.",
        )
    if every == "epoch":
        steps = pl.DataFrame({"step": range(length)}, schema={"step": pl.Int64})
        epoch = pl.col("day") * length + pl.col("step")
        days = days.join(steps, how="cross").select("eligible_ether_gwei", epoch=epoch)
    result = days.select(every, "eligible_ether_gwei").sort(every)
    return return_table(result, source, index)


@show_elapsed
def daily_luck(
    proposals: IntoFrame,
    stats: IntoFrameT,
    index: IntoFrame,
    *,
    validators: IntoFrame | None = None,
    by: str | Sequence[str] = "validator_index",
    level: float = 0.95,
    chain: Chain | str | None = None,
) -> IntoFrameT:
    """Compare the number of proposals with the expected number, from daily statistics.

    As `proposal_luck`, for many validators: a day takes the place of an epoch. One row per
    validator or group.

    Parameters
    ----------
    proposals
        Frame of `load_proposals` or `proposal_outcomes`, of all the days.
    stats
        Frame of `load_validator_stats`: effective balances of each day. Its days are the ones
        examined.
    index
        Frame of `load_yield_index`, of the same days: the balance of all validators.
    validators
        Frame of `load_validators`. With it, balances count in the ratio of the epochs of a day in
        which their validator is active.
    level
        As in `proposal_luck`.
    by
        Group columns of *stats*, such as ``"day"``; ``()`` is all validators together.
    chain
        Chain of the days. Default: that of the frames, from ``time``; mainnet without times.

    Returns
    -------
    The same kind of frame as *stats*
        The columns of `proposal_luck`. This computes eagerly.
    """
    groups = list_columns(by, {"epoch", "active_epochs", "effective_balance_gwei"})
    columns = list(dict.fromkeys(["validator_index", "day", *STAKES, *groups]))
    source = open_frame(stats, columns, loader="load_validator_stats")
    clock = resolve_chain(chain, (stats, "day"), (index, "day"), (proposals, "slot"))
    length = clock.epochs_per_day
    # A day takes the place of an epoch in `proposal_luck`: it has the slots of all its epochs.
    days = dataclasses.replace(clock, slots_per_epoch=clock.slots_per_epoch * length)
    rows = drop_missing(source, ["validator_index", "day", STAKES[0]])
    # A copy: the day may be a group.
    balances = collect(rows).with_columns(epoch="day", effective_balance_gwei=find_stake())
    if validators is not None:
        periods = collect(select_columns(validators, ACTIVE_PERIOD, loader="load_validators"))
        balances = add_active_epochs(balances, periods, length).filter(pl.col("active_epochs") > 0)
        epochs = pl.col("active_epochs")
        balances = balances.with_columns(pl.col("effective_balance_gwei") * epochs // length)
    totals = to_polars(total_balances(index, every="day", chain=clock)).rename({"day": "epoch"})
    blocks = collect(select_columns(proposals, _BLOCK, loader="load_proposals"))
    blocks = blocks.with_columns(pl.col("epoch") // length)
    options: dict[str, Any] = {"by": groups, "level": level, "chain": days}
    table = proposal_luck(blocks, balances, totals, **options)
    return return_table(table, source, stats)
