"""Withdrawals, exits and changes of credentials, as the blocks have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.simulator import identities
from beaconframes.v1.bls_changes import BlsChanges
from beaconframes.v1.slot_withdrawals import SlotWithdrawals
from beaconframes.v1.validator_withdrawals import ValidatorWithdrawals
from beaconframes.v1.voluntary_exits import VoluntaryExits

if TYPE_CHECKING:
    from beaconframes.simulator.derived.source import Source

_ADDRESS = "0x" + pl.col("withdrawal_credentials").str.tail(40)


def write(source: Source) -> None:
    """Write what the events of the chain say, with the blocks that they are in."""
    events = source.scan("withdrawal_events").collect()
    addresses = source.validators.select("validator_index", address=_ADDRESS)
    roots = source.blocks.select("slot", "epoch", "block_root")
    for table in (ValidatorWithdrawals, SlotWithdrawals):
        source.add(table, table.empty())
    for part in events.iter_slices(65_536):
        rows = (
            part.join(addresses, "validator_index", how="left", maintain_order="left")
            .join(roots, "slot", how="left", maintain_order="left")
            .with_columns(time=source.time_of("slot"))
        )
        source.add(ValidatorWithdrawals, rows)
        source.add(SlotWithdrawals, rows.rename({"slot": "block_slot"}))
    source.add(VoluntaryExits, voluntary_exits(source))
    source.add(BlsChanges, bls_changes(source))


def voluntary_exits(source: Source) -> pl.DataFrame:
    """Return the exits. One row per exit that a block included."""
    rows = source.scan("exit_events").collect().join(source.blocks, "slot", maintain_order="left")
    return rows.rename({"slot": "block_slot"}).with_columns(
        block_index=pl.int_range(pl.len()).over("block_slot"),
        time=source.time_of("block_slot"),
        signature=pl.Series(source.texts("exit", rows["validator_index"], 96), dtype=pl.String),
    )


def bls_changes(source: Source) -> pl.DataFrame:
    """Return the changes. One row per validator that changed."""
    seed = source.seed
    rows = (
        source.scan("bls_change_events").collect()
        .join(source.blocks, "slot", maintain_order="left")
        .join(source.validators, "validator_index", maintain_order="left")
        .sort("validator_index", "slot")
    )  # fmt: skip
    who = rows["validator_index"].to_list()
    made = {
        "bls_pubkey": [identities.pubkey(seed, f"withdrawal key {index}") for index in who],
        "bls_signature": source.texts("change", who, 96),
        "withdrawal_credentials_0x00": [identities.bls_credentials(seed, index) for index in who],
    }
    return rows.with_columns(
        *(pl.Series(name, texts, dtype=pl.String) for name, texts in made.items()),
        time=source.time_of("slot"),
        address=_ADDRESS,
        withdrawal_credentials_0x01=pl.col("withdrawal_credentials"),
    )
