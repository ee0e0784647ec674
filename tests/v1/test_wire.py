"""Every endpoint on the wire: samples written by hand from the documentation of the API.

``wire/<endpoint>.json`` has one or more named samples: ``spec`` as the specification writes it,
``public`` as the public service does, and others for variants of a call. A sample has the call, the
exact requests that must arrive, the replies, and the frame that must come out: amounts in wei and
times as text, everything else as it is. With ``in_order``, each request waits for the reply to the
one before; without it, several may be in flight together, so that any order is right. A sample
with ``committee_size`` is of a chain with smaller sync committees.

The samples of V2 are in ``wire/v2``. A request there is its line and its JSON body, and
a set of validators is the name of the function that makes it with its arguments.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

import beaconframes as bf
from beaconframes import v1, v2
from beaconframes.calendar import MAINNET

from ..support.replay import format_request, replaying

WIRE = Path(__file__).parents[1] / "wire"
SAMPLES = {
    f"{path.relative_to(WIRE).as_posix()[:-5]}.{case}": sample
    for path in sorted(WIRE.rglob("*.json"))
    for case, sample in json.loads(path.read_text()).items()
}
TYPES = {e.name: e.table.schema() for e in v1.ENDPOINTS}
TYPES |= {f"v2/{e.name}": e.table.schema() for e in v2.ENDPOINTS}
PUBLISHED = {*TYPES} - {f"v2/{e.name}" for e in v2.ENDPOINTS if e.table.keeps_every_field}
UTC = pl.Datetime("us", "UTC")


def cell(value, dtype):
    """Return a cell of the sample as the value of the frame."""
    if value is not None and dtype == UTC:
        return datetime.fromisoformat(value)
    return Decimal(value) if value is not None and isinstance(dtype, pl.Decimal) else value


def called(sample):
    """Return the arguments of the call: lists for a region as a tuple, sets of validators made."""
    return {name: argument(name, value) for name, value in sample["call"].items()}


def argument(name, value):
    """Return one argument of the call."""
    if isinstance(value, dict):
        ((kind, said),) = value.items()
        return getattr(bf.v2, kind)(**said)
    return tuple(value) if name == "region" else value


def chain_of(sample):
    """Return mainnet, with the sample's size of sync committees if it has one."""
    size = sample.get("committee_size", MAINNET.sync_committee_size)
    return replace(MAINNET, sync_committee_size=size)


def request_text(request):
    """Return a request of the sample as one text."""
    return request if isinstance(request, str) else format_request(*request)


def exact(request):
    """Return the line and the exact body of a request of the sample."""
    if isinstance(request, str):
        return request, ""
    line, body = request
    return line, json.dumps(body, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_call_sends_exactly_these_requests_and_returns_exactly_this_frame(name):
    """Path, query, body, field names, units, nulls, order and types equal the sample."""
    sample = SAMPLES[name]
    endpoint = name.partition(".")[0]
    replies = [json.dumps(reply, ensure_ascii=False).encode() for reply in sample["replies"]]

    with (
        replaying(dict(zip(map(request_text, sample["requests"]), replies, strict=True))) as server,
        bf.Explorer(server.url, chain=chain_of(sample), rate=1000) as explorer,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        loaders, noun = (bf.v2, endpoint[3:]) if endpoint.startswith("v2/") else (bf, endpoint)
        frame = getattr(loaders, f"load_{noun}")(**called(sample), explorer=explorer)

    sent = [(line, body.decode()) for line, body in zip(server.arrived, server.posted, strict=True)]
    expected_requests = [*map(exact, sample["requests"])]
    if not sample.get("in_order"):
        sent, expected_requests = sorted(sent), sorted(expected_requests)
    assert expected_requests == sent
    assert TYPES[endpoint] == frame.schema
    assert [list(row) for row in sample["frame"]] == [frame.columns] * frame.height
    expected = [
        {column: cell(value, frame.schema[column]) for column, value in row.items()}
        for row in sample["frame"]
    ]
    assert expected == frame.rows(named=True)
    assert len(sample.get("warns", [])) == len(caught)
    for words, warning in zip(sample.get("warns", []), caught, strict=True):
        assert bf.MissingRows is warning.category
        assert words in str(warning.message)


@pytest.mark.parametrize("name", SAMPLES)
def test_units_of_the_sample_are_types_of_columns(name):
    """The type is the unit: gwei is Int64, wei is a decimal of 28 digits."""
    units = SAMPLES[name]["units"]
    schema = TYPES[name.partition(".")[0]]

    gwei = {name: dtype for name, dtype in schema.items() if name.endswith("_gwei")}
    wei = {name: dtype for name, dtype in schema.items() if name.endswith("_wei")}
    assert dict.fromkeys(units["gwei"], pl.Int64()) == gwei
    assert dict.fromkeys(units["wei"], pl.Decimal(28, 0)) == wei


def test_every_endpoint_has_a_sample():
    """Samples are independent of the declaration, which client and local explorer share."""
    missing = {f"tests/wire/{name}.json" for name in PUBLISHED if f"{name}.spec" not in SAMPLES}

    assert set() == missing, "write these files by hand from the documentation of the API"


def test_many_public_keys_are_sent_by_post():
    """The body of one POST has a hundred public keys, in their order and in lower case."""
    numbers = range(160, 260)
    keys = [f"0x{number:096X}" for number in numbers]
    record = SAMPLES["validators.public"]["replies"][0]["data"]
    records = [
        {**record, "validatorindex": number, "pubkey": key}
        for number, key in zip(numbers, keys, strict=True)
    ]
    reply = json.dumps({"status": "OK", "data": records}).encode()

    with (
        replaying({"POST /api/v1/validator": reply}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000) as explorer,
    ):
        frame = bf.load_validators(keys, explorer=explorer)

    assert ["POST /api/v1/validator"] == server.arrived
    assert [{"indicesOrPubkey": ",".join(keys).lower()}] == [json.loads(b) for b in server.posted]
    assert list(numbers) == frame["validator_index"].to_list()
    assert [key.lower() for key in keys] == frame["pubkey"].to_list()
