"""Withdrawals of slots: those of V1 with columns of the validators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.server.v2.rows.amounts import build_credential_columns, gwei_to_wei

if TYPE_CHECKING:
    from beaconframes.endpoint import View


def derive_rows(view: View) -> pl.LazyFrame:
    """Return withdrawals, one row per withdrawal, in the order of the payload."""
    validators = view.scan("validators").select(
        "validator_index", "pubkey", "withdrawal_credentials", "withdrawable_epoch"
    )
    epoch = pl.col("slot") // view.chain.slots_per_epoch
    is_full = pl.col("withdrawable_epoch").fill_null(2**62) <= epoch
    null_text = pl.lit(None, pl.String)
    return (
        view.scan("slot_withdrawals")
        .rename({"block_slot": "slot"})
        .join(validators, on="validator_index", how="left", maintain_order="left")
        .with_columns(
            type=pl.when(is_full)
            .then(pl.lit("full_exit_sweep"))
            .otherwise(pl.lit("partial_sweep")),
            amount_wei=gwei_to_wei(pl.col("amount_gwei")),
            status=null_text,
            reject_reason=null_text,
            stage_history=pl.lit("[]"),
            **build_credential_columns(),
        )
    )
