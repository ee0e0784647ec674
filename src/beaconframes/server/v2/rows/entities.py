"""Entities, from the names of validators; each has one sub-entity, of the same name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.server.v2.rows.performance import SUMS, add_scores, derive_rows_to_sum

if TYPE_CHECKING:
    from beaconframes.endpoint import View

UNNAMED = "Unknown"
"""The entity of validators without a name."""


def derive_rows(view: View) -> pl.LazyFrame:
    """Return duties and entity, one row per validator per finalized epoch."""
    names = view.scan("validators").select(
        "validator_index", entity=pl.col("name").replace("", UNNAMED)
    )
    return derive_rows_to_sum(view).join(names, on="validator_index", how="left")


def summarize(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return performance and share of all validators, one row per entity."""
    validators = pl.col("validator_index").n_unique().cast(pl.Int64)
    entities = rows.group_by("entity").agg(*SUMS, validator_count=validators)
    return (
        add_scores(entities)
        .sort("entity")
        .with_columns(
            sub_entity="entity",
            sub_entity_count=1,
            net_share=pl.col("validator_count") / pl.col("validator_count").sum(),
        )
    )
