"""Withdrawals of slots: the sweeps of generation 1, with what is known of the validators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.server.v2.rows.amounts import credentials, wei

if TYPE_CHECKING:
    from beaconframes.endpoint import View


def rows(view: View) -> pl.LazyFrame:
    """Return the withdrawals of every slot in the order in which its payload pays them."""
    validators = view.scan("validators").select(
        "validator_index", "pubkey", "withdrawal_credentials", "withdrawable_epoch"
    )
    epoch = pl.col("slot") // view.chain.slots_per_epoch
    full = pl.col("withdrawable_epoch").fill_null(2**62) <= epoch
    nothing = pl.lit(None, pl.String)
    return (
        view.scan("slot_withdrawals")
        .rename({"block_slot": "slot"})
        .join(validators, on="validator_index", how="left", maintain_order="left")
        .with_columns(
            type=pl.when(full).then(pl.lit("full_exit_sweep")).otherwise(pl.lit("partial_sweep")),
            amount_wei=wei(pl.col("amount_gwei")),
            status=nothing,
            reject_reason=nothing,
            stage_history=pl.lit("[]"),
            **credentials(),
        )
    )
