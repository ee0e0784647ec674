"""Lines of the effectiveness of votes: the weights of the protocol, and the band of others."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import beaconframes as bf
from beaconframes import colours
from beaconframes.errors import UsageError

from ..support.chart_frames import income

VOTES = {
    "attestation_head_reward_gwei": 14,
    "attestation_source_reward_gwei": 14,
    "attestation_target_reward_gwei": 26,
}


def days_of(validators, *rewarded):
    """Days of 225 epochs: each has the votes that the day's entry of *rewarded* names."""
    frames = [
        income(
            range(113 + 225 * day, 113 + 225 * (day + 1)), validators, **dict.fromkeys(votes, 1)
        ).with_columns(attestation_source_penalty_gwei=pl.lit(5, pl.Int64))
        if votes
        else income(range(113 + 225 * day, 113 + 225 * (day + 1)), validators, x=0).with_columns(
            attestation_source_penalty_gwei=pl.lit(5, pl.Int64)
        )
        for day, votes in enumerate(rewarded)
    ]
    return pl.concat(frames)


def test_votes_count_as_the_protocol_rewards_them():
    """Of 54 parts of a reward, the head has 14, the source 14 and the target 26."""
    no_head = [name for name in VOTES if "head" not in name]

    ax = bf.plot.effectiveness(days_of([7], [*VOTES], no_head, []))

    line = ax.get_lines()[0]
    assert np.allclose([100, 100 * 40 / 54, 0], line.get_ydata())
    assert ["2020-12-02", "2020-12-03", "2020-12-04"] == [
        str(day)[:10] for day in line.get_xdata().astype("datetime64[us]")
    ]


def test_a_missing_day_is_a_gap():
    frame = days_of([7], [*VOTES], [*VOTES], [*VOTES]).filter(~pl.col("epoch").is_between(338, 562))

    line = bf.plot.effectiveness(frame).get_lines()[0]

    assert [100, None, 100] == [None if np.isnan(y) else y for y in line.get_ydata()]


def test_the_band_has_most_of_the_others():
    """Ten of eleven others are perfect on the first day, and five on the second one."""
    head = [name for name in VOTES if "head" not in name]
    others = pl.concat(
        [
            days_of(range(100, 105), [*VOTES], [*VOTES]),
            days_of(range(105, 110), [*VOTES], head),
            days_of([110], [], []),
        ]
    )

    ax = bf.plot.effectiveness(days_of([7], [*VOTES], head), others)

    median, own = ax.get_lines()[:2]
    assert ("--", "-") == (median.get_linestyle(), own.get_linestyle())
    assert np.allclose([100, 100 * 40 / 54], own.get_ydata())
    assert np.allclose([100, 100 * 40 / 54], median.get_ydata())
    (band,) = ax.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert np.allclose([100 * 40 / 54, 100], [heights.min(), heights.max()])
    assert colours.BLUE == own.get_color()
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert ["7", "10 % to 90 % of 11 others", "Median of 11 others"] == names


def test_the_band_ends_at_the_tenth_and_the_ninetieth_percent():
    """Of 21 others, one more has no reward in each epoch: the third and the nineteenth count."""
    votes = days_of(range(21), [*VOTES])
    missed = pl.col("epoch") - 113 < pl.col("validator_index")
    others = votes.with_columns(
        pl.when(missed).then(0).otherwise(name).alias(name) for name in VOTES
    )

    ax = bf.plot.effectiveness(days_of([7], [*VOTES]), others)

    heights = ax.collections[0].get_paths()[0].vertices[:, 1]
    expected = [100 * (1 - 18 / 225), 100 * (1 - 2 / 225)]
    assert np.allclose(expected, [heights.min(), heights.max()])
    assert np.allclose(100 * (1 - 10 / 225), ax.get_lines()[0].get_ydata()[0])


def test_the_axis_has_the_best_value():
    """A validator that is always bad does not look as if it were at the top."""
    ax = bf.plot.effectiveness(days_of([7], ["attestation_head_reward_gwei"], []))

    assert ax.get_ylim()[1] >= 100


def test_days_are_added_up_to_weeks():
    """2020-12-02 is a Wednesday: seven days of votes are in two weeks."""
    ax = bf.plot.effectiveness(days_of([7], *[[*VOTES]] * 5, [], []), every="week")

    assert np.allclose([100, 0], ax.get_lines()[0].get_ydata())
    assert "Effectiveness of votes per week (%)" == ax.get_ylabel()


def test_penalties_after_an_exit_are_no_votes():
    """A slashed validator has penalties until it can withdraw, in the line and in the band."""
    exits = pl.DataFrame({"validator_index": [7], "exit_epoch": [113 + 225]})
    slashed = days_of([7], [*VOTES], [])

    ax = bf.plot.effectiveness(slashed, slashed, validators=exits)

    assert [[100], [100]] == [line.get_ydata().tolist() for line in ax.get_lines()[:2]]


def test_without_a_duty_there_is_nothing_to_draw():
    frame = income().with_columns(pl.lit(0, pl.Int64).alias(name) for name in VOTES)

    (text,) = bf.plot.effectiveness(frame).texts

    assert "No votes to draw: no row with a time and the rewards of a vote" == text.get_text()


def test_others_without_a_vote_are_named_in_the_caption():
    """The band was requested, and is not drawn."""
    others = income(validators=range(20)).with_columns(
        pl.lit(0, pl.Int64).alias(name) for name in VOTES
    )

    ax = bf.plot.effectiveness(days_of([7], [*VOTES], [*VOTES]), others)

    captions = " ".join(text.get_text() for text in ax.texts)
    assert "no votes of other validators to draw" in captions
    assert not ax.collections


def test_an_interval_of_an_epoch_is_refused():
    """A vote has three parts: the line of an epoch would jump between a few heights."""
    with pytest.raises(UsageError, match="every='epoch' is not valid"):
        bf.plot.effectiveness(income(), every="epoch")


def test_both_libraries_draw_a_validator_in_the_same_colour():
    """The band and the median of others are drawn first, and take no colour of the cycle."""
    frames = income(validators=(1, 2)), income(validators=range(20))

    lines = bf.plot.effectiveness(*frames).get_lines()[1:]
    traces = {trace.name: trace for trace in bf.interactive.effectiveness(*frames).data}

    drawn = {line.get_label(): line.get_color() for line in lines if line.get_label() in {"1", "2"}}
    assert {"1": colours.BLUE, "2": colours.AMBER} == drawn
    assert drawn == {name: traces[name].line.color for name in drawn}
