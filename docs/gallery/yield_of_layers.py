"""Yield of the consensus and the execution layer."""

import beaconframes as bf

with bf.open():
    index = bf.load_yield_index(since=-120)

ax = bf.plot.yield_index(index, split=True)
figure = bf.interactive.yield_index(index, split=True)
