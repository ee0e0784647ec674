"""Charts of proposals: timeline, counts and rewards."""

import polars as pl
import pytest

from beaconframes import charts, interactive, plot
from beaconframes.charts.model import Points
from beaconframes.errors import UsageError

from ..support.chart_frames import produced, proposals
from ..support.drawn_charts import line_slots, lines_by_name, texts, tick_labels


def test_proposals_are_a_timeline():
    """Each status has its marker in the row of its validator; the first index is at the top."""
    ax = plot.proposals(proposals("proposed", "missed", "orphaned", "scheduled", "proposed"))

    drawn = {
        label: (line_slots(line), [float(y) for y in line.get_ydata()])
        for label, line in lines_by_name(ax).items()
    }
    assert {
        "Scheduled (1)": ([103], [0.0]),
        "Proposed (2)": ([100, 104], [1.0, 1.0]),
        "Missed (1)": ([101], [0.0]),
        "Orphaned (1)": ([102], [1.0]),
    } == drawn
    assert ["1", "3"] == tick_labels(ax.yaxis)
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
    assert {"1000", "1020"} < set(tick_labels(ax.yaxis))


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
        line_slots(lines_by_name(ax)["Proposed (2)"]),
        list(lines_by_name(ax)["Proposed (2)"].get_ydata()),
    )
    assert [101] == line_slots(lines_by_name(ax)["Missed block (1)"])
    assert [103] == line_slots(lines_by_name(ax)["Orphaned block (1)"])
    assert [102] == line_slots(lines_by_name(ax)["Reward unknown (1)"])
    assert "Execution reward of the block (ETH)" == ax.get_ylabel()


def test_rewards_of_proposals_have_a_logarithmic_axis():
    """Rewards differ a thousandfold; a block without a reward is marked below."""
    frame = proposals(*["proposed"] * 4)
    wei = [0, 10**15, 10**18, 5 * 10**15]
    rewards = pl.concat([produced([100 + i], wei=amount) for i, amount in enumerate(wei)])

    ax = plot.proposals(frame, rewards)

    assert "log" == ax.get_yscale()
    ax.figure.canvas.draw()
    assert {"0.001", "0.01", "0.1", "1"} < set(tick_labels(ax.yaxis))
    assert [101, 102, 103] == line_slots(lines_by_name(ax)["Proposed (3)"])
    assert [100] == line_slots(lines_by_name(ax)["No reward (1)"])
    assert "log" == interactive.proposals(frame, rewards).layout.yaxis.type


def test_small_rewards_have_different_labels():
    """A logarithmic axis has no 0."""
    wei = [10**8, 4 * 10**8, 2 * 10**12]
    rewards = pl.concat([produced([100 + i], wei=amount) for i, amount in enumerate(wei)])

    ax = plot.proposals(proposals(*["proposed"] * 3), rewards, unit="gwei")

    ax.figure.canvas.draw()
    labels = tick_labels(ax.yaxis)
    assert {"0.1", "1", "1,000"} < set(labels)
    assert len(labels) == len(set(labels))


@pytest.mark.parametrize(
    ("statuses", "rewards"),
    [(["missed"], produced([])), (["proposed"], produced([])), (["proposed"], produced([100], 0))],
)
@pytest.mark.parametrize("library", [plot, interactive])
def test_proposals_without_a_reward_are_marks_with_a_note(statuses, rewards, library):
    """A logarithmic axis without a positive number was an error when it was drawn."""
    drawn = library.proposals(proposals(*statuses), rewards)

    note = "No block has a known reward above 0"
    if library is plot:
        drawn.figure.canvas.draw()
        assert note in texts(drawn)
        assert [""] == tick_labels(drawn.yaxis)
        assert 1 == len(drawn.lines)
    else:
        assert note in [each.text for each in drawn.layout.annotations]
        assert drawn.layout.yaxis.type != "log"
