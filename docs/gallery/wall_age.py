"""Age of the paint, and the share of each validator in the newest pixels."""

import beaconframes as bf

with bf.open():
    pixels = bf.load_graffiti_wall(since=0)

newest = bf.wall.age(pixels).sort("age_slots").head(1000)
print(newest["validator_index"].value_counts(sort=True).head(3))

ax = bf.plot.wall(pixels, show="age")
figure = bf.interactive.wall(pixels, show="age")
