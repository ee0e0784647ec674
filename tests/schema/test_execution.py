"""Tables of the execution layer: decoding what the explorer encodes returns the same frame."""

from __future__ import annotations

import fractions
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from beaconframes.calendar import MAINNET
from beaconframes.errors import SchemaError
from beaconframes.schema import (
    Count,
    DecimalPlaces,
    DecimalText,
    EnvelopeContext,
    Epoch,
    Ether,
    Flag,
    Fraction,
    Hex,
    Table,
    Text,
    Units,
    UnixMillis,
    UnixTime,
    Wei,
)
from beaconframes.v1 import ENDPOINTS
from beaconframes.v1._execution_blocks import ExecutionBlocks
from beaconframes.v1.address_balances import AddressBalances
from beaconframes.v1.gas_fees import GasFees
from beaconframes.v1.pool_stats import PoolStats
from beaconframes.v1.token_balances import TokenBalances

from ..support import contract
from ..support.whole_records import whole
from . import test_validators as test_schema_validators
from .test_lists import Committees

START = datetime(1970, 1, 1, tzinfo=UTC)
LARGEST = 10**28 - 1
WEI = pl.Decimal(28, 0)


class Each(Table):
    """Every column type of these tables, also inside an object. One row per number."""

    number = Count("Number.", key=True)
    wei_wei = Wei("Wei.", wire="inner.wei", nullable=True)
    text_wei = Wei("Wei as text.", wire="inner.text", text=True, nullable=True)
    units = Units("Units.", nullable=True)
    epoch = Epoch("Epoch.", wire="inner.deeper.epoch", nullable=True)
    seconds = UnixTime("Seconds.", nullable=True)
    millis = UnixMillis("Milliseconds.", nullable=True)
    decimals = DecimalText("Decimals.", nullable=True)
    hex = Hex("Hex.", wire="other.hex", nullable=True)
    text = Text("Text.", wire="other.text", nullable=True)
    share = Fraction("Share.", nullable=True)
    flag = Flag("Flag.", nullable=True)
    ether_wei = Ether("Ether.", wire="ether", nullable=True)


AMOUNT = st.integers(-LARGEST, LARGEST).map(Decimal)
CELLS = {
    Count: st.integers(0, 2**63 - 1),
    Epoch: st.integers(0, 2**62),
    Wei: AMOUNT,
    Units: AMOUNT,
    Ether: st.integers(0, LARGEST).map(Decimal),
    UnixTime: st.integers(0, 2**34).map(lambda n: START + timedelta(seconds=n)),
    UnixMillis: st.integers(0, 2**44).map(lambda n: START + timedelta(milliseconds=n)),
    DecimalText: st.from_regex(r"-?[0-9]{1,60}(\.[0-9]{1,40})?", fullmatch=True).filter(
        str.isascii
    ),
    Hex: st.binary(max_size=48).map(lambda b: f"0x{b.hex()}"),
    Text: st.text(max_size=20),
    Fraction: st.floats(allow_nan=False, allow_infinity=False),
    Flag: st.booleans(),
}
fixed_examples = settings(
    deadline=None, derandomize=True, database=None, max_examples=10, phases=(Phase.generate,)
)
both_wires = pytest.mark.parametrize("public", [False, True])


def frames(table):
    """Return frames of a table, with nulls outside of the key."""
    columns = [c for c in table.columns if not (c.context or isinstance(c, DecimalPlaces))]
    cells = {column: CELLS.get(type(column), CELLS[Count]) for column in columns}
    row = st.fixed_dictionaries(
        {
            c.name: st.none() | cell if c.nullable or c.optional else cell
            for c, cell in cells.items()
        }
    )
    return st.lists(row, max_size=4).map(
        lambda rows: pl.DataFrame(
            rows, schema={c.name: c.dtype for c in columns}, infer_schema_length=None
        )
    )


@pytest.mark.more
@both_wires
@pytest.mark.parametrize(
    "table",
    [
        Each,
        *(pytest.param(t, marks=pytest.mark.more) for t in (ExecutionBlocks, GasFees, PoolStats)),
    ],
)
@given(data=st.data())
@fixed_examples
def test_encoded_frames_decode_to_themselves(table, public, data):
    """Every digit and null is the same, in objects or not, in the specified and the public form."""
    frame = data.draw(frames(table))

    sent = table.encode(frame, MAINNET, public=public)

    assert_frame_equal(frame, table.decode([sent], MAINNET))
    assert len(json.loads(sent)) == frame.height


def test_every_column_type_is_tested():
    """The tables of the round-trip test together have every column type."""
    known = {endpoint.name: endpoint.table for endpoint in ENDPOINTS}
    elsewhere = [known[name] for name in {*contract.TABLES, *test_schema_validators.TABLES}]
    by_chance = [Each, ExecutionBlocks, GasFees, PoolStats, TokenBalances, Committees, *elsewhere]
    tested = {type(column) for table in by_chance for column in table.columns}

    assert set() == {type(c) for table in known.values() for c in table.columns} - tested


@both_wires
@given(data=st.data())
@fixed_examples
def test_tokens_are_decoded_without_their_address(public, data):
    """The response does not repeat the address."""
    frame = data.draw(frames(TokenBalances))

    sent = TokenBalances.encode(frame.with_columns(address=pl.lit("0xab")), MAINNET, public=public)

    assert frame.columns == ["token", "symbol", "balance"]
    request = EnvelopeContext({}, {"address": "0xab"})
    decoded = TokenBalances.decode([sent], MAINNET, [request])
    assert_frame_equal(frame, decoded.drop("address", "decimals"))
    assert count_places(frame["balance"]) == decoded["decimals"].to_list()


def count_places(texts):
    """The digits after the decimal point, in plain Python."""
    return [None if text is None else len(text.partition(".")[2]) for text in texts]


@both_wires
@given(wei=CELLS[Ether], data=st.data())
@fixed_examples
def test_an_address_and_its_tokens(public, wei, data):
    """One row for ether, then one per token; without tokens an empty list, or null if public."""
    tokens = data.draw(frames(TokenBalances)).with_columns(address=pl.lit("0xab"))
    tokens = tokens.with_columns(pl.Series("decimals", count_places(tokens["balance"]), pl.Int64))
    first = pl.DataFrame({"address": ["0xab"], "balance_wei": [wei]}).cast({"balance_wei": WEI})
    frame = pl.concat([first, tokens], how="diagonal").select(AddressBalances.schema().names())

    sent = AddressBalances.encode(frame, MAINNET, public=public)

    assert_frame_equal(frame, AddressBalances.decode([sent], MAINNET))
    if tokens.is_empty():
        (record,) = json.loads(sent)
        assert {"address": "0xab", "tokens": None if public else []} == {
            name: value for name, value in record.items() if name != "ether"
        }
        assert wei == fractions.Fraction(record["ether"]) * 10**18
        assert "." not in record["ether"] or record["ether"][-1] not in "0."


def test_an_object_with_only_null_fields_is_null():
    """Nested objects too, and an epoch whose null is a number on the wire."""
    frame = Each.decode([b'[{"number": 1}]'], MAINNET)

    (record,) = json.loads(Each.encode(frame, MAINNET))

    assert (None, None) == (record["inner"], record["other"])
    known = frame.with_columns(text_wei=pl.lit(5).cast(pl.Decimal(28, 0)))
    (record,) = json.loads(Each.encode(known, MAINNET))
    assert {"wei": None, "text": "5", "deeper": None} == record["inner"]


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (0, 0),
        (1_678_256_817_733, 1_678_256_817_733),
        ("1678256817733", 1_678_256_817_733),
        (1e12, 10**12),
    ],
)
def test_milliseconds_are_not_read_as_seconds(sent, expected):
    """V13: an integer, a float or a text of milliseconds is the same time."""
    record = whole(GasFees, {"timestamp": sent})
    frame = GasFees.decode([json.dumps(record).encode()], MAINNET)

    assert [START + timedelta(milliseconds=expected)] == frame["time"].to_list()


def test_default_zeros_are_omitted():
    """First, last or only field, in an object, as text; a text that looks like a zero stays."""

    class Sparse(Table):
        """One row per number."""

        number = Count("Number.", key=True)
        a = Count("A.", default=0)
        label = Text("Label.", nullable=True)
        b = Count("B.", wire="in.b", default=0)
        c_wei = Wei("C.", wire="in.c", default=0, text=True)
        d = Count("D.", default=0)

    rows = [
        (1, 0, '"a":0,', 0, 0, 0),
        (2, 5, '","d":0}', 0, 2**90, 0),
        (3, 0, "{}", 7, 0, 1),
        (4, 10, None, 100, 10, 0),
    ]
    frame = pl.DataFrame(rows, schema=Sparse.schema(), orient="row")

    sent = Sparse.encode(frame, MAINNET, public=True)

    assert [
        {"number": 1, "label": '"a":0,', "in": {}},
        {"number": 2, "a": 5, "label": '","d":0}', "in": {"c": str(2**90)}},
        {"number": 3, "label": "{}", "in": {"b": 7}, "d": 1},
        {"number": 4, "a": 10, "label": None, "in": {"b": 100, "c": "10"}},
    ] == json.loads(sent)
    assert_frame_equal(frame, Sparse.decode([sent], MAINNET))
    assert b"[]" == Sparse.encode(frame.clear(), MAINNET, public=True)
    assert {"number": 1, "a": 0, "label": '"a":0,', "in": {"b": 0, "c": "0"}, "d": 0} == (
        json.loads(Sparse.encode(frame, MAINNET))[0]
    )


@pytest.mark.parametrize(
    "sent", [True, [0.5], {"share": 0.5}, "half", "NaN", "1_0", "+5", "\u0663", " 1 ", ""]
)
def test_a_share_that_is_no_number_is_refused(sent):
    """The error names the cell."""
    table = type("Shares", (Table,), {"share": Fraction("Share.")})

    with pytest.raises(SchemaError, match="row 0: share is "):
        table.decode([json.dumps([{"share": sent}]).encode()], MAINNET)
