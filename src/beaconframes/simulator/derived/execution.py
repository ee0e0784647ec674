"""Execution blocks, from beacon blocks and priority fees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from beaconframes.derive.execution_blocks import scan_payloads
from beaconframes.simulator import identities
from beaconframes.simulator.drawn_hex import number_before
from beaconframes.v1._execution_blocks import ExecutionBlocks

if TYPE_CHECKING:
    from beaconframes.simulator.derived.chain_data import ChainData

_MIN_PERCENT: Final = 88  # of the fees, as payment of a builder
_PERCENT_RANGE: Final = 61


def write_tables(data: ChainData) -> None:
    """Write execution blocks."""
    block = 2 * pl.col("slot")
    before = number_before(data.first * data.chain.slots_per_epoch)
    data.add(
        ExecutionBlocks,
        build_execution_blocks(data)
        .sort("slot")
        .with_columns(block_hash=block, parent_hash=block.shift(1, fill_value=before)),
    )


def build_execution_blocks(data: ChainData) -> pl.DataFrame:
    """Return canonical execution blocks, one row per block."""
    seed = data.seed
    builders = pl.DataFrame(
        [(b.address, b.pubkey, b.relay) for b in identities.make_builders(seed)],
        schema=["fee_recipient", "relay_builder_pubkey", "relay_tag"],
        orient="row",
    )
    owners = identities.make_operator_addresses(seed, data.validators.height)
    proposers = pl.DataFrame({"proposer_index": range(len(owners)), "owner": owners})
    is_relayed = pl.col("relay_tag").is_not_null()
    hash_number = pl.col("block_hash").str.slice(2, 4).str.to_integer(base=16)
    paid = pl.col("block_reward_wei") * (_MIN_PERCENT + hash_number % _PERCENT_RANGE) // 100
    return (
        scan_payloads(data)
        .collect()
        .join(
            data.scan("fee_events").rename({"amount_wei": "block_reward_wei"}).collect(),
            "slot",
            maintain_order="left",
        )
        .join(proposers, "proposer_index", maintain_order="left")
        .join(builders, "fee_recipient", how="left", maintain_order="left")
        .with_columns(
            internal_transactions_count=pl.col("transactions_count") // 3,
            block_mev_reward_wei=pl.when(is_relayed)
            .then(paid.cast(pl.Decimal(28, 0)))
            .otherwise(pl.lit(0, pl.Decimal(28, 0))),
            relay_producer_fee_recipient=pl.when(is_relayed).then("owner"),
        )
        .with_columns(
            producer_reward_wei=pl.when(is_relayed)
            .then("block_mev_reward_wei")
            .otherwise("block_reward_wei")
        )
    )
