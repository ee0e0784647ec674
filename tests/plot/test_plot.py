"""What every chart in matplotlib has: notes, errors, units, settings and texts."""

import os
import re
import subprocess
import sys
from decimal import Decimal
from functools import partial
from itertools import combinations, pairwise

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.dates import num2date

from beaconframes import charts, plot
from beaconframes.errors import UsageError
from beaconframes.pandas_frames import to_pandas

from ..support.chart_frames import CHARTS as EVERY
from ..support.chart_frames import (
    GENESIS,
    attestations,
    balances,
    blocks,
    gas,
    income,
    leaderboard,
    produced,
    proposals,
    transfers,
)
from ..support.drawn_charts import legend_labels, split_at_gaps, texts
from ..support.engines import compact


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


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"color": "nocolor"}, "matplotlib refuses color: .*must be a valid color"),
        ({"linewidth": "a"}, "matplotlib refuses linewidth"),
        ({"color": 5}, "matplotlib refuses color"),
        ({"caption": 5}, "caption=5 is not a text"),
    ],
)
def test_invalid_arguments_are_named(argument, message):
    for chart, frame in ((plot.income, income(range(113, 120), [1])), (plot.wall, WALL_ROWS)):
        if chart is plot.income or "caption" in argument:
            with pytest.raises(UsageError, match=message):
                chart(frame, **argument)
    assert [] == plt.get_fignums()


@pytest.mark.parametrize(
    ("chart", "frame"),
    [
        (partial(plot.balances, by="total"), balances()),
        (
            plot.deposits,
            transfers(1, 2).with_columns(
                removed=pl.lit(value=False),
                valid_signature=pl.lit(value=True),
                tx_hash=pl.lit("0xaa"),
                merkletree_index=pl.Series(["0x00", "0x01"]),
            ),
        ),
        (partial(plot.proposals, show="counts"), proposals("proposed", "missed")),
        (partial(plot.attestations, show="distance"), attestations(1)),
    ],
)
def test_rows_that_occur_twice_are_refused(chart, frame):
    """Loads that overlap would double sums and counts."""
    with pytest.raises(UsageError, match="repeat each other"):
        chart(pl.concat([frame, frame]))


WALL = {"x": pl.Int64, "y": pl.Int64, "color": pl.String, "slot": pl.Int64}
WALL_ROWS = pl.DataFrame(schema=WALL)
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
    rows = frame().head(225 if chart.func is plot.calendar else 1)  # It draws whole days.
    others = [other.head(1) for other in others]

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
            marks=[] if name in FUNCTIONS.values() and place % 3 == turn else [pytest.mark.more],
        )
        for place, name in enumerate(
            sorted(CHARTS, key=lambda name: name not in FUNCTIONS.values())
        )
        for turn, kind in enumerate([pl.DataFrame.lazy, to_pandas, compact])
    ],
)
def test_other_frames_draw_the_same(name, kind):
    """Lazy frames, those of pandas, and those with smaller types give the same artists."""
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
        assert np.array_equal(*(np.ma.filled(image.get_array(), -1) for image in (one, other)))


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


# Many labels, two panels, and heatmaps; the others are marked `more`.
@pytest.mark.more
@default("income by component and epoch", "yield of layers", "members", "attestations")
def test_nothing_is_clipped_or_overlaps(chart, frame, others):
    """All text lies within the figure, and tick labels do not overlap."""
    check_texts(chart(frame(), *others))


@one_per_function
def test_keywords_reach_what_a_chart_draws(chart, frame, others):
    """Further keywords go to matplotlib, for the values themselves and not for each reference."""
    ax = chart(frame(), *others, alpha=0.37)

    axes = ax.figure.axes
    artists = [a for each in axes for a in (*each.lines, *each.collections, *each.patches)]
    images = [a for each in axes for a in each.images]
    assert 0.37 in [artist.get_alpha() for artist in (*artists, *images)]


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
    caption = [text for one in ax.figure.axes for text in one.texts][-1]
    assert 5.6 == pytest.approx(caption.get_fontsize())
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


@pytest.mark.long
def test_a_million_slots_are_drawn():
    """X07: a long series draws without an error."""
    slot = pl.int_range(1_000_000, eager=True).alias("slot")
    slots = slot.to_frame().with_columns(
        epoch=slot // 32,
        time=pl.lit(GENESIS).dt.cast_time_unit("us") + pl.duration(seconds=12 * slot),
        status=pl.when(slot % 97 == 0).then(pl.lit("missed")).otherwise(pl.lit("proposed")),
        sync_aggregate_participation=slot % 89 / 100,
    )

    ax = plot.sync_participation(slots, every="slot")
    ax.figure.canvas.draw()

    assert "Missed block (10,310)" in legend_labels(ax)


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
    """Planted fault `stretches > to >=`: neighbors have no gap between them."""
    numbers = pl.Series([3, 4, 6, 6])

    assert [False, True, False] == charts.series.find_gaps(numbers).tolist()
    assert [True, True, False] == charts.series.find_gaps(numbers, most=0).tolist()


def test_a_point_between_gaps_is_isolated():
    """A line does not show it, also at either end; neighbors show each other."""
    values = [1.0, None, 2.0, 3.0, None, 4.0, None]
    y = pl.Series(values, dtype=pl.Float64).to_numpy()

    assert [0, 5] == charts.series.find_isolated_points(y)
    assert [0] == charts.series.find_isolated_points(y[:1])


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
