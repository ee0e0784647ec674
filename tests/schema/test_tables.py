"""Tables: their declaration, and the exact decoding and encoding of JSON.

Expected cells come from ``contract``, which is written from the API's documentation alone.
"""

from __future__ import annotations

import json
import logging
import random
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from unittest.mock import Mock, patch

import polars as pl
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes.calendar import MAINNET
from beaconframes.errors import IntegrityError, ProtocolError, ResponseError, SchemaError
from beaconframes.schema import Count, Fraction, Gwei, Table, Text, Wei, record_layout
from beaconframes.schema import decode as decode_module
from beaconframes.v1 import ENDPOINTS

from ..support.contract import GENESIS, TABLES, rows
from ..support.whole_records import required_columns, whole

HERE = {endpoint.name: endpoint.table for endpoint in ENDPOINTS}
FAR = 2**63 - 1
fixed_examples = settings(deadline=None, derandomize=True, database=None, max_examples=6)
SEEDS = st.integers(0, 10**6)
each_table = pytest.mark.parametrize("table", TABLES)


def page(*records):
    try:
        return json.dumps(records, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(records).encode()


def decode(table, *records):
    """Return the frame of *records* as one page, with 0 in the required fields they leave out."""
    return raw(table, page(*(whole(HERE[table], record) for record in records)))


def raw(table, *pages):
    """Return the frame of pages."""
    return HERE[table].decode(pages, MAINNET)


def decode_checked(table, *pages):
    """Return the frame of *pages* from the checked decoder."""
    node, _ = decode_module.build_decoder(HERE[table].spec, strict=True)
    never = Mock(decode=Mock(side_effect=ValueError))
    with patch.object(decode_module, "build_decoder", lambda _, strict: (node, never)):
        return HERE[table].decode(pages, MAINNET)


def outcome(work, *args):
    """Return the decoded cells, or the name of the error that was raised."""
    try:
        return str(work(*args).rows())
    except ResponseError as error:
        return type(error).__name__


def same(expected, actual):
    """Assert that two frames are exactly equal; fast when they are."""
    if expected.schema != actual.schema or not expected.equals(actual):
        assert_frame_equal(expected, actual, check_exact=True)
        raise AssertionError


# Records as the service could send them, from a seed, which hypothesis chooses and shrinks.
# (Strategies for 38 columns, a draw each, take longer than the tests.)

LETTERS = ' aZ09"\\/<&\x00\n\x1b\u00e9\u20ac\u202e\u2028\ufffd\U0001f600'


def some_text(chance):
    return "".join(chance.choices(LETTERS, k=chance.randrange(8)))


def some_hex(chance):
    return "0x" + chance.randbytes(chance.randint(2, 6)).hex().upper()


CELLS = {
    "int": lambda chance: chance.randrange(2 ** chance.randrange(1, 63)),
    "int-or-0": lambda chance: chance.choice([0, chance.randrange(2**40)]),
    "epoch": lambda chance: chance.choice([chance.randrange(10**9), FAR, 2**64 - 1]),
    "proposer": lambda chance: chance.choice([chance.randrange(10**7), 2**31 - 1]),
    "wei": lambda chance: chance.choice([-1, 1]) * chance.randrange(10 ** chance.randint(1, 28)),
    "float": lambda chance: chance.choice([0.0, 1.0, chance.random(), chance.gauss() * 1e300]),
    "flag": lambda chance: chance.random() < 0.5,
    "text": some_text,
    "hex": some_hex,
    "root": lambda chance: chance.choice(["0x00", "0x01", some_hex(chance)]),
    "status": lambda chance: chance.choice("0123"),
    "json": lambda chance: {some_text(chance): [chance.random(), None, some_text(chance)]},
    "unix": lambda chance: chance.randrange(4_000_000_000),
    "time": lambda chance: (GENESIS + timedelta(seconds=chance.randrange(10**9))).isoformat(),
}
NEVER_NULL = {
    name: {c.name for c in table.columns if c.default is not None}
    | {c.name for c in required_columns(table)}
    for name, table in HERE.items()
}
NUMBERED = {"epoch", "slot", "day", "current_slot", "period"}


def field(table, line, chance):
    """Return a random wire value of one column."""
    if line.wire == ("validators[]",):
        return [chance.randrange(9) for _ in range(chance.randint(1, 6))]
    if (line.key and line.kind != "root") or line.name in NUMBERED:
        return chance.randrange(100_000)
    if chance.random() < 0.2 and line.name not in NEVER_NULL[table]:
        return None
    return CELLS["time" if line.is_time else line.kind](chance)


def several(table, chance, least=0):
    """Return records of a table by path, with unique keys, in the first spelling."""
    found = {}
    for _ in range(chance.randint(least, 6)):
        one = {line.wire[0]: field(table, line, chance) for line in TABLES[table] if line.wire}
        key = tuple(
            line.cell(one[line.wire[0]]) for line in TABLES[table] if line.key and line.wire
        )
        found[key] = one
    return list(found.values())


def nested(fields):
    """Return a record with inner objects, from fields by path."""
    found = {}
    for path, value in fields.items():
        head, dot, inner = path.removesuffix("[]").partition(".")
        if dot:
            found.setdefault(head, {})[inner] = value
        else:
            found[head] = value
    return found


def framed(table, records):
    """Return the frame of the records according to the contract."""
    schema = {line.name: line.dtype for line in TABLES[table]}
    return pl.DataFrame(rows(table, records), schema=schema, orient="row")


# Declaration of tables.


@each_table
def test_columns_types_and_keys_are_those_of_the_contract(table):
    """Names, order, polars types and keys are those of the hand-written contract."""
    lines = TABLES[table]

    assert pl.Schema({line.name: line.dtype for line in lines}) == HERE[table].schema()
    assert [line.name for line in lines if line.key] == HERE[table].key()
    assert lines[0].key


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("balance", Gwei),
        ("balance_wei", Gwei),
        ("gwei", Gwei),
        ("balance_eth", Gwei),
        ("fee", Wei),
        ("fee_gwei", Wei),
        ("fee_eth", Wei),
        ("seats_gwei", Count),
        ("seats_wei", Count),
        ("price_eth", Fraction),
        ("note_wei", Text),
    ],
)
def test_a_column_name_without_its_unit_is_refused_at_definition(name, column):
    """The column's type and the suffix of its name must state the same unit."""
    with pytest.raises(TypeError, match=f"Wrong.{name}"):
        type("Wrong", (Table,), {name: column("Something.")})


@pytest.mark.parametrize(
    ("name", "column"), [("a_gwei", Gwei), ("a_wei", Wei), ("gwei_count", Count), ("weight", Text)]
)
def test_a_column_name_with_its_unit_is_accepted(name, column):
    """Only the suffix of a name states a unit."""
    table = type("Right", (Table,), {name: column("Something.")})

    assert [name] == table.schema().names()


@each_table
@pytest.mark.parametrize("pages", [[], [b"[]"], [b"[]", b" [ ] "]])
def test_no_rows_have_the_whole_schema(table, pages):
    """An empty response has all columns, with their types."""
    for frame in (HERE[table].decode(pages, MAINNET), decode_checked(table, *pages)):
        same(framed(table, []), frame)
    same(framed(table, []), HERE[table].arrange(HERE[table].empty()))


# Values: every spelling decodes exactly.


def spelled(table, fields, chance):
    """Return the record in a random equivalent form: spelling, numbers as text, omitted fields."""
    found = {}
    for line in (line for line in TABLES[table] if line.wire):
        value = fields[line.wire[0]]
        nothing = value is None or (line.has_default and value == 0)
        if nothing and chance.random() < 0.5:
            continue
        number = isinstance(value, int | float) and not isinstance(value, bool)
        as_text = number and chance.random() < 0.5
        found[chance.choice(line.wire)] = json.dumps(value) if as_text else value
    return nested(found)


@each_table
@fixed_examples
@given(seed=SEEDS)
def test_equivalent_records_decode_to_the_same_frame(table, seed):
    """V01: both spellings, numbers as text, null or omitted fields or zeros; both decoders."""
    chance = random.Random(seed)
    fields = several(table, chance)
    expected = framed(table, [nested(one) for one in fields])
    arrange = HERE[table].arrange

    plain = page(*map(nested, fields))
    varied = page(*(spelled(table, one, chance) for one in fields))

    same(expected, arrange(raw(table, plain)))
    same(expected, arrange(raw(table, varied)))
    same(expected, arrange(decode_checked(table, plain)))
    same(expected, arrange(decode_checked(table, varied)))


@each_table
@fixed_examples
@given(seed=SEEDS)
def test_many_pages_decode_to_one_frame(table, seed):
    """Objects, lists and empty lists, in either decoder: all rows, in order."""
    chance = random.Random(seed)
    fields = [nested(one) for one in several(table, chance)]
    pages, rest = [], fields
    while rest:
        cut = chance.randint(1, len(rest))
        pages.append(page(*rest[:cut]))
        rest = rest[cut:]
        if rest and chance.random() < 0.5:
            pages.append(page(*rest[:1])[1:-1])
            rest = rest[1:]

    frame = HERE[table].decode(pages, MAINNET)

    same(raw(table, page(*fields)), frame)
    same(framed(table, fields), HERE[table].arrange(frame))


@each_table
@fixed_examples
@given(seed=SEEDS)
def test_encoded_frames_decode_to_themselves(table, seed):
    """Encoding and decoding preserve every digit, null and letter, and the order."""
    frame = framed(table, [nested(one) for one in several(table, random.Random(seed))])

    wire = HERE[table].encode(frame, MAINNET)

    same(frame, raw(table, wire))
    same(frame, decode_checked(table, wire))
    assert isinstance(json.loads(wire), list)


ODD = (
    True, False, 0, 1, -1, 1.0, 1.5, 1e3, 2.0**53, 2.0**63, 1e300, 2**53 + 1, 2**63, 2**64, 10**28,
    10**40, "", " ", "0", "1", "+1", "-1", "-0", "01", " 1", "1 ", "1.0", "1.5", "1e3", "1_0",
    "0x1", "\u0661", "nan", "NaN", "inf", "-Infinity", "true", "null", "None", str(2**53 + 1),
    str(2**63), str(10**28 - 1), "2021-02-23T14:33:59Z", "2021-02-23", "0x00", [], [1], {},
)  # fmt: skip


@pytest.mark.parametrize(
    ("table", "wire"),
    [
        ("validators", "balance"),
        ("validators", "exit_epoch"),
        ("validators", "slashed"),
        # The types of these are tested with the other columns, too.
        pytest.param("validators", "name", marks=pytest.mark.more),
        pytest.param("validators", "pubkey", marks=pytest.mark.more),
        pytest.param("validators", "last_attestation_slot", marks=pytest.mark.more),
        ("epochs", "globalparticipationrate"),
        ("epochs", "ts"),
        ("epoch_slots", "status"),
        pytest.param("epoch_slots", "exec_timestamp", marks=pytest.mark.more),
        ("yield_index", "tx_fees_sum_wei"),
    ],
)
def test_the_fast_and_the_checked_decoder_agree(table, wire):
    """The cell of a value does not depend on the other values of its page."""
    key = TABLES[table][0].wire[0]
    fast, slow = {}, {}
    for value in ODD:
        one = page(whole(HERE[table], nested({key: 1, wire: value})))
        fast[repr(value)] = outcome(HERE[table].decode, [one], MAINNET)
        slow[repr(value)] = outcome(decode_checked, table, one)

    assert slow == fast


@pytest.mark.parametrize("digits", [2**53 + 1, 2**63, 2**64, 55 * 10**18, 34 * 10**24, 10**28 - 1])
def test_wei_is_exact_in_polars_pandas_and_parquet_and_back(digits, tmp_path):
    """V03: as a number or as text, also negative, up to 28 digits."""
    frame = decode(
        "yield_index",
        {"day": 1, "tx_fees_sum_wei": digits, "deposits_sum_wei": str(digits)},
        {"day": 2, "tx_fees_sum_wei": -digits, "deposits_sum_wei": str(-digits)},
    )

    frame.write_parquet(tmp_path / "wei.parquet")
    exact = [Decimal(digits), Decimal(-digits)]
    pandas = bf.to_pandas(frame)
    arrow = pyarrow.parquet.read_table(tmp_path / "wei.parquet")
    for column in ("tx_fees_sum_wei", "deposits_sum_wei"):
        assert exact == frame[column].to_list()
        assert exact == pandas[column].to_list()
        assert exact == arrow[column].to_pylist()
    same(frame, pl.read_parquet(tmp_path / "wei.parquet"))
    assert_frame_equal(frame, pl.from_pandas(pandas), check_dtypes=False)


@pytest.mark.parametrize(
    ("table", "wire", "value"),
    [
        ("yield_index", "tx_fees_sum_wei", 10**28),
        ("yield_index", "tx_fees_sum_wei", str(10**28)),
        ("yield_index", "tx_fees_sum_wei", -(10**28)),
        ("yield_index", "tx_fees_sum_wei", 2**127),
        ("yield_index", "tx_fees_sum_wei", 2**128 + 1),
        ("yield_index", "tx_fees_sum_wei", 1.349850765807e21),
        ("yield_index", "tx_fees_sum_wei", 1e16),
        ("yield_index", "tx_fees_sum_wei", 0.5),
        ("validators", "balance", 2**63),
        ("validators", "balance", str(2**63)),
        ("validators", "balance", -(2**63) - 1),
        ("validators", "balance", 1e16),
        ("validators", "validator_index", 2**64),
        ("epoch_slots", "exec_gas_used", 2**64 + 5),
        ("validators", "exit_epoch", 2**64 + 5),
        ("validators", "exit_epoch", str(2**64 + 5)),
        ("validators", "exit_epoch", 1e20),
    ],
)
def test_a_number_that_does_not_fit_is_refused_by_name(table, wire, value):
    """V05: nothing wraps or is rounded: the error names the row, the field and the value."""
    key = TABLES[table][0].wire[0]
    good = {key: 1}
    bad = {key: 2, wire: value}

    with pytest.raises(SchemaError, match=f"{HERE[table].table_name} row 1: {wire} is ") as error:
        decode(table, good, bad)

    assert str(value)[:40] in str(error.value)


def test_a_whole_number_as_a_float_is_accepted_only_where_floats_are_exact():
    """V02: 2**53 + 1 with a fraction is rounded by the JSON parser itself."""
    assert [9_007_199_254_740_991] == decode("validators", {
        "validator_index": 1, "balance": 9_007_199_254_740_991.0
    })["balance_gwei"].to_list()  # fmt: skip

    for text in (b"9007199254740993.0", b"9007199254740993e0", b"-9007199254740993.0"):
        with pytest.raises(SchemaError, match="balance"):
            raw("validators", b'[{"validator_index":1,"balance":%b}]' % text)


@pytest.mark.parametrize(
    "never",
    [
        *(FAR, 2**64 - 1, 9223372036854776000, 9.223372036854776e18, str(FAR), None),
        *(18446744073709552000, 1.8446744073709552e19),
    ],
)
@pytest.mark.parametrize(
    "wire", ["activation_eligibility_epoch", "activationepoch", "exit_epoch", "withdrawableepoch"]
)
def test_the_far_future_is_null(never, wire):
    """V06: in every spelling; any other epoch is a number."""
    epochs = [
        "activation_eligibility_epoch",
        "activation_epoch",
        "exit_epoch",
        "withdrawable_epoch",
    ]
    column = next(name for name in epochs if name.replace("_", "") == wire.replace("_", ""))

    frame = decode("validators", {"validator_index": 1, wire: never})
    later = decode("validators", {"validator_index": 1, wire: 2**62})

    assert [None] == frame[column].to_list()
    assert [2**62] == later[column].to_list()
    same(
        frame,
        decode_checked(
            "validators", page(whole(HERE["validators"], {"validator_index": 1, wire: never}))
        ),
    )


def test_whole_numbers_with_nulls_stay_whole_in_pandas():
    """V07: 2**53 + 1 in a column with a null stays an exact integer."""
    frame = decode(
        "epochs", {"epoch": 1, "eligibleether": 2**53 + 1}, {"epoch": 2, "eligibleether": None}
    )

    column = bf.to_pandas(frame)["eligible_ether_gwei"]

    assert 2**53 + 1 == column[0]
    assert [False, True] == column.isna().tolist()
    assert "int64" in str(column.dtype).lower()


def test_omitted_income_fields_are_zero():
    """V04: an omitted field and an empty text are each zero, in their own column."""
    frame = decode(
        "income_history",
        {"validatorindex": 1, "epoch": 1, "income": {"attestation_head_reward": 5}},
        {"validatorindex": 1, "epoch": 2, "income": {}},
        {"validatorindex": 1, "epoch": 3, "income": {"tx_fee_reward_wei": ""}},
        {"validatorindex": 1, "epoch": 4, "income": {"tx_fee_reward_wei": "7"}},
    )

    amounts = frame.drop("validator_index", "epoch", "time")
    assert 0 == sum(amounts.null_count().row(0))
    assert [5, 0, 0, 0] == amounts["attestation_head_reward_gwei"].to_list()
    assert [0, 0, 0, 7] == amounts["tx_fee_reward_wei"].to_list()
    assert 0 == sum(amounts.drop("attestation_head_reward_gwei", "tx_fee_reward_wei").sum().row(0))


@pytest.mark.parametrize("rest", [{}, {"income": None}, {"attestation_head_reward": 5}])
def test_a_missing_income_object_is_refused(rest):
    """The service omits zeros from the object, but never the object itself."""
    one = {"validatorindex": 1, "epoch": 1}

    with pytest.raises(SchemaError, match="income_history row 1: income is None"):
        raw("income_history", page(one | {"income": {}}, one | rest))


def test_an_empty_seat_is_refused():
    """Each seat has a validator."""
    with pytest.raises(SchemaError, match=r"validators is .*None"):
        decode(
            "sync_committees",
            {
                "period": 1,
                "start_epoch": 256,
                "end_epoch": 511,
                "validators": [1, None, *[2] * 510],
            },
        )


@pytest.mark.parametrize("between", [", ", ",\n  "])
@pytest.mark.parametrize("after", [":", ": ", " : "])
def test_a_duplicate_field_is_refused_with_any_white_space(between, after):
    """Other servers may not write compact JSON."""
    record = f'{{"period"{after}1{between}"period"{after}2}}'
    with pytest.raises(ProtocolError, match="'period' twice"):
        HERE["sync_committees"].decode([f"[{record}{between}{{}}]".encode()], MAINNET)


def test_seats_preserve_order_and_duplicates():
    """V11: seat i is bit i: 512 seats in order, with validators that have several."""
    seats = [(7 * seat) % 300 for seat in range(512)]

    frame = decode("sync_committees", {
        "period": 290, "start_epoch": 74240, "end_epoch": 74495, "validators": seats
    })  # fmt: skip
    frame = HERE["sync_committees"].arrange(frame)

    assert list(range(512)) == frame["seat"].to_list()
    assert seats == frame["validator_index"].to_list()


@pytest.mark.parametrize("validators", ["123", {"7": 1}, 5, [1, [2]], [1, "x"], [True], 1.5])
def test_a_committee_that_is_not_a_list_of_validators_is_refused(validators):
    """A text is not split into digits, and an object not into its names."""
    with pytest.raises(SchemaError, match=r"row 0.*validators"):
        decode("sync_committees", {"period": 1, "validators": validators})


@pytest.mark.parametrize(
    ("table", "wire"), [("income_history", "income"), ("latest_state", "rates")]
)
@pytest.mark.parametrize("value", [5, "x", [], [1], True])
def test_an_inner_object_of_another_type_is_refused(table, wire, value):
    """An income of another JSON type does not become zero."""
    one = {"validatorindex": 1, "epoch": 1, "currentSlot": 1, wire: value}

    with pytest.raises(SchemaError, match=f"row 0.*{wire}"):
        decode(table, one)


# Text.


@fixed_examples
@given(texts=st.lists(st.text(st.characters(), max_size=8), min_size=1, max_size=4))
def test_half_a_surrogate_pair_becomes_one_replacement_and_the_rest_stays(texts):
    """V12: pairs, backslashes and the rest of the page stay unchanged."""
    full = whole(HERE["validators"], {"validator_index": 1})
    sent = json.dumps([full | {"validator_index": i, "name": t} for i, t in enumerate(texts)])
    halves = re.compile("[\ud800-\udfff]")
    expected = [halves.sub("\ufffd", one["name"]) for one in json.loads(sent)]

    assert expected == raw("validators", sent.encode())["name"].to_list()


@pytest.mark.parametrize(
    ("escaped", "expected"),
    [
        (rb"a\ud800b", "a\ufffdb"),
        (rb"\udc00", "\ufffd"),
        (rb"\ud83d\ude00\ude00", "\U0001f600\ufffd"),
        (rb"\ud800\ud83d\ude00", "\ufffd\U0001f600"),
        (rb"\ud800 \\ud83d", "\ufffd \\ud83d"),
        (rb"\ud800 C:\\ude00\\x", "\ufffd C:\\ude00\\x"),
        (rb"\uD83D\uDE00 \uDBFF", "\U0001f600 \ufffd"),
    ],
)
def test_surrogates_by_hand(escaped, expected):
    """Half a pair is replaced; an escaped backslash starts no escape."""
    full = page(whole(HERE["validators"], {"validator_index": 1, "name": "NAME"}))
    sent = full.replace(b"NAME", escaped)

    assert [expected] == raw("validators", sent)["name"].to_list()


def test_text_is_stored_unchanged(tmp_path):
    """V12: 100,000 letters, markup, formulas, control characters, also through Parquet."""
    texts = ["x" * 100_000, "<b>&amp;</b>", "=1+1", "a\x00\x1b[31m\u202e\u2028b", "", "\ufffd"]

    frame = decode("validators", *({"validator_index": i, "name": t} for i, t in enumerate(texts)))
    frame.write_parquet(tmp_path / "texts.parquet")

    assert texts == frame["name"].to_list()
    assert texts == pl.read_parquet(tmp_path / "texts.parquet")["name"].to_list()


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xc0\xaf"])
def test_text_that_is_not_utf8_is_refused(bad):
    """Invalid bytes raise an error; they are not replaced."""
    with pytest.raises(ProtocolError):
        raw("validators", b'[{"validator_index":1,"name":"' + bad + b'"}]')


def test_equivalent_json_becomes_the_same_text():
    """Escapes, white space and the decoder do not change the text."""
    record = {"currentSlot": 1, "rates": {"mainCurrencyTickerPrices": {"EUR": "€<"}}}
    plain = page(whole(HERE["latest_state"], record))
    sent = plain.replace('{"EUR": "€<"}'.encode(), rb' {"E\u0055R": "\u20ac\u003c"} ')

    for frame in (raw("latest_state", sent), decode_checked("latest_state", sent)):
        same(raw("latest_state", plain), frame)
    assert ['{"EUR":"€<"}'] == frame["main_currency_ticker_prices"].to_list()


# Times.


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ("2021-02-23T14:33:59Z", datetime(2021, 2, 23, 14, 33, 59, tzinfo=UTC)),
        ("2021-02-23T14:33:59", datetime(2021, 2, 23, 14, 33, 59, tzinfo=UTC)),
        ("2021-02-23T16:03:59.5+01:30", datetime(2021, 2, 23, 14, 33, 59, 500_000, tzinfo=UTC)),
        (1_614_090_839, datetime(2021, 2, 23, 14, 33, 59, tzinfo=UTC)),
        ("1970-01-01T00:00:00Z", datetime(1970, 1, 1, tzinfo=UTC)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59Z", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (None, GENESIS + timedelta(seconds=384)),
    ],
)
def test_every_spelling_of_a_time_decodes_to_utc(sent, expected):
    """V13: RFC 3339 with any zone, or Unix seconds; an omitted time follows from the epoch."""
    assert [expected] == decode("epochs", {"epoch": 1, "ts": sent})["time"].to_list()
    full = whole(HERE["epochs"], {"epoch": 1, "ts": sent})
    assert [expected] == decode_checked("epochs", page(full))["time"].to_list()


@pytest.mark.parametrize(
    ("table", "fields"),
    [
        ("epochs", {"epoch": 1, "ts": 1_614_090_839_000}),
        ("epochs", {"epoch": 1, "ts": "10000-01-01T00:00:00Z"}),
        ("epochs", {"epoch": 1, "ts": "9999-12-31T23:59:59-10:00"}),
        ("epochs", {"epoch": 1, "ts": "0001-01-01T00:00:00+14:00"}),
        ("epochs", {"epoch": 1, "ts": "yesterday"}),
        ("epoch_slots", {"slot": 1, "exec_timestamp": 1_614_090_839_000}),
        ("epoch_slots", {"slot": 1, "exec_timestamp": 2**60}),
        # The seconds before the year 1 and after the year 9999.
        ("epoch_slots", {"slot": 1, "exec_timestamp": -62_135_596_801}),
        ("epoch_slots", {"slot": 1, "exec_timestamp": 253_402_300_800}),
        ("balance_history", {"validatorindex": 1, "epoch": 2**62}),
        ("balance_history", {"validatorindex": 1, "epoch": 9 * 10**18}),
        ("balance_history", {"validatorindex": 1, "epoch": FAR}),
        ("yield_index", {"day": 2**50}),
        ("graffiti_wall", {"slot": 2**61, "x": 1, "y": 1}),
    ],
)
def test_a_time_outside_of_the_calendar_is_refused(table, fields):
    """Milliseconds are not seconds, and no time wraps around to the past."""
    with pytest.raises(SchemaError, match="row 0"):
        decode(table, fields).rows()


# Blocks.


def test_slots_without_a_block_or_a_payload_are_null_and_not_zero():
    """V14: missed, scheduled, before the merge: fields are null, and counts by status are right."""
    execution = [line for line in TABLES["epoch_slots"] if line.name.startswith("exec_")]
    empty = {line.wire[0]: None for line in execution}
    blocks = [
        {"slot": slot, "blockroot": root, "status": status, **empty}
        for slot, root, status in [
            (1, "0xAA", "1"), (2, "0x01", "2"), (3, "0x00", "0"), (4, "0xbb", "3"), (5, "0x01", "2")
        ]
    ]  # fmt: skip

    frame = decode("epoch_slots", *blocks)

    assert ["0xaa", None, None, "0xbb", None] == frame["block_root"].to_list()
    assert {"proposed": 1, "missed": 2, "scheduled": 1, "orphaned": 1} == dict(
        frame["status"].value_counts().iter_rows()
    )
    assert {5} == set(frame.select(line.name for line in execution).null_count().row(0))


def test_an_unknown_code_stays_as_text():
    """B13: an undocumented status is neither an error nor another status."""
    blocks = decode("epoch_slots", {"slot": 1, "status": "7"}, {"slot": 2, "status": "reorged"})
    validators = decode("validators", {"validator_index": 1, "status": "pending_queued"})

    assert ["7", "reorged"] == blocks["status"].to_list()
    assert ["pending_queued"] == validators["status"].to_list()


# Duplicate and contradicting rows.


@each_table
@fixed_examples
@given(seed=SEEDS)
def test_duplicate_and_shuffled_rows_are_sorted_and_unique(table, seed):
    """P06, P09: overlapping pages and shuffled rows become one sorted frame, each row once."""
    chance = random.Random(seed)
    fields = [nested(one) for one in several(table, chance, least=1)]
    again = fields + fields[:2]
    chance.shuffle(again)

    frame = HERE[table].arrange(decode(table, *again))

    same(framed(table, fields), frame)


@pytest.mark.parametrize(
    ("table", "first", "second", "words"),
    [
        ("validators", {"validator_index": 7, "balance": 1}, {"validator_index": 7, "balance": 2},
         ["validator_index", "7", "balance_gwei"]),
        ("validators", {"validator_index": 7, "name": None}, {"validator_index": 7, "name": "x"},
         ["validator_index", "7", "name"]),
        ("income_history", {"validatorindex": 3, "epoch": 9, "income": {"slashing_penalty": 1}},
         {"validatorindex": 3, "epoch": 9, "income": {}},
         ["3", "epoch", "9", "slashing_penalty_gwei"]),
        ("epoch_slots", {"slot": 5, "blockroot": "0x01", "status": "2"},
         {"slot": 5, "blockroot": "0x00", "status": "0"}, ["slot", "5", "status"]),
        ("sync_committees", {"period": 1, "validators": [4]}, {"period": 1, "validators": [5]},
         ["period", "seat", "0", "validator_index"]),
        ("yield_index", {"day": 1, "tx_fees_sum_wei": 10**27}, {"day": 1, "tx_fees_sum_wei": 1},
         ["day", "1", "tx_fees_sum_wei"]),
    ],
)  # fmt: skip
def test_two_rows_of_one_key_that_differ_are_refused(table, first, second, words):
    """P07: the error names the key and the column; neither row is chosen."""
    with pytest.raises(IntegrityError) as caught:
        HERE[table].arrange(decode(table, first, second))

    assert [] == [word for word in words if word not in str(caught.value)]


def test_two_blocks_of_one_slot_are_two_rows():
    """P24: an orphaned block has another root than the canonical one, so both are rows."""
    frame = HERE["epoch_slots"].arrange(
        decode(
            "epoch_slots",
            {"slot": 5, "blockroot": "0xbb", "status": "1"},
            {"slot": 5, "blockroot": "0xAA", "status": "3"},
            {"slot": 4, "blockroot": "0x01", "status": "2"},
        )
    )

    assert [(4, None), (5, "0xaa"), (5, "0xbb")] == frame.select("slot", "block_root").rows()


# Responses of the wrong shape.

NEEDED = {"income_history": {"income": {}}}
"""Fields that a record must have besides its key."""

WRONG = (
    None, True, False, 0, -1, 7, 2**31 - 1, 2**63, 2**64, -(2**70), 10**28, 0.5, -1e300, 1e16, "",
    "x", "0x", "0xzz", "-1", "1e3", "nan", "\ud800", "2021-02-23T14:33:59Z", [], [1], [[]], {},
    {"a": []},
)  # fmt: skip


def attempt(table, records):
    """Return the message of the SchemaError, or "" for a frame with the documented types."""
    try:
        frame = decode(table, *records)
        frame.rows()
    except SchemaError as error:
        return str(error)
    assert HERE[table].schema() == frame.schema
    return ""


@pytest.mark.more
def test_a_wrong_value_in_a_random_cell_is_named_or_valid():
    """B11: 300 cells of every table: a frame of the documented types, or an error with row and
    field.
    """
    chance = random.Random(20)
    named = 0
    for case in range(300):
        table = chance.choice(list(TABLES))
        lines = [line for line in TABLES[table] if line.wire]
        key = {
            line.wire[0]: f"0x0{n}" if line.kind == "root" else n
            for n, line in enumerate(lines)
            if line.key or line.name in NUMBERED
        }
        records = [dict(key) for _ in range(3)]
        row, line = chance.randrange(3), chance.choice(lines)
        spelling = chance.choice(line.wire)
        for wire in line.wire:
            records[row].pop(wire, None)
        value = chance.choice(WRONG)
        records[row][spelling.removesuffix("[]")] = value
        message = attempt(table, [NEEDED.get(table, {}) | nested(one) for one in records])
        if message:
            named += 1
            assert f"{HERE[table].table_name} row {row}" in message, (case, table, spelling)
            assert any(wire.removesuffix("[]") in message for wire in line.wire), (case, message)
            assert len(message) < 500

    assert 60 < named < 240


@each_table
def test_a_row_without_its_key_is_refused(table):
    """A key field may be neither omitted nor null."""
    lines = [line for line in TABLES[table] if line.key and line.wire and line.kind != "root"]
    full = whole(HERE[table], {})
    for line in lines:
        name = line.wire[0].removesuffix("[]")
        rest = {key: value for key, value in full.items() if key not in line.wire}
        for one in (rest, rest | {name: None}):
            with pytest.raises(SchemaError, match=f"row 1.*{name}"):
                raw(table, page(full, one))


@each_table
@pytest.mark.parametrize("data", [b"5", b'"x"', b"true", b"[1]", b'["x"]', b"[null]", b"[[]]"])
def test_data_that_is_not_a_record_is_refused(table, data):
    """Scalars, texts and lists of them are errors, not empty frames."""
    with pytest.raises(ResponseError):
        raw(table, data)


@each_table
@pytest.mark.parametrize(
    "data",
    [
        b"", b"[", b"[{]", b"<html>", b'[{"epoch":NaN}]', b'[{"epoch":1}]x', b'[{"epoch":1},]',
        b"[" * 100_000, b'[{"z":' + b"[" * 100_000 + b"]" * 100_000 + b"}]", b"\xff\xfe[\x00]\x00",
        b'[{"epoch":' + b"9" * 5_000 + b"}]",
    ],
)  # fmt: skip
def test_invalid_json_raises_an_error_of_the_package(table, data):
    """Truncated, nested too deeply, numbers too long: no exception of another library."""
    with pytest.raises(ResponseError):
        raw(table, data)


def test_row_numbers_count_over_all_pages():
    """The row in an error is its position in the whole response."""
    good = [whole(HERE["validators"], {"validator_index": n}) for n in range(5)]

    with pytest.raises(SchemaError, match="validators row 7: balance is 'much'"):
        raw("validators", page(*good), page(good[0], good[1], good[2] | {"balance": "much"}))


@pytest.mark.parametrize(("records", "built"), [([], 1), ([3], 1), ([3, 2], 2), ([3, 0], 2)])
def test_no_empty_frame_follows_a_full_one(monkeypatch, records, built):
    """F11: a full page is one frame; each further frame costs a tenth of the page's time."""
    monkeypatch.setattr(decode_module, "RECORDS_PER_FRAME", 3)
    build_frame = Mock(wraps=decode_module.build_frame)
    monkeypatch.setattr(decode_module, "build_frame", build_frame)
    good = [whole(HERE["validators"], {"validator_index": n}) for n in range(5)]

    frame = raw("validators", *(page(*good[:count]) for count in records))

    assert sum(records) == frame.height
    assert built == build_frame.call_count


def test_nan_and_infinity_are_refused_as_text_too():
    """JSON has no NaN and no infinity, so frames have none either."""
    for text in ("nan", "NaN", "inf", "-inf", "Infinity", "1e999"):
        with pytest.raises(SchemaError, match="globalparticipationrate"):
            decode("epochs", {"epoch": 1, "globalparticipationrate": text})


@pytest.mark.parametrize(
    ("table", "extra"),
    [
        ("validators", {"": 1, "__proto__": {"x": 1}, "validatorIndexNew": [1, {"a": None}]}),
        ("income_history", {"income": {"blob_reward": 5}}),
        ("latest_state", {"rates": {"secondCurrency": "x"}}),
    ],
)
def test_unknown_fields_are_ignored_and_logged_once(table, extra, caplog):
    """B12: a newer service may send more: the frame is the same; one log line names the fields."""
    known = nested({line.wire[0]: 0 for line in TABLES[table] if line.wire})
    known = whole(HERE[table], known if table == "income_history" else {})
    if table == "validators":
        known |= dict.fromkeys(n for c in HERE[table].columns if c.nullable for n in c.wire_paths)
    ((name, inner),) = [*extra.items()][:1]
    more = {name: known.get(name, {}) | inner} if len(extra) == 1 else extra
    record_layout.warn_unknown_fields.cache_clear()

    with caplog.at_level(logging.DEBUG, logger="beaconframes"):
        frames = [decode(table, known | more) for _ in range(3)]

    names = list(extra) if table == "validators" else list(inner)
    same(decode(table, known), frames[0])
    same(frames[0], frames[2])
    assert 1 == len(caplog.records)
    assert [] == [name for name in names if name not in caplog.text]


@pytest.mark.parametrize("table", ["income_history", "balance_history"])
def test_the_week_of_an_epoch_needs_no_column_and_is_not_logged(table, caplog):
    """The calendar implies it."""
    record_layout.warn_unknown_fields.cache_clear()
    week = {"week": 0, "week_start": "", "week_end": 5}

    with caplog.at_level(logging.DEBUG, logger="beaconframes"):
        decode(table, {"validatorindex": 1, "epoch": 1, **week})

    assert [] == caplog.records


# Fields that the decoder would drop silently.


@pytest.mark.parametrize(
    "page",
    [
        b'[{"epoch":1,"epoch":2,"validatorindex":3}]',
        b'{"epoch":1,"validatorindex":3,"balance":1,"balance":1}',
        b'[{"epoch":1,"validatorindex":3,"week":1,"week":1},{"epoch":2,"validatorindex":3}]',
        b'[{"epoch":1,"validatorindex":3,"more":[{"a":1,"a":1},{"a":2}]}]',
    ],
)
def test_a_duplicate_field_is_refused(page):
    """Known or unknown, at any depth: either value could be the right one."""
    with pytest.raises(ProtocolError, match="twice"):
        HERE["balance_history"].decode([page], MAINNET)


def test_a_duplicate_field_on_a_later_page_is_refused():
    """Also among thousands of pages of the same shape."""
    good = [f'{{"epoch":{n},"validatorindex":3}}'.encode() for n in range(50)]
    bad = b'{"epoch":50,"validatorindex":3,"validatorindex":4}'

    with pytest.raises(ProtocolError, match="validatorindex"):
        HERE["balance_history"].decode([*good, bad], MAINNET)


def test_text_that_looks_like_fields_is_text():
    """Quoted names inside a text are not fields."""
    record = {"slot": 1, "graffiti_text": '"a":1,"a":2,"slot":7,},{"'}

    assert record["graffiti_text"] == decode("epoch_slots", record)["graffiti_text"][0]


def test_unknown_fields_of_many_pages_are_logged_once(caplog):
    """One log line names them, for any number of pages; the rows are the same."""
    record = whole(HERE["balance_history"], {"validatorindex": 1})
    pages = [page(record | {"epoch": n}) for n in range(3)]
    odd = [page(record | {"epoch": 9, "color of page two": 5})] * 2

    frame = HERE["balance_history"].decode([*pages, *odd], MAINNET)

    assert [0, 1, 2, 9, 9] == frame["epoch"].to_list()
    messages = [record.message for record in caplog.records]
    assert 1 == len(messages)
    assert messages[0].startswith("balance_history: the service also sends 'color of page two'")


@pytest.mark.parametrize(
    ("table", "field", "value"),
    [
        ("balance_history", "epoch", -1),
        ("balance_history", "validatorindex", -5),
        ("validators", "activation_epoch", "-3"),
        ("epoch_slots", "slot", -1),
        ("epoch_slots", "attestationscount", -2),
        ("sync_committees", "period", -1),
        ("sync_committees", "validators", [5, -5]),
        ("epoch_slots", "graffiti", "hello"),
        ("epoch_slots", "stateroot", "0xzz"),
        ("validators", "pubkey", "aabb"),
        ("validators", "pubkey", ""),
    ],
)
def test_an_impossible_value_of_a_column_type_is_refused(table, field, value):
    """A negative count, or text that is not hexadecimal: the error names field and row."""
    lines = [line for line in TABLES[table] if line.key and line.wire and line.kind != "root"]
    whole = {line.wire[0]: [1] if table == "sync_committees" and "[]" in line.wire[0] else 1
             for line in lines}  # fmt: skip
    if table == "sync_committees":
        whole["validators"] = [1]

    with pytest.raises(SchemaError, match=f"row 1: {field} is") as refused:
        decode(table, whole, {**whole, field: value})

    assert "so it was not converted" in str(refused.value)


def test_negative_amounts_stay_negative():
    """A loss is a negative amount."""
    record = {"validatorindex": 1, "epoch": 2, "balance": -7}

    assert [-7] == decode("balance_history", record)["balance_gwei"].to_list()


def test_sorted_rows_are_not_sorted_again():
    """F6: a sorted frame is returned as it is; rows with a null key are sorted, nulls last."""
    epochs = pl.DataFrame({"validator_index": [1, 1, 2], "epoch": [8, 9, 3]})
    with_null = epochs.with_columns(epoch=pl.Series([8, None, 3]))
    arrange = HERE["balance_history"].arrange

    assert arrange(epochs) is epochs
    assert [(1, 8), (1, None), (2, 3)] == arrange(with_null).rows()
    assert [(1, 8), (1, None), (2, 3)] == arrange(with_null.reverse()).rows()


class Places(Table):
    """Places. One row per validator and epoch."""

    validator = Count("Validator.", key=True)
    epoch = Count("Epoch.", key=True)


@pytest.mark.parametrize(
    "numbers",
    [(0, 1, 2, 2**31 - 1), (0, 1, 2, 2**31), (-1, 0, 1, 2), (None, 0, 1), (0, 1, FAR)],
    ids=["small", "large", "negative", "null", "largest"],
)
def test_rows_of_many_chunks_are_in_the_order_of_their_key(numbers):
    """F6: the order is that of `DataFrame.sort`, for any numbers, in any number of chunks."""
    keys = [(one, other) for one in numbers for other in numbers]
    random.Random(1).shuffle(keys)
    pieces = [pl.DataFrame([key], Places.schema(), orient="row") for key in keys]

    arranged = Places.arrange(pl.concat(pieces))

    expected = pl.concat(pieces).sort("validator", "epoch", nulls_last=True)
    assert_frame_equal(expected, arranged)


@pytest.mark.parametrize("spelling", ["first", "second"])
def test_null_is_not_the_default_of_a_field_left_out(spelling):
    """With two spellings, null at the first one was read as if both were left out."""
    number = Count("A number.", key=True, wire=("first", "second"), default=0)
    table = type("Spelled", (Table,), {"number": number, "text": Text("A text.")})
    accepted = [{"text": "a"}, {"text": "b", "first": None, "second": 7}]

    assert [0, 7] == table.decode([page(*accepted)], MAINNET)["number"].to_list()
    with pytest.raises(SchemaError, match="has no first"):
        table.decode([page({"text": "a", spelling: None})], MAINNET)
