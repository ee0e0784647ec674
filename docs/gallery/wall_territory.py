"""Territory: who painted each pixel last."""

import beaconframes as bf

with bf.open():
    pixels = bf.load_graffiti_wall(since=0)

groups = {"ours": range(250), "theirs": range(250, 500)}
print(bf.wall.territory(pixels, groups=groups))

ax = bf.plot.wall(pixels, show="territory", groups=groups)
figure = bf.interactive.wall(pixels, show="territory", groups=groups)
