"""Slots and execution blocks with their rewards, from the blocks of V1 and their operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.v2.amounts import derive_finality, null_columns
from beaconframes.answers.v2.duties import count_attestations
from beaconframes.answers.v2.queue_events import add_queue_events
from beaconframes.v2.block import Block
from beaconframes.v2.block_rewards import BlockRewards

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View

BLOBS = "blob_commitments"
GAS_PER_BLOB = 2**17
"""Of EIP-4844."""


def derive_slots(view: View) -> pl.LazyFrame:
    """Return slots, one row per block; the canonical block of a slot comes first."""
    keys = view.scan("validators").select("validator_index", proposer_pubkey="pubkey")
    seats = view.chain.sync_committee_size
    signed = (pl.col("sync_aggregate_participation") * seats).round().cast(pl.Int64)
    bls_changes = view.scan("bls_changes").group_by("slot").agg(bls_changes_count=pl.len())
    slots = (
        view.scan("blocks")
        # The header of genesis has the proposer 0.
        .with_columns(
            pl.when(pl.col("slot") == 0).then(0).otherwise("proposer_index").alias("proposer_index")
        )
        .join(keys, left_on="proposer_index", right_on="validator_index", how="left")
        .join(bls_changes, on="slot", how="left")
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
            bls_changes_count=pl.col("bls_changes_count").fill_null(0).cast(pl.Int64),
            finality=derive_finality(view),
        )
    )


def add_blob_commitments(view: View, blocks: pl.LazyFrame) -> pl.LazyFrame:
    """Return *blocks* with the count of blob commitments; null if it is not known."""
    if not view.has_table(BLOBS):
        # A simulated chain has no blobs.
        count = pl.lit(0 if view.is_simulated else None, pl.Int64)
        return blocks.with_columns(blob_commitments_count=count)
    counts = view.scan(BLOBS).select("block_root", blob_commitments_count="commitments_count")
    return blocks.join(counts, on="block_root", how="left", maintain_order="left")


def derive_blocks(view: View) -> pl.LazyFrame:
    """Return execution blocks, one row per block."""
    beacon = view.scan("blocks").filter(pl.col("status") == "proposed")
    payloads = beacon.select(
        "slot",
        "block_root",
        block_number="exec_block_number",
        state_root="exec_state_root",
        receipts_root="exec_receipts_root",
        extra_data=pl.col("exec_extra_data").fill_null("0x"),
    )
    blocks = view.scan("execution_blocks").join(
        payloads, on=["slot", "block_number"], how="left", maintain_order="left"
    )
    no_blobs = pl.when(pl.col("blob_commitments_count") == 0).then(0)
    return add_blob_commitments(view, blocks).with_columns(
        null_columns(Block, "mining."),
        fees_burned_wei=(pl.col("base_fee_per_gas_wei") * pl.col("gas_used")).cast(
            pl.Decimal(28, 0)
        ),
        # A transaction has one blob or several, and the excess depends on earlier blocks.
        blob_transactions_count=no_blobs,
        blob_gas_used=pl.col("blob_commitments_count") * GAS_PER_BLOB,
        blob_gas_excess=pl.lit(0 if view.is_simulated else None),
        finality=derive_finality(view),
    )


def derive_rewards(view: View) -> pl.LazyFrame:
    """Return the rewards of execution blocks, one row per block."""
    beacon = view.scan("blocks").filter(pl.col("status") == "proposed")
    roots = beacon.select("slot", "block_root", block_number="exec_block_number")
    is_relayed = pl.col("relay_producer_fee_recipient").is_not_null()
    fees, payment = pl.col("block_reward_wei"), pl.col("block_mev_reward_wei")
    # A simulated chain has no contracts. An index does not know who is one.
    is_contract = pl.lit(False if view.is_simulated else None)
    return (
        view.scan("execution_blocks")
        .join(roots, on=["slot", "block_number"], how="left", maintain_order="left")
        .with_columns(
            null_columns(BlockRewards, "mining."),
            total_reward_wei="producer_reward_wei",
            total_reward_recipient=pl.coalesce("relay_producer_fee_recipient", "fee_recipient"),
            total_reward_is_contract=is_contract,
            priority_fees_wei=fees,
            priority_fees_recipient="fee_recipient",
            priority_fees_is_contract=is_contract,
            mev_wei=pl.when(is_relayed).then(payment),
            mev_recipient="relay_producer_fee_recipient",
            mev_is_contract=pl.when(is_relayed).then(is_contract),
            finality=derive_finality(view),
        )
    )
