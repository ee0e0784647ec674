"""Operations in blocks: withdrawals, voluntary exits and BLS changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.simulator import identities
from beaconframes.v1._execution_requests import (
    ConsolidationRequests,
    SwitchToCompoundingRequests,
)
from beaconframes.v1.bls_changes import BlsChanges
from beaconframes.v1.slot_withdrawals import SlotWithdrawals
from beaconframes.v1.validator_withdrawals import ValidatorWithdrawals
from beaconframes.v1.voluntary_exits import VoluntaryExits

if TYPE_CHECKING:
    from beaconframes.simulator.derived.chain_data import ChainData

_ADDRESS = "0x" + pl.col("withdrawal_credentials").str.tail(40)


def write_tables(data: ChainData) -> None:
    """Write the tables of operations, from events and the blocks that include them."""
    events = data.scan("withdrawal_events").collect()
    addresses = data.validators.select("validator_index", address=_ADDRESS)
    for table in (ValidatorWithdrawals, SlotWithdrawals):
        data.add(table, table.empty())
    for part in events.iter_slices(65_536):
        rows = (
            part.join(addresses, "validator_index", how="left", maintain_order="left")
            .with_columns(time=data.time_of("slot"))
            .rename({"slot": "block_slot"})
        )
        data.add(SlotWithdrawals, rows)
        slot = pl.col("block_slot")
        data.add(
            ValidatorWithdrawals,
            rows.with_columns(slot=slot, epoch=data.epoch_of("block_slot"), block_root=2 * slot),
        )
    data.add(VoluntaryExits, build_voluntary_exits(data))
    data.add(BlsChanges, build_bls_changes(data))
    data.add(SwitchToCompoundingRequests, build_switches(data))
    data.add(ConsolidationRequests, ConsolidationRequests.empty())


def build_voluntary_exits(data: ChainData) -> pl.DataFrame:
    """Return voluntary exits, one row per exit."""
    rows = data.scan("exit_events").collect().join(data.blocks, "slot", maintain_order="left")
    return rows.rename({"slot": "block_slot"}).with_columns(
        block_index=pl.int_range(pl.len()).over("block_slot"),
        time=data.time_of("block_slot"),
        signature=pl.Series(data.hash_keys("exit", rows["validator_index"], 96), dtype=pl.String),
    )


def build_switches(data: ChainData) -> pl.DataFrame:
    """Return switches to compounding credentials, one row per switch."""
    addresses = data.validators.select("validator_index", address=_ADDRESS)
    rows = data.scan("switch_events").collect().join(data.blocks, "slot", maintain_order="left")
    return (
        rows.join(addresses, "validator_index", maintain_order="left")
        .rename({"slot": "block_slot"})
        .with_columns(request_index=pl.int_range(pl.len()).over("block_slot"))
    )


def build_bls_changes(data: ChainData) -> pl.DataFrame:
    """Return BLS changes, one row per change."""
    seed = data.seed
    rows = (
        data.scan("bls_change_events").collect()
        .join(data.blocks, "slot", maintain_order="left")
        .join(data.validators, "validator_index", maintain_order="left")
        .sort("validator_index", "slot")
    )  # fmt: skip
    validators = rows["validator_index"].to_list()
    texts_by_column = {
        "bls_pubkey": [
            identities.make_pubkey(seed, f"withdrawal key {index}") for index in validators
        ],
        "bls_signature": data.hash_keys("change", validators, 96),
        "withdrawal_credentials_0x00": [
            identities.make_bls_credentials(seed, index) for index in validators
        ],
    }
    return rows.with_columns(
        *(pl.Series(name, texts, dtype=pl.String) for name, texts in texts_by_column.items()),
        time=data.time_of("slot"),
        address=_ADDRESS,
        withdrawal_credentials_0x01=pl.col("withdrawal_credentials"),
    )
