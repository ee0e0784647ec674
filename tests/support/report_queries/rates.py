"""Rates of a report: income over stake, and missed rewards."""

from __future__ import annotations

import functools

import polars as pl

from .source import SUMS, Source


def _sum_validator_days(source: Source) -> pl.DataFrame:
    """Return income and stake by day of the chain and validator; ``whole`` if it has all epochs."""
    stake = pl.col("effective_balance_gwei")
    start = pl.col("day") * source.day
    periods = source.validators.select("validator_index", "activation_epoch", "exit_epoch")
    return (
        source.staked.with_columns(day=pl.col("epoch") // source.day)
        .group_by("day", "validator_index")
        .agg(
            epochs=pl.len(),
            cl=pl.sum("cl"),
            el=pl.when(pl.col("el").is_not_null().all()).then(pl.col("el").sum()),
            fees=pl.when(pl.col("fees").is_not_null().all()).then(pl.col("fees").sum()),
            stake=stake.sum(),
            first_stake=stake.filter(pl.col("epoch") % source.day == 0).sum(),
        )
        .join(periods, on="validator_index")
        .with_columns(
            whole=(pl.col("epochs") == source.day)
            & (pl.col("activation_epoch") <= start)
            & (pl.col("exit_epoch").is_null() | (pl.col("exit_epoch") >= start + source.day))
        )
    )


def _compute_rates(source: Source, keys: list[str]) -> pl.DataFrame:
    """Return the yearly rates: 365 days of income over the stake of as many days."""
    days = _sum_validator_days(source)
    index = source.index
    if index is not None:
        names = {f"index_{layer}": f"{layer}apr" for layer in ("", "cl_", "el_")}
        days = days.join(index.select("day", **names), on="day", how="left")
    counted = pl.col("whole")
    if keys == ["all"] and index is not None:
        counted &= pl.col("index_").is_not_null()
    gwei = {"": pl.col("cl") + pl.col("el") / 1e9, "cl_": pl.col("cl"), "el_": pl.col("el") / 1e9}
    fees = pl.col("fees") / 1e9
    like_index = {"": pl.col("cl") + fees, "cl_": pl.col("cl"), "el_": fees}
    stake = pl.col("first_stake").filter(counted).sum()
    columns = {
        "validator_epochs": pl.sum("epochs"),
        "whole_days": pl.sum("whole"),
        "consensus_income_gwei": pl.sum("cl"),
        "execution_income_wei": sum_if_known("el"),
        "execution_income_basis": pl.when(sum_if_known("el").is_null())
        .then(pl.lit("unknown, because priority fees are missing"))
        .otherwise(pl.lit("received by the proposer")),
    }
    for layer in ("", "cl_", "el_"):
        income = pl.when(gwei[layer].is_not_null().all()).then(gwei[layer].sum())
        year = 365 * source.day
        columns[f"{layer}apr_on_32_eth"] = income * year / (32e9 * pl.sum("epochs"))
        columns[f"{layer}apr_on_effective"] = income * year / pl.sum("stake")
        whole = like_index[layer].filter(counted).sum()
        whole = pl.when((stake > 0) & (fees.is_not_null().all() | (layer == "cl_"))).then(whole)
        columns[f"{layer}apr_as_index"] = 365 * whole / stake
        if index is not None:
            weight = (pl.col(f"index_{layer}") * pl.col("first_stake")).filter(counted)
            known = (stake > 0) & pl.col(f"index_{layer}").filter(counted).is_not_null().all()
            columns[f"index_{layer}apr"] = pl.when(known).then(weight.sum() / stake)
    rows = days.with_columns(all=0).group_by(keys).agg(**columns).sort(keys)
    if index is not None:
        rows = rows.with_columns(
            ((pl.col(f"{x}apr_as_index") - pl.col(f"index_{x}apr")) * 1e4).alias(
                f"{x}difference_bp"
            )
            for x in ("", "cl_", "el_")
        )
    return rows.drop("all", strict=False)


def sum_if_known(name: str) -> pl.Expr:
    return pl.when(pl.col(name).is_not_null().all()).then(pl.col(name).sum())


def query_rates(source: Source) -> pl.DataFrame:
    """Yearly rates by day of the chain, with the date on which it begins."""
    begin = pl.lit(source.genesis) + pl.duration(days=pl.col("day"))
    return _compute_rates(source, ["day"]).with_columns(date=begin.dt.date())


@functools.cache
def query_rate(source: Source) -> pl.DataFrame:
    """Yearly rates of all days together."""
    return _compute_rates(source, ["all"])


def query_missed_rewards(source: Source) -> pl.DataFrame | None:
    """What votes, seats and blocks would have earned; a block the mean of its epoch."""
    if len(source.mine) > 100:
        return None
    network = source.network
    in_window = pl.col("epoch").is_between(network["first_epoch"], network["last_epoch"])
    own = pl.col("validator_index").is_in(source.mine)
    votes = source.scan("missed_reward_events").filter(own, in_window)
    votes = votes.select(pl.sum("^attestation_.*_missed_gwei$")).collect().row(0, named=True)
    sync = source.scan("income_history").filter(own, in_window)
    sync = sync.select(pl.sum("sync_committee_penalty_gwei")).collect().item()
    blocks = source.scan("blocks").filter(in_window).collect()
    lost = blocks.group_by("slot", "epoch", "proposer_index").agg(
        is_lost=(pl.col("status") != "proposed").all() & (pl.col("status") != "scheduled").all()
    )
    lost = lost.filter("is_lost", pl.col("proposer_index").is_in(source.mine))
    consensus, execution = 0, 0
    has_fees = source.received is not None
    for epoch, count in lost.group_by("epoch").agg(pl.len()).iter_rows():
        proposed = blocks.filter(pl.col("epoch") == epoch, pl.col("status") == "proposed").height
        rewards = [*SUMS["proposal_reward_gwei"], "slashing_reward_gwei"]
        income = source.scan("income_history").filter(pl.col("epoch") == epoch)
        earned = income.select(pl.sum_horizontal(rewards).sum()).collect().item()
        consensus += earned // proposed * count
        if has_fees:
            paid = source.scan("execution_blocks").filter(pl.col("epoch") == epoch)
            paid = paid.select(pl.col("producer_reward_wei").cast(pl.Int128).sum()).collect().item()
            execution += paid // proposed * count
    if not has_fees and lost.height:
        execution = None
    each = [votes[f"attestation_{vote}_missed_gwei"] for vote in ("head", "source", "target")]
    wei = [*(10**9 * gwei for gwei in (*each, sync, consensus)), execution]
    wei.append(None if execution is None else sum(wei))
    duties = ["head votes", "source votes", "target votes", "sync committees"]
    duties += ["blocks, consensus layer", "blocks, execution layer", "total"]
    return pl.DataFrame(
        {"duty": duties, "missed_wei": pl.Series(wei, dtype=pl.Int128)}
    ).with_columns(
        window=pl.lit({1: "24h", 7: "7d", 30: "30d"}[source.window]),
        first_epoch=pl.lit(network["first_epoch"]),
        last_epoch=pl.lit(network["last_epoch"]),
    )
