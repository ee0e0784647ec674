"""Recorded responses about the execution layer, replayed and compared cell by cell.

The expected values are computed from the recorded JSON with ``json``, ``decimal`` and ``datetime``
alone.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

import beaconframes as bf
from beaconframes.errors import SchemaError

from ..support.recorded_files import RECORDED
from ..support.replay import replaying

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

BLOCKS = """
block_number                 blockNumber                         int
block_hash                   blockHash                           hex
time                         timestamp                           seconds
block_reward_wei             blockReward                         wei
block_mev_reward_wei         blockMevReward                      wei
producer_reward_wei          producerReward                      wei
fee_recipient                feeRecipient                        hex
gas_limit                    gasLimit                            int
gas_used                     gasUsed                             int
base_fee_per_gas_wei         baseFee                             wei
transactions_count           txCount                             int
internal_transactions_count  internalTxCount                     int
uncles_count                 uncleCount                          int
parent_hash                  parentHash                          hex
uncle_hash                   uncleHash                           hex
difficulty                   difficulty                          int
consensus_algorithm          consensusAlgorithm                  text
consensus_block_number       posConsensus.executionBlockNumber   int
proposer_index               posConsensus.proposerIndex          int
slot                         posConsensus.slot                   int
epoch                        posConsensus.epoch                  int
finalized                    posConsensus.finalized              flag
relay_tag                    relay.tag                           text
relay_builder_pubkey         relay.builderPubkey                 hex
relay_producer_fee_recipient relay.producerFeeRecipient          hex
"""
GAS = """
time                         timestamp                           milliseconds
rapid_wei                    rapid                               wei
fast_wei                     fast                                wei
standard_wei                 standard                            wei
slow_wei                     slow                                wei
price                        price                               float
price_usd                    priceUSD                            float
"""
NAME = """
requested                    domain                              text
address                      address                             hex
domain                       domain                              text
"""
CELLS = {
    "int": int,
    "wei": Decimal,
    "float": float,
    "flag": bool,
    "text": str,
    "hex": str.lower,
    "seconds": lambda value: EPOCH + timedelta(seconds=value),
    "milliseconds": lambda value: EPOCH + timedelta(milliseconds=value),
}
PRODUCERS = range(450160, 450194)
NUMBERED = "/api/v1/execution/block/"

pytestmark = pytest.mark.skipif(
    not (RECORDED / "index.json").exists(), reason=f"no recorded answers in {RECORDED}"
)


def data(file):
    """Return the data of a recorded response, with exact numbers."""
    answer = json.loads((RECORDED / file).read_bytes(), parse_int=int, parse_float=Decimal)
    return answer["data"]


def opened(record):
    """Return the fields of a record by path."""
    found = {}
    for name, value in record.items():
        if isinstance(value, dict):
            found |= {f"{name}.{inner}": cell for inner, cell in value.items()}
        elif value is not None:
            found[name] = value
    return found


def expected(contract, records):
    """Return the rows of the records according to a contract."""
    lines = [line.split() for line in contract.split("\n") if line]
    rows = []
    for record in map(opened, records):
        known = {path for _, path, _ in lines}
        assert set() == set(record) - known
        rows.append(
            {
                name: None if record.get(path) is None else CELLS[kind](record[path])
                for name, path, kind in lines
            }
        )
    return rows


def replay(reply, load):
    """Return the frame of *load* with one reply to every request, and the requests."""
    with (
        replaying({"*": reply}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000) as explorer,
    ):
        return load(explorer), server.arrived


@pytest.mark.parametrize(
    ("file", "number"),
    [("v1-execution-block--1.json", 10_000), ("v1-execution-block--docs1.json", 23_540_530)],
)
def test_a_block_by_its_number(file, number):
    """Before the merge without consensus fields, after it with all of them; exact amounts."""
    frame, requests = replay(
        (RECORDED / file).read_bytes(),
        lambda explorer: bf.load_execution_blocks(number, explorer=explorer),
    )

    assert [f"GET {NUMBERED}{number}"] == requests
    assert expected(BLOCKS, data(file)) == frame.rows(named=True)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_blocks_of_34_validators(number):
    """Fifty blocks of three years, each by a requested producer; oldest first."""
    file = f"v1-execution-produced--{number}.json"
    rows = sorted(expected(BLOCKS, data(file)), key=lambda row: row["block_number"])

    frame, requests = replay(
        (RECORDED / file).read_bytes(),
        lambda explorer: bf.load_produced_blocks(PRODUCERS, explorer=explorer),
    )

    listed = ",".join(map(str, PRODUCERS))
    assert [f"GET /api/v1/execution/{listed}/produced?sort=asc&offset=0&limit=100"] == requests
    assert 50 == len(rows)
    assert rows == frame.rows(named=True)
    kinds = [[type(cell) for cell in row.values()] for row in rows]
    assert kinds == [[type(cell) for cell in row] for row in frame.rows()]


def test_three_recorded_pages_are_one_frame():
    """A full page of 100 is followed by the next; duplicate rows are dropped."""
    pages = [data(f"v1-execution-produced--{n}.json") for n in (1, 2, 3)]
    listed = ",".join(map(str, PRODUCERS))
    target = f"GET /api/v1/execution/{listed}/produced?sort=asc&offset="
    replies = {
        f"{target}0&limit=100": json.dumps({"status": "OK", "data": pages[0] + pages[1]}).encode(),
        f"{target}100&limit=100": json.dumps({"status": "OK", "data": pages[2]}).encode(),
    }

    with (
        replaying(replies) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000) as explorer,
    ):
        frame = bf.load_produced_blocks(PRODUCERS, explorer=explorer)

    rows = {row["block_number"]: row for page in pages for row in expected(BLOCKS, page)}
    assert list(replies) == server.arrived
    assert [rows[number] for number in sorted(rows)] == frame.rows(named=True)


def test_the_documented_block_of_a_fee_recipient():
    """The builder's address received the fees, so the block was requested."""
    file = "v1-execution-produced--docs1.json"
    address = data(file)[0]["feeRecipient"]

    frame, requests = replay(
        (RECORDED / file).read_bytes(),
        lambda explorer: bf.load_produced_blocks(
            address.upper().replace("X", "x"), explorer=explorer
        ),
    )

    assert [f"GET /api/v1/execution/{address}/produced?sort=asc&offset=0&limit=100"] == requests
    assert expected(BLOCKS, data(file)) == frame.rows(named=True)


@pytest.mark.parametrize("file", ["v1-execution-gasnow--1.json", "v1-execution-gasnow--docs1.json"])
def test_gas_fees_have_their_time_in_milliseconds(file):
    """One row; the price in the service's own currency may be missing."""
    frame, _ = replay(
        (RECORDED / file).read_bytes(), lambda explorer: bf.load_gas_fees(explorer=explorer)
    )

    assert expected(GAS, [data(file)]) == frame.rows(named=True)


def test_the_documented_name():
    """The address becomes lower-case; the rest is unchanged."""
    file = "v1-ens-lookup--docs1.json"

    frame, requests = replay(
        (RECORDED / file).read_bytes(),
        lambda explorer: bf.load_names("vitalik.eth", explorer=explorer),
    )

    assert ["GET /api/v1/ens/lookup/vitalik.eth"] == requests
    assert expected(NAME, [data(file)]) == frame.rows(named=True)


def test_the_documented_address():
    """M6: ether in wei, tokens as text to the last digit."""
    file = "v1-execution-address--docs1.json"
    record = data(file)

    frame, requests = replay(
        (RECORDED / file).read_bytes(),
        lambda explorer: bf.load_address_balances(record["address"], explorer=explorer),
    )

    assert [f"GET /api/v1/execution/address/{record['address']}"] == requests
    tokens = [
        (record["address"], token["address"], token["symbol"], None, token["balance"], 0)
        for token in record["tokens"]
    ]
    ether = Decimal(2472194030644794345)
    assert "2.472194030644794345" == record["ether"]
    assert {"address", "ether", "tokens"} == set(record)
    assert [(record["address"], None, None, ether, None, None), *tokens] == frame.rows()


def test_the_documented_tokens_of_an_address():
    """The address is the requested one: the response does not repeat it."""
    file = "v1-execution-address-erc20tokens--docs1.json"
    address = f"0x{'ab' * 20}"

    frame, _ = replay(
        (RECORDED / file).read_bytes(),
        lambda explorer: bf.load_token_balances(address, explorer=explorer),
    )

    assert [
        (address, token["address"], token["symbol"], token["balance"], 0) for token in data(file)
    ] == frame.rows()


def test_rounded_pool_amounts_are_refused():
    """An example has 9.3e+24, a float, where the amount should be exact."""
    with pytest.raises(SchemaError, match=r"pool_stats row 0: .* is .*e\+"):
        replay(
            (RECORDED / "v1-rocketpool-stats--docs1.json").read_bytes(),
            lambda explorer: bf.load_pool_stats(explorer=explorer),
        )


def test_every_other_field_of_the_pool_has_a_column():
    """With the rounded amounts replaced by integers, the example loads completely."""
    record = data("v1-rocketpool-stats--docs1.json")
    exact = {name: int(value) if value == value.to_integral_value() else float(value)
             for name, value in record.items() if isinstance(value, Decimal)}  # fmt: skip
    reply = json.dumps({"status": "OK", "data": {**record, **exact}}).encode()

    frame, _ = replay(reply, lambda explorer: bf.load_pool_stats(explorer=explorer))

    row = frame.rows(named=True)[0]
    start = EPOCH + timedelta(seconds=record["claim_interval_time_start"])
    assert start == row.pop("claim_interval_time_start")
    actual = {
        name.removesuffix("_base_units").removesuffix("_wei"): cell for name, cell in row.items()
    }
    assert {
        name: value for name, value in {**record, **exact}.items()
        if name != "claim_interval_time_start"
    } == actual  # fmt: skip
