"""Slots, from the blocks of generation 1 and what happened in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.server.v2.rows.amounts import ZERO, finality, wei

if TYPE_CHECKING:
    from beaconframes.endpoint import View

BITS_OF_A_DIGIT = 4


def rows(view: View) -> pl.LazyFrame:
    """Return the slots, the canonical block of each before any other."""
    keys = view.scan("validators").select("validator_index", proposer_pubkey="pubkey")
    there = pl.col("status").is_in(["proposed", "orphaned"])
    seats = (pl.col("sync_aggregate_bits").str.len_chars().cast(pl.Int64) - 2) * BITS_OF_A_DIGIT
    signed = (pl.col("sync_aggregate_participation") * seats).round().cast(pl.Int64)
    return (
        view.scan("blocks")
        .join(keys, left_on="proposer_index", right_on="validator_index", how="left")
        .join(deposits(view), on="slot", how="left")
        .join(withdrawals(view), on="slot", how="left")
        .join(changes(view), on="slot", how="left")
        .join(votes(view), on="slot", how="left")
        .sort("slot", pl.col("status") != "proposed", "block_root", nulls_last=True)
        .with_columns(
            pl.col("status").replace("proposed", "success"),
            pl.when(there).then(pl.col("^(queued|processed)_.*$").fill_null(0)),
            sync_committee_period=pl.col("epoch") // view.chain.epochs_per_sync_period,
            sync_successful=signed,
            sync_assigned=seats,
            sync_missed=seats - signed,
            **{f"{name}_count": pl.when(there).then(0) for name in NOTHING_HERE},
            **{f"{name}_wei": pl.when(there).then(ZERO) for name in NOTHING_HERE},
            bls_changes_count=pl.when(there).then(pl.col("bls_changes_count").fill_null(0)),
            blob_commitments_count=pl.when(there).then(0),
            finality=finality(view),
        )
    )


NOTHING_HERE = [
    "queued_manual_withdrawals",
    "queued_consolidations",
    "processed_manual_withdrawals",
    "processed_consolidations",
]
"""What a simulated chain has none of."""


def deposits(view: View) -> pl.LazyFrame:
    """Return how many deposits each slot took in: they are credited at once."""
    found = view.scan("slot_deposits").group_by(slot="block_slot")
    return found.agg(
        queued_deposits_count=pl.len().cast(pl.Int64),
        queued_deposits_wei=wei(pl.col("amount_gwei").sum()),
        processed_deposits_count=pl.len().cast(pl.Int64),
        processed_deposits_wei=wei(pl.col("amount_gwei").sum()),
    )


def withdrawals(view: View) -> pl.LazyFrame:
    """Return how many withdrawals each slot paid out."""
    found = view.scan("slot_withdrawals").group_by(slot="block_slot")
    return found.agg(
        processed_sweeps_count=pl.len().cast(pl.Int64),
        processed_sweeps_wei=wei(pl.col("amount_gwei").sum()),
    )


def changes(view: View) -> pl.LazyFrame:
    """Return how many changes of credentials each slot took in."""
    found = view.scan("bls_changes").group_by("slot")
    return found.agg(bls_changes_count=pl.len().cast(pl.Int64))


def votes(view: View) -> pl.LazyFrame:
    """Return how many votes each slot got, as long as duties are kept."""
    included = pl.col("status") == "included"
    found = view.scan("attestations").group_by(slot="attester_slot")
    return found.agg(
        attestation_successful=included.sum().cast(pl.Int64),
        attestation_missed=(~included).sum().cast(pl.Int64),
        attestation_assigned=pl.len().cast(pl.Int64),
    )
