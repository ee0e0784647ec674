"""The part of execution blocks that beacon blocks contain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import ChainTables

NO_UNCLES: Final = "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347"
"""Hash of an empty list of uncles."""


def scan_payloads(data: ChainTables) -> pl.LazyFrame:
    """Return the execution blocks in the canonical beacon blocks, one row per block.

    The columns of rewards, internal transactions and relays are missing: no beacon block has them.
    """
    return (
        data.scan("blocks")
        .filter(pl.col("status") == "proposed", pl.col("exec_block_number").is_not_null())
        .select(
            "slot",
            "epoch",
            "proposer_index",
            block_number="exec_block_number",
            consensus_block_number="exec_block_number",
            block_hash="exec_block_hash",
            parent_hash="exec_parent_hash",
            time="exec_time",
            fee_recipient="exec_fee_recipient",
            gas_limit="exec_gas_limit",
            gas_used="exec_gas_used",
            base_fee_per_gas_wei="exec_base_fee_per_gas_wei",
            transactions_count="exec_transactions_count",
            finalized=pl.col("epoch") <= data.head.finalized_epoch,
            uncles_count=0,
            uncle_hash=pl.lit(NO_UNCLES),
            difficulty=0,
            consensus_algorithm=pl.lit("pos"),
        )
    )
