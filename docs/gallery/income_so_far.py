"""Cumulative net income in ETH, compared with the yield index."""

import beaconframes as bf

with bf.open():
    income = bf.load_income_history(range(50), since="2026-10-02")
    blocks = bf.load_produced_blocks(range(50))
    balances = bf.load_balance_history(range(50), since="2026-10-02")
    index = bf.load_yield_index(since=-10)

options = {"every": "epoch", "cumulative": True, "yield_index": index, "balances": balances}
ax = bf.plot.income(income, blocks=blocks, **options)
figure = bf.interactive.income(income, blocks=blocks, **options)
