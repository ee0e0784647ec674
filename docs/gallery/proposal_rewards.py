"""Execution rewards of proposed blocks."""

import beaconframes as bf

with bf.open():
    blocks = bf.load_proposals(range(100), since=-700)
    produced = bf.load_produced_blocks(range(100))

ax = bf.plot.proposals(blocks, produced)
figure = bf.interactive.proposals(blocks, produced)
