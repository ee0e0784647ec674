"""Epochs of an index of a beacon node, by status of their income."""

import polars as pl

import beaconframes as bf

with bf.open():
    epochs = bf.load_epochs(since=-450).select("epoch", "time")

# The columns of bf.index(...); these statuses are an example.
statuses = {83_300: "unexplained", 83_301: "unexplained"}
status = pl.col("epoch").replace_strict(statuses, default="explained")
coverage = epochs.with_columns(status=status).filter(~pl.col("epoch").is_between(83_400, 83_460))

caption = "Example statuses · simulated data"
ax = bf.plot.index_coverage(coverage, caption=caption)
figure = bf.interactive.index_coverage(coverage, caption=caption)
