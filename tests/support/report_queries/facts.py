"""Inputs, requests, facts and summary of a report."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from decimal import Decimal
from pathlib import Path

import polars as pl

from .attestations import count_votes, list_duties, query_network
from .income import query_income, query_value
from .problems import ADVICE, query_problems
from .rates import query_rate
from .source import ROOT, Source


def query_inputs(source: Source) -> pl.DataFrame:
    """What was loaded: the rows of each table, or nothing of what the dataset does not have."""
    period = source.latest // source.period
    committees = source.scan("sync_committees")
    seats = [committees.filter(pl.col("period") == period + n).collect().height for n in (0, 1)]
    few = len(source.mine) <= 100
    keys = source.validators["pubkey"].implode()
    has_deposits = source.has("deposits")
    deposits = None
    if has_deposits:
        deposits = source.scan("deposits").filter(pl.col("pubkey").is_in(keys)).collect().height
    head = source.scan("latest_state").select("current_slot").collect().item()
    coming = range(head + 1, (source.latest + 1) * source.slots)
    since = max(source.first, source.latest - 97)
    span = pl.col("epoch").is_between(since, source.last)
    attests = slots = None
    if since <= source.last:
        mine = pl.col("validator_index").is_in(source.mine)
        attests = source.scan("attestations").filter(mine, span).collect().height
        slots = source.scan("blocks").filter(span).collect().height
    duties = 0
    if few and coming:
        own = pl.col("validator_index").is_in(source.mine)
        attesting = source.scan("attestations").filter(own, pl.col("attester_slot").is_in(coming))
        own_seats = committees.filter(own, pl.col("period") == period).select("validator_index")
        proposes = source.scan("blocks").filter(
            pl.col("proposer_index").is_in(source.mine), pl.col("slot").is_in(coming)
        )
        duties = attesting.collect().height + proposes.collect().height
        duties += own_seats.unique().collect().height * len(coming)
    return pl.DataFrame(
        [
            ("validators", "load_validators", source.validators.height),
            ("income", "load_income_history", source.income.height),
            ("balances", "load_balance_history", source.balances.height),
            ("withdrawals", "load_validator_withdrawals", source.withdrawals.height),
            ("proposals", "load_proposals", source.all_blocks.height),
            (
                "blocks",
                "load_produced_blocks",
                None if source.received is None else source.received.height,
            ),
            ("deposits", "load_deposits", deposits),
            ("attestations", "load_attestations", attests),
            ("slots", "load_epoch_slots", slots),
            ("queue", "load_validator_queue", 1),
            ("index", "load_yield_index", None if source.index is None else source.index.height),
            ("network", "v2.load_network_performance", 1),
            ("missed_rewards", "v2.load_rewards_aggregate", 1 if few else None),
            ("committees", "load_sync_committees", seats[0]),
            ("next_committees", "load_sync_committees", seats[1] or None),
            ("duties", "v2.load_upcoming_duty_slots", duties if few else None),
        ],
        ["input", "loader", "rows"],
        orient="row",
    ).with_columns(
        state=pl.when(pl.col("rows").is_null())
        .then(pl.lit("missing"))
        .otherwise(pl.lit("complete")),
        gaps=pl.lit(0),
        reason=pl.col("input").replace_strict(_find_reasons(source), default=""),
        requests=pl.col("input").replace_strict(count_requests(source)),
    )


REQUESTS = {
    "validators": r"/api/v1/validator/[\d,]+",
    "income": r"/api/v1/validator/[\d,]+/incomedetailhistory",
    "balances": r"/api/v1/validator/[\d,]+/balancehistory",
    "withdrawals": r"/api/v1/validator/[\d,]+/withdrawals",
    "proposals": r"/api/v1/validator/[\d,]+/proposals",
    "blocks": r"/api/v1/execution/[\d,]+/produced",
    "deposits": r"/api/v1/validator/[\d,]+/deposits",
    "attestations": r"/api/v1/validator/[\d,]+/attestations",
    "slots": r"/api/v1/epoch/\d+/slots",
    "queue": r"/api/v1/validators/queue",
    "index": r"/api/v1/yieldindex/\d+",
    "network": r"/api/v2/ethereum/performance-aggregate",
    "missed_rewards": r"/api/v2/ethereum/validators/rewards-aggregate",
    "committees": r"/api/v1/sync_committee/{period}",
    "next_committees": r"/api/v1/sync_committee/{next_period}",
    "duties": r"/api/v2/ethereum/validators/upcoming-duty-slots",
}
"""The path of the requests for each input, of the specification."""


def count_requests(source: Source) -> dict[str, int]:
    """Return how many requests were sent for each input; each path belongs to one input."""
    period = source.latest // source.period
    found = dict.fromkeys(REQUESTS, 0)
    for path in source.sent or []:
        (name,) = (
            name
            for name, pattern in REQUESTS.items()
            if re.fullmatch(pattern.format(period=period, next_period=period + 1), path)
        )
        found[name] += 1
    return found


def has_next_committee(source: Source) -> bool:
    """Return whether the dataset has the sync committee after that of the head."""
    is_next = pl.col("period") == source.latest // source.period + 1
    return source.scan("sync_committees").filter(is_next).collect().height > 0


def _find_reasons(source: Source) -> dict[str, str]:
    """Return why inputs are missing: a condition of each reason, written by hand."""
    few = len(source.mine) <= 100
    ended = "services have the duties of the last 100 epochs, and the report ends earlier"
    # An epoch counts as the last of 98 while the head moves.
    is_old = source.last < source.latest - 97
    # Without an execution node, fees are unknown on any day.
    is_short = source.has("execution_blocks") and source.latest < source.day
    no_index = "this dataset has no yield_index"
    no_index += ", because it has no whole day of the chain" * is_short
    conditions = {
        "blocks": (source.has("execution_blocks"), "this dataset has no execution_blocks"),
        "deposits": (source.has("deposits"), "this dataset has no deposits"),
        "attestations": (not is_old, ended),
        "slots": (not is_old, ended),
        "index": (source.has("yield_index"), no_index),
        "missed_rewards": (few, "a set has up to 100 validators"),
        "next_committees": (
            has_next_committee(source),
            "the source does not have the next sync committee",
        ),
        "duties": (few, "a set has up to 100 validators"),
    }
    return {name: reason for name, (is_there, reason) in conditions.items() if not is_there}


def query_facts(source: Source) -> pl.DataFrame:
    """Where the rows come from, and how many requests they cost; without the time of the report."""
    meta = source.dataset.meta
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    path = Path(source.address)
    facts = {
        "source": path.name if path.is_absolute() else source.address,
        "service": meta["service"],
        "chain": meta["chain"]["name"],
        "simulated": "yes" if meta["simulated"] else "no",
        "detail": "every epoch",
        "days": "UTC",
        "first epoch": source.first,
        "last epoch": source.last,
        "head epoch": source.latest,
        "finalized epoch": source.final,
        "requests": source.requests,
        "beaconframes": project["version"],
        "polars": importlib.metadata.version("polars"),
    }
    rows = [(name, str(value)) for name, value in facts.items()]
    return pl.DataFrame(rows, ["fact", "value"], orient="row")


def query_missing(source: Source) -> pl.DataFrame:
    """No row is missing."""
    return pl.DataFrame(schema={"input": pl.String, "reason": pl.String})


def query_summary(source: Source) -> pl.DataFrame:
    """The answer."""
    exits = pl.col("exit_epoch")
    active = source.validators.filter(
        pl.col("activation_epoch") <= source.last, exits.is_null() | (exits > source.last)
    )
    days = query_income(source)
    rate = query_rate(source)
    votes = count_votes(list_duties(source).with_columns(all=0), ["all"]).row(0, named=True)
    costs = query_problems(source).filter(~pl.col("kind").is_in(ADVICE))
    own, network, _, *window = query_network(source).row(-1)[1:]
    row = {
        "validators": source.validators.height,
        "active": active.height,
        "since": source.time(source.first),
        "until": source.time(source.last + 1),
        "first_epoch": source.first,
        "last_epoch": source.last,
        "income_epochs": source.income["epoch"].n_unique(),
        **{
            name: days[name].sum() if days[name].null_count() == 0 else None
            for name in ("consensus_income_gwei", "execution_income_wei", "net_income_wei")
        },
        "withdrawals_gwei": source.withdrawals["amount_gwei"].sum(),
        "execution_income_basis": days["execution_income_basis"].max(),
        "effectiveness": own,
        "network_effectiveness": network,
        "network_since": window[0],
        "network_until": window[1],
        "included_rate": 1 - votes["missed"] / votes["votes"],
        "lost_gwei": costs["cost_gwei"].sum(),
        "avoidable_gwei": costs.filter(pl.col("avoidable"))["cost_gwei"].sum(),
        "unavoidable_gwei": costs.filter(~pl.col("avoidable"))["cost_gwei"].sum(),
        "unknown_gwei": costs.filter(pl.col("avoidable").is_null())["cost_gwei"].sum(),
        "cost_unknown": costs["cost_gwei"].null_count(),
    }
    names = ["apr_on_32_eth", "apr_on_effective", "apr_as_index", "index_apr", "difference_bp"]
    names += ["cl_apr_on_effective"]
    row |= {name: rate[name].item() for name in names if name in rate.columns}
    if source.received is not None:
        # A node knows the payment of a builder, but not the relay.
        paid, payment = pl.col("producer_reward_wei"), pl.col("block_mev_reward_wei")
        is_built = (payment > 0) & (payment == paid)
        relayed = source.received.filter(pl.col("relay_tag").is_not_null() | is_built)
        row["relay_payments_wei"] = relayed["producer_reward_wei"].cast(pl.Int128).sum()
        row["blocks"] = source.received.height
    if source.prices is not None:
        value = query_value(source)
        row["income_value"] = sum(value["income_value"].drop_nulls(), Decimal(0))
        row["currency"] = "eur"
        row["days_without_price"] = value["income_value"].null_count()
    return pl.DataFrame({name: [cell] for name, cell in row.items()})


def query_incomplete(source: Source) -> pl.DataFrame:
    """What is unknown without a table that the dataset does not have, and sums without a cost."""
    rows = []
    if source.index is None:
        tables = ("luck", "group_luck", "sync_luck", "group_sync_luck", "comparison")
        rows += [(name, None, "unknown", "load_yield_index") for name in tables]
    if not has_next_committee(source):
        rows.append(("upcoming", None, "at least", "load_sync_committees"))
    if source.received is None:
        columns = ("relay_payments_wei", "blocks")
        rows += [("summary", name, "unknown", "load_produced_blocks") for name in columns]
    if source.index is None:
        columns = ("index_apr", "difference_bp")
        rows += [("summary", name, "unknown", "load_yield_index") for name in columns]
    if query_summary(source)["cost_unknown"][0]:
        sums = ("lost", "avoidable", "unavoidable", "unknown")
        rows += [("summary", f"{name}_gwei", "at least", "") for name in sums]
    names = ("frame", "column", "mark", "without")
    return pl.DataFrame(rows, dict.fromkeys(names, pl.String), orient="row")
