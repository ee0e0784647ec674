"""Answers of unpublished shape: every field becomes a column, whatever the pages are."""

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
    """Things that nobody described. One row per thing."""

    slot = Slot("Slot that was asked for.", context="request.slot.number")

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
    """The frame of records in these pages."""
    around = [EnvelopeContext({}, {"slot": {"number": 3}})] * len(pages)
    return Unknown.decode([json.dumps(page).encode() for page in pages], MAINNET, around)


def test_every_field_is_a_column_of_the_type_of_its_values():
    """Amounts are exact, epochs know the far future, bytes are lower-case, the rest is kept."""
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
    """All records on a page of their own, or together, or with empty pages between."""
    whole = decoded(RECORDS)

    assert_frame_equal(whole, decoded(*([record] for record in RECORDS)))
    assert_frame_equal(whole, decoded([], RECORDS[:2], [], RECORDS[2:], []))
    for order in itertools.permutations(RECORDS):
        assert dict(whole.schema) == dict(decoded(order).schema)


def test_a_row_that_came_twice_is_kept_once():
    """Pages may overlap."""
    twice = decoded(RECORDS, RECORDS[1:])

    assert_frame_equal(decoded(RECORDS), Unknown.arrange(twice))


def test_an_amount_beyond_every_column_is_an_error():
    """Twenty-nine digits are no amount of wei."""
    with pytest.raises(SchemaError, match="unknown: amount has a value"):
        decoded([{"amount": "1" + "0" * 28}])


def test_nothing_has_the_columns_that_are_known():
    """They are what was asked."""
    assert {"slot": pl.Int64} == dict(decoded([]).schema)


def test_texts_and_numbers_are_kept_too():
    """A list of no objects has one column."""
    assert ["a", "b"] == decoded(["a", "b"])["value"].to_list()


def test_numbers_as_text_are_no_amounts_where_the_name_says_so():
    """A slot is a slot, however it is written; an amount is one of any size."""
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


@pytest.mark.parametrize("number", [1.5e21, 2.0**53, -(2.0**60)])
def test_an_amount_that_has_lost_digits_is_refused(number):
    """A float cannot tell what its last digits were."""
    with pytest.raises(SchemaError, match="amount has a value"):
        decoded([{"amount": number}])
