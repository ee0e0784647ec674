"""Slots, from the blocks of V1 and their operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.server.v2.rows.amounts import ZERO, derive_finality, gwei_to_wei
from beaconframes.server.v2.rows.duties import count_attestations
from beaconframes.server.v2.rows.slot_withdrawals import EVENT, MANUAL

if TYPE_CHECKING:
    from beaconframes.endpoint import View


def derive_rows(view: View) -> pl.LazyFrame:
    """Return slots, one row per block; the canonical block of a slot comes first."""
    keys = view.scan("validators").select("validator_index", proposer_pubkey="pubkey")
    seats = view.chain.sync_committee_size
    signed = (pl.col("sync_aggregate_participation") * seats).round().cast(pl.Int64)
    return (
        view.scan("blocks")
        # The header of genesis has the proposer 0.
        .with_columns(pl.col("proposer_index").fill_null(0))
        .join(keys, left_on="proposer_index", right_on="validator_index", how="left")
        .join(count_deposits(view), on="slot", how="left")
        .join(count_withdrawals(view), on="slot", how="left")
        .join(count_requests(view), on="slot", how="left")
        .join(count_bls_changes(view), on="slot", how="left")
        .join(count_attestations(view), on="slot", how="left")
        .sort("slot", pl.col("status") != "proposed", "block_root", nulls_last=True)
        .with_columns(
            pl.col("status").replace("proposed", "success"),
            pl.col("^(queued|processed)_.*$").fill_null(0),
            sync_committee_period=pl.col("epoch") // view.chain.epochs_per_sync_period,
            sync_successful=signed,
            sync_assigned=seats,
            sync_missed=seats - signed,
            **{f"{name}_count": 0 for name in UNUSED_OPERATIONS},
            **{f"{name}_wei": ZERO for name in UNUSED_OPERATIONS},
            bls_changes_count=pl.col("bls_changes_count").fill_null(0),
            blob_commitments_count=0,
            finality=derive_finality(view),
        )
    )


UNUSED_OPERATIONS = [
    "queued_consolidations",
    "processed_consolidations",
]
"""Operations that a simulated chain does not have."""


def count_deposits(view: View) -> pl.LazyFrame:
    """Return count and sum of deposits, one row per slot; they are credited at once."""
    deposits = view.scan("slot_deposits").group_by(slot="block_slot")
    return deposits.agg(
        queued_deposits_count=pl.len().cast(pl.Int64),
        queued_deposits_wei=gwei_to_wei(pl.col("amount_gwei").sum()),
        processed_deposits_count=pl.len().cast(pl.Int64),
        processed_deposits_wei=gwei_to_wei(pl.col("amount_gwei").sum()),
    )


def count_withdrawals(view: View) -> pl.LazyFrame:
    """Return counts and sums of sweeps and of requested withdrawals, one row per slot."""
    requested = view.scan("manual_withdrawal_events", MANUAL)
    is_manual = pl.col("request_slot").is_not_null()
    key, amount = ["slot", "validator_index"], pl.col("amount_gwei")
    withdrawals = view.scan("slot_withdrawals").rename({"block_slot": "slot"})
    return (
        withdrawals.join(requested, on=key, how="left")
        .group_by("slot")
        .agg(
            processed_sweeps_count=(~is_manual).sum().cast(pl.Int64),
            processed_sweeps_wei=gwei_to_wei(amount.filter(~is_manual).sum()),
            processed_manual_withdrawals_count=is_manual.sum().cast(pl.Int64),
            processed_manual_withdrawals_wei=gwei_to_wei(amount.filter(is_manual).sum()),
        )
    )


def count_requests(view: View) -> pl.LazyFrame:
    """Return count and sum of the withdrawal requests that are queued, one row per slot."""
    requests = view.scan("withdrawal_request_events", EVENT).group_by("slot")
    return requests.agg(
        queued_manual_withdrawals_count=pl.len().cast(pl.Int64),
        queued_manual_withdrawals_wei=gwei_to_wei(pl.col("amount_gwei").sum()),
    )


def count_bls_changes(view: View) -> pl.LazyFrame:
    """Return the count of BLS changes, one row per slot."""
    bls_changes = view.scan("bls_changes").group_by("slot")
    return bls_changes.agg(bls_changes_count=pl.len().cast(pl.Int64))
