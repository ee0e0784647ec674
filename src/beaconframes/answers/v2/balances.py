"""Balances, from those of V1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.v2.amounts import derive_finality, gwei_to_wei

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View


def derive_rows(view: View) -> pl.LazyFrame:
    """Return balances, one row per validator per epoch."""
    keys = view.scan("validators").select("validator_index", "pubkey")
    return (
        view.scan("balance_history")
        .join(keys, on="validator_index", how="left", maintain_order="left")
        .with_columns(
            balance_wei=gwei_to_wei(pl.col("balance_gwei")),
            effective_balance_wei=gwei_to_wei(pl.col("effective_balance_gwei")),
            finality=derive_finality(view),
        )
    )
