"""Slots with deposits and withdrawals of validators, from the operations of V1.

The shape of both answers is not published. This one has the validator and the slot of
``proposal-slots``, and the count and the amount of the queue events of ``slot``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.v2.amounts import gwei_to_wei
from beaconframes.schema import Count, Hex, Slot, Table, Text, Wei

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View


class OperationSlotRecord(Table):
    """Slots with operations. One row per slot and validator."""

    validator_index = Count("Validator.", wire="validator.index")
    pubkey = Hex("BLS public key, 48 bytes.", wire="validator.public_key")
    slot = Slot("Slot of the block.")
    count = Count("Operations of the validator in this slot.")
    amount_wei = Wei("Sum of their amounts.", wire="amount", text=True)
    finality = Text("Always finalized.")


def derive_deposits(view: View) -> pl.LazyFrame:
    """Return deposits, one row per deposit of a validator with an index."""
    keys = view.scan("validators").select("validator_index", "pubkey")
    deposits = view.scan("slot_deposits").select("pubkey", "amount_gwei", slot="block_slot")
    return deposits.join(keys, on="pubkey")


def derive_withdrawals(view: View) -> pl.LazyFrame:
    """Return withdrawals, one row per withdrawal."""
    keys = view.scan("validators").select("validator_index", "pubkey")
    withdrawals = view.scan("slot_withdrawals")
    return withdrawals.select("validator_index", "amount_gwei", slot="block_slot").join(
        keys, on="validator_index", how="left"
    )


def summarize(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return count and sum, one row per slot and validator, newest first."""
    return (
        rows.group_by("slot", "validator_index", "pubkey")
        .agg(count=pl.len(), amount_wei=gwei_to_wei(pl.col("amount_gwei").sum()))
        .sort("slot", "validator_index", descending=[True, False])
        .with_columns(finality=pl.lit("finalized"))
    )
