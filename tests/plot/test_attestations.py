"""Charts of attestations: outcomes and inclusion distances."""

from datetime import timedelta

import numpy as np
import polars as pl
import pytest
from matplotlib.dates import num2date

from beaconframes import charts, colours, interactive, plot
from beaconframes.errors import UsageError

from ..support.chart_frames import GENESIS, attestations
from ..support.drawn_charts import cell_colours, legend_labels, tick_labels

NOTHING = "#ffffff00"


def test_attestations_have_a_colour_per_outcome():
    """Next slot, late, missed; an epoch without a row is empty."""
    frame = pl.concat([attestations(1, 2, None), attestations(1, validators=[8], first=102)])

    ax = plot.attestations(frame)

    assert [
        [colours.BLUE, colours.AMBER, colours.RED],
        [NOTHING, NOTHING, colours.BLUE],
    ] == cell_colours(ax)
    assert ["7", "8"] == tick_labels(ax.yaxis)
    assert [
        "Included in the next slot",
        "Included late (2 slots\nbehind or more)",
        "Missed",
    ] == legend_labels(ax)
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
    planned = attestations(1, validators=[8]).with_columns(status=pl.lit("scheduled"))
    assert 1 == charts.attestations(pl.concat([frame, planned])).validators
    bars = plot.attestations(frame, show="distance")
    empty = plot.attestations(frame.filter(status="pending"), show="distance")

    assert [[colours.BLUE, colours.RED, colours.GREY]] == cell_colours(ax)
    assert ["Included in the next slot", "Missed", "Pending"] == legend_labels(ax)
    assert [50.0, 50.0] == [bar.get_height() for bar in bars.patches]
    assert "2 duties, 1 more are pending" == charts.attestations(frame, show="distance").note
    assert "Inclusion distance (slots)" == bars.get_xlabel()
    assert "all of them are pending" in " ".join(text.get_text() for text in empty.texts)


def test_the_late_distance_is_an_argument():
    """With late=5 an attestation four slots later is in time."""
    ax = plot.attestations(attestations(4, 5), late=5)

    assert [[colours.BLUE, colours.AMBER]] == cell_colours(ax)
    assert "Included within 4 slots" == legend_labels(ax)[0]


def outcomes(*counts, per_row=10):
    """Duties of one epoch: *per_row* validators for each number of late and of missed ones."""
    distances = [
        distance
        for late, missed in counts
        for distance in [None] * missed + [5] * late + [1] * (per_row - late - missed)
    ]
    return pl.concat(
        attestations(distance, validators=[index]) for index, distance in enumerate(distances)
    )


@pytest.mark.more
def test_merged_attestations_have_colours_for_late_and_for_missed():
    """P7: ten validators per row; in the order of the rows, what more than 5 % of them are."""
    in_time, late, missed, half = (0, 0), (1, 0), (1, 1), (2, 6)
    counts = [in_time, late, missed, half, (0, 5), *[in_time] * 95]

    ax = plot.attestations(outcomes(*counts))

    blue, ink = colours.BLUE, colours.INK
    expected = [blue, colours.AMBER, colours.RED, ink, colours.RED, blue]
    assert expected == [row[0] for row in cell_colours(ax)][:6]
    assert [
        "Included in the next slot",
        "Late: more than 5 %",
        "Missed: more than 5 %",
        "Missed: more than half",
    ] == legend_labels(ax)
    assert "Validator, 10 per row" == ax.get_ylabel()
    text = plot.alt_text(ax)
    assert "next slot (% of duties): 98.4 on average, from 20 to 100" in text
    assert "Cells: 96 % included in the next slot, 1 % late: more than 5 %" in text


@pytest.mark.more
@pytest.mark.parametrize(
    ("late", "missed", "kind"), [(5, 0, 1), (6, 0, 2), (5, 5, 1), (9, 6, 3), (0, 50, 3), (9, 51, 4)]
)
def test_few_late_and_missed_duties_of_large_cells_are_in_time(late, missed, kind):
    """5 of 100 duties are 5 %, and not more; 50 are half."""
    frame = outcomes((late, missed), per_row=100)

    others = attestations(1, validators=range(100, 10_000))
    (layer,) = charts.attestations(pl.concat([frame, others])).layers

    assert (100, 1) == layer.cells.shape
    assert [kind, 1] == layer.cells[:2, 0].tolist()
    assert pytest.approx([100 - late - missed, 100]) == layer.percent[:2, 0].tolist()


def test_many_validators_share_rows_of_attestations():
    """250 validators: three per row, with the share in time; a cell of pending duties is grey."""
    frame = attestations(1, 1, validators=range(250))
    late = (pl.col("validator_index") == 4) & (pl.col("epoch") == 100)
    frame = frame.with_columns(
        status=pl.when(pl.col("epoch") == 101).then(pl.lit("pending")).otherwise("status"),
        inclusion_slot=pl.col("inclusion_slot") + pl.when(late).then(5).otherwise(0),
    )

    (layer,) = charts.attestations(frame).layers

    assert (84, 2) == layer.cells.shape
    assert pytest.approx([100, 200 / 3, 100]) == layer.percent[:3, 0].tolist()
    assert np.isnan(layer.percent[:, 1]).all()
    assert ["0", "3", "6"] == layer.rows[:3]
    assert [[1, 5], [2, 5], *[[1, 5]] * 82] == layer.cells.tolist()
    assert ("Pending", colours.GREY) == layer.kinds[4]
    ax = plot.attestations(frame)
    assert ["Included in the next slot", "Late: more than 5 %", "Pending"] == legend_labels(ax)
    assert "Validator, 3 per row" == ax.get_ylabel()
    figure = interactive.attestations(frame)
    assert "3 validators from %{y}" in figure.data[0].hovertemplate
    assert "Included in the next slot (% of duties): %{text}" in figure.data[0].hovertemplate
    assert ["66.67", "Pending"] == list(figure.data[0].text[1])
    assert legend_labels(ax) == [trace.name for trace in figure.data[1:]]


def test_many_epochs_share_columns_of_attestations():
    """2,000 epochs: two per column; a missed and a pending duty are in columns of their own."""
    frame = attestations(*[1] * 1000, None, *[1] * 999)
    pending = pl.when(pl.col("epoch") >= 2098).then(pl.lit("pending")).otherwise("status")

    (layer,) = charts.attestations(frame.with_columns(status=pending)).layers

    assert [[*[1] * 500, 3, *[1] * 498, 5]] == layer.cells.tolist()


@pytest.mark.parametrize("late", [0, -1, 1.5, "2", True])
def test_invalid_late_distances_are_refused(late):
    """Late is a whole number of slots."""
    with pytest.raises(UsageError, match=f"late={late!r}"):
        plot.attestations(attestations(1), late=late)


def test_distances_are_shares_of_duties():
    """Two of four in the next slot, one after three slots, one missed."""
    ax = plot.attestations(attestations(1, 1, 3, None), show="distance")

    assert [50.0, 0.0, 25.0, 25.0] == [bar.get_height() for bar in ax.patches]
    assert ["1", "2", "3", "missed"] == tick_labels(ax.xaxis)
    assert ["50", "0", "25", "25"] == [text.get_text() for text in ax.texts if not text.get_gid()]
    figure = interactive.attestations(attestations(1, 1, 3, None), show="distance")
    assert ["50", "0", "25", "25"] == [text for bars in figure.data for text in bars.text]
    assert ["Included", "Missed (1)"] == legend_labels(ax)
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

    assert "10+" == tick_labels(ax.xaxis)[9]
    assert 75.0 == ax.patches[9].get_height()
