"""Execution blocks and what they paid, from those of generation 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.server.v2.rows.amounts import finality, nothing
from beaconframes.v2.block import Block
from beaconframes.v2.block_rewards import BlockRewards

if TYPE_CHECKING:
    from beaconframes.endpoint import View


def rows(view: View) -> pl.LazyFrame:
    """Return the execution blocks."""
    beacon = view.scan("blocks").filter(pl.col("status") == "proposed")
    more = beacon.select(
        "slot",
        "block_root",
        state_root="exec_state_root",
        receipts_root="exec_receipts_root",
        extra_data=pl.col("exec_extra_data").fill_null("0x"),
    )
    return (
        view.scan("execution_blocks")
        .join(more, on="slot", how="left", maintain_order="left")
        .with_columns(
            nothing(Block, "mining."),
            fees_burned_wei=(pl.col("base_fee_per_gas_wei") * pl.col("gas_used")).cast(
                pl.Decimal(28, 0)
            ),
            blob_transactions_count=0,
            blob_gas_used=0,
            blob_gas_excess=0,
            finality=finality(view),
        )
    )


def rewards(view: View) -> pl.LazyFrame:
    """Return what each of them paid."""
    roots = view.scan("blocks").filter(pl.col("status") == "proposed").select("slot", "block_root")
    built = pl.col("relay_producer_fee_recipient").is_not_null()
    fees, payment = pl.col("block_reward_wei"), pl.col("block_mev_reward_wei")
    return (
        view.scan("execution_blocks")
        .join(roots, on="slot", how="left", maintain_order="left")
        .with_columns(
            nothing(BlockRewards, "mining."),
            total_reward_wei="producer_reward_wei",
            total_reward_recipient=pl.coalesce("relay_producer_fee_recipient", "fee_recipient"),
            total_reward_is_contract=False,
            priority_fees_wei=fees,
            priority_fees_recipient="fee_recipient",
            priority_fees_is_contract=False,
            mev_wei=pl.when(built).then(payment),
            mev_recipient="relay_producer_fee_recipient",
            mev_is_contract=pl.when(built).then(pl.lit(value=False)),
            finality=finality(view),
        )
    )
