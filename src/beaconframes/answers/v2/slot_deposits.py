"""Deposits of slots: those of V1 with the index of the validator.

The shape of the answer is not published. This one has the fields of ``slot/withdrawals``, as far as
deposits have them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.v2.amounts import build_credential_columns, gwei_to_wei
from beaconframes.schema import Count, Hex, Table, Text, Wei

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View


class SlotDepositRecord(Table):
    """Deposits of slots. One row per deposit."""

    block_index = Count("Number of the deposit in the block, from 0.", wire="index")
    validator_index = Count(
        "Validator; null before it has an index.", wire="validator.index", nullable=True
    )
    pubkey = Hex("BLS public key, 48 bytes.", wire="validator.public_key")
    amount_wei = Wei("Deposited amount.", wire="amount", text=True)
    withdrawal_type = Text(
        "Kind of the withdrawal credentials: bls or execution_address.",
        wire="withdrawal_credentials.type",
    )
    withdrawal_prefix = Hex("First byte of the credentials.", wire="withdrawal_credentials.prefix")
    withdrawal_credentials = Hex(
        "Withdrawal credentials, 32 bytes.", wire="withdrawal_credentials.credential"
    )
    withdrawal_address = Hex(
        "Withdrawal address.", wire="withdrawal_credentials.address", nullable=True
    )
    signature = Hex("Signature of the deposit.")


def derive_rows(view: View) -> pl.LazyFrame:
    """Return deposits, one row per deposit, in the order of the block."""
    keys = view.scan("validators").select("validator_index", "pubkey")
    return (
        view.scan("slot_deposits")
        .rename({"block_slot": "slot"})
        .join(keys, on="pubkey", how="left")
        .sort("slot", "block_index")
        .with_columns(amount_wei=gwei_to_wei(pl.col("amount_gwei")), **build_credential_columns())
    )
