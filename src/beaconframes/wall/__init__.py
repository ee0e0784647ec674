"""The graffiti wall: the picture that validators paint, a pixel a block, by their graffiti."""

from beaconframes.wall.files import save
from beaconframes.wall.graffiti import from_blocks
from beaconframes.wall.painting import render

__all__ = [
    "from_blocks",
    "render",
    "save",
]
