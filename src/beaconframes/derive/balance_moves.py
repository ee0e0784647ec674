"""What moves balances beside income: deposits, withdrawals and transfers between validators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import ChainTables

AMOUNTS: Final = pl.Schema({"slot": pl.Int64, "validator_index": pl.Int64, "amount_gwei": pl.Int64})
"""Columns of the event tables of deposits, withdrawals and transfers, which no endpoint serves."""

DEPOSITS: Final = ("deposit_events", "slot_deposits")
WITHDRAWALS: Final = ("withdrawal_events", "validator_withdrawals", "slot_withdrawals")
TRANSFERS: Final = "transfer_events"


def find_deposits(data: ChainTables) -> str | None:
    """Return the table of the deposits that moved balances, or None.

    Before Electra, a deposit moves a balance with its block. Since then the chain processes it
    later, in a slot that only ``deposit_events`` state.
    """
    table = data.find_table(*DEPOSITS)
    if table == DEPOSITS[1] and data.find_table("deposit_requests"):
        requests = data.scan("deposit_requests").select(pl.len()).collect().item()
        return None if requests else table
    return table


def scan_deposits(data: ChainTables, table: str) -> pl.LazyFrame:
    """Return slot, validator and amount of the deposits in a table of `find_deposits`.

    Those in blocks may include deposits with an invalid signature, from before the deposit that
    created the validator.
    """
    if table != DEPOSITS[1]:
        return data.scan(table).select(*AMOUNTS)
    indices = data.scan("validators").select("pubkey", "validator_index")
    rows = data.scan(table).select("pubkey", "amount_gwei", slot="block_slot")
    return rows.join(indices, "pubkey").select(*AMOUNTS)


def scan_withdrawals(data: ChainTables, table: str) -> pl.LazyFrame:
    """Return slot, validator and amount of the withdrawals in one of the tables `WITHDRAWALS`."""
    rows = data.scan(table)
    return (rows.rename({"block_slot": "slot"}) if table == WITHDRAWALS[2] else rows).select(
        *AMOUNTS
    )


def scan_moves(data: ChainTables) -> pl.LazyFrame | None:
    """Return slot, validator and signed amount of all that moves balances beside income.

    None without a table of deposits or of withdrawals. Transfers are consolidations, and balances
    that became deposits in the queue: at the fork to Electra, and by a switch to compounding
    credentials.
    """
    deposits, withdrawals = find_deposits(data), data.find_table(*WITHDRAWALS)
    if deposits is None or withdrawals is None:
        return None
    paid = scan_withdrawals(data, withdrawals).with_columns(-pl.col("amount_gwei"))
    transfers = data.scan(TRANSFERS, AMOUNTS).select(*AMOUNTS)
    return pl.concat([scan_deposits(data, deposits), paid, transfers])
