"""Yield of your validators compared with the network."""

import beaconframes as bf

with bf.open():
    index = bf.load_yield_index(since=-30)
    income = bf.load_income_history(range(30), since="2026-10-01", until="2026-10-05")
    balances = bf.load_balance_history(range(30), since="2026-10-01", until="2026-10-05")

ax = bf.plot.yield_index(index, income, balances)
figure = bf.interactive.yield_index(index, income, balances)
