"""Balances, from those of generation 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.server.v2.rows.amounts import finality, wei

if TYPE_CHECKING:
    from beaconframes.endpoint import View


def rows(view: View) -> pl.LazyFrame:
    """Return the balances of every validator in every epoch."""
    keys = view.scan("validators").select("validator_index", "pubkey")
    return (
        view.scan("balance_history")
        .join(keys, on="validator_index", how="left", maintain_order="left")
        .with_columns(
            balance_wei=wei(pl.col("balance_gwei")),
            effective_balance_wei=wei(pl.col("effective_balance_gwei")),
            finality=finality(view),
        )
    )
