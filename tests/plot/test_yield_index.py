"""Charts of the yield index, and of the own yield."""

from datetime import timedelta

import polars as pl
import pytest
from matplotlib import pyplot as plt
from matplotlib.dates import date2num

from beaconframes import charts, plot
from beaconframes.analysis import own_yield
from beaconframes.analysis.validator_yield import compute_own_rates
from beaconframes.charts.model import Area
from beaconframes.errors import UsageError

from ..support.chart_frames import GENESIS, balances, income, yields
from ..support.drawn_charts import caption, legend_labels, lines_by_name, split_at_gaps


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


def unequal(**amounts):
    """Two days of income of ten validators: half of them earn a tenth more for heads."""
    return pl.concat(
        income(range(450, 900), validators, attestation_head_reward_gwei=gwei, **amounts)
        for validators, gwei in ((range(5), 1_000_000), (range(5, 10), 1_100_000))
    )


def test_own_validators_are_drawn_against_the_index():
    """A line of their own, in percent, with the interval that follows from their differences.

    The mean is 1,050,000 gwei, the variance 50,000² times 10 / 9, so the standard error a third of
    50,000. The quantile of Student's t with nine degrees of freedom is 2.262157.
    """
    mean, margin = (100 * 365 * 225 * gwei / 32e9 for gwei in (1_050_000, 2.262157 * 50_000 / 3))

    ax = plot.yield_index(own_days(), unequal(), balances(range(450, 900), range(10)))

    assert ["Your validators, 95 % interval", "Your validators"] == legend_labels(ax)[-2:]
    assert [mean] * 2 == pytest.approx(list(lines_by_name(ax)["Your validators"].get_ydata()))
    (band,) = ax.collections
    low, high = band.get_datalim(ax.transData).intervaly
    assert (mean - margin, mean + margin) == pytest.approx((low, high), rel=1e-6)


def test_the_error_of_the_yield_is_that_of_a_ratio():
    """A validator with twice the balance and twice the income differs in nothing."""
    earned = pl.concat(
        income(range(450, 900), [index], attestation_head_reward_gwei=gwei)
        for index, gwei in ((1, 1_000_000), (2, 2_000_000))
    )
    held = balances(range(450, 900)).with_columns(
        effective_balance_gwei=pl.col("effective_balance_gwei") * pl.col("validator_index")
    )

    rates = compute_own_rates(earned, held, own_days())

    assert [0, 0] == pytest.approx(rates["cl_apr_error"].to_list(), abs=1e-12)
    single = compute_own_rates(income(range(450, 900), [1]), held, own_days())
    assert [None, None] == single["apr_error"].to_list()
    fees = pl.when(pl.col("validator_index") == 1).then("tx_fee_reward_wei")
    unknown = compute_own_rates(earned.with_columns(fees), held, own_days())
    assert [None, None] == unknown["apr_error"].to_list() == unknown["apr"].to_list()
    assert [0, 0] == pytest.approx(unknown["cl_apr_error"].to_list(), abs=1e-12)


def test_layers_have_intervals_of_their_own():
    """Execution income is the same for all validators: its interval has no width."""
    held = balances(range(450, 900), range(10))

    chart = charts.yield_index(own_days(), unequal(tx_fee_reward_wei=10**15), held, split=True)

    widths = [
        (layer.high - layer.low).tolist()
        for panel in (chart, chart.panel)
        for layer in panel.layers
        if isinstance(layer, Area)
    ]
    assert [2, 2] == [len(days) for days in widths]
    assert min(widths[0]) > 0.1
    assert [0, 0] == pytest.approx(widths[1], abs=1e-9)


@pytest.mark.more
@pytest.mark.parametrize(("days", "is_drawn"), [(29, False), (30, True)])
def test_few_validators_need_thirty_days(days, is_drawn):
    """P8: the interval of nine of them would say little, and so would few days of their yield."""
    epochs = range(450, 450 + 225 * days)
    index = yields(range(2, 2 + days)).with_columns(day_end=pl.col("time") + timedelta(days=1))

    ax = plot.yield_index(index, income(epochs, range(9)), balances(epochs, range(9)))

    assert is_drawn == ("Your validators" in legend_labels(ax))
    assert not ax.collections
    note = "own yield of 29 days not drawn: fewer than 10 validators, and fewer than 30 days, are"
    assert is_drawn != (note in " ".join(caption(ax).split()))


def test_days_of_few_validators_are_left_out():
    """Nine of ten validators are complete on the first of two days: only the second is drawn."""
    earned = unequal().filter((pl.col("validator_index") > 0) | (pl.col("epoch") != 500))

    ax = plot.yield_index(own_days(), earned, balances(range(450, 900), range(10)))

    (day,) = lines_by_name(ax)["Your validators"].get_xdata(orig=False)
    assert date2num(GENESIS + timedelta(days=3)) == pytest.approx(day)
    assert "own yield of 1 day not drawn" in " ".join(caption(ax).split())


def test_a_yield_of_no_day_has_a_note():
    """No day has all epochs: the argument is not dropped without a word."""
    ax = plot.yield_index(own_days(), income(range(450, 600)), balances(range(450, 600)))

    assert "own yield not drawn: no validator has all rows of a day" in caption(ax)


def test_own_yield_needs_both_frames():
    """Income without balances is refused with both loaders."""
    with pytest.raises(UsageError, match="one is missing"):
        plot.yield_index(own_days(), income())

    assert [] == plt.get_fignums()
