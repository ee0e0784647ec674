"""Proposed, missed and orphaned blocks."""

import beaconframes as bf

with bf.open():
    blocks = bf.load_proposals(range(450, 466), since=-700)

ax = bf.plot.proposals(blocks)
figure = bf.interactive.proposals(blocks)
