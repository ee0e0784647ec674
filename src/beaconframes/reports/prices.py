"""Prices of 1 ETH for a report: a frame, or a CSV file; and the bounds of a tax year."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.csv_rows import LINE, check_rows, read_csv_rows
from beaconframes.errors import UsageError
from beaconframes.frames import to_polars
from beaconframes.time_range import find_time_zone

if TYPE_CHECKING:
    from beaconframes.time_range import Moment

_FORMATS = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%+")
_PRICE = pl.Decimal(38, 8)
_HINT = "It needs a column time, such as 2026-10-01 or 2026-10-01T12:00:00Z, and one of prices"


def read_prices(prices: Any, price: str) -> pl.DataFrame | None:
    """Return ``time`` and *price* of a frame or of a CSV file; times without a zone are UTC."""
    if prices is None:
        return None
    if not isinstance(prices, str | os.PathLike):
        return to_polars(prices)
    return read_prices_file(Path(prices), price)


def read_prices_file(path: Path, price: str) -> pl.DataFrame:
    """Return ``time`` and *price* of a CSV file."""
    rows = read_csv_rows(path, ["time", price], f"{_HINT}, named by price=.")
    times = [
        pl.col("time").str.to_datetime(text, strict=False, time_zone="UTC") for text in _FORMATS
    ]
    time = pl.coalesce(times).cast(pl.Datetime("us", "UTC"))
    value = pl.col(price).cast(_PRICE, strict=False)
    check_rows(path, rows, time.is_not_null(), "time", f"{_HINT}.")
    check_rows(path, rows, value >= 0, price, "Write a number of 0 or more, such as 2500.25.")
    rows = rows.with_columns(time, value)
    _check_times(path, rows, price)
    return rows.select("time", price)


def _check_times(path: Path, rows: pl.DataFrame, price: str) -> None:
    first = pl.struct(LINE, price).first().over("time")
    other = rows.with_columns(first.alias("first")).filter(
        pl.col(price) != pl.col("first").struct.field(price)
    )
    if other.height:
        row = other.row(0, named=True)
        old, new = (f"{each.normalize():f}" for each in (row["first"][price], row[price]))
        raise UsageError(
            f"lines {row['first'][LINE]} and {row[LINE]} of {path} have two prices for "
            f"{row['time']:%Y-%m-%d %H:%M:%S} UTC: {old} and {new}",
            hint="Leave one of them out.",
        )


def find_year(
    year: int | str,
    tz: str,
    since: Moment | None,
    until: Moment | None,
    *,
    genesis: datetime,
    now: datetime,
) -> tuple[datetime, datetime]:
    """Return the first and the last instant of *year* in the time zone *tz*.

    The year of the *genesis* begins with it.
    """
    if since is not None or until is not None:
        raise UsageError(
            f"year={year!r} is a range already", hint="Leave out since= and until=, or year=."
        )
    text = str(year)
    if not (text.isascii() and text.isdigit() and len(text) == 4 and "0000" < text < "9999"):
        raise UsageError(f"year={year!r} is not a year", hint='Such as year="2026".')
    zone = find_time_zone(tz)
    first = datetime(int(text), 1, 1, tzinfo=zone)
    last = datetime(int(text) + 1, 1, 1, tzinfo=zone) - timedelta(microseconds=1)
    if last < genesis or first > now:
        raise UsageError(
            f"year={text!r} has no epoch: the chain is from {genesis:%Y-%m-%d} to {now:%Y-%m-%d}",
            hint="Give a year of this range.",
        )
    return max(first, genesis), last
