"""The JSON of an execution node: blocks, transactions, receipts and logs."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct, field

from beaconframes.beacon_node.client.signed_block import Address, Data, Root

Hash: TypeAlias = Root
# Some clients write zeros in front, such as 0x00ff.
Quantity: TypeAlias = Annotated[str, Meta(pattern=r"^0x[0-9a-fA-F]+\Z")]


class _Object(Struct, gc=False, rename="camel"):
    """A JSON object; other fields are ignored."""


class RpcTransaction(_Object):
    """A transaction of a block."""

    hash: Hash
    from_address: Address = field(name="from")
    value: Quantity
    to: Address | None = None
    input: Data | None = None


class RpcBlock(_Object):
    """A block; its transactions are hashes, unless full transactions were requested."""

    number: Quantity
    hash: Hash
    gas_used: Quantity
    timestamp: Quantity
    transactions: list[RpcTransaction | str]
    base_fee_per_gas: Quantity | None = None


class RpcReceipt(_Object):
    """The receipt of a transaction."""

    transaction_hash: Hash
    block_hash: Hash
    gas_used: Quantity
    effective_gas_price: Quantity
    status: Quantity = "0x1"


class RpcLog(_Object):
    """An event of a contract. Newer clients also state the time of its block."""

    address: Address
    topics: list[Hash]
    data: Data
    block_number: Quantity
    block_hash: Hash
    transaction_hash: Hash
    transaction_index: Quantity
    log_index: Quantity
    removed: bool = False
    block_timestamp: Quantity | None = None


class FeeHistory(_Object):
    """Base fees and percentiles of the priority fees of recent blocks, oldest first."""

    base_fee_per_gas: list[Quantity]
    gas_used_ratio: list[float]
    reward: list[list[Quantity]] | None = None


def to_int(quantity: str) -> int:
    """Return the number of a hexadecimal quantity, zeros in front or not."""
    return int(quantity, 16)
