"""What blocks paint, read out of their graffiti."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.errors import UsageError
from beaconframes.frames import collect, return_like, select_columns

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrameT

# What a block's graffiti must hold to paint, anywhere in its 32 bytes; the first form goes first.
_FORMS = (
    re.compile(r"graffitiwall:([0-9]{1,3}):([0-9]{1,3}):#([0-9a-fA-F]{6})"),
    re.compile(r"gw:([0-9]{3})([0-9]{3})([0-9a-fA-F]{6})"),
)
_PREFIXES = [prefix.encode().hex() for prefix in ("graffitiwall:", "gw:")]


def from_blocks(blocks: IntoFrameT) -> IntoFrameT:
    """Read the graffiti wall out of the graffiti of blocks. One row per painted pixel.

    *blocks* is what ``bf.load_epoch_slots(...)`` gives. Both forms that paint are understood,
    ``graffitiwall:x:y:#rrggbb`` and ``gw:xxxyyyrrggbb``, anywhere in the graffiti; orphaned blocks
    paint too, and a slot paints one pixel at most. Colours are kept as they were written.
    """
    columns = ("slot", "time", "status", "proposer_index", "graffiti")
    rows = (
        collect(select_columns(blocks, columns, loader="load_epoch_slots"))
        .filter(pl.col("graffiti").str.to_lowercase().str.contains_any(_PREFIXES))
        .with_columns(orphaned=pl.col("status") != "proposed")
        .sort("slot", "orphaned")
    )
    painted = [_pixel(*row) for row in rows.select("slot", "graffiti").iter_rows()]
    pixels = pl.DataFrame(
        {
            "x": [pixel[0] if pixel else None for pixel in painted],
            "y": [pixel[1] if pixel else None for pixel in painted],
            "color": [pixel[2] if pixel else None for pixel in painted],
        },
        schema={"x": pl.Int64, "y": pl.Int64, "color": pl.String},
    )
    wall = (
        pl.concat([rows, pixels], how="horizontal")
        .drop_nulls("color")
        .unique("slot", keep="first", maintain_order=True)
        .select("slot", "x", "y", "time", "color", validator_index="proposer_index")
    )
    return return_like(wall, blocks)


def _pixel(slot: int, graffiti: str) -> tuple[int, int, str] | None:
    """Read place and colour out of one graffiti."""
    try:
        # Latin-1 gives every byte a character, so that no text is lost to a wrong encoding.
        text = bytes.fromhex(graffiti.removeprefix("0x")).decode("latin-1")
    except ValueError:
        raise UsageError(
            f"graffiti of slot {slot} is not hex text: {graffiti!r}",
            hint="Keep it as bf.load_epoch_slots(...) gives it.",
        ) from None
    for form in _FORMS:
        if found := form.search(text):
            return int(found[1]), int(found[2]), found[3]
    return None
