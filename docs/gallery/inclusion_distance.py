"""Inclusion distance of attestations in slots."""

import beaconframes as bf

with bf.open():
    duties = bf.load_attestations(range(250), since=-100, until=-3)

ax = bf.plot.attestations(duties, show="distance")
figure = bf.interactive.attestations(duties, show="distance")
