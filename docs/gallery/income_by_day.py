"""Net income per day."""

import beaconframes as bf

with bf.open():
    income = bf.load_income_history(range(30), since="2026-10-01", until="2026-10-05")
    blocks = bf.load_produced_blocks(range(30))

ax = bf.plot.income(income, blocks=blocks)
figure = bf.interactive.income(income, blocks=blocks)
