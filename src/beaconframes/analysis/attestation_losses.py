"""Votes in an income history: how many were timely, and what the others lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.analysis.aggregation import aggregate
from beaconframes.analysis.engines import (
    Calendar,
    add_date,
    check_distinct,
    collect_sums,
    list_columns,
    open_frame,
    open_frame_like,
    return_lazy,
    return_table,
    sort_rows,
)
from beaconframes.analysis.income_columns import PENALTIES, REWARDS
from beaconframes.frames import check_choice, drop_missing, map_rows
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.analysis.engines import Lazy

Every = Literal["epoch", "day", "week", "month", "year", "all"]

_KEYS = ["validator_index", "epoch"]
_HEAD, _SOURCE, _TARGET = _REWARDS = REWARDS["attestation_reward_gwei"]
_NO_SOURCE, _NO_TARGET = _PENALTIES = PENALTIES["attestation_penalty_gwei"]
_VOTES = [*_REWARDS, *_PENALTIES]
_BALANCE = "effective_balance_gwei"
_EXIT = "epoch of exit"
WEIGHTS = {"source": 14, "target": 26, "head": 14}
"""Weights of the votes in rewards, of the consensus specification since Altair."""
_COUNTS = ["votes", "missed", *WEIGHTS]


@show_elapsed
def attestation_rates(
    income: IntoFrameT,
    *,
    validators: IntoFrame | None = None,
    every: Every = "day",
    by: str | Sequence[str] = (),
    tz: str = "UTC",
) -> IntoFrameT:
    """Compute the effectiveness of votes from their rewards. One row per day and group.

    An income history shows for each epoch which of the three votes of an attestation (source,
    target and head) were rewarded. It is available for any range, where attestation duties may not
    be: public services delete them after 100 epochs.

    Parameters
    ----------
    income
        Frame of `load_income_history`.
    validators
        Frame of `load_validators`. With it, penalties after the exit of a validator are left out:
        a slashed validator has no duties, but has penalties until it can withdraw.
    every
        ``"epoch"``, ``"day"``, ``"week"``, ``"month"``, ``"year"``, or ``"all"`` for one row.
    by
        Group columns, such as ``"validator_index"``. Default: all validators together.
    tz
        Time zone of the days.

    Returns
    -------
    The same kind of frame
        ``date`` or ``epoch``, the columns of *by*, then counts: ``votes`` (epochs with an
        attestation duty), ``missed`` (no vote was rewarded), and rewarded ``source``, ``target``
        and ``head`` votes. ``included_rate`` is the share of votes that were not missed.
        ``effectiveness`` is the mean of the three shares, weighted as the protocol rewards them
        (14, 26 and 14): 1 if every vote was rewarded. Epochs in which the chain does not
        finalize have no rewards; they count as not rewarded where there are penalties. Sorted,
        except for Dask.
    """
    check_choice("every", every, get_args(Every))
    groups = list_columns(by, [*_COUNTS, "included_rate", "effectiveness"])
    check_distinct(income, _KEYS, groups, loader="load_income_history")
    columns = [*_KEYS, "time", *_VOTES]
    rows = drop_missing(
        open_frame(income, [*columns, *groups], loader="load_income_history"), columns
    )
    if validators is not None:
        rows = drop_exited(rows, validators)
    unit = {"all": [], "epoch": ["epoch"]}.get(every, ["date"])
    if unit == ["date"]:
        calendar: Calendar = every  # type: ignore[assignment]  # neither "epoch" nor "all"
        rows = add_date(rows, calendar, tz)
    keys = list(dict.fromkeys([*unit, *groups]))
    rows = map_rows(rows, lambda part: _add_counts(part, keys))
    sums = aggregate(rows, keys, _COUNTS)
    result = map_rows(sums, lambda part: _add_rates(part, keys))
    return return_lazy(sort_rows(result, keys), income)


@show_elapsed
def attestation_losses(
    income: IntoFrameT, balances: IntoFrame, *, validators: IntoFrame | None = None
) -> IntoFrameT:
    """List votes that were not fully rewarded, with what they lost. One row per vote.

    ``fault`` is ``missed`` (no vote was rewarded), ``late`` (the source vote was too late),
    ``target`` (the target vote was wrong or too late) or ``head`` (only the head vote was wrong or
    late, which is often caused by a late block). ``lost_gwei`` is the reward of a full vote less
    the actual rewards, plus the penalties.

    Parameters
    ----------
    income, balances
        Frames of `load_income_history` and `load_balance_history`, of the same epochs. The reward
        of a full vote is the largest reward per increment of balance in the epoch, so more
        validators give a better estimate. Where none was rewarded, that of the nearest epoch
        before it counts.
    validators
        As in `attestation_rates`.

    Returns
    -------
    The same kind of frame as *income*
        ``validator_index``, ``epoch``, ``time``, ``fault``, ``lost_gwei``. Sorted by validator and
        epoch. This computes eagerly.
    """
    check_distinct(income, _KEYS, loader="load_income_history")
    check_distinct(balances, _KEYS, loader="load_balance_history")
    columns = [*_KEYS, "time", *_VOTES]
    source = drop_missing(open_frame(income, columns, loader="load_income_history"), columns)
    stakes = [*_KEYS, _BALANCE]
    balance_rows = open_frame_like(balances, stakes, loader="load_balance_history", like=source)
    rows = source.join(drop_missing(balance_rows, stakes), on=_KEYS, how="inner")
    if validators is not None:
        rows = drop_exited(rows, validators)
    best = rows.group_by("epoch", _BALANCE).agg(nw.col(name).max() for name in _REWARDS)
    is_full = (nw.col(_HEAD) > 0) & (nw.col(_NO_SOURCE) == 0) & (nw.col(_NO_TARGET) == 0)
    has_vote = nw.sum_horizontal(*_VOTES) > 0
    faults = collect_sums(rows.filter(~is_full & has_vote).select(*columns, _BALANCE))
    table = _add_losses(faults, _estimate_full_rewards(collect_sums(best)))
    return return_table(table, source, income)


def drop_exited(rows: Lazy, validators: IntoFrame) -> Lazy:
    """Leave out the epochs of each validator after its exit."""
    check_distinct(validators, ["validator_index"], loader="load_validators")
    columns = ["validator_index", "exit_epoch"]
    exits = open_frame_like(validators, columns, loader="load_validators", like=rows)
    # Another name: the exit may be a group.
    joined = rows.join(exits.rename({"exit_epoch": _EXIT}), on="validator_index", how="left")
    has_exited = (nw.col(_EXIT) <= nw.col("epoch")).fill_null(value=False)
    return joined.filter(~has_exited).drop(_EXIT)


def _add_counts(rows: Lazy, keys: list[str]) -> Lazy:
    has_vote = nw.sum_horizontal(*_VOTES) > 0
    is_missed = (nw.col(_NO_SOURCE) > 0) & (nw.col(_NO_TARGET) > 0) & (nw.col(_HEAD) == 0)
    flags = {
        "votes": has_vote,
        "missed": is_missed,
        "source": nw.col(_SOURCE) > 0,
        "target": nw.col(_TARGET) > 0,
        "head": nw.col(_HEAD) > 0,
    }
    return rows.select(*keys, *(flag.cast(nw.Int64).alias(name) for name, flag in flags.items()))


def _add_rates(sums: Lazy, keys: list[str]) -> Lazy:
    votes = nw.when(nw.col("votes") > 0).then(nw.col("votes"))
    weighted = nw.sum_horizontal(*(nw.col(name) * weight for name, weight in WEIGHTS.items()))
    return sums.select(
        *keys,
        *_COUNTS,
        (1 - nw.col("missed") / votes).alias("included_rate"),
        (weighted / (votes * sum(WEIGHTS.values()))).alias("effectiveness"),
    )


def _estimate_full_rewards(best: pl.DataFrame) -> pl.DataFrame:
    """Return the reward of a full vote, one row per epoch and effective balance."""
    stake = pl.col(_BALANCE)
    rows = best.filter(stake > 0).sort("epoch")
    rates = [
        pl.when(pl.col(name) > 0).then(pl.col(name) / stake).max().over("epoch").alias(name)
        for name in _REWARDS
    ]
    rates_by_epoch = rows.select("epoch", *rates).unique("epoch").sort("epoch")
    filled = rates_by_epoch.with_columns(pl.col(_REWARDS).forward_fill().backward_fill())
    rows = rows.join(filled, on="epoch", suffix="_rate")
    # Rewards are rounded down for each balance: the largest actual reward is exact.
    full = [
        pl.when(pl.col(name) > 0)
        .then(pl.col(name))
        .otherwise((pl.col(f"{name}_rate") * stake).fill_null(0).cast(pl.Int64))
        for name in _REWARDS
    ]
    return rows.select("epoch", _BALANCE, full_gwei=pl.sum_horizontal(full))


def _add_losses(faults: pl.DataFrame, full_rewards: pl.DataFrame) -> pl.DataFrame:
    no_source, no_target = pl.col(_NO_SOURCE) > 0, pl.col(_NO_TARGET) > 0
    fault = (
        pl.when(no_source & no_target)
        .then(pl.lit("missed"))
        .when(no_source)
        .then(pl.lit("late"))
        .when(no_target)
        .then(pl.lit("target"))
        .otherwise(pl.lit("head"))
    )
    lost = pl.col("full_gwei") - pl.sum_horizontal(_REWARDS) + pl.sum_horizontal(_PENALTIES)
    return (
        faults.join(full_rewards, on=["epoch", _BALANCE], how="left")
        .select(*_KEYS, "time", fault.alias("fault"), lost.alias("lost_gwei"))
        .filter(pl.col("lost_gwei") > 0)
        .sort(_KEYS)
    )
