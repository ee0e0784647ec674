"""Charts of income: bars, lines, steps, validators and the yield index."""

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.dates import date2num, num2date

from beaconframes import charts, interactive, plot
from beaconframes.errors import UsageError

from ..support.chart_frames import GENESIS, balances, income, yields
from ..support.drawn_charts import bar_times, caption, legend_labels, lines_by_name, split_at_gaps

FEES_ONLY = "priority fees, relay payments not included"


def test_bars_are_the_exact_sums():
    """Two validators, 225 epochs a day, 0.001 ETH each and a wei: 0.45 ETH a day."""
    ax = plot.income(income(attestation_head_reward_gwei=1_000_000, tx_fee_reward_wei=1))

    assert [0.45 + 450e-18] * 3 == [bar.get_height() for bar in ax.patches]
    days = [datetime(2020, 12, day, tzinfo=UTC) for day in (2, 3, 4)]
    assert days == bar_times(ax.patches)
    assert "Net income per day (ETH)" == ax.get_ylabel()
    assert FEES_ONLY in caption(ax)
    assert "Day (UTC)" == ax.get_xlabel()
    assert "" == ax.get_title()


@pytest.mark.parametrize(
    ("unit", "height", "name"),
    [("eth", 0.45, "ETH"), ("gwei", 4.5e8, "gwei"), ("wei", 4.5e17, "wei")],
)
def test_units_are_drawn_and_named(unit, height, name):
    """The same income in three units."""
    ax = plot.income(income(), unit=unit)

    assert height == pytest.approx(ax.patches[0].get_height(), rel=1e-12)
    assert f"Net income per day ({name})" == ax.get_ylabel()
    assert FEES_ONLY in caption(ax)


def test_incomplete_days_are_hatched():
    """The axis label explains the hatching."""
    ax = plot.income(income(range(100, 400)))

    assert [True, False, True] == [bool(bar.get_hatch()) for bar in ax.patches]
    assert "Day (UTC, hatched where incomplete)" == ax.get_xlabel()


def test_days_without_rows_have_no_bar():
    """A missing day has no bar of height zero."""
    frame = income().filter(~pl.col("epoch").is_between(338, 562))

    ax = plot.income(frame)

    assert [2, 4] == [moment.day for moment in bar_times(ax.patches)]


@pytest.mark.parametrize(
    ("every", "first", "name"),
    [
        ("week", datetime(2020, 11, 30, tzinfo=UTC), "Week from Monday (UTC"),
        ("month", datetime(2020, 12, 1, tzinfo=UTC), "Month (UTC"),
    ],
)
def test_weeks_and_months(every, first, name):
    """The bars start on Mondays and on the first of months."""
    ax = plot.income(income(range(0, 225 * 40, 25)), every=every)

    assert first == bar_times(ax.patches)[0]
    assert ax.get_xlabel().startswith(name)


def test_epochs_are_a_line_with_gaps():
    """X08: a line by epoch stops where epochs are missing and marks isolated points."""
    epochs = [*range(200, 210), 220, *range(230, 232)]

    (line,) = plot.income(income(epochs), every="epoch").lines

    assert [10, 1, 2] == [len(part) for part in split_at_gaps(line)]
    isolated = [line.get_ydata()[i] for i in line.get_markevery()]
    assert [0.002] == isolated
    assert date2num(GENESIS + timedelta(seconds=384 * 200)) == pytest.approx(
        line.get_xdata(False)[0]
    )


def test_components_are_stacked_with_penalties_in_a_panel():
    """Components without an amount are left out; small penalties have their own scale."""
    ax = plot.income(
        income(
            attestation_head_reward_gwei=1_000_000,
            attestation_target_penalty_gwei=2_000_000,
            proposer_sync_inclusion_reward_gwei=4_000_000,
            slashing_penalty_gwei=8_000_000,
            tx_fee_reward_wei=16 * 10**15,
        ),
        by="component",
    )

    rewards, penalties = (
        {
            bars.get_label(): (round(bars[0].get_y(), 9), round(bars[0].get_height(), 9))
            for bars in panel.containers
        }
        for panel in ax.figure.axes
    )
    assert {
        "Attestations": (0, 0.45),
        "Block proposals": (0.45, 1.8),
        "Execution income": (2.25, 7.2),
    } == rewards
    assert {"Attestation penalties": (0, -0.9), "Slashing penalties": (-0.9, -3.6)} == penalties
    lower = ax.figure.axes[1]
    assert ("Day (UTC)", "Penalties\n(ETH)") == (lower.get_xlabel(), lower.get_ylabel())
    assert lower.get_xlim() == ax.get_xlim()
    ax.figure.canvas.draw()
    assert ax.get_position().height > 2 * lower.get_position().height
    assert [
        "Execution income",
        "Block proposals",
        "Attestations",
        "Attestation penalties",
        "Slashing penalties",
    ] == legend_labels(ax)
    assert "Income per day (ETH)" == ax.get_ylabel()
    assert FEES_ONLY in caption(ax)


def test_components_by_epoch_are_steps_with_gaps():
    """Each step is as wide as its epoch; nothing is drawn over a gap."""
    frame = income([5, 6, 9], attestation_head_reward_gwei=1_000_000, tx_fee_reward_wei=2 * 10**15)

    ax = plot.income(frame, every="epoch", by="component")

    tops = {}
    for area in ax.collections:
        shapes = [path.vertices for path in area.get_paths()]
        spans = [(shape[:, 0].min(), shape[:, 0].max()) for shape in shapes]
        tops[area.get_label()] = {round(shape[:, 1].max(), 9) for shape in shapes}
        epochs = [
            tuple(round((num2date(x) - GENESIS).total_seconds() / 384, 6) for x in span)
            for span in spans
        ]
        assert [(5, 7), (9, 10)] == epochs
    assert {"Attestations": {0.002}, "Execution income": {0.006}} == tops


def test_few_validators_have_a_line_each():
    """A line and a name per validator; incomplete days are hollow."""
    frame = income(range(100, 500), validators=(30, 4))

    ax = plot.income(frame, by="validator", unit="gwei")

    assert ["4", "30"] == legend_labels(ax)
    assert "Validator" == ax.get_legend().get_title().get_text()
    named = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
    assert pytest.approx([13e6, 225e6, 162e6]) == list(named["4"].get_ydata())
    hollow = [line for line in ax.lines if line.get_label().startswith("_")]
    assert [pytest.approx([13e6, 162e6])] * 2 == [list(line.get_ydata()) for line in hollow]
    assert "Net income per day and validator (gwei)" == ax.get_ylabel()
    assert FEES_ONLY in caption(ax)


def test_the_label_names_hollow_markers_only_where_there_are_some():
    """Validator 0 has half of the second day: the median of all has the whole day."""
    whole = income(range(113, 113 + 2 * 225), range(12))
    part = whole.filter((pl.col("validator_index") > 0) | (pl.col("epoch") < 450))

    assert "Day (UTC)" == plot.income(part, by="validator").get_xlabel()
    few = part.filter(pl.col("validator_index") < 3)
    assert "Day (UTC, hollow where incomplete)" == plot.income(few, by="validator").get_xlabel()


def test_many_validators_are_grey_lines_with_a_median():
    """Up to 50 lines, more than colours: all in grey, separated by gaps, and the median."""
    frame = income(validators=range(50)).with_columns(
        attestation_head_reward_gwei=pl.col("validator_index") * 1_000_000
    )

    ax = plot.income(frame, by="validator")

    assert ["Each of 50 validators", "Median"] == legend_labels(ax)
    crowd, median = ax.lines[:2]
    assert [3] * 50 == [len(part) for part in split_at_gaps(crowd)]
    assert pytest.approx([24.5 * 0.225] * 3) == list(median.get_ydata())


@pytest.mark.parametrize(("count", "late"), [(20, 2), (20, 3), (101, 10), (101, 11)])
def test_a_median_is_complete_if_nearly_all_validators_are(count, late):
    """Days on which a tenth of them have not all epochs lower the median."""
    frame = income(range(113, 113 + 225), range(count))
    frame = frame.filter((pl.col("validator_index") >= late) | (pl.col("epoch") < 150))

    *_, median = charts.income(frame, by="validator").layers

    assert [late * 10 > count] == list(median.hollow)


@pytest.mark.parametrize("library", [plot, interactive])
def test_more_validators_than_lines_are_bands(library):
    """101 validators with 0 to 100 units: median 50, 80 % from 10 to 90, extremes 0 and 100."""
    frame = income(validators=range(101)).with_columns(
        attestation_head_reward_gwei=pl.col("validator_index") * 1_000_000
    )

    drawing = charts.income(frame, by="validator")
    library.income(frame, by="validator")

    outer, inner, median = drawing.layers
    unit = 0.225
    assert pytest.approx([50 * unit] * 3) == list(median.y)
    assert pytest.approx([10 * unit] * 3 + [90 * unit] * 3) == [*inner.low, *inner.high]
    assert pytest.approx([0] * 3 + [100 * unit] * 3) == [*outer.low, *outer.high]
    assert ("Median of 101 validators", "10 % to 90 % of them", "Lowest to highest") == (
        drawing.legend
    )


def is_whole_at_the_edge(marker):
    """Return whether a marker is within the axes, and not more than 5 % of them from an end."""
    (y,), (low, high) = marker.get_ydata(), marker.axes.get_ylim()
    distance = min(y - low, high - y) / (high - low)
    half = marker.get_markersize() / 2 / 72 * marker.figure.dpi
    return half < distance * marker.axes.get_window_extent().height and distance < 0.05


def test_far_extremes_do_not_hide_the_others():
    """One of 101 validators earns 1,000 times as much: the axis ends near the others.

    A marker at the edge of the axis names this validator and its income.
    """
    amount = (
        pl.when(pl.col("validator_index") == 100)
        .then(10**9)
        .otherwise(10**6 + 1000 * pl.col("validator_index"))
    )
    frame = income(validators=range(101)).with_columns(attestation_head_reward_gwei=amount)

    ax = plot.income(frame, by="validator")
    figure = interactive.income(frame, by="validator")

    outlier = "Highest: 225,\nvalidator 100"
    assert ["Median of 101 validators", "10 % to 90 % of them", outlier] == legend_labels(ax)
    assert outlier.replace("\n", " ") in [trace.name for trace in figure.data]
    (edge,) = [line for line in ax.lines if line.get_marker() == "^"]
    assert is_whole_at_the_edge(edge)
    amount = 10**6 + 1000 * pl.col("validator_index")
    penalty = pl.when(pl.col("validator_index") == 7).then(10**9).otherwise(0)
    slashed = frame.with_columns(attestation_head_reward_gwei=amount, slashing_penalty_gwei=penalty)
    drawn = plot.income(slashed, by="validator")
    assert legend_labels(drawn)[-1].startswith("Lowest: -224")
    assert legend_labels(drawn)[-1].endswith(",\nvalidator 7")
    (edge,) = [line for line in drawn.lines if line.get_marker() == "v"]
    assert is_whole_at_the_edge(edge)
    low, high = ax.get_ylim()
    assert 0.2 < low < 0.225 * 1.01
    assert 0.225 * 1.09 < high < 0.3
    assert high == figure.layout.yaxis.autorangeoptions.clipmax


def test_two_charts_share_an_axes():
    """Charts draw on the axes of the caller, and keyword arguments reach the bars."""
    _, (left, right) = plt.subplots(ncols=2)

    assert left is plot.income(income(), ax=left, color="#123456")
    plot.income(income(validators=[1]), ax=left, color="red", width=timedelta(hours=2))

    assert {"#123456", "#ff0000"} == {to_hex(bar.get_facecolor()) for bar in left.patches}
    assert 6 == len(left.patches)
    assert not right.has_data()


def test_cumulative_income_is_the_running_sum():
    """0.45 ETH a day for three days: 0.45, 0.9, 1.35."""
    (line,) = [
        line for line in plot.income(income(), cumulative=True).lines if len(line.get_xdata()) == 3
    ]

    assert [0.45, 0.9, 1.35] == pytest.approx(list(line.get_ydata()))
    assert "Net income since Dec 2, 2020 (ETH)" == line.axes.get_ylabel()


def test_cumulative_income_adds_wei_exactly():
    """A wei on top of a million ether is added before conversion to float."""
    frame = income([113, 338], [1], tx_fee_reward_wei=10**24 + 1)
    drawing = charts.income(frame, unit="wei", cumulative=True)

    assert [float(10**24 + 1), float(2 * 10**24 + 2)] == list(drawing.layers[0].y)


def test_cumulative_income_stops_at_gaps():
    """No line is drawn over missing days, and nothing is added for them."""
    frame = income().filter(~pl.col("epoch").is_between(338, 562))

    (line, *_) = plot.income(frame, cumulative=True).lines

    heights = list(line.get_ydata())
    assert [0.45, 0.9] == [pytest.approx(y) for y in heights if np.isfinite(y)]
    assert 1 == sum(np.isnan(heights))


def test_cumulative_components_are_steps():
    """Rewards are steps a day wide, penalties below zero."""
    frame = income(attestation_head_reward_gwei=1_000_000, slashing_penalty_gwei=2_000_000)

    ax = plot.income(frame, by="component", cumulative=True)

    tops = {
        area.get_label(): sorted({round(y, 9) for y in area.get_paths()[0].vertices[:, 1]})
        for panel in ax.figure.axes
        for area in panel.collections
    }
    assert {
        "Attestations": [0, 0.45, 0.9, 1.35],
        "Slashing penalties": [-2.7, -1.8, -0.9, 0],
    } == tops


def test_cumulative_income_by_validator():
    """Each validator has its own sum."""
    ax = plot.income(income(validators=(1, 2)), by="validator", cumulative=True)

    assert {"1": [0.225, 0.45, 0.675], "2": [0.225, 0.45, 0.675]} == {
        name: [round(y, 9) for y in line.get_ydata()]
        for name, line in lines_by_name(ax).items()
        if not name.startswith("_")
    }


def index_days(days):
    """Days of an index with 3.65 % a year, which is 0.01 % a day."""
    return yields(days).with_columns(apr=0.0365, day_end=pl.col("time") + timedelta(days=1))


@pytest.mark.parametrize("cumulative", [False, True])
def test_income_is_compared_with_the_yield_index(cumulative):
    """2 validators with 32 ETH earn 0.0064 ETH a day at 3.65 % a year; with 64 ETH, twice that."""
    frame = income(range(113, 113 + 2 * 225))
    held = balances([113], [1, 2]).with_columns(effective_balance_gwei=64_000_000_000)
    days = index_days(range(10))

    _, line = charts.income(frame, yield_index=days, cumulative=cumulative).layers
    others = held.with_columns(validator_index=99, effective_balance_gwei=2048 * 10**9)
    held = pl.concat([held, others], how="vertical_relaxed")
    _, double = charts.income(frame, yield_index=days, balances=held, cumulative=cumulative).layers

    expected = [0.0064, 0.0128 if cumulative else 0.0064]
    assert pytest.approx(expected) == list(line.y)
    # Times of a CSV file have no zone: they are UTC.
    read = days.with_columns(pl.col("time", "day_end").dt.replace_time_zone(None))
    _, same = charts.income(frame, yield_index=read, cumulative=cumulative).layers
    assert list(line.y) == list(same.y)
    assert pytest.approx([2 * y for y in expected]) == list(double.y)
    assert ("At the yield index, 32 ETH each", "At the yield index") == (line.name, double.name)


def test_rows_without_an_amount_expect_nothing():
    """They are not in the income, so the index counts them neither."""
    frame = income(range(113, 113 + 225))
    gap = (pl.col("validator_index") == 1) & (pl.col("epoch") < 200)
    reward = pl.when(~gap).then("attestation_head_reward_gwei")
    unknown = frame.with_columns(attestation_head_reward_gwei=reward)

    lines = [
        charts.income(rows, yield_index=index_days(range(3))).layers[1]
        for rows in (unknown, frame.filter(~gap))
    ]

    assert list(lines[0].y) == list(lines[1].y)
    assert lines[0].y[0] < 0.0064


def test_the_yield_index_stops_where_it_has_no_day():
    """Days 0 to 2 end at noon of December 4; what follows is unknown, not zero."""
    frame = income(range(113, 113 + 4 * 225))

    for options in ({"every": "day"}, {"every": "epoch"}):
        _, line = charts.income(
            frame, yield_index=index_days(range(3)), cumulative=True, **options
        ).layers
        known = line.x[np.isfinite(line.y)]
        last = np.datetime64("2020-12-03" if options["every"] == "day" else "2020-12-04T12:00")
        assert abs(known.max() - last) < np.timedelta64(400, "s")
    assert 0.0064 * 2.5 == pytest.approx(np.nanmax(line.y), rel=0.01)


def test_the_title_compares_income_with_the_yield_index():
    """0.00675 ETH of a day are 5.5 % more than 0.0064, and 47.3 % less than 0.0128."""
    frame = income(range(113, 113 + 225), attestation_head_reward_gwei=15_000)
    held = balances([113], [1, 2]).with_columns(effective_balance_gwei=64_000_000_000)
    days = index_days(range(10))

    fees = "(priority fees, relay payments not included)"
    chart = charts.expected_income(frame, days)
    half = charts.expected_income(frame, days, held)
    day = charts.expected_income(frame, days, every="day", unit="gwei")
    unknown = charts.expected_income(frame, index_days([500]))

    assert f"earned 5.5 % more than at the yield index by Dec 2 {fees}" == chart.finding
    assert f"earned 47.3 % less than at the yield index by Dec 2 {fees}" == half.finding
    assert chart.finding == day.finding
    assert [1, 1] == [len(layer.x) for layer in day.layers]
    own, expected = chart.layers
    assert 0.00675 == pytest.approx(own.y[-1])
    assert 0.0064 == pytest.approx(expected.y[-1])
    assert "earned 0.00675 ETH in 225 epochs" in unknown.finding
    idle = income(range(338, 563), attestation_head_reward_gwei=0)
    later = charts.expected_income(pl.concat([frame, idle]), days)
    assert f"earned 47.3 % less than at the yield index by Dec 3 {fees}" == later.finding
    title = plot.expected_income(frame, days, title="auto").get_title().replace("\n", " ")
    assert f"2 validators {chart.finding}" == title
    empty = charts.expected_income(frame.head(0), days)
    assert "No income to draw: no rows" == empty.empty_note


def test_the_yield_index_is_for_the_total():
    """Other lines have no index; balances alone have no effect."""
    with pytest.raises(UsageError, match="yield_index= needs by='total', not by='validator'"):
        charts.income(income(), yield_index=index_days([1]), by="validator")
    with pytest.raises(UsageError, match="balances= has an effect only with yield_index="):
        charts.income(income(), balances=balances())


@pytest.mark.more
@pytest.mark.parametrize("every", ["epoch", "day"])
@pytest.mark.parametrize("cumulative", [False, True])
def test_components_without_income_are_zero_on_their_days(every, cumulative):
    """Without a bar or an area, the axis showed 1970."""
    frame = income(tx_fee_reward_wei=0)

    ax = plot.income(frame, by="component", every=every, cumulative=cumulative)

    assert [2020, 2020] == [num2date(end).year for end in ax.get_xlim()]
    assert ["Attestations"] == legend_labels(ax)
    assert "All values are 0 ETH" in plot.alt_text(ax).replace("Attestations: all", "All")
    (trace,) = interactive.income(frame, by="component", every=every, cumulative=cumulative).data
    assert "2020" == str(trace.x[0])[:4]


@pytest.mark.more
@pytest.mark.parametrize(
    ("gwei", "options", "labels"),
    [
        (4_500, {}, ["Income per day (ETH)", "Penalties (gwei)"]),
        (4, {}, ["Income per day (gwei)", "Penalties (gwei)"]),
        (4, {"unit": "eth"}, ["Income per day (ETH)", "Penalties (ETH)"]),
        (4_000_000, {}, ["Income per day (ETH)", "Penalties (ETH)"]),
        (4, {"cumulative": True}, ["Income since Dec 2, 2020 (gwei)", "Penalties (gwei)"]),
    ],
)
def test_small_amounts_are_in_gwei(gwei, options, labels):
    """Below 0.001 ETH, an axis in ETH would need a power of ten; penalties are a hundredth."""
    rows = income(
        validators=[1],
        attestation_head_reward_gwei=gwei,
        attestation_source_penalty_gwei=gwei // 100 or 1,
    )

    ax = plot.income(rows, by="component", **options)
    whole = plot.income(rows, **{"unit": None} | options)

    panels = [axes.get_ylabel().replace("\n", " ") for axes in ax.figure.axes]
    assert labels == panels
    assert labels[0].rpartition("(")[2] == whole.get_ylabel().replace("\n", " ").rpartition("(")[2]
    factor = {"ETH": 1e9, "gwei": 1}[labels[1].rpartition("(")[2][:-1]]
    if not options.get("cumulative"):
        lowest = min(bar.get_y() + bar.get_height() for bar in ax.figure.axes[1].patches)
        assert -225 * (gwei // 100 or 1) == pytest.approx(lowest * factor)
