"""Income by validator: the median of many, the band of 80 % of them, and the extremes."""

import beaconframes as bf

with bf.open():
    income = bf.load_income_history(range(500), since="2026-10-01", until="2026-10-05")
    blocks = bf.load_produced_blocks(range(500))

ax = bf.plot.income(income, blocks=blocks, by="validator")
figure = bf.interactive.income(income, blocks=blocks, by="validator")
