"""Prices of 1 ETH for a report: a frame, or a CSV file; and the bounds of a tax year."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.calendar import find_time_zone
from beaconframes.errors import UsageError
from beaconframes.frames import first_line, to_polars

if TYPE_CHECKING:
    from beaconframes.calendar import Moment

_FORMATS = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%+")
_PRICE = pl.Decimal(38, 8)
_HINT = "It needs a column time, such as 2026-10-01 or 2026-10-01T12:00:00Z, and one of prices."


def read_prices(prices: Any, price: str) -> pl.DataFrame | None:
    """Return ``time`` and *price* of a frame or of a CSV file; times without a zone are UTC."""
    if prices is None:
        return None
    if not isinstance(prices, str | os.PathLike):
        return to_polars(prices)
    path = Path(prices)
    try:
        rows = pl.read_csv(path, infer_schema=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise UsageError(
            f"prices: {path} cannot be read: {first_line(error)}", hint=_HINT
        ) from None
    if missing := [name for name in ("time", price) if name not in rows.columns]:
        raise UsageError(
            f"prices: {path} has no column {missing[0]}; its columns are {', '.join(rows.columns)}",
            hint=f'{_HINT} Pass the name of the latter as price, such as price="eur".',
        )
    times = [
        pl.col("time").str.to_datetime(text, strict=False, time_zone="UTC") for text in _FORMATS[:3]
    ]
    with_zone = pl.col("time").str.to_datetime(_FORMATS[3], strict=False, time_zone="UTC")
    rows = rows.select(
        pl.coalesce(*times, with_zone).cast(pl.Datetime("us", "UTC")).alias("time"),
        pl.col(price).str.strip_chars().cast(_PRICE, strict=False),
    )
    invalid = rows.with_row_index("line", offset=2).filter(pl.any_horizontal(pl.all().is_null()))
    if invalid.height:
        raise UsageError(
            f"prices: line {invalid['line'][0]} of {path} has no valid time or price", hint=_HINT
        )
    return rows


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
