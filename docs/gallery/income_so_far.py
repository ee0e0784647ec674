"""Cumulative net income in gwei."""

import beaconframes as bf

with bf.local():
    income = bf.load_income_history(range(50), since=-450)
    blocks = bf.load_produced_blocks(range(50))

ax = bf.plot.income(income, blocks=blocks, every="epoch", unit="gwei", cumulative=True)
figure = bf.interactive.income(income, blocks=blocks, every="epoch", unit="gwei", cumulative=True)
