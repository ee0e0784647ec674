"""Luck in a report: proposals, and seats in sync committees."""

import polars as pl
import pytest

from beaconframes.charts.series import format_day
from beaconframes.reports.page import render_page
from beaconframes.reports.pictures import build_pictures

from .conftest import LAST, MINE


def test_sync_seats_are_compared_with_chance(made, chain, no_charts):
    """512 seats times the share of the stake, of committees selected in the range of the report."""
    period = 256
    selected = period
    committees = chain.scan("sync_committees").filter(pl.col("period") == 2).collect()
    drawn = committees.filter(pl.col("validator_index").is_in(MINE)).height
    stakes = chain.scan("balance_history").filter(pl.col("epoch") == selected).collect()
    own = stakes.filter(pl.col("validator_index").is_in(MINE))["effective_balance_gwei"].sum()
    index = chain.scan("yield_index").filter(pl.col("day") == selected // 225).collect()
    total = int(index["effective_balances_sum_wei"][0]) // 10**9

    (row,) = made.report.frames["sync_luck"].rows(named=True)

    assert LAST >= selected
    assert (1, 512, drawn) == tuple(row[name] for name in ("periods", "seats", "drawn"))
    assert 512 * own / total == pytest.approx(row["expected"])
    assert ["A", "B"] == made.report.frames["group_sync_luck"]["group"].to_list()
    page = render_page(made.report.frames, {}, interactive=False)
    assert "Counted: 1 committee, selected in this range." in page
    assert f"Sync committee seats: {drawn} assigned, {row['expected']:.1f} expected. " in page


def test_luck_of_one_day_is_not_that_of_one_epoch(made):
    """The times of the chart are days: a single one has no note, and no hour."""
    frames = made.report.frames

    (chart,) = build_pictures(frames | {"income": frames["income"].head(1)})["luck"].charts

    assert chart.single_note is None
    assert format_day(frames["income"]["date"][0]) == chart.note


def test_a_report_does_not_judge_luck(made):
    """Numbers alone: of all validators of a chain, nothing is chance, and of few, most is."""
    frames = made.report.frames
    names = [name for name in frames if "luck" in name]
    assert ["luck", "sync_luck", "group_luck", "group_sync_luck"] == names
    for name in names:
        assert {"drawn", "expected", "luck"} <= set(frames[name].columns)
        assert not [c for c in frames[name].columns if c.endswith(("_low", "_high", "p_value"))]
    page = made.report.to_html()
    assert "Luck: proposals and sync seats" in page
    assert "chance explains" not in page
    assert "of chance" not in page
    assert "by chance" not in page
