"""Cumulative net income in ETH, compared with the yield index."""

import beaconframes as bf

with bf.open():
    income = bf.load_income_history(range(50), since="2026-10-02")
    blocks = bf.load_produced_blocks(range(50))
    balances = bf.load_balance_history(range(50), since="2026-10-02")
    index = bf.load_yield_index(since=-10)

options = {"blocks": blocks, "title": "auto"}
ax = bf.plot.expected_income(income, index, balances, **options)
figure = bf.interactive.expected_income(income, index, balances, **options)
