"""Loaded and missing rows, by epoch and validator."""

import polars as pl

import beaconframes as bf

with bf.open():
    balances = bf.load_balance_history(range(40), since=-450)
    validators = bf.load_validators(range(40))

gap = pl.col("epoch").is_between(83_400, 83_460) & (pl.col("validator_index") > 25)
ax = bf.plot.coverage(balances.filter(~gap), validators)
figure = bf.interactive.coverage(balances.filter(~gap), validators)
