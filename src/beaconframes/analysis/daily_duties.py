"""Duties in daily statistics: votes and sync committees, and what missed votes cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import polars as pl

from beaconframes.analysis.daily_rewards import (
    COLUMNS,
    MISSED_VOTE,
    add_vote_rates,
    average_network,
)
from beaconframes.analysis.engines import (
    check_distinct,
    list_columns,
    open_frame,
    resolve_chain,
    return_table,
    sum_by,
)
from beaconframes.frames import check_choice, collect, drop_missing, select_columns
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.calendar import Chain

Every = Literal["day", "all"]

_KEYS = ["validator_index", "day"]


@show_elapsed
def daily_losses(
    stats: IntoFrameT, index: IntoFrame | None = None, *, chain: Chain | str | None = None
) -> IntoFrameT:
    """Estimate what missed votes and sync duties cost, by day. One row per validator and day.

    The reward of a vote is the median of the validators that missed nothing on the day: their
    income without proposals and sync committees, by effective balance. A missed vote costs this
    reward and a penalty of 40/54 of it, the proportion of the protocol. A missed sync duty costs
    its reward and a penalty of the same amount.

    Parameters
    ----------
    stats
        Frame of `load_validator_stats`; more validators give a better estimate.
    index
        Frame of `load_yield_index`. The mean of the network is then the reward of a vote on days
        without a validator to compare, and that of a sync duty: 54 and 2 parts of 64.
    chain
        Chain of the days; it sets the number of epochs, and so of votes, in a day, and of seats in
        a sync committee. Default: that of the frame, from ``time``; an unknown chain has the epochs
        and seats of mainnet.

    Returns
    -------
    The same kind of frame
        ``validator_index``, ``day``, ``missed_attestations``, ``missed_sync``,
        ``attestation_lost_gwei``, ``attestation_cost_basis`` (what it is estimated from) and
        ``sync_lost_gwei``; null where a count is unknown or there is nothing to compare. Days on
        which nothing was missed have no row. Sorted. This computes eagerly.
    """
    check_distinct(stats, _KEYS, loader="load_validator_stats")
    counts = ["missed_attestations", "missed_sync"]
    source = open_frame(stats, COLUMNS, loader="load_validator_stats")
    clock = resolve_chain(chain, (stats, "day"), (index, "day"))
    table = collect(drop_missing(source, _KEYS))
    rows = add_vote_rates(table, average_network(index, clock), clock)
    lost = pl.col("missed_attestations") * pl.col("stake") * pl.col("rate") / clock.epochs_per_day
    lost_sync = 2 * pl.col("missed_sync") * pl.col("network_sync_gwei")
    result = rows.filter(pl.sum_horizontal(counts) > 0).select(
        *_KEYS,
        *counts,
        attestation_lost_gwei=(lost * MISSED_VOTE).round().cast(pl.Int64),
        attestation_cost_basis=pl.when(lost.is_not_null()).then("rate_basis"),
        sync_lost_gwei=lost_sync.round().cast(pl.Int64),
    )
    return return_table(result.sort(_KEYS), source, stats)


@show_elapsed
def daily_votes(
    stats: IntoFrameT,
    validators: IntoFrame,
    *,
    every: Every = "day",
    by: str | Sequence[str] = (),
    chain: Chain | str | None = None,
) -> IntoFrameT:
    """Count votes and missed ones from daily statistics. One row per beacon day and group.

    Parameters
    ----------
    stats, validators
        Frames of `load_validator_stats` and `load_validators`: a validator votes in each epoch from
        its activation to its exit.
    every
        ``"day"``, or ``"all"`` for one row.
    by
        Group columns of *stats*, such as ``"validator_index"``. Default: all validators together.
    chain
        Chain of the days; it sets the number of epochs in a day. Default: that of the frames, from
        ``time``; an unknown chain has the epochs of mainnet if only days are known.

    Returns
    -------
    The same kind of frame
        The columns of *by*, ``day``, ``date`` (UTC, of its start), ``votes``, ``missed`` and
        ``included_rate``. Days whose missed votes are unknown are left out. Sorted. This computes
        eagerly.
    """
    check_choice("every", every, get_args(Every))
    groups = list_columns(by, {"date", "votes", "missed", "included_rate"})
    check_distinct(stats, _KEYS, groups, loader="load_validator_stats")
    columns = [*_KEYS, "time", "missed_attestations", *groups]
    source = open_frame(stats, columns, loader="load_validator_stats")
    length = resolve_chain(chain, (stats, "day")).epochs_per_day
    check_distinct(validators, ["validator_index"], loader="load_validators")
    period = ["validator_index", "activation_epoch", "exit_epoch"]
    active = collect(select_columns(validators, period, loader="load_validators"))
    rows = collect(drop_missing(source, [*_KEYS, "missed_attestations"]))
    rows = rows.filter(pl.col("day") >= 0).join(active, on="validator_index")
    start = pl.col("day") * length
    first = pl.max_horizontal(start, "activation_epoch")
    stop = pl.min_horizontal(start + length, pl.col("exit_epoch"))
    votes = pl.when(pl.col("activation_epoch").is_not_null()).then(stop - first).otherwise(0)
    # Epochs with a null are floats in pandas.
    rows = rows.with_columns(votes=pl.max_horizontal(votes, 0).cast(pl.Int64))
    counts = {"votes": pl.sum("votes"), "missed": pl.sum("missed_attestations")}
    if every == "day":
        groups = list(dict.fromkeys([*groups, "day"]))
        counts = {"date": pl.col("time").first().dt.date(), **counts}
    sums = sum_by(rows, groups, **counts)
    all_votes = pl.when(pl.col("votes") > 0).then("votes")
    result = sums.with_columns(included_rate=1 - pl.col("missed") / all_votes)
    return return_table(result, source, stats)


@show_elapsed
def daily_sync(stats: IntoFrameT, *, by: str | Sequence[str] = "validator_index") -> IntoFrameT:
    """Count duties in sync committees from daily statistics. One row per validator or group.

    Parameters
    ----------
    stats
        Frame of `load_validator_stats`.
    by
        Group columns of *stats*; ``()`` is all validators together.

    Returns
    -------
    The same kind of frame
        The columns of *by*, ``signed`` and ``missed`` slots, and ``signed_rate``. Validators
        without a duty have no row. Sorted. This computes eagerly.
    """
    groups = list_columns(by, {"signed", "missed", "signed_rate"})
    check_distinct(stats, _KEYS, groups, loader="load_validator_stats")
    names = {"signed": "participated_sync", "missed": "missed_sync"}
    columns = ["validator_index", *groups, *names.values()]
    source = open_frame(stats, columns, loader="load_validator_stats")
    sums = {name: pl.sum(count) for name, count in names.items()}
    table = sum_by(collect(source), groups, **sums)
    duties = pl.sum_horizontal(*names)
    result = table.filter(duties > 0).with_columns(signed_rate=pl.col("signed") / duties)
    return return_table(result, source, stats)
