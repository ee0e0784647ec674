"""Metadata of validators, from their names and deposits in V1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.selectors.set_members import scan_entities
from beaconframes.answers.v2.amounts import build_credential_columns

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View


def derive_rows(view: View) -> pl.LazyFrame:
    """Return metadata, one row per validator."""
    return (
        view.scan("validators")
        .sort("validator_index")
        .join(find_depositors(view), on="pubkey", how="left", maintain_order="left")
        .join(scan_entities(view), on="validator_index", how="left", maintain_order="left")
        .with_columns(owner=None, operator=None, **build_credential_columns())
    )


def find_depositors(view: View) -> pl.LazyFrame:
    """Return the address of the first deposit of each public key, if the deposits are known."""
    if not view.has_table("deposit_origin"):
        return pl.LazyFrame(schema={"pubkey": pl.String, "deposit_address": pl.String})
    origin = view.scan("deposit_origin").group_by("pubkey", maintain_order=True)
    return origin.agg(deposit_address=pl.col("from_address").first())
