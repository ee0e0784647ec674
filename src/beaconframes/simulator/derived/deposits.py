"""Deposits: events of the deposit contract, deposits in blocks, and their senders.

Every validator has a deposit: the initial validators before the first epoch, the others in the
blocks of the chain. Two signatures are invalid: that of a top-up, which the chain does not check,
and that of a new key, whose deposit the chain drops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from beaconframes.simulator import identities
from beaconframes.simulator.preset import ETH
from beaconframes.v1._deposits import Deposits
from beaconframes.v1._execution_requests import DepositRequests
from beaconframes.v1.deposit_origin import DepositOrigin
from beaconframes.v1.slot_deposits import SlotDeposits

if TYPE_CHECKING:
    from beaconframes.simulator.derived.chain_data import ChainData

_MIN_INCLUSION_DELAY: Final = 16  # slots from the contract's event to its inclusion
_EPOCHS_BEFORE_ELIGIBLE: Final = 2
_FIRST_TX_INDEX: Final = 3
_MAX_BATCH: Final = 24  # deposits in one transaction
_SELECTOR: Final = "0x22895118"
_DEPOSIT_AMOUNT: Final = 32 * ETH


def write_tables(data: ChainData) -> None:
    """Write all deposits."""
    initial = _find_initial_deposits(data)
    included = _find_included_deposits(data)
    dropped = _make_dropped_deposit(data)
    rows = _add_details(data, pl.concat([initial, included, dropped], how="diagonal"))
    data.add(Deposits, rows.sort(Deposits.key()))
    data.add(SlotDeposits, _select_included(data, rows))
    data.add(DepositOrigin, _select_origins(rows))
    data.add(DepositRequests, _select_requests(data, rows))


def _find_initial_deposits(data: ChainData) -> pl.DataFrame:
    """Return the deposits before the first epoch, one row per initial validator."""
    first = data.first
    size = data.chain.slots_per_epoch
    state = data.scan("balance_history").filter(epoch=first).collect()
    eligible = pl.col("activation_eligibility_epoch") - _EPOCHS_BEFORE_ELIGIBLE
    slots = data.validators.select("validator_index", slot=eligible.clip(0) * size)
    balance = pl.col("balance_gwei")
    # In a running chain, fractions of an ether are rewards; exited validators have deposits, too.
    amount = balance if first == 0 else (balance - balance % ETH).clip(_DEPOSIT_AMOUNT)
    rows = state.select("validator_index", amount_gwei=amount)
    return rows.join(slots, "validator_index", maintain_order="left").with_columns(
        block_number="slot", time=data.time_of("slot"), valid_signature=True
    )


def _find_included_deposits(data: ChainData) -> pl.DataFrame:
    """Return the deposits in blocks, in their order, with the block of the contract's event."""
    events = data.scan("deposit_events").collect()
    blocks = data.blocks.filter(pl.col("exec_block_number").is_not_null())
    position = np.searchsorted(
        blocks["slot"].to_numpy(), events["slot"].to_numpy() - _MIN_INCLUSION_DELAY, side="right"
    )
    origin = blocks[np.maximum(position - 1, 0)]
    is_initial = events["validator_index"] < _count_initial_validators(data)
    is_first_top_up = is_initial & (is_initial.cum_sum() == 1)
    return pl.DataFrame(
        {
            "validator_index": events["validator_index"],
            "amount_gwei": events["amount_gwei"],
            "included": events["slot"],
            "slot": origin["slot"],
            "block_number": origin["exec_block_number"],
            "time": origin["exec_time"],
            "valid_signature": ~is_first_top_up,
        }
    )


def _count_initial_validators(data: ChainData) -> int:
    """Return the number of validators at the first epoch."""
    first = data.scan("balance_history").filter(epoch=data.first)
    return int(first.select(pl.len()).collect().item())


def _make_dropped_deposit(data: ChainData) -> pl.DataFrame:
    """Return a deposit for a new key with an invalid signature, one row."""
    block = data.blocks.filter(pl.col("exec_block_number").is_not_null()).tail(1)
    return block.select(
        "slot",
        block_number="exec_block_number",
        time="exec_time",
        amount_gwei=_DEPOSIT_AMOUNT,
        valid_signature=False,
    )


def _add_details(data: ChainData, rows: pl.DataFrame) -> pl.DataFrame:
    """Return deposits with keys, sender and transaction, in the contract's order."""
    seed, count = data.seed, data.validators.height
    rows = rows.sort("slot", maintain_order=True).with_row_index("number")
    senders = identities.make_operator_addresses(seed, count)
    validators = rows["validator_index"].to_list()
    numbers = rows["number"].to_list()
    keys = data.validators["pubkey"].to_list()
    credentials = data.validators["withdrawal_credentials"].to_list()
    for index in data.scan("bls_change_events").collect()["validator_index"].to_list():
        credentials[index] = identities.make_bls_credentials(seed, index)
    for index in data.scan("switch_events").collect()["validator_index"].to_list():
        credentials[index] = "0x01" + credentials[index][4:]
    dropped = (
        identities.make_pubkey(seed, "dropped deposit"),
        identities.make_bls_credentials(seed, -1),
        senders[-1],
    )
    texts = {
        "pubkey": [dropped[0] if i is None else keys[i] for i in validators],
        "withdrawal_credentials": [dropped[1] if i is None else credentials[i] for i in validators],
        "from_address": [dropped[2] if i is None else senders[i] for i in validators],
        "signature": data.hash_keys("deposit", numbers, 96),
        "root": data.hash_keys("deposit root", numbers, 32),
        "merkletree_index": ["0x" + n.to_bytes(8, "little").hex() for n in numbers],
    }
    rows = rows.with_columns(pl.Series(n, column, dtype=pl.String) for n, column in texts.items())
    nth = pl.int_range(pl.len()).over("block_number", "from_address")
    rows = rows.with_columns(batch=nth // _MAX_BATCH)
    sent = rows.select("block_number", "from_address", "batch").unique(maintain_order=True)
    names = [f"{block} {sender} {batch}" for block, sender, batch in sent.rows()]
    sent = sent.with_columns(
        pl.Series("tx_hash", data.hash_keys("deposit of", names, 32), dtype=pl.String),
        tx_index=pl.int_range(pl.len()).over("block_number") + _FIRST_TX_INDEX,
    )
    key = ["block_number", "from_address", "batch"]
    rows = rows.join(sent, key, maintain_order="left")
    # Several deposits in one transaction are calls of a contract.
    is_single = pl.len().over("tx_hash") == 1
    return rows.with_columns(removed=False, tx_input=pl.when(is_single).then(_encode_call()))


def _encode_call() -> pl.Expr:
    """Return the call of the contract: offsets of three byte strings, a root, the strings."""

    def word(number: int) -> pl.Expr:
        return pl.lit(f"{number:064x}")

    def digits(name: str) -> pl.Expr:
        return pl.col(name).str.slice(2)

    return pl.concat_str(
        pl.lit(_SELECTOR),
        *(word(offset) for offset in (0x80, 0xE0, 0x120)),
        digits("root"),
        word(48),
        digits("pubkey") + "0" * 32,
        word(32),
        digits("withdrawal_credentials"),
        word(96),
        digits("signature"),
    )


def _select_included(data: ChainData, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the deposits in blocks, one row per deposit, in the contract's order."""
    roots = data.blocks.select("block_root", included="slot")
    return (
        rows.filter(pl.col("included").is_not_null())
        .join(roots, "included", maintain_order="left")
        .with_columns(
            block_slot="included",
            block_index=pl.int_range(pl.len()).over("included"),
            time=data.time_of("included"),
            proof=pl.lit(None, pl.String),
        )
    )


def _select_requests(data: ChainData, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the deposits in the execution blocks of the chain, one row per deposit."""
    blocks = data.blocks.select(
        "block_root", block_slot="slot", block_number="exec_block_number", time="exec_time"
    )
    # Deposits before the first epoch have block numbers, too, but are in no block of the chain.
    return rows.join(blocks, ["block_number", "time"], maintain_order="left").with_columns(
        request_index=pl.int_range(pl.len()).over("block_slot")
    )


def _select_origins(rows: pl.DataFrame) -> pl.DataFrame:
    """Return deposit origins, one row per sender, key and validity of the signatures."""
    key = DepositOrigin.key()
    return rows.select(*key, "validator_index").unique(key).sort(key)
