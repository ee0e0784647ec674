"""What all charts share: caption, text alternative, themes, size, and room for the legend."""

import json
import re
from datetime import UTC, datetime, timedelta
from itertools import combinations, pairwise

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.text import Text
from matplotlib.ticker import EngFormatter
from plotly import io

from beaconframes import charts, colours, interactive, plot
from beaconframes.charts.caption import _count_validators
from beaconframes.errors import UsageError
from beaconframes.pandas_frames import to_pandas
from beaconframes.plot.canvas import TimeLocator

from ..support.chart_frames import (
    AMOUNTS,
    CHARTS,
    attestations,
    balances,
    blocks,
    committee,
    income,
    leaderboard,
    proposals,
    transfers,
    yields,
)
from ..support.drawn_charts import tick_labels
from ..support.engines import make


def simulated(frame):
    """The frame with the mark of a loader."""
    frame.attrs = {"simulated": True}
    return frame


def caption(ax):
    return " ".join(text.get_text() for text in ax.texts if text.get_gid() == "caption")


@pytest.mark.parametrize(
    ("chart", "frame", "others", "expected"),
    [
        (
            "income",
            lambda: simulated(income()),
            (),
            (
                "2 validators · Dec 2 to Dec 4, 2020 · priority fees, relay payments not included"
                " · simulated data"
            ),
        ),
        (
            "balances",
            lambda: balances(validators=[7]),
            (),
            "1 validator · Dec 2, 2020, 00:03 to 10:37 UTC · effective balance 32 ETH",
        ),
        ("yield_index", yields, (), "Aug 28 to Dec 5, 2023"),
        ("leaderboard", lambda: leaderboard(5, 3, 4), (), "3 validators"),
        (
            "proposals",
            lambda: proposals("proposed", "missed"),
            (),
            "2 validators · Dec 1, 2020, 12:20 UTC",
        ),
        (
            "sync_members",
            lambda: blocks("proposed"),
            (simulated(committee([4, 5])),),
            "2 validators · simulated data",
        ),
        ("income", lambda: income([]), (), ""),
    ],
)
def test_captions_state_validators_range_and_simulation(chart, frame, others, expected):
    """The caption is below the chart, in both libraries; an empty chart has none."""
    rows = frame()
    ax = getattr(plot, chart)(rows, *others)
    figure = getattr(interactive, chart)(rows, *others)

    assert expected == caption(ax)
    title = figure.layout.xaxis.title.text
    assert expected.split(" · ") == (
        title.partition("px'>")[2].removesuffix("</span>").replace("<br>", " · ").split(" · ")
    )


FEES = "(priority fees, relay payments not included)"


@pytest.mark.parametrize(
    ("frame", "options", "expected"),
    [
        (income, {}, f"2 validators earned 1.35 ETH in 3 days {FEES}"),
        (income, {"unit": "gwei"}, f"2 validators earned 1,350,000,000 gwei in 3 days {FEES}"),
        (income, {"cumulative": True}, f"2 validators earned 1.35 ETH in 3 days {FEES}"),
        (
            lambda: income(range(113, 451), [7]),
            {"by": "validator"},
            f"1 validator earned 0.338 ETH in 2 days, some incomplete {FEES}",
        ),
        (
            lambda: income([200, 201], slashing_penalty_gwei=30_512).with_columns(
                tx_fee_reward_wei=pl.lit(None, pl.Decimal(28, 0))
            ),
            {"every": "epoch"},
            (
                "2 validators lost 122,048 gwei in 2 epochs"
                " (consensus layer only, because priority fees are missing)"
            ),
        ),
        (income, {"by": "validator"}, f"2 validators earned 1.35 ETH in 3 days {FEES}"),
        (
            lambda: income([200], slashing_penalty_gwei=0),
            {"every": "epoch"},
            f"2 validators earned 0.00 ETH in 1 epoch {FEES}",
        ),
        (lambda: income([]), {}, ""),
    ],
)
def test_an_automatic_title_states_the_result(frame, options, expected):
    """P11: number of validators, sum with three digits, number of periods, what is missing."""
    ax = plot.income(frame(), title="auto", **options)
    figure = interactive.income(frame(), title="auto", **options)

    assert expected == ax.get_title().replace("\n", " ")
    assert expected == (figure.layout.title.text or "").replace("<br>", " ")
    assert expected in plot.alt_text(ax)


def test_other_charts_have_no_automatic_title():
    with pytest.raises(UsageError, match="no sentence follows from this chart"):
        plot.balances(balances(), title="auto")


@pytest.mark.parametrize(
    ("every", "expected"),
    [("week", "Nov 30 to Dec 13, 2020"), ("month", "Dec 2020"), ("epoch", "Dec 2 to Dec 9, 2020")],
)
def test_the_range_has_the_step_of_the_chart(every, expected):
    """Whole weeks and months; days for epochs of several days."""
    assert expected in caption(plot.income(income(range(113, 1800, 50), [1]), every=every))


def test_the_caption_counts_a_frame_passed_by_name():
    """The frame is the first argument, or a keyword."""
    rows = income(validators=[1, 2])

    assert caption(plot.income(frame=rows)) == caption(plot.income(rows))
    assert "2 validators" in caption(plot.income(frame=rows))


def test_a_caption_can_be_replaced_or_left_out():
    """``caption=`` is the text; an empty one leaves the line out."""
    assert "Our validators" == caption(plot.income(income(), caption="Our validators"))
    assert "" == caption(plot.income(income(), caption=""))
    assert "Day (UTC)" == interactive.income(income(), caption="").layout.xaxis.title.text


@pytest.mark.parametrize("kind", ["polars", "duckdb"])
def test_the_caption_counts_the_validators_of_any_frame(kind):
    """Of a DuckDB relation as of a polars frame; a null is no validator."""
    rows = leaderboard(5, 3, 4)
    unknown = rows.tail(1).with_columns(validator_index=pl.lit(None, pl.Int64))

    assert 3 == _count_validators(nw.from_native(make(kind, pl.concat([rows, unknown]))))
    assert "3 validators" == caption(plot.leaderboard(make(kind, rows)))


@pytest.mark.parametrize(
    "indices",
    [[9, 5, 9, None, 0], [0, 5, 9], [2**40, 7, 2**40, 0], [-1, 2, -1, 1], [0.0, 9.0, 5.0]],
)
def test_the_caption_counts_validators_in_any_order(indices):
    """Sorted or not, large numbers, and what is no index at all: three different ones."""
    rows = pl.DataFrame({"validator_index": indices})

    assert 3 == _count_validators(nw.from_native(rows))


def test_pandas_frames_stay_simulated():
    """Selected rows of a pandas frame have the mark; rows of a polars frame do not."""
    frame = simulated(income())
    rows = to_pandas(frame)

    assert "simulated data" in caption(plot.income(rows[rows["epoch"] < 300]))
    assert "simulated" not in caption(plot.income(frame.filter(pl.col("epoch") < 300)))


def test_alt_text_has_kind_range_and_extremes():
    """Computed by hand: 225 epochs of 0.002 ETH a day; half a day is missing."""
    frame = simulated(income(range(113, 113 + 338)))

    text = (
        "Earnings: bar chart of net income per day (ETH) by day (UTC, hatched where incomplete)."
        " 2 validators, Dec 2 to Dec 3, 2020, priority fees, relay payments not included,"
        " simulated data. Net income: highest 0.45 ETH on Dec 2, 2020,"
        " lowest 0.226 ETH on Dec 3, 2020,"
        " latest 0.226 ETH on Dec 3, 2020."
    )
    assert text == plot.alt_text(plot.income(frame, title="Earnings"))
    assert text == interactive.alt_text(interactive.income(frame, title="Earnings"))


@pytest.mark.parametrize(
    ("chart", "part"),
    [
        ("members", "Highest 100 % for validator 5000, lowest 0 % for validator 5256"),
        ("attestations", "40 % included in the next slot"),
        ("leaderboard", "Highest 5e-08 ETH for validator 500"),
        ("proposals", "Proposed (1), Missed (1), Orphaned (1)"),
        ("yield", "7-day average: latest 2.993 %, highest 2.993 %"),
        ("cumulative income by component", "latest 1.35 ETH on Dec 4, 2020"),
    ],
)
def test_alt_text_of_each_kind_of_chart(chart, part):
    """Points, heatmaps, horizontal bars, a timeline, several lines, and steps."""
    name, frame, others, options = CHARTS[chart]

    assert part.lower() in plot.alt_text(getattr(plot, name)(frame(), *others, **options)).lower()


def test_alt_text_of_penalties_has_the_largest():
    """The extreme of penalties is the lowest value, and no value is -0."""
    frame = income(attestation_head_reward_gwei=10**6, attestation_source_penalty_gwei=10**5)
    once = pl.when(pl.col("epoch") == 400).then(10**6).otherwise(0)
    frame = frame.with_columns(
        attestation_target_penalty_gwei=once, finality_delay_penalty_gwei=once
    )

    text = plot.alt_text(plot.income(frame, by="component"))

    assert "Attestation penalties: latest -0.045 ETH, lowest -0.047 ETH" in text
    assert "Finality delay penalties: latest 0 ETH, lowest -0.002 ETH" in text


def test_alt_text_of_lines_has_the_range_of_all_validators():
    """More than ten validators are one line, which has no latest value."""
    frame = income(range(113, 123), range(12)).with_columns(
        attestation_head_reward_gwei=pl.col("validator_index") * 1000 + 1000
    )

    text = plot.alt_text(plot.income(frame, by="validator", every="epoch"))

    assert re.search(r"Each of 12 validators: 1000 gwei to 12,000 gwei; Median: latest", text), text


def test_alt_text_of_a_timeline_has_no_indices():
    """The heights of a timeline of more than 20 validators are their indices."""
    frame = proposals(*["proposed"] * 60, "missed", proposers=range(30))

    text = plot.alt_text(plot.proposals(frame))

    assert text.endswith(" UTC. Proposed (60), Missed (1).")


def test_alt_text_has_enough_digits_to_distinguish_values():
    """Balances of about 32 ETH, which differ by some gwei."""
    bars = plot.alt_text(plot.withdrawals(transfers(32_000_009_000, 32_000_019_000)))
    lines = plot.alt_text(plot.balances(balances(), show="balance"))

    assert "highest 32.000019 ETH on Dec 2, 2020, lowest 32.000009 ETH on Dec 1, 2020" in bars
    assert "latest 32.000000099 ETH, highest 32.000000099 ETH" in lines


def test_alt_text_of_something_else_is_an_error():
    """Axes and figures without a chart have none."""
    with pytest.raises(UsageError, match=r"Axes has no chart of bf\.plot"):
        plot.alt_text(plt.subplots()[1])
    with pytest.raises(UsageError, match=r"Figure is not a chart of bf\.interactive"):
        interactive.alt_text(io.from_json("{}"))


def test_html_has_the_alt_text(tmp_path):
    """Screen readers find the text at the element of the figure; it cannot end the script."""
    figure = interactive.income(income(), title="</script><b>")
    figure.write_html(tmp_path / "page.html", include_plotlyjs=False, post_script="mine()")
    pages = [(tmp_path / "page.html").read_text(), figure.to_html(include_plotlyjs=False)]

    for page in pages:
        label = page.partition('setAttribute("aria-label", ')[2].partition(");")[0]
        assert interactive.alt_text(figure) == json.loads(label)
        assert "</script><b>" not in page
    assert "mine()" in pages[0]


def contrast(one, other):
    """The contrast of two colours, as WCAG 2 defines it."""
    light, dark = sorted(map(colours.compute_luminance, (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


VISIONS = {
    "usual": np.eye(3),
    # Machado, Oliveira and Fernandes (2009), severity 1, for linear RGB.
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
# Oklab (Ottosson 2020), from linear RGB: cones, and lightness with two axes of hue.
CONES = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
]
HUES = [
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
]
JUST_NOTICEABLE = 2.0
TOLD_APART = 3.5 * JUST_NOTICEABLE


def distance(one, other, vision="usual"):
    """The difference of two colours in Oklab, in percent of that of black and white."""
    places = []
    for colour in (one, other):
        parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        seen = np.clip(np.array(VISIONS[vision]) @ linear, 0, 1)
        places.append(np.array(HUES) @ np.cbrt(np.array(CONES) @ seen))
    return 100 * float(np.linalg.norm(places[0] - places[1]))


def test_the_distance_of_colours_is_that_of_colour_vision():
    """The published coordinates of red; red and green are closer without one kind of cones."""
    for vision in VISIONS:
        assert pytest.approx(100, abs=0.01) == distance("#000000", "#ffffff", vision)
    assert pytest.approx(100 * np.hypot(0.62796, 0.25768), abs=0.01) == distance(
        "#000000", "#ff0000"
    )
    for vision in ("protanopia", "deuteranopia"):
        assert distance("#a05030", "#608030", vision) < 0.7 * distance("#a05030", "#608030")
    assert distance("#3f90da", "#399aa0", "tritanopia") < 0.7 * distance("#3f90da", "#399aa0")


PAPERS = ["#ffffff", "#000000", "#0d1117", "#111111", "#14181f", "#1e1e1e"]
"""White, and the dark backgrounds of matplotlib, GitHub, plotly, the report and notebooks."""


@pytest.mark.parametrize("paper", PAPERS)
def test_colours_are_readable_on_backgrounds(paper):
    """WCAG: 3 for graphics and 4.5 for text; the grid is visible, and fainter than the text."""
    theme = colours.Theme(paper)

    assert (paper != "#ffffff") == theme.is_dark
    for colour in (*colours.CYCLE, *colours.BLUES, colours.TEAL):
        assert contrast(theme.adapt(colour), paper) >= 3, colour
    for colour in (colours.INK, colours.RULE):
        assert contrast(theme.adapt(colour), paper) >= 4.5
    lowest = 1.5 if theme.is_dark else 1.2
    assert lowest <= contrast(theme.adapt(colours.GRID), paper) < 3


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("paper", ["#ffffff", "#111111"])
def test_colours_are_told_apart(paper, vision):
    """All pairs of the colours of lines, and of the shades of one hue."""
    theme = colours.Theme(paper)
    for together in (theme.cycle, [theme.adapt(shade) for shade in colours.BLUES]):
        for one, other in combinations(together, 2):
            assert distance(one, other, vision) >= TOLD_APART, (one, other)


@pytest.mark.parametrize("name", CHARTS)
def test_series_of_a_chart_are_readable_and_told_apart(name):
    """Contrast and distance of what each chart draws; a transparent band is behind its line."""
    build, frame, others, options = CHARTS[name]
    chart = getattr(charts, build)(frame(), *others, **options)
    found = set()
    for layer in (*chart.layers, *(chart.panel.layers if chart.panel else ())):
        if getattr(layer, "opacity", 1) == 1:
            found |= {colour for _, colour in getattr(layer, "kinds", ())}
            found |= {getattr(layer, "colour", None)} - {None}
    found.discard(colours.GRID)  # Cells of validators that are not active.
    for paper in ("#ffffff", "#111111"):
        drawn = [colours.Theme(paper).adapt(colour) for colour in found]
        for colour in drawn:
            assert contrast(colour, paper) >= 3, colour
        for vision in VISIONS:
            for one, other in combinations(drawn, 2):
                assert distance(one, other, vision) >= TOLD_APART, (one, other, vision)


@pytest.mark.more
def test_labels_of_the_panels_of_a_small_chart_are_not_cut():
    """Step 12, 9: two panels, six lines in the legend and a caption in 360 by 300 pixels."""
    figure = plot.yield_index(yields(), split=True, figsize=(3.6, 3)).figure
    figure.draw_without_rendering()

    upper, lower = (ax.yaxis.label.get_window_extent() for ax in figure.axes)
    assert upper.y1 <= figure.bbox.y1 + 1
    assert lower.y1 <= upper.y0 + 1


def test_thousands_are_separated_in_both_libraries():
    """7,000 ETH of deposits: matplotlib wrote 7000."""
    ax = plot.deposits(transfers(3_000 * 10**9, 7_000 * 10**9, 10**9))
    ax.figure.draw_without_rendering()

    labels = tick_labels(ax.yaxis)
    assert {"0", "5,000"} <= set(labels) or {"0", "6,000"} <= set(labels)


def test_texts_of_a_narrow_chart_are_whole():
    """At 390 pixels: a title of 38 letters, six names in the legend, ticks of a colour bar."""
    size = {"figsize": (3.9, 4.2)}
    titled = plot.income(income(), title="3 validators earned 0.0501 ETH in 6 days", **size)
    named = plot.yield_index(yields(), split=True, **size).figure.axes[1]
    days = pl.concat(
        income(range(start, start + 225), attestation_head_reward_gwei=reward)
        for start, reward in zip((113, 338, 563), (33_000, 33_400, 33_700), strict=True)
    )
    (_, bar) = plot.calendar(days, **size).figure.axes
    for ax in (titled, named, bar):
        ax.figure.set_dpi(100)
        ax.figure.draw_without_rendering()

    for text in (titled.title, *named.get_legend().get_texts()):
        box, whole = text.get_window_extent(), text.figure.bbox
        assert whole.x0 <= box.x0 <= box.x1 <= whole.x1, text.get_text()
    first, last = bar.get_xlim()
    ticks = [tick for tick in bar.xaxis.get_major_ticks() if first <= tick.get_loc() <= last]
    boxes = [tick.label1.get_window_extent() for tick in ticks]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_a_dark_theme_of_matplotlib_is_respected():
    """Background and text are those of the theme; lines, hatches and grid are readable on it."""
    with plt.style.context("dark_background"):
        frame = income(range(100, 400), slashing_penalty_gwei=1_000_000)
        ax = plot.income(frame, by="component").figure.axes[1]
        line = plot.sync_members(blocks("proposed"), committee([1, 2])).lines[1]

    assert "#000000" == to_hex(ax.figure.get_facecolor()) == to_hex(ax.get_facecolor())
    for text in (
        ax.xaxis.label,
        ax.yaxis.label,
        *ax.get_xticklabels(),
        *ax.figure.axes[0].get_legend().get_texts(),
    ):
        assert "#ffffff" == to_hex(text.get_color())
    hatched = [bar for bar in ax.patches if bar.get_hatch()]
    assert {"#000000"} == {to_hex(bar.get_edgecolor()) for bar in hatched}
    assert contrast("#000000", to_hex(line.get_color())) > 4.5
    assert contrast("#000000", to_hex(ax.get_ygridlines()[0].get_color())) < 3
    assert "#ffffff" == to_hex(plot.income(frame).figure.get_facecolor())


def test_dark_axes_of_the_caller_are_respected():
    """The background of the Axes decides, not the current settings."""
    with plt.style.context("dark_background"):
        ax = plt.subplots(layout="constrained")[1]

    plot.income(income([5]), by="validator", ax=ax)

    (note,) = (text for text in ax.texts if "only" in text.get_text())
    assert "#ffffff" == to_hex(note.get_color())
    assert "#000000" == to_hex(note.get_bbox_patch().get_facecolor())


@pytest.mark.parametrize("default", [True, False])
def test_a_dark_template_of_plotly_is_respected(default, monkeypatch):
    """As an argument and as plotly's default; our margins stay."""
    frame = income(range(100, 400), slashing_penalty_gwei=1_000_000)
    if default:
        monkeypatch.setattr(io.templates, "default", "plotly_dark")
    figure = interactive.income(frame, **{} if default else {"template": "plotly_dark"})
    monkeypatch.undo()

    layout = figure.layout.template.layout
    assert ("rgb(17,17,17)", "#f2f5fa") == (layout.paper_bgcolor, layout.font.color)
    assert layout.xaxis.automargin
    assert "#111111" == figure.data[0].marker.pattern.fgcolor
    assert colours.PAPER == interactive.income(frame).layout.template.layout.paper_bgcolor


def test_size_and_title_are_arguments():
    """Inches for a new figure; with the caller's Axes, a size is an error."""
    ax = plot.income(income(), title="Mine", figsize=(4, 3))

    assert ("Mine", (4, 3)) == (ax.get_title(), tuple(ax.figure.get_size_inches()))
    for wrong in ((4,), "wide", (0, 3), 4):
        with pytest.raises(UsageError, match="is not a width and a height"):
            plot.income(income(), figsize=wrong)
    with pytest.raises(UsageError, match=r"ax= is part of another figure.*plt\.subplots\(figsize"):
        plot.income(income(), figsize=(4, 3), ax=ax)


@pytest.mark.parametrize("wrong", [[plt.Axes], "figure", plt.figure])
def test_other_objects_than_axes_are_refused(wrong):
    """The whole array of ``plt.subplots``, or a figure."""
    given = plt.figure() if callable(wrong) else wrong

    with pytest.raises(UsageError, match=r"ax= is a \w+, not Axes.*axes\[0\]"):
        plot.income(income(), ax=given)


def test_a_dollar_is_no_formula():
    """In a title and in a caption: "$x_$" would be an invalid formula."""
    ax = plot.income(income(), title="$x_$, 1 ETH", caption="$y_$")
    ax.figure.canvas.draw()

    texts = [text for text in ax.figure.findobj(Text) if "$" in text.get_text()]
    assert {"$x_$, 1 ETH", "$y_$"} == {text.get_text() for text in texts}


def test_a_title_is_a_text():
    """Static and interactive."""
    for library in (plot, interactive):
        with pytest.raises(UsageError, match="title=2026 is not a text"):
            library.income(income(), title=2026)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "inches", [2.2, 9, *(pytest.param(n, marks=pytest.mark.more) for n in (3, 4, 6))]
)
@pytest.mark.parametrize(
    "epochs", [450, 675, *(pytest.param(n, marks=pytest.mark.more) for n in (600, 674))]
)
def test_ticks_of_up_to_three_days_fit(epochs, inches):
    """Two or more ticks, and no warning of matplotlib."""
    ax = plot.income(income(epochs=range(113, 113 + epochs)), every="epoch", figsize=(inches, 2.5))
    ax.figure.draw_without_rendering()

    low, high = ax.get_xlim()
    shown = [tick for tick in ax.get_xticks() if low <= tick <= high]
    assert 2 <= len(shown) <= 9


@pytest.mark.more
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "inches", [2.2, 5, *(pytest.param(n, marks=pytest.mark.more) for n in (3, 3.6))]
)
@pytest.mark.parametrize(
    "days", [400, 1090, *(pytest.param(n, marks=pytest.mark.more) for n in (560, 730, 900))]
)
def test_ticks_of_one_to_three_years_fit(days, inches):
    """Two or more ticks, and no warning of matplotlib."""
    ax = plot.withdrawals(transfers(10**9, 10**9, days=[0, days]), figsize=(inches, 2.5))
    ax.figure.draw_without_rendering()

    low, high = ax.get_xlim()
    shown = [tick for tick in ax.get_xticks() if low <= tick <= high]
    assert 2 <= len(shown) <= 9


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("most", [3, 4, 8])
@pytest.mark.parametrize("seconds", [100, 170, 4000, 10_000, 200_000])
def test_ticks_of_any_range_have_no_warning(seconds, most):
    """Less than three minutes or hours on a narrow axis."""
    locator = TimeLocator("UTC", 3, most)
    begin = datetime(2026, 10, 1, 12, 0, 23, tzinfo=UTC)

    assert 1 < len(locator.tick_values(begin, begin + timedelta(seconds=seconds)))


def test_a_legend_leaves_room_for_a_small_chart():
    """Seven labels below a chart for one column of print: the panels have a third of the height."""
    amounts = dict.fromkeys(AMOUNTS, 1_000_000)
    ax = plot.income(income(**amounts), by="component", figsize=(3.5, 2.8))
    figure = ax.figure
    figure.draw_without_rendering()

    panels = sum(axes.get_window_extent().height for axes in figure.axes)
    assert panels > figure.bbox.height / 3


def test_numbers_at_ticks_are_texts():
    """Formulas are slow to parse: only the power of ten is one."""
    ax = plot.balances(balances(), by="total", unit="eth")
    ax.figure.draw_without_rendering()

    labels = [label.get_text() for label in ax.yaxis.get_ticklabels()]
    assert labels
    assert not any("$" in label for label in labels)
    assert "$\\times" in ax.yaxis.get_offset_text().get_text()


def test_a_number_format_of_the_caller_is_respected():
    """It belongs to the axes that the caller passes."""
    ax = plt.figure().subplots()
    ax.yaxis.set_major_formatter(EngFormatter())

    plot.income(income(), ax=ax)

    assert isinstance(ax.yaxis.get_major_formatter(), EngFormatter)


@pytest.mark.parametrize("layout", [None, pytest.param("constrained", marks=[pytest.mark.more])])
def test_a_grid_of_charts_has_no_legend_over_a_neighbor(layout):
    """The legend is below its chart, or inside where the figure makes no room for it."""
    figure, grid = plt.subplots(2, 2, figsize=(10, 7), layout=layout)
    upper = plot.income(income(), by="component", ax=grid[0, 0])
    lower = plot.attestations(attestations(1, 2, None, 3), ax=grid[1, 1])
    figure.canvas.draw()

    for ax in (upper, lower):
        around = [ax.get_legend(), *(text for text in ax.texts if text.get_visible())]
        boxes = [one.get_window_extent() for one in around]
        for other in (one for one in grid.flat if one is not ax):
            assert not any(other.get_tightbbox().overlaps(box) for box in boxes)
    box = lower.get_legend().get_window_extent()
    is_inside = lower.bbox.x0 <= box.x0 < box.x1 <= lower.bbox.x1 and lower.bbox.y0 <= box.y0
    assert is_inside == (layout is None)
    if layout is not None:
        assert box.y1 <= lower.xaxis.label.get_window_extent().y0 + 1


def test_plotly_axis_titles_are_clear_of_the_ticks():
    """Margins grow with the tick labels, and titles keep their distance; legends are below."""
    layout = interactive.income(income(), by="component").layout.template.layout

    for axis in (layout.xaxis, layout.yaxis):
        assert axis.automargin
        assert axis.title.standoff >= 12
    assert ("h", "container", 0) == (layout.legend.orientation, layout.legend.yref, layout.legend.y)
