"""Attestation duties: one row per validator, one column per epoch."""

import beaconframes as bf

with bf.open():
    duties = bf.load_attestations(range(60), since=-100, until=-3)

ax = bf.plot.attestations(duties)
figure = bf.interactive.attestations(duties)
