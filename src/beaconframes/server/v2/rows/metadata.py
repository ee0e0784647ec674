"""Metadata of validators, from their names and deposits in V1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.endpoint.set_members import scan_entities
from beaconframes.server.v2.rows.amounts import build_credential_columns

if TYPE_CHECKING:
    from beaconframes.endpoint import View


def derive_rows(view: View) -> pl.LazyFrame:
    """Return metadata, one row per validator."""
    origin = view.scan("deposit_origin").group_by("pubkey", maintain_order=True)
    return (
        view.scan("validators")
        .sort("validator_index")
        .join(
            origin.agg(deposit_address=pl.col("from_address").first()),
            on="pubkey",
            how="left",
            maintain_order="left",
        )
        .join(scan_entities(view), on="validator_index", how="left", maintain_order="left")
        .with_columns(owner=None, operator=None, **build_credential_columns())
    )
