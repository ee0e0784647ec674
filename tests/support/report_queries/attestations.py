"""Votes and effectiveness of a report, and those of the network."""

from __future__ import annotations

import functools

import polars as pl

from .source import HAS_VOTE, HEAD, IS_MISSED, SOURCE, TARGET, WEIGHTS, Source


def count_votes(rows: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    shares = {"source": SOURCE > 0, "target": TARGET > 0, "head": HEAD > 0}
    counts = rows.group_by(keys).agg(
        votes=HAS_VOTE.sum(),
        missed=IS_MISSED.sum(),
        **{name: share.sum() for name, share in shares.items()},
    )
    votes = pl.when(pl.col("votes") > 0).then(pl.col("votes"))
    weighted = sum(weight * pl.col(name) for name, weight in WEIGHTS.items())
    return counts.with_columns(
        included_rate=1 - pl.col("missed") / votes, effectiveness=weighted / 54 / votes
    )


def list_duties(source: Source) -> pl.DataFrame:
    """Income before the exit of each validator: later, it has penalties, but no duties."""
    exits = source.validators.select("validator_index", "exit_epoch")
    rows = source.income.join(exits, on="validator_index")
    return rows.filter(pl.col("epoch") < pl.col("exit_epoch").fill_null(2**62))


def query_effectiveness(source: Source) -> pl.DataFrame:
    """Votes by day."""
    return count_votes(list_duties(source), ["date"]).sort("date")


@functools.cache
def query_network(source: Source) -> pl.DataFrame:
    """Shares of votes beside those of all validators, and when these begin and end."""
    own = count_votes(list_duties(source).with_columns(all=0), ["all"]).row(0, named=True)
    rest = source.network
    names = ("source", "target", "head")
    mine = {"included_rate": own["included_rate"]}
    mine |= {f"{name}_rate": own[name] / own["votes"] for name in names}
    others = {"included_rate": rest["included"] / rest["assigned"]}
    others |= {f"{name}_rate": rest[name] / rest["assigned"] for name in names}
    for shares in (mine, others):
        weighted = (WEIGHTS[name] * shares[f"{name}_rate"] for name in names)
        shares["effectiveness"] = sum(weighted) / 54
    window = source.time(rest["first_epoch"]), source.time(rest["last_epoch"] + 1)
    return pl.DataFrame(
        [(name, mine[name], others[name], mine[name] - others[name], *window) for name in mine],
        ["measure", "own", "network", "difference", "since", "until"],
        orient="row",
    )
