"""The requests of a whole report, before it is made."""

import json

import pytest
from click.testing import CliRunner

import beaconframes as bf
from beaconframes.cli import commands
from beaconframes.client import Explorer
from beaconframes.errors import UsageError
from beaconframes.reports import inputs

from .conftest import FIRST, LAST, MINE


@pytest.fixture
def client(running):
    with Explorer(running.url, chain=running.service.chain, head=running.service.head) as explorer:
        yield explorer


@pytest.mark.more
def test_the_plan_of_a_report_has_its_requests(client, made):
    """No request is sent; the report then sends as many, and further pages."""
    groups = {"A": MINE[:3], "B": MINE[3:]}

    plan = bf.plan(bf.report, None, groups=groups, since=FIRST, until=LAST, explorer=client)

    sent = made.report.frames["inputs"]["requests"].sum()
    assert 0 == client.requests
    assert "report" == plan.loader
    assert "at least" == plan.bound
    assert plan.why == ("the number of pages is unknown until the last page",)
    assert plan.requests <= sent <= plan.requests + 5
    assert str(plan).startswith("report")


def test_a_plan_of_many_windows_may_need_fewer_requests(client, monkeypatch):
    """A report ends its search at the first window without income, which a plan cannot know."""
    monkeypatch.setattr(inputs, "EPOCHS_PER_LOAD", 100)

    plan = bf.plan(bf.report, MINE, since=FIRST, until=LAST, explorer=client)

    assert "about" == plan.bound
    assert "a dataset may not have the first epochs" in plan.why


def test_the_plan_of_daily_statistics_says_what_it_cannot_count(client, made):
    """A request per validator; missed proposals depend on the statistics."""
    plan = bf.plan(bf.report, range(120), since=225, until=449, detail="days", explorer=client)

    assert plan.requests > 120
    assert plan.bound in ("at least", "about")
    assert any("missed proposals" in reason for reason in plan.why)


def test_a_plan_refuses_what_the_report_refuses(client):
    with pytest.raises(UsageError, match="no validators are given"):
        bf.plan(bf.report, since=FIRST, explorer=client)
    with pytest.raises(UsageError, match="is not a loader"):
        bf.plan(print, explorer=client)


def test_the_command_line_plans_a_report(running):
    span = ("--since", str(FIRST), "--until", str(LAST))
    ended = CliRunner().invoke(
        commands, ["plan", "report", "3,5", *span, "--json", "--url", running.url]
    )

    assert ended.exit_code == 0, ended.stderr
    assert 10 < json.loads(ended.stdout)["requests"] < 30
