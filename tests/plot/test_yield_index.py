"""Charts of the yield index, and of the own yield."""

from datetime import timedelta

import polars as pl
import pytest
from matplotlib import pyplot as plt
from matplotlib.dates import date2num

from beaconframes import plot
from beaconframes.analysis import own_yield
from beaconframes.errors import UsageError

from ..support.chart_frames import GENESIS, balances, income, yields
from ..support.drawn_charts import legend_labels, lines_by_name, split_at_gaps


def test_yield_is_in_percent():
    """Days as dots, the two averages as lines, in percent a year."""
    ax = plot.yield_index(yields())

    daily, week, month = ax.lines
    assert ["Daily", "7-day average", "31-day average"] == legend_labels(ax)
    assert [3.0, 2.993, 2.969] == [round(line.get_ydata()[0], 9) for line in (daily, week, month)]
    assert ("None", "-", "-") == tuple(line.get_linestyle() for line in ax.lines)
    assert "Yield (APR, %)" == ax.get_ylabel()
    assert date2num(GENESIS + timedelta(days=1000)) == pytest.approx(daily.get_xdata(False)[0])


def test_yield_of_the_layers():
    """With *split*, both layers with their own averages, in the order of the legend."""
    ax = plot.yield_index(yields(), split=True)

    assert [
        ("Consensus, daily", 2.5),
        ("Consensus, 7-day average", 2.493),
        ("Consensus, 31-day average", 2.469),
        ("Execution, daily", 0.5),
        ("Execution, 7-day average", 0.493),
        ("Execution, 31-day average", 0.469),
    ] == [
        (line.get_label(), round(line.get_ydata()[0], 9))
        for panel in ax.figure.axes
        for line in panel.lines
    ]
    assert ["Consensus yield", "Execution yield"] == [
        panel.get_ylabel().replace("\n", " ").removesuffix(" (APR, %)") for panel in ax.figure.axes
    ]


def test_yield_has_gaps_where_days_are_missing():
    """Averages are not drawn across missing days, nor where they are null."""
    frame = yields([*range(1000, 1010), *range(1020, 1030)]).with_columns(
        apr_avg_7d=pl.when(pl.col("day") > 1002).then("apr_avg_7d")
    )

    _, week, month = plot.yield_index(frame).lines

    assert [7, 10] == [len(part) for part in split_at_gaps(week)]
    assert [10, 10] == [len(part) for part in split_at_gaps(month)]


def test_averages_begin_when_their_window_is_full():
    """The first days of a chain have averages of fewer days: 7 days end on day 6."""
    daily, week, month = plot.yield_index(yields(range(40))).lines

    assert (40, 34, 10) == tuple(len(line.get_ydata()) for line in (daily, week, month))
    assert date2num(GENESIS + timedelta(days=6)) == pytest.approx(week.get_xdata(False)[0])
    assert 2 == len(plot.yield_index(yields(range(20))).lines)


def own_days():
    """Two days of an index, whose days begin with epoch 450 and 675."""
    return yields(range(2, 4)).with_columns(day_end=pl.col("time") + timedelta(days=1))


def test_own_yield_is_income_over_balance():
    """225 epochs of 10,000 gwei on 32 ETH, times 365; and fees of 3,200,000 gwei a day."""
    earned = income(
        range(450, 900),
        [1, 2],
        attestation_head_reward_gwei=10_000,
        tx_fee_reward_wei=3_200_000 * 10**9 // 225,
    )
    held = balances(range(450, 900), [1, 2])

    rates = own_yield(earned, held, own_days())

    assert [(2, 2), (3, 2)] == rates.select("day", "validators").rows()
    assert [365 * 225 * 10_000 / 32e9] * 2 == pytest.approx(rates["cl_apr"].to_list())
    assert [365 * 3_200_000 / 32e9] * 2 == pytest.approx(rates["el_apr"].to_list(), rel=1e-6)
    assert pytest.approx(rates["apr"].to_list()) == (rates["cl_apr"] + rates["el_apr"]).to_list()


def test_own_yield_leaves_out_incomplete_days():
    """A validator counts on days with all its rows; a day without any validator is left out."""
    earned = income(range(450, 900), [1, 2]).filter(
        (pl.col("validator_index") == 1) & (pl.col("epoch") < 899)
        | (pl.col("validator_index") == 2) & (pl.col("epoch") != 460) & (pl.col("epoch") < 800)
    )

    rates = own_yield(earned, balances(range(450, 900), [1, 2]), own_days())

    assert [(2, 1)] == rates.select("day", "validators").rows()


def test_own_validators_are_drawn_against_the_index():
    """A line of their own, in percent."""
    frames = income(range(450, 900), [1]), balances(range(450, 900), [1])

    ax = plot.yield_index(own_days(), *frames)

    assert "Your validators" == legend_labels(ax)[-1]
    assert [100 * 365 * 225 * 1_000_000 / 32e9] * 2 == pytest.approx(
        list(lines_by_name(ax)["Your validators"].get_ydata())
    )


def test_own_yield_needs_both_frames():
    """Income without balances is refused with both loaders."""
    with pytest.raises(UsageError, match="one is missing"):
        plot.yield_index(own_days(), income())

    assert [] == plt.get_fignums()
