"""The table of execution blocks, and what their proposers earned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes.beacon_node.tables.declaration import PAYMENTS, NodeTable
from beaconframes.beacon_node.tables.frames import build_frame
from beaconframes.derive.execution_blocks import NO_UNCLES
from beaconframes.v1._execution_blocks import ExecutionBlocks

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from beaconframes.beacon_node.execution.payments import BlockPayment
    from beaconframes.consensus.spec import Spec


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


EXECUTION_BLOCKS = NodeTable(
    ExecutionBlocks,
    "epoch",
    PAYMENTS,
    # The rows of an epoch are stored once it is final.
    lambda data: build_execution_blocks(
        data.spec, data.reader.payments(data.epoch), finalized_epoch=data.epoch
    ),
)
