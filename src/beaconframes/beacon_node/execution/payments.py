"""Fees and rewards of execution blocks, from receipts: what their proposers earned."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from beaconframes.beacon_node.client.signed_block import LARGEST_WEI
from beaconframes.beacon_node.client.slot_blocks import PROPOSED, get_payload
from beaconframes.beacon_node.execution.records import RpcTransaction, to_int
from beaconframes.errors import IntegrityError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from beaconframes.beacon_node.client.signed_block import ExecutionPayload
    from beaconframes.beacon_node.client.slot_blocks import SlotBlock
    from beaconframes.beacon_node.execution.api import ExecutionApi
    from beaconframes.beacon_node.execution.records import RpcBlock, RpcReceipt


@dataclass(frozen=True)
class BlockPayment:
    """What an execution block paid."""

    slot: int
    proposer_index: int | None
    payload: ExecutionPayload = field(repr=False)
    fees_wei: int
    """Priority fees, which the fee recipient received."""
    builder_payment_wei: int = 0
    """Payment of the builder to the proposer; 0 without one."""
    paid_address: str | None = None
    """The address that the builder paid."""

    @property
    def producer_reward_wei(self) -> int:
        """Reward of the proposer: the payment of the builder or, without one, the fees."""
        return self.builder_payment_wei or self.fees_wei


def read_payments(api: ExecutionApi, slots: Iterable[SlotBlock]) -> list[BlockPayment]:
    """Return what the execution block of each canonical block in *slots* paid.

    Slots without an execution block are left out. Priority fees are what the transactions paid for
    gas, without the base fee, which is burnt. The base fee of blobs is burnt, too, and not part of
    the gas price. A builder's payment is the last transaction of the block, if the fee recipient
    sends ether with it to another address.

    Raises
    ------
    IntegrityError
        A block or a receipt is missing, or contradicts the beacon block; names block and client.
    """
    chosen = [
        (slot, payload)
        for slot in slots
        if slot.status == PROPOSED and slot.block is not None
        if (payload := get_payload(slot.block.message.body)) is not None
    ]
    # Blocks without transactions paid nothing.
    numbers = [payload.block_number for _, payload in chosen if payload.transactions]
    found = dict(zip(numbers, api.read_blocks(numbers), strict=True))
    return [
        _build_payment(api, slot, payload, *found[payload.block_number])
        if payload.transactions
        else BlockPayment(slot.slot, slot.proposer_index, payload, 0)
        for slot, payload in chosen
    ]


def sum_fees(payments: Iterable[BlockPayment]) -> dict[int, int]:
    """Return the priority fees in wei by validator."""
    sums: Counter[int] = Counter()
    for payment in payments:
        if payment.proposer_index is not None:
            sums[payment.proposer_index] += payment.fees_wei
    return dict(sums)


def _build_payment(
    api: ExecutionApi,
    slot: SlotBlock,
    payload: ExecutionPayload,
    block: RpcBlock,
    receipts: Sequence[RpcReceipt],
) -> BlockPayment:
    """Return what a block paid, after checking it against the beacon block."""
    number = payload.block_number
    if block.hash.lower() != payload.block_hash.lower():
        raise _build_error(
            api,
            slot,
            number,
            f"has the hash {block.hash}, but the beacon block has {payload.block_hash}",
            hint="Check that both nodes follow one chain. Run it again after a reorganization",
        )
    if len(block.transactions) != len(payload.transactions):
        raise _build_error(
            api, slot, number, f"has {len(block.transactions)} transactions, but the beacon block "
            f"has {len(payload.transactions)}",
        )  # fmt: skip
    others = {receipt.block_hash for receipt in receipts if receipt.block_hash != block.hash}
    if others:
        raise _build_error(api, slot, number, f"has receipts of another block, {min(others)}")
    by_hash = {receipt.transaction_hash: receipt for receipt in receipts}
    hashes = [each.hash for each in block.transactions if isinstance(each, RpcTransaction)]
    if by_hash.keys() != set(hashes) or len(receipts) != len(hashes):
        raise _build_error(api, slot, number, "has receipts that are not those of its transactions")
    gas = sum(to_int(receipt.gas_used) for receipt in receipts)
    if {payload.gas_used} != {gas, to_int(block.gas_used)}:
        raise _build_error(
            api, slot, number, f"used {to_int(block.gas_used)} gas, its receipts {gas}, but the "
            f"beacon block has {payload.gas_used}",
        )  # fmt: skip
    paid = sum(to_int(each.gas_used) * to_int(each.effective_gas_price) for each in receipts)
    fees = paid - payload.base_fee_per_gas * gas
    if not 0 <= fees <= LARGEST_WEI:
        raise _build_error(api, slot, number, f"has {fees} wei of priority fees")
    amount, address = _find_builder_payment(payload.fee_recipient, block, by_hash)
    return BlockPayment(slot.slot, slot.proposer_index, payload, fees, amount, address)


def _find_builder_payment(
    fee_recipient: str, block: RpcBlock, receipts: dict[str, RpcReceipt]
) -> tuple[int, str | None]:
    """Return amount and recipient of the transfer at the end of the block; 0 without one."""
    last = block.transactions[-1] if block.transactions else None
    if not isinstance(last, RpcTransaction) or last.to is None:
        return 0, None
    sender, recipient, amount = last.from_address.lower(), last.to.lower(), to_int(last.value)
    is_transfer = last.input in {None, "0x"} and to_int(receipts[last.hash].status) == 1
    if sender != fee_recipient.lower() or recipient == sender or not is_transfer or not amount:
        return 0, None
    return amount, recipient


def _build_error(
    api: ExecutionApi, slot: SlotBlock, number: int, detail: str, *, hint: str | None = None
) -> IntegrityError:
    return IntegrityError(
        f"execution block {number} of slot {slot.slot} {detail} ({api.describe()})",
        hint=hint or "The answers of the execution node contradict each other: check its version",
    )
