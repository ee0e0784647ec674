"""Deposits per month, valid and invalid."""

import beaconframes as bf

with bf.open():
    deposits = bf.load_deposits(range(1000))

ax = bf.plot.deposits(deposits, every="month")
figure = bf.interactive.deposits(deposits, every="month")
