"""Daily yield of the network, with moving averages."""

import beaconframes as bf

with bf.open():
    index = bf.load_yield_index(since=0)

ax = bf.plot.yield_index(index)
figure = bf.interactive.yield_index(index)
