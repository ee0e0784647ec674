"""Luck in a report: proposals, and seats in sync committees."""

import dataclasses

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.charts.series import format_day
from beaconframes.reports.luck import list_luck
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
    seats = (
        f"{drawn} assigned, {row['expected']:.1f} expected, in 1 committee selected in this time"
    )
    assert f"<p>Sync committee seats: {seats}. This is within chance.</p>" in page


def test_luck_of_one_day_is_not_that_of_one_epoch(made):
    """The times of the chart are days: a single one has no note, and no hour."""
    frames = made.report.frames

    (chart,) = build_pictures(frames | {"income": frames["income"].head(1)})["luck"].charts

    assert chart.single_note is None
    assert format_day(frames["income"]["date"][0]) == chart.note


def tables(selected=2, **rows):
    """Return frames of luck, each row by drawn, expected and corrected p-value."""
    columns = ["drawn", "expected", "p_corrected", "slots", "periods", "selected", "group"]
    numbers = dict.fromkeys(("slots", "periods", "selected"), pl.Int64)
    return {
        name: pl.DataFrame(
            [(*row, 43_200, 2, selected, "bad pair") for row in found],
            dict(zip(columns, (pl.Int64, pl.Float64, pl.Float64), strict=False))
            | numbers
            | {"group": pl.String},
            orient="row",
        )
        for name, found in rows.items()
    }


def test_a_rare_number_is_stated_as_how_many_sets_have_it():
    """The rarity is that of the corrected p-value, rounded down; the correction is stated once."""
    rows = {"luck": [(94, 119.1, 0.0325)], "sync_luck": [(30, 20.04, 0.05)]}

    assert [
        (
            "Proposals: 94 assigned, 119.1 expected, in 43,200 slots. 1 set of this size in 30 has "
            "so few."
        ),
        (
            "Sync committee seats: 30 assigned, 20.0 expected, in 2 committees selected in this "
            "time. This is within chance."
        ),
        (
            "Rarity counts too few and too many alike, and is corrected for the 2 comparisons with "
            "chance in this report (Holm). What 1 set in 20 has is within chance."
        ),
    ] == list_luck(tables(**rows))
    (first, _) = list_luck(tables(luck=[(200, 119.1, 0.9e-6)]))
    assert first.endswith("Fewer than 1 set of this size in 1,000,000 has so many.")


def test_committees_that_are_not_loaded_are_counted():
    """Each is a request: of a service, the present and the next one are loaded."""
    (first, _) = list_luck(tables(selected=5, sync_luck=[(30, 20.04, 0.5)]))
    expected = "in the latest 2 of 5 committees selected in this time. This is within chance."
    assert first.endswith(expected)


def test_all_committees_of_the_range_count_where_requests_are_free(made, chain):
    """Of 468 epochs, the first committee is the second one, too; both begin with the chain."""
    inputs = dataclasses.replace(made.inputs, first=0, last=467, items={})
    assert [0, 1, 2] == inputs.list_selected_periods()
    assert [2] == dataclasses.replace(inputs, first=1).list_selected_periods()
    assert [0, 1] == dataclasses.replace(inputs, last=255).list_selected_periods()
    assert [2] == dataclasses.replace(inputs, first=256, last=256).list_selected_periods()

    with bf.open(chain.path):
        report = bf.report(MINE, since=0, until=467, detail="epochs")

    row = report.frames["sync_luck"].row(0, named=True)
    held = chain.scan("sync_committees").filter(pl.col("period") <= 2).collect()
    own = held.filter(pl.col("validator_index").is_in(MINE)).height
    assert (3, 3, own) == (row["periods"], row["selected"], row["drawn"])


def test_no_luck_of_nearly_all_validators():
    """The numbers stand; without an expected proposal, there is nothing to say about them."""
    assert [
        (
            "Proposals: 43,200 assigned, 43,178.8 expected, in 43,200 slots. These are nearly all "
            "validators of the chain, so this is not luck."
        )
    ] == list_luck(tables(luck=[(43_200, 43_178.8, None)]))
    assert ["Proposals: 0 assigned, 0.0 expected, in 43,200 slots."] == list_luck(
        tables(luck=[(0, 0.0, None)])
    )
    assert [] == list_luck({})
    assert [] == list_luck(tables(luck=[], group_luck=[(9, 9.0, None)]))


def test_rare_groups_are_named():
    """One sentence each; if there is none, one sentence for all of them."""
    usual, rare = (9, 10.0, 0.5), (2, 20.0, 0.01)

    both = list_luck(tables(group_luck=[usual, rare], group_sync_luck=[usual]))
    none = list_luck(tables(group_luck=[usual], group_sync_luck=[usual]))

    assert (
        "Group bad pair: Proposals: 2 assigned, 20.0 expected. 1 set of this size in 100 has so "
        "few."
    ) == both[0]
    assert "for the 3 comparisons" in both[1]
    assert "Groups: their proposals and sync committee seats are within chance." == none[0]
    assert [2, 2] == [len(both), len(none)]


def test_a_report_of_few_validators_claims_no_luck(made, no_charts):
    """Six validators of a chain that draws by chance: no number of the report is called rare."""
    frames = made.report.frames
    names = ["luck", "sync_luck", "group_luck", "group_sync_luck"]
    assert names == [name for name in frames if "luck" in name]
    for name in names:
        assert {"drawn", "expected", "luck", "p_value", "p_corrected"} <= set(frames[name].columns)
        assert (frames[name]["p_corrected"] >= frames[name]["p_value"]).all()
    page = render_page(frames, {}, interactive=False)
    assert 2 == page.count("This is within chance.")
    assert "Groups: their proposals and sync committee seats are within chance." in page
    assert "for the 6 comparisons with chance in this report (Holm)" in page
    assert "set of this size" not in page


@pytest.mark.more
@pytest.mark.parametrize(
    ("detail", "count"),
    [("days", 1000), ("epochs", 20), pytest.param("epochs", 1000, marks=pytest.mark.long)],
)
def test_luck_counts_the_slots_of_the_table(detail, count):
    """All proposals of all slots of the range count: days without an index, and those of exits."""
    with bf.open("data/sample") as explorer:
        report = bf.report(range(1000 - count, 1000), since="2d", detail=detail, explorer=explorer)

    answer, frames = report.frames["summary"].row(0, named=True), report.frames
    (row,) = frames["luck"].rows(named=True)
    # Daily statistics count whole days only.
    slots = 32 * answer["income_epochs"]
    assert slots == row["slots"]
    table = frames["validators"].select(pl.sum("proposed", "missed", "orphaned"))
    assert sum(table.row(0)) == row["drawn"] == frames["proposals"].height
    assert (row["p_value"] is None) is (count == 1000)
    if count == 1000:
        assert slots == row["drawn"]
        assert pytest.approx(slots, rel=0.01) == row["expected"]
        assert "so this is not luck." in list_luck(frames)[0]
