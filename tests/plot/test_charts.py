"""Charts beyond income: their artists, with values computed by hand."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import polars as pl
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import rgb_to_hsv, to_hex, to_rgb
from matplotlib.dates import num2date

from beaconframes import charts, colours, interactive, plot
from beaconframes.analysis import own_yield
from beaconframes.charts.model import Points
from beaconframes.errors import UsageError

from ..support.chart_frames import (
    GENESIS,
    attestations,
    balances,
    blocks,
    committee,
    gas,
    income,
    index_statuses,
    leaderboard,
    produced,
    proposals,
    totals,
    transfers,
    yields,
)

NOTHING = "#ffffff00"


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def lines_by_name(ax):
    """The lines by their names."""
    return {line.get_label(): line for line in ax.lines}


def cells(ax):
    """The colours of a map, row by row."""
    (image,) = ax.images
    return [[to_hex(cell, keep_alpha=cell[3] < 1) for cell in row] for row in image.get_array()]


def names(axis):
    return [tick.get_text() for tick in axis.get_ticklabels()]


def slots(line):
    return [
        round((num2date(x) - GENESIS).total_seconds() / 12)
        for x in mpl.dates.date2num(line.get_xdata())
    ]


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


def test_balances_are_the_difference_to_the_effective_balance():
    """0, 1 and 2 gwei above 32 ETH; the caption has the effective balance."""
    ax = plot.balances(balances(range(200, 203), [9]))

    (line,) = ax.lines
    assert [0, 1e-9, 2e-9] == list(line.get_ydata())
    assert ("Epoch (UTC)", "Balance minus effective balance (ETH)") == (
        ax.get_xlabel(),
        ax.get_ylabel(),
    )
    (caption,) = (text.get_text() for text in ax.texts)
    assert "effective balance 32 ETH" in caption


def test_effective_balances_have_a_range():
    """A validator with 32 ETH and one with 2,048 ETH share a chart."""
    frame = balances([200, 201], [9, 3]).with_columns(
        effective_balance_gwei=pl.when(pl.col("validator_index") == 3)
        .then(2_048_000_000_000)
        .otherwise("effective_balance_gwei")
    )

    assert "effective balance 32 to 2,048 ETH" == charts.balances(frame).note


def test_one_balance_is_drawn_with_its_effective_balance():
    """A single validator: both balances, in ether."""
    ax = plot.balances(balances(range(200, 203), [9]), show="balance")

    assert pytest.approx([32.0, 32.000000001, 32.000000002], rel=1e-15) == list(
        lines_by_name(ax)["Balance"].get_ydata()
    )
    assert [32.0] * 3 == list(lines_by_name(ax)["Effective balance"].get_ydata())
    assert "Validator 9" == ax.get_legend().get_title().get_text()
    assert ("Epoch (UTC)", "Balance (ETH)") == (ax.get_xlabel(), ax.get_ylabel())
    ax.figure.canvas.draw()
    assert "" == ax.yaxis.get_offset_text().get_text()


def test_balances_stop_at_gaps():
    """Lines of several validators stop where epochs are missing."""
    ax = plot.balances(balances([200, 201, 205], [9, 3]), unit="gwei", show="balance")

    assert ["3", "9"] == labels(ax)
    heights = lines_by_name(ax)["9"].get_ydata()
    assert [32_000_000_000, 32_000_000_001, 32_000_000_005] == list(heights[np.isfinite(heights)])
    assert [False, False, True, False] == list(np.isnan(heights))


def test_many_balances_are_grey_lines_and_more_are_bands():
    """More validators than colours, and more than lines."""
    assert ["Each of 30 validators", "Median"] == labels(
        plot.balances(balances(validators=range(30)))
    )
    layers = charts.balances(balances([200, 202], range(51))).layers
    assert [[0, 2e-9]] * 3 == [
        [y for y in (layer.high if hasattr(layer, "high") else layer.y) if np.isfinite(y)]
        for layer in layers
    ]


def test_a_sum_of_balances_has_the_number_of_validators():
    """When a validator joins, the legend has both numbers."""
    frame = pl.concat([balances([200, 201], [1]), balances([201], [2])])

    ax = plot.balances(frame, by="total", show="balance")

    assert ["Balance\nof 1 to 2 validators", "Effective balance"] == labels(ax)
    assert [32.0, 64.000000001] == list(ax.lines[0].get_ydata())
    assert "Sum of balances (ETH)" == ax.get_ylabel()
    (difference,) = plot.balances(frame, by="total").lines
    assert [0, 1e-9] == list(difference.get_ydata())


def test_sums_of_balances_do_not_overflow():
    """Three times 2^62 gwei exceeds 64 bits, and is drawn."""
    frame = balances([200], [1, 2, 3], gwei=2**62)

    (line, _) = plot.balances(frame, by="total", unit="gwei", show="balance").lines

    assert [float(3 * 2**62)] == list(line.get_ydata())


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
    _, double = charts.income(frame, yield_index=days, balances=held, cumulative=cumulative).layers

    expected = [0.0064, 0.0128 if cumulative else 0.0064]
    assert pytest.approx(expected) == list(line.y)
    assert pytest.approx([2 * y for y in expected]) == list(double.y)
    assert ("At the yield index, 32 ETH each", "At the yield index") == (line.name, double.name)


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


def test_the_yield_index_is_for_the_total():
    """Other lines have no index; balances alone have no effect."""
    with pytest.raises(UsageError, match="yield_index= needs by='total', not by='validator'"):
        charts.income(income(), yield_index=index_days([1]), by="validator")
    with pytest.raises(UsageError, match="balances= has an effect only with yield_index="):
        charts.income(income(), balances=balances())


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

    assert "Your validators" == labels(ax)[-1]
    assert [100 * 365 * 225 * 1_000_000 / 32e9] * 2 == pytest.approx(
        list(lines_by_name(ax)["Your validators"].get_ydata())
    )


def test_own_yield_needs_both_frames():
    """Income without balances is refused with both loaders."""
    with pytest.raises(UsageError, match="one is missing"):
        plot.yield_index(own_days(), income())

    assert [] == plt.get_fignums()


def test_the_matrix_separates_missing_blocks_from_missing_signatures():
    """A row per member, best at the top; slots without a block are empty, and marked above."""
    frame = blocks("proposed", "missed", "proposed", "orphaned", "scheduled", signed=1)

    ax = plot.sync_members(frame, committee([70, 60]), show="matrix")

    signed, absent = colours.CYAN, colours.RED
    assert [
        [signed, NOTHING, signed, NOTHING],
        [absent, NOTHING, absent, NOTHING],
    ] == cells(ax)
    assert [1] == slots(lines_by_name(ax)["Missed block (1)"])
    assert [3] == slots(lines_by_name(ax)["Orphaned block (1)"])
    assert ["70", "60"] == names(ax.yaxis)
    assert ["Signed", "Not signed", "Missed block (1)", "Orphaned block (1)"] == labels(ax)
    assert ("Slot (UTC)", "Validator, best at the top") == (ax.get_xlabel(), ax.get_ylabel())
    begin, end = (num2date(x) for x in ax.get_xlim())
    assert [GENESIS, GENESIS + timedelta(seconds=48)] == [begin, end]


def test_the_matrix_leaves_absent_slots_empty():
    """A slot that is not in the frame is no cell, and no missing signature."""
    frame = pl.concat([blocks("proposed"), blocks("proposed", first=2)])

    ax = plot.sync_members(frame, committee([5]), show="matrix")

    assert [[colours.CYAN, NOTHING, colours.CYAN]] == cells(ax)


def test_a_long_matrix_is_folded_into_shares():
    """2,048 slots: two per column, the share of blocks signed; missed slots are marked above."""
    statuses = ["proposed", "missed", *["proposed"] * 2046]
    frame = blocks(*statuses, signed=1)

    ax = plot.sync_members(frame, committee([70, 60]), show="matrix")

    (image,) = ax.images
    shares = image.get_array()
    # Each row is repeated, so that it is not blended with the next.
    rows = shares[[0, len(shares) // 2 - 1, len(shares) // 2, -1]]
    assert [[100.0] * 1024] * 2 + [[0.0] * 1024] * 2 == rows.tolist()
    assert "Slot (UTC, 2 per column)" == ax.get_xlabel()
    assert ["Missed block (1)"] == labels(ax)
    assert [1] == slots(lines_by_name(ax)["Missed block (1)"])
    assert "Blocks signed (%)" == ax.figure.axes[1].get_ylabel()


def test_attestations_have_a_colour_per_outcome():
    """Next slot, late, missed; an epoch without a row is empty."""
    frame = pl.concat([attestations(1, 2, None), attestations(1, validators=[8], first=102)])

    ax = plot.attestations(frame)

    assert [
        [colours.CYAN, colours.AMBER, colours.RED],
        [NOTHING, NOTHING, colours.CYAN],
    ] == cells(ax)
    assert ["7", "8"] == names(ax.yaxis)
    assert [
        "Included in the next slot",
        "Included late (2 slots\nbehind or more)",
        "Missed",
    ] == labels(ax)
    begin, end = (num2date(x) for x in ax.get_xlim())
    assert GENESIS + timedelta(seconds=384 * 100) == begin
    assert GENESIS + timedelta(seconds=384 * 103) == end


def test_pending_attestations_are_grey_and_do_not_count():
    """H4: a duty that can still be included is no miss, on the map and in the shares."""
    frame = attestations(1, None, None)
    frame = frame.with_columns(
        status=pl.when(pl.col("epoch") == 102).then(pl.lit("pending")).otherwise("status")
    )

    ax = plot.attestations(frame)
    bars = plot.attestations(frame, show="distance")
    empty = plot.attestations(frame.filter(status="pending"), show="distance")

    assert [[colours.CYAN, colours.RED, colours.GREY]] == cells(ax)
    assert ["Included in the next slot", "Missed", "Pending"] == labels(ax)
    assert [50.0, 50.0] == [bar.get_height() for bar in bars.patches]
    assert "2 duties, 1 more are pending" == charts.attestations(frame, show="distance").note
    assert "Inclusion distance (slots)" == bars.get_xlabel()
    assert "all of them are pending" in " ".join(text.get_text() for text in empty.texts)


def test_the_late_distance_is_an_argument():
    """With late=5 an attestation four slots later is in time."""
    ax = plot.attestations(attestations(4, 5), late=5)

    assert [[colours.CYAN, colours.AMBER]] == cells(ax)
    assert "Included within 4 slots" == labels(ax)[0]


def test_many_validators_share_rows_of_attestations():
    """250 validators: three per row, with the share in time; a cell of pending duties is grey."""
    frame = attestations(1, 1, validators=range(250))
    late = (pl.col("validator_index") == 4) & (pl.col("epoch") == 100)
    frame = frame.with_columns(
        status=pl.when(pl.col("epoch") == 101).then(pl.lit("pending")).otherwise("status"),
        inclusion_slot=pl.col("inclusion_slot") + pl.when(late).then(5).otherwise(0),
    )

    shares, pending = charts.attestations(frame).layers

    assert (84, 2) == shares.cells.shape
    assert pytest.approx([100, 200 / 3, 100]) == shares.cells[:3, 0].tolist()
    assert np.isnan(shares.cells[:, 1]).all()
    assert ["0", "3", "6"] == shares.rows[:3]
    assert [[0, 1]] * 84 == pending.cells.tolist()
    assert (("Pending", colours.GREY),) == pending.kinds
    ax = plot.attestations(frame)
    assert ["Pending"] == labels(ax)
    assert "Validator, 3 per row" == ax.get_ylabel()
    # At 360 pixels, a bar beside the chart takes a third of it, and its label is cut.
    narrow = plot.attestations(frame, figsize=(3.6, 3))
    assert "horizontal" == narrow.images[0].colorbar.orientation
    figure = interactive.attestations(frame)
    assert "3 validators from %{y}" in figure.data[0].hovertemplate


@pytest.mark.parametrize("late", [0, -1, 1.5, "2", True])
def test_invalid_late_distances_are_refused(late):
    """Late is a whole number of slots."""
    with pytest.raises(UsageError, match=f"late={late!r}"):
        plot.attestations(attestations(1), late=late)


def test_distances_are_shares_of_duties():
    """Two of four in the next slot, one after three slots, one missed."""
    ax = plot.attestations(attestations(1, 1, 3, None), show="distance")

    assert [50.0, 0.0, 25.0, 25.0] == [bar.get_height() for bar in ax.patches]
    assert ["1", "2", "3", "missed"] == names(ax.xaxis)
    assert ["50", "0", "25", "25"] == [text.get_text() for text in ax.texts if not text.get_gid()]
    figure = interactive.attestations(attestations(1, 1, 3, None), show="distance")
    assert ["50", "0", "25", "25"] == [text for bars in figure.data for text in bars.text]
    assert ["Included", "Missed (1)"] == labels(ax)
    assert "Share of attestation duties (%)" == ax.get_ylabel()
    assert "4 duties. 50 % distance 1; 0 % distance 2; 25 % distance 3; 25 % missed." in (
        plot.alt_text(ax)
    )


def test_values_on_bars_round_neither_to_nothing_nor_to_all():
    """One missed duty in 20,000 is neither 0 % nor 100 % of the others."""
    ax = plot.attestations(attestations(*[1] * 19_999, None), show="distance")

    assert [">99.99", "<0.01"] == [text.get_text() for text in ax.texts if not text.get_gid()]


def test_far_distances_share_a_bar():
    """Ten slots and more are one bar, with this label."""
    ax = plot.attestations(attestations(10, 11, 32, 1), show="distance")

    assert "10+" == names(ax.xaxis)[9]
    assert 75.0 == ax.patches[9].get_height()


def test_proposals_are_a_timeline():
    """Each status has its marker in the row of its validator; the first index is at the top."""
    ax = plot.proposals(proposals("proposed", "missed", "orphaned", "scheduled", "proposed"))

    drawn = {
        label: (slots(line), [float(y) for y in line.get_ydata()])
        for label, line in lines_by_name(ax).items()
    }
    assert {
        "Scheduled (1)": ([103], [0.0]),
        "Proposed (2)": ([100, 104], [1.0, 1.0]),
        "Missed (1)": ([101], [0.0]),
        "Orphaned (1)": ([102], [1.0]),
    } == drawn
    assert ["1", "3"] == names(ax.yaxis)
    assert ax.yaxis_inverted()
    assert 4 == len({line.get_marker() + str(line.get_markerfacecolor()) for line in ax.lines})


def test_an_unknown_status_is_not_drawn():
    """B13: blocks with a status of a later service leave the chart of all others as it is."""
    ax = plot.proposals(proposals("proposed", "finalizing", "missed"))

    assert {"Proposed (1)", "Missed (1)"} == set(lines_by_name(ax))


def test_proposals_of_many_validators_are_drawn_by_index():
    """With too many validators for names, the axis has indices."""
    ax = plot.proposals(proposals(*["proposed"] * 30, proposers=range(1000, 1030)))

    assert list(range(1000, 1030)) == list(ax.lines[0].get_ydata())
    ax.figure.canvas.draw()
    assert {"1000", "1020"} < set(names(ax.yaxis))


def test_proposals_of_many_validators_are_counted():
    """101 validators have bars of an hour: 301 slots begin at 12:20:23, and 199 end by 13:00."""
    statuses = ["proposed"] * 301
    statuses[0] = statuses[1] = statuses[102] = "missed"
    statuses[250] = "orphaned"
    frame = proposals(*statuses, proposers=range(101))

    chart = charts.proposals(frame)

    assert {
        "Missed (3)": [3, 0],
        "Orphaned (1)": [0, 1],
        "Proposed (297)": [196, 101],
    } == {layer.name: layer.height.tolist() for layer in chart.layers}
    assert [12, 13] == [time.hour for time in chart.layers[0].x.astype(object)]
    assert ("Proposed (297)", "Missed (3)", "Orphaned (1)") == chart.legend
    assert "missed by validators 1 (2), 0 (1)" == chart.note
    assert "Proposals per hour" == chart.y.label
    assert isinstance(charts.proposals(frame, show="timeline").layers[0], Points)
    few = proposals("proposed", "missed")
    assert isinstance(charts.proposals(few).layers[0], Points)
    assert "Proposals per hour" == charts.proposals(few, show="counts").y.label
    with pytest.raises(UsageError, match="show='map'"):
        plot.proposals(few, show="map")


@pytest.mark.parametrize(
    ("step", "every"), [(1, "hour"), (400, "day"), (4_000, "week"), (40_000, "month")]
)
def test_the_bars_of_proposals_fit_the_range(step, every):
    """150 proposals over half an hour, 8 days, 83 days and more than two years."""
    frame = proposals(*["proposed"] * 150, proposers=range(150))
    first = frame["time"][0]
    frame = frame.with_columns(time=first + (pl.col("time") - first) * step)

    chart = charts.proposals(frame)

    assert f"Proposals per {every}" == chart.y.label
    assert 150 == sum(layer.height.sum() for layer in chart.layers)


def test_rewards_of_proposals():
    """Rewards in ether; missed blocks and unknown rewards are marked below."""
    frame = proposals("proposed", "missed", "proposed", "orphaned", "proposed")

    ax = plot.proposals(frame, produced([100, 104], wei=5 * 10**16))

    assert ([100, 104], [0.05, 0.05]) == (
        slots(lines_by_name(ax)["Proposed (2)"]),
        list(lines_by_name(ax)["Proposed (2)"].get_ydata()),
    )
    assert [101] == slots(lines_by_name(ax)["Missed block (1)"])
    assert [103] == slots(lines_by_name(ax)["Orphaned block (1)"])
    assert [102] == slots(lines_by_name(ax)["Reward unknown (1)"])
    assert "Execution reward of the block (ETH)" == ax.get_ylabel()


def test_rewards_of_proposals_have_a_logarithmic_axis():
    """Rewards differ a thousandfold; a block without a reward is marked below."""
    frame = proposals(*["proposed"] * 4)
    wei = [0, 10**15, 10**18, 5 * 10**15]
    rewards = pl.concat([produced([100 + i], wei=amount) for i, amount in enumerate(wei)])

    ax = plot.proposals(frame, rewards)

    assert "log" == ax.get_yscale()
    ax.figure.canvas.draw()
    assert {"0.001", "0.01", "0.1", "1"} < set(names(ax.yaxis))
    assert [101, 102, 103] == slots(lines_by_name(ax)["Proposed (3)"])
    assert [100] == slots(lines_by_name(ax)["No reward (1)"])
    assert "log" == interactive.proposals(frame, rewards).layout.yaxis.type


def plain_names(axis):
    """Return tick labels without the marks of a formula."""
    return [name.replace("$\\mathdefault{", "").rstrip("}$") for name in names(axis)]


def luck_frames():
    """Validators 1 and 2 of 4 in 100 epochs: 800 proposals each, and 128 of the 512 seats."""
    blocks = proposals(*["proposed"] * 860, "missed", proposers=(1,), first=0)
    members = committee([*[1] * 128, *[2] * 250, *[3] * 134])
    return balances(range(100)), totals(range(100)), blocks, members


def test_luck_compares_actual_with_expected_numbers():
    """1,600 proposals are expected, 861 assigned; 256 seats are expected, 378 held."""
    ax = plot.luck(*luck_frames())

    assert ["Proposals\n861 of 1,600 expected", "Sync seats\n378 of 256.0 expected"] == (
        names(ax.yaxis)
    )
    points = lines_by_name(ax)["Actual, outside of the range"]
    assert pytest.approx([100 * 861 / 1600, 100 * 378 / 256]) == list(points.get_xdata())
    assert [0.0, 1.0] == list(points.get_ydata())
    # 1.96 standard deviations of 3,200 slots with a share of a half: 1,545 to 1,655.
    bar = ax.patches[0]
    assert pytest.approx((100 * 1545 / 1600, 100 * 1655 / 1600), abs=0.1) == (
        bar.get_x(),
        bar.get_x() + bar.get_width(),
    )
    assert [
        "Range of chance (95 % of all cases)",
        "Actual, outside of the range",
        "As many as expected",
    ] == labels(ax)
    assert "Actual (% of expected)" == ax.get_xlabel()
    assert [100.0, 100.0] == list(lines_by_name(ax)["As many as expected"].get_xdata())


@pytest.mark.parametrize("paper", ["#ffffff", "#000000"])
def test_the_range_of_chance_and_its_markers_have_contrast(paper):
    """WCAG 2, 1.4.11: 3 between the range and the paper, and between a marker and the range."""
    theme = colours.Theme(paper)
    spread, *points = charts.luck(*luck_frames(), by="validator_index").layers[:-1]
    inside = [layer.colour for layer in points if layer.name == "Actual"]
    assert inside

    for one, other in ((spread.colour, colours.PAPER), (spread.colour, inside[0])):
        low, high = sorted(colours.compute_luminance(theme.adapt(each)) for each in (one, other))
        assert (high + 0.05) / (low + 0.05) >= 3


def test_luck_of_nearly_all_validators_has_readable_ticks():
    """The range is narrow: ticks are percentages of few digits, and not offsets from 100."""
    blocks = proposals(*["proposed"] * 3199, proposers=(1, 2), first=0)

    ax = plot.luck(balances(range(100)), totals(range(100), 2), blocks)

    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    shown = [float(text) for text in plain_names(ax.xaxis) if low <= float(text) <= high]
    assert 2 <= len(shown) <= 5
    assert all(abs(number - 100) < 0.1 for number in shown)


def test_luck_by_validator_has_a_row_for_each():
    """Validator 1 has 861 of 800 proposals, 2 none; 1 has as many seats as expected."""
    ax = plot.luck(*luck_frames(), by="validator_index")
    figure = interactive.luck(*luck_frames(), by="validator_index")

    assert [
        "validator 1, proposals\n861 of 800.0 expected",
        "validator 2, proposals\n0 of 800.0 expected",
        "validator 1, sync seats\n128 of 128.0 expected",
        "validator 2, sync seats\n250 of 128.0 expected",
    ] == names(ax.yaxis)
    assert [100.0] == list(lines_by_name(ax)["Actual"].get_xdata())
    (actual,) = (trace for trace in figure.data if trace.name == "Actual")
    (text,) = actual.text
    assert text.startswith("validator 1, sync seats, 128 of 128.0 expected, ")
    assert text.endswith(" by chance")


def test_many_validators_are_ranked_by_their_luck():
    """Eleven validators with one expected proposal each: 2 has five, 1 two, the others none."""
    blocks = proposals(*["proposed"] * 7, proposers=(2, 2, 1, 2, 2, 1, 2), first=0)
    held = balances([0], range(1, 12))

    chart = charts.luck(held, totals([0], 32), blocks, by="validator_index")

    area, inside, outside, reference = chart.layers
    assert "Validator, luckiest first" == chart.x.label
    assert ([2, *range(3, 12)], [200.0, *[0.0] * 9]) == (inside.x.tolist(), inside.y.tolist())
    assert ([1], [500.0]) == (outside.x.tolist(), outside.y.tolist())
    assert ("validator 2, 5 of 1.00 expected, 0 to 3 by chance",) == outside.texts
    assert {300.0} == set(area.high)
    assert not reference.vertical
    assert "One epoch only" == chart.single_note


def test_names_of_groups_are_text():
    """The names of groups are no formulas of matplotlib and no tags of plotly."""
    held, *others = luck_frames()
    held = held.with_columns(pool=pl.lit("<b>$x$"))

    ax = plot.luck(held, *others, by="pool")
    figure = interactive.luck(held, *others, by="pool")

    assert names(ax.yaxis)[0].startswith(r"<b>\$x\$, proposals")
    assert figure.layout.yaxis.ticktext[0].startswith("&lt;b&gt;&#36;x&#36;, proposals")


def test_luck_needs_duties():
    """Neither proposals nor committees are an error; a range without a share has a note."""
    held, epochs, blocks, _ = luck_frames()

    with pytest.raises(UsageError, match="proposals or sync committees"):
        plot.luck(held, epochs)
    ax = plot.luck(held.with_columns(effective_balance_gwei=0), epochs, blocks)
    assert ["No luck to draw: no validator of which a duty is expected"] == [
        text.get_text() for text in ax.texts
    ]


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
    assert ["Valid signature", "Invalid signature"] == labels(ax)
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


@pytest.mark.parametrize(("unit", "per_eth"), [("eth", 1.0), ("gwei", 1e9), ("wei", 1e18)])
def test_amounts_of_gwei_are_drawn_in_every_unit(unit, per_eth):
    """Planted fault `wei axis factor 1e15`: 1 ETH is 10^9 gwei and 10^18 wei in every chart."""
    heights = {
        "withdrawals": charts.withdrawals(transfers(10**9), unit=unit).layers[0].height,
        "deposits": charts.deposits(transfers(10**9), unit=unit).layers[0].height,
        "balances": charts.balances(balances([200], [9], gwei=10**9), unit=unit, show="balance")
        .layers[0]
        .y,
        "leaderboard": charts.leaderboard(leaderboard(10**9), span="1d", unit=unit)
        .layers[0]
        .height,
        "components": charts.income(
            income([113], [1], attestation_head_reward_gwei=10**9), by="component", unit=unit
        )
        .layers[0]
        .height,
        "rewards": charts.proposals(proposals("proposed"), produced([100], wei=10**18), unit=unit)
        .layers[0]
        .y,
    }

    assert {name: [pytest.approx(per_eth)] for name in heights} == {
        name: list(values) for name, values in heights.items()
    }


def test_a_gap_is_a_missing_number():
    """Planted fault `stretches > to >=`: neighbours have no gap between them."""
    numbers = pl.Series([3, 4, 6, 6])

    assert [False, True, False] == charts.series.find_gaps(numbers).tolist()
    assert [True, True, False] == charts.series.find_gaps(numbers, most=0).tolist()


def test_the_leaderboard_is_ranked():
    """The highest is at the top, with a bar as long as its income."""
    ax = plot.leaderboard(leaderboard(5, 9, 7), span="7d", unit="gwei", top=2)

    assert [90.0, 70.0] == [bar.get_width() for bar in ax.patches]
    assert ["501", "502"] == names(ax.yaxis)
    assert ax.yaxis_inverted()
    assert "Consensus income of the last 7 days (gwei)" == ax.get_xlabel()


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


def test_a_reading_of_gas_fees_is_bars():
    """Fastest first, in gwei; the axis has the time of the reading."""
    ax = plot.gas_fees(gas(0))

    assert pytest.approx([4.0, 3.0, 2.0, 1.0]) == [bar.get_height() for bar in ax.patches]
    assert ["Rapid\nabout 15 seconds", "Fast\nabout 1 minute"] == names(ax.xaxis)[:2]
    assert "Wait until included" == ax.get_xlabel()
    assert "Rapid, about 15 seconds: 4 gwei; Fast, about 1 minute: 3 gwei" in plot.alt_text(ax)
    assert "One reading: Dec 1, 2020, 12:00 UTC" == charts.gas_fees(gas(0)).note
    assert "Gas price (gwei)" == ax.get_ylabel()


def test_readings_of_gas_fees_are_lines():
    """A line per tier, which stops at a long pause."""
    ax = plot.gas_fees(gas(0, 5, 10, 60, 65), unit="wei")

    heights = lines_by_name(ax)["Slow (about 10 minutes)"].get_ydata()
    assert [False, False, False, True, False, False] == list(np.isnan(heights))
    assert {1e9} == set(heights[np.isfinite(heights)])


def test_the_tiers_of_gas_have_shades_of_one_hue():
    """The faster, the darker."""
    ax = plot.gas_fees(gas(0))
    shades = [to_hex(bar.get_facecolor()) for bar in ax.patches]

    assert list(colours.BLUES) == shades
    assert {0.0} == {label.get_rotation() for label in ax.get_xticklabels()}
    hues = [rgb_to_hsv(to_rgb(shade)) for shade in shades]
    assert max(hue for hue, *_ in hues) - min(hue for hue, *_ in hues) < 0.02
    assert sorted(shades, key=lambda shade: sum(to_rgb(shade))) == shades


def test_coverage_shows_loaded_and_missing_rows():
    """From the first to the last epoch of the frame; the label has the share of rows."""
    frame = pl.concat([balances([100, 101, 103], [1]), balances([102], [40])])

    ax = plot.coverage(frame)

    there, absent = colours.BLUE, colours.AMBER
    assert [[there, there, absent, there], [absent, absent, there, absent]] == cells(ax)
    assert ["1", "40"] == names(ax.yaxis)
    assert "Validator (50 % of rows loaded)" == ax.get_ylabel()
    assert ["Loaded", "Missing, or not active"] == labels(ax)


@pytest.mark.parametrize(
    ("epoch", "value"),
    [(pl.col("epoch").cast(pl.String), "'100'"), (pl.col("epoch") + 0.5, "100.5")],
)
def test_coverage_refuses_epochs_that_are_not_whole(epoch, value):
    """The error names the value; whole epochs may be floats."""
    frame = balances([100, 101], [1])
    assert plot.coverage(frame.with_columns(pl.col("epoch").cast(pl.Float64)))

    with pytest.raises(UsageError, match=f"column epoch holds .*{value}, not epochs"):
        plot.coverage(frame.with_columns(epoch))


def test_coverage_separates_validators_that_are_not_active():
    """1 is active throughout, 40 from epoch 102, 41 until 101, 42 not yet, and 43 has no rows."""
    frame = pl.concat([balances([100, 101, 103], [1]), balances([102], [40])])
    validators = pl.DataFrame(
        {
            "validator_index": [40, 41, 42, 43],
            "activation_epoch": [102, 50, None, 10],
            "exit_epoch": [None, 101, None, None],
        },
        schema=dict.fromkeys(["validator_index", "activation_epoch", "exit_epoch"], pl.Int64),
    )

    ax = plot.coverage(frame, validators)

    there, absent, inactive = colours.BLUE, colours.AMBER, colours.GRID
    assert [
        [there, there, absent, there],
        [inactive, inactive, there, absent],
        [absent, inactive, inactive, inactive],
        [inactive] * 4,
        [absent] * 4,
    ] == cells(ax)
    assert ["1", "40", "41", "42", "43"] == names(ax.yaxis)
    # 4 of 4 + 2 + 1 + 0 + 4 rows of active validators.
    assert f"Validator ({400 / 11:.4g} % of rows loaded)" == ax.get_ylabel()
    assert ["Loaded", "Not active", "Missing"] == labels(ax)


def test_large_coverage_leaves_out_validators_that_are_not_active():
    """2,048 epochs, two per column: a share counts only epochs in which a validator is active."""
    frame = balances([0, 2047], [1])
    validators = pl.DataFrame(
        {"validator_index": [1], "activation_epoch": [0], "exit_epoch": [2000]}
    )

    (layer,) = charts.coverage(frame, validators).layers

    assert [50.0, 0.0] == layer.cells[0, :2].tolist()
    assert [0.0] == layer.cells[0, 999:1000].tolist()
    assert np.isnan(layer.cells[0, 1000:1023]).all()


@pytest.mark.parametrize(("missing", "share"), [(0, "100 %"), (1, "99.99 %")])
def test_coverage_is_complete_only_without_missing_rows(missing, share):
    """One missing row in 20,000 is not 100 %."""
    frame = balances(range(20_000), [1])
    frame = frame.filter(~pl.col("epoch").is_between(5, 4 + missing))

    assert f"Validator ({share} of rows loaded)" == charts.coverage(frame).y.label


@pytest.mark.more
def test_large_coverage_is_folded():
    """3,000 epochs of 2,000 validators: shares of cells, exact also at the edges."""
    frame = balances(range(3000), range(0, 2000, 2))
    frame = pl.concat([frame, balances([0], range(1, 2000, 2))])

    ax = plot.coverage(frame)

    (image,) = ax.images
    shares = image.get_array()
    assert (1000, 1000) == shares.shape
    assert 100 * 4 / 6 == pytest.approx(float(shares[0, 0]))
    assert 50.0 == float(shares[999, 999])
    assert "Epoch (UTC, 3 per column)" == ax.get_xlabel()
    assert "Validator (50.02 % of rows loaded), 2 per row" == ax.get_ylabel().replace("\n", " ")


def test_index_coverage_has_a_row_per_status():
    """Epochs between indexed ones, and requested ones around them, are not indexed."""
    frame = index_statuses(explained=[101, 104], unexplained=[102], unverified=[105])
    blue, red, amber, grey = colours.BLUE, colours.RED, colours.AMBER, colours.GREY
    empty = "#ffffff00"

    ax = plot.index_coverage(frame)
    wider = plot.index_coverage(frame, epochs=range(100, 107))

    assert [
        [blue, empty, empty, blue, empty],
        [empty, red, empty, empty, empty],
        [empty, empty, empty, empty, amber],
        [empty, empty, grey, empty, empty],
    ] == cells(ax)
    assert [
        "explained (2)",
        "unexplained (1)",
        "unverified (1)",
        "not indexed (1)",
    ] == names(ax.yaxis)
    assert "not indexed (3)" == names(wider.yaxis)[-1]
    assert [grey, empty, empty, grey, empty, empty, grey] == cells(wider)[-1]
    starts = [mpl.dates.num2date(axes.get_xlim()[0]) for axes in (ax, wider)]
    assert [101, 100] == [round((start - GENESIS).total_seconds() / 384) for start in starts]


def test_one_unexplained_epoch_of_a_year_is_visible():
    """Where a column has several epochs, it is filled in the row of each status."""
    year = set(range(1000, 1000 + 82_125))

    ax = plot.index_coverage(index_statuses(explained=year - {40_000}, unexplained=[40_000]))

    red = [column for column, colour in enumerate(cells(ax)[1]) if colour == colours.RED]
    assert [(40_000 - 1000) // 274] == red
    assert {colours.BLUE} == set(cells(ax)[0])
    assert "Epoch (UTC, 274 per column)" == ax.get_xlabel()
    assert "unexplained (1)" == names(ax.yaxis)[1]


def test_index_coverage_of_a_wrong_frame():
    """Another status, and a range without epochs, are errors with a remedy."""
    with pytest.raises(UsageError, match=r"'final' is not the status of an epoch.*bf\.index"):
        plot.index_coverage(index_statuses(final=[1]))
    with pytest.raises(UsageError, match=r"range\(0, 0\) has no consecutive epochs"):
        plot.index_coverage(index_statuses(explained=[1]), epochs=range(0))
    assert plt.get_fignums() == []


def test_validators_are_indices():
    """Values that are not indices reach no axis, legend or hover text."""
    frame = balances().with_columns(validator_index=pl.lit("<script>alert(1)</script>"))

    with pytest.raises(UsageError, match="not indices"):
        plot.coverage(frame)


def test_decimals_beyond_any_chain_are_drawn_or_refused():
    """Amounts of 38 digits raise no internal exception."""
    frame = gas(0, 5).with_columns(rapid_wei=pl.lit(Decimal(10**37)).cast(pl.Decimal(38, 0)))

    ax = plot.gas_fees(frame, unit="wei")
    ax.figure.canvas.draw()

    assert 1e37 == ax.lines[0].get_ydata()[0]
