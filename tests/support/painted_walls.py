"""Small graffiti walls, made by hand."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl

START = datetime(2026, 10, 1, tzinfo=UTC)
"""The time of slot 0."""


def paint(*rows):
    """Return a wall from (slot, x, y, color, validator)."""
    schema = {"slot": pl.Int64, "x": pl.Int64, "y": pl.Int64}
    schema |= {"color": pl.String, "validator_index": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        time=pl.lit(START) + pl.duration(seconds=12 * pl.col("slot"))
    )


# Validators 7, 8 and 9 paint (1, 0) in turn; the rows are in no order.
WALL = paint(
    (30, 1, 0, "00FF00", 9),
    (10, 1, 0, "ff0000", 7),
    (25, 2, 0, "0000ff", 7),
    (20, 1, 0, "00ff00", 8),
    (40, 1, 1, "123456", 8),
)
