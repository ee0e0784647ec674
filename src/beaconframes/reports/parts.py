"""The frames of a report: every number in it, computed by `beaconframes.analysis`."""

from __future__ import annotations

import dataclasses
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes import analysis
from beaconframes.analysis.valuation import add_values, find_daily_prices
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from beaconframes.client import Explorer
    from beaconframes.reports.inputs import Inputs

Frames = dict[str, pl.DataFrame]

_WEI_PER_GWEI = 10**9
_VALIDATOR = "validator_index"
_ETH_TYPE = pl.Decimal(28, 0)
_SPREAD = (0.1, 0.5, 0.9)
"""Quantiles of balances and income, where there are too many validators for a line each."""


class PartMissing(Exception):
    """A part cannot be made; the message is the reason."""


def build_frames(inputs: Inputs) -> tuple[Frames, dict[str, str]]:
    """Return the frames of all parts, and the reason of each part that is left out."""
    frames: Frames = {}
    left_out: dict[str, str] = {}
    for name, build in _PARTS.items():
        try:
            frames.update(build(inputs, frames))
        except PartMissing as error:
            left_out[name] = str(error)
        except UsageError as error:
            # A check of the analysis found that the rows of a source do not fit together.
            left_out[name] = error.message
    return frames, left_out


def _require(inputs: Inputs, *names: str) -> list[pl.DataFrame]:
    """Return frames of the inputs; raise `PartMissing` with the reason if there is none."""
    found = []
    for name in names:
        rows = inputs.get(name)
        if rows is None:
            item = inputs.items.get(name)
            raise PartMissing(f"{item.loader}: {item.reason}" if item else f"{name} is not loaded")
        found.append(rows)
    return found


def _build_days(inputs: Inputs, frames: Frames) -> Frames:
    """Return income and withdrawals by day and validator, and by day."""
    if inputs.has_epochs:
        (income,) = _require(inputs, "income")
        _check_blocks(inputs)
        days = analysis.ledger(
            income,
            inputs.get("withdrawals"),
            inputs.prices,
            blocks=inputs.get("blocks"),
            tz=inputs.tz,
            price=inputs.price,
        )
    else:
        (stats,) = _require(inputs, "stats")
        days = analysis.daily_income(stats, inputs.get("blocks"), chain=inputs.chain)
        if inputs.prices is not None:
            daily = find_daily_prices(inputs.prices, inputs.price, "UTC")
            days = add_values(days, daily, inputs.price)
    if days.is_empty():
        raise PartMissing("no validator has income in this range")
    amounts = [name for name in days.columns if name.endswith(("_gwei", "_wei"))]
    basis = "execution_income_basis"
    income_rows = days.group_by("date").agg(
        pl.len().cast(pl.Int64).alias("validators"),
        *(_sum_known(name) for name in amounts if name != "effective_balance_gwei"),
        pl.col(basis).max(),
    )
    return {"days": days, "income": income_rows.sort("date")}


def _check_blocks(inputs: Inputs) -> None:
    """Leave out the blocks if they are not those of the income; the report states priority fees."""
    income, blocks = inputs.get("income"), inputs.get("blocks")
    if income is None or blocks is None:
        return
    try:
        analysis.income(income, blocks=blocks, every="all")
    except UsageError as error:
        inputs.drop("blocks", error.message)


def _sum_known(name: str) -> pl.Expr:
    """Return the sum of a column, null if one of its values is unknown."""
    total = pl.when(~pl.col(name).is_null().any()).then(pl.col(name).sum())
    return (total.cast(_ETH_TYPE) if name.endswith("_wei") else total).alias(name)


def _build_value(inputs: Inputs, frames: Frames) -> Frames:
    """Return the value at receipt by day and by tax year; nothing if no prices are given."""
    if inputs.prices is None:
        return {}
    if "days" not in frames:
        raise PartMissing("there is no daily income")
    days = frames["days"]
    value = (
        days.group_by("date")
        .agg(
            pl.col(inputs.price, "price_time").first(),
            _sum_known("net_income_wei"),
            pl.sum("income_value", "withdrawals_value"),
        )
        .sort("date")
    )
    # A day without a price has no value, and a sum of nothing would be 0.
    has_price = pl.col(inputs.price).is_not_null()
    values = pl.when(has_price).then(pl.col("income_value", "withdrawals_value"))
    return {"value": value.with_columns(values), "years": analysis.yearly_totals(days)}


def _build_rates(inputs: Inputs, frames: Frames) -> Frames:
    """Return yearly rates by day, beside the yield index."""
    index = inputs.get("index")
    if inputs.has_epochs:
        income, balances, validators = _require(inputs, "income", "balances", "validators")
        return {
            name: analysis.apr(
                income,
                balances,
                index,
                blocks=inputs.get("blocks"),
                validators=validators,
                every=every,  # type: ignore[arg-type]  # "day" or "all"
                chain=inputs.chain,
            )
            for name, every in (("rates", "day"), ("rate", "all"))
        }
    if "days" not in frames:
        raise PartMissing("there is no daily income")
    return {
        "rates": analysis.daily_rates(frames["days"], index),
        "rate": analysis.daily_rates(frames["days"], index, every="all"),
    }


def _build_effectiveness(inputs: Inputs, frames: Frames) -> Frames:
    """Return the effectiveness of votes by day, and beside the network."""
    if inputs.has_epochs:
        (income,) = _require(inputs, "income")
        own = analysis.attestation_rates(income, every="all")
        found = {"effectiveness": analysis.attestation_rates(income, tz=inputs.tz)}
    else:
        stats, validators = _require(inputs, "stats", "validators")
        found = {"effectiveness": analysis.daily_votes(stats, validators, chain=inputs.chain)}
        own = found["effectiveness"].select(pl.sum("votes", "missed"))
        own = own.with_columns(included_rate=1 - pl.col("missed") / pl.col("votes"))
    network = inputs.get("network")
    if network is not None:
        found["network"] = _compare_with_network(own, network)
    return found


def _compare_with_network(own: pl.DataFrame, network: pl.DataFrame) -> pl.DataFrame:
    """Return shares of votes beside those of the network. One row per measure."""
    assigned = pl.col("attestations_assigned")
    votes = ("source", "target", "head")
    rest = network.select(
        included_rate=pl.col("attestations_included") / assigned,
        **{f"{vote}_rate": pl.col(f"valuable_correct_{vote}") / assigned for vote in votes},
    )
    mine = own.select(
        "included_rate", **{f"{vote}_rate": pl.col(vote) / pl.col("votes") for vote in votes}
    )
    weighted = (
        14 * pl.col("source_rate") + 26 * pl.col("target_rate") + 14 * pl.col("head_rate")
    ) / 54
    sides = [
        table.with_columns(effectiveness=weighted).unpivot(variable_name="measure", value_name=name)
        for name, table in (("own", mine), ("network", rest))
    ]
    joined = sides[0].join(sides[1], on="measure", maintain_order="left")
    return joined.with_columns(difference=pl.col("own") - pl.col("network"))


def _build_balances(inputs: Inputs, frames: Frames) -> Frames:
    """Return balances at the end of each day, with their spread."""
    if inputs.has_epochs:
        (balances,) = _require(inputs, "balances")
        local = pl.col("time").dt.convert_time_zone(inputs.tz)
        last = balances.with_columns(date=local.dt.date()).filter(
            pl.col("epoch") == pl.col("epoch").max().over("date")
        )
    else:
        (stats,) = _require(inputs, "stats")
        last = stats.filter(pl.col("end_balance_gwei").is_not_null()).select(
            "validator_index",
            date=pl.col("time").dt.date(),
            balance_gwei="end_balance_gwei",
            effective_balance_gwei="end_effective_balance_gwei",
        )
    balance = pl.col("balance_gwei")
    return {
        "balances": last.group_by("date")
        .agg(
            validators=pl.len().cast(pl.Int64),
            balance_gwei=balance.sum(),
            effective_balance_gwei=pl.sum("effective_balance_gwei"),
            **{
                f"balance_p{round(100 * q)}_gwei": balance.quantile(q, "lower").cast(pl.Int64)
                for q in _SPREAD
            },
        )
        .sort("date")
    }


def _build_proposals(inputs: Inputs, frames: Frames) -> Frames:
    """Return proposals with their rewards or costs, and whether their number was luck."""
    (proposals,) = _require(inputs, "proposals")
    blocks = inputs.get("blocks")
    columns = ["slot", "epoch", "time", "status", "proposer_index", "graffiti_text"]
    rows = proposals.select(columns)
    if blocks is not None:
        paid = blocks.drop_nulls("slot").select(
            "slot", reward_wei="producer_reward_wei", relay_tag="relay_tag"
        )
        if not inputs.has_epochs:
            # Of proposed blocks only the execution blocks are loaded, and they have no graffiti.
            proposed = blocks.drop_nulls("slot").select(
                "slot",
                "epoch",
                "time",
                "proposer_index",
                status=pl.lit("proposed"),
                graffiti_text=pl.lit(None, pl.String),
            )
            rows = pl.concat([rows, proposed.select(columns)])
        rows = rows.join(paid, on="slot", how="left", maintain_order="left")
        rows = rows.with_columns(
            pl.when(pl.col("status") == "proposed").then("reward_wei").alias("reward_wei")
        )
    income = inputs.get("income")
    if income is not None:
        costs = analysis.missed_proposals(proposals, income, blocks=blocks)
        costs = costs.select("slot", "cost_consensus_gwei", "cost_execution_wei")
        rows = rows.join(costs, on="slot", how="left", maintain_order="left")
    found = {"proposals": rows.unique("slot", maintain_order=True).sort("slot")}
    luck = _compute_luck(inputs, found["proposals"])
    return found if luck is None else found | luck


def _compute_luck(inputs: Inputs, proposals: pl.DataFrame) -> Frames | None:
    """Compare the number of proposals with the expected number, from the yield index's balances."""
    index, validators = inputs.get("index"), inputs.get("validators")
    if index is None or index.is_empty() or validators is None:
        return None
    length, chain = inputs.chain.epochs_per_day, inputs.chain
    total = (pl.col("effective_balances_sum_wei").cast(pl.Int128) // _WEI_PER_GWEI).cast(pl.Int64)
    epochs = index.select(epoch=pl.col("day"), eligible_ether_gwei=total)
    balances = inputs.get("balances")
    if inputs.has_epochs and balances is not None:
        # The balances after the last epoch are for the check of the balances alone.
        balances = balances.filter(pl.col("epoch") <= inputs.last)
        each = pl.DataFrame({"step": range(length)}, schema={"step": pl.Int64})
        epochs = epochs.join(each, how="cross").select(
            epoch=pl.col("epoch") * length + pl.col("step"),
            eligible_ether_gwei="eligible_ether_gwei",
        )
    else:
        stats = inputs.get("stats")
        if stats is None:
            return None
        # A day takes the place of an epoch.
        chain = dataclasses.replace(chain, slots_per_epoch=chain.slots_per_epoch * length)
        proposals = proposals.with_columns(epoch=pl.col("epoch") // length)
        validators = validators.with_columns(
            pl.col("activation_epoch") // length, pl.col("exit_epoch") // length
        )
        balances = stats.select(
            _VALIDATOR,
            epoch="day",
            effective_balance_gwei=pl.col("start_effective_balance_gwei"),
        )
    options: dict[str, Any] = {"validators": validators, "chain": chain}
    found = {"luck": analysis.proposal_luck(proposals, balances, epochs, by=(), **options)}
    if inputs.groups is not None:
        labelled = balances.join(inputs.groups, on=_VALIDATOR)
        found["group_luck"] = analysis.proposal_luck(
            proposals, labelled, epochs, by="group", **options
        )
    return found


def _build_sync(inputs: Inputs, frames: Frames) -> Frames:
    """Return duties in sync committees, by period and by epoch."""
    if inputs.has_epochs:
        (income,) = _require(inputs, "income")
        return {
            "sync": analysis.sync_income(income, chain=inputs.chain),
            "sync_epochs": analysis.sync_income(income, every="epoch", chain=inputs.chain),
        }
    (stats,) = _require(inputs, "stats")
    signed, missed = pl.sum("participated_sync"), pl.sum("missed_sync")
    sums = stats.group_by(_VALIDATOR).agg(signed=signed, missed=missed)
    sums = sums.filter(pl.col("signed") + pl.col("missed") > 0)
    rate = pl.col("signed") / (pl.col("signed") + pl.col("missed"))
    return {"sync": sums.with_columns(signed_rate=rate).sort(_VALIDATOR)}


def _build_withdrawals(inputs: Inputs, frames: Frames) -> Frames:
    """Return withdrawals by day."""
    if "days" not in frames:
        raise PartMissing("there is no daily income")
    if inputs.has_epochs:
        _require(inputs, "withdrawals")
    days = frames["days"].filter(pl.col("withdrawals_gwei") > 0)
    return {
        "withdrawals": days.group_by("date")
        .agg(validators=pl.len().cast(pl.Int64), withdrawals_gwei=pl.sum("withdrawals_gwei"))
        .sort("date")
    }


def _build_problems(inputs: Inputs, frames: Frames) -> Frames:
    """Return what was lost, and what to look at."""
    (validators,) = _require(inputs, "validators")
    return {
        "problems": analysis.problems(
            validators,
            inputs.get("income"),
            inputs.get("balances"),
            stats=inputs.get("stats"),
            proposals=inputs.get("proposals"),
            blocks=inputs.get("blocks"),
            network=inputs.get("network"),
            epoch=inputs.last,
            chain=inputs.chain,
        )
    }


def _build_validators(inputs: Inputs, frames: Frames) -> Frames:
    """Return one row per validator, with all of its figures."""
    (validators,) = _require(inputs, "validators")
    credentials = {"0x00": "BLS", "0x01": "address", "0x02": "compounding"}
    prefix = pl.col("withdrawal_credentials").str.slice(0, 4)
    table = validators.select(
        _VALIDATOR,
        "name",
        "status",
        "slashed",
        "balance_gwei",
        "effective_balance_gwei",
        credentials=prefix.replace_strict(credentials, default=None),
    )
    if inputs.groups is not None:
        table = table.join(inputs.groups, on=_VALIDATOR, how="left")
    for part in _list_columns_of_validators(inputs, frames):
        table = table.join(part, on=_VALIDATOR, how="left")
    counts = [name for name in ("proposed", "missed", "orphaned") if name in table.columns]
    table = table.with_columns(pl.col(*counts).fill_null(0)) if counts else table
    return {"validators": table.sort(_VALIDATOR)}


def _list_columns_of_validators(inputs: Inputs, frames: Frames) -> list[pl.DataFrame]:
    """Return the columns that each part adds to the table of validators."""
    found = []
    if "days" in frames:
        names = ["consensus_income_gwei", "execution_income_wei", "net_income_wei"]
        sums = frames["days"].group_by(_VALIDATOR).agg(_sum_known(name) for name in names)
        found.append(sums)
    income, balances = inputs.get("income"), inputs.get("balances")
    if income is not None and balances is not None:
        rates = analysis.apr(
            income, balances, blocks=inputs.get("blocks"), every="all", by=_VALIDATOR,
            chain=inputs.chain,
        )  # fmt: skip
        found.append(rates.select(_VALIDATOR, "apr_on_effective"))
    elif "days" in frames and not inputs.has_epochs:
        found.append(_compute_rates_of_days(frames["days"]))
    if income is not None:
        votes = analysis.attestation_rates(income, every="all", by=_VALIDATOR)
        found.append(
            votes.select(_VALIDATOR, "votes", "effectiveness", votes_missed=pl.col("missed"))
        )
    stats = inputs.get("stats")
    if stats is not None:
        found.append(stats.group_by(_VALIDATOR).agg(votes_missed=pl.sum("missed_attestations")))
    if "proposals" in frames:
        outcomes = ("proposed", "missed", "orphaned")
        status = pl.col("status")
        found.append(
            frames["proposals"]
            .group_by(validator_index="proposer_index")
            .agg((status == name).sum().cast(pl.Int64).alias(name) for name in outcomes)
        )
    if "sync" in frames:
        rate = pl.col("signed_rate").mean()
        if inputs.has_epochs:
            rate = pl.sum("reward_gwei") / (pl.sum("reward_gwei") + pl.sum("penalty_gwei"))
        found.append(frames["sync"].group_by(_VALIDATOR).agg(sync_rate=rate))
    if "problems" in frames:
        problems = frames["problems"].drop_nulls(_VALIDATOR)
        found.append(problems.group_by(_VALIDATOR).agg(lost_gwei=pl.sum("cost_gwei")))
    return found


def _compute_rates_of_days(days: pl.DataFrame) -> pl.DataFrame:
    """Return the yearly rate of each validator on its effective balance."""
    net = _sum_known("net_income_wei").cast(pl.Float64) / _WEI_PER_GWEI
    stake = pl.sum("effective_balance_gwei")
    days = days.filter(pl.col("effective_balance_gwei") > 0)
    return days.group_by(_VALIDATOR).agg(
        apr_on_effective=pl.when(stake > 0).then(365 * net / stake)
    )


def _build_groups(inputs: Inputs, frames: Frames) -> Frames:
    """Return groups compared with all others; nothing if no groups are given."""
    if inputs.groups is None:
        return {}
    if "validators" not in frames:
        raise PartMissing("there are no figures of validators")
    table = frames["validators"]
    names = ("apr_on_effective", "effectiveness", "sync_rate", "votes_missed", "lost_gwei")
    values = [name for name in names if name in table.columns]
    shares = {}
    if {"proposed", "missed", "orphaned"} <= set(table.columns):
        table = table.with_columns(drawn=pl.sum_horizontal("proposed", "missed", "orphaned"))
        shares = {"proposed": ("proposed", "drawn")}
    return {"groups": analysis.compare_groups(table, by="group", values=values, shares=shares)}


def _build_upcoming(inputs: Inputs, frames: Frames) -> Frames:
    """Return what is known of the future: duties, committees, exits and activations."""
    schema: dict[str, Any] = {
        "kind": pl.String,
        _VALIDATOR: pl.Int64,
        "since": pl.Datetime("us", "UTC"),
        "until": pl.Datetime("us", "UTC"),
        "slot": pl.Int64,
        "first_epoch": pl.Int64,
        "last_epoch": pl.Int64,
    }
    chain = inputs.chain
    mine = pl.col(_VALIDATOR).is_in(inputs.indices)
    parts = [pl.DataFrame(schema=schema)]
    for name, kind in (("committees", "in sync committee"), ("next_committees", "sync committee")):
        seats = inputs.get(name)
        if seats is not None:
            own = seats.filter(mine).unique([_VALIDATOR], maintain_order=True)
            parts.append(
                own.select(
                    _VALIDATOR,
                    kind=pl.lit(kind),
                    first_epoch="start_epoch",
                    last_epoch="end_epoch",
                )
            )
    duties = inputs.get("duties")
    if duties is not None and {"duty", "slot", _VALIDATOR} <= set(duties.columns):
        blocks = duties.filter(mine, pl.col("duty").str.contains("propos"))
        epoch = pl.col("slot") // chain.slots_per_epoch
        parts.append(
            blocks.select(
                _VALIDATOR,
                kind=pl.lit("proposal"),
                slot=pl.col("slot").cast(pl.Int64),
                since=chain.time_expr("slot", pl.col("slot")),
                until=chain.time_expr("slot", pl.col("slot") + 1),
                first_epoch=epoch,
                last_epoch=epoch,
            )
        )
    (validators,) = _require(inputs, "validators")
    for column, kind in (
        ("activation_epoch", "activation"),
        ("exit_epoch", "exit"),
        ("withdrawable_epoch", "full withdrawal"),
    ):
        later = validators.filter(pl.col(column) > inputs.last)
        parts.append(
            later.select(
                _VALIDATOR, kind=pl.lit(kind), first_epoch=pl.col(column), last_epoch=pl.col(column)
            )
        )
    rows = pl.concat(parts, how="diagonal")
    first, last = pl.col("first_epoch"), pl.col("last_epoch")
    # "Never" is an epoch of a service that does not use null.
    rows = rows.filter(last < 2**40).with_columns(
        since=pl.coalesce("since", chain.time_expr("epoch", first)),
        until=pl.coalesce("until", chain.time_expr("epoch", last + 1)),
    )
    found = {"upcoming": rows.select(*schema).sort("first_epoch", "kind", _VALIDATOR)}
    queue = inputs.get("queue")
    return found if queue is None else found | {"queue": queue}


def _build_missed_rewards(inputs: Inputs, frames: Frames) -> Frames:
    """Return what V2 states as missed rewards, by duty."""
    (rewards,) = _require(inputs, "missed_rewards")
    names = {
        "attestation_head_missed_wei": "head votes",
        "attestation_source_missed_wei": "source votes",
        "attestation_target_missed_wei": "target votes",
        "sync_committee_missed_wei": "sync committees",
        "proposal_missed_cl_reward_wei": "blocks, consensus layer",
        "proposal_missed_el_reward_wei": "blocks, execution layer",
        "total_missed_wei": "total",
    }
    row = rewards.row(0, named=True)
    return {
        "missed_rewards": pl.DataFrame(
            {"duty": list(names.values()), "missed_wei": [row[name] for name in names]},
            schema={"duty": pl.String, "missed_wei": _ETH_TYPE},
        ).with_columns(
            window=pl.lit(row["window"]),
            first_epoch=pl.lit(row["first_epoch"], pl.Int64),
            last_epoch=pl.lit(row["last_epoch"], pl.Int64),
        )
    }


def _build_reconciliation(inputs: Inputs, frames: Frames) -> Frames:
    """Return whether the balances reconcile with income, deposits and withdrawals."""
    if not inputs.has_epochs:
        raise PartMissing("daily statistics have no income to compare with balances")
    income, balances, withdrawals = _require(inputs, "income", "balances", "withdrawals")
    changes = analysis.reconcile(
        balances,
        income,
        withdrawals=withdrawals,
        deposits=inputs.get("deposits"),
        validators=inputs.get("validators"),
        chain=inputs.chain,
    )
    unexplained = changes.filter(pl.col("unexplained_gwei") != 0)
    return {
        "reconciliation": changes.select(
            changes=pl.len().cast(pl.Int64),
            explained=(pl.col("unexplained_gwei") == 0).sum().cast(pl.Int64),
            unexplained=(pl.col("unexplained_gwei") != 0).sum().cast(pl.Int64),
            unexplained_gwei=pl.sum("unexplained_gwei"),
            with_possible_cause=pl.col("possible_cause")
            .filter(pl.col("unexplained_gwei") != 0)
            .count()
            .cast(pl.Int64),
        ),
        "unexplained": unexplained,
    }


def _build_inputs(inputs: Inputs, frames: Frames) -> Frames:
    """Return the frames that were loaded or not, and their missing rows."""
    rows = [
        (
            item.name,
            item.loader,
            "missing"
            if item.rows is None
            else "incomplete"
            if item.missing is not None
            else "complete",
            None if item.rows is None else item.rows.height,
            0 if item.missing is None else item.missing.height,
            item.requests,
            item.reason,
        )
        for item in inputs.items.values()
    ]
    schema = {
        "input": pl.String,
        "loader": pl.String,
        "state": pl.String,
        "rows": pl.Int64,
        "gaps": pl.Int64,
        "requests": pl.Int64,
        "reason": pl.String,
    }
    gaps = [
        item.missing.with_columns(input=pl.lit(item.name))
        for item in inputs.items.values()
        if item.missing is not None
    ]
    empty = pl.DataFrame(schema={"input": pl.String, "reason": pl.String})
    missing = pl.concat([empty, *gaps], how="diagonal_relaxed")
    return {"inputs": pl.DataFrame(rows, schema, orient="row"), "missing": missing}


def _build_facts(inputs: Inputs, frames: Frames) -> Frames:
    """Return where the rows come from."""
    explorer, chain = inputs.explorer, inputs.chain
    head = explorer.chain_head
    simulated = explorer.about.get("simulated")
    facts = {
        "source": _name_source(explorer),
        "service": explorer.about.get("service"),
        "chain": chain.name,
        "simulated": None if simulated is None else ("yes" if simulated else "no"),
        "detail": "every epoch" if inputs.has_epochs else "daily statistics",
        "days": inputs.tz if inputs.has_epochs else "of the chain, from the hour of genesis",
        "first epoch": inputs.first,
        "last epoch": inputs.last,
        "head epoch": head.latest("epoch"),
        "finalized epoch": head.latest("epoch", finalized=True),
        "requests": sum(item.requests for item in inputs.items.values()),
        "made at": inputs.made_at.isoformat(timespec="seconds"),
        "beaconframes": version("beaconframes"),
        "polars": pl.__version__,
    }
    known = [(name, str(value)) for name, value in facts.items() if value is not None]
    return {"facts": pl.DataFrame(known, ["fact", "value"], orient="row")}


def _name_source(explorer: Explorer) -> str:
    """Return the address of a service, or the name of a dataset's folder, without its path."""
    host = explorer.read_quota().host
    return Path(host).name if Path(host).is_absolute() else host


def _build_summary(inputs: Inputs, frames: Frames) -> Frames:
    """Return the answer in one row."""
    (validators,) = _require(inputs, "validators")
    chain = inputs.chain
    active = validators.filter(
        pl.col("activation_epoch") <= inputs.last,
        pl.col("exit_epoch").is_null() | (pl.col("exit_epoch") > inputs.last),
    )
    summary = pl.DataFrame(
        {
            "validators": [validators.height],
            "active": [active.height],
            "since": [chain.time_of("epoch", inputs.first)],
            "until": [chain.time_of("epoch", inputs.last + 1)],
            "first_epoch": [inputs.first],
            "last_epoch": [inputs.last],
        }
    )
    parts = [summary]
    parts += _count_income_epochs(inputs)
    if "income" in frames:
        names = ["consensus_income_gwei", "execution_income_wei", "net_income_wei"]
        names += ["withdrawals_gwei"]
        parts.append(
            frames["income"].select(
                *(_sum_known(name) for name in names), pl.col("execution_income_basis").max()
            )
        )
    blocks = inputs.get("blocks")
    if blocks is not None:
        paid = pl.col("producer_reward_wei").filter(pl.col("relay_tag").is_not_null())
        parts.append(
            blocks.select(
                relay_payments_wei=paid.sum().cast(_ETH_TYPE), blocks=pl.len().cast(pl.Int64)
            )
        )
    if "rate" in frames:
        names = ["apr_on_32_eth", "apr_on_effective", "apr_as_index", "index_apr", "difference_bp"]
        names += ["cl_apr_on_effective"]
        parts.append(frames["rate"].select(n for n in names if n in frames["rate"].columns))
    if "network" in frames:
        measures = frames["network"].filter(pl.col("measure") == "effectiveness")
        parts.append(measures.select(effectiveness="own", network_effectiveness="network"))
    elif "effectiveness" in frames:
        rows = frames["effectiveness"]
        if "effectiveness" in rows.columns:
            mean = (pl.col("effectiveness") * pl.col("votes")).sum() / pl.sum("votes")
            parts.append(rows.select(effectiveness=mean))
    if "effectiveness" in frames:
        share = 1 - pl.sum("missed") / pl.sum("votes")
        parts.append(frames["effectiveness"].select(included_rate=share))
    if "problems" in frames:
        parts.append(_sum_costs(inputs, frames["problems"]))
    if "value" in frames:
        known = pl.col("income_value").is_not_null()
        parts.append(
            frames["value"].select(
                income_value=pl.sum("income_value"),
                currency=pl.lit(inputs.price),
                days_without_price=(~known).sum().cast(pl.Int64),
            )
        )
    return {"summary": pl.concat([part.head(1) for part in parts], how="horizontal")}


def _count_income_epochs(inputs: Inputs) -> list[pl.DataFrame]:
    """Return how many epochs the income covers: the source can miss others."""
    income, stats = inputs.get("income"), inputs.get("stats")
    if income is not None:
        return [income.select(income_epochs=pl.col("epoch").n_unique().cast(pl.Int64))]
    if stats is None:
        return []
    length = inputs.chain.epochs_per_day
    days = stats.filter(pl.col("day").is_between(inputs.first // length, inputs.last // length))
    return [days.select(income_epochs=pl.col("day").n_unique().cast(pl.Int64) * length)]


def _sum_costs(inputs: Inputs, problems: pl.DataFrame) -> pl.DataFrame:
    """Return what was lost, and whether it could have been avoided; null without income."""
    cost, avoidable = pl.col("cost_gwei"), pl.col("avoidable")
    if inputs.get("income") is None and inputs.get("stats") is None:
        cost = pl.lit(None, pl.Int64)
        names = ("lost_gwei", "avoidable_gwei", "unavoidable_gwei", "unknown_gwei")
        return pl.select(*(cost.alias(name) for name in names), cost_unknown=problems.height)
    return problems.select(
        lost_gwei=cost.sum(),
        avoidable_gwei=cost.filter(avoidable).sum(),
        unavoidable_gwei=cost.filter(~avoidable).sum(),
        unknown_gwei=cost.filter(avoidable.is_null()).sum(),
        cost_unknown=cost.is_null().sum().cast(pl.Int64),
    )


_PARTS: dict[str, Callable[[Inputs, Frames], Frames]] = {
    "income": _build_days,
    "value": _build_value,
    "rates": _build_rates,
    "effectiveness": _build_effectiveness,
    "balances": _build_balances,
    "proposals": _build_proposals,
    "sync": _build_sync,
    "withdrawals": _build_withdrawals,
    "problems": _build_problems,
    "validators": _build_validators,
    "groups": _build_groups,
    "upcoming": _build_upcoming,
    "missed rewards": _build_missed_rewards,
    "reconciliation": _build_reconciliation,
    "inputs": _build_inputs,
    "facts": _build_facts,
    "summary": _build_summary,
}
