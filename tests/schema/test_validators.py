"""Tables about validators: every spelling decodes to the same cells, and encoding reverses it."""

from __future__ import annotations

import random
from unittest.mock import Mock, patch

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from beaconframes.calendar import MAINNET
from beaconframes.errors import SchemaError
from beaconframes.schema import decode
from beaconframes.v1 import ENDPOINTS

from ..recorded.test_recorded_validators import LINES
from ..support.contract import rows
from ..support.whole_records import whole
from .test_tables import CELLS, NEVER_NULL, page, some_hex

HERE = {endpoint.name: endpoint.table for endpoint in ENDPOINTS}
TABLES = sorted(set(LINES) - {"proposals", "proposal_luck"})
MORE = {
    "duty": lambda chance: chance.choice([0, 1]),
    "credentials": lambda chance: chance.choice(["0x", some_hex(chance)]),
}
NUMBERED = {"epoch", "slot", "day"}
fixed_examples = settings(deadline=None, derandomize=True, database=None, max_examples=6)
SEEDS = st.integers(0, 10**6)
each_table = pytest.mark.parametrize("table", TABLES)


def value(table, line, chance):
    """Return a random wire value of one column."""
    if line.name in NUMBERED or (line.key and line.kind == "int"):
        return chance.randrange(100_000)
    if line.name not in NEVER_NULL[table] and chance.random() < 0.2:
        return None
    return (CELLS | MORE)["time" if line.is_time else line.kind](chance)


def several(table, chance):
    """Return records of a table in random spellings, with unique keys."""
    found = {}
    for _ in range(chance.randrange(6)):
        sent = [line for line in LINES[table] if line.wire]
        record = {chance.choice(line.wire): value(table, line, chance) for line in sent}
        (row,) = rows(table, [record], LINES)
        found[tuple(row[line.name] for line in LINES[table] if line.key)] = record
    return list(found.values())


def framed(table, records):
    """Return the frame of the records according to the contract."""
    schema = {line.name: line.dtype for line in LINES[table]}
    return pl.DataFrame(rows(table, records, LINES), schema=schema, orient="row")


def decode_checked(table, data):
    """Return the frame of a page from the checked decoder."""
    node, _ = decode.build_decoder(HERE[table].spec, strict=True)
    never = Mock(decode=Mock(side_effect=ValueError))
    with patch.object(decode, "build_decoder", lambda _, strict: (node, never)):
        return HERE[table].decode([data], MAINNET)


@each_table
@fixed_examples
@given(seed=SEEDS)
def test_every_spelling_makes_the_same_cells(table, seed):
    """A list or one object, either spelling, either decoder."""
    records = several(table, random.Random(seed))
    expected = framed(table, records)
    data = page(*records) if len(records) != 1 else page(*records)[1:-1]

    assert_frame_equal(
        expected, HERE[table].arrange(HERE[table].decode([data], MAINNET)), check_exact=True
    )
    assert_frame_equal(expected, HERE[table].arrange(decode_checked(table, data)), check_exact=True)


@each_table
@fixed_examples
@given(seed=SEEDS)
def test_encoded_frames_decode_to_themselves(table, seed):
    """The encoder and the decoder agree, in the specified and the public form."""
    frame = framed(table, several(table, random.Random(seed)))

    for public in (False, True):
        sent = HERE[table].encode(frame, MAINNET, public=public)
        assert_frame_equal(frame, HERE[table].decode([sent], MAINNET), check_exact=True)


@pytest.mark.parametrize("status", ["one", 1.5, True, [1]])
def test_an_invalid_duty_code_is_refused(status):
    """The error names the row, the field and the value."""
    record = {"validatorindex": 1, "epoch": 2, "status": status}

    with pytest.raises(SchemaError, match="attestations row 0: status is "):
        HERE["attestations"].decode([page(whole(HERE["attestations"], record))], MAINNET)


def test_an_undocumented_code_is_preserved():
    """It becomes text, and is encoded as the same number."""
    record = {"validatorindex": 1, "epoch": 2, "attesterslot": 64, "inclusionslot": 0, "status": 9}

    frame = HERE["attestations"].decode([page(whole(HERE["attestations"], record))], MAINNET)

    assert ["9"] == frame["status"].to_list()
    assert b'"status":9' in HERE["attestations"].encode(frame, MAINNET)


def test_fields_can_be_omitted_from_the_encoding():
    """They are named by their wire path; the others stay."""
    record = {
        "validatorindex": 1,
        "epoch": 2,
        "attesterslot": 64,
        "inclusionslot": 0,
        "committeeindex": 0,
        "status": 1,
    }
    frame = HERE["attestations"].decode([page(record)], MAINNET)

    sent = HERE["attestations"].encode(
        frame, MAINNET, without={"week", "week_start", "week_end", "committeeindex"}
    )

    expected = b'[{"validatorindex":1,"epoch":2,"attesterslot":64,"inclusionslot":0,"status":1}]'
    assert expected == sent.replace(b"\n", b"").replace(b" ", b"")
