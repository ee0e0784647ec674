"""Validators and groups: all figures of each validator, and groups compared with the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes import analysis
from beaconframes.reports.input_frames import PartMissing

if TYPE_CHECKING:
    from beaconframes.reports.input_frames import Frames, Inputs


_VALIDATOR = "validator_index"
_STAKE = "effective_balance_gwei"
_GWEI_OF_32_ETH = 32 * 10**9
_LEAST_VOTES = 0.25
_CREDENTIALS = {"0x00": "BLS", "0x01": "address", "0x02": "compounding"}
_OUTCOMES = ["proposed", "missed", "orphaned"]
LOSSES = ("votes_missed", "lost_gwei")
"""The measures that judge a group: more is worse. They are those of validators of 32 ETH."""
_RATE = "apr_on_effective"
"""The measure that may be negative."""
_SHARES = ("effectiveness", "sync_rate")
_MEASURES = (_RATE, *_SHARES, *LOSSES)
_NO_MEASURES = {
    "group": pl.String,
    "measure": pl.String,
    "difference": pl.Float64,
    "differs": pl.Boolean,
}


def build_validators(inputs: Inputs, frames: Frames) -> Frames:
    """Return one row per validator, with all of its figures."""
    (validators,) = inputs.require("validators")
    prefix = pl.col("withdrawal_credentials").str.slice(0, 4)
    table = validators.select(
        _VALIDATOR,
        "name",
        "status",
        "slashed",
        "balance_gwei",
        "effective_balance_gwei",
        credentials=prefix.replace_strict(_CREDENTIALS, default=None),
    )
    if inputs.groups is not None:
        table = table.join(inputs.groups, on=_VALIDATOR, how="left")
    for part in _list_figures(inputs, frames):
        table = table.join(part, on=_VALIDATOR, how="left")
    counts = [name for name in _OUTCOMES if name in table.columns]
    table = table.with_columns(pl.col(*counts).fill_null(0)) if counts else table
    return {"validators": table.sort(_VALIDATOR)}


def _list_figures(inputs: Inputs, frames: Frames) -> list[pl.DataFrame]:
    """Return the columns that each part adds to the table of validators."""
    found = []
    if "days" in frames:
        totals = analysis.ledger_totals(frames["days"], by=_VALIDATOR)
        names = ["consensus_income_gwei", "execution_income_wei", "net_income_wei"]
        found.append(totals.select(_VALIDATOR, *names))
    found += _list_rates(inputs, frames)
    if (votes := count_votes(inputs, _VALIDATOR)) is not None:
        known = [name for name in ("votes", "effectiveness") if name in votes.columns]
        found.append(votes.select(_VALIDATOR, *known, votes_missed="missed"))
    if "proposals" in frames:
        status = frames["proposals"].select(validator_index="proposer_index", status="status")
        counts = _count_outcomes(status)
        # With daily statistics, the blocks are the proposals that were not missed.
        has_blocks = inputs.has_epochs or inputs.get("blocks") is not None
        found.append(counts if has_blocks else counts.drop("proposed"))
    if "sync" in frames:
        found.append(_compute_sync_rates(inputs, frames["sync"]))
    if "problems" in frames:
        found.append(_sum_losses(inputs, frames["problems"]))
    return found


def _sum_losses(inputs: Inputs, problems: pl.DataFrame) -> pl.DataFrame:
    """Return what each validator lost: 0 without a problem."""
    (validators,) = inputs.require("validators")
    totals = analysis.problem_totals(problems, by=_VALIDATOR)
    lost = pl.when(pl.col("problems").is_null()).then(0).otherwise("lost_gwei")
    rows = validators.select(_VALIDATOR).join(totals, on=_VALIDATOR, how="left")
    return rows.select(_VALIDATOR, lost_gwei=lost)


def _list_rates(inputs: Inputs, frames: Frames) -> list[pl.DataFrame]:
    income, balances = inputs.get("income"), inputs.get("balances")
    if income is not None and balances is not None:
        blocks, chain = inputs.get("blocks"), inputs.chain
        rates = analysis.apr(
            income, balances, blocks=blocks, every="all", by=_VALIDATOR, chain=chain
        )
    elif "days" in frames and not inputs.has_epochs:
        (validators,) = inputs.require("validators")
        options: dict[str, Any] = {"validators": validators, "chain": inputs.chain}
        rates = analysis.daily_rates(frames["days"], every="all", by=_VALIDATOR, **options)
    else:
        return []
    return [rates.select(_VALIDATOR, _RATE)]


def count_votes(inputs: Inputs, by: str | tuple[()] = ()) -> pl.DataFrame | None:
    """Return the votes of the whole range; daily statistics have no effectiveness."""
    income, stats = inputs.get("income"), inputs.get("stats")
    (validators,) = inputs.require("validators")
    options: dict[str, Any] = {"validators": validators, "every": "all", "by": by}
    if income is not None:
        return analysis.attestation_rates(income, **options)
    return None if stats is None else analysis.daily_votes(stats, **options, chain=inputs.chain)


def _count_outcomes(rows: pl.DataFrame) -> pl.DataFrame:
    """Return proposals by outcome, one row per validator."""
    status = pl.col("status")
    counts = ((status == name).sum().cast(pl.Int64).alias(name) for name in _OUTCOMES)
    return rows.group_by(_VALIDATOR).agg(counts)


def _compute_sync_rates(inputs: Inputs, sync: pl.DataFrame) -> pl.DataFrame:
    """Return the share of sync committee duties that each validator signed."""
    if inputs.has_epochs:
        (income,) = inputs.require("income")
        sync = analysis.sync_income(income, every="all", chain=inputs.chain)
    return sync.select(_VALIDATOR, sync_rate="signed_rate")


def build_groups(inputs: Inputs, frames: Frames) -> Frames:
    """Return groups compared with all others; nothing if no groups are given."""
    if inputs.groups is None:
        return {}
    if "validators" not in frames:
        raise PartMissing("there are no figures of validators")
    table = _scale_losses(frames["validators"])
    known = {name for name in table.columns if table[name].null_count() < table.height}
    values = [name for name in _MEASURES if name in known]
    shares = {}
    if set(_OUTCOMES) <= set(table.columns):
        table = table.with_columns(drawn=pl.sum_horizontal(_OUTCOMES))
        shares = {"proposed": ("proposed", "drawn")}
    if not values and not shares:
        # Without a figure, the groups are listed with an unknown verdict.
        return {"group_verdict": judge_groups(table, pl.DataFrame(schema=_NO_MEASURES))}
    found = analysis.compare_groups(table, by="group", values=values, shares=shares)
    found = found.with_columns(
        pl.col("low").clip(lower_bound=pl.when(pl.col("measure") != _RATE).then(0.0)),
        pl.col("high").clip(upper_bound=pl.when(pl.col("measure").is_in(_SHARES)).then(1.0)),
    )
    return {"groups": found, "group_verdict": judge_groups(frames["validators"], found)}


def _scale_losses(table: pl.DataFrame) -> pl.DataFrame:
    """Return losses as of validators of 32 ETH that vote in all epochs: size is no fault.

    Those with few votes have none: one missed vote of two would be half of all votes.
    """
    if "votes" not in table.columns:
        return table
    share = pl.col("votes") / pl.max("votes")
    times = pl.when(share >= _LEAST_VOTES).then(1 / share)
    # After its withdrawal, a validator has no balance.
    stake = pl.when(pl.col(_STAKE) > 0).then(pl.col(_STAKE) / _GWEI_OF_32_ETH).otherwise(1.0)
    missed, lost = pl.col("votes_missed") * times, pl.col("lost_gwei") * times / stake
    scaled = {"votes_missed": missed, "lost_gwei": lost.round().cast(pl.Int64)}
    return table.with_columns(scaled[name] for name in scaled if name in table.columns)


def judge_groups(table: pl.DataFrame, measures: pl.DataFrame) -> pl.DataFrame:
    """Return whether each group is worse or better than the others by more than chance.

    The verdict of a group that cannot be compared, such as a single validator, is null.
    """
    means = {"effectiveness": "effectiveness", "lost_gwei": "lost_per_validator_gwei"}
    figures = [
        pl.col(name).mean().alias(title) if name in table.columns else pl.lit(None).alias(title)
        for name, title in means.items()
    ]
    totals = table.drop_nulls("group").group_by("group").agg(pl.len().cast(pl.Int64), *figures)
    differs, difference = pl.col("differs"), pl.col("difference")
    losses = measures.filter(pl.col("measure").is_in(LOSSES)).group_by("group")
    judged = losses.agg(
        verdict=pl.when((differs & (difference > 0)).any())
        .then(pl.lit("worse"))
        .when((differs & (difference < 0)).any())
        .then(pl.lit("better"))
        .when(differs.is_not_null().any())
        .then(pl.lit("like the others"))
    )
    lost = pl.col("lost_per_validator_gwei").cast(pl.Float64).round().cast(pl.Int64)
    return (
        totals.rename({"len": "validators"})
        .join(judged, on="group", how="left")
        .with_columns(pl.col("effectiveness").cast(pl.Float64), lost)
        .sort("group")
    )
