"""A time-lapse of the wall, as an animated PNG."""

import beaconframes as bf

with bf.open():
    pixels = bf.load_graffiti_wall(since=0)

animation = bf.wall.timelapse(
    pixels,
    "wall.png",
    every="1d",
    seconds=4,
    region=(400, 440, 599, 559),
    scale=3,
    background="white",
)
