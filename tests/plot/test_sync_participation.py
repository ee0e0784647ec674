"""Charts of sync committees: participation, members and the matrix of signatures."""

from datetime import timedelta

import polars as pl
from matplotlib.colors import to_hex
from matplotlib.dates import num2date

from beaconframes import colours, plot
from beaconframes.colours import compute_luminance

from ..support.chart_frames import GENESIS, blocks, committee
from ..support.drawn_charts import (
    cell_colours,
    legend_labels,
    line_slots,
    lines_by_name,
    split_at_gaps,
    texts,
    tick_labels,
)

NOTHING = "#ffffff00"


def test_participation_marks_missed_and_orphaned_slots():
    """They are gaps in the line, and each status has a marker."""
    frame = blocks("proposed", "proposed", "missed", "proposed", "orphaned", "scheduled")

    ax = plot.sync_participation(frame)

    line, missed, orphaned = ax.lines
    assert [[50.0, 50.0], [50.0]] == split_at_gaps(line)
    assert ["All seats", "Missed block (1)", "Orphaned block (1)"] == legend_labels(ax)
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
    expected = ["All seats", "Lowest to highest block", "Lowest block: 25.0 %"]
    assert expected == legend_labels(ax)


def test_one_epoch_has_no_lowest_block():
    """Of one epoch, the band shows the lowest block already."""
    ax = plot.sync_participation(blocks(*["proposed"] * 32), every="epoch")

    assert "Lowest block: 50.0 %" not in legend_labels(ax)


def test_many_slots_are_drawn_by_epoch():
    """640 blocks are drawn by block, 641 by epoch, with a marker at the lowest block."""
    frame = blocks(*["proposed"] * 672)
    low = pl.col("slot") == 333
    frame = frame.with_columns(sync_aggregate_participation=pl.when(low).then(0.25).otherwise(0.5))

    few, many = plot.sync_participation(frame.head(640)), plot.sync_participation(frame.head(641))

    assert ["Slot (UTC)", "Epoch (UTC)"] == [few.get_xlabel(), many.get_xlabel()]
    assert "Lowest block: 25.0 %" == legend_labels(many)[-1]
    lowest = many.lines[-1]
    assert [25.0] == list(lowest.get_ydata())
    epoch = (num2date(lowest.get_xdata(False)[0]) - GENESIS).total_seconds() / 384
    assert 333 // 32 == round(epoch)


def test_participation_of_selected_seats():
    """Rows of committees draw a second line: the seats in them alone."""
    mine = committee().filter(pl.col("seat").is_in([0, 1, 300, 301]))

    ax = plot.sync_participation(blocks("proposed", "proposed", signed=128), mine)

    all_seats, chosen = ax.lines
    assert [25.0, 25.0] == list(all_seats.get_ydata())
    assert [50.0, 50.0] == list(chosen.get_ydata())
    assert ["All seats", "Selected seats"] == legend_labels(ax)
    # WCAG 2, 1.4.11: a thin line has a contrast of 3 on white paper.
    for line in ax.get_lines()[:2]:
        assert compute_luminance(to_hex(line.get_color())) + 0.05 <= 1.05 / 3


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
    assert ["Member", "All members: 50.00 %"] == legend_labels(ax)
    assert texts(ax)[0].startswith("Signed no block (256): 5256, 5257, 5258,")
    assert "and 196 more" in texts(ax)[0].replace("\n", " ")
    assert "Lowest" not in texts(ax)[0]
    assert ("Member, best first", "Blocks signed (%)") == (ax.get_xlabel(), ax.get_ylabel())


def test_few_members_are_named():
    """Up to twenty members have a tick label with their index."""
    ax = plot.sync_members(blocks("proposed", signed=1), committee([77, 66, 55]))

    assert ["77", "55", "66"] == [tick.get_text() for tick in ax.get_xticklabels()]


def test_the_matrix_separates_missing_blocks_from_missing_signatures():
    """A row per member, best at the top; slots without a block are empty, and marked above."""
    frame = blocks("proposed", "missed", "proposed", "orphaned", "scheduled", signed=1)

    ax = plot.sync_members(frame, committee([70, 60]), show="matrix")

    signed, absent = colours.BLUE, colours.RED
    assert [
        [signed, NOTHING, signed, NOTHING],
        [absent, NOTHING, absent, NOTHING],
    ] == cell_colours(ax)
    assert [1] == line_slots(lines_by_name(ax)["Missed block (1)"])
    assert [3] == line_slots(lines_by_name(ax)["Orphaned block (1)"])
    assert ["70", "60"] == tick_labels(ax.yaxis)
    assert ["Signed", "Not signed", "Missed block (1)", "Orphaned block (1)"] == legend_labels(ax)
    assert ("Slot (UTC)", "Validator, best at the top") == (ax.get_xlabel(), ax.get_ylabel())
    begin, end = (num2date(x) for x in ax.get_xlim())
    assert [GENESIS, GENESIS + timedelta(seconds=48)] == [begin, end]


def test_the_matrix_leaves_absent_slots_empty():
    """A slot that is not in the frame is no cell, and no missing signature."""
    frame = pl.concat([blocks("proposed"), blocks("proposed", first=2)])

    ax = plot.sync_members(frame, committee([5]), show="matrix")

    assert [[colours.BLUE, NOTHING, colours.BLUE]] == cell_colours(ax)


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
    assert ["Missed block (1)"] == legend_labels(ax)
    assert [1] == line_slots(lines_by_name(ax)["Missed block (1)"])
    assert "Blocks signed (%)" == ax.figure.axes[1].get_ylabel()
