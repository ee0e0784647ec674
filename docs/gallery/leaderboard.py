"""The validators with the highest income of a week."""

import beaconframes as bf

with bf.open():
    leaders = bf.load_leaderboard()

ax = bf.plot.leaderboard(leaders, top=15)
figure = bf.interactive.leaderboard(leaders, top=15)
