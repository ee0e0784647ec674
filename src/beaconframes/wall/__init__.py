"""The graffiti wall: the picture that validators paint, a pixel a block, by their graffiti.

Pictures and animations of it, what they do not show (age, overwrites, territory), and what to paint
next. All take what ``bf.load_graffiti_wall(...)`` gives, in polars, pandas or lazily;
``from_blocks`` makes the same out of blocks. ``bf.plot.wall`` and ``bf.interactive.wall`` draw it
with axes.
"""

from beaconframes.wall.graffiti import from_blocks
from beaconframes.wall.images import render
from beaconframes.wall.png_file import save
from beaconframes.wall.statistics import age, overwrites, territory
from beaconframes.wall.target import diff
from beaconframes.wall.timelapse import timelapse

__all__ = [
    "age",
    "diff",
    "from_blocks",
    "overwrites",
    "render",
    "save",
    "territory",
    "timelapse",
]


def __dir__() -> list[str]:
    """Return the public names, for completion."""
    return __all__
