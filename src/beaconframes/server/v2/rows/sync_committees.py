"""Sync committees, from those of generation 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.server.v2.rows.amounts import finality

if TYPE_CHECKING:
    from beaconframes.endpoint import View


def rows(view: View) -> pl.LazyFrame:
    """Return the periods that have a committee."""
    periods = view.scan("sync_committees").group_by("period").agg(pl.col("end_epoch").first())
    return periods.with_columns(finality=finality(view, "end_epoch"))
