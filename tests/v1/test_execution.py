"""Loaders of the execution layer, names, the pool and charts: requests, decoding and errors."""

from __future__ import annotations

import json
import re
import zlib
from io import BytesIO

import polars as pl
import pytest
from PIL import Image

import beaconframes as bf
from beaconframes import errors
from beaconframes.v1 import CHARTS, address_balances, execution_blocks

from ..support.replay import replaying
from ..support.whole_records import whole

ADDRESS = f"0x{'ab' * 20}"
OTHER = f"0x{'cd' * 20}"


def ok(data):
    return json.dumps({"status": "OK", "data": data}).encode()


def block(**fields):
    """Return the record of block 7."""
    return whole(execution_blocks.ExecutionBlocks, {"blockNumber": 7, **fields})


def png(size=(3, 2)):
    buffer = BytesIO()
    Image.new("RGB", size, "red").save(buffer, format="PNG")
    return buffer.getvalue()


@pytest.fixture
def served():
    """A server with prepared responses, and an explorer connected to it."""
    with (
        replaying({}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000) as asking,
    ):
        server.explorer = asking
        yield server


@pytest.mark.parametrize(("count", "requests"), [(0, 0), (1, 1), (100, 1), (101, 2), (1000, 10)])
@pytest.mark.filterwarnings("ignore:.* is empty, so no rows:UserWarning")
def test_blocks_are_requested_in_hundreds(served, count, requests):
    """The fewest requests; missing blocks are listed.

    One more tells whether any of it is to be had after all.
    """
    served.replies["*"] = ok([])

    if count:
        with pytest.warns(bf.MissingRows, match="block_number 5;|block_number 5\\.") as caught:
            frame = bf.load_execution_blocks(range(5, 5 + count), explorer=served.explorer)
        assert count == caught[0].message.missing.height
    else:
        frame = bf.load_execution_blocks([], explorer=served.explorer)

    assert requests + (count > 0) == len(served.arrived)
    assert bf.load_execution_blocks([], explorer=served.explorer).schema == frame.schema


def test_a_block_that_was_not_requested_is_an_error(served):
    """The response belongs to another request."""
    served.replies["*"] = ok([block()])

    with pytest.raises(errors.IntegrityError, match="block_number 7"):
        bf.load_execution_blocks(8, explorer=served.explorer)


def test_a_block_without_consensus_data_has_null_cells(served):
    """Absent, null or empty inner objects become null cells."""
    for record in ({}, {"posConsensus": None, "relay": None}, {"posConsensus": {}, "relay": {}}):
        served.replies["*"] = ok([block(blockReward=2**80, **record)])

        row = bf.load_execution_blocks(7, explorer=served.explorer).row(0, named=True)

        assert 2**80 == row["block_reward_wei"]
        assert {None} == {row[n] for n in ("slot", "epoch", "finalized", "relay_tag")}


@pytest.mark.parametrize(
    ("addresses", "validators", "lengths"),
    [
        (1, 0, [1]),
        (20, 0, [20]),
        (21, 0, [20, 1]),
        (0, 100, [100]),
        (0, 101, [100, 1]),
        (41, 201, [20, 20, 1, 100, 100, 1]),
    ],
)
def test_addresses_and_validators_are_never_in_one_request(served, addresses, validators, lengths):
    """Up to twenty addresses or a hundred validators per request, each once."""
    served.replies["*"] = ok([])
    requested = [f"0x{n:040X}" for n in range(addresses)] * 2 + [*range(validators)] * 2

    frame = bf.load_produced_blocks(requested, explorer=served.explorer)

    assert execution_blocks.ExecutionBlocks.schema() == frame.schema
    found = [
        re.fullmatch(
            r"GET /api/v1/execution/([^/]+)/produced\?sort=asc&offset=0&limit=100", target
        )[1]
        for target in served.arrived
    ]
    assert sorted(lengths) == sorted(len(text.split(",")) for text in found)
    for text in found:
        assert 1 == len({item.startswith("0x") for item in text.split(",")})
    assert len(set(requested)) == len({item for text in found for item in text.split(",")})


def test_an_address_has_several_spellings(served):
    """With and without 0x, in either case: once in the request."""
    served.replies["*"] = ok([])
    digits = ADDRESS.removeprefix("0x")

    bf.load_produced_blocks([digits, f"0X{digits.upper()}", ADDRESS], explorer=served.explorer)

    (target,) = served.arrived
    assert f"/execution/0x{digits.lower()}/produced" in target


def test_blocks_of_another_producer_are_an_error(served):
    """A block of another producer raises an error."""
    served.replies["*"] = ok([block(feeRecipient=OTHER)])

    with pytest.raises(errors.IntegrityError, match="not requested"):
        bf.load_produced_blocks(ADDRESS, explorer=served.explorer)


def test_tokens_of_many_pages(served):
    """Two full pages and a short one: each row once, sorted, with the requested address."""
    tokens = [{"address": f"0x{n:040x}", "balance": "1", "symbol": ""} for n in range(450)]
    for offset in range(0, 600, 200):
        target = f"GET /api/v1/execution/address/{ADDRESS}/erc20tokens?offset={offset}&limit=200"
        served.replies[target] = ok(tokens[offset : offset + 200])

    frame = bf.load_token_balances(ADDRESS, explorer=served.explorer)

    assert 3 == len(served.arrived)
    assert [token["address"] for token in tokens] == frame["token"].to_list()
    assert [ADDRESS] == frame["address"].unique().to_list()


def test_an_address_without_tokens_is_not_missing(served):
    """No rows, all columns, no warning."""
    served.replies["*"] = ok([])

    frame = bf.load_token_balances([ADDRESS, OTHER], explorer=served.explorer)

    assert (0, 2) == (frame.height, len(served.arrived))
    assert {"address", "token", "symbol", "balance", "decimals"} == set(frame.columns)


@pytest.mark.parametrize(
    "balance", [1.5, 1e21, "1e21", "abc", "", "1.", True, "-1", f"0.{'0' * 18}1"]
)
def test_an_inexact_balance_is_an_error(served, balance):
    """A JSON number with a fraction may be rounded; words are not amounts."""
    served.replies["*"] = ok({"address": ADDRESS, "ether": balance, "tokens": []})

    with pytest.raises(errors.SchemaError, match="ether"):
        bf.load_address_balances(ADDRESS, explorer=served.explorer)


@pytest.mark.parametrize("tokens", [{}, [1], "x", [{"address": None}], [{"balance": "1"}]])
def test_malformed_tokens_are_an_error(served, tokens):
    """Only a list of objects with a contract is valid."""
    served.replies["*"] = ok({"address": ADDRESS, "ether": "1", "tokens": tokens})

    if tokens == {}:
        tokens_of = bf.load_address_balances
        with pytest.raises(errors.SchemaError):
            tokens_of(ADDRESS, explorer=served.explorer)
        return
    with pytest.raises(errors.SchemaError, match="holding"):
        bf.load_address_balances(ADDRESS, explorer=served.explorer)


def test_another_address_is_an_error(served):
    """The response belongs to another request."""
    served.replies["*"] = ok({"address": OTHER, "ether": "1", "tokens": None})

    with pytest.raises(errors.IntegrityError, match=OTHER):
        bf.load_address_balances(ADDRESS, explorer=served.explorer)


@pytest.mark.filterwarnings("ignore:.* is empty, so no rows:UserWarning")
def test_no_subjects_return_all_columns(served):
    """Without subjects, every loader returns zero rows with the whole schema."""
    empty = bf.load_address_balances([], explorer=served.explorer)
    unnamed = bf.load_names([], explorer=served.explorer)

    assert address_balances.AddressBalances.schema() == empty.schema
    assert {"requested": pl.String, "address": pl.String, "domain": pl.String} == unnamed.schema
    assert [] == served.arrived


def test_an_unknown_name_is_missing(served):
    """The service returns an error for it; other names load, and strict raises."""
    served.status = 400
    served.replies["*"] = b'{"status": "ERROR: failed to resolve ens", "data": null}'

    with pytest.warns(bf.MissingRows, match="requested nobody.eth"):
        frame = bf.load_names("Nobody.eth", explorer=served.explorer)

    assert 0 == frame.height
    with pytest.raises(bf.MissingRows, match="nobody"):
        bf.load_names("nobody.eth", explorer=served.explorer, strict=True)


def test_the_public_name_of_an_endpoint_is_tried_second():
    """The endpoint gasfees is gasnow on the public service."""
    reply = {"code": 200, "data": {"rapid": 1, "fast": 1, "standard": 1, "slow": 1, "timestamp": 0}}
    replies = {"GET /api/v1/execution/gasnow": json.dumps(reply).encode()}
    absent = b'{"status": "ERROR: 404 page not found", "data": null}'

    class Answers(dict):
        def get(self, target, other=None):
            server.status = 200 if target in self else 404
            return super().get(target, absent)

    with (
        replaying(Answers(replies)) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000) as explorer,
    ):
        frame = bf.load_gas_fees(explorer=explorer)

    assert ["GET /api/v1/execution/gasfees", *replies] == server.arrived
    assert 1970 == frame["time"][0].year


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (lambda: bf.load_execution_blocks("latest"), "latest"),
        (lambda: bf.load_execution_blocks(-1), "-1"),
        (lambda: bf.load_execution_blocks([1, 2.0]), "2.0"),
        (lambda: bf.load_execution_blocks(True), "True"),
        (lambda: bf.load_produced_blocks("0xab"), "0xab"),
        (lambda: bf.load_produced_blocks([ADDRESS, f"{ADDRESS}/../x"]), "/../x"),
        (lambda: bf.load_address_balances("vitalik.eth"), "vitalik.eth"),
        (lambda: bf.load_address_balances(f"{ADDRESS},{ADDRESS}"), ","),
        (lambda: bf.load_address_balances(ADDRESS, "0xab"), "token='0xab'"),
        (lambda: bf.load_token_balances(7), "7"),
        (lambda: bf.load_names("ab.eth"), "ab.eth"),
        (lambda: bf.load_names("a/../b.eth"), "a/../b.eth"),
        (lambda: bf.load_names(["vitalik.eth", "vitalik.com"]), "vitalik.com"),
        (lambda: bf.load_chart("validatorz"), "Did you mean 'validators'?"),
        (lambda: bf.load_chart("../../latestState"), "../../latestState"),
        (lambda: bf.load_chart(None), "None"),
    ],
)
def test_bad_input_raises_before_any_request(served, load, words):
    """The error names the value and a remedy, and no request is sent."""
    bf.connect(served.url, chain="mainnet", rate=1000)

    with pytest.raises(errors.UsageError, match=re.escape(words)):
        load()

    assert [] == served.arrived


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_an_image(served, name):
    """Every known chart loads as a Pillow image."""
    served.replies[f"GET /api/v1/chart/{name}"] = png()

    picture = bf.load_chart(name, explorer=served.explorer)

    assert ((3, 2), (255, 0, 0)) == (picture.size, picture.getpixel((0, 0)))


def chunk(kind, body):
    return len(body).to_bytes(4) + kind + body + zlib.crc32(kind + body).to_bytes(4)


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (b'{"status": "OK", "data": []}', errors.ProtocolError, "not a PNG image"),
        (
            b'{"status": "ERROR: no chart today", "data": null}',
            errors.ServerError,
            "no chart today",
        ),
        (b"<html>hello</html>", errors.ProtocolError, "page instead"),
        (b"GIF89a", errors.ProtocolError, "not a JSON object"),
        (png()[:40], errors.ProtocolError, "damaged"),
        (png()[:8] + b"x" * 50, errors.ProtocolError, "pixels"),
        (
            png()[:8]
            + chunk(b"IHDR", (60_000).to_bytes(4) * 2 + bytes([8, 2, 0, 0, 0]))
            + chunk(b"IDAT", zlib.compress(bytes(1000)))
            + chunk(b"IEND", b""),
            errors.ProtocolError,
            "60000 x 60000 pixels",
        ),
    ],
)
def test_an_invalid_image_raises_a_protocol_error(served, monkeypatch, body, kind, words):
    """JSON, HTML, another format, half a file, or an image that is too large."""
    monkeypatch.setattr("beaconframes.http.retry.back_off", lambda state: 0.01)
    served.replies["*"] = body

    with pytest.raises(kind, match=words) as caught:
        bf.load_chart("blocks", explorer=served.explorer)

    assert "GET /api/v1/chart/{chart}" == caught.value.endpoint


def test_a_flipped_bit_is_an_image_or_a_protocol_error():
    """A damaged file never raises a foreign exception."""
    from beaconframes.v1.chart import decode_image

    whole = png((40, 30))
    kinds = set()
    for bit in range(0, len(whole) * 8, 3):
        body = bytearray(whole)
        body[bit // 8] ^= 1 << bit % 8
        try:
            kinds.add(decode_image(bytes(body)).size)
        except errors.ProtocolError:
            kinds.add(errors.ProtocolError)

    assert {(40, 30), errors.ProtocolError} <= kinds
