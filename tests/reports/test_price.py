"""The price of a report: chosen before it is loaded, compared with the quota, and as planned."""

import itertools
import re
import warnings
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner

import beaconframes as bf
from beaconframes import v1, v2
from beaconframes.calendar import MAINNET, Chain
from beaconframes.cli import commands
from beaconframes.client import Explorer
from beaconframes.endpoint import Head
from beaconframes.errors import (
    DetailReduced,
    MissingRows,
    QuotaSpent,
    RequestLimitExceeded,
    RequestTimeout,
    TierTooLow,
    UsageError,
)
from beaconframes.reports import detail as detail_module
from beaconframes.reports import inputs as inputs_module
from beaconframes.reports.detail import count_left, has_quota
from beaconframes.reports.input_frames import Inputs
from beaconframes.server import Server
from beaconframes.simulator import open_or_simulate

from ..conftest import locked
from ..support.marked_reports import find_silent
from .conftest import MINE

GUIDE = Path(__file__).parents[2] / "docs/guide/report.md"
FIRST_STEPS = Path(__file__).parents[2] / "docs/getting-started/solo-staker.md"
TRIAL, PAID = 1_000, 13_392_000
"""Requests of a month: of a trial key, and of five requests per second."""
DETAILS = ("days", "epochs")
WIDE = {"since": 5, "until": 460}
"""455 epochs: five windows of a hundred epochs, and one whole day."""


@pytest.fixture(scope="module")
def slow(machine_cache):
    """A year of a chain whose days have three epochs of four slots: as many proposals as mainnet's.

    Each of its 2,010 validators proposes twice a year.
    """
    start = datetime(2025, 9, 30, 12, 0, 23, tzinfo=UTC)
    clock = Chain("slow", start, seconds_per_slot=7200, slots_per_epoch=4)
    arguments = {"validators": 2010, "epochs": 1110, "seed": 7, "chain": clock}
    with locked(machine_cache):
        return open_or_simulate(machine_cache, "slow", **arguments)


def connect(server, **options):
    """Return an explorer of the head that the server has."""
    known = {"head": server.service.head, "chain": server.service.chain}
    return Explorer(server.url, **known, **options)


def state_limits(explorer, left):
    """Let the service state the requests that are left of a month."""
    names = ("x-ratelimit-limit-month", "x-ratelimit-remaining-month")
    explorer.rate_limiter.update(dict.fromkeys(names, str(left)))


@pytest.fixture
def mainnet():
    """An explorer of a remote service: it plans only, with the head at the end of a day."""
    epoch = MAINNET.at("epoch", datetime(2026, 11, 20, 20, tzinfo=UTC))
    head = Head(epoch, epoch - 2, MAINNET.last_slot_of(epoch))
    with Explorer("https://explorer.example", api_key="k" * 8, head=head, store=False) as explorer:
        yield explorer


def plan(explorer, count, days, **options):
    """Plan a report of the last days."""
    return bf.plan(bf.report, range(count), since=f"{days}d", explorer=explorer, **options)


def read_table(page, title):
    """Return the cells of the table whose first column has this title."""
    lines = itertools.dropwhile(
        lambda line: not line.startswith(f"| {title} |"), page.read_text().splitlines()
    )
    rows = [line.strip("| ").split(" | ") for line in itertools.takewhile(bool, lines)]
    return rows[2:]


@pytest.mark.more
def test_the_guide_has_the_prices(mainnet):
    """The table of docs/guide/report.md: plans of a trial key, a paid key, and each detail.

    With rows from yesterday, a report costs what one of two days does, as is tested below.
    """
    rows = read_table(GUIDE, "validators")
    found = []
    for count, days in itertools.product((1, 3, 100), (7, 30, 365)):
        chosen = []
        for left in (TRIAL, PAID):
            state_limits(mainnet, left)
            made = plan(mainnet, count, days)
            parts = dict(made.parts)
            chosen.append(f"{made.requests:,} ({'days' if made.remarks else 'epochs'})")
            assert bool(made.remarks) == bool(parts["load_validator_stats"] if made.remarks else 0)
        fixed = [f"{plan(mainnet, count, days, detail=each).requests:,}" for each in DETAILS]
        stored = [f"{plan(mainnet, count, 2, detail=each).requests:,}" for each in DETAILS]
        found.append([str(count), str(days), *chosen, *fixed, *stored])

    assert found == rows


def test_a_trial_key_pays_for_a_month_and_a_year(mainnet):
    """Three validators: at most 40 requests for 30 days, and 100 for a year, as the guide says."""
    state_limits(mainnet, TRIAL)
    month, year = (plan(mainnet, 3, days).requests for days in (30, 365))
    epochs = [plan(mainnet, 3, days, detail="epochs").requests for days in (30, 365)]

    assert month <= 40
    assert year <= 100
    start = FIRST_STEPS.read_text().partition("```")[0]
    assert [3, month, 30, year] == [
        {"three": 3}.get(text) or int(text)
        for text in re.search(
            r"on (\w+) validators costs (\d+) .* (\d+) days, and (\d+)", start
        ).groups()
    ]
    costs = re.search(r"30 days cost ([\d,]+) and a year ([\d,]+)", start.replace("\n", " "))
    assert epochs == [int(text.replace(",", "")) for text in costs.groups()]
    assert f"{TRIAL:,} a" in start


@pytest.mark.parametrize(
    ("left", "days", "detail"),
    [
        (None, 2, "epochs"),
        (None, 7, "days"),
        (1_000, 7, "days"),
        (7_400, 7, "days"),
        (7_401, 7, "epochs"),
        (50_000, 30, "epochs"),
        (PAID, 30, "epochs"),
        (PAID, 365, "days"),
    ],
)
def test_epochs_are_loaded_up_to_a_hundredth_of_the_month(mainnet, left, days, detail):
    """Epochs of 7 days cost 74 requests after that for the validators: a hundredth decides."""
    if left is not None:
        state_limits(mainnet, left)

    made = plan(mainnet, 3, days)

    assert detail == ("days" if "load_validator_stats" in dict(made.parts) else "epochs")
    assert (detail == "days") == any("Daily statistics" in text for text in made.remarks)


def test_epochs_are_loaded_if_days_cost_more(mainnet):
    """A hundred validators have a request each for their days, and share those of epochs."""
    assert "load_income_history" in dict(plan(mainnet, 100, 7).parts)
    assert "load_validator_stats" in dict(plan(mainnet, 100, 30).parts)


def test_a_plan_has_a_line_for_each_part(mainnet):
    """The lines add up to the requests, with those for the head of the chain."""
    made = plan(mainnet, 3, 30)

    lines = [line.split() for line in str(made).splitlines()]
    listed = {name: count for name, count in made.parts if count}
    assert listed == {words[0]: int(words[1]) for words in lines if words[0] in listed}
    assert 3 == listed["load_validator_stats"] == listed["v2.load_yield_index"]
    assert made.requests == sum(listed.values())


@pytest.mark.more
def test_a_source_without_a_quota_gets_epochs_up_to_a_size(running, monkeypatch):
    """A dataset on this machine has no price; the report says what it leaves out."""
    with connect(running) as explorer:
        assert not has_quota(explorer)
        monkeypatch.setattr(detail_module, "MOST_ROWS", 3 * 456)
        whole = bf.report(MINE[:3], **WIDE, explorer=explorer)
        monkeypatch.setattr(detail_module, "MOST_ROWS", 3 * 456 - 1)
        with pytest.warns(DetailReduced, match="every epoch is 1,368 rows"):
            reduced = bf.report(MINE[:3], **WIDE, explorer=explorer)

    facts = [dict(each.frames["facts"].iter_rows()) for each in (whole, reduced)]
    assert ["every epoch", "daily statistics"] == [each["detail"] for each in facts]
    assert "note" not in facts[0]
    assert not whole.summarize()[0].startswith("Daily statistics")


@pytest.fixture(scope="module")
def reduced(chain):
    """A report whose price made it one of daily statistics, and the texts of its warnings."""
    with (
        pytest.MonkeyPatch.context() as patch,
        Server(chain, limits="month=1000") as server,
        connect(server) as explorer,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        patch.setattr(detail_module, "CHEAP", 5)
        bf.load_validators([1], explorer=explorer)
        report = bf.report(MINE[:3], **WIDE, explorer=explorer)
        with pytest.MonkeyPatch.context() as no_charts:
            no_charts.setattr("beaconframes.reports.page.render_svg", lambda _: "<svg></svg>")
            page = report.to_html()
    return SimpleNamespace(report=report, caught=caught, page=page)


def test_daily_statistics_say_what_they_leave_out(reduced):
    """The first line of text and page, and a warning: the prices, and how to load epochs."""
    (warning,) = reduced.caught
    note = reduced.report.summarize()[0]

    assert DetailReduced is warning.category
    assert note == str(warning.message)
    requests = r"they cost (\d+) requests, every epoch (\d+)\."
    days, epochs = map(int, re.search(requests, note).groups())
    assert days < epochs
    assert "late votes, times offline" in note
    assert 'detail="epochs" loads them' in note
    header = reduced.page.partition("</h1>")[2]
    assert header.lstrip().startswith('<p class="missing">Daily statistics, not every epoch')
    assert 1 == reduced.page.count("Daily statistics, not every epoch")


def test_the_period_of_daily_statistics_is_the_requested_one(reduced, chain):
    """Day 1 (epochs 225 to 449) is the one whole day of epochs 5 to 460: 225 of 456 epochs."""
    row = reduced.report.frames["summary"].row(0, named=True)

    assert (5, 460, 225) == (row["first_epoch"], row["last_epoch"], row["income_epochs"])
    lines = reduced.report.summarize()
    assert "  epochs with income: 225 of 456" in lines
    assert any("by 3 validators in 1.0 days" in line for line in lines)
    stats = chain.scan("validator_stats").filter(
        pl.col("validator_index").is_in(MINE[:3]), pl.col("day") == 1
    )
    change = pl.col("end_balance_gwei") - pl.col("start_balance_gwei")
    moved = pl.col("withdrawals_amount_gwei") - pl.col("deposits_amount_gwei")
    assert stats.select((change + moved).sum()).collect().item() == row["consensus_income_gwei"]


@pytest.mark.parametrize(
    ("since", "until", "days"),
    [(225, 449, [1]), (224, 449, [1]), (226, 450, []), (0, 449, [0, 1]), (0, 448, [0])],
)
def test_whole_days_are_counted(running, since, until, days):
    """A day has 225 epochs, and counts with all of them."""
    with connect(running) as explorer:
        inputs = Inputs(explorer, [3], None, since, until, "days")
        assert days == [*inputs.find_whole_days()]
        if not days:
            with pytest.raises(UsageError, match="epochs 226 to 450 have no whole day"):
                inputs.use_days()
            return
        inputs.use_days()

    whole = days[0] * 225, days[-1] * 225 + 224
    assert whole == (inputs.first, inputs.last)
    assert (None if whole == (since, until) else (since, until)) == inputs.period


@pytest.mark.more
def test_without_a_start_the_period_has_whole_days(running):
    """The default is the last 30 days, and no part of a day is left out of it."""
    with connect(running) as explorer:
        report = bf.report(MINE[:1], detail="days", explorer=explorer)

    row = report.frames["summary"].row(0, named=True)
    assert (0, 449, 450) == (row["first_epoch"], row["last_epoch"], row["income_epochs"])


def test_a_report_above_the_quota_is_refused_before_its_requests(chain):
    """Both numbers, and the arguments of a report that fits; two requests found the quota."""
    with Server(chain, limits="month=20") as server, connect(server) as explorer:
        with pytest.raises(RequestLimitExceeded) as raised:
            bf.report(range(100), **WIDE, detail="epochs", explorer=explorer)
        sent = server.requests
        hint = re.search(r"(\d+) validators? needs (\d+) requests|since=(\d+)", raised.value.hint)
        found = re.search(r"at least (\d+) requests, and (\d+) are left", raised.value.message)
        needed, left = map(int, found.groups())

    assert sent <= 2
    assert 20 - sent == left < needed
    assert hint or "Use another key" in raised.value.hint


@pytest.mark.more
def test_a_refused_report_of_epochs_names_the_price_of_days(chain):
    """The price that the error names is what the report then sends."""
    with Server(chain, limits="month=30") as server, connect(server) as explorer:
        with pytest.raises(RequestLimitExceeded, match="at least") as raised:
            bf.report(MINE[:1], **WIDE, detail="epochs", explorer=explorer)
        price = int(re.fullmatch(r'detail="days" needs (\d+) requests', raised.value.hint)[1])
        before = explorer.requests
        bf.report(MINE[:1], **WIDE, detail="days", explorer=explorer)

    # The report loads the validators, too, before the price is known; duties have two pages.
    assert price + 1 <= explorer.requests - before <= price + 2


def test_a_known_quota_is_compared_before_the_first_request(mainnet):
    """No request is sent, not even for the validators; the hint has a report that fits."""
    state_limits(mainnet, 12)

    with pytest.raises(RequestLimitExceeded, match="needs at least 285 requests, and 12 are") as no:
        bf.report(range(3), detail="epochs", explorer=mainnet)

    assert 0 == mainnet.requests
    since, price = map(
        int,
        re.fullmatch(r'detail="days", since=(\d+) \(7 days\) needs (\d+) requests', no.value.hint)
        .groups(),
    )  # fmt: skip
    last = mainnet.chain_head.latest("epoch", finalized=True)
    fits = {"since": since, "until": last, "detail": "days", "explorer": mainnet}
    assert price == bf.plan(bf.report, range(3), **fits).requests <= 12


@pytest.mark.more
def test_the_head_of_a_simulated_chain_is_not_assumed(chain):
    """By the real clock, the last epoch is thousands of days later, whose report would not fit."""
    with Server(chain, limits="month=60") as server, Explorer(server.url) as explorer:
        bf.load_validator_queue(explorer=explorer)
        assert 60 - explorer.requests == explorer.read_quota().left

        report = bf.report(MINE[:1], since=430, explorer=explorer)
        last = explorer.chain_head.latest("epoch", finalized=True)

    assert last - 429 == report.frames["summary"]["income_epochs"][0]


def test_a_report_of_fewer_validators_is_suggested(chain):
    """A report of 455 epochs has one whole day; a shorter one does not cost less."""
    with Server(chain, limits="month=35") as server, connect(server) as explorer:
        bf.load_validators([1], explorer=explorer)
        with pytest.raises(RequestLimitExceeded) as raised:
            bf.report(range(60), **WIDE, detail="days", explorer=explorer)
        count, price = map(
            int, re.fullmatch(r"(\d+) validators needs (\d+) requests", raised.value.hint).groups()
        )
        smaller = bf.plan(bf.report, range(count), **WIDE, detail="days", explorer=explorer)

    assert (15, smaller.requests) == (count, price)


def test_a_shorter_report_is_suggested(mainnet, monkeypatch):
    """The largest of some numbers of days that fits; a plan has the same price."""
    inputs = Inputs(
        mainnet, [1, 2, 3], None, 0, mainnet.chain_head.latest("epoch", finalized=True), "days"
    )
    fits = detail_module._find_affordable(inputs, inputs_module._load_rest, 20)

    first, days, price = map(
        int, re.fullmatch(r"since=(\d+) \((\d+) days\) needs (\d+) requests", fits).groups()
    )
    assert 90 == days
    assert inputs.last + 1 - 90 * 225 == first
    planned = bf.plan(
        bf.report, [1, 2, 3], since=first, until=inputs.last, detail="days", explorer=mainnet
    )
    assert price == planned.requests - 1 <= 20


def test_the_limit_of_requests_holds_for_the_whole_report(running):
    """``max_requests`` is a limit like the quota, also where the source has none."""
    span = {"since": 440, "until": 445}
    with connect(running, max_requests=8) as explorer:
        assert has_quota(explorer)
        with pytest.raises(RequestLimitExceeded, match=r"needs at least \d+ requests, and 8 are"):
            bf.report(MINE[:1], **span, explorer=explorer)
        assert 0 == explorer.requests
    with connect(running, max_requests=20) as explorer:
        report = bf.report(MINE[:1], **span, explorer=explorer)
        assert explorer.requests <= 20

    assert "incomplete" not in repr(report)


def test_the_smaller_limit_counts(mainnet):
    inputs = Inputs(mainnet, [1], None, 0, 10, "epochs")
    assert count_left(inputs) is None
    state_limits(mainnet, 50)
    assert 50 == count_left(inputs)
    with bf.settings(max_requests=30):
        assert 30 == count_left(inputs)
    with bf.settings(max_requests=60):
        assert 50 == count_left(inputs)


def load_with_index(chain, monkeypatch, load, month=200):
    """Make a report of a service with a quota, whose V2 answers the yield index with *load*."""
    if load is not None:
        load.__name__, load.__module__ = "load_yield_index", "beaconframes.v2.yield_index"
        monkeypatch.setattr(v2, "load_yield_index", load)
    with Server(chain, limits=f"month={month}") as server, connect(server) as explorer:
        bf.load_validators([1], explorer=explorer)
        return bf.report(MINE[:1], since=5, until=460, explorer=explorer)


def read_index(report):
    """Return how the yield index was loaded."""
    rows = report.frames["inputs"].filter(pl.col("input") == "index")
    return rows.select("loader", "state", "requests").row(0)


@pytest.mark.more
def test_the_yield_index_is_that_of_v2(chain, monkeypatch):
    """Ten days cost a request; V1, one request for each day."""
    assert ("v2.load_yield_index", "complete", 1) == read_index(
        load_with_index(chain, monkeypatch, None)
    )


def refuse(**_):
    raise TierTooLow("the plan does not include this")


def leave_out(explorer, **options):
    rows = v1.load_yield_index(
        explorer=explorer, **{**options, "since": 0, "until": 0}
    ).with_columns(finality=pl.lit("finalized"))
    return rows.with_columns(apr=pl.lit(None, pl.Float64))


def state_no_finality(explorer, **options):
    rows = v1.load_yield_index(explorer=explorer, **{**options, "since": 0, "until": 0})
    return rows.with_columns(finality=pl.lit(None, pl.String))


@pytest.mark.more
@pytest.mark.parametrize(
    "load",
    [state_no_finality, *(pytest.param(f, marks=pytest.mark.long) for f in (leave_out, refuse))],
)
def test_without_v2_the_yield_index_is_that_of_v1(chain, monkeypatch, load):
    """A key without V2, or a service with other names of fields: the same index, for more."""
    whole = load_with_index(chain, monkeypatch, None)

    report = load_with_index(chain, monkeypatch, load)

    loader, state, _ = read_index(report)
    assert ("load_yield_index", "complete") == (loader, state)
    assert whole.frames["rate"].equals(report.frames["rate"])


@pytest.mark.more
def test_a_service_that_is_down_is_not_requested_by_day(chain, monkeypatch):
    """What may work later is no reason for a request per day."""

    def fail(**_):
        raise RequestTimeout("no response")

    with pytest.warns(MissingRows, match="load_yield_index failed: no response"):
        report = load_with_index(chain, monkeypatch, fail)

    assert ("v2.load_yield_index", "failed", 0) == read_index(report)


@pytest.mark.more
def test_an_index_that_does_not_fit_is_left_out(chain, monkeypatch):
    """Without V2, the days of the index need more requests than are left: a warning says so."""
    counted = detail_module.count_requests
    monkeypatch.setattr(
        "beaconframes.reports.inputs.count_requests", lambda *given: 10**6 + counted(*given)
    )

    with pytest.warns(MissingRows, match=r"without V2, it needs 1,000,00\d requests, and \d+ are"):
        report = load_with_index(chain, monkeypatch, refuse)

    assert ("load_yield_index", "failed", 0) == read_index(report)


@pytest.mark.more
def test_a_quota_that_ends_in_the_middle_is_an_error_with_the_report(chain, monkeypatch):
    """Nothing is requested after it, and the marked report is in the error."""
    monkeypatch.setattr(detail_module, "count_left", lambda _: None)
    with Server(chain, limits="month=6") as server, connect(server) as explorer:
        with pytest.raises(QuotaSpent, match="the report is incomplete") as raised:
            bf.report(MINE[:1], **WIDE, detail="days", explorer=explorer)
        refused = explorer.requests - 6

    report = raised.value.report
    assert refused <= 1
    assert "incomplete" in repr(report)
    states = report.frames["inputs"].filter(pl.col("state") == "failed")
    assert states.height > 1
    assert 1 == states["reason"].n_unique()
    assert "attribute report" in raised.value.hint


def test_a_command_writes_the_incomplete_report_of_a_quota(chain, tmp_path, monkeypatch):
    """The exit code is that of a quota."""
    monkeypatch.setattr(detail_module, "count_left", lambda _: None)
    out = tmp_path / "report.json"
    options = ("--since", "5", "--until", "460", "--detail", "days", "--out", str(out))
    with Server(chain, limits="month=9") as server:
        ended = CliRunner().invoke(commands, ["report", "3", *options, "--url", server.url])

    assert 5 == ended.exit_code
    assert "the report is incomplete" in ended.stderr
    assert '"state": "failed"' in out.read_text()


def test_a_command_that_does_not_fit_writes_nothing(chain, tmp_path):
    out = tmp_path / "report.json"
    options = ("--since", "5", "--until", "460", "--out", str(out))
    with Server(chain, limits="month=9") as server:
        ended = CliRunner().invoke(commands, ["report", "3", *options, "--url", server.url])

    assert 2 == ended.exit_code
    assert re.search(r"needs at least \d+ requests, and \d are left", ended.stderr)
    assert not out.exists()


@pytest.mark.more
def test_frames_of_pandas(running, monkeypatch, tmp_path):
    """The setting reaches the frames of a report; its texts are the same."""
    options = {"since": 440, "until": 445}
    with connect(running) as explorer, connect(running, frame="pandas") as of_pandas:
        expected = bf.report(MINE[:2], **options, explorer=explorer)
        report = bf.report(MINE[:2], **options, explorer=of_pandas)
    out = tmp_path / "report.json"
    monkeypatch.setenv("BEACONFRAMES_FRAME", "pandas")
    arguments = ["3", "--since", "440", "--until", "445", "--out", str(out), "--url", running.url]
    ended = CliRunner().invoke(commands, ["report", *arguments, "--json"])

    assert {*expected.frames} == {*report.frames}
    for name, frame in report.frames.items():
        assert isinstance(frame, pd.DataFrame)
        assert expected.frames[name].height == len(frame)
    total = expected.frames["summary"]["consensus_income_gwei"][0]
    assert total == report.frames["summary"]["consensus_income_gwei"].iloc[0]
    assert expected.summarize() == report.summarize()
    assert 0 == ended.exit_code, ended.stderr


@pytest.mark.more
def test_plans_are_what_a_report_sends(chain):
    """For each detail; a seat in a sync committee has further pages of coming duties."""
    with Server(chain, limits="month=100000") as server, connect(server) as explorer:
        bf.load_validators([1], explorer=explorer)
        for validators, detail in itertools.product(([0], [0, 1, 3]), ("epochs", "days")):
            check_plan(explorer, validators, WIDE, detail)


def check_plan(explorer, validators, span, detail):
    """Check that a plan is what a report sends, within a tenth or two requests."""
    options = {**span, "detail": detail, "explorer": explorer}
    planned = bf.plan(bf.report, validators, **options)
    before = explorer.requests
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DetailReduced)
        report = bf.report(validators, **options)
    sent = explorer.requests - before
    assert planned.requests <= sent <= planned.requests + max(planned.requests / 10, 2)
    assert sent == report.frames["inputs"]["requests"].sum()
    return sent


@pytest.mark.long
@pytest.mark.parametrize("detail", ["auto", "days", "epochs"])
def test_plans_of_a_year_are_what_a_report_sends(slow, detail):
    """1, 3 and 100 validators, 7 days, 30 days and a year; a trial key and a paid one.

    A page of the coming duties has ten of them: those of a hundred validators are not planned.
    """
    limits = ["free:second=1000,month=1000", "premium:second=1000,month=100000"]
    for key, tier in (("trial", "free"), ("paid", "premium")):
        for count, days in itertools.product((1, 3, 100), (7, 30, 365)):
            with (
                Server(slow, keys={key: tier}, limits=limits) as server,
                connect(server, api_key=key, store=False) as explorer,
            ):
                bf.load_validators([1], explorer=explorer)
                last = server.service.head.finalized_epoch
                span = {"since": last + 1 - 3 * days, "until": last}
                check_year(explorer, count, span, detail)


def check_year(explorer, count, span, detail):
    """Check a plan; pages of coming duties and refused sets are not in it."""
    options = {**span, "detail": detail, "explorer": explorer}
    planned = bf.plan(bf.report, range(count), **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DetailReduced)
        report = bf.report(range(count), **options)
    inputs = report.frames["inputs"]
    sent = inputs["requests"].sum()
    of_sets = inputs.filter(pl.col("input").is_in(["duties", "missed_rewards"]))["requests"].sum()
    beside = 0 if count < 20 else of_sets - 2
    assert planned.requests <= sent <= planned.requests + max(planned.requests / 10, 2) + beside
    return sent - beside


@pytest.mark.long
@pytest.mark.parametrize("detail", ["epochs", "days"])
def test_a_store_from_yesterday_costs_the_last_day(slow, tmp_path, detail):
    """Final rows are not requested again: the next report costs what one of two days costs."""
    limits = "premium:second=1000,month=100000"
    with Server(slow, keys={"paid": "premium"}, limits=limits) as server:
        now = server.service.head
        earlier = Head(now.epoch - 3, now.finalized_epoch - 3, now.slot - 12)
        for count, days in itertools.product((1, 3, 100), (7, 30, 365)):
            sent = []
            for head in (earlier, now):
                store, last = tmp_path / f"{count}-{days}", head.finalized_epoch
                options = {"api_key": "paid", "store": store, "chain": server.service.chain}
                with Explorer(server.url, head=head, **options) as explorer:
                    bf.load_validators([1], explorer=explorer)
                    span = {"since": last + 1 - days * 3, "until": last}
                    sent.append(check_year(explorer, count, span, detail))
            with connect(server, api_key="paid", store=False) as explorer:
                options = {"until": now.finalized_epoch, "detail": detail, "explorer": explorer}
                since = now.finalized_epoch - 5
                short = bf.plan(bf.report, range(count), since=since, **options)
            # Blocks have pages of a hundred, all of which are requested again.
            assert sent[1] <= min(sent[0], short.requests + 6 + count * days // 700), (count, days)


def find_faults(chain, limit, whole, *, is_known, detail):
    """Return what a report within a month limit prints wrongly, or misses without an error."""
    with (
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(),
        Server(chain, limits=f"month={limit}") as server,
        connect(server) as explorer,
    ):
        warnings.simplefilter("ignore")
        if not is_known:
            patch.setattr(detail_module, "count_left", lambda _: None)
        try:
            report = bf.report(MINE[:3], **WIDE, detail=detail, explorer=explorer)
        except RequestLimitExceeded:
            return [] if is_known and server.requests <= 2 else ["refused late"]
        except QuotaSpent as error:
            if error.report is None:
                return [] if server.requests <= 2 else ["no report"]
            return find_silent(whole, error.report)
    silent = find_silent(whole, report)
    return silent + (["there is no error"] if "incomplete" in repr(report) else [])


@pytest.fixture(scope="module")
def whole_reports(chain):
    """The reports of a service that has enough requests left, by detail."""
    with Server(chain, limits="month=100000") as server, connect(server) as explorer:
        bf.load_validators([1], explorer=explorer)
        return {
            detail: bf.report(MINE[:3], **WIDE, detail=detail, explorer=explorer)
            for detail in ("epochs", "days")
        }


@pytest.mark.parametrize(
    ("is_known", "limits"),
    [
        pytest.param(True, (1, 7), marks=pytest.mark.more),
        pytest.param(False, (5,), marks=pytest.mark.more),
        pytest.param(False, (1, 2, 8, 15, 30), marks=pytest.mark.long),
        *(
            pytest.param(is_known, range(first, 401, 27), marks=pytest.mark.long)
            for is_known in (True, False)
            for first in (1, 10, 19)
        ),
    ],
    ids=str,
)
def test_no_report_within_a_month_limit_is_silent(
    chain, no_charts, whole_reports, limits, is_known
):
    """Each number equals that of the whole report or is marked; what is missing is an error."""
    found = {
        (limit, detail): find_faults(chain, limit, whole, is_known=is_known, detail=detail)
        for detail, whole in whole_reports.items()
        for limit in limits
    }

    assert {} == {case: silent for case, silent in found.items() if silent}


@pytest.mark.more
def test_a_report_requests_the_head_once(chain, monkeypatch):
    """A head is fresh for 12 seconds, and a report may take longer: all loads use the first one."""
    monkeypatch.setattr("beaconframes.fetch.head.HEAD_MAX_AGE", -1.0)
    with Server(chain) as server, Explorer(server.url, chain=server.service.chain) as explorer:
        report = bf.report(MINE[:1], since=440, until=445, explorer=explorer)
        before = explorer.requests
        bf.load_epochs(until=-1, since=-1, explorer=explorer)

        of_inputs = report.frames["inputs"]["requests"].sum()
        # The first input is loaded with the head that all others use.
        assert before - of_inputs <= 1
        assert explorer.requests == before + 2
