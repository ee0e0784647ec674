"""The validator queues, from the queue of V1 and the churn limits of the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.server.v2.rows.amounts import ZERO, gwei_to_wei

if TYPE_CHECKING:
    from beaconframes.endpoint import View

GWEI = 10**9
MIN_CHURN, MAX_CHURN = 128 * GWEI, 256 * GWEI
CHURN_QUOTIENT = 2**16
LOOKAHEAD = 5
"""Minimum number of epochs until an activation or exit takes effect."""


def derive_rows(view: View) -> pl.LazyFrame:
    """Return the queues, one row; top-ups, withdrawal requests and consolidations are 0."""
    active = view.scan("epochs").sort("epoch").tail(1).select("eligible_ether_gwei")
    share = pl.col("eligible_ether_gwei") // CHURN_QUOTIENT
    churn = (share - share % GWEI).clip(MIN_CHURN, MAX_CHURN)
    earliest, chain = LOOKAHEAD + view.head.epoch, view.chain
    activated = earliest + (pl.col("entering_balance_gwei") / churn).ceil().cast(pl.Int64)
    exited = earliest + (pl.col("exiting_balance_gwei") / churn).ceil().cast(pl.Int64)
    seconds = int(chain.seconds_per_slot * chain.slots_per_epoch)
    return (
        view.scan("validator_queue")
        .join(active, how="cross")
        .with_columns(
            deposit_count="entering_count",
            deposit_balance_wei=gwei_to_wei(pl.col("entering_balance_gwei")),
            topup_count=0,
            topup_balance_wei=ZERO,
            deposit_processed_epoch=activated,
            deposit_processed_time=chain.time_expr("epoch", activated),
            deposit_churn_wei=gwei_to_wei(churn),
            deposit_churn_seconds=seconds,
            exit_count="exiting_count",
            exit_balance_wei=gwei_to_wei(pl.col("exiting_balance_gwei")),
            exit_processed_epoch=exited,
            exit_processed_time=chain.time_expr("epoch", exited),
            exit_churn_wei=gwei_to_wei(churn),
            exit_churn_seconds=seconds,
            manual_withdrawal_count=0,
            manual_withdrawal_balance_wei=ZERO,
            manual_withdrawal_processed_epoch=earliest,
            manual_withdrawal_processed_time=chain.time_expr("epoch", pl.lit(earliest)),
            finality=pl.lit("not_finalized"),
        )
    )
