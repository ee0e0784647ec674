"""Identifiers in arguments: one or many, of any type, and a one-line error for everything else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import beaconframes as bf
from beaconframes.endpoint import Head
from beaconframes.endpoint.identifiers import normalize_validators, parse_numbers
from beaconframes.errors import UsageError

PUBKEY = "0x" + "ab" * 48
ADDRESS = "0x" + "5e" * 20
CREDENTIALS = f"0x01{'0' * 22}{'5e' * 20}"


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("1,2,3", ["1", "2", "3"]),
        ("1-3", ["1", "2", "3"]),
        ("1..3", ["1", "2", "3"]),
        ("1-3, 7 9\n2", ["1", "2", "3", "7", "9"]),
        (f"5,{PUBKEY.upper()}", ["5", PUBKEY]),
        (["1-2", 9, "5"], ["1", "2", "9", "5"]),
        (pd.Series([3, 4]), ["3", "4"]),
        (np.int64(3), ["3"]),
        (np.array(3), ["3"]),
        (pd.array([3, 4], dtype="Int64"), ["3", "4"]),
        (pl.Series([3, 4]), ["3", "4"]),
        (np.array([3, 4], np.uint8), ["3", "4"]),
        (pl.DataFrame({"validator_index": [3, 4, 3]}), ["3", "4"]),
        (pl.LazyFrame({"validator_index": [3, 4]}), ["3", "4"]),
        (pd.DataFrame({"epoch": [8, 9], "validator_index": [3, 4]}), ["3", "4"]),
        (pl.DataFrame({"pubkey": [PUBKEY, None], "validator_index": [None, 4]}), [PUBKEY, "4"]),
    ],
)
def test_lists_of_validators(subject, expected):
    """C10: lists and ranges as on the command line, and columns of any library."""
    assert expected == normalize_validators(subject)


def test_lists_of_slots():
    """C10: slots are listed as validators are; words stay words."""
    assert [1, 2, 3, 7] == parse_numbers("1-3,7", "slots", ("latest",))
    assert ["latest", 5] == parse_numbers("latest,5", "slots", ("latest",))


MISSING = 'Remove it: column.dropna().astype("int64") in pandas, column.drop_nulls() in polars'
FRAMES = {"slot": [1, 2]}


@pytest.mark.parametrize(
    ("subject", "message"),
    [
        (pd.Series([1, np.nan]), f"validators has a missing value (nan). {MISSING}"),
        (pd.Series([1, None], dtype="Int64"), f"validators has a missing value (<NA>). {MISSING}"),
        (pl.Series([1, None]), f"validators has a missing value (None). {MISSING}"),
        (np.array([1, np.nan], np.float32), f"validators has a missing value (nan). {MISSING}"),
        (
            pd.Series([1.0, 2.0]),
            (
                "1.0 is a floating-point number, not a validator. "
                'Convert the column: column.astype("int64")'
            ),
        ),
        *(
            (
                frame,
                (
                    f"a {type(frame).__name__} is given instead of one of its columns. "
                    'Give the column, such as frame["validator_index"]'
                ),
            )
            for frame in (pd.DataFrame(FRAMES), pl.DataFrame(FRAMES), pl.LazyFrame(FRAMES))
        ),
        *(
            (
                text,
                (
                    f"{text} is an address, not a validator. For the validators of an address, use "
                    "bf.load_deposit_origin, bf.load_withdrawal_credentials or bf.v2.withdrawal"
                ),
            )
            for text in (ADDRESS, CREDENTIALS)
        ),
        (
            "9-1",
            (
                "validators: 9-1 is not a valid range. "
                "Write the smaller number first; a range has at most 10,000,000 numbers"
            ),
        ),
        (
            "1,two",
            (
                "'two' is not a validator. "
                "A validator is an index such as 1435245, or a public key of 96 hex digits"
            ),
        ),
        (
            range(10**9),
            "validators has more than 10,000,000 items. Split it into several calls",
        ),
        (
            " ",
            (
                "' ' is not a validator. "
                "A validator is an index such as 1435245, or a public key of 96 hex digits"
            ),
        ),
    ],
)
def test_other_subjects_are_refused(subject, message):
    """C10: each error is one line that says what to give; nothing is sent."""
    for load in (normalize_validators, bf.v2.validators):
        with pytest.raises(UsageError) as caught:
            load(subject)
        assert message == str(caught.value)


def test_a_missing_slot_is_refused():
    """C10: the same for numbers; a frame is no list of slots either."""
    with pytest.raises(UsageError, match=r"slots has a missing value \(nan\)"):
        parse_numbers(pd.Series([3.0, np.nan]), "slots", ())
    with pytest.raises(UsageError, match="a DataFrame is given"):
        parse_numbers(pl.DataFrame({"slot": [1]}), "slots", ())


@pytest.mark.parametrize("load", [bf.load_slots, bf.v2.load_slot])
@pytest.mark.parametrize("slots", [[[1, 2]], np.array([[1, 2], [3, 4]]), [[]]])
def test_lists_of_lists_of_slots_are_refused(load, slots):
    """P21: the error names the item; no request is sent."""
    head = Head(epoch=9, finalized_epoch=7, slot=300)
    with (
        bf.Explorer("http://127.0.0.1:9", chain="mainnet", head=head) as explorer,
        pytest.raises(UsageError, match="slots"),
    ):
        load(slots, explorer=explorer)
