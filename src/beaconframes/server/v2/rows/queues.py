"""The queues, from that of generation 1 and the churn of the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.server.v2.rows.amounts import ZERO, wei

if TYPE_CHECKING:
    from beaconframes.endpoint import View

GWEI = 10**9
LEAST_CHURN, MOST_CHURN = 128 * GWEI, 256 * GWEI
CHURN_QUOTIENT = 2**16
AHEAD = 5
"""Epochs from a decision to where it takes effect, at least."""


def rows(view: View) -> pl.LazyFrame:
    """Return the one reading; nothing here tops up, withdraws by request or consolidates."""
    active = view.scan("epochs").sort("epoch").tail(1).select("eligible_ether_gwei")
    share = pl.col("eligible_ether_gwei") // CHURN_QUOTIENT
    churn = (share - share % GWEI).clip(LEAST_CHURN, MOST_CHURN)
    later, chain = AHEAD + view.head.epoch, view.chain
    entered = later + (pl.col("entering_balance_gwei") / churn).ceil().cast(pl.Int64)
    left = later + (pl.col("exiting_balance_gwei") / churn).ceil().cast(pl.Int64)
    seconds = int(chain.seconds_per_slot * chain.slots_per_epoch)
    return (
        view.scan("validator_queue")
        .join(active, how="cross")
        .with_columns(
            deposit_count="entering_count",
            deposit_balance_wei=wei(pl.col("entering_balance_gwei")),
            topup_count=0,
            topup_balance_wei=ZERO,
            deposit_processed_epoch=entered,
            deposit_processed_time=chain.time_expr("epoch", entered),
            deposit_churn_wei=wei(churn),
            deposit_churn_seconds=seconds,
            exit_count="exiting_count",
            exit_balance_wei=wei(pl.col("exiting_balance_gwei")),
            exit_processed_epoch=left,
            exit_processed_time=chain.time_expr("epoch", left),
            exit_churn_wei=wei(churn),
            exit_churn_seconds=seconds,
            manual_withdrawal_count=0,
            manual_withdrawal_balance_wei=ZERO,
            manual_withdrawal_processed_epoch=later,
            manual_withdrawal_processed_time=chain.time_expr("epoch", pl.lit(later)),
            finality=pl.lit("not_finalized"),
        )
    )
