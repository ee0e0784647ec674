"""Validators, with the statuses that a beacon node gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.server.v2.rows.amounts import credentials, wei

if TYPE_CHECKING:
    from beaconframes.endpoint import View

STATUSES = {
    "deposited": "pending_initialized",
    "pending": "pending_queued",
    "active": "active_ongoing",
    "exiting": "active_exiting",
    "slashing": "active_slashed",
    "exited": "exited_unslashed",
    "slashed": "exited_slashed",
}
"""Statuses of generation 1, without online or offline, as a beacon node calls them."""


def rows(view: View) -> pl.LazyFrame:
    """Return the validators by index."""
    epoch = view.head.epoch
    status = pl.col("status").str.replace("_(online|offline)$", "")
    free = pl.col("withdrawable_epoch").fill_null(epoch + 1) <= epoch
    return (
        view.scan("validators")
        .sort("validator_index")
        .with_columns(
            status=pl.when(free & (pl.col("balance_gwei") == 0))
            .then(pl.lit("withdrawal_done"))
            .when(free)
            .then(pl.lit("withdrawal_possible"))
            .otherwise(status.replace(STATUSES)),
            online=pl.when(pl.col("status").str.ends_with("_online"))
            .then(pl.lit(value=True))
            .when(pl.col("status").str.ends_with("_offline"))
            .then(pl.lit(value=False)),
            balance_wei=wei(pl.col("balance_gwei")),
            effective_balance_wei=wei(pl.col("effective_balance_gwei")),
            finality=pl.lit("not_finalized"),
            epoch=pl.lit(epoch),
            **credentials(),
        )
    )
