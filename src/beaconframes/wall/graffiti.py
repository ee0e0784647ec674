"""Pixel writes read from the graffiti of blocks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.errors import UsageError
from beaconframes.frames import collect, is_simulated, return_like, select_columns

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrameT

# The formats that paint, anywhere in the 32 bytes of a graffiti; the first one has priority.
_PATTERNS = (
    re.compile(r"graffitiwall:([0-9]{1,3}):([0-9]{1,3}):#([0-9a-fA-F]{6})"),
    re.compile(r"gw:([0-9]{3})([0-9]{3})([0-9a-fA-F]{6})"),
)
_PREFIXES = [prefix.encode().hex() for prefix in ("graffitiwall:", "gw:")]


def from_blocks(blocks: IntoFrameT) -> IntoFrameT:
    """Read the graffiti wall from the graffiti of blocks. One row per painted pixel.

    *blocks* is the result of ``bf.load_epoch_slots(...)``. Both formats are read,
    ``graffitiwall:x:y:#rrggbb`` and ``gw:xxxyyyrrggbb``, anywhere in the graffiti. Orphaned blocks
    paint too, and a slot paints at most one pixel. Colours are text as they were written.
    """
    columns = ("slot", "time", "status", "proposer_index", "graffiti")
    rows = (
        collect(select_columns(blocks, columns, loader="load_epoch_slots"))
        .filter(pl.col("graffiti").str.to_lowercase().str.contains_any(_PREFIXES))
        .with_columns(orphaned=pl.col("status") != "proposed")
        .sort("slot", "orphaned")
    )
    painted = [_parse_pixel(*row) for row in rows.select("slot", "graffiti").iter_rows()]
    schema = {"x": pl.Int64, "y": pl.Int64, "color": pl.String}
    pixels = pl.DataFrame(painted, schema, orient="row")
    wall: Any = (
        pl.concat([rows, pixels], how="horizontal")
        .drop_nulls("color")
        .unique("slot", keep="first", maintain_order=True)
        .select("slot", "x", "y", "time", "color", validator_index="proposer_index")
    )
    if is_simulated(blocks):
        wall.attrs = {"simulated": True}
    return return_like(wall, blocks)


def _parse_pixel(slot: int, graffiti: str) -> tuple[int, int, str] | tuple[None, None, None]:
    """Parse position and colour from one graffiti; all are None if it paints no pixel."""
    try:
        # Latin-1 maps every byte to a character, so no graffiti fails to decode.
        text = bytes.fromhex(graffiti.removeprefix("0x")).decode("latin-1")
    except ValueError:
        raise UsageError(
            f"graffiti of slot {slot} is not hex text: {graffiti!r}",
            hint="Keep it as bf.load_epoch_slots(...) returns it.",
        ) from None
    for pattern in _PATTERNS:
        if match := pattern.search(text):
            return int(match[1]), int(match[2]), match[3]
    return None, None, None
