"""Slots, from the blocks of V1 and their operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.v2.amounts import derive_finality
from beaconframes.answers.v2.duties import count_attestations
from beaconframes.answers.v2.queue_events import add_queue_events

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View

BLOBS = "blob_commitments"


def derive_rows(view: View) -> pl.LazyFrame:
    """Return slots, one row per block; the canonical block of a slot comes first."""
    keys = view.scan("validators").select("validator_index", proposer_pubkey="pubkey")
    seats = view.chain.sync_committee_size
    signed = (pl.col("sync_aggregate_participation") * seats).round().cast(pl.Int64)
    slots = (
        view.scan("blocks")
        # The header of genesis has the proposer 0.
        .with_columns(
            pl.when(pl.col("slot") == 0).then(0).otherwise("proposer_index").alias("proposer_index")
        )
        .join(keys, left_on="proposer_index", right_on="validator_index", how="left")
        .join(count_bls_changes(view), on="slot", how="left")
        .join(view.derive(count_attestations), on="slot", how="left")
    )
    return (
        add_blob_commitments(view, add_queue_events(view, slots))
        .sort("slot", pl.col("status") != "proposed", "block_root", nulls_last=True)
        .with_columns(
            pl.when(pl.col("status") == "missed")
            .then(0)
            .otherwise("blob_commitments_count")
            .alias("blob_commitments_count"),
            pl.col("status").replace("proposed", "success"),
            sync_committee_period=pl.col("epoch") // view.chain.epochs_per_sync_period,
            sync_successful=signed,
            sync_assigned=seats,
            sync_missed=seats - signed,
            bls_changes_count=pl.col("bls_changes_count").fill_null(0),
            finality=derive_finality(view),
        )
    )


def count_bls_changes(view: View) -> pl.LazyFrame:
    """Return the count of BLS changes, one row per slot."""
    bls_changes = view.scan("bls_changes").group_by("slot")
    return bls_changes.agg(bls_changes_count=pl.len().cast(pl.Int64))


def add_blob_commitments(view: View, blocks: pl.LazyFrame) -> pl.LazyFrame:
    """Return *blocks* with the count of blob commitments; null if it is not known."""
    if not view.has_table(BLOBS):
        # A simulated chain has no blobs.
        count = pl.lit(0 if view.is_simulated else None, pl.Int64)
        return blocks.with_columns(blob_commitments_count=count)
    counts = view.scan(BLOBS).select("block_root", blob_commitments_count="commitments_count")
    return blocks.join(counts, on="block_root", how="left", maintain_order="left")
