"""The writes to pixels, as arrays in the order of their slots."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import polars as pl

from beaconframes.calendar import to_integer
from beaconframes.errors import UsageError
from beaconframes.frames import collect, select_columns

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame
    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]

SIZE = 1000
"""Width and height of the wall, in pixels."""

Region: TypeAlias = tuple[int, int, int, int]
"""The corners ``(x0, y0, x1, y1)``, inclusive."""

RegionChoice: TypeAlias = Region | Literal["all"] | None
"""A region, the whole wall, or by default the painted area."""


@dataclass(frozen=True, eq=False)
class PixelWrites:
    """Writes to pixels, oldest first: a later write paints over an earlier one."""

    slot: Ints
    place: Ints
    """``1000 * y + x``."""
    value: NDArray[np.uint32]
    """The colour, 0xRRGGBB."""
    times: NDArray[np.datetime64] | None = None

    @property
    def span(self) -> dict[str, int]:
        """Return the first and the last slot, for the metadata of images."""
        if not len(self.slot):
            return {}
        return {"first_slot": int(self.slot[0]), "last_slot": int(self.slot[-1])}

    def paint(self) -> Ints:
        """Return the wall after all writes: 0 for unpainted, else 1 + colour.

        A square array, row by row. Of two writes in one slot, the later row of the frame counts.
        """
        # The greatest rank of all writes to a pixel is the last write, and includes its colour.
        # numpy does not define the result of assigning to repeated indices.
        greatest = np.zeros(SIZE * SIZE, np.int64)
        np.maximum.at(greatest, self.place, np.arange(len(self.place)) << 25 | self.value + 1)
        greatest &= (1 << 25) - 1
        return greatest.reshape(SIZE, SIZE)


def read_writes(frame: IntoFrame, *, times: bool = False) -> PixelWrites:
    """Read the writes to pixels of a frame of any kind, in any order."""
    rows = read_rows(frame, *(["time"] if times else []))
    slot, x, y, value = (rows[name].to_numpy() for name in ("slot", "x", "y", "value"))
    place = y * SIZE + x
    when = rows["time"].dt.replace_time_zone(None).to_numpy() if times else None
    if (slot[1:] < slot[:-1]).any():
        order = np.argsort(slot, kind="stable")
        slot, place, value = slot[order], place[order], value[order]
        when = None if when is None else when[order]
    return PixelWrites(slot, place, value, when)


def read_rows(frame: IntoFrame, *more: str) -> pl.DataFrame:
    """Read slot, position and colour, and the columns *more*; ``value`` is the colour as a number.

    A row that is not a pixel of the wall is a `UsageError` that shows the row.
    """
    writes = collect(
        select_columns(frame, ("slot", "x", "y", "color", *more), loader="load_graffiti_wall")
    )
    numbers = {}
    for column in ("slot", "x", "y"):
        kind, integer = writes.schema[column], pl.col(column).cast(pl.Int64, strict=False)
        if not kind.is_numeric() and writes.height:
            raise UsageError(f"the column {column} holds {kind}, not integers")
        whole = kind.is_integer() or not writes.height
        numbers[column] = integer if whole else pl.when(integer == pl.col(column)).then(integer)
    color = pl.col("color").cast(pl.String)
    readable = writes.with_columns(
        **numbers, value=color.str.to_integer(base=16, dtype=pl.UInt32, strict=False)
    )
    fits = readable.select(
        pl.col("slot").is_not_null()
        & pl.col("x").is_between(0, SIZE - 1)
        & pl.col("y").is_between(0, SIZE - 1)
        & pl.col("value").is_not_null()
        & (color.str.len_bytes() == 6)
        & (color >= "0")  # A number may have a sign.
    ).to_series()
    wrong = (~fits.fill_null(value=False)).arg_true()
    if len(wrong):
        slot, x, y, text = writes.row(wrong[0])[:4]
        raise UsageError(
            f"row {wrong[0]} is not a pixel of the wall: slot={slot}, x={x}, y={y}, color={text!r}",
            hint=f"x and y are 0 to {SIZE - 1}, color is six hex digits without a hash sign.",
        )
    return readable


def find_region(region: RegionChoice, x: Ints, y: Ints, *, smallest: int = 1) -> Region:
    """Return the corners of a region; None is the painted area, with the pixels at *x* and *y*.

    The painted area is the smallest rectangle that contains every painted pixel, extended to sides
    of at least *smallest* pixels. It is the whole wall if nothing is painted.
    """
    if region is not None or not len(x):
        return check_region(region)
    x0, x1 = _extend(int(x.min()), int(x.max()), smallest)
    y0, y1 = _extend(int(y.min()), int(y.max()), smallest)
    return x0, y0, x1, y1


def select_region(rows: pl.DataFrame, region: RegionChoice) -> pl.DataFrame:
    """Keep the rows of the region."""
    x0, y0, x1, y1 = check_region(region)
    return rows.filter(pl.col("x").is_between(x0, x1), pl.col("y").is_between(y0, y1))


def _extend(first: int, last: int, smallest: int) -> tuple[int, int]:
    """Extend a side on both ends to *smallest* pixels, inside of the wall."""
    missing = max(0, smallest - (last - first + 1))
    start = min(max(0, first - missing // 2), SIZE - smallest) if missing else first
    return start, max(last, start + smallest - 1)


def check_region(region: RegionChoice) -> Region:
    """Return the corners of a region, or raise unless it lies on the wall; None is all of it."""
    if region is None or (isinstance(region, str) and region == "all"):
        return 0, 0, SIZE - 1, SIZE - 1
    given: Any = region
    match tuple(map(to_integer, given)) if isinstance(given, Iterable) else ():
        case (int(x0), int(y0), int(x1), int(y1)):
            if 0 <= x0 <= x1 < SIZE and 0 <= y0 <= y1 < SIZE:
                return x0, y0, x1, y1
    raise UsageError(
        f"region={region!r} is not a part of the wall",
        hint=f"Pass (x0, y0, x1, y1), inclusive: 0 <= x0 <= x1 <= {SIZE - 1}, same for y; "
        'or "all".',
    )
