"""Maps of the wall: a number for each pixel, or the rank of its holder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
import polars as pl

from beaconframes import colours
from beaconframes.frames import check_choice
from beaconframes.wall.pixel_writes import check_region, read_rows
from beaconframes.wall.statistics import age, overwrites, territory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from narwhals.stable.v2.typing import IntoFrame
    from numpy.typing import NDArray

    from beaconframes.wall.pixel_writes import Region

Show: TypeAlias = Literal["color", "age", "overwrites", "territory"]
_NAMED = tuple(colour for colour in colours.CYCLE if colour != colours.GREY)


@dataclass(frozen=True, eq=False)
class PixelMap:
    """A map of a region of the wall: a number per pixel, not-a-number for unpainted pixels."""

    cells: NDArray[np.float64]
    label: str
    reverse: bool = False
    """Whether small numbers have bright colours."""
    kinds: tuple[tuple[str, int, str], ...] = ()
    """Holders by rank, if the numbers are ranks: name, pixels and colour."""


def build_pixel_map(
    frame: IntoFrame,
    show: Show,
    region: Region | None,
    groups: Mapping[str, Iterable[int]] | None,
) -> PixelMap | None:
    """Compute the map of the region; None for the colours themselves."""
    check_choice("show", show, get_args(Show))
    if show == "color":
        return None
    # Read once: a lazy frame would be computed by each of the calls below.
    rows = read_rows(frame, "time", "validator_index")
    if show == "age":
        ages = age(rows, region=region)
        return PixelMap(
            _fill_cells(ages, ages["age_slots"], region), "Age of the paint (slots)", True
        )
    if show == "overwrites":
        counts = overwrites(rows, region=region)
        return PixelMap(_fill_cells(counts, counts["overwrites"], region), "Times painted over")
    return _map_holders(rows, region, groups)


def _map_holders(
    rows: pl.DataFrame, region: Region | None, groups: Mapping[str, Iterable[int]] | None
) -> PixelMap:
    """Rank the largest holders; all others share one rank."""
    holders = territory(rows, groups=groups, region=region)
    pixels = territory(rows, groups=groups, region=region, per_pixel=True)
    kind = "validator_index" if groups is None else "group"
    holders = holders.filter(pl.col("pixels") > 0, pl.col(kind).is_not_null()).head(len(_NAMED))
    names = holders[kind].cast(pl.String)
    kinds = [*zip(names, holders["pixels"], _NAMED, strict=False)]
    rank = pixels[kind].replace_strict(
        holders[kind], pl.int_range(holders.height, eager=True), default=holders.height
    )
    if others := pixels.height - int(holders["pixels"].sum()):
        kinds.append(("all others", others, colours.GREY))
    label = "Validator: pixels" if groups is None else "Group: pixels"
    return PixelMap(_fill_cells(pixels, rank, region), label, kinds=tuple(kinds))


def _fill_cells(
    pixels: pl.DataFrame, values: pl.Series, region: Region | None
) -> NDArray[np.float64]:
    """Put the values of pixels at their positions."""
    x0, y0, x1, y1 = check_region(region)
    cells = np.full((y1 - y0 + 1, x1 - x0 + 1), np.nan)
    cells[pixels["y"].to_numpy() - y0, pixels["x"].to_numpy() - x0] = values.to_numpy()
    return cells
