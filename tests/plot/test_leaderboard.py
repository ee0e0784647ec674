"""Charts of the leaderboard."""

from itertools import pairwise

import pytest

from beaconframes import plot
from beaconframes.errors import UsageError

from ..support.chart_frames import leaderboard
from ..support.drawn_charts import tick_labels


def test_the_leaderboard_is_ranked():
    """The highest is at the top, of equal ones the lower index; a bar is as long as the income."""
    ax = plot.leaderboard(leaderboard(5, 9, 7, 7), span="7d", unit="gwei", top=2)

    assert [90.0, 70.0] == [bar.get_width() for bar in ax.patches]
    assert ["501", "502"] == tick_labels(ax.yaxis)
    assert ax.yaxis_inverted()
    assert "Consensus income of the last 7 days (gwei)" == ax.get_xlabel()


@pytest.mark.more
def test_a_long_leaderboard_has_room_for_its_names():
    """The figure is as high as a hundred names need."""
    ax = plot.leaderboard(leaderboard(*range(100)), top=100)

    ax.figure.canvas.draw()
    spans = sorted(
        (tick.get_window_extent().y0, tick.get_window_extent().y1) for tick in ax.get_yticklabels()
    )
    assert all(low[1] <= high[0] + 1 for low, high in pairwise(spans))


@pytest.mark.parametrize("options", [{"top": 0}, {"top": 101}, {"top": 2.5}, {"span": "2d"}])
def test_invalid_leaderboard_options_are_refused(options):
    """An unknown span, or a number of validators out of range."""
    with pytest.raises(UsageError):
        plot.leaderboard(leaderboard(1), **options)
