"""Problems with duties: votes, sync committees and proposals that were missed or late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.analysis.aggregation import sum_known
from beaconframes.analysis.attestation_losses import attestation_rates
from beaconframes.analysis.daily_duties import daily_losses, daily_sync
from beaconframes.analysis.daily_rewards import NETWORK_MEAN
from beaconframes.analysis.engines import open_frame
from beaconframes.analysis.proposal_costs import missed_proposals
from beaconframes.analysis.sync_income import sync_income
from beaconframes.analysis.vote_causes import describe_causes
from beaconframes.frames import collect, to_polars

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.calendar import Chain

_OFFLINE = 3
"""Missed votes in this many consecutive epochs are a time offline."""
_MANY = 3.0
"""A validator that fails this many standard errors more often than usual has a fault of its own."""
_ENOUGH = 20
"""Number of validators whose median shows what is usual."""
_USUALLY_SIGNED = 0.98
"""The share of duties in sync committees that is usual to sign, if no frame shows it."""
_WEI_PER_GWEI = 10**9
_BEST = "best reward of the epoch"
_AS_PENALTY = "penalty, and a reward of the same amount"


def _add_runs(losses: pl.DataFrame) -> pl.DataFrame:
    """Select missed votes, and add the run of consecutive epochs and its length."""
    missed = losses.filter(pl.col("fault") == "missed")
    run = pl.col("epoch") - pl.int_range(pl.len()).over("validator_index", order_by="epoch")
    return missed.with_columns(run=run).with_columns(length=pl.len().over("validator_index", "run"))


def find_offline_periods(losses: pl.DataFrame) -> pl.DataFrame:
    """Return runs of consecutive missed votes. One row per validator and run."""
    runs = _add_runs(losses).filter(pl.col("length") >= _OFFLINE)
    return _sum_losses(runs, ["validator_index", "run"], "offline", avoidable=True)


def find_missed_votes(losses: pl.DataFrame) -> pl.DataFrame:
    """Return the other missed votes. One row per validator."""
    single = _add_runs(losses).filter(pl.col("length") < _OFFLINE)
    return _sum_losses(single, ["validator_index"], "missed votes", avoidable=True)


def _sum_losses(
    rows: pl.DataFrame, keys: list[str], kind: str, *, avoidable: bool | None = None
) -> pl.DataFrame:
    sums = rows.group_by(keys).agg(
        kind=pl.lit(kind),
        first_epoch=pl.min("epoch"),
        last_epoch=pl.max("epoch"),
        count=pl.len().cast(pl.Int64),
        cost_gwei=pl.sum("lost_gwei"),
        cost_basis=pl.lit(_BEST),
        avoidable=pl.lit(avoidable, pl.Boolean),
        table=pl.lit("income_history"),
    )
    causes = sums.join(describe_causes(rows, keys), on=keys, how="left")
    return causes.with_columns(pl.col("detail").fill_null(""))


def find_late_votes(
    losses: pl.DataFrame, income: IntoFrame, network: IntoFrame | None
) -> pl.DataFrame:
    """Sum votes that were included, but not fully rewarded. One row per validator.

    Some head votes of every validator are late, because a block was late. More than usual are a
    fault of the validator.
    """
    late = _sum_losses(
        losses.filter(pl.col("fault") != "missed"), ["validator_index"], "late votes"
    )
    rates = to_polars(attestation_rates(income, every="all", by="validator_index"))
    included = pl.col("votes") - pl.col("missed")
    rates = rates.with_columns(included=included).filter(pl.col("included") > 0)
    share = 1 - pl.col("head") / pl.col("included")
    if network is not None:
        correct = _divide(network, "valuable_correct_head", "attestations_included")
        usual = None if correct is None else 1 - correct
    else:
        usual = rates.select(share.median()).item() if rates.height >= _ENOUGH else None
    rates = rates.with_columns(late=share, usual=pl.lit(usual, pl.Float64))
    error = (pl.col("usual") * (1 - pl.col("usual")) / pl.col("included")).sqrt()
    compared = pl.format(
        "; {} % of votes late (typical: {} %)",
        (100 * pl.col("late")).round(1),
        (100 * pl.col("usual")).round(1),
    )
    shares = rates.select(
        "validator_index",
        avoidable=pl.col("late") > pl.col("usual") + _MANY * error,
        compared=compared.fill_null(""),
    )
    rows = late.drop("avoidable").join(shares, on="validator_index", how="left")
    detail = pl.concat_str("detail", "compared", ignore_nulls=True)
    return rows.with_columns(detail=detail).drop("compared")


def find_sync_losses(income: IntoFrame, network: IntoFrame | None, clock: Chain) -> pl.DataFrame:
    """Return duties in sync committees that were not signed. One row per validator and period."""
    duties = to_polars(sync_income(income, chain=clock))
    usual = None
    if duties.is_empty():
        return duties
    if network is not None:
        usual = _find_signed_share(network)
    elif duties["validator_index"].n_unique() >= _ENOUGH:
        usual = duties.select(pl.col("signed_rate").median()).item()
    expected = pl.lit(usual, pl.Float64)
    slots = (pl.col("last_epoch") - pl.col("first_epoch") + 1) * clock.slots_per_epoch
    error = (expected * (1 - expected) / slots).sqrt()
    signed, others = (100 * rate for rate in (pl.col("signed_rate"), expected))
    detail = pl.format("signed {} % in period {}", signed.round(1), "period")
    return duties.filter(pl.col("lost_gwei") > 0).select(
        "validator_index",
        "first_epoch",
        "last_epoch",
        kind=pl.lit("sync committee"),
        cost_gwei=pl.col("lost_gwei"),
        cost_basis=pl.lit(_AS_PENALTY),
        avoidable=_is_avoidable(pl.col("signed_rate"), expected - _MANY * error),
        table=pl.lit("income_history"),
        detail=pl.concat_str(
            detail, pl.format(" (typical: {} %)", others.round(1)), ignore_nulls=True
        ),
    )


def _find_signed_share(network: IntoFrame) -> float | None:
    """Return the share of sync duties that all validators signed, of slots that have a block.

    The counts are taken to include slots without a block: the service subtracts these slots when it
    computes the efficiency of sync duties. If that leaves no duty missed, or if the proposals are
    unknown, it is the share of all slots: the lower one never makes a usual member a problem.
    """
    share = _divide(network, "sync_committee_successful", "sync_committee_assigned")
    blocks = _divide(network, "proposals_successful", "proposals_assigned")
    if share is None or blocks is None or share >= blocks:
        return share
    return share / blocks


def _is_avoidable(signed_rate: pl.Expr, least: pl.Expr) -> pl.Expr:
    """Return whether less was signed than the *least* that is usual; null if both are unknown."""
    is_usual = pl.when(signed_rate >= _USUALLY_SIGNED).then(pl.lit(value=False))
    return pl.when(least.is_null()).then(is_usual).otherwise(signed_rate < least)


def _divide(frame: IntoFrame, part: str, whole: str) -> float | None:
    """Return the ratio of two counts of a frame of one row; None if it is unknown."""
    ratio = pl.when(pl.col(whole) > 0).then(pl.col(part) / pl.col(whole))
    rows = collect(open_frame(frame, [part, whole], loader="v2.load_network_performance"))
    ratios = rows.select(ratio).to_series()
    return None if ratios.is_empty() else ratios[0]


def find_daily_losses(
    stats: IntoFrame, index: IntoFrame | None, clock: Chain
) -> list[pl.DataFrame]:
    """Return missed votes, and missed duties in sync committees, from daily statistics."""
    losses = to_polars(daily_losses(stats, index, chain=clock))
    votes = _sum_days(losses, "missed votes", "missed_attestations", clock).with_columns(
        avoidable=pl.lit(value=True)
    )
    votes = votes.join(_sum_vote_costs(losses), on="validator_index")
    sync = _sum_days(losses, "sync committee", "missed_sync", clock)
    rates = to_polars(daily_sync(stats)).select("validator_index", "signed_rate")
    rate, unknown = pl.col("signed_rate"), pl.lit(None, pl.Float64)
    signed = pl.format("signed {} %, {}", (100 * rate).round(1), "detail")
    cost, is_missed = pl.col("sync_lost_gwei"), pl.col("missed_sync") > 0
    costs = losses.filter(is_missed).group_by("validator_index").agg(cost_gwei=sum_known(cost))
    basis = pl.when(pl.col("cost_gwei").is_not_null()).then(pl.lit(NETWORK_MEAN))
    sync = sync.join(costs, on="validator_index").with_columns(cost_basis=basis)
    sync = sync.join(rates, on="validator_index").with_columns(
        detail=signed, avoidable=_is_avoidable(rate, unknown)
    )
    return [votes, sync.drop("signed_rate")]


def _sum_vote_costs(losses: pl.DataFrame) -> pl.DataFrame:
    """Return what the missed votes of each validator cost; unknown if a day is."""
    days = losses.filter(pl.col("missed_attestations") > 0)
    basis = pl.col("attestation_cost_basis").unique().sort().str.join(", or ")
    sums = days.group_by("validator_index").agg(
        cost_gwei=sum_known(pl.col("attestation_lost_gwei")), cost_basis=basis
    )
    is_known = pl.col("cost_gwei").is_not_null()
    return sums.with_columns(cost_basis=pl.when(is_known).then("cost_basis"))


def _sum_days(losses: pl.DataFrame, kind: str, count: str, clock: Chain) -> pl.DataFrame:
    """Return the days on which something was missed. One row per validator."""
    length = clock.epochs_per_day
    plural = pl.when(pl.len() > 1).then(pl.lit("s")).otherwise(pl.lit(""))
    subject = pl.col("validator_index").first()
    return (
        losses.filter(pl.col(count) > 0)
        .group_by("validator_index")
        .agg(
            kind=pl.lit(kind),
            first_epoch=pl.min("day") * length,
            last_epoch=(pl.max("day") + 1) * length - 1,
            count=pl.sum(count),
            table=pl.lit("validator_stats"),
            rows=pl.format(f"validator_index == {{}}, {count} > 0", subject),
            detail=pl.format("on {} day{}", pl.len(), plural),
        )
    )


def find_missed_proposals(
    proposals: IntoFrame,
    income: IntoFrame | None,
    *,
    blocks: IntoFrame | None,
    stats: IntoFrame | None,
    index: IntoFrame | None,
    clock: Chain,
) -> pl.DataFrame:
    """Return missed and orphaned proposals with their estimated cost. One row per slot."""
    columns = ["slot", "epoch", "time", "status", "proposer_index"]
    rows = collect(open_frame(proposals, columns, loader="load_proposals"))
    rows = rows.filter(pl.col("status").is_in(["missed", "orphaned"]))
    cost, basis = pl.lit(None, pl.Int64), pl.lit(None, pl.String)
    if rows.height and any(frame is not None for frame in (income, stats, index)):
        options: dict[str, Any] = {"blocks": blocks, "stats": stats, "index": index}
        costs = to_polars(missed_proposals(proposals, income, chain=clock, **options))
        rows = rows.select("slot").unique().join(costs, on="slot")
        execution = pl.col("cost_execution_wei").cast(pl.Int128) // _WEI_PER_GWEI
        cost = pl.col("cost_consensus_gwei") + execution.fill_null(0).cast(pl.Int64)
        basis = pl.when(cost.is_not_null()).then(pl.col("cost_basis"))
    return rows.select(
        pl.format("{} proposal", "status").alias("kind"),
        pl.col("proposer_index").alias("validator_index"),
        since=pl.col("time"),
        until=pl.col("time"),
        first_epoch=pl.col("epoch"),
        last_epoch=pl.col("epoch"),
        count=pl.lit(1),
        cost_gwei=cost,
        cost_basis=basis,
        # An orphaned block may be a late one, or the next proposer ignored it.
        avoidable=pl.when(pl.col("status") == "missed").then(pl.lit(value=True)),
        table=pl.lit("proposals"),
        rows=pl.format("slot == {}", "slot"),
    )
