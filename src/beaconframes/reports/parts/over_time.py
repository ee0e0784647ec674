"""What happened over time: income, rates, votes, balances, proposals, sync duties, withdrawals."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes import analysis
from beaconframes.analysis.binomial import adjust_p_values
from beaconframes.analysis.valuation import add_values, find_daily_prices
from beaconframes.errors import UsageError
from beaconframes.reports.input_frames import PartMissing

if TYPE_CHECKING:
    from beaconframes.calendar import Chain
    from beaconframes.reports.input_frames import Frames, Inputs


_VALUES = ["income_value", "withdrawals_value"]
_RANGES = ["drawn_low", "drawn_high", "luck_low", "luck_high"]


def build_income(inputs: Inputs, frames: Frames) -> Frames:
    """Return income and withdrawals by day and validator, and by day."""
    found: Frames = {}
    if inputs.has_epochs:
        (income,) = inputs.require("income")
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
        (stats,) = inputs.require("stats")
        days = analysis.daily_income(stats, inputs.get("blocks"), chain=inputs.chain)
        if inputs.prices is not None:
            daily = find_daily_prices(inputs.prices, inputs.price, inputs.chain)
            days = add_values(days, daily, inputs.price)
        gaps = analysis.daily_income_gaps(stats, inputs.get("blocks"), chain=inputs.chain)
        found = {"income_gaps": gaps} if gaps.height else {}
    if days.is_empty():
        raise PartMissing("no validator has income in this range")
    totals = analysis.ledger_totals(days)
    totals = totals.drop(*_VALUES, "days_without_price", strict=False)
    return found | {"days": days, "income": totals.with_columns(complete=_is_whole_day(inputs))}


def _is_whole_day(inputs: Inputs) -> pl.Expr:
    """Return whether all epochs of a ``date`` are in the range; days of statistics are whole."""
    if not inputs.has_epochs:
        return pl.lit(value=True)
    begin, end = (
        pl.col("date")
        .cast(pl.Datetime("us"))
        .dt.offset_by(days)
        .dt.replace_time_zone(inputs.tz, ambiguous="earliest", non_existent="null")
        .dt.convert_time_zone("UTC")
        for days in ("0d", "1d")
    )
    # The first epoch of a day is the first one that begins in it.
    before = inputs.chain.time_of("epoch", 1) - inputs.chain.genesis
    since, until = (inputs.chain.time_of("epoch", n) for n in (inputs.first, inputs.last + 1))
    return ((begin > since - before) & (end <= until)).fill_null(value=True)


def _check_blocks(inputs: Inputs) -> None:
    """Leave out the blocks if they are not those of the income; the report states priority fees."""
    income, blocks = inputs.get("income"), inputs.get("blocks")
    if income is None or blocks is None:
        return
    try:
        analysis.income(income, blocks=blocks, every="all")
    except UsageError as error:
        inputs.drop("blocks", error.message)


def build_value(inputs: Inputs, frames: Frames) -> Frames:
    """Return the value at receipt by day and by tax year; nothing if no prices are given."""
    if inputs.prices is None:
        return {}
    days = _require_days(frames)
    prices = days.select("date", inputs.price, "price_time").unique("date")
    totals = analysis.ledger_totals(days).join(prices, on="date", maintain_order="left")
    value = totals.select("date", inputs.price, "price_time", "net_income_wei", *_VALUES)
    return {"value": value, "years": analysis.yearly_totals(days)}


def build_rates(inputs: Inputs, frames: Frames) -> Frames:
    """Return yearly rates by day, beside the yield index."""
    index, chain = inputs.get("index"), inputs.chain
    (validators,) = inputs.require("validators")
    options: dict[str, Any] = {"validators": validators, "chain": chain}
    if inputs.has_epochs:
        income, balances = inputs.require("income", "balances")
        options["blocks"] = inputs.get("blocks")
        rates, rate = (
            analysis.apr(income, balances, index, every=every, **options)
            for every in ("day", "all")
        )
    else:
        days = _require_days(frames)
        rates, rate = (
            analysis.daily_rates(days, index, every=every, **options) for every in ("day", "all")
        )
    # A day of the chain begins at the hour of genesis; its date is that of UTC.
    date = chain.time_expr("day", pl.col("day")).dt.date()
    return {"rates": rates.with_columns(date=date), "rate": rate}


def _require_days(frames: Frames) -> pl.DataFrame:
    if "days" not in frames:
        raise PartMissing("there is no daily income")
    return frames["days"]


def build_effectiveness(inputs: Inputs, frames: Frames) -> Frames:
    """Return the effectiveness of votes by day, and beside the network."""
    if not inputs.has_epochs:
        stats, validators = inputs.require("stats", "validators")
        return {"effectiveness": analysis.daily_votes(stats, validators, chain=inputs.chain)}
    (income,) = inputs.require("income")
    rates = analysis.attestation_rates(income, validators=inputs.get("validators"), tz=inputs.tz)
    network = inputs.get("network")
    found = {"effectiveness": rates}
    if network is not None:
        compared = analysis.compare_with_network(rates, network)
        found["network"] = compared.join(_read_window(network, inputs.chain), how="cross")
    return found


def _read_window(network: pl.DataFrame, chain: Chain) -> pl.DataFrame:
    """Return when the window of the network begins and ends: it is not that of the report."""
    known = network.select("first_epoch", "last_epoch").drop_nulls().head(1)
    times = [
        (chain.time_of("epoch", first), chain.time_of("epoch", last + 1))
        for first, last in known.iter_rows()
    ]
    schema = dict.fromkeys(("since", "until"), pl.Datetime("us", "UTC"))
    return pl.DataFrame(times or [(None, None)], schema, orient="row")


def build_balances(inputs: Inputs, frames: Frames) -> Frames:
    """Return balances at the end of each day, with their spread."""
    if inputs.has_epochs:
        (balances,) = inputs.require("balances")
        # Those after the last epoch are for the check of the balances alone.
        balances = balances.filter(pl.col("epoch") <= inputs.last)
        return {"balances": analysis.daily_balances(balances, tz=inputs.tz)}
    (stats,) = inputs.require("stats")
    ends = stats.select(
        "validator_index",
        "time",
        epoch="day",
        balance_gwei="end_balance_gwei",
        effective_balance_gwei="end_effective_balance_gwei",
    )
    return {"balances": analysis.daily_balances(ends)}


def build_proposals(inputs: Inputs, frames: Frames) -> Frames:
    """Return proposals with their rewards or costs."""
    (proposals,) = inputs.require("proposals")
    if not inputs.has_epochs:
        proposals = _add_blocks(proposals, inputs.get("blocks"))
    options = {name: inputs.get(name) for name in ("blocks", "income", "stats", "index")}
    outcomes = analysis.proposal_outcomes(proposals, chain=inputs.chain, **options)
    return {"proposals": outcomes}


def _add_blocks(proposals: pl.DataFrame, blocks: pl.DataFrame | None) -> pl.DataFrame:
    """Add proposed blocks: with daily statistics, only missed proposals are loaded as such."""
    if blocks is None:
        return proposals
    columns = ["slot", "epoch", "time", "proposer_index"]
    others = blocks.drop_nulls("slot").join(proposals, on="slot", how="anti").select(columns)
    return pl.concat([proposals, others.with_columns(status=pl.lit("proposed"))], how="diagonal")


def build_luck(inputs: Inputs, frames: Frames) -> Frames:
    """Return proposals and sync seats beside their expected numbers, also by group."""
    index, validators = inputs.get("index"), inputs.get("validators")
    rows = inputs.get("balances" if inputs.has_epochs else "stats")
    if index is None or index.is_empty() or validators is None or rows is None:
        return {}
    index = _add_missing_days(inputs, index)
    found = _compare_with_chance(inputs, frames, rows, index, ())
    if inputs.groups is not None:
        labeled = rows.join(inputs.groups, on="validator_index")
        tables = _compare_with_chance(inputs, frames, labeled, index, "group")
        found |= {f"group_{name}": table for name, table in tables.items()}
    return _correct_p_values({name: table.drop(_RANGES) for name, table in found.items()})


def _add_missing_days(inputs: Inputs, index: pl.DataFrame) -> pl.DataFrame:
    """Return the index for all days of the range, as all proposals count.

    A day that is not in it has the balances of the nearest one, as in the comparison with average
    validators.
    """
    length = inputs.chain.epochs_per_day
    days = pl.DataFrame({"day": range(inputs.first // length, inputs.last // length + 1)})
    known = index.drop_nulls(["day", "effective_balances_sum_wei"]).unique("day").sort("day")
    return days.join_asof(known, on="day", strategy="nearest").drop("time")


def _correct_p_values(tables: Frames) -> Frames:
    """Add p-values that are corrected for the number of comparisons in all *tables* together."""
    values = [value for table in tables.values() for value in table["p_value"]]
    corrected = iter(adjust_p_values(values))
    return {
        name: table.with_columns(
            p_corrected=pl.Series([*islice(corrected, table.height)], dtype=pl.Float64)
        )
        for name, table in tables.items()
    }


def _compare_with_chance(
    inputs: Inputs,
    frames: Frames,
    rows: pl.DataFrame,
    index: pl.DataFrame,
    by: str | tuple[()],
) -> Frames:
    """Return the luck of all validators together, or of each group, from the yield index."""
    (validators,) = inputs.require("validators")
    proposals = frames.get("proposals")
    options: dict[str, Any] = {"validators": validators, "by": by, "chain": inputs.chain}
    if not inputs.has_epochs:
        if proposals is None or inputs.get("blocks") is None:
            return {}
        return {"luck": analysis.daily_luck(proposals, rows, index, **options)}
    rows = rows.filter(pl.col("epoch") <= inputs.last)
    totals = analysis.total_balances(index, chain=inputs.chain)
    found = {}
    if proposals is not None:
        found["luck"] = analysis.proposal_luck(proposals, rows, totals, **options)
    committees = inputs.list_committees("selected_committees")
    if committees is not None:
        # A committee counts if the epoch in which it was selected is in the range.
        seats = analysis.sync_luck(committees, rows, totals, **options)
        if seats.filter(pl.col("expected") > 0).height:
            found["sync_luck"] = seats.with_columns(selected=len(inputs.list_selected_periods()))
    return found


def build_sync(inputs: Inputs, frames: Frames) -> Frames:
    """Return duties in sync committees, by period and by epoch."""
    if not inputs.has_epochs:
        (stats,) = inputs.require("stats")
        return {"sync": analysis.daily_sync(stats)}
    (income,) = inputs.require("income")
    return {
        "sync": analysis.sync_income(income, chain=inputs.chain),
        "sync_epochs": analysis.sync_income(income, every="epoch", chain=inputs.chain),
    }


def build_withdrawals(inputs: Inputs, frames: Frames) -> Frames:
    """Return withdrawals by day."""
    days = _require_days(frames)
    if inputs.has_epochs:
        inputs.require("withdrawals")
    totals = analysis.ledger_totals(days.filter(pl.col("withdrawals_gwei") > 0))
    return {"withdrawals": totals.select("date", "validators", "withdrawals_gwei")}
