"""Validators, groups and the queue of a report."""

from __future__ import annotations

import functools

import polars as pl

from .attestations import count_votes, list_duties
from .income import query_days
from .intervals import compare_means, compare_shares
from .problems import ADVICE, query_problems, sum_known_costs
from .rates import sum_if_known
from .source import LEVEL, Source
from .sync_committees import query_sync


@functools.cache
def query_validators(source: Source) -> pl.DataFrame:
    """All figures of each validator."""
    prefix = pl.col("withdrawal_credentials").str.head(4)
    names = {"0x00": "BLS", "0x01": "address", "0x02": "compounding"}
    table = source.validators.select(
        "validator_index", "name", "status", "slashed", "balance_gwei", "effective_balance_gwei",
        credentials=prefix.replace(names),
    )  # fmt: skip
    if source.groups:
        table = table.join(source.group_of, on="validator_index", how="left")
    gwei = pl.sum("cl") + pl.sum("el") / 1e9
    # A validator with a withdrawal alone has an income of 0, one without any row has none.
    earned = (
        query_days(source)
        .group_by("validator_index")
        .agg(
            sum_if_known("consensus_income_gwei").alias("consensus_income_gwei"),
            sum_if_known("execution_income_wei").alias("execution_income_wei"),
            sum_if_known("net_income_wei").alias("net_income_wei"),
        )
    )
    stake = source.staked.group_by("validator_index").agg(
        apr_on_effective=pl.when(pl.col("el").is_not_null().all()).then(
            365 * source.day * gwei / pl.sum("effective_balance_gwei")
        )
    )
    votes = count_votes(list_duties(source), ["validator_index"]).select(
        "validator_index", "votes", "effectiveness", votes_missed="missed"
    )
    outcomes = source.blocks.group_by(validator_index="proposer_index").agg(
        (pl.col("status") == name).sum().alias(name) for name in ("proposed", "missed", "orphaned")
    )
    sync = (
        query_sync(source)
        .group_by("validator_index")
        .agg(sync_rate=pl.sum("reward_gwei") / (pl.sum("reward_gwei") + pl.sum("penalty_gwei")))
    )
    costs = query_problems(source).filter(~pl.col("kind").is_in(ADVICE))
    problems = costs.group_by("validator_index")
    # Without a problem, nothing is lost; a problem of unknown cost leaves it unknown.
    lost = problems.agg(lost_gwei=sum_known_costs())
    lost = source.validators.select("validator_index").join(lost, on="validator_index", how="left")
    costly = costs["validator_index"].implode()
    lost = lost.with_columns(
        pl.when(pl.col("validator_index").is_in(costly)).then("lost_gwei").otherwise(0)
    )
    for part in (earned, stake, votes, outcomes, sync, lost):
        table = table.join(part, on="validator_index", how="left")
    zeros = ("proposed", "missed", "orphaned")
    return table.with_columns(pl.col(*zeros).fill_null(0)).sort("validator_index")


def query_groups(source: Source) -> pl.DataFrame | None:
    """Each group beside all others: Welch's interval of means, Wilson's of shares."""
    if not source.groups:
        return None
    # Losses are those of validators of 32 ETH that vote in every epoch.
    has_many = 4 * pl.col("votes") >= pl.col("votes").max()
    most = pl.col("votes").max() / pl.when(has_many).then("votes")
    stake = pl.when(pl.col("effective_balance_gwei") > 0).then("effective_balance_gwei")
    stake = stake.otherwise(32 * 10**9)
    table = query_validators(source).with_columns(
        votes_missed=pl.col("votes_missed") * most,
        lost_gwei=(pl.col("lost_gwei") * most / (stake / 32e9)).round().cast(pl.Int64),
    )
    names = sorted(source.groups)
    measures = ("apr_on_effective", "effectiveness", "sync_rate", "votes_missed", "lost_gwei")
    comparisons = (len(names) if len(names) > 2 else 1) * (len(measures) + 1)
    strict = 1 - (1 - LEVEL) / comparisons
    found = []
    for measure in measures:
        for name in names:
            own, others = (
                table.filter(part)[measure].drop_nulls().to_list()
                for part in (pl.col("group") == name, pl.col("group") != name)
            )
            count, mean, *ends = compare_means(own, others, strict)
            if count > 1 and measure != "apr_on_effective":
                ends[0] = max(ends[0], 0.0)
            if count > 1 and measure in ("effectiveness", "sync_rate"):
                ends[1] = min(ends[1], 1.0)
            found.append((name, measure, count, mean, *ends))
    table = table.with_columns(drawn=pl.sum_horizontal("proposed", "missed", "orphaned"))
    for name in names:
        own, others = (
            tuple(table.filter(part).select(pl.sum("proposed", "drawn")).row(0))
            for part in (pl.col("group") == name, pl.col("group") != name)
        )
        count = table.filter(pl.col("group") == name, pl.col("drawn") > 0).height
        found.append((name, "proposed", count, *compare_shares(own, others, strict)))
    columns = ["group", "measure", "validators", "value", "low", "high", "others", "difference"]
    columns += ["difference_low", "difference_high", "differs"]
    return pl.DataFrame(found, columns, orient="row").sort("measure", "group")


def query_group_verdict(source: Source) -> pl.DataFrame | None:
    """Means of each group; it is worse if its missed votes or losses differ by more than chance."""
    measures = query_groups(source)
    if measures is None:
        return None
    rows = []
    for name, members in sorted(source.groups.items()):
        own = query_validators(source).filter(pl.col("validator_index").is_in(members))
        lost = own["lost_gwei"].drop_nulls().to_list()
        judged = measures.filter(
            pl.col("group") == name, pl.col("measure").is_in(["votes_missed", "lost_gwei"])
        )
        signs = set(judged.filter("differs")["difference"] > 0)
        verdict = "worse" if True in signs else "better" if signs else "like the others"
        verdict = verdict if judged["differs"].count() else None
        rows.append(
            {
                "group": name,
                "validators": own.height,
                "effectiveness": own["effectiveness"].mean(),
                "lost_per_validator_gwei": round(sum(lost) / len(lost)),
                "verdict": verdict,
            }
        )
    return pl.DataFrame(rows)


def query_queue(source: Source) -> pl.DataFrame:
    """The queues of the network."""
    return source.scan("validator_queue").collect()
