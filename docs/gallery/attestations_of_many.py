"""Attestation duties of 1,000 validators, ten per row."""

import beaconframes as bf

with bf.open():
    duties = bf.load_attestations(range(1000), since=-100)

ax = bf.plot.attestations(duties)
figure = bf.interactive.attestations(duties)
