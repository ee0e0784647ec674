"""Responses of unpublished shape: every field becomes a column, however rows are paginated."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime
from decimal import Decimal

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from beaconframes import MAINNET
from beaconframes.errors import SchemaError
from beaconframes.schema import EnvelopeContext, Slot, Table

WEI = pl.Decimal(28, 0)
TIME = pl.Datetime("us", "UTC")


class Unknown(Table):
    """Undocumented items. One row per item."""

    slot = Slot("Requested slot.", context="request.slot.number")

    keeps_every_field = True


RECORDS = [
    {
        "validator": {"index": 7, "public_key": "0xAB"},
        "amount": "0",
        "depositQueue": {"churn": {"amount": "256000000000000000000"}},
        "epoch": 5,
        "score": None,
        "flag": None,
        "never": None,
        "parts": {},
        "stages": [{"a": 1}],
    },
    {
        "validator": {"index": None, "public_key": "0xcd"},
        "amount": "-9999999999999999999999999999",
        "epoch": 9223372036854775807,
        "estimated_timestamp": 1606824023,
        "score": 0.25,
        "flag": True,
        "text": "12 and more",
        "mixed": "a",
        "parts": {"root": "0x00FF"},
        "stages": None,
    },
    {"amount": None, "text": "12", "mixed": {"b": 1}, "big_gwei": 3, "new": 5},
]


def decoded(*pages):
    """Return the frame of the records in these pages."""
    around = [EnvelopeContext({}, {"slot": {"number": 3}})] * len(pages)
    return Unknown.decode([json.dumps(page).encode() for page in pages], MAINNET, around)


def test_every_field_is_a_column_of_the_type_of_its_values():
    """Amounts are exact, far-future epochs null, hex lower-case; other fields stay."""
    frame = decoded(RECORDS)

    expected = {
        "slot": (pl.Int64, [3, 3, 3]),
        "amount_wei": (WEI, [Decimal(0), Decimal(-9999999999999999999999999999), None]),
        "big_gwei": (pl.Int64, [None, None, 3]),
        "deposit_queue_churn_amount_wei": (WEI, [Decimal(256 * 10**18), None, None]),
        "epoch": (pl.Int64, [5, None, None]),
        "estimated_time": (TIME, [None, datetime(2020, 12, 1, 12, 0, 23, tzinfo=UTC), None]),
        "flag": (pl.Boolean, [None, True, None]),
        "mixed": (pl.String, [None, "a", None]),
        "mixed_b": (pl.Int64, [None, None, 1]),
        "never": (pl.String, [None, None, None]),
        "new": (pl.Int64, [None, None, 5]),
        "parts_root": (pl.String, [None, "0x00ff", None]),
        "score": (pl.Float64, [None, 0.25, None]),
        "stages": (pl.String, ['[{"a":1}]', None, None]),
        "text": (pl.String, [None, "12 and more", "12"]),
        "validator_index": (pl.Int64, [7, None, None]),
        "pubkey": (pl.String, ["0xab", "0xcd", None]),
    }
    assert list(expected) == frame.columns
    assert {name: dtype for name, (dtype, _) in expected.items()} == dict(frame.schema)
    assert {name: values for name, (_, values) in expected.items()} == frame.to_dict(
        as_series=False
    )


def test_types_do_not_depend_on_where_pages_begin():
    """One record per page, all on one page, or empty pages in between: the types are equal."""
    whole = decoded(RECORDS)

    assert_frame_equal(whole, decoded(*([record] for record in RECORDS)))
    assert_frame_equal(whole, decoded([], RECORDS[:2], [], RECORDS[2:], []))
    for order in itertools.permutations(RECORDS):
        assert dict(whole.schema) == dict(decoded(order).schema)


def test_a_repeated_row_is_returned_once():
    """Overlapping pages return each row once."""
    twice = decoded(RECORDS, RECORDS[1:])

    assert_frame_equal(decoded(RECORDS), Unknown.arrange(twice))


def test_an_amount_beyond_every_column_is_an_error():
    """An amount of 29 digits is an error."""
    with pytest.raises(SchemaError, match="unknown: amount has a value"):
        decoded([{"amount": "1" + "0" * 28}])


def test_an_empty_response_has_the_known_columns():
    """The frame has the columns of the request."""
    assert {"slot": pl.Int64} == dict(decoded([]).schema)


def test_lists_of_values_become_a_column():
    """A list of values becomes one column."""
    assert ["a", "b"] == decoded(["a", "b"])["value"].to_list()


def test_the_name_of_a_column_decides_the_type_of_numbers_as_text():
    """The column name decides: slots are integers, and amounts of any size are decimals."""
    frame = decoded([
        {"slot": "14368", "validator": {"index": "7"}, "start_timestamp": "1606824023",
         "reward_count": "2", "total": 2**70},
    ])  # fmt: skip

    assert frame.to_dict(as_series=False) == {
        "slot": [3],
        "reward_count": [2],
        "answer.slot": [14368],
        "start_time": [datetime(2020, 12, 1, 12, 0, 23, tzinfo=UTC)],
        "total_wei": [Decimal(2**70)],
        "validator_index": [7],
    }


def test_a_number_that_means_never_is_no_amount():
    """2^64 - 1 is null, in a column that keeps its name; larger numbers are amounts."""
    never = 2**64 - 1
    frame = decoded([
        {"exit_epoch": never, "exit": never, "text_epoch": str(never), "all_wei": never,
         "total": never},
        {"exit_epoch": 7, "exit": 8, "text_epoch": "9", "all_wei": 1, "total": 2**70},
    ])  # fmt: skip

    assert frame.drop("slot").to_dict(as_series=False) == {
        "all_wei": [Decimal(never), Decimal(1)],
        "exit": [None, 8],
        "exit_epoch": [None, 7],
        "text_epoch": [None, 9],
        "total_wei": [Decimal(never), Decimal(2**70)],
    }


@pytest.mark.parametrize("number", [1.5e21, 2.0**53, -(2.0**60)])
def test_an_amount_as_float_is_an_error(number):
    """V02: a float has lost digits, so it is an error."""
    with pytest.raises(SchemaError, match="amount has a value"):
        decoded([{"amount": number}])


@pytest.mark.parametrize("record", [None, [1], 7, "x", True])
def test_a_record_that_is_no_object_is_an_error(record):
    """B11: it would become a column of its own, without a value in any other row."""
    with pytest.raises(SchemaError, match=r"unknown row 1 is .*, not an object"):
        decoded([RECORDS[0], record, RECORDS[0]])
