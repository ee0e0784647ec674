"""Balances of many validators, as the difference to their effective balances."""

import beaconframes as bf

with bf.open():
    balances = bf.load_balance_history(range(1000), since=-450)

ax = bf.plot.balances(balances)
figure = bf.interactive.balances(balances)
