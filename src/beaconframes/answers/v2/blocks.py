"""Execution blocks and their rewards, from the execution blocks of V1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.v2.amounts import derive_finality, null_columns
from beaconframes.answers.v2.slot import add_blob_commitments
from beaconframes.v2.block import Block
from beaconframes.v2.block_rewards import BlockRewards

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View

GAS_PER_BLOB = 2**17
"""Of EIP-4844."""


def derive_rows(view: View) -> pl.LazyFrame:
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
