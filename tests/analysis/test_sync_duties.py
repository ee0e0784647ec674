"""Duties in sync committees, one by one, and compared with the committee."""

import polars as pl
import pytest

from beaconframes import analysis
from beaconframes.errors import UsageError

from ..support.engines import assert_equal
from .test_sync_committees import block, blocks, committee

# Two periods, whose committees differ; the border is epoch 256. Eight seats, one byte.
BORDER = 256 * 32
BLOCKS = blocks(
    block(BORDER - 3, [0, 1, 2, 3, 4, 5, 6], seats=8),
    block(BORDER - 2, status="missed"),
    block(BORDER - 1, [1, 2], status="orphaned", seats=8),
    block(BORDER, [1], seats=8),
    block(BORDER + 1, [0, 1, 7], seats=8),
    block(BORDER + 2, status="scheduled"),
)
COMMITTEES = pl.concat(
    [
        committee(0, dict(enumerate([10, 11, 12, 13, 14, 15, 16, 10]))),
        committee(1, dict(enumerate([11, 10, 12, 13, 14, 15, 16, 17]))),
    ]
)


def test_duties_by_hand():
    """The signatures of two validators by seat, and the slots without a block."""
    result = analysis.sync_duties(BLOCKS, COMMITTEES, [10, 17])

    rows = [
        (BORDER - 3, 0, 0, 10, "proposed", True),
        (BORDER - 3, 0, 7, 10, "proposed", False),
        (BORDER - 2, 0, 0, 10, "missed", None),
        (BORDER - 2, 0, 7, 10, "missed", None),
        (BORDER - 1, 0, 0, 10, "orphaned", None),
        (BORDER - 1, 0, 7, 10, "orphaned", None),
        (BORDER, 1, 1, 10, "proposed", True),
        (BORDER, 1, 7, 17, "proposed", False),
        (BORDER + 1, 1, 1, 10, "proposed", True),
        (BORDER + 1, 1, 7, 17, "proposed", True),
        (BORDER + 2, 1, 1, 10, "scheduled", None),
        (BORDER + 2, 1, 7, 17, "scheduled", None),
    ]
    names = ["slot", "period", "seat", "validator_index", "status", "signed"]
    expected = pl.DataFrame(rows, schema=names, orient="row")
    times = BLOCKS.select("slot", "epoch", "time")
    expected = expected.join(times, on="slot", maintain_order="left").select(
        "slot", "epoch", "time", *names[1:]
    )
    assert_equal(expected, result)


def test_comparison_by_hand():
    """By hand: 7 of 8 seats signed the block of period 0, 4 of 16 those of period 1."""
    result = analysis.sync_against_committee(BLOCKS, COMMITTEES, [10, 17])

    expected = pl.DataFrame(
        [
            (0, 10, 2, 1, 2, 2, 1, 1 / 2, 7 / 8, 1 / 2 - 7 / 8),
            (1, 10, 1, 2, 0, 2, 2, 1.0, 1 / 4, 3 / 4),
            (1, 17, 1, 2, 0, 2, 1, 1 / 2, 1 / 4, 1 / 4),
        ],
        schema=[
            "period",
            "validator_index",
            "seats",
            "blocks",
            "slots_without_block",
            "duties",
            "signed",
            "rate",
            "committee_rate",
            "difference",
        ],
        orient="row",
    )
    assert_equal(expected, result)


def test_bits_are_counted_from_the_lowest_of_the_first_byte():
    """A case made by hand: 0x02 is seat 1, 0x80 of the next byte is seat 15."""
    frame = blocks(block(0, [], seats=16)).with_columns(sync_aggregate_bits=pl.lit("0x0280"))
    everyone = committee(0, {seat: 100 + seat for seat in range(16)})

    rows = analysis.sync_duties(frame, everyone)

    assert [101, 115] == rows.filter("signed")["validator_index"].to_list()
    assert 16 == rows.height


def test_signatures_match_the_simulated_rewards(chain):
    """In one epoch, no signature means no reward, and all signatures mean no penalty."""
    epoch = 300
    rows = analysis.sync_duties(
        chain.scan("blocks").filter(pl.col("epoch") == epoch), chain.scan("sync_committees")
    ).collect()
    paid = chain.scan("income_history").filter(pl.col("epoch") == epoch).collect()

    members = rows.group_by("validator_index").agg(
        there=pl.col("signed").sum(), duties=pl.col("signed").count()
    )
    both = members.join(paid, on="validator_index")
    assert 32 * 512 == rows.height
    signed = both["there"] > 0
    assert (both["sync_committee_reward_gwei"] > 0).to_list() == signed.to_list()
    missed = both["there"] < both["duties"]
    assert (both["sync_committee_penalty_gwei"] > 0).to_list() == missed.to_list()


def test_no_blocks_or_seats_give_no_rows():
    """The columns are there."""
    other = committee(7, {0: 5})

    assert 0 == analysis.sync_duties(BLOCKS, other).height
    assert 0 == analysis.sync_against_committee(BLOCKS, other).height
    assert 0 == analysis.sync_duties(BLOCKS.clear(), COMMITTEES).height


def test_wrong_arguments_are_explained():
    """Validators are indices."""
    with pytest.raises(UsageError, match="are not indices"):
        analysis.sync_duties(BLOCKS, COMMITTEES, ["0xaa"])
    with pytest.raises(UsageError, match="no column period, seat"):
        analysis.sync_against_committee(BLOCKS, BLOCKS)
