"""Entities, owners and operators, from the names of validators.

Each entity has one sub-entity, of the same name, and each owner is its own operator. The shape of
owners and operators is not published; that below has the names of the announcement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.endpoint.set_members import list_parties
from beaconframes.schema import Count, Fraction, Json, Table, Text
from beaconframes.server.v2.rows.performance import SUMS, add_scores, derive_rows_to_sum

if TYPE_CHECKING:
    from beaconframes.endpoint import View

UNNAMED = "Unknown"
"""The entity of validators without a name."""


class PartyRecord(Table):
    """Owners or operators. One row per owner or operator."""

    id = Count("Number; null for validators without a name.", nullable=True)
    path = Text("Names from the top to this one, joined by a slash.", nullable=True)
    name = Text("Name; Unknown stands for all validators without one.")
    ancestors = Json("Owners or operators above this one.")
    validator_count = Count("Validators.")
    beaconscore = Fraction("BeaconScore, 0 to 1.", nullable=True)
    net_share = Fraction("Share of the network.")


def derive_rows(view: View) -> pl.LazyFrame:
    """Return duties and entity, one row per validator per finalized epoch."""
    names = view.scan("validators").select(
        "validator_index", entity=pl.col("name").replace("", UNNAMED)
    )
    return derive_rows_to_sum(view).join(names, on="validator_index", how="left")


def summarize(rows: pl.LazyFrame, *shared: str) -> pl.LazyFrame:
    """Return performance and share of all validators, one row per entity.

    The columns *shared* have one value per entity.
    """
    validators = pl.col("validator_index").n_unique().cast(pl.Int64)
    entities = rows.group_by("entity", *shared).agg(*SUMS, validator_count=validators)
    return (
        add_scores(entities)
        .sort("entity")
        .with_columns(
            sub_entity="entity",
            sub_entity_count=1,
            net_share=pl.col("validator_count") / pl.col("validator_count").sum(),
        )
    )


def derive_parties(view: View) -> pl.LazyFrame:
    """Return duties, owner and operator, one row per validator per finalized epoch."""
    parties = pl.LazyFrame(list_parties(view)).rename({"name": "entity"})
    return derive_rows(view).join(parties, on="entity", how="left")


def summarize_parties(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return performance and share of all validators, one row per owner or operator."""
    return summarize(rows, "id").with_columns(
        name="entity",
        path=pl.when(pl.col("id").is_not_null()).then("entity"),
        ancestors=pl.lit("[]"),
    )
