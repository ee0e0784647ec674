"""Charts of luck in proposals and sync committees."""

import polars as pl
import pytest

from beaconframes import charts, colours, interactive, plot
from beaconframes.charts.model import Points
from beaconframes.errors import UsageError

from ..support.chart_frames import balances, committee, proposals, totals
from ..support.drawn_charts import caption, legend_labels, lines_by_name, tick_labels


def luck_frames():
    """Validators 1 and 2 of 4 in 100 epochs: 800 proposals each, and 128 of the 512 seats."""
    blocks = proposals(*["proposed"] * 860, "missed", proposers=(1,), first=0)
    members = committee([*[1] * 128, *[2] * 250, *[3] * 134])
    return balances(range(100)), totals(range(100)), blocks, members


def test_luck_compares_actual_with_expected_numbers():
    """1,600 proposals are expected, 861 assigned; 256 seats are expected, 378 held."""
    ax = plot.luck(*luck_frames())

    assert ["Proposals\n861 of 1,600 expected", "Sync seats\n378 of 256.0 expected"] == (
        tick_labels(ax.yaxis)
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
    ] == legend_labels(ax)
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


def test_luck_of_nearly_all_validators_is_not_drawn():
    """They propose nearly every block: the error of the expected number is larger than chance."""
    blocks = proposals(*["proposed"] * 3199, proposers=(1, 2), first=0)

    ax = plot.luck(balances(range(100)), totals(range(100), 2), blocks)

    assert ["No luck to draw: no duty is expected, or of nearly all validators"] == [
        text.get_text() for text in ax.texts
    ]


def test_luck_by_validator_has_a_row_for_each():
    """Validator 1 has 861 of 800 proposals, 2 none; 1 has as many seats as expected."""
    ax = plot.luck(*luck_frames(), by="validator_index")
    figure = interactive.luck(*luck_frames(), by="validator_index")

    assert [
        "validator 1, proposals\n861 of 800.0 expected",
        "validator 2, proposals\n0 of 800.0 expected",
        "validator 1, sync seats\n128 of 128.0 expected",
        "validator 2, sync seats\n250 of 128.0 expected",
    ] == tick_labels(ax.yaxis)
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


def test_ten_validators_have_their_names():
    """Up to ten rows have room for names and numbers: they stay in the order of the validators."""
    blocks = proposals(*["proposed"] * 7, proposers=(2, 2, 1, 2, 2, 1, 2), first=0)

    chart = charts.luck(balances([0], range(1, 11)), totals([0], 32), blocks, by="validator_index")

    names = [label.partition("\n")[0] for label in chart.y.tick_labels]
    assert [f"validator {index}" for index in range(1, 11)] == names


def test_groups_of_two_duties_are_ranked_together():
    """Six groups with two duties each are twelve rows: both duties begin with the luckiest."""
    blocks = proposals(*["proposed"] * 9, proposers=(4, 4, 2), first=0)
    members = committee([*[6] * 300, *[1] * 100, *[3] * 112])
    held = balances(range(100), range(1, 7))

    chart = charts.luck(held, totals(range(100), 8), blocks, members, by="validator_index")

    assert "Validator, luckiest first" == chart.x.label
    assert chart.note.endswith("; 1 to 6: proposals, 7 to 12: sync seats")
    points = [layer for layer in chart.layers if isinstance(layer, Points)]
    named = {int(x): text for layer in points for x, text in zip(layer.x, layer.texts, strict=True)}
    order = [int(named[rank].split()[1].rstrip(",")) for rank in range(1, 13)]
    assert [4, 2, 1, 3, 5, 6] == order[:6]
    assert [6, 3, 1, 2, 4, 5] == order[6:]


def test_names_of_groups_are_text():
    """The names of groups are no formulas of matplotlib and no tags of plotly."""
    held, *others = luck_frames()
    held = held.with_columns(pool=pl.lit("<b>$x$"))

    ax = plot.luck(held, *others, by="pool")
    figure = interactive.luck(held, *others, by="pool")

    assert tick_labels(ax.yaxis)[0].startswith(r"<b>\$x\$, proposals")
    assert figure.layout.yaxis.ticktext[0].startswith("&lt;b&gt;&#36;x&#36;, proposals")


def test_luck_needs_duties():
    """Neither proposals nor committees are an error; a range without a share has a note."""
    held, epochs, blocks, _ = luck_frames()

    with pytest.raises(UsageError, match="proposals or sync committees"):
        plot.luck(held, epochs)
    ax = plot.luck(held.with_columns(effective_balance_gwei=0), epochs, blocks)
    assert ["No luck to draw: no duty is expected, or of nearly all validators"] == [
        text.get_text() for text in ax.texts
    ]


def read_caption(drawn):
    """Return the caption of a chart of any library on one line."""
    if not hasattr(drawn, "layout"):
        return " ".join(caption(drawn).split())
    return drawn.layout.xaxis.title.text.replace("<br>", " ")


@pytest.mark.parametrize("library", [plot, interactive])
def test_the_caption_states_what_is_counted(library):
    """Seven epochs of balances and one of totals: one epoch counts, and its committee."""
    members = pl.concat(
        [committee([1] * 512), *(committee([1] * 512, period=period) for period in (5, 6))]
    )
    blocks = proposals("proposed", proposers=(1,), first=0)

    drawn = library.luck(balances(range(7)), totals([0]), blocks, members)

    text = read_caption(drawn)
    assert "1 of 7 epochs counted: the others are not in the frame of epochs" in text
    assert "1 of 3 sync committees counted: those selected in these epochs" in text


@pytest.mark.parametrize("library", [plot, interactive])
def test_a_caption_of_all_that_is_given_has_no_note(library):
    assert "counted" not in read_caption(library.luck(*luck_frames()))


def test_the_caption_is_within_the_figure():
    """The names of the rows leave less than half of the width to the plot."""
    balances, epochs, blocks, members = luck_frames()
    other = members.with_columns(period=5, start_epoch=1280, end_epoch=1535)

    ax = plot.luck(balances, epochs, blocks, pl.concat([members, other]), by="validator_index")
    figure = ax.figure
    figure.draw_without_rendering()

    (note,) = (text for text in ax.texts if text.get_gid() == "caption")
    assert "1 of 2 sync committees counted" in note.get_text()
    box = note.get_window_extent()
    assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1
