"""The graffiti wall: the picture that validators paint, one pixel per block, by their graffiti.

Images and animations of the wall, its statistics (age, overwrites, territory), and the plan of a
picture: which pixels to paint, and its progress. All functions take the result of
``bf.load_graffiti_wall(...)``, in polars, pandas or lazily; ``from_blocks`` computes the same from
blocks. ``bf.plot.wall`` and ``bf.interactive.wall`` draw the wall with axes.
"""

from typing import TYPE_CHECKING

from beaconframes.misspelled_names import missing_name
from beaconframes.wall.graffiti import from_blocks
from beaconframes.wall.images import render
from beaconframes.wall.png_file import save
from beaconframes.wall.statistics import age, overwrites, territory
from beaconframes.wall.target import diff, plan, progress, save_graffiti
from beaconframes.wall.timelapse import timelapse

__all__ = [
    "age",
    "diff",
    "from_blocks",
    "overwrites",
    "plan",
    "progress",
    "render",
    "save",
    "save_graffiti",
    "territory",
    "timelapse",
]


if not TYPE_CHECKING:  # Type checkers would accept every name.

    def __getattr__(name: str) -> object:
        """Raise an AttributeError that suggests a public name."""
        raise missing_name(__name__, name, __all__)


def __dir__() -> list[str]:
    """Return the public names, for completion."""
    return __all__
