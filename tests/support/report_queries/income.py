"""Income, balances, values and withdrawals of a report."""

from __future__ import annotations

import functools
import math
from collections import Counter
from decimal import ROUND_HALF_UP, Decimal

import polars as pl

from .source import KINDS, SUMS, Source


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
    epochs = Counter(source.time(epoch).date() for epoch in range(source.first, source.last + 1))
    whole = [day for day, count in epochs.items() if count == source.day]
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
        .with_columns(complete=pl.col("date").is_in(whole))
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


def query_balances(source: Source) -> pl.DataFrame:
    """Balances of the last epoch of each day."""
    rows = []
    of_report = source.balances.filter(pl.col("epoch") <= source.last).sort("date")
    for (date,), day in of_report.group_by("date", maintain_order=True):
        last = day.filter(pl.col("epoch") == day["epoch"].max())
        balances = sorted(last["balance_gwei"])
        quantiles = [balances[math.floor(q * (len(balances) - 1) / 10)] for q in (1, 5, 9)]
        stake = sum(last["effective_balance_gwei"])
        rows.append((date, len(balances), sum(balances), stake, *quantiles))
    names = ("validators", "balance_gwei", "effective_balance_gwei")
    spread = [f"balance_p{q}_gwei" for q in (10, 50, 90)]
    return pl.DataFrame(rows, ["date", *names, *spread], orient="row")


def query_withdrawals(source: Source) -> pl.DataFrame:
    """Withdrawals by day."""
    return (
        source.withdrawals.group_by("date")
        .agg(
            validators=pl.col("validator_index").n_unique(), withdrawals_gwei=pl.sum("amount_gwei")
        )
        .sort("date")
    )
