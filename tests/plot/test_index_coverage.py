"""Charts of the coverage of an index."""

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt

from beaconframes import colours, plot
from beaconframes.errors import UsageError

from ..support.chart_frames import GENESIS, index_statuses
from ..support.drawn_charts import cell_colours, tick_labels


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
    ] == cell_colours(ax)
    assert [
        "explained (2)",
        "unexplained (1)",
        "unverified (1)",
        "not indexed (1)",
    ] == tick_labels(ax.yaxis)
    assert "not indexed (3)" == tick_labels(wider.yaxis)[-1]
    assert [grey, empty, empty, grey, empty, empty, grey] == cell_colours(wider)[-1]
    starts = [mpl.dates.num2date(axes.get_xlim()[0]) for axes in (ax, wider)]
    assert [101, 100] == [round((start - GENESIS).total_seconds() / 384) for start in starts]


def test_one_unexplained_epoch_of_a_year_is_visible():
    """Where a column has several epochs, it is filled in the row of each status."""
    year = set(range(1000, 1000 + 82_125))

    ax = plot.index_coverage(index_statuses(explained=year - {40_000}, unexplained=[40_000]))

    red = [column for column, colour in enumerate(cell_colours(ax)[1]) if colour == colours.RED]
    assert [(40_000 - 1000) // 274] == red
    assert {colours.BLUE} == set(cell_colours(ax)[0])
    assert "Epoch (UTC, 274 per column)" == ax.get_xlabel()
    assert "unexplained (1)" == tick_labels(ax.yaxis)[1]


def test_index_coverage_of_a_wrong_frame():
    """Another status, and a range without epochs, are errors with a remedy."""
    with pytest.raises(UsageError, match=r"'final' is not the status of an epoch.*bf\.index"):
        plot.index_coverage(index_statuses(final=[1]))
    with pytest.raises(UsageError, match=r"range\(0, 0\) has no consecutive epochs"):
        plot.index_coverage(index_statuses(explained=[1]), epochs=range(0))
    assert plt.get_fignums() == []
