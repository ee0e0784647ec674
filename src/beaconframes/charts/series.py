"""Series for charts: rows of a frame, times, amounts, and lines with gaps."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from beaconframes.errors import UsageError
from beaconframes.frames import collect, drop_missing, is_empty, select_columns
from beaconframes.text import shorten
from beaconframes.time_range import instants
from beaconframes.units import to_eth

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.charts.model import Flags, Floats, Positions

Unit = Literal["eth", "gwei", "wei"]

UNIT_NAMES = {"eth": "ETH", "gwei": "gwei", "wei": "wei"}
TIME_NAMES = {
    "slot": "Slot",
    "epoch": "Epoch",
    "hour": "Hour",
    "day": "Day",
    "week": "Week from Monday",
    "month": "Month",
}
LENGTHS = {"hour": "1h", "day": "1d", "week": "1w", "month": "1mo"}
MAX_NAMED = 10
"""More lines than this cannot be distinguished by colour."""
DAY_BAR = np.timedelta64(19, "h")
"""The width of the bar of a day."""
MARGINS = {
    "slot": np.timedelta64(1, "m"),
    "epoch": np.timedelta64(20, "m"),
    "day": np.timedelta64(36, "h"),
    "week": np.timedelta64(11, "D"),
    "month": np.timedelta64(45, "D"),
}
"""The time that an axis shows before and after a single moment."""
_MAX_INCHES = 200
_MARGIN = 1.5
_WHOLE_NUMBERS = {
    "validator_index": "indices",
    "proposer_index": "indices",
    "epoch": "epochs",
    "slot": "slots",
}
_PER_ETH = {"eth": 1.0, "gwei": 1e9, "wei": 1e18}
MIDNIGHT = pl.col("date").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
"""The start of the days in the column ``date``, in UTC."""
_SMALL_GWEI = 1_000_000
"""Amounts below 0.001 ETH are drawn in gwei: axes in ETH would need a power of ten."""


def read_rows(
    frame: IntoFrame, columns: Sequence[str], *, loader: str, also: Sequence[str] = ()
) -> pl.DataFrame:
    """Read *columns* into polars, without rows that have a null in one; *also* may be null.

    Validator indices, epochs and slots become integers, because they are shown on axes, in legends
    and in hover texts.
    """
    selected = select_columns(frame, [*columns, *also], loader=loader)
    rows = collect(drop_missing(selected, columns))
    for column, meaning in _WHOLE_NUMBERS.items():
        if column in rows.columns and not rows.schema[column].is_integer():
            is_float = rows.schema[column].is_float()
            wrong = rows[column].drop_nulls()
            wrong = wrong.filter(wrong != wrong.round()) if is_float else wrong
            if not wrong.is_empty():
                kind = "" if is_float else f"{rows.schema[column]}, "
                raise UsageError(
                    f"the column {column} holds {kind}{shorten(wrong[0])}, not {meaning}",
                    hint=f"Keep it as bf.{loader}(...) returns it.",
                )
            rows = rows.with_columns(pl.col(column).cast(pl.Int64))
    return rows


def explain_empty(frame: IntoFrame, what: str) -> str:
    """Return why the chart is empty: the frame has no rows, or *what* is missing."""
    return "no rows" if is_empty(frame) else what


def check_texts(**texts: object) -> None:
    """Raise a `UsageError` unless the title and the caption of a chart are texts or None."""
    for name, text in texts.items():
        if not isinstance(text, str | None):
            raise UsageError(
                f"{name}={text!r} is not a text", hint=f'Pass a text, such as {name}="Income 2026".'
            )


def check_figsize(figsize: object) -> tuple[float, float]:
    """Return width and height in inches; raise unless *figsize* is a pair of positive numbers."""
    try:
        width, height = (float(side) for side in figsize)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        width = height = 0
    if not (0 < width <= _MAX_INCHES and 0 < height <= _MAX_INCHES):
        raise UsageError(
            f"figsize={figsize!r} is not a width and a height of up to {_MAX_INCHES} inches",
            hint="Write figsize=(7.6, 4.2), for example.",
        )
    return width, height


def format_day(time: Any) -> str:
    """Format a day like the axes do."""
    return f"{time:%b} {time.day}, {time.year}"


def format_plainly(number: float) -> str:
    """Format a number without an exponent, if that is short."""
    if 1e-7 <= number < 1e7:
        return f"{number:,.7f}".rstrip("0").rstrip(".")
    return f"{number:g}"


def to_datetime64(times: pl.Series) -> Positions:
    """Convert UTC times to ``datetime64``, which both libraries draw fastest."""
    return times.dt.replace_time_zone(None).to_numpy().astype("datetime64[us]")


def count_times(times: Positions) -> int:
    """Return the number of different times."""
    # numpy's unique() takes eighty times as long.
    return pl.Series(times.view(np.int64)).n_unique()


def convert_amounts(amounts: pl.Series, unit: Unit) -> Floats:
    """Convert exact amounts to floats in *unit*; the end of their name is their own unit."""
    if amounts.name.endswith(f"_{unit}"):
        return to_floats(amounts)
    return to_floats(to_eth(amounts) * _PER_ETH[unit])


def convert_gwei(amounts: pl.Expr, unit: Unit) -> pl.Expr:
    """Return the expression that converts integers in gwei to floats in *unit*, rounded once."""
    gwei = amounts.cast(pl.Float64)
    return {"eth": gwei / 1e9, "gwei": gwei, "wei": gwei * 1e9}[unit]


def choose_unit(gwei: float) -> Unit:
    """Return the unit in which amounts of this size have few digits."""
    return "gwei" if 0 < abs(gwei) < _SMALL_GWEI else "eth"


def find_limits(lowest: float, low: float, high: float, highest: float) -> tuple[float, float]:
    """Return the limits of an axis or a colour scale: most values, and few of the extremes.

    *low* and *high* are the ends of 80 % of the values. A slashing, for example, would hide the
    differences between all others.
    """
    margin = _MARGIN * (high - low)
    return max(lowest, low - margin), min(highest, high + margin)


def to_floats(numbers: pl.Series) -> Floats:
    """Convert numbers to floats; null and infinite numbers become not-a-number."""
    values = numbers.cast(pl.Float64).to_numpy().astype(float)
    return np.where(np.isfinite(values), values, np.nan)


def find_gaps(numbers: pl.Series, *, most: int = 1) -> Flags:
    """Return for every row but the first whether numbers are missing before it."""
    return np.asarray(np.abs(np.diff(numbers.to_numpy())) > most)


def insert_gaps(x: Positions, y: Floats, where: Flags) -> tuple[Positions, Floats]:
    """Insert a gap into the line before every row that *where* marks."""
    rows = np.flatnonzero(where) + 1
    return np.insert(x, rows, x[rows]), np.insert(y, rows, np.nan)


def read_dates(rows: pl.DataFrame) -> Positions:
    """Return the days of ``date`` as times."""
    return rows["date"].to_numpy().astype("datetime64[us]")


def build_curve(numbers: pl.Series, times: pl.Series, y: Floats) -> tuple[Positions, Floats]:
    """Build the points of a line that stops where *numbers* are missing."""
    return insert_gaps(to_datetime64(times), y, find_gaps(numbers))


def find_isolated_points(y: Floats) -> list[int]:
    """Return the points with a gap on either side, which a line does not show."""
    is_point = np.concatenate(([False], np.isfinite(y), [False]))
    isolated: list[int] = np.flatnonzero(is_point[1:-1] & ~is_point[:-2] & ~is_point[2:]).tolist()
    return isolated


def find_partial_periods(
    starts: Positions, ends: Positions, since: Any = None, until: Any = None
) -> Flags:
    """Return which periods are not wholly between *since* and *until*, both inclusive.

    Without *since*, the first period may be partial; without *until*, the last. A period that has
    not ended is partial.
    """
    ranks = np.arange(len(starts))
    begin = _read_instants("since", since)
    end = _read_instants("until", until)
    if begin is not None and end is not None and begin[0] > end[1]:
        raise UsageError(f"since={since!r} is after until={until!r}", hint="Swap them.")
    is_early = ranks == 0 if begin is None else starts < begin[0]
    now = np.datetime64(datetime.now(UTC).replace(tzinfo=None), "us")
    is_late = (
        ranks == len(starts) - 1
        if end is None
        else ends > min(end[1] + np.timedelta64(1, "us"), now)
    )
    return np.asarray(is_early | is_late)


def _read_instants(argument: str, value: Any) -> Positions | None:
    """Return the first and the last instant of a date or time; None for None."""
    if value is None:
        return None
    if isinstance(value, int):
        raise UsageError(
            f"{argument}={value!r} is a number, and the chart does not know its chain",
            hint='Pass a date such as "2026-10-01", or a datetime.',
        )
    moments = instants(argument, value, lambda: datetime.now(UTC))
    return np.array([moment.replace(tzinfo=None) for moment in moments], "datetime64[us]")


def number_units(every: str) -> pl.Expr:
    """Return the expression that numbers days, weeks or months consecutively."""
    if every == "month":
        return pl.col("time").dt.year() * 12 + pl.col("time").dt.month()
    return pl.col("time").dt.epoch("d") // {"day": 1, "week": 7}[every]


def build_steps(x: Positions, end: Positions, where: Flags) -> tuple[Positions, Any]:
    """Build the positions of steps from *x* to *end*, and return them with a function for heights.

    Before every row that *where* marks, the last step is closed and a gap follows.
    """
    ends = np.repeat(np.append(np.flatnonzero(where) + 1, len(x)), 2)

    def stepped(y: Floats) -> Floats:
        """Repeat the last height at the end of an interval, followed by a gap."""
        last = y[ends - 1]
        last[1::2] = np.nan
        return np.insert(y, ends, last)

    return np.insert(x, ends, end[ends - 1]), stepped
