"""Proposals of 1,000 validators, counted by hour."""

import beaconframes as bf

with bf.open():
    blocks = bf.load_proposals(range(1000), since=-450)

ax = bf.plot.proposals(blocks)
figure = bf.interactive.proposals(blocks)
