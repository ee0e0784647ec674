"""The columns of a beacon block, shared by several endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.schema import (
    Code,
    Count,
    Epoch,
    Fraction,
    Hex,
    Slot,
    SlotInEpoch,
    SlotTime,
    Table,
    Text,
    UnixTime,
    Wei,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from beaconframes.calendar import Chain

NO_PROPOSER = 2**31 - 1
"""Proposer of slot 0 on the wire: genesis has no proposer."""


class Blocks(Table):
    """Beacon blocks. One row per block; a slot without a block has a row with status missed."""

    slot = Slot("Slot.", key=True)
    block_root = Hex(
        "Root of the block; null for a slot without one.",
        key=True,
        wire="blockroot",
        none=("0x00", "0x01", "0x"),
        nullable=True,
    )
    epoch = Epoch("Epoch of the slot.")
    time = SlotTime("Start of the slot, UTC.")
    status = Code(
        "scheduled, proposed (canonical), missed or orphaned.",
        words={"0": "scheduled", "1": "proposed", "2": "missed", "3": "orphaned"},
        final_when=("proposed", "missed", "orphaned"),
    )
    proposer_index = Count(
        "Validator that had to propose; null for genesis.", wire="proposer", none=NO_PROPOSER
    )
    parent_root = Hex("Root of the parent block.", wire="parentroot", nullable=True)
    state_root = Hex("Root of the state after the block.", wire="stateroot", nullable=True)
    randao_reveal = Hex("RANDAO reveal of the proposer.", wire="randaoreveal", nullable=True)
    signature = Hex("Signature of the proposer.", nullable=True)
    graffiti = Hex("Graffiti of the proposer, 32 bytes.", nullable=True)
    graffiti_text = Text(
        "Graffiti as text. Proposers choose it freely: do not trust it.", nullable=True
    )
    eth1_data_block_hash = Hex(
        "Deposit-contract vote: block.", wire="eth1data_blockhash", nullable=True
    )
    eth1_data_deposit_root = Hex(
        "Deposit-contract vote: root.", wire="eth1data_depositroot", nullable=True
    )
    eth1_data_deposit_count = Count(
        "Deposit-contract vote: count.", wire="eth1data_depositcount", nullable=True
    )
    sync_aggregate_bits = Hex(
        "Sync-committee signatures: bit i is seat i, lowest bit of a byte first.",
        wire="syncaggregate_bits",
        nullable=True,
    )
    sync_aggregate_signature = Hex(
        "Aggregate signature of the sync committee.", wire="syncaggregate_signature", nullable=True
    )
    sync_aggregate_participation = Fraction(
        "Share of the sync committee that signed; 0 without an aggregate.",
        wire="syncaggregate_participation",
        nullable=True,
    )
    attestations_count = Count("Attestations included.", wire="attestationscount")
    attester_slashings_count = Count("Attester slashings included.", wire="attesterslashingscount")
    proposer_slashings_count = Count("Proposer slashings included.", wire="proposerslashingscount")
    deposits_count = Count("Deposits included.", wire="depositscount")
    withdrawals_count = Count("Withdrawals included.", wire="withdrawalcount", optional=True)
    voluntary_exits_count = Count("Voluntary exits included.", wire="voluntaryexitscount")
    exec_block_number = Count("Number of the execution block.", nullable=True)
    exec_block_hash = Hex("Hash of the execution block.", nullable=True)
    exec_parent_hash = Hex("Hash of the parent block.", nullable=True)
    exec_fee_recipient = Hex("Recipient of the priority fees.", nullable=True)
    exec_state_root = Hex("Root of the execution state.", nullable=True)
    exec_receipts_root = Hex("Root of the receipts.", nullable=True)
    exec_logs_bloom = Hex("Bloom filter of the logs.", nullable=True)
    exec_random = Hex("RANDAO value of the execution block (prev_randao).", nullable=True)
    exec_gas_limit = Count("Gas limit.", nullable=True)
    exec_gas_used = Count("Gas used.", nullable=True)
    exec_time = UnixTime(
        "Timestamp of the execution block, UTC.", wire="exec_timestamp", nullable=True
    )
    exec_base_fee_per_gas_wei = Wei(
        "Base fee per gas.", wire="exec_base_fee_per_gas", nullable=True, minimum=0
    )
    exec_extra_data = Hex("Extra data of the execution block; null also when empty.", nullable=True)
    exec_transactions_count = Count("Transactions in the execution block.", nullable=True)
    votes = Count(
        "Validators that voted for the block; null unless the block was requested by slot.",
        optional=True,
    )

    invariants = (SlotInEpoch(),)

    @classmethod
    def encode_records(
        cls,
        frame: pl.DataFrame,
        chain: Chain,
        *,
        without: Collection[str] = (),
        public: bool = False,
    ) -> list[bytes]:
        """Return the JSON texts of the records; empty slots have placeholder roots in public."""
        if public:
            root = pl.when(status="scheduled").then(pl.lit("0x00")).otherwise(pl.lit("0x01"))
            frame = frame.with_columns(pl.col("block_root").fill_null(root))
        return super().encode_records(frame, chain, without=without, public=public)
