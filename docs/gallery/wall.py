"""The painted area of the graffiti wall."""

import beaconframes as bf

with bf.open():
    pixels = bf.load_graffiti_wall(since=0)

ax = bf.plot.wall(pixels)
figure = bf.interactive.wall(pixels)
