"""The verdict's parts equal queries on the files, and add up to the wei; bad groups come first."""

import re
from decimal import Decimal

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.analysis.average_comparison import PARTS
from beaconframes.calendar import Chain
from beaconframes.simulator.simulation import simulate

from ..support.beacon_node_stub import BeaconNodeStub
from ..support.report_queries import QUERIES
from .test_every_number import check_rows, load


def check_verdict(report, source):
    """Compare each part with the query of the files, and the sentences with the parts."""
    (row,) = report.frames["comparison"].rows(named=True)
    check_rows("comparison", QUERIES["comparison"](source), report.frames["comparison"])
    assert row["difference_wei"] == row["earned_wei"] - row["average_wei"]
    assert row["difference_wei"] == sum(row[part] for part in PARTS)
    (sentence,) = (line for line in report.summarize() if line.startswith("Parts of the"))
    shown = [text.replace("\u2212", "-") for text in re.findall(r"[-+\u2212]\d+\.\d{5}", sentence)]
    rounding = Decimal("0.000005") * (len(PARTS) + 1)
    assert abs(sum(map(Decimal, shown)) - row["difference_wei"] / 10**18) <= rounding
    return row


@pytest.mark.more
@pytest.mark.parametrize("count", [3, pytest.param(1000, marks=pytest.mark.long)])
def test_parts_of_the_sample(count):
    """The first validators of the sample, and all of them, on days with and without an index."""
    row = check_verdict(*load("data/sample", range(count), since="2d"))

    assert 1 == row["days_estimated"]


@pytest.mark.more
@pytest.mark.parametrize(
    "mine",
    [pytest.param(range(n), marks=pytest.mark.long) for n in (5, 16)],
    ids=["some", "all"],
)
def test_parts_of_an_indexed_real_chain(tmp_path, monkeypatch, mine):
    """The recording of a real network with its execution node: a slashing, exits, missed blocks.

    It is shorter than a day, so a day of this test has ten epochs.
    """
    monkeypatch.setattr(Chain, "epochs_per_day", 10)
    with BeaconNodeStub("capella") as node:
        coverage = bf.index(node.url, tmp_path, execution=node.execution_url, until=43)
    assert {"explained"} == {*coverage["status"]}

    report, source = load(tmp_path, mine, since=5, until=42)
    source.day, source.offset = 10, 1

    row = check_verdict(report, source)
    assert (5, 1) == (row["days"], row["days_estimated"])
    assert row["missed_avoidable_wei"] < 0 < row["average_missed_wei"]
    assert 0 not in [row[part] for part in ("proposal_luck_wei", "sync_luck_wei", "execution_wei")]


@pytest.mark.long
def test_parts_of_10000_validators(tmp_path):
    """A simulated chain; all of its validators for 190 epochs, and 200 of them for all."""
    folder = tmp_path / "chain"
    simulate(folder, validators=10_000, epochs=460, seed=7)

    for mine, since in ((range(10_000), -190), (range(5_000, 5_200), 0)):
        report, source = load(folder, mine, since=since, detail="epochs")
        check_verdict(report, source)


@pytest.mark.long
def test_a_group_of_the_worst_validators_is_named_first():
    """The 40 of 200 validators that lost most are one group, all others another."""
    with bf.open("data/sample") as explorer:
        whole = bf.report(range(200), since="2d", explorer=explorer)
        order = whole.frames["validators"].sort("lost_gwei", descending=True)["validator_index"]
        groups = {"north": order[40:].to_list(), "south": order[:40].to_list()}
        report = bf.report(groups=groups, since="2d", explorer=explorer)

    first, second, *_ = report.summarize()

    active = report.frames["validators"].filter(pl.col("votes") == pl.col("votes").max())
    gwei = pl.col("lost_gwei") * 32 * 10**9 / pl.col("effective_balance_gwei")
    lost = active.group_by("group").agg(gwei.mean(), pl.mean("votes_missed")).sort("group")
    (_, less, missed), (_, more, many) = lost.rows()
    assert (
        f"Group south: {many / missed:.0f} times the missed votes, "
        f"{(more - less) / 1e9:.5f} ETH more lost per validator of 32 ETH, compared with the "
        "others; this is more than chance." == first
    )
    assert second.startswith("Earned in this time: ")
