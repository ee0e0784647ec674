"""Entities, from the names of validators: each has one part, which is called the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.server.v2.rows.performance import SUMS, rows_to_add, scored

if TYPE_CHECKING:
    from beaconframes.endpoint import View

NOBODY = "Unknown"
"""The name of all validators that have none."""


def rows(view: View) -> pl.LazyFrame:
    """Return the duties of every validator in every finalized epoch, and whose it is."""
    names = view.scan("validators").select(
        "validator_index", entity=pl.col("name").replace("", NOBODY)
    )
    return rows_to_add(view).join(names, on="validator_index", how="left")


def summary(found: pl.LazyFrame) -> pl.LazyFrame:
    """Return the entities by name, with their performance and their share of all validators."""
    validators = pl.col("validator_index").n_unique().cast(pl.Int64)
    counted = found.group_by("entity").agg(*SUMS, validator_count=validators)
    return (
        scored(counted)
        .sort("entity")
        .with_columns(
            sub_entity="entity",
            sub_entity_count=1,
            net_share=pl.col("validator_count") / pl.col("validator_count").sum(),
        )
    )
