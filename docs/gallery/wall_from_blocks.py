"""The pixels of two days, read from the graffiti of blocks."""

import beaconframes as bf

with bf.open():
    blocks = bf.load_epoch_slots(since=-450)

pixels = bf.wall.from_blocks(blocks)
ax = bf.plot.wall(pixels)
figure = bf.interactive.wall(pixels)
