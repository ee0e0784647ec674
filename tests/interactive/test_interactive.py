"""Charts in plotly: their traces and texts, which match those in matplotlib."""

import inspect
import pickle
import subprocess
import sys
from datetime import timedelta
from functools import partial

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import polars as pl
import pytest
from matplotlib import pyplot as plt
from plotly import graph_objects as go
from plotly import io

from beaconframes import colours, interactive, plot
from beaconframes.errors import UsageError
from beaconframes.interactive import traces
from beaconframes.pandas_frames import to_pandas

from ..support.chart_frames import CHARTS as EVERY
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
    transfers,
    yields,
)

CHARTS = {
    name: (partial(getattr(interactive, chart), **options), frame, others)
    for name, (chart, frame, others, options) in EVERY.items()
}
every_chart = pytest.mark.parametrize(("chart", "frame", "others"), CHARTS.values(), ids=CHARTS)
# What one function does for all charts is tested with one chart; the others are marked `more`.
one_chart = pytest.mark.parametrize(
    ("chart", "frame", "others"),
    [
        pytest.param(*case, id=name, marks=[] if name == "income" else [pytest.mark.more])
        for name, case in CHARTS.items()
    ],
)
FUNCTIONS = {chart: name for name, (chart, *_) in reversed(EVERY.items())}
one_per_function = pytest.mark.parametrize(
    ("chart", "frame", "others"),
    [
        pytest.param(*case, id=name, marks=[] if name in FUNCTIONS.values() else [pytest.mark.more])
        for name, case in CHARTS.items()
    ],
)
NAMES = sorted(FUNCTIONS)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def traces_by_name(figure):
    """The traces by their names."""
    return {trace.name: trace for trace in figure.data if trace.showlegend is not False}


def legend_names(figure):
    """The names in the legend, in its order."""
    known = [t for t in [*figure.data, *figure.layout.shapes] if t.showlegend]
    return [one.name for one in sorted(known, key=lambda one: one.legendrank)]


def notes(figure):
    return [annotation.text for annotation in figure.layout.annotations]


def axes(figure):
    label, _, _ = figure.layout.xaxis.title.text.partition("<br><span")  # The caption follows.
    return label, figure.layout.yaxis.title.text.replace("<br>", " ")


def split_at_gaps(values):
    """The intervals of a line between its gaps."""
    y = np.asarray(values, float)
    return [list(y[run]) for run in np.ma.clump_unmasked(np.ma.masked_invalid(y))]


def moments(values):
    return [np.datetime64(value).item() for value in values]


def test_arguments_of_the_layout():
    """C10: title and size are arguments; one that plotly does not have is an error of one line."""
    rows = income(range(113, 120), [1])

    assert "Mine" == interactive.income(rows, title="Mine").layout.title.text
    layout = interactive.income(rows, figsize=(9, 5)).layout
    assert (900, 500) == (layout.width, layout.height)
    with pytest.raises(UsageError, match=r"figsize=9 is not a width and a height"):
        interactive.income(rows, figsize=9)
    with pytest.raises(UsageError, match=r"^plotly refuses template='plotly_drak'\. Pass.*$"):
        interactive.income(rows, template="plotly_drak")
    with pytest.raises(UsageError, match=r"^plotly refuses bye: Invalid property.*$"):
        interactive.income(rows, bye=1)
    with pytest.raises(UsageError, match=r"^plotly refuses width: Invalid value of type"):
        interactive.income(rows, width="abc")


def test_every_chart_exists_in_both_libraries():
    """Both libraries have the same charts, with the same arguments and defaults."""
    assert {"style", *NAMES} <= set(plot.__all__) & set(interactive.__all__)
    for name in NAMES:
        one = inspect.signature(getattr(plot, name)).parameters
        other = inspect.signature(getattr(interactive, name)).parameters
        assert [str(one[p]) for p in one if p != "ax"] == [str(other[p]) for p in other]
        assert [one[p].kind for p in one if p != "ax"] == [other[p].kind for p in other]


@pytest.mark.parametrize("library", [plot, interactive], ids=lambda library: library.__name__)
def test_every_chart_documents_its_arguments(library):
    """The docstring names shared arguments in words of the library; a pool can pickle it."""
    for name in NAMES:
        chart = getattr(library, name)
        parameters = inspect.signature(chart).parameters
        shared = list(parameters)[list(parameters).index("title") :]
        assert [] == [argument for argument in shared if f"*{argument}*" not in chart.__doc__]
        assert "escape" not in parameters
        assert "{" not in chart.__doc__
        assert pickle.loads(pickle.dumps(chart)) is chart
    second_panel = {plot: "ax.figure.axes[-1]", interactive: "layout.yaxis2"}[library]
    assert f"``{second_panel}``" in library.income.__doc__
    keywords = {plot: "``Axes.bar`` (bars)", interactive: "``Figure.update_layout``"}[library]
    assert f"*kwargs* go to {keywords}" in library.income.__doc__


def test_a_wrong_call_is_an_error_of_python():
    """Missing and repeated arguments, and positions of keywords; the name is that of the chart."""
    with pytest.raises(TypeError, match=r"income\(\) missing 1 required positional argument"):
        interactive.income()
    with pytest.raises(TypeError, match=r"income\(\) got multiple values for argument 'frame'"):
        interactive.income(income(), frame=income())
    with pytest.raises(TypeError, match=r"coverage\(\) takes from 1 to 2 positional arguments"):
        interactive.coverage(balances(), None, "October")
    with pytest.raises(UsageError, match="plotly refuses escape"):
        interactive.luck(balances(range(100)), *EVERY["luck"][2], escape=str)


@one_per_function
def test_labels_match_the_static_chart(chart, frame, others):
    """The axis labels and the legend are those of the static chart."""
    figure = chart(frame(), *others)

    static = getattr(plot, chart.func.__name__)(frame(), *others, **chart.keywords)
    panels = static.get_shared_x_axes().get_siblings(static)
    lower = min(panels, key=lambda panel: panel.bbox.y0)
    assert (lower.get_xlabel(), static.get_ylabel().replace("\n", " ")) == axes(figure)
    legend = static.get_legend()
    names = [text.get_text().replace("\n", " ") for text in legend.get_texts()] if legend else []
    assert names == legend_names(figure) or (not names and not figure.layout.showlegend)
    assert "" == static.get_title()
    assert figure.layout.title.text is None


@every_chart
def test_an_empty_frame_has_a_note(chart, frame, others):
    """An empty frame gives an empty figure with a note, without a scale."""
    figure = chart(frame().head(0), *others)

    (text,) = notes(figure)
    assert "no rows" in text
    assert 0 == len(figure.data)
    assert figure.layout.xaxis.showticklabels is False


@one_per_function
def test_a_frame_of_nulls_has_a_note(chart, frame, others):
    """A frame in which every value is null gives a figure with a note."""
    rows = frame()
    nulls = rows.select(pl.lit(None, dtype).alias(name) for name, dtype in rows.schema.items())

    (text,) = notes(chart(nulls, *others))

    assert "to draw: no " in text
    assert "no rows" not in text


@one_per_function
def test_a_single_point_is_drawn(chart, frame, others):
    """One bucket is visible, and the figure is valid; a bar needs no note."""
    rows = frame().head(225 if chart.func is interactive.calendar else 1)  # It draws whole days.
    others = [other.head(1) for other in others]

    figure = chart(rows, *others)

    assert len(figure.data)
    said = [*notes(figure), figure.layout.xaxis.title.text]
    has_note = any("One " in text or ": one reading, " in text for text in said)
    has_bar = any(trace.type == "bar" for trace in figure.data)
    of_bars = {interactive.income, interactive.withdrawals, interactive.deposits}
    assert has_note != (has_bar and chart.func in of_bars)
    lines = [t for t in figure.data if t.type == "scatter" and t.mode == "lines" and not t.fill]
    dots = [t for t in figure.data if t.type == "scatter" and "markers" in t.mode]
    assert len(lines) <= len(dots)


# The frame is read by the same code as for `plot`, whose test has every chart.
@one_chart
def test_other_frames_draw_the_same(chart, frame, others):
    """Lazy and pandas frames give the same figure."""
    expected = chart(frame(), *others)

    for kind in (pl.DataFrame.lazy, to_pandas):
        # As JSON: a cell without a number is not equal to itself.
        figure = chart(kind(frame()), *(kind(other) for other in others))
        assert expected.to_json() == figure.to_json()


@one_chart
def test_figures_have_no_upload_and_change_no_global_state(chart, frame, others):
    """The upload button is off wherever the figure is shown; the default template stays."""
    before = io.templates.default

    own = chart(frame(), *others).layout.template.layout

    assert {"sendChartToCloud", "sendDataToCloud"} == set(own.modebar.remove)
    assert colours.PAPER == own.paper_bgcolor
    assert before == io.templates.default


def test_style_ends_with_its_block():
    """Inside the block figures have our colours; after it, also after an error, they do not."""
    before = io.templates.default

    def fail():
        with interactive.style():
            figure = go.Figure()
            assert colours.CYCLE == figure.layout.template.layout.colorway
            raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert before == io.templates.default


def test_both_styles_have_the_same_colours():
    """The cycle of one is the colorway of the other."""
    with plot.style(), interactive.style():
        assert list(colours.CYCLE) == list(go.Figure().layout.template.layout.colorway)
        cycle = [f"#{style['color'].lstrip('#')}" for style in mpl.rcParams["axes.prop_cycle"]]
        assert list(colours.CYCLE) == cycle


def test_importing_loads_no_plotly():
    """The module costs nothing until a chart is drawn."""
    code = "import sys, beaconframes.interactive; assert 'plotly' not in sys.modules"

    subprocess.run([sys.executable, "-c", code], check=True)


def test_keyword_arguments_reach_the_layout():
    """Titles are off unless set."""
    figure = interactive.income(income(), title="October", height=300)

    assert ("October", 300) == (figure.layout.title.text, figure.layout.height)


def test_titles_fit_into_the_page_of_a_phone():
    """At 360 pixels, there is room for 40 characters; a figure of a known width has its own."""
    words = " ".join(["income"] * 11)

    title = interactive.income(income(), title=words).layout.title.text
    assert [34, 34, 6] == [len(line) for line in title.split("<br>")]
    assert words == interactive.income(income(), title=words, figsize=(8, 4)).layout.title.text


def test_bars_are_the_exact_sums():
    """0.45 ETH a day, at the start of each day in UTC; incomplete days are hatched."""
    figure = interactive.income(income(range(100, 400)))

    (bars,) = figure.data
    assert pytest.approx([0.026, 0.45, 0.124]) == list(bars.y)
    assert ["2020-12-01", "2020-12-02", "2020-12-03"] == [str(day)[:10] for day in bars.x]
    assert ["/", "", "/"] == list(bars.marker.pattern.shape)
    assert {0.8 * 86_400_000} == set(bars.width)
    y = "Net income per day (ETH)"
    assert ("Day (UTC, hatched where incomplete)", y) == axes(figure)
    assert "priority fees, relay payments not included" in figure.layout.xaxis.title.text
    assert "date" == figure.layout.xaxis.type


def test_components_are_stacked_with_penalties_in_a_panel():
    """The hover text has the amount of each component; the panels share the horizontal axis."""
    figure = interactive.income(
        income(
            attestation_head_reward_gwei=1_000_000,
            attestation_target_penalty_gwei=2_000_000,
            proposer_sync_inclusion_reward_gwei=4_000_000,
        ),
        by="component",
    )

    drawn = {t.name: (round(t.base[0], 9), round(t.y[0], 9)) for t in figure.data}
    assert {
        "Attestations": (0, 0.45),
        "Block proposals": (0.45, 1.8),
        "Attestation penalties": (0, -0.9),
    } == drawn
    assert {"Attestation penalties"} == {t.name for t in figure.data if t.yaxis == "y2"}
    assert "y2" == figure.layout.xaxis.anchor
    assert figure.layout.yaxis.domain[0] > figure.layout.yaxis2.domain[1] == 0.27
    assert "Penalties<br>(ETH)" == figure.layout.yaxis2.title.text
    assert ["Block proposals", "Attestations", "Attestation penalties"] == legend_names(figure)
    assert [1.8] * 3 == pytest.approx(list(traces_by_name(figure)["Block proposals"].customdata))
    assert "overlay" == figure.layout.barmode


def test_components_by_epoch_are_outlined_by_interval():
    """Steps as wide as their epoch; nothing is drawn over a gap."""
    figure = interactive.income(
        income([5, 6, 9], attestation_head_reward_gwei=1_000_000), every="epoch", by="component"
    )

    (area,) = figure.data
    heights = [sorted(set(np.round(run, 9))) for run in split_at_gaps(area.y)]
    assert [[0.0, 0.002], [0.0, 0.002]] == heights
    ends = {(time - GENESIS.replace(tzinfo=None)).total_seconds() / 384 for time in moments(area.x)}
    assert {5, 6, 7, 9, 10} == {round(end, 6) for end in ends}
    assert "toself" == area.fill


def test_few_validators_have_a_line_each():
    """A line and a name per validator; incomplete days are hollow."""
    figure = interactive.income(income(range(100, 500), validators=(30, 4)), by="validator")

    assert ["4", "30"] == legend_names(figure)
    assert "Validator" == figure.layout.legend.title.text
    swatch, line = (trace for trace in figure.data if trace.name == "4")
    assert [colours.PAPER, colours.BLUE, colours.PAPER] == list(line.marker.color)
    assert (colours.BLUE, True, False) == (swatch.marker.color, swatch.showlegend, line.showlegend)


def test_the_legend_is_never_hatched():
    """Z3: the first bar is hatched; the swatch, which plotly takes from it, is not."""
    figure = interactive.income(income(range(100, 400)), by="component")

    swatch, bars = figure.data
    assert ["/", "", "/"] == list(bars.marker.pattern.shape)
    assert (True, False) == (swatch.showlegend, bars.showlegend)
    assert (None, "square") == (swatch.marker.to_plotly_json().get("pattern"), swatch.marker.symbol)
    assert swatch.marker.color == bars.marker.color
    assert swatch.legendgroup == bars.legendgroup


def test_income_with_blocks_is_what_the_proposers_received():
    """M1: the axis has no note; the hover text keeps its unit."""
    frame = income([113], [1], tx_fee_reward_wei=10**15)
    blocks = produced([3616], wei=10**18).with_columns(epoch=113, proposer_index=1)

    fees, paid = (interactive.income(frame, blocks=given) for given in (None, blocks))

    assert [0.001, 1.0] == [figure.data[0].y[0] for figure in (fees, paid)]
    assert "Net income per day (ETH)" == paid.layout.yaxis.title.text
    assert all("ETH<extra>" in figure.data[0].hovertemplate for figure in (fees, paid))


def test_lines_have_gaps_and_isolated_points_have_markers():
    """A line stops where epochs are missing; an isolated point has a marker."""
    figure = interactive.income(income([200, 201, 205]), every="epoch")

    line, alone = figure.data
    assert [2, 1] == [len(run) for run in split_at_gaps(line.y)]
    assert line.connectgaps is False
    assert ("markers", [0.002]) == (alone.mode, list(alone.y))
    assert GENESIS.replace(tzinfo=None) + timedelta(seconds=384 * 205) == moments(alone.x)[0]


def test_balances_are_drawn_in_ether():
    """A single validator, with its effective balance."""
    figure = interactive.balances(balances(range(200, 203), [9]), show="balance")

    assert [32.0, 32.000000001, 32.000000002] == pytest.approx(
        list(traces_by_name(figure)["Balance"].y), rel=1e-15
    )
    assert "dash" == traces_by_name(figure)["Effective balance"].line.dash


def test_yield_is_in_percent():
    """Days as dots, averages as lines."""
    figure = interactive.yield_index(yields())

    assert ["Daily", "7-day average", "31-day average"] == legend_names(figure)
    assert [3.0, 2.993, 2.969] == [round(trace.y[0], 9) for trace in figure.data]
    assert ["markers", "lines", "lines"] == [trace.mode for trace in figure.data]


def test_participation_marks_missed_and_orphaned_slots():
    """They are gaps in the line, and marked in a strip below the data."""
    figure = interactive.sync_participation(blocks("proposed", "missed", "proposed", "orphaned"))

    marks = {name: trace for name, trace in traces_by_name(figure).items() if trace.yaxis == "y2"}
    assert {"Missed block (1)": 1, "Orphaned block (1)": 3} == {
        name: (moments(trace.x)[0] - GENESIS.replace(tzinfo=None)).total_seconds() / 12
        for name, trace in marks.items()
    }
    assert [[50.0], [50.0]] == split_at_gaps(figure.data[0].y)
    assert figure.layout.yaxis2.domain[1] == figure.layout.yaxis.domain[0]


def test_hover_texts_of_members_name_the_validator():
    """The hover text of a member has the validator index, and no text of the data."""
    figure = interactive.sync_members(blocks("proposed", "proposed"), committee())

    (members,) = figure.data
    assert ("5000", "5511") == (members.text[0], members.text[-1])
    assert "validator %{text}" in members.hovertemplate
    assert ["Member", "All members: 50.00 %"] == legend_names(figure)


def test_lines_are_as_wide_as_in_matplotlib():
    """P6: a line of 1.6 points has 1.6 / 72 inches, at 100 pixels per inch."""
    figure = interactive.balances(balances(validators=[7]))

    (line,) = plot.balances(balances(validators=[7])).lines
    assert pytest.approx(line.get_linewidth() * 100 / 72) == figure.data[0].line.width
    seats = interactive.sync_members(blocks("proposed"), committee())
    assert pytest.approx(100 / 72) == seats.layout.shapes[0].line.width


def test_heatmaps_have_hover_texts():
    """A row per validator, from the top; each cell has its time, its validator and its kind."""
    figure = interactive.attestations(attestations(1, 2, None, validators=[7, 70]))

    cells = figure.data[0]
    assert [[1, 2, 3]] * 2 == np.asarray(cells.z).tolist()
    assert ["7", "70"] == list(cells.y)
    assert "Included late (2 slots behind or more)" == cells.text[0][1]
    assert ("category", "reversed") == (figure.layout.yaxis.type, figure.layout.yaxis.autorange)
    start = GENESIS.replace(tzinfo=None) + timedelta(seconds=38_400)
    assert [start + timedelta(seconds=384 * i) for i in range(3)] == moments(cells.x)
    assert (384_000, "middle") == (cells.xperiod, cells.xperiodalignment)
    paints = [paint for _, paint in cells.colorscale]
    assert [colours.BLUE, colours.AMBER, colours.RED] == paints[2::2] == paints[3::2]


def test_pending_attestations_have_a_colour():
    """H4: a duty that can still be included is pending, not missed."""
    frame = attestations(1, None).with_columns(status=pl.Series(["included", "pending"]))

    cells = interactive.attestations(frame).data[0]

    assert [[1, 4]] == np.asarray(cells.z).tolist()
    assert "Pending" == cells.text[0][1]


def test_a_folded_heatmap_shows_shares():
    """For many slots: the share of blocks signed, with missed slots marked above."""
    frame = blocks("missed", *["proposed"] * 1100, signed=1)

    figure = interactive.sync_members(frame, committee([70, 60]), show="matrix")

    assert [[100.0] * 551, [0.0] * 551] == np.asarray(figure.data[0].z).tolist()
    assert "Blocks signed (%)" == figure.data[0].colorbar.title.text
    assert "y2" == traces_by_name(figure)["Missed block (1)"].yaxis


def test_proposals_have_a_trace_per_status():
    """The hover text has validator and time."""
    figure = interactive.proposals(proposals("proposed", "missed", "proposed"))

    assert ["Proposed (2)", "Missed (1)"] == legend_names(figure)
    assert ["3", "3"] == list(traces_by_name(figure)["Proposed (2)"].text)
    assert ("1", "3") == figure.layout.yaxis.ticktext


def test_rewards_of_proposals():
    """Rewards of blocks, in gwei."""
    frame = proposals("proposed", "missed")

    figure = interactive.proposals(frame, produced([100], wei=10**16), unit="gwei")

    assert [1e7] == pytest.approx(list(traces_by_name(figure)["Proposed (1)"].y))
    assert "Execution reward of the block (gwei)" == figure.layout.yaxis.title.text


def test_transfers_are_summed_per_day():
    """Withdrawals and deposits, in ether."""
    frame = transfers(10**9, 2 * 10**9, 5 * 10**9, days=[0, 0, 2])

    assert [3.0, 5.0] == list(interactive.withdrawals(frame).data[0].y)
    assert ["Valid signature", "Invalid signature"] == legend_names(interactive.deposits(frame))


@pytest.mark.parametrize(
    ("every", "near", "far"),
    [("day", [0, 3, 7], [0, 180, 365]), ("week", [0, 49], [0, 371]), ("month", [0, 300], [0, 900])],
)
def test_ticks_of_each_day_week_or_month_need_a_short_range(every, near, far):
    """Three deposits of a year would have 365 labels over each other."""
    ticks = [
        interactive.deposits(
            transfers(*[10**9] * len(days), days=days), every=every
        ).layout.xaxis.dtick
        for days in (near, far)
    ]

    step = {"day": 86_400_000, "week": 7 * 86_400_000, "month": "M1"}[every]
    assert [step, None] == ticks


def test_the_leaderboard_is_horizontal():
    """Bars beside the names of validators, the best at the top."""
    figure = interactive.leaderboard(leaderboard(5, 9, 7), unit="gwei", top=2)

    (bars,) = figure.data
    assert ("h", [90.0, 70.0]) == (bars.orientation, list(bars.x))
    assert ("501", "502") == figure.layout.yaxis.ticktext
    assert (1.5, -0.5) == figure.layout.yaxis.range


def test_gas_fees():
    """One reading is bars, several are lines."""
    assert [4.0, 3.0, 2.0, 1.0] == pytest.approx(
        [trace.y[0] for trace in interactive.gas_fees(gas(0)).data]
    )
    assert 4 == len(legend_names(interactive.gas_fees(gas(0, 5, 10))))


def test_coverage_shows_present_and_missing_rows():
    """A missing row is a cell as well."""
    figure = interactive.coverage(pl.concat([balances([100, 102], [1]), balances([101], [40])]))

    assert [[1, 2, 1], [2, 1, 2]] == np.asarray(figure.data[0].z).tolist()


def test_index_coverage_names_statuses_and_no_validators():
    """The hover text has the time and the status of an epoch."""
    figure = interactive.index_coverage(index_statuses(explained=[100, 102], unexplained=[101]))

    (trace,) = figure.data
    assert [[1, 0, 1], [0, 2, 0], [0, 0, 0], [0, 0, 0]] == np.asarray(trace.z).tolist()
    assert "validator" not in trace.hovertemplate
    assert "unexplained" == trace.text[1][1]


def test_many_points_are_thinned_with_a_note():
    """The lowest and the highest of every group are kept, and a note says so."""
    slot = pl.int_range(100_000, eager=True).alias("slot")
    slots = slot.to_frame().with_columns(
        epoch=slot // 32,
        time=pl.lit(GENESIS).dt.cast_time_unit("us") + pl.duration(seconds=12 * slot),
        status=pl.lit("proposed"),
        sync_aggregate_participation=pl.when(slot == 55_555).then(0.995).otherwise(slot % 89 / 100),
    )
    slots = slots.filter(~slot.is_between(30_000, 40_000))

    figure = interactive.sync_participation(slots, every="slot")

    (line,) = figure.data
    assert len(line.x) <= traces.MAX_POINTS + 10
    assert [0.0, 99.5] == [np.nanmin(line.y), np.nanmax(line.y)]
    assert 2 == len(split_at_gaps(line.y))
    assert ["90,000 points: the lowest and the highest of every 9 neighbors are drawn"] == [
        text.partition(";")[0] for text in notes(figure)
    ]
    assert len(figure.to_json()) < 2_000_000


def test_thinned_lines_are_never_mixed():
    """Many validators over many epochs: a line ends where the next begins."""
    frame = balances(range(200, 1200), range(50)).with_columns(
        balance_gwei=pl.col("validator_index") * 10**9
    )

    figure = interactive.balances(frame)

    crowd = figure.data[0]
    assert len(crowd.x) <= traces.MAX_POINTS + 200
    assert 50 == len(split_at_gaps(crowd.y))
    assert all(1 == len(set(run)) for run in split_at_gaps(crowd.y))


def test_hover_texts_have_no_text_of_the_data():
    """Malicious text in a column is refused or left out of templates, names and labels."""
    bad = "<img src=x onerror=alert(1)>$x$%{x}"
    with pytest.raises(UsageError):
        interactive.proposals(proposals("proposed").with_columns(proposer_index=pl.lit(bad)))
    malicious = [
        interactive.proposals(proposals("proposed", bad)),
        interactive.attestations(
            pl.concat(
                [
                    attestations(1),
                    attestations(2, first=101).with_columns(status=pl.lit(bad)),
                ]
            )
        ),
        interactive.sync_participation(blocks("proposed", bad)),
        interactive.withdrawals(transfers(1).with_columns(address=pl.lit(bad))),
    ]

    for figure in malicious:
        assert "onerror" not in figure.to_json()


def test_saved_pages_load_nothing():
    """A saved page contains all its scripts, and no address to load one from."""
    page = interactive.gas_fees(gas(0)).to_html(include_plotlyjs=True)

    assert '<script src="http' not in page
    assert "cdn.plot.ly/plotly" not in page.split("</script>")[-1]
