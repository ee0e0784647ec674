"""What each frame of a report has to be: polars queries, written by hand, on the rows of a dataset.

They read the segments of the dataset. They use neither loaders nor `beaconframes.analysis`, and the
intervals follow from formulas of textbooks. `QUERIES` has one query for each frame with a row per
epoch. A query returns None where the report has to leave the frame out.
"""

from __future__ import annotations

import bisect
import functools
import importlib.metadata
import math
import re
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from beaconframes.calendar import Chain
    from beaconframes.dataset import Dataset

ROOT = Path(__file__).resolve().parents[2]
KEYS = ["validator_index", "epoch"]
SUMS = {
    "attestation_reward_gwei": [
        "attestation_head_reward_gwei",
        "attestation_source_reward_gwei",
        "attestation_target_reward_gwei",
    ],
    "proposal_reward_gwei": [
        "proposer_attestation_inclusion_reward_gwei",
        "proposer_slashing_inclusion_reward_gwei",
        "proposer_sync_inclusion_reward_gwei",
    ],
    "sync_committee_reward_gwei": ["sync_committee_reward_gwei"],
    "slashing_reward_gwei": ["slashing_reward_gwei"],
    "attestation_penalty_gwei": [
        "attestation_source_penalty_gwei",
        "attestation_target_penalty_gwei",
    ],
    "finality_delay_penalty_gwei": ["finality_delay_penalty_gwei"],
    "sync_committee_penalty_gwei": ["sync_committee_penalty_gwei"],
    "slashing_penalty_gwei": ["slashing_penalty_gwei"],
}
KINDS = [pl.sum_horizontal(columns).alias(name) for name, columns in SUMS.items()]
NET = pl.sum_horizontal(list(SUMS)[:4]) - pl.sum_horizontal(list(SUMS)[4:])
HEAD, SOURCE, TARGET = (
    pl.col(f"attestation_{vote}_reward_gwei") for vote in ("head", "source", "target")
)
NO_SOURCE, NO_TARGET = (pl.col(f"attestation_{vote}_penalty_gwei") for vote in ("source", "target"))
HAS_VOTE = (HEAD + SOURCE + TARGET + NO_SOURCE + NO_TARGET) > 0
IS_MISSED = (NO_SOURCE > 0) & (NO_TARGET > 0) & (HEAD == 0)
ADVICE = ("BLS credentials", "consolidation possible", "not compounding")
"""Kinds of problems that cost nothing."""
WEIGHTS = {"source": 14, "target": 26, "head": 14}
LEVEL = 0.95


@dataclass(eq=False)
class Source:
    """A dataset, and what a report of it is about."""

    dataset: Dataset
    mine: list[int]
    first: int
    last: int
    latest: int
    """The latest epoch, that of the latest slot."""
    final: int
    """The latest finalized epoch."""
    chain: Chain
    offset: int = 0
    """Epochs from a vote to its reward in the balance: simulated chains have 0, real ones 1."""
    groups: dict[str, list[int]] = field(default_factory=dict)
    prices: pl.DataFrame | None = None
    address: str = ""
    """The host of the explorer, or the path of the dataset as it was given."""
    requests: int = 0
    sent: list[str] | None = None
    """The paths of the requests, where they were sent over HTTP."""

    def __post_init__(self) -> None:
        chain = self.chain
        self.slots = chain.slots_per_epoch
        self.seconds = chain.seconds_per_slot * self.slots
        self.day = 86_400 // self.seconds
        self.period = chain.epochs_per_sync_period
        self.genesis = chain.genesis

    def time(self, epoch: int) -> object:
        """Return when an epoch begins."""
        return self.genesis + timedelta(seconds=epoch * self.seconds)

    def has(self, name: str) -> bool:
        """Return whether the dataset has rows of a table."""
        return name in self.dataset.tables() and not self.scan(name).head(1).collect().is_empty()

    def scan(self, name: str) -> pl.LazyFrame:
        """Return the rows of a table."""
        return self.dataset.scan(name)

    @functools.cached_property
    def validators(self) -> pl.DataFrame:
        """Return the validators of the report."""
        own = pl.col("validator_index").is_in(self.mine)
        return self.scan("validators").filter(own).sort("validator_index").collect()

    @functools.cached_property
    def received(self) -> pl.DataFrame | None:
        """Return the execution blocks of the validators in these epochs."""
        if not self.has("execution_blocks"):
            return None
        own = pl.col("proposer_index").is_in(self.mine), self.in_range
        return self.scan("execution_blocks").filter(*own).collect()

    @property
    def in_range(self) -> pl.Expr:
        """Return whether an epoch is one of the report."""
        return pl.col("epoch").is_between(self.first, self.last)

    @functools.cached_property
    def income(self) -> pl.DataFrame:
        """Return the income rows with ``el``, what proposers received in wei, and ``cl``."""
        own = pl.col("validator_index").is_in(self.mine), self.in_range
        rows = self.scan("income_history").filter(*own).collect()
        rows = rows.with_columns(fees=pl.col("tx_fee_reward_wei").cast(pl.Int128))
        if self.received is None:
            rows = rows.with_columns(el=pl.col("fees"))
        else:
            paid = self.received.group_by(validator_index="proposer_index", epoch="epoch").agg(
                el=pl.col("producer_reward_wei").cast(pl.Int128).sum()
            )
            rows = rows.join(paid, on=KEYS, how="left").with_columns(pl.col("el").fill_null(0))
        rows = rows.with_columns(date=pl.col("time").dt.date())
        return rows.with_columns(cl=rows.select(*KINDS).select(NET).to_series())

    @functools.cached_property
    def balances(self) -> pl.DataFrame:
        """Return the balances of these epochs and of the one after."""
        epochs = pl.col("epoch").is_between(self.first, min(self.last + 1, self.latest))
        own = pl.col("validator_index").is_in(self.mine)
        rows = self.scan("balance_history").filter(own, epochs).collect()
        return rows.with_columns(date=pl.col("time").dt.date())

    @functools.cached_property
    def staked(self) -> pl.DataFrame:
        """Return the income rows with their effective balance."""
        stakes = self.balances.select(*KEYS, "effective_balance_gwei")
        return self.income.join(stakes, on=KEYS)

    @functools.cached_property
    def withdrawals(self) -> pl.DataFrame:
        """Return the withdrawals of these epochs."""
        own = pl.col("validator_index").is_in(self.mine), self.in_range
        rows = self.scan("validator_withdrawals").filter(*own).collect()
        return rows.with_columns(date=pl.col("time").dt.date())

    @functools.cached_property
    def blocks(self) -> pl.DataFrame:
        """Return the slots in which one of the validators had to propose."""
        own = pl.col("proposer_index").is_in(self.mine), self.in_range
        return self.scan("blocks").filter(*own).sort("slot").collect()

    @functools.cached_property
    def index(self) -> pl.DataFrame | None:
        """Return the yield index of the days of the report that have ended."""
        last = min(self.last // self.day, (self.latest + 1) // self.day - 1)
        if not self.has("yield_index"):
            return None
        days = pl.col("day").is_between(min(self.first // self.day, last), last)
        return self.scan("yield_index").filter(days).collect()

    @functools.cached_property
    def group_of(self) -> pl.DataFrame:
        """Return the group of each validator."""
        rows = [(index, name) for name, members in self.groups.items() for index in members]
        return pl.DataFrame(rows, {"validator_index": pl.Int64, "group": pl.String}, orient="row")

    @functools.cached_property
    def network(self) -> dict[str, int]:
        """Return the votes of all validators in the window of V2 that is nearest to the report."""
        length = (self.last - self.first + 1) / self.day
        self.window = min((1, 7, 30, 90), key=lambda days: abs(days - length))
        first = max(0, self.final - self.window * self.day + 1)
        active = self.scan("validators").select(
            "validator_index", "activation_epoch", pl.col("exit_epoch").fill_null(2**62)
        )
        rows = (
            self.scan("income_history")
            .filter(pl.col("epoch").is_between(first, self.final))
            .join(active, on="validator_index")
            .with_columns(period=pl.col("epoch") // self.period)
        )
        duty = pl.col("epoch").is_between("activation_epoch", pl.col("exit_epoch") - 1)
        if "missed_attestation_events" in self.dataset.tables():
            missed = self.scan("missed_attestation_events")
        else:
            missed = self.scan("attestations").filter(pl.col("status") == "missed")
        missed = missed.select(*KEYS, missed=pl.lit(value=True))
        votes = rows.join(missed, on=KEYS, how="left").select(
            assigned=duty.sum(),
            included=(duty & pl.col("missed").is_null()).sum(),
            source=(SOURCE > 0).sum(),
            target=(TARGET > 0).sum(),
            head=(HEAD > 0).sum(),
        )
        # The block of genesis has no sync aggregate.
        signs = (pl.col("status") == "proposed") & pl.col("sync_aggregate_bits").is_not_null()
        blocks = self.scan("blocks").filter(signs).group_by("epoch").agg(blocks=pl.len())
        seats = self.scan("sync_committees").select("validator_index", "period").unique()
        reward, penalty = (pl.col(f"sync_committee_{kind}_gwei") for kind in ("reward", "penalty"))
        signed = (reward * pl.col("blocks") / (reward + penalty)).round().fill_nan(0)
        sync = (
            rows.join(seats, on=["validator_index", "period"])
            .join(blocks, on="epoch", how="left")
            .select(seats=pl.len() * self.slots, signed=signed.sum())
        )
        found = votes.collect().row(0, named=True) | sync.collect().row(0, named=True)
        return found | {"first_epoch": first, "last_epoch": self.final}


@functools.cache
def query_days(source: Source) -> pl.DataFrame:
    """Income by day and validator; an epoch counts for the day in which it begins."""
    parts = source.income.select("validator_index", "date", "cl", "el", *KINDS)
    days = parts.group_by("date", "validator_index").agg(
        pl.col(*SUMS).sum(),
        consensus_income_gwei=pl.sum("cl"),
        el=pl.when(pl.col("el").is_not_null().all()).then(pl.col("el").sum()),
    )
    paid = source.withdrawals.group_by("date", "validator_index").agg(
        withdrawals_gwei=pl.sum("amount_gwei")
    )
    days = days.join(paid, on=["date", "validator_index"], how="full", coalesce=True)
    only_paid = pl.col("consensus_income_gwei").is_null()
    days = days.with_columns(
        pl.col(*SUMS, "consensus_income_gwei", "withdrawals_gwei").fill_null(0),
        el=pl.when(only_paid).then(0).otherwise("el"),
    )
    basis = pl.lit("received by the proposer")
    if source.received is None:
        basis = pl.lit("priority fees, relay payments not included")
    days = days.select(
        pl.exclude("el"),
        execution_income_wei="el",
        net_income_wei=pl.col("consensus_income_gwei").cast(pl.Int128) * 10**9 + pl.col("el"),
        execution_income_basis=pl.when(pl.col("el").is_null())
        .then(pl.lit("unknown, because priority fees are missing"))
        .otherwise(basis),
    )
    if source.prices is not None:
        days = days.join(_price_days(source), on="date", how="left")
        days = days.with_columns(
            pl.struct(amount, "eur")
            .map_elements(functools.partial(_value, unit=unit), pl.Decimal(38, 8))
            .alias(name)
            for name, amount, unit in (
                ("income_value", "net_income_wei", 10**18),
                ("withdrawals_value", "withdrawals_gwei", 10**9),
            )
        )
    return days.sort("date", "validator_index")


def _price_days(source: Source) -> pl.DataFrame:
    """Return the last price of each day, and its time."""
    rows = source.prices.sort("time").group_by(pl.col("time").dt.date().alias("date"))
    return rows.agg(pl.last("eur"), price_time=pl.last("time"))


def _value(row: dict[str, object], unit: int) -> Decimal | None:
    """Return an amount times a price, rounded half up at eight decimals."""
    amount, price = row.values()
    if price is None:
        return None
    exact = Decimal(int(amount)) * Decimal(str(price)) / unit
    return exact.quantize(Decimal("1e-8"), ROUND_HALF_UP)


@functools.cache
def query_income(source: Source) -> pl.DataFrame:
    """Income by day, of all validators; unknown if that of one of them is."""
    days = query_days(source)
    wei = ("execution_income_wei", "net_income_wei")
    sums = [pl.when(pl.col(n).is_not_null().all()).then(pl.col(n).sum()).alias(n) for n in wei]
    return (
        days.group_by("date")
        .agg(
            *sums,
            pl.col(*SUMS, "consensus_income_gwei", "withdrawals_gwei").sum(),
            validators=pl.col("validator_index").n_unique(),
            execution_income_basis=pl.col("execution_income_basis").sort().last(),
        )
        .sort("date")
    )


@functools.cache
def query_value(source: Source) -> pl.DataFrame | None:
    """Value at receipt by day; unknown on a day without a price."""
    if source.prices is None:
        return None
    days = (
        query_days(source)
        .group_by("date")
        .agg(
            pl.first("eur", "price_time"),
            pl.sum("net_income_wei"),
            *(
                pl.when(pl.col("eur").is_not_null().all()).then(pl.col(name).sum()).alias(name)
                for name in ("income_value", "withdrawals_value")
            ),
        )
    )
    return days.sort("date")


def query_years(source: Source) -> pl.DataFrame | None:
    """Sums of calendar years."""
    if source.prices is None:
        return None
    days = query_days(source).with_columns(year=pl.col("date").dt.year().cast(pl.Int64))
    amounts = [name for name in days.columns if name.endswith(("_gwei", "_wei"))]
    return (
        days.group_by("year")
        .agg(
            pl.col(*amounts, "income_value", "withdrawals_value").sum(),
            first_date=pl.min("date"),
            last_date=pl.max("date"),
            days_without_price=pl.col("date").filter(pl.col("eur").is_null()).n_unique(),
        )
        .sort("year")
    )


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
        "execution_income_wei": _known("el"),
        "execution_income_basis": pl.when(_known("el").is_null())
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


def _known(name: str) -> pl.Expr:
    return pl.when(pl.col(name).is_not_null().all()).then(pl.col(name).sum())


def query_rates(source: Source) -> pl.DataFrame:
    """Yearly rates by day of the chain."""
    return _compute_rates(source, ["day"])


@functools.cache
def query_rate(source: Source) -> pl.DataFrame:
    """Yearly rates of all days together."""
    return _compute_rates(source, ["all"])


def _count_votes(rows: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
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


def query_effectiveness(source: Source) -> pl.DataFrame:
    """Votes by day."""
    return _count_votes(source.income, ["date"]).sort("date")


@functools.cache
def query_network(source: Source) -> pl.DataFrame:
    """Shares of votes beside those of all validators, and when these begin and end."""
    own = _count_votes(source.income.with_columns(all=0), ["all"]).row(0, named=True)
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


def query_balances(source: Source) -> pl.DataFrame:
    """Balances of the last epoch of each day."""
    rows = []
    for (date,), day in source.balances.sort("date").group_by("date", maintain_order=True):
        last = day.filter(pl.col("epoch") == day["epoch"].max())
        balances = sorted(last["balance_gwei"])
        quantiles = [balances[math.floor(q * (len(balances) - 1) / 10)] for q in (1, 5, 9)]
        stake = sum(last["effective_balance_gwei"])
        rows.append((date, len(balances), sum(balances), stake, *quantiles))
    names = ("validators", "balance_gwei", "effective_balance_gwei")
    spread = [f"balance_p{q}_gwei" for q in (10, 50, 90)]
    return pl.DataFrame(rows, ["date", *names, *spread], orient="row")


@functools.cache
def query_proposals(source: Source) -> pl.DataFrame:
    """Slots to propose, with what was received, or what others received within 225 epochs.

    Without a block of others, it is the share of blocks in the rewards of the network.
    """
    columns = ["slot", "epoch", "time", "status", "proposer_index", "graffiti_text"]
    rows = source.blocks.select(columns)
    paid = {}
    if source.received is not None:
        names = ("slot", "producer_reward_wei", "relay_tag")
        paid = {slot: more for slot, *more in source.received.select(names).iter_rows()}
    earned = source.income.select("epoch", "el", cl=pl.sum_horizontal(SUMS["proposal_reward_gwei"]))
    earned = earned.filter(pl.col("cl") > 0)
    extra = []
    for row in rows.iter_rows(named=True):
        reward, relay = paid.get(row["slot"], (None, None))
        cost: list = [None, None, None]
        if row["status"] != "proposed":
            near = earned.filter((pl.col("epoch") - row["epoch"]).abs() <= 225)
            reward = None
            texts = [f"median of {near.height:,} block{'s' * (near.height > 1)}"] * bool(
                near.height
            )
            for place, name in enumerate(("cl", "el")):
                if near.height and not near[name].null_count():
                    # The lower one of the two middle values.
                    cost[place] = sorted(near[name])[(near.height - 1) // 2]
            network = _average_blocks(source, row["epoch"])
            if network and cost[0] is None:
                cost[0], texts = network[0], ["mean of the network", *texts]
            if cost[1] is None and (network or cost[0] is not None):
                cost[1] = network[1] if network else None
                texts.append("execution layer: priority fees of the network")
                texts[-1] = texts[-1] if network else "execution layer: unknown"
            cost[2] = ", ".join(texts) or None
        extra.append((reward, relay, *cost))
    schema = {
        "reward_wei": pl.Decimal(28, 0),
        "relay_tag": pl.String,
        "cost_consensus_gwei": pl.Int64,
        "cost_execution_wei": pl.Decimal(28, 0),
        "cost_basis": pl.String,
    }
    found = rows.hstack(pl.DataFrame(extra, schema, orient="row"))
    return found if source.received is not None else found.drop("reward_wei", "relay_tag")


def _average_blocks(source: Source, epoch: int) -> tuple[int, int] | None:
    """Return 8 of 64 parts of the rewards of a day, and its fees, by slot; in gwei and wei."""
    index, day = source.index, epoch // source.day
    rows = [] if index is None else index.filter(pl.col("day") == day).rows(named=True)
    slots = source.day * source.slots
    for row in rows:
        rewards = int(row["consensus_rewards_sum_wei"])
        if rewards > 0:
            return 8 * rewards // (64 * slots * 10**9), int(row["tx_fees_sum_wei"]) // slots
    return None


def compute_daily_costs(source: Source) -> list[tuple[str, int, int | None, str | None]]:
    """Return what was missed in daily statistics: kind, validator, cost and basis.

    Of validators and days without other duties, the median income is that of votes. What a proposer
    earned beyond it is that of its blocks.
    """
    days = pl.col("day").is_between(source.first // source.day, source.last // source.day)
    own = pl.col("validator_index").is_in(source.mine)
    stats = source.scan("validator_stats").filter(own, days).collect().rows(named=True)
    for row in stats:
        moves = (row["withdrawals_amount_gwei"] or 0) - (row["deposits_amount_gwei"] or 0)
        row["income"] = row["end_balance_gwei"] - row["start_balance_gwei"] + moves
        row["stake"] = row["start_effective_balance_gwei"]
        row["sync"] = row["participated_sync"] + row["missed_sync"]
        row["is_plain"] = not (row["sync"] or row["missed_attestations"] or row["proposed_blocks"])
    rates: dict[int, tuple[float, str]] = {}
    sync, made = {}, {}
    assert source.index is not None
    for day in source.index.rows(named=True):
        rewards, number = int(day["consensus_rewards_sum_wei"]), day["day"]
        plain = [r["income"] / r["stake"] for r in stats if r["is_plain"] and r["day"] == number]
        rates[number] = (
            54 / 64 * rewards / int(day["effective_balances_sum_wei"]),
            "mean of the network",
        )
        sync[number] = 2 * rewards // (64 * source.day * source.slots * 10**9) // 512
        made[number] = []
        if plain:
            rates[number] = float(np.median(plain)), "median of the validators"
            for row in stats:
                if row["day"] == number and row["proposed_blocks"] and not row["sync"]:
                    share = 1 - row["missed_attestations"] * 94 / 54 / source.day
                    rest = row["income"] - rates[number][0] * row["stake"] * share
                    made[number].append(
                        (row["proposed_blocks"], round(rest / row["proposed_blocks"]))
                    )
    found: list[tuple[str, int, int | None, str | None]] = []
    for index in source.mine:
        rows = [row for row in stats if row["validator_index"] == index]
        votes = [row for row in rows if row["missed_attestations"]]
        if votes:
            each = (
                row["missed_attestations"]
                * row["stake"]
                * rates[row["day"]][0]
                * 94
                / 54
                / source.day
                for row in votes
            )
            basis = ", or ".join(sorted({rates[row["day"]][1] for row in votes}))
            found.append(("missed votes", index, sum(map(round, each)), basis))
        if any(row["missed_sync"] for row in rows):
            cost = sum(2 * row["missed_sync"] * sync[row["day"]] for row in rows)
            found.append(("sync committee", index, cost, "mean of the network"))
    paid = [] if source.received is None else source.received.rows(named=True)
    for row in source.blocks.filter(pl.col("status") != "proposed").rows(named=True):
        near = [
            block
            for day, blocks in made.items()
            for block in blocks
            if abs(day - row["epoch"] // source.day) <= 1
        ]
        received = sorted(
            int(block["producer_reward_wei"])
            for block in paid
            if abs(block["epoch"] // source.day - row["epoch"] // source.day) <= 1
        )
        network = _average_blocks(source, row["epoch"])
        assert network is not None
        count = sum(number for number, _ in near)
        costs = sorted(cost for _, cost in near)
        text = f"median of {count} block{'s' * (count > 1)}" if near else "mean of the network"
        cost = costs[(len(costs) - 1) // 2] if near else network[0]
        execution = received[(len(received) - 1) // 2] if received else network[1]
        text += ", execution layer: "
        more = f"median of {len(received)} block{'s' * (len(received) > 1)}"
        text += more if received else "priority fees of the network"
        kind = f"{row['status']} proposal"
        found.append((kind, row["proposer_index"], cost + execution // 10**9, text))
    return sorted(found)


def query_luck(source: Source) -> pl.DataFrame | None:
    """Proposals beside their expected number."""
    return _compute_luck(source, [])


def query_group_luck(source: Source) -> pl.DataFrame | None:
    """Proposals of each group beside their expected number."""
    return _compute_luck(source, ["group"]) if source.groups else None


def query_sync_luck(source: Source) -> pl.DataFrame | None:
    """Seats in sync committees beside their expected number."""
    return _compute_sync_luck(source, [])


def query_group_sync_luck(source: Source) -> pl.DataFrame | None:
    """Seats of each group beside their expected number."""
    return _compute_sync_luck(source, ["group"]) if source.groups else None


def _list_shares(source: Source, keys: list[str]) -> pl.DataFrame:
    """Return the ``share`` of active validators in the balance of all, by epoch."""
    total = pl.col("effective_balances_sum_wei").cast(pl.Int128) // 10**9
    days = source.index.select("day", total=total.cast(pl.Float64))
    periods = source.validators.select("validator_index", "activation_epoch", "exit_epoch")
    epoch = pl.col("epoch")
    rows = (
        source.balances.filter(epoch <= source.last)
        .with_columns(day=epoch // source.day)
        .join(days, on="day")
        .join(periods, on="validator_index")
        .filter(epoch >= pl.col("activation_epoch"), epoch < pl.col("exit_epoch").fill_null(2**62))
        .with_columns(share=pl.col("effective_balance_gwei") / pl.col("total"))
    )
    return rows.join(source.group_of, on="validator_index") if keys else rows


def _add_chance(drawn: int, trials: int, mean: float) -> dict[str, float]:
    """Return what chance gives, and the interval of luck."""
    low, high = compute_clopper_pearson(drawn, trials)
    return {
        **compute_binomial_range(trials, mean / trials),
        "luck": drawn / mean,
        "luck_low": low * trials / mean,
        "luck_high": high * trials / mean,
        "p_value": compute_binomial_p_value(drawn, trials, mean / trials),
    }


def _compute_luck(source: Source, keys: list[str]) -> pl.DataFrame | None:
    if source.index is None:
        return None
    rows = _list_shares(source, keys)
    proposals = source.blocks.unique("slot").select(
        "status", "epoch", validator_index="proposer_index"
    )
    outcomes = ("proposed", "missed", "orphaned")
    found = []
    for name, part in rows.group_by(keys or pl.lit(0)):
        drawn = part.join(proposals, on=KEYS)["status"].to_list()
        slots = part["epoch"].n_unique() * source.slots
        mean = source.slots * math.fsum(part["share"])
        last = part.filter(pl.col("epoch") == rows["epoch"].max())
        now = source.slots * math.fsum(last["share"])
        found.append(
            {
                **dict(zip(keys, name, strict=False)),
                "slots": slots,
                "expected": mean,
                "drawn": len(drawn),
                **{outcome: drawn.count(outcome) for outcome in outcomes},
                **_add_chance(len(drawn), slots, mean),
                "days_to_next": source.seconds / 86_400 / now if now else None,
            }
        )
    return pl.DataFrame(found).sort(keys) if keys else pl.DataFrame(found)


def _compute_sync_luck(source: Source, keys: list[str]) -> pl.DataFrame | None:
    """Compare seats of this committee and the next one, which were drawn a period before."""
    if source.index is None:
        return None
    rows = _list_shares(source, keys)
    size, now = source.chain.sync_committee_size, source.latest // source.period
    found = []
    for name, part in rows.group_by(keys or pl.lit(0)):
        expected, drawn, periods = 0.0, 0, 0
        for period in (now, now + 1):
            selected = part.filter(pl.col("epoch") == max(0, (period - 1) * source.period))
            own = selected["validator_index"].implode()
            seats = source.scan("sync_committees").filter(pl.col("period") == period).collect()
            if selected.height and seats.height:
                periods += 1
                expected += size * math.fsum(selected["share"])
                drawn += seats.filter(pl.col("validator_index").is_in(own)).height
        if expected:
            seats = periods * size
            found.append(
                {
                    **dict(zip(keys, name, strict=False)),
                    "periods": periods,
                    "seats": seats,
                    "expected": expected,
                    "drawn": drawn,
                    **_add_chance(drawn, seats, expected),
                }
            )
    if not found:
        return None
    return pl.DataFrame(found).sort(keys) if keys else pl.DataFrame(found)


def _list_binomial(n: int, p: float) -> list[float]:
    """Return the probabilities of 0 to n successes; all validators of a chain have no chance."""
    if p >= 1:
        return [0.0] * n + [1.0]
    whole = math.lgamma(n + 1)
    return [
        math.exp(
            whole - math.lgamma(k + 1) - math.lgamma(n - k + 1)
            + k * math.log(p) + (n - k) * math.log1p(-p)
        )
        for k in range(n + 1)
    ]  # fmt: skip


def _sum_tails(k: int, n: int, p: float) -> tuple[float, float]:
    """Return the probabilities of *k* or fewer, and of *k* or more."""
    if p >= 1:
        return float(k >= n), 1.0
    each = [
        math.exp(
            math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1)
            + i * math.log(p) + (n - i) * math.log1p(-p)
        )
        for i in range(k + 1)
    ]  # fmt: skip
    lower = math.fsum(each)
    return lower, 1 - lower + each[-1]


def compute_clopper_pearson(k: int, n: int) -> tuple[float, float]:
    """Return the probabilities at which *k* or more, and *k* or fewer, have a chance of 2.5 %."""
    tail = (1 - LEVEL) / 2

    def solve(is_below, low: float, high: float) -> float:
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if is_below(middle) else (low, middle)
        return low

    low = solve(lambda p: _sum_tails(k, n, p)[1] < tail, 1e-12, k / n) if k else 0.0
    high = solve(lambda p: _sum_tails(k, n, p)[0] > tail, max(k / n, 1e-12), 1 - 1e-12)
    return low, high


def compute_binomial_range(n: int, p: float) -> dict[str, int]:
    """Return the central range: fewer, and more, have a chance of at most 2.5 % each."""
    tail = (1 - LEVEL) / 2
    total, low, high = 0.0, None, None
    for k, probability in enumerate(_list_binomial(n, p)):
        if low is None and total + probability > tail:
            low = k
        total += probability
        if high is None and total >= 1 - tail:
            high = k
            break
    return {"drawn_low": low, "drawn_high": high}


def compute_binomial_p_value(k: int, n: int, p: float) -> float:
    """Return twice the smaller tail, at most 1."""
    return min(1.0, 2 * min(_sum_tails(k, n, p)))


def _sum_sync(source: Source, keys: list[str]) -> pl.DataFrame:
    reward, penalty = (pl.col(f"sync_committee_{kind}_gwei") for kind in ("reward", "penalty"))
    rows = source.income.filter((reward > 0) | (penalty > 0))
    return (
        rows.with_columns(period=pl.col("epoch") // source.period)
        .group_by("validator_index", "period", *keys)
        .agg(
            first_epoch=pl.min("epoch"),
            last_epoch=pl.max("epoch"),
            time=pl.min("time"),
            reward_gwei=reward.sum(),
            penalty_gwei=penalty.sum(),
            signed_rate=reward.sum() / (reward.sum() + penalty.sum()),
            lost_gwei=2 * penalty.sum(),
        )
        .sort("validator_index", "period", *keys)
    )


@functools.cache
def query_sync(source: Source) -> pl.DataFrame:
    """Duties in sync committees: a missing signature loses the reward and has it as a penalty."""
    return _sum_sync(source, [])


def query_sync_epochs(source: Source) -> pl.DataFrame:
    """The same by epoch."""
    each = source.income.with_columns(step=pl.col("epoch"))
    found = _sum_sync(Swapped(source, income=each), ["step"])
    return found.rename({"step": "epoch"}).drop("first_epoch", "last_epoch")


class Swapped:
    """A source with another value of an attribute."""

    def __init__(self, source: Source, **changed: object) -> None:
        self.source, self.changed = source, changed

    def __getattr__(self, name: str) -> object:
        """Return the changed value, or that of the source."""
        return self.changed[name] if name in self.changed else getattr(self.source, name)


def query_withdrawals(source: Source) -> pl.DataFrame:
    """Withdrawals by day."""
    return (
        source.withdrawals.group_by("date")
        .agg(
            validators=pl.col("validator_index").n_unique(), withdrawals_gwei=pl.sum("amount_gwei")
        )
        .sort("date")
    )


@functools.cache
def query_problems(source: Source) -> pl.DataFrame:
    """What was lost and what needs attention, most costly first."""
    late, missed = _find_losses(source)
    rows = _list_missed(missed) + _list_late(source, late) + _list_sync(source)
    rows += _list_proposals(source) + _list_states(source)
    for row in rows:
        first, last = row.get("first_epoch"), row.get("last_epoch")
        index = row.get("validator_index")
        if first is not None and "since" not in row:
            row["since"] = source.time(first)
            row["until"] = source.time(last + 1) - timedelta(microseconds=1)
        if "rows" not in row:
            span = f"epoch == {first}" if first == last else f"epoch from {first} to {last}"
            about = [f"validator_index == {index}", *([span] if first is not None else [])]
            row["rows"] = ", ".join(about)
        row["validators"] = row.get("validators", 1)
        row["detail"] = row.get("detail", "")
    rows.sort(
        key=lambda row: (
            row["cost_gwei"] is None,
            -(row["cost_gwei"] or 0),
            row["kind"],
            row.get("validator_index") is None,
            row.get("validator_index") or 0,
            row.get("first_epoch") or 0,
        )
    )
    names = ["kind", "validator_index", "validators", "since", "until", "first_epoch"]
    names += ["last_epoch", "count", "cost_gwei", "cost_basis"]
    names += ["avoidable", "table", "rows", "detail"]
    return pl.DataFrame({name: [row.get(name) for row in rows] for name in names}, strict=False)


def _find_losses(source: Source) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return late or wrong votes, and missed ones, with what they lost.

    A full vote has the best reward of the same epoch and effective balance.
    """
    exits = source.validators.select("validator_index", "exit_epoch")
    stake = "effective_balance_gwei"
    rows = source.staked.join(exits, on="validator_index")
    rows = rows.filter(pl.col("exit_epoch").is_null() | (pl.col("epoch") < pl.col("exit_epoch")))
    votes = {"head": HEAD, "source": SOURCE, "target": TARGET}
    best = rows.filter(pl.col(stake) > 0).group_by("epoch", stake)
    best = best.agg(**{name: reward.max() for name, reward in votes.items()}).sort("epoch")
    full = []
    for name in votes:
        rates: dict[int, float] = {}
        for epoch, increment, reward in best.select("epoch", stake, name).iter_rows():
            if reward > 0:
                rates[epoch] = max(rates.get(epoch, 0.0), reward / increment)
        full.append([])
        for epoch, increment, reward in best.select("epoch", stake, name).iter_rows():
            # Where no vote was rewarded, the rate of the nearest epoch before, or after.
            near = max((e for e in rates if e <= epoch), default=min(rates, default=None))
            rate = 0.0 if near is None else rates[near]
            full[-1].append(reward if reward > 0 else int(rate * increment))
    best = best.select(
        "epoch", stake, full=pl.Series([sum(parts) for parts in zip(*full, strict=True)])
    )
    lost = pl.col("full") - HEAD - SOURCE - TARGET + NO_SOURCE + NO_TARGET
    is_full = (HEAD > 0) & (NO_SOURCE == 0) & (NO_TARGET == 0)
    found = (
        rows.filter(HAS_VOTE & ~is_full)
        .join(best, on=["epoch", stake])
        .with_columns(
            lost=lost,
            missed=(NO_SOURCE > 0) & (NO_TARGET > 0),
            fault=pl.when((NO_SOURCE > 0) & (NO_TARGET > 0))
            .then(pl.lit("missed"))
            .when(NO_SOURCE > 0)
            .then(pl.lit("late"))
            .when(NO_TARGET > 0)
            .then(pl.lit("target"))
            .otherwise(pl.lit("head")),
        )
        .filter(pl.col("lost") > 0)
        .sort(KEYS)
    )
    causes = _find_causes(source)
    texts = [
        causes.get((index, epoch), {}).get(fault, _REWARD_CAUSES.get(fault))
        for index, epoch, fault in found.select(*KEYS, "fault").iter_rows()
    ]
    found = found.with_columns(cause=pl.Series(texts, dtype=pl.String))
    return found.filter(~pl.col("missed")), found.filter("missed")


_REWARD_CAUSES = {
    "head": "wrong or late head",
    "target": "wrong target",
    "late": "source too late",
}
"""What rewards alone show of a vote."""


def _find_causes(source: Source) -> dict[tuple[int, int], dict[str, str]]:
    """Return what duties and blocks of the last 98 epochs show, by validator, epoch and fault."""
    since = max(source.first, source.latest - 97)
    span = pl.col("epoch").is_between(since, source.last)
    own = pl.col("validator_index").is_in(source.mine)
    duties = source.scan("attestations").filter(own, span, pl.col("status") != "pending").collect()
    slots = source.scan("blocks").filter(span).select("slot", "status").collect()
    proposed = sorted(slots.filter(pl.col("status") == "proposed")["slot"])
    end = max(slots["slot"], default=-1)
    found = {}
    columns = [*KEYS, "attester_slot", "inclusion_slot", "status"]
    for index, epoch, slot, included, status in duties.select(columns).iter_rows():
        # A slot that comes after all known ones has no known block.
        place = bisect.bisect_right(proposed, slot)
        first = proposed[place] if place < len(proposed) else None
        is_known = since * source.slots <= slot + 1 <= end
        text = None
        if status != "included":
            last = (epoch + 2) * source.slots
            if is_known and first is not None and first < last:
                text = "missed although blocks were proposed"
            elif is_known and end >= last - 1:
                text = "missed without a block to include it"
        elif included > slot + 1:
            missing = is_known and (first is None or first >= included) and end >= included - 1
            text = "included late after a missing block" if missing else "included late"
        else:
            found[index, epoch] = {"head": "wrong head", "target": "wrong target"}
        if text is not None:
            found[index, epoch] = dict.fromkeys(("missed", "late", "target", "head"), text)
    return found


def _count_causes(causes: list[str | None]) -> str:
    """Return the causes with their numbers, the most frequent first."""
    counts = Counter(cause for cause in causes if cause is not None)
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {cause}" for cause, count in rows)


def _list_missed(missed: pl.DataFrame) -> list[dict]:
    """List three or more consecutive epochs as a time offline, all others together."""
    rows = []
    for (index,), part in missed.group_by("validator_index"):
        runs: list[list[tuple[int, int, str | None]]] = []
        for vote in part.sort("epoch").select("epoch", "lost", "cause").iter_rows():
            if not runs or runs[-1][-1][0] + 1 != vote[0]:
                runs.append([])
            runs[-1].append(vote)
        singles = [vote for run in runs if len(run) < 3 for vote in run]
        found = [("offline", run) for run in runs if len(run) >= 3]
        found += [("missed votes", singles)] if singles else []
        for kind, votes in found:
            rows.append(
                {
                    "kind": kind,
                    "validator_index": index,
                    "first_epoch": votes[0][0],
                    "last_epoch": votes[-1][0],
                    "count": len(votes),
                    "cost_gwei": sum(lost for _, lost, _ in votes),
                    "cost_basis": "best reward of the epoch",
                    "avoidable": True,
                    "table": "income_history",
                    "detail": _count_causes([cause for *_, cause in votes]),
                }
            )
    return rows


def _list_late(source: Source, late: pl.DataFrame) -> list[dict]:
    """List late votes; more than usual, by three standard errors, could have been avoided."""
    counts = _count_votes(source.income, ["validator_index"])
    usual = 1 - source.network["head"] / source.network["included"]
    shares = {}
    for row in counts.iter_rows(named=True):
        if included := row["votes"] - row["missed"]:
            shares[row["validator_index"]] = 1 - row["head"] / included, included
    rows = []
    for (index,), votes in late.group_by("validator_index"):
        share, included = shares[index]
        error = math.sqrt(usual * (1 - usual) / included)
        rows.append(
            {
                "kind": "late votes",
                "validator_index": index,
                "first_epoch": votes["epoch"].min(),
                "last_epoch": votes["epoch"].max(),
                "count": votes.height,
                "cost_gwei": votes["lost"].sum(),
                "cost_basis": "best reward of the epoch",
                "avoidable": share > usual + 3 * error,
                "table": "income_history",
                "detail": f"{_count_causes(votes['cause'].to_list())}; "
                f"{_round(share)} % of votes late (typical: {_round(usual)} %)",
            }
        )
    return rows


def _round(share: float) -> float:
    """Return percent with one decimal."""
    return round(100 * share, 1)


def _list_sync(source: Source) -> list[dict]:
    usual = source.network["signed"] / source.network["seats"] if source.network["seats"] else None
    rows = []
    for row in query_sync(source).filter(pl.col("lost_gwei") > 0).iter_rows(named=True):
        slots = (row["last_epoch"] - row["first_epoch"] + 1) * source.slots
        detail = f"signed {_round(row['signed_rate'])} % in period {row['period']}"
        avoidable = None
        if usual is not None:
            avoidable = row["signed_rate"] < usual - 3 * math.sqrt(usual * (1 - usual) / slots)
            detail += f" (typical: {_round(usual)} %)"
        rows.append(
            {
                "kind": "sync committee",
                **{n: row[n] for n in ("validator_index", "first_epoch", "last_epoch")},
                "cost_gwei": row["lost_gwei"],
                "cost_basis": "penalty, and a reward of the same amount",
                "avoidable": avoidable,
                "table": "income_history",
                "detail": detail,
            }
        )
    return rows


def _list_proposals(source: Source) -> list[dict]:
    rows = []
    for row in query_proposals(source).iter_rows(named=True):
        if row["status"] not in ("missed", "orphaned"):
            continue
        cost, execution = row["cost_consensus_gwei"], row["cost_execution_wei"]
        rows.append(
            {
                "kind": f"{row['status']} proposal",
                "validator_index": row["proposer_index"],
                "since": row["time"],
                "until": row["time"],
                "first_epoch": row["epoch"],
                "last_epoch": row["epoch"],
                "count": 1,
                "cost_gwei": None if cost is None else cost + int(execution or 0) // 10**9,
                "cost_basis": None if cost is None else row["cost_basis"],
                "avoidable": True if row["status"] == "missed" else None,
                "table": "proposals",
                "rows": f"slot == {row['slot']}",
            }
        )
    return rows


def _list_states(source: Source) -> list[dict]:
    """List slashings, exits to come, low balances, and credentials that could be better."""
    rows = []
    state = {"cost_gwei": 0, "table": "validators"}
    kinds: dict[str, list[int]] = {"BLS credentials": [], "not compounding": []}
    for row in source.validators.iter_rows(named=True):
        index, exits = row["validator_index"], row["exit_epoch"]
        has_exited = exits is not None and exits <= source.last
        is_active = row["status"] not in ("pending", "deposited", "exited") and not has_exited
        subject = {"validator_index": index}
        if row["slashed"]:
            penalty = pl.col("slashing_penalty_gwei")
            paid = source.income.filter(penalty > 0, pl.col("validator_index") == index)
            has = paid.height > 0
            rows.append(
                subject
                | {
                    "kind": "slashed",
                    "first_epoch": paid["epoch"].min(),
                    "last_epoch": paid["epoch"].max(),
                    "count": paid.height if has else None,
                    "cost_gwei": paid["slashing_penalty_gwei"].sum() if has else None,
                    "cost_basis": "penalty" if has else None,
                    "avoidable": True,
                    "table": "income_history",
                    "detail": f"withdrawable from epoch {row['withdrawable_epoch']}",
                }
            )
        elif exits is not None and not has_exited:
            rows.append(
                subject
                | state
                | {
                    "kind": "exiting",
                    "first_epoch": exits,
                    "last_epoch": exits,
                    "rows": f"validator_index == {index}",
                    "detail": f"exits in epoch {exits}",
                }
            )
        if is_active and row["effective_balance_gwei"] < 31 * 10**9:
            ether = row["effective_balance_gwei"] // 10**9
            rows.append(
                subject | state | {"kind": "low balance", "detail": f"{ether} ETH effective"}
            )
        prefix = row["withdrawal_credentials"][:4]
        if prefix == "0x00" and row["status"] != "exited":
            kinds["BLS credentials"].append(index)
        if prefix == "0x01" and is_active:
            kinds["not compounding"].append(index)
    texts = {
        "BLS credentials": ("0x00", "no withdrawals until they are changed to an address"),
        "not compounding": ("0x01", "rewards can compound after a change to 0x02"),
    }
    for kind, members in kinds.items():
        prefix, detail = texts[kind]
        if members:
            rows.append(
                {
                    "kind": kind,
                    "validator_index": members[0] if len(members) == 1 else None,
                    "validators": len(members),
                    "count": len(members),
                    "cost_gwei": None,
                    "table": "validators",
                    "rows": f'withdrawal_credentials starts with "{prefix}"',
                    "detail": detail,
                }
            )
    return rows + _list_consolidations(source)


def _list_consolidations(source: Source) -> list[dict]:
    """List addresses whose validators fit into fewer, of up to 2048 ETH each."""
    old = source.last - 256
    stakes: dict[str, list[int]] = {}
    for row in source.validators.iter_rows(named=True):
        address = row["withdrawal_credentials"][-40:]
        is_active = row["status"] not in ("pending", "deposited", "exited")
        is_old = row["activation_epoch"] is not None and row["activation_epoch"] <= old
        has_address = row["withdrawal_credentials"][:4] in ("0x01", "0x02")
        if has_address and is_active and is_old and row["exit_epoch"] is None:
            stakes.setdefault(address, []).append(row["effective_balance_gwei"])
    rows = []
    for address, own in sorted(stakes.items()):
        targets = math.ceil(sum(own) / (2048 * 10**9))
        if targets < len(own):
            text = f"{len(own)} validators with {sum(own) // 10**9:,} ETH fit into {targets}"
            rows.append(
                {
                    "kind": "consolidation possible",
                    "validators": len(own),
                    "count": len(own),
                    "cost_gwei": None,
                    "table": "validators",
                    "rows": f'withdrawal_credentials ends with "{address}", '
                    f"activation_epoch <= {old}",
                    "detail": f"{text}, withdrawal address 0x{address}",
                }
            )
    return rows


def _sum_known_costs() -> pl.Expr:
    cost = pl.col("cost_gwei")
    return pl.when(cost.is_not_null().any()).then(cost.sum())


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
            _known("consensus_income_gwei").alias("consensus_income_gwei"),
            _known("execution_income_wei").alias("execution_income_wei"),
            _known("net_income_wei").alias("net_income_wei"),
        )
    )
    stake = source.staked.group_by("validator_index").agg(
        apr_on_effective=pl.when(pl.col("el").is_not_null().all()).then(
            365 * source.day * gwei / pl.sum("effective_balance_gwei")
        )
    )
    votes = _count_votes(source.income, ["validator_index"]).select(
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
    lost = problems.agg(lost_gwei=_sum_known_costs())
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
    table = query_validators(source)
    names = sorted(source.groups)
    strict = 1 - (1 - LEVEL) / (len(names) if len(names) > 2 else 1)
    found = []
    for measure in ("apr_on_effective", "effectiveness", "sync_rate", "votes_missed", "lost_gwei"):
        for name in names:
            own, others = (
                table.filter(part)[measure].drop_nulls().to_list()
                for part in (pl.col("group") == name, pl.col("group") != name)
            )
            found.append((name, measure, *_compare_means(own, others, strict)))
    table = table.with_columns(drawn=pl.sum_horizontal("proposed", "missed", "orphaned"))
    for name in names:
        own, others = (
            tuple(table.filter(part).select(pl.sum("proposed", "drawn")).row(0))
            for part in (pl.col("group") == name, pl.col("group") != name)
        )
        count = table.filter(pl.col("group") == name, pl.col("drawn") > 0).height
        found.append((name, "proposed", count, *_compare_shares(own, others, strict)))
    columns = ["group", "measure", "validators", "value", "low", "high", "others", "difference"]
    columns += ["difference_low", "difference_high", "differs"]
    return pl.DataFrame(found, columns, orient="row").sort("measure", "group")


def _describe(values: list[float]) -> tuple[int, float | None, float]:
    """Return number, mean and sample variance."""
    if not values:
        return 0, None, 0.0
    mean = math.fsum(values) / len(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    return len(values), mean, squares / (len(values) - 1) if len(values) > 1 else 0.0


def _compare_means(own: list[float], others: list[float], strict: float) -> tuple:
    n, mean, variance = _describe(own)
    m, rest, other_variance = _describe(others)
    low = high = difference = first = last = differs = None
    if n > 1:
        margin = compute_t_quantile((1 + LEVEL) / 2, n - 1) * math.sqrt(variance / n)
        low, high = mean - margin, mean + margin
    if mean is not None and rest is not None:
        difference = mean - rest
        if n > 1 and m > 1:
            error = variance / n + other_variance / m
            margin = 0.0
            if error:
                parts = (variance / n) ** 2 / (n - 1) + (other_variance / m) ** 2 / (m - 1)
                margin = compute_t_quantile((1 + strict) / 2, error**2 / parts) * math.sqrt(error)
            first, last = difference - margin, difference + margin
            differs = not first <= 0 <= last
    return n, mean, low, high, rest, difference, first, last, differs


def compute_wilson(k: int, n: int, level: float) -> tuple[float, float]:
    """Return the solutions p of (k/n - p)^2 = z^2 p (1 - p) / n."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    a, b, c = 1 + z * z / n, -(2 * k / n + z * z / n), (k / n) ** 2
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def _compare_shares(own: tuple[int, int], others: tuple[int, int], strict: float) -> tuple:
    (k, n), (m, total) = own, others
    if not n:
        return (None,) * 8
    interval = compute_wilson(k, n, LEVEL)
    if not total:
        return (k / n, *interval, *(None,) * 5)
    # Newcombe's hybrid score interval.
    (low, high), (other_low, other_high) = (
        compute_wilson(*own, strict),
        compute_wilson(*others, strict),
    )
    p, q = k / n, m / total
    first = p - q - math.sqrt((p - low) ** 2 + (other_high - q) ** 2)
    last = p - q + math.sqrt((high - p) ** 2 + (q - other_low) ** 2)
    return (p, *interval, q, p - q, first, last, not first <= 0 <= last)


def compute_t_quantile(p: float, freedom: float) -> float:
    """Return the quantile of Student's t distribution, by bisection of its distribution function.

    That is the integral of cos(angle)^(freedom - 1), where tan(angle) = t / sqrt(freedom).
    """
    nodes, weights = np.polynomial.legendre.leggauss(100)
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    low, high = 0.0, math.pi / 2
    for _ in range(52):
        angle = (low + high) / 2
        heights = np.cos((nodes + 1) * angle / 2) ** (freedom - 1)
        below = 0.5 + scale * angle / 2 * float(weights @ heights)
        low, high = (angle, high) if below < p else (low, angle)
    return math.sqrt(freedom) * math.tan(low)


def query_upcoming(source: Source) -> pl.DataFrame:
    """Committees, proposals of the current epoch, activations, exits and full withdrawals."""
    chain = source.chain
    rows = []
    period = source.latest // source.period
    for number, kind in ((period, "in sync committee"), (period + 1, "sync committee")):
        seats = source.scan("sync_committees").filter(pl.col("period") == number).collect()
        for index in sorted(set(seats["validator_index"]) & set(source.mine)):
            first, last = number * source.period, (number + 1) * source.period - 1
            rows.append((kind, index, source.time(first), source.time(last + 1), None, first, last))
    for column, kind in (
        ("activation_epoch", "activation"),
        ("exit_epoch", "exit"),
        ("withdrawable_epoch", "full withdrawal"),
    ):
        found = source.validators.filter(pl.col(column) > source.last)
        for index, epoch in found.select("validator_index", column).iter_rows():
            rows.append(
                (kind, index, source.time(epoch), source.time(epoch + 1), None, epoch, epoch)
            )
    waiting = source.validators.filter(
        pl.col("activation_epoch").is_null(), pl.col("activation_eligibility_epoch").is_not_null()
    )
    for index, eligible in waiting.select(
        "validator_index", "activation_eligibility_epoch"
    ).iter_rows():
        # Final at the end of the next epoch; then active after one epoch and MAX_SEED_LOOKAHEAD.
        epoch = max(eligible + 1, source.last) + 1 + 4
        times = source.time(epoch), source.time(epoch + 1)
        rows.append(("earliest activation", index, *times, None, epoch, epoch))
    head = source.scan("latest_state").select("current_slot").collect().item()
    coming = pl.col("slot") > head, pl.col("slot") < (source.latest + 1) * source.slots
    # A set of V2 has up to 100 validators.
    own = pl.col("proposer_index").is_in(source.mine if len(source.mine) <= 100 else [])
    blocks = source.scan("blocks").filter(*coming, own).select("slot", "proposer_index").collect()
    for slot, index in blocks.iter_rows():
        start = source.genesis + timedelta(seconds=slot * chain.seconds_per_slot)
        end = start + timedelta(seconds=chain.seconds_per_slot)
        epoch = slot // source.slots
        rows.append(("proposal", index, start, end, slot, epoch, epoch))
    rows.sort(key=lambda row: (row[5], row[0], row[1]))
    names = ["kind", "validator_index", "since", "until", "slot", "first_epoch", "last_epoch"]
    return pl.DataFrame(rows, names, orient="row")


def query_queue(source: Source) -> pl.DataFrame:
    """The queues of the network."""
    return source.scan("validator_queue").collect()


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


@functools.cache
def _reconcile(source: Source) -> pl.DataFrame:
    """Return each change of a balance, and what explains it.

    A balance is read after the first block of its epoch. Where that block may have paid the
    validator something, the epochs on both sides are one row: their sum is exact.
    """
    since = source.first + source.offset
    until = source.last - 1
    paid = pl.sum_horizontal([*SUMS["proposal_reward_gwei"], "slashing_reward_gwei"])
    reward, penalty = pl.col("sync_committee_reward_gwei"), pl.col("sync_committee_penalty_gwei")
    slashed = pl.col("slashing_penalty_gwei")
    parts = source.income.select(
        *KEYS,
        low=-penalty - slashed,
        high=paid + reward,
        blocks=paid + reward - penalty - slashed,
        votes=HEAD
        + SOURCE
        + TARGET
        - NO_SOURCE
        - NO_TARGET
        - pl.col("finality_delay_penalty_gwei"),
    )
    inside = {(index, epoch): rest for index, epoch, *rest in parts.iter_rows()}
    balances = source.balances.select(*KEYS, "balance_gwei")
    balance = {(index, epoch): gwei for index, epoch, gwei in balances.iter_rows()}
    moved: dict[tuple[int, int], int] = {}
    for index, slot, gwei in source.withdrawals.select(
        "validator_index", "slot", "amount_gwei"
    ).iter_rows():
        key = (index, (slot - 1) // source.slots)
        moved[key] = moved.get(key, 0) + gwei
    none = [0, 0, 0, 0]
    rows: list[dict] = []
    for index in source.mine:
        for epoch in range(since, until + 1):
            if (index, epoch) not in balance or (index, epoch + 1) not in balance:
                continue
            low, high, blocks, _ = inside.get((index, epoch), none)
            next_low, next_high = inside.get((index, epoch + 1), none)[:2]
            is_open = low != high
            row = {
                "validator_index": index,
                "epoch": epoch,
                "until_epoch": epoch,
                "change_gwei": balance[index, epoch + 1] - balance[index, epoch],
                "income_gwei": blocks + inside.get((index, epoch - source.offset), none)[3],
                "withdrawals_gwei": moved.get((index, epoch), 0),
                "start": (low, high),
                "end": (next_low, next_high),
                "open_start_slot": epoch * source.slots if is_open else None,
                "open_end_slot": (epoch + 1) * source.slots if next_low != next_high else None,
            }
            last = rows[-1] if rows else None
            if (
                is_open
                and last
                and (last["validator_index"], last["until_epoch"]) == (index, epoch - 1)
            ):
                for name in ("change_gwei", "income_gwei", "withdrawals_gwei"):
                    last[name] += row[name]
                last |= {name: row[name] for name in ("until_epoch", "end", "open_end_slot")}
            else:
                rows.append(row)
    for row in rows:
        rest = row["change_gwei"] - row["income_gwei"] + row["withdrawals_gwei"]
        (low, high), (next_low, next_high) = row.pop("start"), row.pop("end")
        least, most = next_low - high, next_high - low
        row["ends_gwei"] = min(max(rest, least), most)
        row["unexplained_gwei"] = rest - row["ends_gwei"]
        row["least"], row["most"] = rest - most, rest - least
    return pl.DataFrame(rows, infer_schema_length=None)


def query_reconciliation(source: Source) -> pl.DataFrame:
    """How many changes of balances are explained."""
    rows = _reconcile(source)
    rest = query_unexplained(source)
    return pl.DataFrame(
        {
            "changes": [rows.height],
            "explained": [rows.height - rest.height],
            "unexplained": [rest.height],
            "unexplained_gwei": [rest["unexplained_gwei"].sum()],
            "with_possible_cause": [rest["possible_cause"].count()],
        }
    )


@functools.cache
def query_unexplained(source: Source) -> pl.DataFrame:
    """The changes that are not explained, with deposits and consolidations that may explain them.

    A deposit has the time of its transaction. Opposite amounts of two validators may be one move.
    """
    rows = _reconcile(source).filter(pl.col("unexplained_gwei") != 0)
    deposits = []
    if source.has("deposits"):
        keys = source.validators.select("pubkey", "validator_index").lazy()
        found = source.scan("deposits").join(keys, on="pubkey").collect()
        deposits = found.select("validator_index", "time", "amount_gwei").rows()
    causes = []
    for row in rows.iter_rows(named=True):
        others = rows.filter(
            pl.col("unexplained_gwei") == -row["unexplained_gwei"],
            pl.col("epoch") <= row["until_epoch"],
            pl.col("until_epoch") >= row["epoch"],
        )
        way = "from" if row["unexplained_gwei"] > 0 else "into"
        texts = {f"consolidation {way} validator {i}" for i in others["validator_index"]}
        texts |= {
            f"deposit of {time:%Y-%m-%d %H:%M:%S}"
            for index, time, gwei in deposits
            if index == row["validator_index"]
            and row["least"] <= gwei <= row["most"]
            and time <= source.time(row["until_epoch"] + 1)
        }
        causes.append("; ".join(sorted(texts)) or None)
    return rows.drop("least", "most").with_columns(
        deposits_gwei=pl.lit(0, pl.Int64),
        consolidations_gwei=pl.lit(0, pl.Int64),
        possible_cause=pl.Series(causes, dtype=pl.String),
        attestations_settle=pl.lit(source.offset),
    )


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
            ("proposals", "load_proposals", source.blocks.height),
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


def _find_reasons(source: Source) -> dict[str, str]:
    """Return why inputs are missing: a condition of each reason, written by hand."""
    few = len(source.mine) <= 100
    period = source.latest // source.period
    is_next = pl.col("period") == period + 1
    has_next = source.scan("sync_committees").filter(is_next).collect().height > 0
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
        "next_committees": (has_next, "the source does not have the next sync committee"),
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
    votes = _count_votes(source.income.with_columns(all=0), ["all"]).row(0, named=True)
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


QUERIES = {
    name.removeprefix("query_"): query
    for name, query in list(globals().items())
    if name.startswith("query_")
}
"""The queries by the name of their frame."""
