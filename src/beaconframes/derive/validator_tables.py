"""Other views of validators and of their withdrawals."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from beaconframes.derive.chain_tables import ChainTables


def build_withdrawal_credentials(data: ChainTables) -> pl.DataFrame:
    """Return withdrawal credentials, one row per validator."""
    return data.covered_validators.select(
        "validator_index", "pubkey", credentials="withdrawal_credentials"
    )


def build_validator_withdrawals(data: ChainTables, withdrawals: pl.LazyFrame) -> pl.DataFrame:
    """Return the *withdrawals* in blocks with the roots of the blocks, one row per withdrawal."""
    roots = data.scan("blocks").filter(status="proposed").select("block_root", slot="slot")
    rows = withdrawals.rename({"block_slot": "slot"})
    return (
        rows.join(roots, "slot", how="left", maintain_order="left")
        .with_columns(epoch=data.epoch_of("slot"))
        .collect()
    )
