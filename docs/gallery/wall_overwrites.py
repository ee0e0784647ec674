"""Number of times that each pixel was painted over."""

import beaconframes as bf

with bf.open():
    pixels = bf.load_graffiti_wall(since=0)

contested = bf.wall.overwrites(pixels).filter(recolours=2)
print(f"{contested.height} pixels were damaged and repaired")

ax = bf.plot.wall(pixels, show="overwrites")
figure = bf.interactive.wall(pixels, show="overwrites")
