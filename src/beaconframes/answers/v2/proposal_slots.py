"""Proposal slots of validators, from the blocks of V1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View


def derive_rows(view: View) -> pl.LazyFrame:
    """Return proposal slots, one row per slot, newest first."""
    keys = view.scan("validators").select("validator_index", "pubkey")
    canonical = pl.col("exec_block_number").filter(pl.col("status") == "proposed")
    return (
        view.scan("blocks")
        .filter(pl.col("proposer_index").is_not_null())
        .group_by("slot", validator_index="proposer_index")
        .agg(block_number=canonical.first())
        .join(keys, on="validator_index", how="left")
        .sort("slot", descending=True)
        .with_columns(finality=pl.lit("finalized"))
    )
