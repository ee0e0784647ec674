"""Execution blocks and their rewards, from the execution blocks of V1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.v2.amounts import derive_finality, null_columns
from beaconframes.v2.block import Block
from beaconframes.v2.block_rewards import BlockRewards

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View


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
    return (
        view.scan("execution_blocks")
        .join(payloads, on=["slot", "block_number"], how="left", maintain_order="left")
        .with_columns(
            null_columns(Block, "mining."),
            fees_burned_wei=(pl.col("base_fee_per_gas_wei") * pl.col("gas_used")).cast(
                pl.Decimal(28, 0)
            ),
            blob_transactions_count=0,
            blob_gas_used=0,
            blob_gas_excess=0,
            finality=derive_finality(view),
        )
    )


def derive_rewards(view: View) -> pl.LazyFrame:
    """Return the rewards of execution blocks, one row per block."""
    beacon = view.scan("blocks").filter(pl.col("status") == "proposed")
    roots = beacon.select("slot", "block_root", block_number="exec_block_number")
    is_relayed = pl.col("relay_producer_fee_recipient").is_not_null()
    fees, payment = pl.col("block_reward_wei"), pl.col("block_mev_reward_wei")
    return (
        view.scan("execution_blocks")
        .join(roots, on=["slot", "block_number"], how="left", maintain_order="left")
        .with_columns(
            null_columns(BlockRewards, "mining."),
            total_reward_wei="producer_reward_wei",
            total_reward_recipient=pl.coalesce("relay_producer_fee_recipient", "fee_recipient"),
            total_reward_is_contract=False,
            priority_fees_wei=fees,
            priority_fees_recipient="fee_recipient",
            priority_fees_is_contract=False,
            mev_wei=pl.when(is_relayed).then(payment),
            mev_recipient="relay_producer_fee_recipient",
            mev_is_contract=pl.when(is_relayed).then(pl.lit(value=False)),
            finality=derive_finality(view),
        )
    )
