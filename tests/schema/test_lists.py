"""Lists of indices in one cell: exact and in order, in the fast and the checked decoder."""

from __future__ import annotations

import json
from unittest.mock import Mock, patch

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beaconframes import v1
from beaconframes.calendar import MAINNET
from beaconframes.dataset import Dataset
from beaconframes.errors import IntegrityError, SchemaError
from beaconframes.schema import Count, Indices, Table, decode


class Committees(Table):
    """Committees. One row per committee."""

    committee = Count("Committee.", key=True)
    validators = Indices(
        "Members of the committee.", wire=("validators", "members.indices"), nullable=True
    )


def fast(*records):
    """Return the frame of *records* as one page."""
    return Committees.decode([json.dumps(records).encode()], MAINNET)


def slow(*records):
    """Return the frame of *records* from the checked decoder."""
    node, _ = decode.build_decoder(Committees.spec, strict=True)
    never = Mock(decode=Mock(side_effect=ValueError))
    with patch.object(decode, "build_decoder", lambda _, strict: (node, never)):
        return fast(*records)


both = pytest.mark.parametrize("decode", [fast, slow])
LISTS = st.lists(st.none() | st.lists(st.integers(0, 2**63 - 1), max_size=5), max_size=5)


@both
def test_order_duplicates_and_every_digit_are_preserved(decode):
    """A float would round 2**53 + 1; an empty list differs from null."""
    lists = [[2**53 + 1, 0, 7, 7, 2**63 - 1], [], None]

    frame = decode(*({"committee": n, "validators": cell} for n, cell in enumerate(lists)))

    assert pl.List(pl.Int64) == frame.schema["validators"]
    assert lists == frame["validators"].to_list()


@both
def test_an_omitted_list_is_null(decode):
    """Like any other omitted field."""
    assert [None] == decode({"committee": 1})["validators"].to_list()


@both
def test_the_second_spelling_and_numbers_as_text(decode):
    """The list may be in an inner object, and its numbers may be texts."""
    assert [[1, 2]] == decode({"committee": 1, "members": {"indices": ["1", 2.0]}})[
        "validators"
    ].to_list()


@both
@pytest.mark.parametrize(
    "cell", [[1, None], [1.5], [True], [1e300], [2**63], ["x"], [[1]], "1", 1, {"a": 1}, True]
)
def test_anything_but_a_list_of_whole_numbers_is_refused(decode, cell):
    """The error names the row, the field and the value; nothing is rounded or dropped."""
    with pytest.raises(SchemaError, match="committees row 1: validators is "):
        decode({"committee": 0, "validators": [0]}, {"committee": 1, "validators": cell})


@given(LISTS)
@settings(deadline=None, derandomize=True, database=None, max_examples=60)
def test_encoded_lists_decode_to_themselves(lists):
    """Both decoders return the cells that were encoded."""
    frame = pl.DataFrame(
        {"committee": range(len(lists)), "validators": lists}, schema=Committees.schema()
    )

    page = Committees.encode(frame, MAINNET)

    assert lists == [record["validators"] for record in json.loads(page)]
    assert frame.rows() == Committees.decode([page], MAINNET).rows()
    assert frame.rows() == slow(*json.loads(page)).rows()


def test_duplicate_rows_are_compared_by_their_lists():
    """Equal rows become one row; two rows of one key with different lists are an error."""
    rows = fast(*({"committee": 1, "validators": cell} for cell in ([1, 2], [1, 2])))
    torn = fast(*({"committee": 1, "validators": cell} for cell in ([1, 2], [2, 1])))

    assert [(1, [1, 2])] == Committees.arrange(rows).rows()
    with pytest.raises(IntegrityError, match=r"differ in validators: \[1, 2\] and \[2, 1\]"):
        Committees.arrange(torn)


def test_an_error_of_two_rows_cuts_a_long_key():
    """A key with a long text is cut in the message."""
    key = {"requested": "x" * 100_000}
    rows = pl.DataFrame([{**key, "domain": "a"}, {**key, "domain": "b"}])
    rows = pl.concat([v1.NAMES.table.empty(), rows], how="diagonal")

    with pytest.raises(IntegrityError, match="differ in domain: 'a' and 'b'") as error:
        v1.NAMES.table.arrange(rows)

    assert len(str(error.value)) < 400


def test_a_dataset_stores_lists(tmp_path):
    """Null, empty and filled lists are read back from the files."""
    frame = fast(*({"committee": n, "validators": v} for n, v in enumerate([[3, 1], [], None])))
    dataset = Dataset.create(tmp_path / "data", meta={})

    dataset.write("committees", [frame])

    assert frame.rows() == dataset.scan("committees").collect().rows()


def test_the_dictionary_states_the_list_type():
    """It has the type of the column and its paths on the wire."""
    described = Committees.describe().filter(column="validators")

    assert ["List(Int64)"] == described["type"].to_list()
    assert ["validators, members.indices"] == described["wire"].to_list()
