"""Charts in matplotlib: their artists, notes, errors and settings."""

import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import combinations, pairwise

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import polars as pl
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.dates import date2num, num2date

from beaconframes import charts, interactive, plot
from beaconframes.errors import UsageError
from beaconframes.units import to_pandas

from ..support.chart_frames import CHARTS as EVERY
from ..support.chart_frames import GENESIS, blocks, committee, income, yields

FEES_ONLY = "priority fees, relay payments not included"


@pytest.mark.parametrize(
    ("chart", "argument", "remedy"),
    [
        (plot.income, {"ylim": (0, 9)}, "ylim=. Set it on the result: .set_ylim(...)"),
        (plot.wall, {"xlim": (0, 9)}, "xlim=. Set it on the result: .set_xlim(...)"),
        (plot.income, {"bye": "day"}, "bye=, and matplotlib refuses it. The documentation of the"),
    ],
)
def test_unknown_arguments_have_a_remedy(chart, argument, remedy):
    """C10: one line instead of a traceback of matplotlib; no figure is left behind."""
    is_wall = chart is plot.wall
    frame = pl.DataFrame(schema=WALL) if is_wall else income(range(113, 120), [1])
    with pytest.raises(UsageError) as caught:
        chart(frame, **argument)
    assert f"no argument {remedy}" in str(caught.value)
    assert [] == plt.get_fignums()


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


WALL = {"x": pl.Int64, "y": pl.Int64, "color": pl.String, "slot": pl.Int64}
CHARTS = {
    name: (partial(getattr(plot, chart), **options), frame, others)
    for name, (chart, frame, others, options) in EVERY.items()
}
every_chart = pytest.mark.parametrize(("chart", "frame", "others"), CHARTS.values(), ids=CHARTS)


def default(*names):
    """Parametrize over every chart; those that are not in *names* are marked `more`."""
    cases = [
        pytest.param(*case, id=name, marks=[] if name in names else [pytest.mark.more])
        for name, case in CHARTS.items()
    ]
    return pytest.mark.parametrize(("chart", "frame", "others"), cases)


# Every kind of layer: bars, a line, steps, points and a heatmap with a reference line.
one_per_layer = default("income", "income by epoch", "income by component and epoch", "members")
# One chart of each function; the others have the same axes. `interactive` tests the notes of all.
FUNCTIONS = {chart: name for name, (chart, *_) in reversed(EVERY.items())}
one_per_function = default(*FUNCTIONS.values())


def bar_times(bars):
    """The time at the centre of each bar."""
    return [num2date(bar.get_x() + bar.get_width() / 2) for bar in bars]


def texts(ax):
    return [text.get_text() for text in ax.texts]


def caption(ax):
    lower = ax.figure.axes[-1]
    (text,) = (text.get_text() for text in lower.texts if text.get_gid() == "caption")
    return text


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def split_at_gaps(line):
    """The intervals of a line between its gaps."""
    y = np.asarray(line.get_ydata(), float)
    return [list(y[run]) for run in np.ma.clump_unmasked(np.ma.masked_invalid(y))]


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
    ] == labels(ax)
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

    assert ["4", "30"] == labels(ax)
    assert "Validator" == ax.get_legend().get_title().get_text()
    named = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
    assert pytest.approx([13e6, 225e6, 162e6]) == list(named["4"].get_ydata())
    hollow = [line for line in ax.lines if line.get_label().startswith("_")]
    assert [pytest.approx([13e6, 162e6])] * 2 == [list(line.get_ydata()) for line in hollow]
    assert "Net income per day and validator (gwei)" == ax.get_ylabel()
    assert FEES_ONLY in caption(ax)


def test_many_validators_are_grey_lines_with_a_median():
    """Up to 50 lines, more than colours: all in grey, separated by gaps, and the median."""
    frame = income(validators=range(50)).with_columns(
        attestation_head_reward_gwei=pl.col("validator_index") * 1_000_000
    )

    ax = plot.income(frame, by="validator")

    assert ["Each of 50 validators", "Median"] == labels(ax)
    crowd, median = ax.lines[:2]
    assert [3] * 50 == [len(part) for part in split_at_gaps(crowd)]
    assert pytest.approx([24.5 * 0.225] * 3) == list(median.get_ydata())


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


def test_far_extremes_do_not_hide_the_others():
    """One of 101 validators earns 1,000 times as much: the axis ends near the others."""
    amount = (
        pl.when(pl.col("validator_index") == 100)
        .then(10**9)
        .otherwise(10**6 + 1000 * pl.col("validator_index"))
    )
    frame = income(validators=range(101)).with_columns(attestation_head_reward_gwei=amount)

    ax = plot.income(frame, by="validator")
    figure = interactive.income(frame, by="validator")

    assert "Lowest to highest\n(0.225 to 225)" in labels(ax)
    low, high = ax.get_ylim()
    assert 0.2 < low < 0.225 * 1.01
    assert 0.225 * 1.09 < high < 0.3
    assert high == figure.layout.yaxis.autorangeoptions.maxallowed


def test_two_charts_share_an_axes():
    """Charts draw on the axes of the caller, and keyword arguments reach the bars."""
    _, (left, right) = plt.subplots(ncols=2)

    assert left is plot.income(income(), ax=left, color="#123456")
    plot.income(income(validators=[1]), ax=left, color="red", width=timedelta(hours=2))

    assert {"#123456", "#ff0000"} == {to_hex(bar.get_facecolor()) for bar in left.patches}
    assert 6 == len(left.patches)
    assert not right.has_data()


def test_yield_is_in_percent():
    """Days as dots, the two averages as lines, in percent a year."""
    ax = plot.yield_index(yields())

    daily, week, month = ax.lines
    assert ["Daily", "7-day average", "31-day average"] == labels(ax)
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


def test_participation_marks_missed_and_orphaned_slots():
    """They are gaps in the line, and each status has a marker."""
    frame = blocks("proposed", "proposed", "missed", "proposed", "orphaned", "scheduled")

    ax = plot.sync_participation(frame)

    line, missed, orphaned = ax.lines
    assert [[50.0, 50.0], [50.0]] == split_at_gaps(line)
    assert ["All seats", "Missed block (1)", "Orphaned block (1)"] == labels(ax)
    assert [2, 4] == [
        round((num2date(mark.get_xdata(False)[0]) - GENESIS).total_seconds() / 12)
        for mark in (missed, orphaned)
    ]
    assert "Sync committee participation (% of seats)" == ax.get_ylabel()
    assert "Slot (UTC)" == ax.get_xlabel()


def test_participation_is_not_drawn_through_absent_slots():
    """Slots that are not in the frame are gaps as well."""
    frame = pl.concat([blocks("proposed", "proposed"), blocks("proposed", "proposed", first=9)])

    assert [2, 2] == [len(part) for part in split_at_gaps(plot.sync_participation(frame).lines[0])]


def test_participation_by_epoch():
    """The mean of each epoch, and a band from its lowest to its highest block."""
    low, high = blocks(*["proposed"] * 16, signed=128), blocks(*["proposed"] * 16, first=16)
    later = blocks(*["proposed"] * 32, first=32)

    ax = plot.sync_participation(pl.concat([low, high, later]), every="epoch")

    assert [37.5, 50.0] == list(ax.lines[0].get_ydata())
    heights = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (25.0, 50.0) == (heights.min(), heights.max())
    assert ["All seats", "Lowest to highest block"] == labels(ax)


def test_participation_of_selected_seats():
    """Rows of committees draw a second line: the seats in them alone."""
    mine = committee().filter(pl.col("seat").is_in([0, 1, 300, 301]))

    ax = plot.sync_participation(blocks("proposed", "proposed", signed=128), mine)

    all_seats, chosen = ax.lines
    assert [25.0, 25.0] == list(all_seats.get_ydata())
    assert [50.0, 50.0] == list(chosen.get_ydata())
    assert ["All seats", "Selected seats"] == labels(ax)


def test_every_member_without_a_signature_is_named():
    """Eleven of 22 members signed no block: all of them are named, not only the five lowest."""
    frame = pl.concat([blocks("proposed", signed=11), blocks("proposed", signed=10, first=1)])

    ax = plot.sync_members(frame, committee(range(100, 122)))

    note = texts(ax)[0]
    idle = "Signed no block (11): " + ", ".join(map(str, range(111, 122)))
    assert f"{idle} Lowest of the others: validator 110: 50.0 %" == note.replace("\n", " ")


def test_members_are_ranked():
    """Best first, in percent, with the mean of all and the names of the lowest."""
    ax = plot.sync_members(blocks("proposed", "proposed"), committee())

    dots, mean = ax.lines
    assert list(range(1, 513)) == list(dots.get_xdata())
    assert [100.0] * 256 + [0.0] * 256 == list(dots.get_ydata())
    assert [50.0, 50.0] == list(mean.get_ydata())
    assert ["Member", "All members: 50.00 %"] == labels(ax)
    assert texts(ax)[0].startswith("Signed no block (256): 5256, 5257, 5258,")
    assert "and 196 more" in texts(ax)[0].replace("\n", " ")
    assert "Lowest" not in texts(ax)[0]
    assert ("Member, best first", "Blocks signed (%)") == (ax.get_xlabel(), ax.get_ylabel())


def test_few_members_are_named():
    """Up to twenty members have a tick label with their index."""
    ax = plot.sync_members(blocks("proposed", signed=1), committee([77, 66, 55]))

    assert ["77", "55", "66"] == [tick.get_text() for tick in ax.get_xticklabels()]


@one_per_function
def test_an_empty_frame_has_a_note(chart, frame, others):
    """X07: an empty frame gives an empty chart with a note, without a scale."""
    ax = chart(frame().head(0), *others)

    (text,) = ax.texts
    assert (0.5, 0.5) == text.get_position()
    assert "no rows" in text.get_text()
    assert [] == list(ax.get_xticks())
    ax.figure.draw_without_rendering()


@one_per_function
def test_a_frame_of_nulls_has_a_note(chart, frame, others):
    """X07: a frame in which every value is null gives a chart with a note."""
    rows = frame()

    ax = chart(
        rows.select(pl.lit(None, dtype).alias(name) for name, dtype in rows.schema.items()), *others
    )

    (text,) = ax.texts
    assert "to draw: no " in text.get_text()
    assert "no rows" not in text.get_text()
    ax.figure.draw_without_rendering()


@one_per_function
def test_a_single_point_is_visible_with_a_note(chart, frame, others):
    """X07: one bucket is visible, and a note says that it is the only one; a bar needs none."""
    rows, others = frame().head(1), [other.head(1) for other in others]

    ax = chart(rows, *others)
    said = [*texts(ax), ax.get_xlabel()]

    has_note = any(re.fullmatch(r"One .* only|One reading: .*", text) for text in said)
    has_bar = any(isinstance(artist, BarContainer) for artist in ax.containers)
    assert has_note != (has_bar and chart.func in {plot.income, plot.withdrawals, plot.deposits})
    assert ax.has_data()
    left, right = ax.get_xlim()
    assert right - left < 200
    ax.figure.draw_without_rendering()


# One chart of each function with one kind of frame, in turn; the others are marked `more`.
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(
            name,
            kind,
            marks=[] if name in FUNCTIONS.values() and place % 2 == turn else [pytest.mark.more],
        )
        for place, name in enumerate(
            sorted(CHARTS, key=lambda name: name not in FUNCTIONS.values())
        )
        for turn, kind in enumerate([pl.DataFrame.lazy, to_pandas])
    ],
)
def test_other_frames_draw_the_same(name, kind):
    """Lazy and pandas frames give the same artists."""
    chart, frame, others = CHARTS[name]
    expected = chart(frame(), *others)

    ax = chart(kind(frame()), *(kind(other) for other in others))

    assert [bar.get_height() for bar in expected.patches] == [
        bar.get_height() for bar in ax.patches
    ]
    assert len(expected.lines) == len(ax.lines)
    for one, other in zip(expected.lines, ax.lines, strict=True):
        assert np.array_equal(one.get_xydata(), other.get_xydata(), equal_nan=True)
    for one, other in zip(expected.images, ax.images, strict=True):
        assert np.array_equal(one.get_array(), other.get_array())


@every_chart
def test_missing_columns_are_named_with_their_loader(chart, frame, others):
    """The error has the column and its loader, before a figure is made."""
    with pytest.raises(UsageError, match=r"no column .*bf\.(load_|index\()"):
        chart(frame().select(pl.lit(1).alias("other")), *others)

    assert [] == plt.get_fignums()


def test_unknown_options_are_refused():
    """An unknown option lists the choices, before a figure is made."""
    for options in ({"every": "year"}, {"unit": "ether"}, {"by": "epoch"}, {"by": ["total"]}):
        with pytest.raises(UsageError, match="is not valid"):
            plot.income(income(), **options)
    with pytest.raises(UsageError, match='"slot", "epoch"'):
        plot.sync_participation(blocks("proposed"), every="day")

    assert [] == plt.get_fignums()


@one_per_layer
def test_charts_change_no_global_state(chart, frame, others):
    """Settings are the same before and after, and the caller's axes keep their style."""
    before = dict(mpl.rcParams)
    _, foreign = plt.subplots(facecolor="black")
    face = foreign.get_facecolor()

    chart(frame(), *others)
    chart(frame(), *others, ax=foreign)

    assert before == dict(mpl.rcParams)
    assert face == foreign.get_facecolor()


def test_style_ends_with_its_block():
    """Inside the block the colours are ours; after it, also after an error, they are not."""
    before = mpl.rcParams["axes.prop_cycle"]

    def fail():
        with plot.style():
            assert "#3f90da" == to_hex(mpl.rcParams["patch.facecolor"])
            assert 10 == len(mpl.rcParams["axes.prop_cycle"])
            raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert before == mpl.rcParams["axes.prop_cycle"]


def test_importing_changes_no_settings_and_loads_no_client():
    """Charts and wall apply no style, and import nothing of the service."""
    code = (
        "import matplotlib as mpl, sys; before = dict(mpl.rcParams)\n"
        "import beaconframes.plot, beaconframes.wall\n"
        "assert before == dict(mpl.rcParams)\n"
        "print(*sorted({name.split('.')[1] for name in sys.modules"
        " if name.startswith('beaconframes.')}))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    loaded = set(done.stdout.split())
    assert {"analysis", "plot", "wall"} <= loaded
    assert not {"client", "dataset", "endpoint", "service", "v1", "v2"} & loaded


@pytest.mark.more
def test_notebooks_stay_interactive(tmp_path):
    """A backend that becomes interactive on first use, as in notebooks, stays interactive."""
    (tmp_path / "inline.py").write_text(
        "import matplotlib\n"
        "from matplotlib.backends.backend_agg import FigureCanvas\n"
        "matplotlib.interactive(True)\n"
    )
    code = (
        "import matplotlib.pyplot as plt\n"
        "from beaconframes import plot\n"
        "with plot.style():\n"
        "    plt.subplots()\n"
        "assert plt.isinteractive()\n"
    )

    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "module://inline"},
    )


@one_per_function
def test_nothing_is_clipped_or_overlaps(chart, frame, others):
    """All text lies within the figure, and tick labels do not overlap."""
    check_texts(chart(frame(), *others))


# Two panels, and a heatmap; the others are marked `more`.
@default("yield of layers", "attestations")
def test_charts_are_readable_on_a_phone(chart, frame, others):
    """At 360 pixels, no text is clipped, and neither legend nor caption covers another text."""
    ax = chart(frame(), *others, figsize=(3.6, 3.8), title="A title")

    assert (360, 380) == tuple(100 * ax.figure.get_size_inches())
    check_texts(ax)


@default("yield of layers")
def test_charts_fit_into_a_column_of_print(chart, frame, others):
    """Step 12: with a font of 7 points, a chart is readable in a column of 3.4 inches."""
    with plot.style(font_size=7):
        ax = chart(frame(), *others, figsize=(3.4, 3))
        own = plt.figure().text(0, 0, "own")

    assert [7, 7] == [ax.xaxis.label.get_fontsize(), own.get_fontsize()]
    assert 5.6 == pytest.approx(ax.figure.axes[-1].texts[-1].get_fontsize())  # the caption
    check_texts(ax)
    assert 10 == chart(frame(), *others).xaxis.label.get_fontsize()
    for size in (0, "7", True):
        with pytest.raises(UsageError, match="is not a size"), plot.style(font_size=size):
            pass


def check_texts(ax):
    figure = ax.figure
    figure.canvas.draw()
    whole = figure.bbox
    panels = sorted(ax.get_shared_x_axes().get_siblings(ax), key=lambda one: -one.bbox.y0)
    lower = panels[-1]  # It has the tick labels.
    titles = [text for text in (ax.title, lower.xaxis.offsetText) if text.get_text()]
    titles += [lower.xaxis.label, *(panel.yaxis.label for panel in panels)]
    shown = [*titles, *ax.texts, *lower.texts]
    first, last = ax.get_xlim()
    ticks = [
        tick.label1 for tick in lower.xaxis.get_major_ticks() if first <= tick.get_loc() <= last
    ]
    legend = ax.get_legend() or lower.get_legend()
    if legend:
        shown += legend.get_texts()
    for text in (*shown, *(tick for tick in ticks if tick.get_text())):
        box = text.get_window_extent()
        assert whole.x0 <= box.x0 <= box.x1 <= whole.x1, text.get_text()
        assert whole.y0 <= box.y0 <= box.y1 <= whole.y1, text.get_text()
    spans = sorted(
        (tick.get_window_extent().x0, tick.get_window_extent().x1)
        for tick in ticks
        if tick.get_text()
    )
    assert all(end < start for (_, end), (start, _) in pairwise(spans))
    around = [*titles, *ticks, *([legend] if legend else [])]
    around += [text for text in lower.texts if text.get_gid() == "caption"]
    boxes = [(one, one.get_window_extent()) for one in around]
    for (one, box), (other, second) in combinations(boxes, 2):
        if min(box.width, box.height, second.width, second.height) > 0:
            assert not box.overlaps(second), (one, other)


@pytest.mark.more
def test_a_million_slots_are_drawn():
    """X07: a long series draws without an error."""
    slot = pl.int_range(1_000_000, eager=True).alias("slot")
    slots = slot.to_frame().with_columns(
        epoch=slot // 32,
        time=pl.lit(GENESIS).dt.cast_time_unit("us") + pl.duration(seconds=12 * slot),
        status=pl.when(slot % 97 == 0).then(pl.lit("missed")).otherwise(pl.lit("proposed")),
        sync_aggregate_participation=slot % 89 / 100,
    )

    ax = plot.sync_participation(slots)
    ax.figure.canvas.draw()

    assert "Missed block (10,310)" in labels(ax)


def test_extreme_values_are_a_chart_or_a_message():
    """X07: amounts beyond any chain are refused; invalid participation is a gap."""
    for name, value, dtype in (
        ("tx_fee_reward_wei", 10**37, pl.Decimal(38, 0)),
        ("tx_fee_reward_wei", 9 * 10**37, pl.Decimal(38, 0)),
        ("slashing_reward_gwei", 2**63 - 1, pl.Int64),
    ):
        frame = income([5, 6]).with_columns(pl.lit(Decimal(value)).cast(dtype).alias(name))
        with pytest.raises(UsageError, match="more than a chain has"):
            plot.income(frame)

    wild = blocks(*["proposed"] * 4).with_columns(
        sync_aggregate_participation=pl.Series([0.5, float("nan"), float("inf"), 0.5])
    )
    assert [[50.0], [50.0]] == split_at_gaps(plot.sync_participation(wild).lines[0])


def test_far_future_epochs_stay_off_the_axis():
    """V06: a row with the far-future epoch has no time and does not extend the axis."""
    never = income([2**62]).with_columns(time=pl.lit(None, pl.Datetime("us", "UTC")))

    ax = plot.income(pl.concat([income(), never]), every="epoch")

    assert 2020 == num2date(ax.get_xlim()[1]).year
