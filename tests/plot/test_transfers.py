"""Charts of withdrawals and deposits."""

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from matplotlib.dates import num2date

from beaconframes import charts, plot
from beaconframes.errors import UsageError

from ..support.chart_frames import GENESIS, income, transfers
from ..support.drawn_charts import legend_labels


def test_withdrawals_are_summed_per_day():
    """Two withdrawals of a day make one bar; a day without any has none."""
    ax = plot.withdrawals(transfers(10**9, 2 * 10**9, 5 * 10**9, days=[0, 0, 2]))

    assert [3.0, 5.0] == [bar.get_height() for bar in ax.patches]
    days = [num2date(bar.get_x() + bar.get_width() / 2) for bar in ax.patches]
    assert [datetime(2020, 12, day, tzinfo=UTC) for day in (1, 3)] == days
    assert "Day (UTC, hatched: may be incomplete)" == ax.get_xlabel()
    assert "Withdrawals per day (ETH)" == ax.get_ylabel()


@pytest.mark.parametrize("every", ["day", "week", "month"])
def test_the_first_and_last_period_of_transfers_may_be_incomplete(every):
    """Z3: rows do not contain the range that was loaded; the days between have all rows."""
    frame = transfers(*[10**9] * 80)

    ax = plot.withdrawals(frame, every=every)

    hatched = [bool(bar.get_hatch()) for bar in ax.patches]
    assert [True, *[False] * (len(hatched) - 2), True] == hatched


@pytest.mark.parametrize("weeks", [15, 53])
def test_weeks_without_bars_leave_room_for_the_labels(weeks):
    """Two deposits far apart: the labels between them do not overlap."""
    frame = transfers(10**9, 10**9, days=[0, 7 * weeks])

    ax = plot.withdrawals(frame, every="week")

    assert 2 <= len(ax.get_xticks()) <= 10


@pytest.mark.parametrize("days", [[0, 31], [0, 400]])
def test_ticks_of_months_are_their_first_days(days):
    """A month has one bar, so no label is between two bars."""
    ax = plot.withdrawals(transfers(10**9, 10**9, days=days), every="month")

    assert {1} == {num2date(tick).day for tick in ax.get_xticks()}


def test_the_range_of_a_load_decides_which_transfers_are_incomplete():
    """Z3: dates are whole days, times are instants; both ends are inclusive."""
    frame = transfers(10**9, 10**9, 10**9)

    def hatched(since, until):
        (bars,) = charts.withdrawals(frame, since=since, until=until).layers
        return bars.incomplete.tolist()

    assert [False] * 3 == hatched("2020-12-01", "2020-12-03")
    assert [True, False, False] == hatched(GENESIS, "2020-12-03")
    assert [False, False, True] == hatched("2020-12-01", "2020-12-03T20:00")
    assert [False, False, True] == hatched("2020-12-01", None)
    x = charts.withdrawals(frame, since=GENESIS, until="2020-12-03").x
    assert "Day (UTC, hatched where incomplete)" == x.label
    assert "Day (UTC)" == charts.deposits(frame, since="2020-12-01", until="2020-12-03").x.label
    with pytest.raises(UsageError, match="since=83363 is a number"):
        hatched(83363, None)


@pytest.mark.parametrize("until", [timedelta(0), timedelta(days=400)])
def test_a_day_that_has_not_ended_is_incomplete(until):
    """A range cannot have transfers of the future."""
    now = datetime.now(UTC)
    times = pl.Series([now - timedelta(days=1), now]).dt.cast_time_unit("us")
    frame = transfers(10**9, 10**9).with_columns(time=times)

    since, until = (now - timedelta(days=1)).date(), (now + until).date()
    (bars,) = charts.withdrawals(frame, since=since, until=until).layers

    assert [False, True] == bars.incomplete.tolist()


def test_a_range_that_ends_before_it_begins_is_an_error():
    """As in loaders."""
    with pytest.raises(UsageError, match="since='2026-10-05' is after until='2026-10-04'"):
        plot.withdrawals(transfers(10**9), since="2026-10-05", until="2026-10-04")


def test_the_bar_of_a_single_day_has_no_note_over_it():
    """Issue 19: a bar shows that there is one day; a single point of a line needs the note."""
    frame = transfers(10**9)
    one = income([5])

    assert charts.withdrawals(frame).single_note is None
    assert "One day only" == charts.withdrawals(frame, cumulative=True).single_note
    for by in ("total", "component"):
        assert charts.income(one, by=by).single_note is None
    assert "One day only" == charts.income(one, by="validator").single_note


def test_cumulative_withdrawals():
    """The sum since the first withdrawal."""
    ax = plot.withdrawals(transfers(10**9, 2 * 10**9), unit="gwei", cumulative=True)

    assert [10**9, 3 * 10**9] == list(ax.lines[0].get_ydata())
    assert "Withdrawals since Dec 1, 2020 (gwei)" == ax.get_ylabel()


@pytest.mark.parametrize(("every", "days"), [("day", 181), ("week", 26), ("month", 6)])
def test_cumulative_withdrawals_stay_the_same_without_a_withdrawal(every, days):
    """Two withdrawals half a year apart: the line rises on the last day, not over half a year."""
    frame = transfers(10**9, 2 * 10**9, days=[0, 180])

    (line,) = charts.withdrawals(frame, every=every, cumulative=True).layers

    assert ([1.0] * (len(line.y) - 1), 3.0) == (line.y[:-1].tolist(), line.y[-1])
    assert days <= len(line.y) <= days + 1


def test_deposits_with_an_invalid_signature_have_a_colour():
    """They are stacked on the others; removed deposits are left out."""
    frame = transfers(32 * 10**9, 10**9, days=[0, 0]).with_columns(
        removed=pl.Series([False, False])
    )
    gone = transfers(7 * 10**9).with_columns(removed=pl.lit(value=True))

    ax = plot.deposits(pl.concat([frame, gone]))

    assert {"Valid signature": (0.0, 32.0), "Invalid signature": (32.0, 1.0)} == {
        bars.get_label(): (bars[0].get_y(), bars[0].get_height()) for bars in ax.containers
    }
    assert ["Valid signature", "Invalid signature"] == legend_labels(ax)
    top = ax.get_ylim()[1]
    assert top > 33


def test_deposits_with_an_unknown_signature_are_drawn():
    """The validity is null where the registry of an own node does not prove it."""
    frame = transfers(32 * 10**9, 10**9, days=[0, 0]).with_columns(
        removed=pl.lit(value=False), valid_signature=pl.Series([True, None])
    )

    ax = plot.deposits(frame)

    assert {"Valid signature": (0.0, 32.0), "Signature not checked": (32.0, 1.0)} == {
        bars.get_label(): (bars[0].get_y(), bars[0].get_height()) for bars in ax.containers
    }


def test_swatches_of_the_legend_are_never_hatched():
    """Z3: the first bar, which the legend shows, is hatched."""
    frame = transfers(10**9, 10**9, 10**9)

    ax = plot.deposits(frame)

    assert ax.containers[0][0].get_hatch()
    assert ["", ""] == [patch.get_hatch() for patch in ax.get_legend().get_patches()]


@pytest.mark.parametrize("figsize", [None, (3, 2.5)])
def test_bars_narrower_than_a_pixel_are_visible(figsize):
    """A withdrawal every 9 days of two years: a bar has less than a pixel, and must not vanish."""
    ax = plot.withdrawals(
        transfers(*[10**9] * 81, days=[9 * i for i in range(81)]), figsize=figsize
    )

    ax.figure.canvas.draw()
    pixels = np.asarray(ax.figure.canvas.buffer_rgba())[:, :, :3].astype(int)
    box = ax.get_window_extent()
    row = pixels[round(len(pixels) - box.y0 - box.height / 4), round(box.x0) + 3 : round(box.x1)]
    has_bar = row[:, 2] - row[:, 0] > 20
    assert 81 == np.count_nonzero(has_bar[1:] & ~has_bar[:-1])


def test_an_outline_of_the_caller_is_respected():
    """Narrow bars have an outline of their own only without that of the caller."""
    frame = transfers(*[10**9] * 81, days=[9 * i for i in range(81)])

    ax = plot.withdrawals(frame, linewidth=2, edgecolor="black")

    assert {(2.0, (0, 0, 0, 1))} == {
        (bar.get_linewidth(), bar.get_edgecolor()) for bar in ax.patches
    }
