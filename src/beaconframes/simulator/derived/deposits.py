"""Deposits: the contract's events, what the blocks include of them, and who sent them.

Every validator has deposited: those of the first epoch before it, the others when the chain took
their deposits in. Two signatures are not valid: that of a top-up, which need not be, and that of
a key which never becomes a validator, because the chain drops the deposit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from beaconframes.simulator import identities
from beaconframes.simulator.preset import ETH
from beaconframes.v1._deposits import Deposits
from beaconframes.v1.deposit_origin import DepositOrigin
from beaconframes.v1.slot_deposits import SlotDeposits

if TYPE_CHECKING:
    from beaconframes.simulator.derived.source import Source

_WAITS: Final = 16  # slots from the contract's event to its inclusion, at least
_BEFORE_ELIGIBLE: Final = 2  # epochs
_FIRST_PLACE: Final = 3  # of a transaction in its block
_CALL: Final = "0x22895118"
_LIMIT: Final = 32 * ETH


def write(source: Source) -> None:
    """Write all deposits."""
    known = _first_deposits(source)
    included = _later_deposits(source)
    rows = _described(source, pl.concat([known, included, _dropped(source)], how="diagonal"))
    source.add(Deposits, rows.sort(Deposits.key()))
    source.add(SlotDeposits, _in_slots(source, rows))
    source.add(DepositOrigin, _origins(rows))


def _first_deposits(source: Source) -> pl.DataFrame:
    """Return the deposits from before the first epoch. One row per validator known then."""
    first = source.first
    size = source.chain.slots_per_epoch
    state = source.scan("balance_history").filter(epoch=first).collect()
    eligible = pl.col("activation_eligibility_epoch") - _BEFORE_ELIGIBLE
    lives = source.validators.select("validator_index", slot=eligible.clip(0) * size)
    balance = pl.col("balance_gwei")
    # What a running chain has above a whole number was earned; who has left had deposited, too.
    amount = balance if first == 0 else (balance - balance % ETH).clip(_LIMIT)
    rows = state.select("validator_index", amount_gwei=amount)
    return rows.join(lives, "validator_index", maintain_order="left").with_columns(
        block_number="slot", time=source.time_of("slot"), valid_signature=True
    )


def _later_deposits(source: Source) -> pl.DataFrame:
    """Return the deposits that blocks include, in that order, with the block of their event."""
    events = source.scan("deposit_events").collect()
    blocks = source.blocks.filter(pl.col("exec_block_number").is_not_null())
    place = np.searchsorted(
        blocks["slot"].to_numpy(), events["slot"].to_numpy() - _WAITS, side="right"
    )
    origin = blocks[np.maximum(place - 1, 0)]
    old = events["validator_index"] < _newcomers(source)
    topped_up = old & (old.cum_sum() == 1)
    return pl.DataFrame(
        {
            "validator_index": events["validator_index"],
            "amount_gwei": events["amount_gwei"],
            "included": events["slot"],
            "slot": origin["slot"],
            "block_number": origin["exec_block_number"],
            "time": origin["exec_time"],
            "valid_signature": ~topped_up,
        }
    )


def _newcomers(source: Source) -> int:
    """Return the first validator that joined later."""
    first = source.scan("balance_history").filter(epoch=source.first)
    return int(first.select(pl.len()).collect().item())


def _dropped(source: Source) -> pl.DataFrame:
    """Return the deposit that nothing comes of: its signature is not valid."""
    block = source.blocks.filter(pl.col("exec_block_number").is_not_null()).tail(1)
    return block.select(
        "slot",
        block_number="exec_block_number",
        time="exec_time",
        amount_gwei=_LIMIT,
        valid_signature=False,
    )


def _described(source: Source, rows: pl.DataFrame) -> pl.DataFrame:
    """Return deposits with sender, transaction and number, in the contract's order."""
    seed, count = source.seed, source.validators.height
    rows = rows.sort("slot", maintain_order=True).with_row_index("number")
    owners = identities.operator_addresses(seed, count)
    who = rows["validator_index"].to_list()
    numbers = rows["number"].to_list()
    keys = source.validators["pubkey"].to_list()
    credentials = source.validators["withdrawal_credentials"].to_list()
    for index in source.scan("bls_change_events").collect()["validator_index"].to_list():
        credentials[index] = identities.bls_credentials(seed, index)
    nobody = (identities.pubkey(seed, "nobody"), identities.bls_credentials(seed, -1), owners[-1])
    texts = {
        "pubkey": [nobody[0] if i is None else keys[i] for i in who],
        "withdrawal_credentials": [nobody[1] if i is None else credentials[i] for i in who],
        "from_address": [nobody[2] if i is None else owners[i] for i in who],
        "signature": source.texts("deposit", numbers, 96),
        "root": source.texts("deposit root", numbers, 32),
        "merkletree_index": ["0x" + n.to_bytes(8, "little").hex() for n in numbers],
    }
    rows = rows.with_columns(pl.Series(n, column, dtype=pl.String) for n, column in texts.items())
    sent = rows.select("block_number", "from_address").unique(maintain_order=True)
    names = [f"{block} {sender}" for block, sender in sent.rows()]
    sent = sent.with_columns(
        pl.Series("tx_hash", source.texts("deposit of", names, 32), dtype=pl.String),
        tx_index=pl.int_range(pl.len()).over("block_number") + _FIRST_PLACE,
    )
    rows = rows.join(sent, ["block_number", "from_address"], maintain_order="left")
    alone = pl.len().over("tx_hash") == 1  # of several, a contract has made the calls
    return rows.with_columns(removed=False, tx_input=pl.when(alone).then(_call()))


def _call() -> pl.Expr:
    """Return the call of the contract: the places of three byte strings, a root, the strings."""

    def word(number: int) -> pl.Expr:
        return pl.lit(f"{number:064x}")

    def digits(name: str) -> pl.Expr:
        return pl.col(name).str.slice(2)

    return pl.concat_str(
        pl.lit(_CALL),
        *(word(place) for place in (0x80, 0xE0, 0x120)),
        digits("root"),
        word(48),
        digits("pubkey") + "0" * 32,
        word(32),
        digits("withdrawal_credentials"),
        word(96),
        digits("signature"),
    )


def _in_slots(source: Source, rows: pl.DataFrame) -> pl.DataFrame:
    """Return what the blocks include. One row per deposit, in the contract's order."""
    roots = source.blocks.select("block_root", included="slot")
    return (
        rows.filter(pl.col("included").is_not_null())
        .join(roots, "included", maintain_order="left")
        .with_columns(
            block_slot="included",
            block_index=pl.int_range(pl.len()).over("included"),
            time=source.time_of("included"),
            proof=pl.lit(None, pl.String),
        )
    )


def _origins(rows: pl.DataFrame) -> pl.DataFrame:
    """Return who deposited for whom. One row per sender, key and validity of the signatures."""
    key = DepositOrigin.key()
    return rows.select(*key, "validator_index").unique(key).sort(key)
