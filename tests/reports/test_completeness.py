"""Each printed number of a report whose inputs failed is right, or marked; a warning says so."""

import dataclasses
import warnings
from types import SimpleNamespace

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.calendar import MAINNET
from beaconframes.client import Explorer
from beaconframes.errors import (
    BeaconframesError,
    MissingRows,
    NotFound,
    NotServed,
    QuotaSpent,
    RequestLimitExceeded,
    TableNotInDataset,
    UsageError,
)
from beaconframes.reports.completeness import find_mark
from beaconframes.reports.input_frames import Input, Inputs
from beaconframes.reports.inputs import load_inputs
from beaconframes.reports.parts import build_frames
from beaconframes.reports.report import Report
from beaconframes.server import Server

from ..support.marked_reports import find_silent
from .conftest import MINE, PRICES

GROUPS = {"A": MINE[:3], "B": MINE[3:]}
INPUTS = [
    *("income", "balances", "blocks", "index", "attestations", "network", "withdrawals"),
    *("proposals", "deposits", "slots", "queue", "missed_rewards", "committees"),
    *("next_committees", "duties"),
]
DAILY = ["stats", "proposals", "blocks", "queue", "index", "committees", "duties"]


@pytest.fixture(scope="module")
def daily(running):
    """The inputs of a report from daily statistics."""
    with Explorer(running.url, chain=running.service.chain, head=running.service.head) as explorer:
        return load_inputs(
            None, since=225, until=449, groups=GROUPS, detail="days", explorer=explorer,
            prices=PRICES, price="eur",
        )  # fmt: skip


def make(inputs, failed=(), gaps=()):
    """Make a report of inputs of which some failed, and some have gaps."""
    items = dict(inputs.items)
    for name in failed:
        reason = "the quota is used up"
        items[name] = dataclasses.replace(items[name], rows=None, reason=reason, missing=None)
    for name in gaps:
        item = items[name]
        gap = {"reason": ["not returned by the service"], "validator_index": [MINE[0]]}
        rows = item.rows.filter(pl.int_range(pl.len()) % 5 > 0)
        items[name] = dataclasses.replace(item, rows=rows, missing=pl.DataFrame(gap))
    frames, left_out = build_frames(dataclasses.replace(inputs, items=items))
    return Report(frames, left_out)


@pytest.fixture(scope="module")
def whole(made, daily):
    """The reports of all inputs, by name of their frame of income."""
    return {"income": make(made.inputs), "stats": make(daily)}


def find_silent_numbers(inputs, whole, **changed):
    """Return what a report prints otherwise, without a mark."""
    return find_silent(whole["income" if inputs.has_epochs else "stats"], make(inputs, **changed))


def further(name):
    """Return the mark of a further input: every second one runs in `make test-long`."""
    return pytest.mark.long if INPUTS.index(name) % 2 else pytest.mark.more


@pytest.mark.parametrize(
    "name", ["blocks", *(pytest.param(n, marks=further(n)) for n in INPUTS if n != "blocks")]
)
def test_without_an_input_each_number_is_right_or_marked(made, whole, no_charts, name):
    """In frames, text and page."""
    assert [] == find_silent_numbers(made.inputs, whole, failed=[name])


@pytest.mark.parametrize(
    "name", [*DAILY[:2], *(pytest.param(n, marks=pytest.mark.more) for n in DAILY[2:])]
)
def test_without_daily_statistics_each_number_is_right_or_marked(daily, whole, no_charts, name):
    assert [] == find_silent_numbers(daily, whole, failed=[name])


@pytest.mark.more
@pytest.mark.parametrize(
    "name",
    ["income", *(pytest.param(n, marks=further(n)) for n in INPUTS[1:])],
)
def test_with_some_rows_of_an_input_each_number_is_right_or_marked(made, whole, no_charts, name):
    """A validator without a row in one epoch: sums of the others are not those of all."""
    assert [] == find_silent_numbers(made.inputs, whole, gaps=[name])


@pytest.mark.parametrize(
    "name", ["stats", *(pytest.param(n, marks=pytest.mark.more) for n in DAILY[1:])]
)
def test_with_some_daily_statistics_each_number_is_right_or_marked(daily, whole, no_charts, name):
    assert [] == find_silent_numbers(daily, whole, gaps=[name])


def test_statistics_without_blocks_have_no_number_of_proposals(daily):
    """Only missed proposals are known then: their number is not compared with the expected one."""
    frames = make(daily, failed=["blocks"]).frames

    assert {"luck", "group_luck"} <= set(make(daily).frames)
    assert not {"luck", "group_luck"} & set(frames)
    assert "missed" in frames["validators"].columns
    assert "proposed" not in frames["validators"].columns


def test_the_strongest_mark_counts(made, whole, no_charts):
    """Without proposals, a loss is a lower bound; without balances as well, it is unknown."""
    failed = ["balances", "proposals"]

    report = make(made.inputs, failed=failed)

    assert [] == find_silent_numbers(made.inputs, whole, failed=failed)
    assert report.frames["summary"]["lost_gwei"][0] is None
    lost = (pl.col("frame") == "summary") & (pl.col("column") == "lost_gwei")
    marks = report.frames["incomplete"].filter(lost)
    assert [("unknown", "load_balance_history, load_proposals")] == marks[:, 2:].rows()


def test_groups_without_a_figure_have_an_unknown_verdict(made, whole, no_charts):
    """Without income and proposals, nothing is left to compare groups by; they stay listed."""
    failed = ["income", "proposals"]

    report = make(made.inputs, failed=failed)

    assert [] == find_silent_numbers(made.inputs, whole, failed=failed)
    verdict = report.frames["group_verdict"]
    assert whole["income"].frames["group_verdict"]["group"].to_list() == verdict["group"].to_list()
    assert verdict.height == verdict["verdict"].null_count() > 0


@pytest.mark.more
def test_without_the_next_committee_coming_duties_are_at_least_the_listed(made, no_charts):
    """A source that does not have it is no failure, but its seats are not listed."""
    items = dict(made.inputs.items)
    items["next_committees"] = dataclasses.replace(
        items["next_committees"], rows=None, cause="absent"
    )
    report = Report(*build_frames(dataclasses.replace(made.inputs, items=items)))

    assert ("upcoming", None, "at least", "load_sync_committees") in report.frames[
        "incomplete"
    ].rows()
    page = report.to_html()
    section = page[page.index('<section id="upcoming">') :].partition("</section>")[0]
    assert "At least this without load_sync_committees." in section
    assert "incomplete" not in repr(report)


@pytest.mark.parametrize(
    ("error", "sent", "is_node", "defect"),
    [
        (NotServed("the service has no such route"), 1, False, "failed"),
        (NotServed("a node needs an execution node"), 0, True, "absent"),
        (NotServed("a node has no chart"), 1, True, "absent"),
        (UsageError("the committee is after the head of a node"), 0, True, "absent"),
        (TableNotInDataset("this dataset has no yield_index"), 1, False, "absent"),
        (RequestLimitExceeded("more requests than max_requests"), 0, False, "failed"),
        (QuotaSpent("the requests of this month are used up"), 0, False, "failed"),
        (NotFound("status 404"), 1, False, "failed"),
    ],
)
def test_a_load_fails_unless_the_source_never_has_the_rows(error, sent, is_node, defect):
    """What a source does not have, it says before a request, or as a dataset.

    A node's head may be requested at any time, so its requests prove nothing.
    """
    source = SimpleNamespace(is_node=is_node)
    explorer = SimpleNamespace(chain=MAINNET, requests=0, source=source)

    def load_yield_index(**_):
        explorer.requests += sent
        raise error

    inputs = Inputs(explorer, [7], None, 0, 10, "epochs")
    inputs.load("index", load_yield_index)

    assert defect == inputs.find_defect("index")


@pytest.mark.parametrize(
    ("last_epoch", "reason", "defect"),
    [
        (450, "not in the dataset", "gaps"),
        (449, "not in the dataset", ""),
        (None, "not in the dataset", "gaps"),
        (600, "exited", ""),
    ],
)
def test_gaps_before_the_range_of_a_report_are_not_in_it(last_epoch, reason, defect):
    """A report begins with the first rows of its source; exited validators have no rows."""
    gap = pl.DataFrame(
        {"reason": [reason], "last_epoch": [last_epoch]}, schema_overrides={"last_epoch": pl.Int64}
    )
    inputs = Inputs(SimpleNamespace(chain=MAINNET), [7], None, 450, 900, "epochs")
    inputs.items["income"] = Input("income", "", pl.DataFrame({"epoch": [450]}), missing=gap)

    assert defect == inputs.find_defect("income")


@pytest.mark.parametrize(
    ("reason", "validator", "pubkey", "defect"),
    [
        ("unknown to the service", None, f"0x{'ab' * 48}", ""),
        ("unknown to the service", 5000, None, "gaps"),
        ("not in the dataset", None, f"0x{'ab' * 48}", "gaps"),
    ],
)
def test_a_key_without_a_validator_marks_no_number(reason, validator, pubkey, defect):
    """Keys of a file may wait for their deposit: the other validators still have a verdict."""
    gap = pl.DataFrame(
        {"reason": [reason], "validator_index": [validator], "pubkey": [pubkey]},
        schema_overrides={"validator_index": pl.Int64, "pubkey": pl.String},
    )
    inputs = Inputs(SimpleNamespace(chain=MAINNET), [7], None, 450, 900, "epochs")
    known = pl.DataFrame({"validator_index": [7]})
    inputs.items["validators"] = Input("validators", "", known, missing=gap)

    assert defect == inputs.find_defect("validators")


@pytest.mark.more
def test_a_report_names_a_key_without_a_validator_and_has_its_verdict(running, no_charts):
    """The marks and the words are those of a report without the key; a warning has the key."""
    key = f"0x{'ab' * 48}"

    with Explorer(running.url, chain=running.service.chain, head=running.service.head) as explorer:
        options = {"since": 440, "until": 449, "explorer": explorer}
        known = bf.report(MINE[:2], **options)
        with pytest.warns(MissingRows, match="load_validators: rows are missing") as caught:
            both = bf.report([*MINE[:2], key], **options)

    assert [key] == caught[0].message.missing["pubkey"].to_list()
    assert known.frames["incomplete"].equals(both.frames["incomplete"])
    named = "  1 requested validator is unknown to the source: 0xabababababab"
    assert [named] == [line for line in both.summarize() if line not in known.summarize()][:1]


@pytest.mark.long
@pytest.mark.parametrize("failed", INPUTS)
def test_without_two_inputs_each_number_is_right_or_marked(made, whole, no_charts, failed):
    check_pairs(made.inputs, whole, failed, INPUTS)


@pytest.mark.long
@pytest.mark.parametrize("failed", DAILY)
def test_without_two_daily_inputs_each_number_is_right_or_marked(daily, whole, no_charts, failed):
    check_pairs(daily, whole, failed, DAILY)


def check_pairs(inputs, whole, failed, names):
    """Check reports without the input *failed* and another one, or of which another has gaps."""
    for other in set(names) - {failed}:
        for changed in ({"failed": [failed, other]}, {"failed": [failed], "gaps": [other]}):
            assert [] == find_silent_numbers(inputs, whole, **changed), changed


def load_from(chain, span, timeout=None, detail="auto", **options):
    """Make a report of a service with limits or faults; return it, and whether it warned."""
    with (
        warnings.catch_warnings(record=True) as caught,
        Server(chain, **options) as server,
        Explorer(server.url, head=server.service.head, timeout=timeout) as explorer,
    ):
        warnings.simplefilter("always")
        report = bf.report(MINE[:3], **span, detail=detail, explorer=explorer)
    messages = [str(each.message) for each in caught if each.category is MissingRows]
    return report, any("report" in text and "is incomplete" in text for text in messages)


def summarize(report):
    """Return the lines of a report without the choice of daily statistics, which is no number."""
    return [line for line in report.summarize() if not line.startswith("Daily statistics, not")]


def find_detail(report):
    """Return whether a report is of every epoch or of daily statistics."""
    return dict(report.frames["facts"].iter_rows())["detail"]


def find_faults_of(chain, whole, span, **options):
    """Return what a report from a service with limits or faults prints wrongly, without a word."""
    try:
        report, has_warned = load_from(chain, span, **options)
    except BeaconframesError:
        # The validators, or the head of the chain, were not loaded: there is no report.
        return []
    # Below a limit, a report chooses cheaper inputs, and says so.
    whole = whole["limits" in options, find_detail(report)]
    silent = find_silent(whole, report)
    differs = summarize(report) != summarize(whole) or report.left_out != whole.left_out
    if has_warned != ("incomplete" in repr(report)) or (differs and not has_warned):
        silent.append("there is no warning")
    return silent


FAULTS = [
    *(
        f"{code}@{share}%"
        for code in (400, 401, 403, 404, 410, 429, 500, 503)
        for share in (20, 75)
    ),
    *("truncate@20%", "truncate@75%", "html@20%", "html@75%", "hang@20%", "hang@75%", "503"),
]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"limits": "month=8"}, marks=pytest.mark.more),
        pytest.param({"limits": "month=13"}, marks=pytest.mark.long),
        pytest.param({"faults": "404@20%"}, marks=pytest.mark.long),
        pytest.param({"faults": "500@20%", "detail": "days"}, marks=pytest.mark.more),
        pytest.param({}, marks=pytest.mark.long),
        pytest.param({"detail": "days"}, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_a_report_of_a_service_that_fails_is_right_or_marked(chain, no_charts, options):
    """A quota that ends in the middle, faults of requests: there are marks and a warning."""
    detail = options.get("detail", "auto")
    is_sweep = not {*options} - {"detail"}
    since, until = (5, 460) if is_sweep or detail == "days" else (425, 440)
    span = {"since": since, "until": until}
    tried = [
        *({"limits": f"month={limit}", "detail": detail} for limit in range(1, 401, 9)),
        *({"faults": fault, "timeout": (0.4, 0.5), "detail": detail} for fault in FAULTS),
    ] if is_sweep else [options]  # fmt: skip
    whole = {}
    for limits in ({"limits": "month=100000"}, {}):
        for each in {detail, "days"} if is_sweep else {detail}:
            report, has_warned = load_from(chain, span, detail=each, **limits)
            assert not has_warned
            whole["limits" in limits, find_detail(report)] = report

    found = {str(each): find_faults_of(chain, whole, span, **each) for each in tried}

    assert {} == {name: silent for name, silent in found.items() if silent}


@pytest.mark.parametrize(
    ("defects", "expected"),
    [
        ({}, (None, [])),
        ({"income": "gaps"}, ("incomplete", ["income"])),
        ({"income": "failed"}, ("unknown", ["income"])),
        ({"income": "absent"}, ("unknown", ["income"])),
        ({"blocks": "gaps"}, ("incomplete", ["blocks"])),
        ({"blocks": "absent"}, (None, [])),
        ({"income": "gaps", "blocks": "failed"}, ("incomplete", ["income", "blocks"])),
        ({"income": "failed", "blocks": "gaps"}, ("unknown", ["income", "blocks"])),
    ],
)
def test_a_number_with_gaps_is_incomplete_and_without_its_input_unknown(defects, expected):
    """What a source never has marks no number that is correct without it."""
    inputs = SimpleNamespace(find_defect=lambda name: defects.get(name, ""))
    needs = {"income": "unknown", "blocks": "incomplete"}
    assert expected == find_mark(inputs, needs)
