"""Reports from a node and from an index of its chain: without an execution node, without V2."""

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.reports.page import render_page

from ..support.beacon_node_stub import BeaconNodeStub
from ..support.node_index import open_index

MINE = [1, 2, 3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The index of the first twelve epochs of a recorded chain."""
    return open_index(tmp_path_factory, "electra", 11)


@pytest.mark.more
def test_a_report_of_an_index(folder, no_charts):
    """Its income is that of the index; execution income is unknown, and the report says so."""
    with bf.open(folder) as source:
        report = bf.report(MINE, since=2, until=9, explorer=source)
        income = bf.load_income_history(MINE, since=2, until=9)

    totals = bf.analysis.income(income, every="all").row(0, named=True)
    answer = report.frames["summary"].row(0, named=True)
    assert totals["consensus_income_gwei"] == answer["consensus_income_gwei"]
    assert (None, None) == (answer["execution_income_wei"], answer["net_income_wei"])
    assert 0 == report.frames["reconciliation"]["unexplained"][0]
    # No day of the chain is complete, so its yield is unknown.
    inputs = report.frames["inputs"]
    assert inputs.filter(pl.col("input") == "index")["state"].item() != "complete"
    assert answer.get("index_apr") is None
    reasons = dict(inputs.select("input", "reason").iter_rows())
    assert "the source does not have the next sync committee" == reasons["next_committees"]
    page = report.to_html()
    assert "ETH, consensus layer only" in page
    assert "Unknown, because priority fees are missing." in page


@pytest.mark.more
def test_a_report_of_a_node(no_charts):
    """A node answers the same numbers as an index of its chain."""
    with BeaconNodeStub("capella", head=111) as stub, bf.node(stub.url, store=False) as node:
        report = bf.report(MINE, since=4, until=6, explorer=node)
        income = bf.load_income_history(MINE, since=4, until=6)

    coming = report.frames["upcoming"].select("kind", "first_epoch").rows()
    assert ("sync committee", 16) in coming
    totals = bf.analysis.income(income, every="all").row(0, named=True)
    assert totals["consensus_income_gwei"] == (report.frames["summary"]["consensus_income_gwei"][0])
    assert "complete" == (
        report.frames["inputs"].filter(pl.col("input") == "income")["state"].item()
    )
    assert (
        stub.url.removeprefix("http://").partition(":")[0]
        in dict(report.frames["facts"].iter_rows())["source"]
    )
    page = render_page(report.frames, report.left_out, interactive=False)
    assert "ETH, consensus layer only" in page
