"""Which epochs of which validators a dataset has."""

import polars as pl

import beaconframes as bf

with bf.local():
    whole = bf.load_balance_history(range(40), since=-450)

hole = pl.col("epoch").is_between(83_400, 83_460) & (pl.col("validator_index") > 25)
ax = bf.plot.coverage(whole.filter(~hole))
figure = bf.interactive.coverage(whole.filter(~hole))
