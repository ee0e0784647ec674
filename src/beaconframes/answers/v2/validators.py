"""Validators, with the statuses of the Beacon API; their balances and metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.selectors.set_members import scan_entities
from beaconframes.answers.v2.amounts import (
    build_base_status,
    build_credential_columns,
    derive_finality,
    gwei_to_wei,
)

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View

STATUSES = {
    "deposited": "pending_initialized",
    "pending": "pending_queued",
    "active": "active_ongoing",
    "exiting": "active_exiting",
    "slashing": "active_slashed",
    "exited": "exited_unslashed",
    "slashed": "exited_slashed",
}
"""The status of the Beacon API for each status of V1, without online or offline."""


def derive_rows(view: View) -> pl.LazyFrame:
    """Return validators, one row per validator, by index."""
    epoch = view.head.epoch
    status = build_base_status()
    is_withdrawable = pl.col("withdrawable_epoch").fill_null(epoch + 1) <= epoch
    return (
        view.scan("validators")
        .sort("validator_index")
        .with_columns(
            status=pl.when(is_withdrawable & (pl.col("balance_gwei") == 0))
            .then(pl.lit("withdrawal_done"))
            .when(is_withdrawable)
            .then(pl.lit("withdrawal_possible"))
            .otherwise(status.replace(STATUSES)),
            online=pl.when(pl.col("status").str.ends_with("_online"))
            .then(pl.lit(value=True))
            .when(pl.col("status").str.ends_with("_offline"))
            .then(pl.lit(value=False)),
            balance_wei=gwei_to_wei(pl.col("balance_gwei")),
            effective_balance_wei=gwei_to_wei(pl.col("effective_balance_gwei")),
            finality=pl.lit("not_finalized"),
            epoch=pl.lit(epoch),
            **build_credential_columns(),
        )
    )


def derive_balances(view: View) -> pl.LazyFrame:
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


def derive_metadata(view: View) -> pl.LazyFrame:
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
