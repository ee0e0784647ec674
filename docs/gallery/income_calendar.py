"""Net income of each day, as a calendar."""

import beaconframes as bf

with bf.open():
    income = bf.load_income_history(range(30), since="7d")

ax = bf.plot.calendar(income)
figure = bf.interactive.calendar(income)
