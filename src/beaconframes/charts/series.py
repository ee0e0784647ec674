"""What the preparations of charts share: times, holes in lines, folded rows and columns, words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from beaconframes.errors import UsageError
from beaconframes.frames import collect, is_empty, known, take
from beaconframes.units import to_eth

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.charts.drawing import Flags, Floats, Places

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


def rows_of(
    frame: IntoFrame, columns: Sequence[str], *, loader: str, also: Sequence[str] = ()
) -> pl.DataFrame:
    """Bring *columns* into polars, without rows that lack one of them; *also* may be lacking.

    Validators come out as integers: their names reach axes, legends and hovers.
    """
    taken = take(frame, [*columns, *also], loader=loader)
    rows = collect(known(taken, columns))
    for column in ("validator_index", "proposer_index"):
        if column in rows.columns and not rows.schema[column].is_integer():
            if rows.height and not rows.schema[column].is_float():
                raise UsageError(
                    f"the column {column} holds {rows.schema[column]}, not indices",
                    hint=f"Keep it as bf.{loader}(...) gives it.",
                )
            rows = rows.with_columns(pl.col(column).cast(pl.Int64))
    return rows


def lacking(frame: IntoFrame, what: str) -> str:
    """Say why nothing is drawn: the frame has no rows, or none with *what*."""
    return "no rows" if is_empty(frame) else what


def whole(name: str, value: object, most: int | None, hint: str) -> None:
    """Refuse a *value* of the argument *name* that is no whole number from 1 to *most*."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= (most or value):
        raise UsageError(f"{name}={value!r} is not a whole number that fits", hint=hint)


def day_name(time: Any) -> str:
    """Write a day as the axes do."""
    return f"{time:%b} {time.day}, {time.year}"


def moments(times: pl.Series) -> Places:
    """Give UTC times as both libraries draw them fastest."""
    return times.dt.replace_time_zone(None).to_numpy().astype("datetime64[us]")


def heights(amounts: pl.Series, unit: Unit) -> Floats:
    """Turn exact amounts into floats to draw, in *unit*; the end of their name says theirs."""
    if amounts.name.endswith(f"_{unit}"):
        return floats(amounts)
    return floats(to_eth(amounts) * _PER_ETH[unit])


def floats(numbers: pl.Series) -> Floats:
    """Give numbers as floats; what is unknown or not finite is a hole."""
    values = numbers.cast(pl.Float64).to_numpy().astype(float)
    return np.where(np.isfinite(values), values, np.nan)


def holes(numbers: pl.Series, *, most: int = 1) -> Flags:
    """Tell of every row but the first whether its number (epoch, slot, day) skips some before."""
    return np.asarray(np.abs(np.diff(numbers.to_numpy())) > most)


def broken(x: Places, y: Floats, where: Flags) -> tuple[Places, Floats]:
    """Put a hole into the line before every row that *where* marks."""
    rows = np.flatnonzero(where) + 1
    return np.insert(x, rows, x[rows]), np.insert(y, rows, np.nan)


def curve(numbers: pl.Series, times: pl.Series, y: Floats) -> tuple[Places, Floats]:
    """Give the points of a line that stops where *numbers* skip some."""
    return broken(moments(times), y, holes(numbers))


def lonely(y: Floats) -> list[int]:
    """List the points with a hole on either side, which no line shows."""
    there = np.concatenate(([False], np.isfinite(y), [False]))
    found: list[int] = np.flatnonzero(there[1:-1] & ~there[:-2] & ~there[2:]).tolist()
    return found


def calendar_number(every: str) -> pl.Expr:
    """Give days, weeks and months numbers, so that one after the other differs by one."""
    if every == "month":
        return pl.col("time").dt.year() * 12 + pl.col("time").dt.month()
    return pl.col("time").dt.epoch("d") // {"day": 1, "week": 7}[every]


def steps(x: Places, end: Places, where: Flags) -> tuple[Places, Any]:
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


def thinned(x: Places, y: Floats, most: int) -> tuple[Places, Floats, int]:
    """Keep the lowest and the highest of so many neighbours that about *most* points are left.

    Returns how many neighbours that are. Holes as long as these are kept; several lines, between
    which time goes back, are never mixed.
    """
    each = -(-2 * len(x) // most) if len(x) > most else 1
    if each == 1:
        return x, y, 1
    lowest, highest = pl.col("y").arg_min().fill_null(0), pl.col("y").arg_max().fill_null(0)
    kept = (
        _neighbours(x, y, each)
        .with_columns(y=pl.Series(y).fill_nan(None))
        .group_by("line", "hole", "group")
        .agg(low=pl.col("row").get(lowest), high=pl.col("row").get(highest))
    )
    at = np.unique(np.concatenate((kept["low"], kept["high"])))
    return x[at], y[at], each


def enveloped(
    x: Places, low: Floats, high: Floats, most: int
) -> tuple[Places, Floats, Floats, int]:
    """Put so many neighbours of an area into one that about *most* points are left.

    Each goes from the lowest to the highest of its neighbours; returns how many these are.
    """
    each = -(-len(x) // most)
    if each <= 1:
        return x, low, high, 1
    kept = (
        _neighbours(x, high, each)
        .with_columns(
            low=pl.Series(np.fmin(low, high)).fill_nan(None),
            high=pl.Series(np.fmax(low, high)).fill_nan(None),
        )
        .group_by("line", "hole", "group")
        .agg(pl.first("row"), pl.min("low"), pl.max("high"))
        .sort("row")
    )
    return x[kept["row"].to_numpy()], floats(kept["low"]), floats(kept["high"]), each


def _neighbours(x: Places, y: Floats, each: int) -> pl.DataFrame:
    """Give the line and the group of *each* neighbours of every point. One row per point."""
    steps = np.diff(x)
    typical = np.median(steps[steps > np.zeros(1, steps.dtype)])
    # The hole before another line, or one that is longer than a group, is a group of its own.
    long = (steps >= each * typical) & np.isnan(y[1:])
    hole = np.concatenate(([False], (x[1:] < x[:-1]) | long))
    row = np.arange(len(x))
    return pl.DataFrame({"row": row, "line": np.cumsum(hole), "hole": hole, "group": row // each})
