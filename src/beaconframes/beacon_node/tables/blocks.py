"""Tables of blocks, of the pixels that they paint, and of execution blocks."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from beaconframes.beacon_node.client.slot_blocks import MISSED, get_payload
from beaconframes.beacon_node.tables.declaration import BLOCKS, PAYMENTS, NodeTable
from beaconframes.beacon_node.tables.frames import build_frame, build_rows
from beaconframes.derive.execution_blocks import NO_UNCLES
from beaconframes.v1._blocks import Blocks
from beaconframes.v1._execution_blocks import ExecutionBlocks
from beaconframes.v1.graffiti_wall import GraffitiWall
from beaconframes.wall import from_blocks

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from beaconframes.beacon_node.client.slot_blocks import SlotBlock
    from beaconframes.beacon_node.tables.epoch_data import EpochData
    from beaconframes.consensus.spec import Spec

_BLOCK_FIELDS: Final = {
    "parent_root": attrgetter("message.parent_root"),
    "state_root": attrgetter("message.state_root"),
    "randao_reveal": attrgetter("message.body.randao_reveal"),
    "signature": attrgetter("signature"),
    "graffiti": attrgetter("message.body.graffiti"),
    "eth1_data_block_hash": attrgetter("message.body.eth1_data.block_hash"),
    "eth1_data_deposit_root": attrgetter("message.body.eth1_data.deposit_root"),
    "eth1_data_deposit_count": attrgetter("message.body.eth1_data.deposit_count"),
}
_OPERATIONS: Final = (
    "attestations",
    "attester_slashings",
    "proposer_slashings",
    "deposits",
    "voluntary_exits",
)
_PAYLOAD_FIELDS: Final = {
    "exec_block_number": "block_number",
    "exec_block_hash": "block_hash",
    "exec_parent_hash": "parent_hash",
    "exec_fee_recipient": "fee_recipient",
    "exec_state_root": "state_root",
    "exec_receipts_root": "receipts_root",
    "exec_logs_bloom": "logs_bloom",
    "exec_random": "prev_randao",
    "exec_gas_limit": "gas_limit",
    "exec_gas_used": "gas_used",
    "exec_time": "timestamp",
    "exec_base_fee_per_gas_wei": "base_fee_per_gas",
}
_WITHOUT_BLOCK: Final = {
    "graffiti_text": "",
    "eth1_data_deposit_count": 0,
    "sync_aggregate_participation": 0.0,
    **{f"{name}_count": 0 for name in (*_OPERATIONS, "withdrawals", "exec_transactions")},
}
"""As in the service, counts and participation of a slot without a block are 0."""


def build_blocks(data: EpochData) -> pl.DataFrame:
    """Return blocks, one row per slot with or without a block."""
    slots, votes = data.slots, data.vote_counts
    rows = [_describe_slot(data.spec, slot, votes) for slot in slots]
    return build_rows(Blocks, rows, data.spec.chain)


def _describe_slot(
    spec: Spec, slot: SlotBlock, votes: Mapping[str, int | None] | None
) -> dict[str, Any]:
    row = _WITHOUT_BLOCK | {
        "slot": slot.slot,
        "block_root": slot.root,
        "epoch": spec.epoch_of(slot.slot),
        "status": slot.status,
        "proposer_index": slot.proposer_index,
    }
    if votes is not None and slot.root is not None and slot.status != MISSED:
        row["votes"] = votes.get(slot.root, 0)  # 0 if no attestation has its root.
    if slot.block is None:
        return row
    body = slot.block.message.body
    row |= {name: get(slot.block) for name, get in _BLOCK_FIELDS.items()}
    row |= {f"{name}_count": len(getattr(body, name)) for name in _OPERATIONS}
    row["graffiti_text"] = decode_graffiti(body.graffiti)
    if (aggregate := body.sync_aggregate) is not None:
        bits = aggregate.sync_committee_bits
        row["sync_aggregate_bits"] = bits
        row["sync_aggregate_signature"] = aggregate.sync_committee_signature
        row["sync_aggregate_participation"] = int(bits, 16).bit_count() / spec.sync_committee_size
    if (payload := get_payload(body)) is not None:
        row |= {name: getattr(payload, field) for name, field in _PAYLOAD_FIELDS.items()}
        row["exec_extra_data"] = None if payload.extra_data == "0x" else payload.extra_data
        row["exec_transactions_count"] = len(payload.transactions)
        row["withdrawals_count"] = len(payload.withdrawals or ())
    return row


def decode_graffiti(graffiti: str) -> str:
    """Return graffiti as text, as the service does: without zero bytes and invalid characters."""
    text = bytes.fromhex(graffiti[2:]).decode("utf-8", "ignore")
    return text.replace("\0", "").replace("\ufffd", "")


def build_wall(data: EpochData) -> pl.DataFrame:
    """Return the pixels that blocks paint, one row per pixel."""
    blocks = [(slot, slot.block.message.body) for slot in data.slots if slot.block is not None]
    columns = {
        "slot": [slot.slot for slot, _ in blocks],
        "block_root": [slot.root for slot, _ in blocks],
        "status": [slot.status for slot, _ in blocks],
        "proposer_index": [slot.proposer_index for slot, _ in blocks],
        "graffiti": [body.graffiti for _, body in blocks],
    }
    pixels = from_blocks(build_frame(Blocks, columns, data.spec.chain))
    return build_frame(GraffitiWall, pixels.to_dict(), data.spec.chain)


def build_execution_blocks(data: EpochData) -> pl.DataFrame:
    """Return the execution blocks of the epoch as they are once it is final, one row per block.

    Relays, their builders and the number of internal transactions are null: no node knows them.
    The payment of the builder is that in the block, not what a relay reports.
    """
    rows = [
        {
            "block_number": payload.block_number,
            "block_hash": payload.block_hash,
            "time": payload.timestamp,
            "block_reward_wei": payment.fees_wei,
            "block_mev_reward_wei": payment.builder_payment_wei,
            "producer_reward_wei": payment.producer_reward_wei,
            "fee_recipient": payload.fee_recipient,
            "gas_limit": payload.gas_limit,
            "gas_used": payload.gas_used,
            "base_fee_per_gas_wei": payload.base_fee_per_gas,
            "transactions_count": len(payload.transactions),
            "uncles_count": 0,
            "parent_hash": payload.parent_hash,
            "uncle_hash": NO_UNCLES,
            "difficulty": 0,
            "consensus_algorithm": "pos",
            "consensus_block_number": payload.block_number,
            "proposer_index": payment.proposer_index,
            "slot": payment.slot,
            "epoch": data.epoch,
            "finalized": True,
            "relay_producer_fee_recipient": payment.paid_address,
        }
        for payment in data.reader.payments(data.epoch)
        for payload in [payment.payload]
    ]
    return build_rows(ExecutionBlocks, rows, data.spec.chain)


TABLES: Final = (
    NodeTable(Blocks, "epoch", BLOCKS, build_blocks),
    NodeTable(GraffitiWall, "slot", BLOCKS, build_wall),
    NodeTable(ExecutionBlocks, "epoch", PAYMENTS, build_execution_blocks),
)
