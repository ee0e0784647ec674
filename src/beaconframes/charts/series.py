"""What the preparations of charts share: times, holes in lines, folded rows and columns, words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from beaconframes.errors import UsageError
from beaconframes.frames import collect, drop_missing, is_empty, select_columns
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
    "day": "Day",
    "week": "Week from Monday",
    "month": "Month",
}
LENGTHS = {"day": "1d", "week": "1w", "month": "1mo"}
NAMED = 10
"""More lines than this cannot be told apart by colour."""

_PER_ETH = {"eth": 1.0, "gwei": 1e9, "wei": 1e18}


def read_rows(
    frame: IntoFrame, columns: Sequence[str], *, loader: str, also: Sequence[str] = ()
) -> pl.DataFrame:
    """Bring *columns* into polars, without rows that lack one of them; *also* may be lacking.

    Validators come out as integers: their names reach axes, legends and hovers.
    """
    taken = select_columns(frame, [*columns, *also], loader=loader)
    rows = collect(drop_missing(taken, columns))
    for column in ("validator_index", "proposer_index"):
        if column in rows.columns and not rows.schema[column].is_integer():
            if rows.height and not rows.schema[column].is_float():
                raise UsageError(
                    f"the column {column} holds {rows.schema[column]}, not indices",
                    hint=f"Keep it as bf.{loader}(...) gives it.",
                )
            rows = rows.with_columns(pl.col(column).cast(pl.Int64))
    return rows


def explain_empty(frame: IntoFrame, what: str) -> str:
    """Say why nothing is drawn: the frame has no rows, or none with *what*."""
    return "no rows" if is_empty(frame) else what


def check_count(name: str, value: object, most: int | None, hint: str) -> None:
    """Refuse a *value* of the argument *name* that is no whole number from 1 to *most*."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= (most or value):
        raise UsageError(f"{name}={value!r} is not a whole number that fits", hint=hint)


def format_day(time: Any) -> str:
    """Write a day as the axes do."""
    return f"{time:%b} {time.day}, {time.year}"


def to_datetime64(times: pl.Series) -> Positions:
    """Give UTC times as both libraries draw them fastest."""
    return times.dt.replace_time_zone(None).to_numpy().astype("datetime64[us]")


def convert_amounts(amounts: pl.Series, unit: Unit) -> Floats:
    """Turn exact amounts into floats to draw, in *unit*; the end of their name says theirs."""
    if amounts.name.endswith(f"_{unit}"):
        return to_floats(amounts)
    return to_floats(to_eth(amounts) * _PER_ETH[unit])


def to_floats(numbers: pl.Series) -> Floats:
    """Give numbers as floats; what is unknown or not finite is a hole."""
    values = numbers.cast(pl.Float64).to_numpy().astype(float)
    return np.where(np.isfinite(values), values, np.nan)


def find_gaps(numbers: pl.Series, *, most: int = 1) -> Flags:
    """Tell of every row but the first whether its number (epoch, slot, day) skips some before."""
    return np.asarray(np.abs(np.diff(numbers.to_numpy())) > most)


def insert_gaps(x: Positions, y: Floats, where: Flags) -> tuple[Positions, Floats]:
    """Put a hole into the line before every row that *where* marks."""
    rows = np.flatnonzero(where) + 1
    return np.insert(x, rows, x[rows]), np.insert(y, rows, np.nan)


def build_curve(numbers: pl.Series, times: pl.Series, y: Floats) -> tuple[Positions, Floats]:
    """Give the points of a line that stops where *numbers* skip some."""
    return insert_gaps(to_datetime64(times), y, find_gaps(numbers))


def find_isolated_points(y: Floats) -> list[int]:
    """List the points with a hole on either side, which no line shows."""
    there = np.concatenate(([False], np.isfinite(y), [False]))
    found: list[int] = np.flatnonzero(there[1:-1] & ~there[:-2] & ~there[2:]).tolist()
    return found


def number_units(every: str) -> pl.Expr:
    """Give days, weeks and months numbers, so that one after the other differs by one."""
    if every == "month":
        return pl.col("time").dt.year() * 12 + pl.col("time").dt.month()
    return pl.col("time").dt.epoch("d") // {"day": 1, "week": 7}[every]


def build_steps(x: Positions, end: Positions, where: Flags) -> tuple[Positions, Any]:
    """Give the places of steps from *x* to *end*, and how to repeat their heights.

    Where a run ends, before every row that *where* marks, its last step is closed and a hole parts
    it from the next.
    """
    ends = np.repeat(np.append(np.flatnonzero(where) + 1, len(x)), 2)

    def stepped(y: Floats) -> Floats:
        """Repeat the last height of a run at its end, and put a hole behind."""
        last = y[ends - 1]
        last[1::2] = np.nan
        return np.insert(y, ends, last)

    return np.insert(x, ends, end[ends - 1]), stepped
