"""Blocks that validators proposed, missed, or lost to another."""

import beaconframes as bf

with bf.local():
    blocks = bf.load_proposals(range(450, 466), since=-700)

ax = bf.plot.proposals(blocks)
figure = bf.interactive.proposals(blocks)
