"""The yield index, from that of V1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View


def derive_rows(view: View) -> pl.LazyFrame:
    """Return the yield index, one row per day, newest first."""
    days = view.scan("yield_index").sort("day", descending=True)
    return days.with_columns(finality=pl.lit("finalized"))
