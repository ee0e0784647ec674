"""Tables of blocks, of the pixels that they paint, and of execution blocks."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from beaconframes.beacon_node.client.slot_blocks import MISSED, get_payload
from beaconframes.beacon_node.tables.declaration import BLOCKS, PAYMENTS, NodeTable
from beaconframes.beacon_node.tables.frames import build_frame
from beaconframes.derive.execution_blocks import NO_UNCLES
from beaconframes.v1._blocks import Blocks
from beaconframes.v1._execution_blocks import ExecutionBlocks
from beaconframes.v1.graffiti_wall import GraffitiWall
from beaconframes.wall import from_blocks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from beaconframes.beacon_node.client.slot_blocks import SlotBlock
    from beaconframes.beacon_node.execution.payments import BlockPayment
    from beaconframes.beacon_node.tables.epoch_data import EpochData
    from beaconframes.consensus.spec import Spec

_BLOCK_FIELDS: Final = {
    "parent_root": "message.parent_root",
    "state_root": "message.state_root",
    "randao_reveal": "message.body.randao_reveal",
    "signature": "signature",
    "graffiti": "message.body.graffiti",
    "eth1_data_block_hash": "message.body.eth1_data.block_hash",
    "eth1_data_deposit_root": "message.body.eth1_data.deposit_root",
}
"""The field of a signed block for each column that is null without a block."""

_COUNTS: Final = {
    "attestations_count": "attestations",
    "attester_slashings_count": "attester_slashings",
    "proposer_slashings_count": "proposer_slashings",
    "deposits_count": "deposits",
    "voluntary_exits_count": "voluntary_exits",
}
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


def build_blocks(data: EpochData) -> pl.DataFrame:
    """Return blocks, one row per slot with or without a block.

    As in the service, counts and participation of a slot without a block are 0.
    """
    spec, slots, votes = data.spec, data.slots, data.vote_counts
    blocks = [slot.block for slot in slots]
    bodies = [block.message.body if block else None for block in blocks]
    payloads = [get_payload(body) for body in bodies]
    aggregates = [body.sync_aggregate if body else None for body in bodies]
    columns: dict[str, list[Any]] = {
        "slot": [slot.slot for slot in slots],
        "block_root": [slot.root for slot in slots],
        "epoch": [spec.epoch_of(slot.slot) for slot in slots],
        "status": [slot.status for slot in slots],
        "proposer_index": [slot.proposer_index for slot in slots],
        "graffiti_text": [decode_graffiti(body.graffiti) if body else "" for body in bodies],
        "eth1_data_deposit_count": [
            body.eth1_data.deposit_count if body else 0 for body in bodies
        ],
        "sync_aggregate_bits": [each.sync_committee_bits if each else None for each in aggregates],
        "sync_aggregate_signature": [
            each.sync_committee_signature if each else None for each in aggregates
        ],
        "sync_aggregate_participation": [
            _count_bits(each.sync_committee_bits) / spec.sync_committee_size if each else 0.0
            for each in aggregates
        ],
        "withdrawals_count": [len(payload.withdrawals or ()) if payload else 0
                              for payload in payloads],
        "exec_extra_data": [
            payload.extra_data if payload and payload.extra_data != "0x" else None
            for payload in payloads
        ],
        "exec_transactions_count": [
            len(payload.transactions) if payload else 0 for payload in payloads
        ],
        "votes": [_find_votes(slot, votes) for slot in slots],
    }  # fmt: skip
    for name, path in _BLOCK_FIELDS.items():
        get = attrgetter(path)
        columns[name] = [get(block) if block else None for block in blocks]
    for name, field in _COUNTS.items():
        get = attrgetter(field)
        columns[name] = [len(get(body)) if body else 0 for body in bodies]
    for name, field in _PAYLOAD_FIELDS.items():
        get = attrgetter(field)
        columns[name] = [get(payload) if payload else None for payload in payloads]
    return build_frame(Blocks, columns, spec.chain)


def _find_votes(slot: SlotBlock, votes: Mapping[str, int | None] | None) -> int | None:
    """Return the number of votes for a block: 0 if no attestation has its root."""
    if votes is None or slot.root is None or slot.status == MISSED:
        return None
    return votes.get(slot.root, 0)


def _count_bits(text: str) -> int:
    return int(text, 16).bit_count()


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


def build_execution_blocks(
    spec: Spec, payments: Sequence[BlockPayment], *, finalized_epoch: int
) -> pl.DataFrame:
    """Return execution blocks, one row per block of *payments*.

    Relays, their builders and the number of internal transactions are null: no node knows them.
    The payment of the builder is that in the block, not what a relay reports.
    """
    payloads = [payment.payload for payment in payments]
    slots = [payment.slot for payment in payments]
    epochs = [spec.epoch_of(slot) for slot in slots]
    numbers = [payload.block_number for payload in payloads]
    columns = {
        "block_number": numbers,
        "block_hash": [payload.block_hash for payload in payloads],
        "time": [payload.timestamp for payload in payloads],
        "block_reward_wei": [payment.fees_wei for payment in payments],
        "block_mev_reward_wei": [payment.builder_payment_wei for payment in payments],
        "producer_reward_wei": [payment.producer_reward_wei for payment in payments],
        "fee_recipient": [payload.fee_recipient for payload in payloads],
        "gas_limit": [payload.gas_limit for payload in payloads],
        "gas_used": [payload.gas_used for payload in payloads],
        "base_fee_per_gas_wei": [payload.base_fee_per_gas for payload in payloads],
        "transactions_count": [len(payload.transactions) for payload in payloads],
        "uncles_count": [0] * len(slots),
        "parent_hash": [payload.parent_hash for payload in payloads],
        "uncle_hash": [NO_UNCLES] * len(slots),
        "difficulty": [0] * len(slots),
        "consensus_algorithm": ["pos"] * len(slots),
        "consensus_block_number": numbers,
        "proposer_index": [payment.proposer_index for payment in payments],
        "slot": slots,
        "epoch": epochs,
        "finalized": [epoch <= finalized_epoch for epoch in epochs],
        "relay_producer_fee_recipient": [payment.paid_address for payment in payments],
    }
    return build_frame(ExecutionBlocks, columns, spec.chain)


def build_final_execution_blocks(data: EpochData) -> pl.DataFrame:
    """Return the execution blocks of the epoch, as they are once it is final."""
    payments = data.reader.payments(data.epoch)
    return build_execution_blocks(data.spec, payments, finalized_epoch=data.epoch)


TABLES: Final = (
    NodeTable(Blocks, "epoch", BLOCKS, build_blocks),
    NodeTable(GraffitiWall, "slot", BLOCKS, build_wall),
    NodeTable(ExecutionBlocks, "epoch", PAYMENTS, build_final_execution_blocks),
)
