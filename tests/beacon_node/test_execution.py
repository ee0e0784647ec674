"""Fees, rewards and readings of an execution node, and the faults of its clients."""

from __future__ import annotations

import copy
import json

import httpx
import polars as pl
import pytest

from beaconframes.beacon_node.client.clients import EXECUTION_CLIENTS
from beaconframes.beacon_node.execution.payments import read_payments, sum_fees
from beaconframes.beacon_node.tables.readings import read_address_balances, read_gas_fees
from beaconframes.calendar import MAINNET
from beaconframes.errors import (
    BeaconframesError,
    IntegrityError,
    NotFound,
    NotServed,
    RateLimited,
    ResponseError,
    ServerError,
    Unauthorized,
)
from beaconframes.v1._execution_blocks import ExecutionBlocks

from ..support.beacon_node_stub import read_recording
from ..support.execution_node import FakeNode, RpcError, reply
from ..support.node_tables import build_execution_blocks
from ..support.recorded_blocks import load_blocks

CHAIN = "capella"
FEES = {19: 25000000000000, 20: 41000000000000, 21: 140950000000000, 24: 182500000000000}
"""Wei, from the expected values of the recording."""


def recorded(method, *parameters):
    """Return what the recorded execution client answered."""
    text = read_recording(CHAIN).rpc.get((method, json.dumps(parameters)))
    return None if text is None else json.loads(text)["result"]


def block(number, full):
    return recorded("eth_getBlockByNumber", number, full)


def receipts(number):
    return recorded("eth_getBlockReceipts", number)


def make_node(**options):
    """Return a node with the recorded blocks; keywords replace its methods."""
    batches = options.pop("batches", "yes")
    methods = {"eth_getBlockByNumber": block, "eth_getBlockReceipts": receipts, **options}
    return FakeNode({k: v for k, v in methods.items() if v is not None}, batches=batches)


def pick(*slots):
    return [load_blocks(CHAIN).slots[slot] for slot in slots]


def change(found, **fields):
    """Return a copy of a recorded answer with other fields in its first object."""
    found = copy.deepcopy(found)
    (found[0] if isinstance(found, list) else found).update(fields)
    return found


def test_fees_of_every_recorded_block():
    """Number, recipient, gas, base fee and fees of 375 blocks equal the expected values."""
    chain, node = load_blocks(CHAIN), make_node()

    payments = read_payments(node.api(), chain.slots)

    expected = chain.expected["execution_fees"]
    found = [
        [
            payment.slot,
            payment.payload.block_number,
            payment.payload.fee_recipient,
            len(payment.payload.transactions),
            payment.payload.gas_used,
            payment.payload.base_fee_per_gas,
            str(payment.fees_wei),
        ]
        for payment in payments
    ]
    assert 375 == len(found)
    assert expected == found
    proposers = {slot.slot: slot.proposer_index for slot in chain.slots}
    sums = {}
    for slot, *_, fees in expected:
        by_validator = sums.setdefault(slot // 8, {})
        by_validator[proposers[slot]] = by_validator.get(proposers[slot], 0) + int(fees)
    assert sums == {
        epoch: sum_fees(payment for payment in payments if payment.slot // 8 == epoch)
        for epoch in sums
    }
    assert 314 == sum(transactions > 0 for _, _, _, transactions, *_ in expected)
    assert [8] * 78 + [4] == node.sizes, "four blocks with transactions in each request"


def test_rows_of_execution_blocks():
    """Rows have the schema of the table; what no node knows is null, and can be served."""
    spec = load_blocks(CHAIN).spec
    payments = read_payments(make_node().api(), pick(19, 23))

    frame = build_execution_blocks(spec, 2, payments)

    assert ExecutionBlocks.schema() == frame.schema
    row = frame.row(0, named=True)
    known = {
        "block_number": 2,
        "block_reward_wei": 25000000000000,
        "block_mev_reward_wei": 0,
        "producer_reward_wei": 25000000000000,
        "fee_recipient": "0x" + "aa" * 20,
        "gas_used": 100000,
        "base_fee_per_gas_wei": 1074000000,
        "transactions_count": 1,
        "uncles_count": 0,
        "consensus_algorithm": "pos",
        "consensus_block_number": 2,
        "proposer_index": load_blocks(CHAIN).slots[19].proposer_index,
        "slot": 19,
        "epoch": 2,
        "finalized": True,
        "internal_transactions_count": None,
        "relay_tag": None,
        "relay_builder_pubkey": None,
        "relay_producer_fee_recipient": None,
    }
    assert known == {name: row[name] for name in known}
    assert recorded("eth_getBlockByNumber", "0x2", True)["hash"] == row["block_hash"]
    assert int("0x6b0283a2", 16) == row["time"].timestamp()
    served = ExecutionBlocks.encode_records(frame, spec.chain)
    assert frame.equals(ExecutionBlocks.decode([b"[" + b",".join(served) + b"]"], spec.chain))


def test_client_without_block_receipts():
    """The error names the method, which all clients of the present chain have."""
    with pytest.raises(NotServed, match="eth_getBlockReceipts"):
        read_payments(make_node(eth_getBlockReceipts=None).api(), pick(20))


@pytest.mark.parametrize("batches", ["http-400", "text-403", "object", "first-only"])
def test_server_that_refuses_batches(batches):
    """Single calls follow the first refusal, and no batch is sent again."""
    node = make_node(batches=batches)

    payments = read_payments(node.api(), pick(20, 21, 23, 24, 19))

    assert [FEES.get(payment.slot, 0) for payment in payments] == [p.fees_wei for p in payments]
    assert [8] + 8 * [0] == node.sizes


def test_errors_of_single_calls_are_not_hidden_by_the_batch():
    """What a single call reports is the error, with its method."""
    node = make_node(batches="object", eth_getBlockByNumber=fail(-32000, "database is closed"))
    api = node.api()

    with pytest.raises(ServerError, match=r"database is closed \(eth_getBlockByNumber\)"):
        read_payments(api, pick(20))
    assert api.has_batches


def fail(code, message):
    """Return a method that fails."""

    def method(*_):
        raise RpcError(code, message)

    return method


@pytest.mark.parametrize("found", [None, [], [None] * 3])
def test_missing_receipts_name_client_and_flag(found):
    """Pruned receipts are null, or a shorter list: no fee is computed from them."""
    with pytest.raises(
        IntegrityError,
        match=r"Geth/v1\.16\.7.* has 0 of 3 receipts of execution block 3\b.*--history\.chain=all",
    ):
        read_payments(make_node(eth_getBlockReceipts=lambda _: found).api(), pick(20))


def test_pruned_history_names_the_flag():
    """The error of EIP-4444 has the flag of the client."""
    node = make_node(eth_getBlockByNumber=fail(4444, "pruned history unavailable"))

    with pytest.raises(NotFound, match=r"pruned history.*--history\.chain=all"):
        read_payments(node.api(), pick(20))
    assert all(client.archive_flag.startswith("--") for client in EXECUTION_CLIENTS.values())


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"hash": "0x" + "12" * 32}, r"has the hash 0x1212.*but the beacon block has 0x"),
        ({"transactions": []}, r"has 0 transactions, but the beacon block has 3"),
        ({"gasUsed": "0x1"}, r"used 1 gas, its receipts 142000, but the beacon block has 142000"),
    ],
)
def test_a_contradicting_block_is_named(fields, words):
    """A reorganized block, or one of another chain, names block, slot and client."""
    node = make_node(eth_getBlockByNumber=lambda *key: change(block(*key), **fields))

    with pytest.raises(IntegrityError, match=rf"block 3 of slot 20 {words}.*Geth/v1\.16\.7"):
        read_payments(node.api(), pick(20))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"blockHash": "0x" + "34" * 32}, r"has receipts of another block, 0x3434"),
        ({"transactionHash": "0x" + "56" * 32}, r"has receipts that are not those of its trans"),
        ({"gasUsed": "0x5"}, r"used 142000 gas, its receipts \d+, but"),
        ({"effectiveGasPrice": "0x0"}, r"has -\d+ wei of priority fees"),
    ],
)
def test_receipts_must_be_those_of_the_block(fields, words):
    """Receipts must be those of the block: hash, transactions, sum of gas."""
    node = make_node(eth_getBlockReceipts=lambda number: change(receipts(number), **fields))

    with pytest.raises(IntegrityError, match=rf"block 3 of slot 20 {words}"):
        read_payments(node.api(), pick(20))


def test_a_missing_block_names_the_node():
    """A node that is not synchronized is named, not its empty answer."""
    node = make_node(eth_getBlockByNumber=lambda *_: None)

    with pytest.raises(IntegrityError, match=r"Geth.* does not have execution block 3\b.*synchron"):
        read_payments(node.api(), pick(20))


@pytest.mark.parametrize("quantity", ["12", "0x", "0xg", 12, None])
def test_invalid_quantities_are_named(quantity):
    """A number that is not hexadecimal names field, method and client."""
    node = make_node(eth_getBlockReceipts=lambda key: change(receipts(key), gasUsed=quantity))

    with pytest.raises(ResponseError, match=r"Geth.* receipts of execution block 3 .*gasUsed"):
        read_payments(node.api(), pick(20))


def test_quantities_with_zeros_in_front():
    """Some clients write 0x000186a0."""

    def padded(number):
        return [{**each, "gasUsed": "0x0000" + each["gasUsed"][2:]} for each in receipts(number)]

    payments = read_payments(make_node(eth_getBlockReceipts=padded).api(), pick(20))

    assert [FEES[20]] == [payment.fees_wei for payment in payments]


RECIPIENT, PAID = "0x" + "Aa" * 20, "0x" + "Cd" * 20


@pytest.mark.parametrize(
    ("fields", "status", "paid"),
    [
        ({"from": RECIPIENT, "to": PAID}, "0x1", True),
        ({"from": RECIPIENT, "to": PAID, "input": "0x"}, "0x1", True),
        ({"from": RECIPIENT, "to": PAID}, "0x0", False),
        ({"from": RECIPIENT, "to": PAID, "input": "0x12"}, "0x1", False),
        ({"from": RECIPIENT, "to": PAID, "value": "0x0"}, "0x1", False),
        ({"from": RECIPIENT, "to": RECIPIENT.lower()}, "0x1", False),
        ({"from": RECIPIENT, "to": None}, "0x1", False),
        ({"from": PAID, "to": RECIPIENT}, "0x1", False),
    ],
)
def test_payment_of_a_builder(fields, status, paid):
    """The last transaction is the proposer's reward if the fee recipient sends ether with it."""

    def paying_block(*key):
        found = block(*key)
        found["transactions"][-1].update({"value": "0x16345785d8a0000", **fields})
        return found

    def paying_receipts(number):
        found = receipts(number)
        found[-1]["status"] = status
        return found

    node = make_node(eth_getBlockByNumber=paying_block, eth_getBlockReceipts=paying_receipts)
    payments = read_payments(node.api(), pick(20))
    frame = build_execution_blocks(load_blocks(CHAIN).spec, 2, payments)

    names = ["block_reward_wei", "block_mev_reward_wei", "producer_reward_wei"]
    names += ["relay_producer_fee_recipient"]
    with_payment = (FEES[20], 10**17, 10**17, PAID.lower())
    expected = with_payment if paid else (FEES[20], 0, FEES[20], None)
    assert expected == frame.select(names).row(0)


def test_engine_api_and_missing_credentials():
    """The Engine API refuses every call: the hint has the port of the JSON-RPC."""
    node = make_node()
    node.handle_request = lambda _: reply(401, "missing token")

    with pytest.raises(Unauthorized, match=r"8545.* 8551 is the Engine API"):
        node.api().head_number()


def test_messages_of_the_node_hide_the_key():
    """A provider that repeats its own address in an error does not reveal the key."""
    key = "b7f2c9e4d1a8463f95aa"
    node = make_node(eth_blockNumber=fail(-32000, f"project {key}: too many requests"))

    with pytest.raises(RateLimited) as caught:
        node.api(f"https://node.example/v3/{key}").head_number()
    assert key not in str(caught.value)


def test_gas_fees_are_base_fee_plus_median_priority_fee():
    """The base fee of the next block, plus the median of a percentile of recent priority fees."""
    history = {
        "oldestBlock": "0x1",
        "baseFeePerGas": ["0x5", "0x6", "0x7", "0x64"],
        "gasUsedRatio": [0.5, 0, 0.9],
        "reward": [["0x1", "0x2", "0x3", "0x4"], ["0x0"] * 4, ["0x5", "0x6", "0x7", "0x8"]],
    }
    node = make_node(
        eth_feeHistory=lambda *_: history,
        eth_getBlockByNumber=lambda *_: change(block("0x2", True), transactions=[]),
    )

    frame = read_gas_fees(node.api(), MAINNET)

    assert ("eth_feeHistory", ["0x14", "latest", [10, 35, 60, 90]]) in node.calls
    row = frame.row(0, named=True)
    fees = [row[f"{name}_wei"] for name in ("slow", "standard", "fast", "rapid")]
    assert [101, 102, 103, 104] == fees
    assert (None, None) == (row["price"], row["price_usd"])
    assert int("0x6b0283a2", 16) == row["time"].timestamp()


def test_fees_without_a_percentile_are_invalid():
    history = {"baseFeePerGas": ["0x5"], "gasUsedRatio": [0.5], "reward": [["0x1", "0x2"]]}
    node = make_node(
        eth_feeHistory=history,
        eth_getBlockByNumber=lambda *_: change(block("0x2", True), transactions=[]),
    )
    with pytest.raises(ResponseError, match="a block without its percentile 60"):
        read_gas_fees(node.api(), MAINNET)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"id": [0], "result": "0x1"}, "not that of a JSON-RPC call"),
        ({"id": 0, "error": {"code": [3], "message": "odd"}}, "reported: odd"),
        ({"id": None, "error": {"code": -32700, "message": "Parse error"}}, "reported: Parse"),
    ],
)
def test_unusual_members_of_an_answer_are_no_failure_of_ours(answer, message):
    """An id or a code that is a list has no meaning; of a call that is not understood, it is null.

    The last one is section 5 of JSON-RPC 2.0.
    """
    node = make_node()
    node.handle_request = lambda request: reply(200, answer)
    with pytest.raises(BeaconframesError, match=message):
        node.api().version()


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"id":0,"result":"\xff"}'])
def test_bodies_that_no_parser_reads_are_errors_of_the_node(body):
    node = make_node()
    node.handle_request = lambda request: httpx.Response(200, content=body)
    with pytest.raises(BeaconframesError, match="not JSON"):
        node.api().version()


def test_address_balances_are_exact_wei():
    """Ether in exact wei, one row per address; tokens are unknown."""
    balances = {"0x" + "11" * 20: "0x1", PAID.lower(): hex(10**27 + 1)}
    node = make_node(eth_getBalance=lambda address, _: balances[address])

    frame = read_address_balances(node.api(), [PAID, "0x" + "11" * 20, PAID.lower()], MAINNET)

    assert [("0x" + "11" * 20, None, 1), (PAID.lower(), None, 10**27 + 1)] == frame.select(
        "address", "token", "balance_wei"
    ).rows()
    assert pl.Decimal(28, 0) == frame.schema["balance_wei"]
    node = make_node(eth_getBalance=hex(2**200))
    with pytest.raises(ResponseError, match=r"0xcdcd.* has \d+ wei, more than"):
        read_address_balances(node.api(), [PAID], MAINNET)
    node = make_node(eth_getBalance=lambda *_: None)
    with pytest.raises(ResponseError, match=r"states no balance of 0xcdcd"):
        read_address_balances(node.api(), [PAID], MAINNET)
