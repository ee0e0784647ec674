"""Caption and text alternative of a picture of the wall."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes.frames import is_simulated
from beaconframes.wall.pixel_writes import select_region

if TYPE_CHECKING:
    import polars as pl
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.wall.pixel_map import Show
    from beaconframes.wall.pixel_writes import Region

_SHOWN = {
    "color": "its colours",
    "age": "the age of its pixels",
    "overwrites": "how often its pixels were painted over",
    "territory": "the holders of its pixels",
}


def list_caption_parts(frame: IntoFrame, rows: pl.DataFrame, corners: Region) -> list[str]:
    """Return the parts of the caption: how many pixels are painted, and whether in a simulation.

    *rows* are those of *frame*, as ``read_region`` returns them.
    """
    count = select_region(rows, corners).select("x", "y").n_unique()
    parts = [f"{count:,} painted pixel{'' if count == 1 else 's'}"] if count else []
    return [*parts, "simulated data"] if parts and is_simulated(frame) else parts


def describe_wall(parts: list[str], show: Show, title: str | None) -> str:
    """Return the text alternative of a picture of the wall."""
    start = f"{title}: graffiti wall" if title else "Graffiti wall"
    return f"{start}, {_SHOWN[show]}. {', '.join(parts) or 'No pixels'}."
