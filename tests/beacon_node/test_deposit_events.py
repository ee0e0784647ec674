"""Deposits from the events of the deposit contract, and the limits of clients on such requests."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

import beaconframes as bf
from beaconframes.beacon_node.connection import NodeConnection
from beaconframes.beacon_node.execution.deposit_events import (
    DEPOSIT_EVENT,
    FIRST_BLOCKS,
    read_deposits,
)
from beaconframes.beacon_node.index import execution_tables
from beaconframes.beacon_node.tables.deposits import build_deposits, find_validity
from beaconframes.calendar import MAINNET
from beaconframes.errors import BadRequest, IntegrityError, NotFound, ResponseError, ServerError
from beaconframes.v1._deposits import Deposits

from ..support.beacon_node_stub import BeaconNodeStub
from ..support.execution_node import FakeNode, RpcError

CONTRACT = "0x4242424242424242424242424242424242424242"
SENDER = "0x" + "Ab" * 20
# Five byte strings by hand: positions, then length and value of each, filled up to 32 bytes.
DATA = (
    "0x"
    "00000000000000000000000000000000000000000000000000000000000000a0"
    "0000000000000000000000000000000000000000000000000000000000000100"
    "0000000000000000000000000000000000000000000000000000000000000140"
    "0000000000000000000000000000000000000000000000000000000000000180"
    "0000000000000000000000000000000000000000000000000000000000000200"
    "0000000000000000000000000000000000000000000000000000000000000030"
    "{pubkey}00000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000020"
    "010000000000000000000000dddddddddddddddddddddddddddddddddddddddd"
    "0000000000000000000000000000000000000000000000000000000000000008"
    "0040597307000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000060"
    "{signature}"
    "0000000000000000000000000000000000000000000000000000000000000008"
    "{number}000000000000000000000000000000000000000000000000"
)
COUNT = "0x" + f"{32:064x}" + f"{8:064x}" + "{number}" + "00" * 24
KEY = "a1" * 48


def number_text(number):
    return number.to_bytes(8, "little").hex()


def log(number, block, key=KEY, signature="b2" * 96, **fields):
    """Return the log of a deposit, in a transaction of its own."""
    data = DATA.format(pubkey=key, signature=signature, number=number_text(number))
    return {
        "address": CONTRACT,
        "topics": [DEPOSIT_EVENT],
        "data": data,
        "blockNumber": hex(block),
        "blockHash": f"0x{block:064x}",
        "transactionHash": f"0x{number + 10**6:064x}",
        "transactionIndex": "0x7",
        "logIndex": hex(number % 5),
        "removed": False,
        **fields,
    }


def make_node(logs, contract=CONTRACT, **methods):
    """Return a node whose deposit contract has these logs."""

    def get_logs(chosen):
        assert ([DEPOSIT_EVENT], contract) == (chosen["topics"], chosen["address"])
        first, last = int(chosen["fromBlock"], 16), int(chosen["toBlock"], 16)
        return [each for each in logs if first <= int(each["blockNumber"], 16) <= last]

    def get_transaction(block_hash, _):
        found = [each for each in logs if each["blockHash"] == block_hash][:1]
        return {
            "hash": found[0]["transactionHash"],
            "from": SENDER,
            "to": CONTRACT,
            "value": "0x0",
            "input": "0x22895118",
        }

    def get_block(block_hash, _):
        number = int(block_hash, 16)
        return {
            "number": hex(number), "hash": block_hash, "gasUsed": "0x0", "transactions": [],
            "timestamp": hex(1606824000 + 12 * number),
        }  # fmt: skip

    return FakeNode(
        {
            "eth_getLogs": get_logs,
            "eth_getTransactionByBlockHashAndIndex": get_transaction,
            "eth_getBlockByHash": get_block,
            "eth_getBlockByNumber": lambda number, _: get_block(f"0x{int(number, 16):064x}", False),
            **methods,
        }
    )


def test_rows_of_deposits():
    """Every column of a deposit: contents of the event, sender, time and position."""
    node = make_node([log(1000, 5), log(1001, 6, blockTimestamp="0x5fc63057")])

    deposits = read_deposits(node.api(), CONTRACT, 1, 9)
    frame = build_deposits(deposits, MAINNET, [None, True])

    assert Deposits.schema() == frame.schema
    assert {
        "block_number": 5,
        "tx_index": 7,
        "merkletree_index": "0xe803000000000000",
        "tx_hash": f"0x{1000 + 10**6:064x}",
        "time": datetime(2020, 12, 1, 12, 1, 0, tzinfo=UTC),
        "from_address": SENDER.lower(),
        "pubkey": "0x" + KEY,
        "withdrawal_credentials": "0x010000000000000000000000" + "dd" * 20,
        "amount_gwei": 32 * 10**9,
        "signature": "0x" + "b2" * 96,
        "valid_signature": None,
        "removed": False,
        "tx_input": "0x22895118",
    } == frame.row(0, named=True)
    assert datetime(2020, 12, 1, 12, 0, 23, tzinfo=UTC) == frame["time"][1]
    assert 1 == sum(method == "eth_getBlockByHash" for method, _ in node.calls)
    served = Deposits.encode_records(frame, MAINNET)
    assert frame.equals(Deposits.decode([b"[" + b",".join(served) + b"]"], MAINNET))


@pytest.mark.parametrize("refusal", [(-32005, "query returned more than 10000 results"),
                                     (-32602, "block range is too large")])  # fmt: skip
def test_ranges_are_halved_until_the_client_accepts(refusal):
    """Every deposit is found once, whatever range the client allows; 7 blocks here."""
    logs = [log(number, 1 + 9 * number) for number in range(12)]
    node = make_node(logs)
    get_logs = node.methods["eth_getLogs"]
    ranges = []

    def limited(chosen):
        first, last = int(chosen["fromBlock"], 16), int(chosen["toBlock"], 16)
        if last - first >= 7:
            raise RpcError(*refusal)
        ranges.append((first, last))
        return get_logs(chosen)

    node.methods["eth_getLogs"] = limited

    deposits = read_deposits(node.api(), CONTRACT, 0, 100)

    assert list(range(12)) == [deposit.number for deposit in deposits]
    assert list(range(101)) == [n for first, last in ranges for n in range(first, last + 1)]
    assert 25 > len([call for call in node.calls if call[0] == "eth_getLogs"])


def test_a_failing_client_is_not_asked_for_ever():
    """An error that remains for one block is raised; pruned history is raised immediately."""

    def fail(*error):
        def method(_):
            raise RpcError(*error)

        return method

    node = make_node([], eth_getLogs=fail(-32000, "database is closed"))
    with pytest.raises(ServerError, match=r"database is closed \(eth_getLogs\)"):
        read_deposits(node.api(), CONTRACT, 0, 99)
    assert 8 == len(node.calls)

    node = make_node([], eth_getLogs=fail(4444, "pruned history unavailable"))
    with pytest.raises(NotFound, match=r"--history\.logs=0"):
        read_deposits(node.api(), CONTRACT, 0, 99)
    assert 1 == sum(method == "eth_getLogs" for method, _ in node.calls)

    node = make_node([], eth_getLogs=fail(-32600, "invalid request"))
    with pytest.raises(BadRequest):
        read_deposits(node.api(), CONTRACT, 7, 7)


@pytest.mark.parametrize(
    ("numbers", "first", "count", "words"),
    [
        ((0, 1, 3), 0, None, "returned 3 deposits: 1 deposits are missing, the first is number 2"),
        ((1, 2), 0, None, "1 deposits are missing, the first is number 0"),
        ((4, 5), 3, None, "1 deposits are missing, the first is number 3"),
        ((4, 5), None, 9, "3 deposits are missing, the first is number 6"),
        ((), 0, 2, "returned 0 deposits: 2 deposits are missing, the first is number 0"),
        ((4, 5, 5), 4, None, "deposit number 5 was not expected"),
        ((4, 5, 6), 4, 6, "deposit number 6 was not expected"),
    ],
)
def test_missing_deposits(numbers, first, count, words):
    """Deposits are numbered: a gap, a late start or an early end is an error."""
    methods = {}
    if count is not None:
        methods["eth_call"] = COUNT.format(number=number_text(count))
    node = make_node([log(n, 20 + place) for place, n in enumerate(numbers)], **methods)

    with pytest.raises(IntegrityError, match=rf"Geth/v1\.16\.7.* {words}"):
        read_deposits(node.api(), CONTRACT, 0 if first == 0 else 10, 90, first_number=first)


@pytest.mark.parametrize("count", [lambda *_: "0x", COUNT.format(number=number_text(6))])
def test_range_within_the_history(count):
    """Numbers start anywhere, and a node without old states has no number of deposits."""
    node = make_node([log(4, 20), log(5, 21)], eth_call=count)

    assert [4, 5] == [d.number for d in read_deposits(node.api(), CONTRACT, 20, 30)]
    assert ("eth_call", [{"to": CONTRACT, "data": "0x621fd130"}, "0x1e"]) in node.calls
    assert [] == read_deposits(make_node([]).api(), CONTRACT, 20, 30)


def test_node_of_another_chain_or_behind():
    """Logs of unknown blocks are empty: the last block must be that of the beacon chain."""
    api = make_node([]).api()
    assert [] == read_deposits(api, CONTRACT, 5, 9, last_hash=f"0x{9:064X}")
    with pytest.raises(IntegrityError, match=r"block 9 has the hash 0x0+9, but .* 0x77.*Geth"):
        read_deposits(api, CONTRACT, 5, 9, last_hash="0x" + "77" * 32)

    api = make_node([], eth_getBlockByNumber=None).api()
    with pytest.raises(IntegrityError, match=r"Geth.* does not have execution block 9\b"):
        read_deposits(api, CONTRACT, 5, 9)


def test_contract_of_mainnet_has_no_older_deposits():
    """No request is sent for the blocks before the contract."""
    contract = "0x00000000219ab540356cBB839Cbe05303d7705Fa"
    ranges = []

    def get_logs(chosen):
        ranges.append((int(chosen["fromBlock"], 16), int(chosen["toBlock"], 16)))
        return []

    node = make_node([], eth_getLogs=get_logs)

    read_deposits(node.api(), contract, 0, 11_052_990)

    assert [(FIRST_BLOCKS[contract.lower()], 11_052_990)] == ranges


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"data": "0x"}, "pubkey has 0 bytes"),
        ({"data": log(0, 1)["data"][:-200]}, "number has 8 bytes|signature|number has 0 bytes"),
        ({"topics": []}, "is not a deposit"),
    ],
)
def test_logs_that_are_no_deposits(fields, words):
    """Other data of the contract names log and block."""
    node = make_node([log(0, 3, **fields)])

    with pytest.raises(ResponseError, match=rf"log 0 of execution block 3 .*({words}).*Geth"):
        read_deposits(node.api(), CONTRACT, 0, 9)


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("eth_getTransactionByBlockHashAndIndex", None),
        ("eth_getTransactionByBlockHashAndIndex",
         {"hash": "0x" + "99" * 32, "from": SENDER, "value": "0x0"}),
        ("eth_getBlockByHash", None),
    ],
)  # fmt: skip
def test_block_that_was_replaced_meanwhile(method, answer):
    """Transaction and time are those of the event's block, or an error names it."""
    node = make_node([log(0, 3)], **{method: answer})

    with pytest.raises(IntegrityError, match=r"Geth.* of execution block 3, which has a deposit"):
        read_deposits(node.api(), CONTRACT, 0, 9)


def test_signatures_that_the_registry_proves():
    """Only a validator's single deposit is certainly valid, only a dropped one invalid."""
    keys = ["a1" * 48, "a2" * 48, "a3" * 48, "a4" * 48]
    logs = [
        log(0, 1, keys[0]),
        log(1, 2, keys[1]),
        log(2, 3, keys[1], signature="c3" * 96),
        log(3, 4, keys[2]),
        log(4, 5, keys[2]),
        log(5, 6, keys[3]),
        log(6, 7, keys[3]),
    ]
    deposits = read_deposits(make_node(logs).api(), CONTRACT, 0, 9)
    validators = {"0x" + key: index for index, key in enumerate(keys[:3])}

    validity = find_validity(deposits, validators, MAINNET, genesis_count=0, processed_count=6)

    # keys[2] has two equal deposits; the second deposit of keys[3] is not processed.
    assert [True, None, None, True, True, False, None] == validity
    # Pending deposits are not dropped. Those before as many as there were validators at genesis
    # may never have been processed.
    for genesis_count, pending in ((0, ["0x" + keys[3]]), (6, [])):
        found = find_validity(
            deposits, validators, MAINNET,
            genesis_count=genesis_count, processed_count=6, pending=pending,
        )  # fmt: skip
        assert False not in found
    assert [None] * 4 == find_validity(deposits[1:5], validators, MAINNET, genesis_count=0)
    earlier = ["0x" + keys[1]]
    assert [None, None, True, True] == find_validity(
        deposits[1:5], validators, MAINNET, genesis_count=0, earlier=earlier
    )
    # The genesis state of a test network has validators without a deposit: this is a top-up.
    for seconds, found in ((0, None), (-1, True)):
        time = int(MAINNET.genesis.timestamp()) + seconds
        deposit = replace(deposits[0], time=time)
        assert [found] == find_validity([deposit], validators, MAINNET, genesis_count=1)


@pytest.mark.more
def test_index_adds_the_deposits_of_new_final_blocks(tmp_path, monkeypatch):
    """Each range is requested once; the numbers continue, and what is stored counts as earlier.

    The second range has no deposit.
    """
    folder = tmp_path / "chain"
    processed = []

    def find_noted(*deposits, processed_count, **known):
        processed.append(processed_count)
        return find_validity(*deposits, processed_count=processed_count, **known)

    monkeypatch.setattr(execution_tables, "find_validity", find_noted)
    with BeaconNodeStub("capella", head=100) as stub:
        rows = stub.recording.validators(0)
        keys = [row["validator"]["pubkey"][2:] for row in json.loads(rows)["data"]]
        contract = stub.recording.spec["DEPOSIT_CONTRACT_ADDRESS"]
        early = int(stub.recording.genesis["genesis_time"]) - 1
        place = {"address": contract, "blockTimestamp": hex(early)}
        logs = [log(0, 5, keys[3], **place), log(1, 50, keys[4], **place)]
        logs += [log(2, 120, keys[3], **place), log(3, 121, "ee" * 48, **place)]
        node = make_node(logs, contract)
        node.methods["eth_getBlockByNumber"] = lambda number, full: json.loads(
            stub.recording.rpc["eth_getBlockByNumber", json.dumps([number, True])]
        )["result"]
        node.methods["eth_blockNumber"] = "0x100"
        for head in (100, 110, 190):
            stub.advance(head)
            connection = NodeConnection(stub.url)
            connection.execution = node.api()
            tables = ["deposits"]
            bf.index(connection, folder, until=1, tables=tables)
            connection.api.close()

    ranges = [call[1][0] for call in node.calls if call[0] == "eth_getLogs"]
    ranges = [(int(chosen["fromBlock"], 16), int(chosen["toBlock"], 16)) for chosen in ranges]
    assert 3 == len(ranges)
    assert [16, 16, 16] == processed  # The deposits of genesis, in the state of the last epoch.
    assert [0, ranges[0][1] + 1, ranges[1][1] + 1] == [first for first, _ in ranges]
    with bf.local(folder):
        deposits = bf.load_deposits([3, 4])
        origin = bf.load_deposit_origin(SENDER)
    assert [(5, True), (50, True), (120, None)] == deposits.select(
        "block_number", "valid_signature"
    ).rows()
    found = set(origin.select("validator_index", "valid_signature").rows())
    assert {(3, True), (3, None), (4, True), (None, None)} == found
