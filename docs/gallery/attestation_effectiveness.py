"""Effectiveness of votes: three validators, with the range of 300 others."""

import beaconframes as bf

with bf.open():
    income = bf.load_income_history([3, 16, 20], since="2026-10-01", until="2026-10-06")
    network = bf.load_income_history(range(300, 600), since="2026-10-01", until="2026-10-06")

ax = bf.plot.effectiveness(income, network)
figure = bf.interactive.effectiveness(income, network)
