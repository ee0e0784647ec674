"""Participation of sync committees: over time, and by member."""

from datetime import timedelta

import polars as pl
import pytest

from beaconframes import analysis
from beaconframes.errors import UsageError
from beaconframes.pandas_frames import to_pandas

from .test_income import GENESIS

BLOCKS = {
    "slot": pl.Int64,
    "epoch": pl.Int64,
    "time": pl.Datetime("us", "UTC"),
    "status": pl.String,
    "sync_aggregate_bits": pl.String,
    "sync_aggregate_participation": pl.Float64,
}
SEATS = ["period", "seat", "validator_index", "start_epoch", "end_epoch"]


def block(slot, signed=None, *, status="proposed", seats=512):
    """A block whose sync aggregate the given seats signed; without any if *signed* is None."""
    number = sum(1 << seat for seat in signed or ())
    return {
        "slot": slot,
        "epoch": slot // 32,
        "time": GENESIS + timedelta(seconds=12 * slot),
        "status": status,
        "sync_aggregate_bits": None
        if signed is None
        else "0x" + number.to_bytes(seats // 8, "little").hex(),
        "sync_aggregate_participation": 0.0 if signed is None else len(signed) / seats,
    }


def blocks(*rows):
    return pl.DataFrame(list(rows), schema=BLOCKS)


def committee(period, members):
    """A committee from {seat: validator}."""
    return pl.DataFrame(
        [
            (period, seat, validator, 256 * period, 256 * period + 255)
            for seat, validator in members.items()
        ],
        schema=SEATS,
        orient="row",
    )


def test_bit_order_is_little_endian_in_each_byte():
    """By hand: byte 0 is 0x02 (seat 1), byte 1 is 0x80 (seat 15), byte 63 is 0x41."""
    text = "0x" + "02" + "80" + "00" * 61 + "41"
    frame = blocks(block(0)).with_columns(
        sync_aggregate_bits=pl.lit(text), status=pl.lit("proposed")
    )
    everyone = committee(0, {seat: 1000 + seat for seat in range(512)})

    rows = analysis.sync_members(frame, everyone)

    signed = rows.filter(pl.col("signed") == 1)["validator_index"].to_list()
    assert [1001, 1015, 1000 + 63 * 8, 1000 + 63 * 8 + 6] == signed


def test_members_are_counted_over_their_seats():
    """Duties are proposed blocks times seats; missed and orphaned blocks are no duty."""
    frame = blocks(
        block(0, [0, 1, 2]),
        block(1, [0, 2]),
        block(2, status="missed"),
        block(3, [1], status="orphaned"),
        block(4, [0]),
    )
    members = committee(0, {0: 7, 1: 8, 2: 7, 3: 9})

    rows = analysis.sync_members(frame, members)

    assert ["validator_index", "seats", "duties", "signed", "rate"] == rows.columns
    assert [(7, 2, 6, 5, 5 / 6), (8, 1, 3, 1, 1 / 3), (9, 1, 3, 0, 0.0)] == rows.rows()


def test_blocks_belong_to_the_committee_of_their_period():
    """The first slot of a period belongs to the new committee."""
    border = 256 * 32
    frame = blocks(block(border - 1, [0]), block(border, [1]), block(border + 1, [1]))
    members = pl.concat([committee(0, {0: 5, 1: 6}), committee(1, {0: 6, 1: 5})])

    rows = analysis.sync_members(frame, members)

    assert [(5, 3, 3), (6, 3, 0)] == rows.select("validator_index", "duties", "signed").rows()


def test_a_slot_counts_once_for_its_members():
    """Loads that overlap have a block twice, and a slot may have an orphaned block, too."""
    frame = blocks(block(0, [0]), block(1, [], status="orphaned"), block(1, [1]), block(0, [0]))

    rows = analysis.sync_members(frame, committee(0, {0: 5, 1: 6}))

    assert [(5, 2, 1), (6, 2, 1)] == rows.select("validator_index", "duties", "signed").rows()


def test_members_without_blocks_have_no_rows():
    """A committee without a proposed block has no rates, but the columns are there."""
    rows = analysis.sync_members(blocks(block(0, status="missed")), committee(0, {0: 5}))

    assert (0, 5) == rows.shape


def test_participation_by_slot():
    """A slot without a block in the chain has a status and no participation."""
    frame = blocks(
        block(3, range(256)),
        block(1, status="missed"),
        block(2, range(512), status="orphaned"),
        block(0, range(512)),
        block(4, status="scheduled"),
    )

    rows = analysis.sync_participation(frame)

    assert [
        (0, "proposed", 1.0),
        (1, "missed", None),
        (2, "orphaned", None),
        (3, "proposed", 0.5),
        (4, "scheduled", None),
    ] == rows.select("slot", "status", "participation").rows()


def test_a_slot_is_one_row():
    """Of an orphaned and a proposed block of one slot, the proposed one counts."""
    frame = blocks(block(3, [], status="orphaned"), block(3, range(512)))

    assert [1.0] == analysis.sync_participation(frame)["participation"].to_list()


def test_participation_by_epoch():
    """The mean of the proposed blocks, their lowest and highest, and the numbers of blocks."""
    frame = blocks(
        block(32, range(512)),
        block(33, range(128)),
        block(34, status="missed"),
        block(35, range(1), status="orphaned"),
        block(64, status="missed"),
    )

    rows = analysis.sync_participation(frame, every="epoch")

    assert [
        (1, GENESIS + timedelta(seconds=384), 0.625, 0.25, 1.0, 2, 2),
        (2, GENESIS + timedelta(seconds=768), None, None, None, 0, 1),
    ] == rows.rows()


def test_participation_of_some_seats():
    """With a committee, the participation of its seats alone."""
    frame = blocks(block(0, [0, 5]), block(1, [0]), block(2, status="missed"))

    rows = analysis.sync_participation(frame, committee(0, {0: 1, 5: 2}))

    assert [1.0, 0.5, None] == rows["seats_participation"].to_list()
    assert [2 / 512, 1 / 512, None] == rows["participation"].to_list()


def test_participation_that_is_not_a_number_is_null():
    """Not-a-number is unknown, not a value."""
    frame = blocks(block(0, [0])).with_columns(sync_aggregate_participation=pl.lit(float("nan")))

    assert [None] == analysis.sync_participation(frame)["participation"].to_list()


@pytest.mark.parametrize("kind", [pl.DataFrame.lazy, to_pandas, pl.DataFrame.to_pandas])
def test_sync_takes_other_frames(kind):
    """Lazy and pandas blocks and committees give the same rows, of their own kind."""
    frame, members = blocks(block(0, [0, 1]), block(1, status="missed")), committee(0, {0: 5})
    expected = analysis.sync_members(frame, members)

    rows = analysis.sync_members(kind(frame), kind(members))

    assert isinstance(rows, type(kind(frame)))
    assert expected.equals(
        rows.collect() if isinstance(rows, pl.LazyFrame) else pl.from_pandas(rows)
    )


def test_invalid_bits_are_explained():
    """Bits of another length, bits that are not hex, and too few bits are located."""
    members = committee(0, {0: 5, 100: 6})
    with pytest.raises(UsageError, match="bits of slot 1 has 10 characters"):
        analysis.sync_members(blocks(block(0, [0]), block(1, [0], seats=32)), members)
    with pytest.raises(UsageError, match="not hex"):
        analysis.sync_members(
            blocks(block(0, [0])).with_columns(sync_aggregate_bits=pl.lit("0xzz")), members
        )
    below = members.with_columns(pl.col("seat") - 101)
    with pytest.raises(UsageError, match="seat -101 of period 0 is outside of the 32 bits"):
        analysis.sync_members(blocks(block(0, [0], seats=32)), below)
    after = committee(0, {0: 5, 32: 6})
    with pytest.raises(UsageError, match="seat 32 of period 0 is outside of the 32 bits"):
        analysis.sync_members(blocks(block(0, [0], seats=32)), after)
