"""Cells of days: the week and weekday of each, whole days only, and a scale for most of them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import beaconframes as bf
from beaconframes.errors import UsageError

from ..support.chart_frames import income

REWARD = "attestation_head_reward_gwei"
PENALTIES = ["attestation_source_penalty_gwei", "attestation_target_penalty_gwei"]


def read_cells(ax):
    """Return the heights of the cells; not-a-number where there is none."""
    return np.ma.filled(ax.get_images()[0].get_array().astype(float), np.nan)


def with_days(*gwei, first=113):
    """Days of one validator with a reward of *gwei* in each epoch; the first is a Wednesday."""
    return pl.concat(
        [
            income(range(first + 225 * day, first + 225 * (day + 1)), [1], **{REWARD: amount})
            for day, amount in enumerate(gwei)
        ]
    )


def test_a_day_is_in_its_week_and_weekday():
    """2020-12-02 is a Wednesday; the seventh day after it is one, in the next column."""
    ax = bf.plot.calendar(with_days(*range(1, 9)), unit="gwei")

    cells = read_cells(ax)
    assert (7, 2) == cells.shape
    assert "Dec 2 to Dec 9, 2020" in ax.texts[-1].get_text()
    assert [None, None, 1, 2, 3, 4, 5] == [None if np.isnan(x) else x / 225 for x in cells[:, 0]]
    assert [6, 7, 8, None] == [None if np.isnan(x) else x / 225 for x in cells[:4, 1]]
    assert ["Mon", "Sun"] == [ax.get_yticklabels()[n].get_text() for n in (0, -1)]
    assert "Net income per day (gwei)" == ax.figure.axes[1].get_ylabel()


def test_a_day_without_all_epochs_has_no_income():
    """Its income is lower, and it is not worse."""
    frame = with_days(1, 1, 1).filter(pl.col("epoch") != 400)

    cells = read_cells(bf.plot.calendar(frame))
    missed = read_cells(bf.plot.calendar(frame, show="missed"))

    assert [True, False, True] == np.isfinite(cells[2:5, 0]).tolist()
    assert [0, 0, 0] == missed[2:5, 0].tolist()


def test_one_bad_day_does_not_hide_the_others():
    """A slashing of 1 ETH: the scale ends near the other days."""
    frame = with_days(*(1_000 + day for day in range(30)))
    slashed = frame.with_columns(
        slashing_penalty_gwei=pl.when(pl.col("epoch") == 400)
        .then(10**9)
        .otherwise("slashing_penalty_gwei")
    )

    image = bf.plot.calendar(slashed, unit="gwei").get_images()[0]

    assert np.nanmin(read_cells(image.axes)) < -900_000_000
    # Of 30 days, 80 % are from the rank 2.9 to 26.1; the scale ends 1.5 times as far below.
    low, high = (225 * (1_000 + rank) for rank in (2.9, 26.1))
    assert (low - 1.5 * (high - low), 225 * 1_029) == pytest.approx(image.get_clim())
    trace = bf.interactive.calendar(slashed, unit="gwei").data[0]
    assert image.get_clim() == (trace.zmin, trace.zmax)


def test_missed_votes_are_a_share_of_all_votes():
    """Nine of 225 votes of the second day have both penalties and no reward."""
    missed = pl.col("epoch").is_between(340, 348)
    frame = with_days(5, 5).with_columns(
        pl.when(missed).then(0).otherwise(REWARD).alias(REWARD),
        *(pl.when(missed).then(7).otherwise(0).alias(name) for name in PENALTIES),
    )

    cells = read_cells(bf.plot.calendar(frame, show="missed"))
    exits = pl.DataFrame({"validator_index": [1], "exit_epoch": [340]})
    before = read_cells(bf.plot.calendar(frame, show="missed", validators=exits))

    assert np.allclose([0, 4], cells[2:4, 0])
    assert np.allclose([0, 0], before[2:4, 0])


def test_a_day_without_a_duty_has_no_cell():
    """It has no share of missed votes, and leaves the scale as it is."""
    frame = with_days(5, 0, 5)

    cells = read_cells(bf.plot.calendar(frame, show="missed"))
    trace = bf.interactive.calendar(frame, show="missed").data[0]

    assert [True, False, True] == np.isfinite(cells[2:5, 0]).tolist()
    assert (0, 0, "") == (trace.zmin, trace.zmax, trace.text[3][0])


def test_blocks_have_what_proposers_received():
    """0.02 ETH by a relay count, the fees of its builder do not; the caption says which it is."""
    fee = pl.when(pl.col("epoch") == 120).then(5 * 10**16).otherwise(0).cast(pl.Decimal(28, 0))
    frame = with_days(1_000_000).with_columns(tx_fee_reward_wei=fee)
    blocks = pl.DataFrame({"block_number": [1], "proposer_index": [1], "epoch": [120]})
    blocks = blocks.with_columns(producer_reward_wei=pl.lit(2 * 10**16, pl.Decimal(28, 0)))

    axes = bf.plot.calendar(frame), bf.plot.calendar(frame, blocks=blocks)

    assert [0.275, 0.245] == pytest.approx([read_cells(ax)[2, 0] for ax in axes])
    captions = [
        " ".join(text.get_text() for one in ax.figure.axes for text in one.texts) for ax in axes
    ]
    assert [True, False] == ["relay payments" in caption for caption in captions]


def test_the_hover_text_has_the_day_and_its_income():
    figure = bf.interactive.calendar(with_days(1_000_000, 2_000_000))

    texts = figure.data[0].text
    assert "Wed 2020-12-02: 0.225 ETH" == texts[2][0]
    assert "Thu 2020-12-03: 0.45 ETH" == texts[3][0]
    assert "%{text}<extra></extra>" == figure.data[0].hovertemplate


def test_without_fees_the_income_is_that_of_consensus():
    frame = with_days(1_000_000).with_columns(tx_fee_reward_wei=pl.lit(None, pl.Decimal(28, 0)))

    ax = bf.plot.calendar(frame)

    assert "Consensus income per day (ETH)" == ax.figure.axes[1].get_ylabel()
    assert 0.225 == pytest.approx(read_cells(ax)[2, 0])


def test_blocks_have_no_missed_votes():
    with pytest.raises(UsageError, match="exclude each other"):
        bf.plot.calendar(income(), blocks=income(), show="missed")
    with pytest.raises(UsageError, match="missed votes only"):
        bf.plot.calendar(income(), validators=income())
