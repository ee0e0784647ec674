"""Sync committees, from those of V1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.server.v2.rows.amounts import derive_finality

if TYPE_CHECKING:
    from beaconframes.endpoint import View


def derive_rows(view: View) -> pl.LazyFrame:
    """Return sync committees, one row per period."""
    periods = view.scan("sync_committees").group_by("period").agg(pl.col("end_epoch").first())
    return periods.with_columns(finality=derive_finality(view, "end_epoch"))
