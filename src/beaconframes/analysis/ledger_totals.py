"""Totals of a ledger: by day, validator or tax year."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.analysis.aggregation import sum_known
from beaconframes.analysis.engines import (
    check_distinct,
    list_columns,
    open_frame,
    return_table,
    sum_by,
)
from beaconframes.analysis.execution_income import BASIS
from beaconframes.analysis.valuation import KEYS, PRICE, VALUES
from beaconframes.errors import UsageError
from beaconframes.frames import collect, list_column_names
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narwhals.stable.v2.typing import IntoFrameT

    from beaconframes.analysis.engines import Lazy

_NO_PRICE = "days_without_price"
_WEI = pl.Decimal(28, 0)
_BALANCE = "effective_balance_gwei"


@show_elapsed
def ledger_totals(ledger: IntoFrameT, *, by: str | Sequence[str] = "date") -> IntoFrameT:
    """Add up a ledger. One row per day, or per group.

    Parameters
    ----------
    ledger
        Frame of `ledger` or `daily_income`.
    by
        Group columns: ``"date"``, ``"validator_index"`` or columns of your own; ``()`` for one row.

    Returns
    -------
    The same kind of frame
        The columns of *by*, the number of ``validators``, and the sums of all amounts. A sum is
        null if an amount is unknown. ``execution_income_basis`` is that of the rows; if they
        differ, the last one in the alphabet, which is ``unknown`` where there is one. With prices:
        the sums of the values, null if no day has a price, and ``days_without_price``. Sorted. This
        computes eagerly.
    """
    groups = list_columns(by, {"validators", "days_without_price"})
    source, amounts, values = _open(ledger, ["validator_index", *groups])
    amounts = [name for name in amounts if name != _BALANCE]
    list_columns(groups, {*amounts, *values})
    check_distinct(ledger, KEYS, groups, loader="analysis.ledger")
    totals = [_sum_amount(name) for name in amounts]
    has_basis = BASIS in list_column_names(ledger) and BASIS not in groups
    totals += [pl.col(BASIS).max()] if has_basis else []
    totals += [_sum_values(name) for name in values] + _count_days_without_price(values)
    count = pl.col("validator_index").n_unique().cast(pl.Int64).alias("validators")
    result = sum_by(_collect(source, values), groups, count, *totals)
    return return_table(result.cast(dict.fromkeys(values, PRICE)), source, ledger)


@show_elapsed
def yearly_totals(ledger: IntoFrameT, *, starts: str = "01-01") -> IntoFrameT:
    """Add up a ledger by tax year. One row per year.

    Parameters
    ----------
    ledger
        Frame of `ledger`; its time zone is that of the year.
    starts
        First day of the year, as month and day: ``"04-06"`` in the United Kingdom, ``"07-01"`` in
        Australia.

    Returns
    -------
    The same kind of frame
        ``year`` (the one in which it begins), ``first_date`` and ``last_date`` of the rows, the
        sums of all amounts, and with prices those of the values. ``days_without_price`` is the
        number of days whose values are unknown, and not in the sums. A sum in wei is null if an
        amount is unknown. Sorted. This computes eagerly.
    """
    month, day = _parse_start(starts)
    source, amounts, values = _open(ledger, [])
    check_distinct(ledger, KEYS, loader="analysis.ledger")
    rows = _collect(source, values)
    month_day = pl.col("date").dt.month().cast(pl.Int32) * 100 + pl.col("date").dt.day()
    has_begun = month_day >= month * 100 + day
    year = pl.col("date").dt.year() - (~has_begun).cast(pl.Int32)
    sums = [_sum_amount(n) if n.endswith("_wei") else pl.sum(n) for n in amounts]
    sums += [pl.sum(name) for name in values] + _count_days_without_price(values)
    result = (
        rows.group_by(year.cast(pl.Int64).alias("year"))
        .agg(pl.min("date").alias("first_date"), pl.max("date").alias("last_date"), *sums)
        .sort("year")
    )
    return return_table(result.cast(dict.fromkeys(values, PRICE)), source, ledger)


def _open(ledger: IntoFrameT, columns: list[str]) -> tuple[Lazy, list[str], list[str]]:
    """Open a ledger with *columns*; also return the names of its amounts and of its values."""
    names = list_column_names(ledger)
    amounts = [name for name in names if name.endswith(("_gwei", "_wei"))]
    if not amounts and any(name.endswith("_eth") for name in names):
        raise UsageError(
            "the amounts of the ledger are in ETH",
            hint="Pass the frame before bf.to_eth(...) converts it, and convert the totals.",
        )
    values = [name for name in VALUES if name in names]
    texts = [BASIS] if BASIS in names else []
    needed = ["date", *columns, *amounts, *values, *texts]
    return open_frame(ledger, needed, loader="analysis.ledger"), amounts, values


def _collect(source: Lazy, values: list[str]) -> pl.DataFrame:
    # A day of pandas is a time, and a column of objects without a value is a text.
    return collect(source).cast({"date": pl.Date}).cast(dict.fromkeys(values, PRICE))


def _sum_amount(name: str) -> pl.Expr:
    """Return a sum; null if an amount is unknown."""
    total = sum_known(pl.col(name))
    return total.cast(_WEI) if name.endswith("_wei") else total


def _sum_values(name: str) -> pl.Expr:
    """Return the sum of the known values; null if there is none, because 0 would be a value."""
    total = pl.when(pl.col(name).is_not_null().any()).then(pl.col(name).sum())
    return total.alias(name)


def _count_days_without_price(values: list[str]) -> list[pl.Expr]:
    if not values:
        return []
    unknown = pl.col("date").filter(pl.col(values[0]).is_null()).n_unique()
    return [unknown.cast(pl.Int64).alias(_NO_PRICE)]


def _parse_start(text: str) -> tuple[int, int]:
    """Return month and day of the first day of a year; February 29 is not one of every year."""
    try:
        first = datetime.strptime(f"2001-{text}", "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise UsageError(
            f"starts={text!r} is not a month and a day", hint='Such as "01-01" or "04-06".'
        ) from None
    return first.month, first.day
