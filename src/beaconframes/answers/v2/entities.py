"""Entities, owners and operators, from the names of validators.

The validators that one address deposited for are a sub-entity. Each owner is its own operator. The
shape of owners and operators is not published; that below has the names of the announcement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.selectors.set_members import list_parties, scan_entities
from beaconframes.answers.v2.performance import SUMS, add_scores, derive_all_rows_to_sum
from beaconframes.endpoint.absent_table import AbsentTable, TableAbsent
from beaconframes.schema import Count, Fraction, Json, Table, Text

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View

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
    """Return sums of duties and entity, one row per validator and day."""
    require_names(view)
    names = scan_entities(view).with_columns(pl.col("entity", "sub_entity").fill_null(UNNAMED))
    return derive_all_rows_to_sum(view).join(names, on="validator_index", how="left")


def require_names(view: View) -> None:
    """Raise TableAbsent if the names of validators are unknown, as for a node."""
    is_named = pl.col("name").is_not_null().any()
    if not view.is_simulated and not view.scan("validators").select(is_named).collect().item():
        raise TableAbsent(AbsentTable("entity_names"))


def summarize(rows: pl.LazyFrame, *more: str) -> pl.LazyFrame:
    """Return performance and share of all validators, one row per entity and *more* columns."""
    counts = {
        "validator_count": pl.col("validator_index").n_unique().cast(pl.Int64),
        "sub_entity_count": pl.col("sub_entity").n_unique().cast(pl.Int64),
    }
    entities = rows.group_by("entity", *more).agg(*SUMS, **counts)
    share = pl.col("validator_count") / pl.col("validator_count").sum()
    return add_scores(entities).sort("entity", *more).with_columns(net_share=share)


def derive_parties(view: View) -> pl.LazyFrame:
    """Return sums of duties and owner, one row per validator and day."""
    parties = pl.LazyFrame(list_parties(view)).rename({"name": "entity"})
    return derive_rows(view).join(parties, on="entity", how="left")


def summarize_parties(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return performance and share of all validators, one row per owner or operator."""
    return summarize(rows, "id").with_columns(
        name="entity",
        path=pl.when(pl.col("id").is_not_null()).then("entity"),
        ancestors=pl.lit("[]"),
    )
