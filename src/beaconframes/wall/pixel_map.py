"""Maps of the wall: a number for each pixel, or the rank of its holder."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.frames import check_choice
from beaconframes.wall.pixel_writes import find_region, read_rows
from beaconframes.wall.statistics import age, overwrites, territory

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame
    from numpy.typing import NDArray

    from beaconframes.wall.painters import Groups, Names
    from beaconframes.wall.pixel_writes import Region, RegionChoice

Show: TypeAlias = Literal["color", "age", "overwrites", "territory"]

_NAMED = tuple(colour for colour in colours.CYCLE if colour != colours.GREY)
_SMALLEST = 20  # Pixels of a side: charts of fewer have no whole numbers on their axes.
_TICKS = 6
_STEPS = tuple(step * 10**power for power in range(7) for step in (1, 2, 5))
_MOST_LINEAR = 20
"""More writes to one pixel than this need a logarithmic scale: most pixels have one or two."""
# The longest age in seconds that is shown in this unit, and its length.
_AGE_UNITS = {
    "minute": (2 * 3600, 60),
    "hour": (2 * 86_400, 3600),
    "day": (60 * 86_400, 86_400),
    "week": (3 * 365 * 86_400, 7 * 86_400),
    "year": (np.inf, 365.25 * 86_400),
}


@dataclass(frozen=True, eq=False)
class PixelMap:
    """A map of a region of the wall: a number per pixel, not-a-number for unpainted pixels."""

    cells: NDArray[np.float64]
    label: str
    ticks: tuple[tuple[float, str], ...] = ()
    """The labeled numbers of the colour bar."""
    limits: tuple[float, float] = (0.0, 1.0)
    """The numbers at both ends of the colour bar."""
    unit: str = ""
    """What follows the number in a hover text, such as "days ago"."""
    is_logarithmic: bool = False
    reverse: bool = False
    """Whether small numbers have bright colours."""
    kinds: tuple[tuple[str, int, str], ...] = ()
    """Holders by rank, if the numbers are ranks: name, pixels and colour."""


def read_region(
    frame: IntoFrame, region: RegionChoice, *columns: str
) -> tuple[pl.DataFrame, Region]:
    """Read the writes to pixels, and find the corners of the region of a chart."""
    rows = read_rows(frame, *columns)
    corners = find_region(region, rows["x"].to_numpy(), rows["y"].to_numpy(), smallest=_SMALLEST)
    return rows, corners


def build_pixel_map(
    rows: pl.DataFrame,
    show: Show,
    region: Region,
    groups: Groups | None,
    names: Names | None = None,
) -> PixelMap | None:
    """Compute the map of the region; None for the colours themselves."""
    check_choice("show", show, get_args(Show))
    if show == "color":
        return None
    if show == "age":
        return _map_ages(rows, region)
    if show == "overwrites":
        return _map_paints(rows, region)
    return _map_holders(rows, region, groups, names)


def _map_ages(rows: pl.DataFrame, region: Region) -> PixelMap:
    """Map the time since the last write to each pixel, in a unit that fits the oldest."""
    ages = age(rows, region=region)
    newest = rows["time"].max()
    label = "Last painted"
    if isinstance(newest, datetime):
        label += f", before {newest:%b} {newest.day}, {newest.year}"
    seconds = (
        pl.Series([newest], dtype=ages["time"].dtype) - ages["time"]
    ).dt.total_microseconds() / 1e6
    oldest = float(seconds.to_numpy().max(initial=0))
    unit, length = next(
        (unit, length) for unit, (most, length) in _AGE_UNITS.items() if oldest <= most
    )
    cells = _fill_cells(ages, seconds / length, region)
    highest = oldest / length or 1.0
    ticks = tuple((tick, _name_age(tick, unit)) for tick in _find_ticks(highest))
    return PixelMap(cells, label, ticks, (0.0, highest), f"{unit}s ago", reverse=True)


def _name_age(age: float, unit: str) -> str:
    if age == 0:
        return "newest"
    return f"{age:g} {unit}{'' if age == 1 else 's'} ago"


def _map_paints(rows: pl.DataFrame, region: Region) -> PixelMap:
    counts = overwrites(rows, region=region)
    most = int(counts["paints"].to_numpy().max(initial=2))
    is_logarithmic = most > _MOST_LINEAR
    decades = [step for step in _STEPS if step <= most]
    numbers = decades if is_logarithmic else _find_ticks(most, first=1)
    ticks = tuple((float(number), _name_count(int(number))) for number in numbers)
    cells = _fill_cells(counts, counts["paints"], region)
    return PixelMap(cells, "Painted", ticks, (1.0, most), "times", is_logarithmic)


def _name_count(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def _find_ticks(highest: float, *, first: int = 0) -> list[float]:
    """Return few round numbers from *first* to *highest*; halves only below 2."""
    steps = (0.5, *_STEPS)
    step = next(s for s in steps if highest / s <= _TICKS and (s >= 1 or (highest < 2 > 1 + first)))
    numbers = np.arange(0, highest + step / 1000, step)
    return [float(n) for n in (numbers if first == 0 else [first, *numbers[numbers > first]])]


def _map_holders(
    rows: pl.DataFrame, region: Region, groups: Groups | None, names: Names | None
) -> PixelMap:
    """Rank the largest holders; all others share one rank."""
    chosen: dict[str, Any] = {"groups": groups, "names": names, "region": region}
    holders = territory(rows, **chosen)
    pixels = territory(rows, **chosen, per_pixel=True)
    holder = pixels.drop("x", "y", "slot").columns
    # Beside names, which may be numbers, a number alone would not be a validator.
    number = "validator {}" if "name" in holder else "{}"
    largest = (
        holders.filter(pl.col("pixels") > 0, pl.any_horizontal(pl.col(holder).is_not_null()))
        .head(len(_NAMED))
        .with_columns(text=pl.coalesce(*holder[:-1], pl.format(number, holder[-1])))
        .with_row_index("rank")
    )
    keys: dict[str, Any] = {
        "on": holder,
        "how": "left",
        "nulls_equal": True,
        "maintain_order": "left",
    }
    ranks = pixels.join(largest.select(*holder, "rank"), **keys)["rank"]
    kinds = [*zip(largest["text"], largest["pixels"], _NAMED, strict=False)]
    if others := pixels.height - int(largest["pixels"].sum()):
        kinds.append(("all others", others, colours.GREY))
    label = {"group": "Group", "name": "Painter"}.get(holder[0], "Validator") + ": pixels"
    cells = _fill_cells(pixels, ranks.fill_null(largest.height), region)
    return PixelMap(cells, label, kinds=tuple(kinds))


def _fill_cells(pixels: pl.DataFrame, values: pl.Series, region: Region) -> NDArray[np.float64]:
    x0, y0, x1, y1 = region
    cells = np.full((y1 - y0 + 1, x1 - x0 + 1), np.nan)
    cells[pixels["y"].to_numpy() - y0, pixels["x"].to_numpy() - x0] = values.to_numpy()
    return cells
