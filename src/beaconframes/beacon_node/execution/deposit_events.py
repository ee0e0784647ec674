"""Deposits from the events of the deposit contract, with their senders."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from beaconframes.beacon_node.client.signed_block import Data
from beaconframes.beacon_node.execution.records import Hash, RpcBlock, RpcTransaction, to_int
from beaconframes.errors import (
    BadRequest,
    IntegrityError,
    RequestTimeout,
    ResponseError,
    ServerError,
    ServiceError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beaconframes.beacon_node.execution.api import ExecutionApi
    from beaconframes.beacon_node.execution.records import RpcLog

DEPOSIT_EVENT: Final = "0x649bbc62d0e31342afea4e5cd82d4049e7e1ee912fc0889aa790803be39038c5"
"""Hash of ``DepositEvent(bytes,bytes,bytes,bytes,bytes)``, the topic of its logs."""
GET_DEPOSIT_COUNT: Final = "0x621fd130"
"""Selector of ``get_deposit_count()``."""
FIRST_BLOCKS: Final = {"0x00000000219ab540356cbb839cbe05303d7705fa": 11_052_984}
"""Blocks that created deposit contracts: no deposit is older. That of Mainnet."""
MAX_RANGE: Final = 10_000
"""Blocks of one request for events, until the client refuses so many."""
_FIELD_SIZES: Final = {
    "pubkey": 48,
    "withdrawal_credentials": 32,
    "amount_gwei": 8,
    "signature": 96,
    "number": 8,
}


@dataclass(frozen=True)
class Deposit:
    """A deposit: an event of the deposit contract."""

    number: int
    """Position among all deposits, from 0."""
    block_number: int
    tx_index: int
    tx_hash: str
    time: int
    """Unix seconds of the execution block."""
    from_address: str
    """Sender of the transaction, which may be another one than the caller of the contract."""
    tx_input: str | None
    pubkey: str
    withdrawal_credentials: str
    amount_gwei: int
    signature: str
    removed: bool = False


def read_deposits(
    api: ExecutionApi,
    contract: str,
    first_block: int,
    last_block: int,
    *,
    first_number: int | None = None,
    last_hash: str | None = None,
) -> list[Deposit]:
    """Return all deposits in a range of execution blocks, inclusive, in their order.

    *contract* is the deposit contract: ``/eth/v1/config/deposit_contract`` has its address.
    *first_number* is the number of the first deposit, if it is known: that after the last stored
    one. At the contract's first block it is 0. *last_hash* is the hash of *last_block* in the
    beacon chain: a node of another chain would have no deposits. The number of the last deposit is
    checked if the node has the state of *last_block*.

    Raises
    ------
    IntegrityError
        A deposit is missing, as their numbers show; *last_block* is missing or another one; or a
        block was replaced meanwhile.
    """
    _check_block(api, last_block, last_hash)
    earliest = FIRST_BLOCKS.get(contract.lower(), 0)
    if first_block <= earliest:
        first_number = 0
    logs = _read_logs(api, contract, max(first_block, earliest), last_block)
    events = sorted((_decode_event(api, log) for log in logs), key=lambda event: event["number"])
    numbers = [event["number"] for event in events]
    _check_numbers(api, numbers, first_number, _read_count(api, contract, last_block))
    return _add_transactions(api, events)


def _check_block(api: ExecutionApi, number: int, expected: str | None) -> None:
    """Raise IntegrityError unless the node has a block: logs of later blocks are empty."""
    block = api.read_each([("eth_getBlockByNumber", [hex(number), False])], RpcBlock)[0]
    if block is None:
        raise IntegrityError(
            f"{api.describe()} does not have execution block {number}",
            hint="Run it again when the node is synchronized",
            endpoint="eth_getBlockByNumber",
        )
    if expected is not None and block.hash.lower() != expected.lower():
        raise IntegrityError(
            f"execution block {number} has the hash {block.hash}, but the beacon block has "
            f"{expected} ({api.describe()})",
            hint="Check that both nodes follow one chain",
            endpoint="eth_getBlockByNumber",
        )


def _read_logs(api: ExecutionApi, contract: str, first_block: int, last_block: int) -> list[RpcLog]:
    """Return the logs of a range of blocks: half as many blocks whenever the client refuses."""
    logs: list[RpcLog] = []
    size, start = MAX_RANGE, first_block
    while start <= last_block:
        end = min(start + size - 1, last_block)
        try:
            found = api.read_logs(contract, DEPOSIT_EVENT, start, end)
        except (BadRequest, ServerError, RequestTimeout):
            if start == end:
                raise
            size = (end - start + 1) // 2
            continue
        logs += found
        start = end + 1
    return logs


def _decode_event(api: ExecutionApi, log: RpcLog) -> dict[str, Any]:
    """Return the fields of a DepositEvent: five byte strings, each after its length."""
    data = bytes.fromhex(log.data[2:])
    fields: dict[str, Any] = {"log": log}
    for position, (name, size) in enumerate(_FIELD_SIZES.items()):
        start = int.from_bytes(data[32 * position : 32 * position + 32])
        length = int.from_bytes(data[start : start + 32])
        value = data[start + 32 : start + 32 + size]
        if length != size or len(value) != size or log.topics[:1] != [DEPOSIT_EVENT]:
            raise ResponseError(
                f"log {to_int(log.log_index)} of execution block {to_int(log.block_number)} is "
                f"not a deposit: {name} has {length} bytes ({api.describe()})",
                hint="Check the address of the deposit contract",
                endpoint="eth_getLogs",
            )
        is_number = name in {"amount_gwei", "number"}
        fields[name] = int.from_bytes(value, "little") if is_number else f"0x{value.hex()}"
    return fields


def _read_count(api: ExecutionApi, contract: str, block: int) -> int | None:
    """Return the number of deposits up to a block; None if the node does not have its state."""
    call = {"to": contract, "data": GET_DEPOSIT_COUNT}
    try:
        answer = api.read_each([("eth_call", [call, hex(block)])], Data)[0]
    except ServiceError:
        return None
    data = bytes.fromhex((answer or "0x")[2:])
    # A byte string of 8 bytes, after its position and its length.
    return int.from_bytes(data[64:72], "little") if len(data) == 96 else None


def _check_numbers(
    api: ExecutionApi, numbers: Sequence[int], first: int | None, count: int | None
) -> None:
    """Raise IntegrityError unless deposits are complete: from *first* on, *count* at the end."""
    if first is None and numbers:
        first = numbers[0]
    if first is None:
        return
    end = count
    if end is None:
        end = numbers[-1] + 1 if numbers else first
    expected = range(first, end)
    if list(numbers) == list(expected):
        return
    if missing := sorted(set(expected) - set(numbers)):
        detail = f"{len(missing)} deposits are missing, the first is number {missing[0]}"
    else:
        # Numbers are sorted: what is not in its place is a repetition, or after the end.
        odd = next(n for n, at in zip_longest(numbers, expected) if n != at)
        detail = f"deposit number {odd} was not expected"
    raise IntegrityError(
        f"{api.describe()} returned {len(numbers)} deposits: {detail}",
        hint=api.history_hint(),
        endpoint="eth_getLogs",
    )


def _add_transactions(api: ExecutionApi, events: Sequence[dict[str, Any]]) -> list[Deposit]:
    """Return deposits with the sender of their transaction and the time of their block.

    Transactions are requested by their block: Geth finds those older than a year by hash only
    with an index of all transactions.
    """
    places = {
        event["log"].transaction_hash: (event["log"].block_hash, event["log"].transaction_index)
        for event in events
    }
    calls = [("eth_getTransactionByBlockHashAndIndex", place) for place in places.values()]
    transactions = dict(zip(places, api.read_each(calls, RpcTransaction), strict=True))
    times = _read_times(api, [event["log"] for event in events])
    deposits = []
    for event in events:
        log: RpcLog = event["log"]
        transaction = transactions[log.transaction_hash]
        if transaction is None or transaction.hash != log.transaction_hash:
            raise _build_replaced_error(api, log, f"transaction {log.transaction_hash}")
        deposits.append(
            Deposit(
                **{name: event[name] for name in _FIELD_SIZES},
                block_number=to_int(log.block_number),
                tx_index=to_int(log.transaction_index),
                tx_hash=log.transaction_hash.lower(),
                time=times[log.block_hash],
                from_address=transaction.from_address.lower(),
                tx_input=None if transaction.input in {None, "0x"} else transaction.input,
                removed=log.removed,
            )
        )
    return deposits


def _read_times(api: ExecutionApi, logs: Sequence[RpcLog]) -> dict[Hash, int]:
    """Return the time of each block by its hash, requested where the logs do not state it."""
    times = {log.block_hash: to_int(log.block_timestamp) for log in logs if log.block_timestamp}
    others = {log.block_hash: log for log in logs if log.block_hash not in times}
    calls = [("eth_getBlockByHash", (block_hash, False)) for block_hash in others]
    for log, block in zip(others.values(), api.read_each(calls, RpcBlock), strict=True):
        if block is None:
            raise _build_replaced_error(api, log, f"block {log.block_hash}")
        times[log.block_hash] = to_int(block.timestamp)
    return times


def _build_replaced_error(api: ExecutionApi, log: RpcLog, what: str) -> IntegrityError:
    return IntegrityError(
        f"{api.describe()} does not have {what} of execution block {to_int(log.block_number)}, "
        "which has a deposit",
        hint=f"After a reorganization, run it again. {api.history_hint()}",
    )
