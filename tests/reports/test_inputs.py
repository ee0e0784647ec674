"""Inputs of a report: what is missing is left out, with the reason, and nothing fails."""

import dataclasses
from datetime import date, timedelta
from types import SimpleNamespace

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.calendar import MAINNET
from beaconframes.client import Explorer
from beaconframes.errors import BadRequest, MissingRows, NotServed, UsageError
from beaconframes.reports.input_frames import Inputs
from beaconframes.reports.inputs import Input, find_range, load_inputs
from beaconframes.reports.notebook import build_notebook
from beaconframes.reports.page import describe_left_out, render_page
from beaconframes.reports.parts import answer, build_frames, trust
from beaconframes.reports.parts.over_time import build_income
from beaconframes.reports.parts.upcoming import build_upcoming
from beaconframes.reports.report import Report, report
from beaconframes.v1 import load_sync_committees

from ..support.report_queries import Source, compute_daily_costs
from .conftest import FIRST, LAST, MINE


@pytest.fixture
def client(running):
    with Explorer(running.url, chain=running.service.chain, head=running.service.head) as explorer:
        yield explorer


OPTIONAL = [
    *("income", "balances", "withdrawals", "proposals", "blocks", "deposits"),
    *("index", "network", "missed_rewards", "committees", "next_committees", "queue", "duties"),
]


@pytest.mark.more
@pytest.mark.parametrize(
    "name",
    [
        *("income", "blocks"),
        *(
            pytest.param(name, marks=pytest.mark.more)
            for name in ("all", "balances", "index", "network", "proposals")
        ),
    ],
)
def test_a_missing_input_leaves_out_its_part(made, no_charts, name):
    """Without a frame, the rest of the report is made, and the page states the reason."""
    missing = OPTIONAL if name == "all" else [name]
    items = {
        key: Input(key, item.loader, reason="the plan has no <access>") if key in missing else item
        for key, item in made.inputs.items.items()
    }

    frames, left_out = build_frames(dataclasses.replace(made.inputs, items=items))
    page = render_page(frames, left_out, interactive=False)

    assert "the plan has no &lt;access&gt;" in page
    states = dict(frames["inputs"].select("input", "state").iter_rows())
    assert "failed" == states[missing[0]]
    if name == "blocks":
        basis = "priority fees, relay payments not included"
        assert basis == frames["summary"]["execution_income_basis"][0]
    if name in ("income", "all"):
        # Without income, no vote is known to be lost; 0 would be a wrong answer.
        assert frames["summary"]["lost_gwei"][0] is None
        assert "0.00000 <small>ETH" not in page
        assert "late votes and sync duties are unknown" in page
    if name == "all":
        assert {"income", "rates", "balances", "proposals", "reconciliation"} <= set(left_out)


def test_the_future_begins_at_the_head(made):
    """A report of the past loads the present committee, which has begun."""
    found = build_upcoming(dataclasses.replace(made.inputs, last=200), {})["upcoming"]

    assert {"in sync committee"} == set(found.filter(pl.col("first_epoch") == 256)["kind"])


def test_blocks_that_are_not_those_of_the_income_are_left_out(made, no_charts):
    """With blocks of some proposals only, income would lose fees: the report says so instead."""
    blocks = made.inputs.items["blocks"]
    items = made.inputs.items | {"blocks": dataclasses.replace(blocks, rows=blocks.rows.head(1))}

    frames, _ = build_frames(dataclasses.replace(made.inputs, items=items))

    states = dict(frames["inputs"].select("input", "state").iter_rows())
    assert (
        "complete" == dict(made.report.frames["inputs"].select("input", "state").rows())["blocks"]
    )
    assert "failed" == states["blocks"]
    whole, found = (
        each["summary"]["net_income_wei"].item() for each in (made.report.frames, frames)
    )
    assert found < whole


def test_a_pending_validator_has_a_report(made, no_charts):
    """It has no rows of income and balances yet: its figures are unknown, and nothing fails."""
    kept = ("validators", "network", "index", "queue", "committees", "next_committees")
    items = {
        key: item
        if key in kept or item.rows is None
        else dataclasses.replace(item, rows=item.rows.clear())
        for key, item in made.inputs.items.items()
    }

    frames, left_out = build_frames(dataclasses.replace(made.inputs, items=items))

    assert 1 == frames["summary"].height
    assert frames["summary"]["effectiveness"][0] is None
    assert "no validator has income in this range" == left_out["income"]
    page = render_page(frames, left_out, interactive=False)
    assert "no validator has income" in page
    assert "all 0 changes" not in page
    assert "relay payments" not in page
    assert "consensus layer only" not in page


def refuse(*_, **__):
    raise BadRequest("the service refused the request with status 400")


@pytest.mark.parametrize("load", [load_sync_committees, refuse])
def test_a_refused_request_has_a_reason_in_words(client, load):
    """A committee that is not selected is missing, or an error; the reason says what it means."""
    inputs = Inputs(client, [], None, FIRST, LAST, "epochs")
    assert inputs.load("next", load, [10**6], refused="not selected yet") is None
    rows = inputs.load("committees", load, [10**6])

    refused, other = inputs.items["next"], inputs.items["committees"]
    assert ("not selected yet", "absent", None) == (refused.reason, refused.cause, refused.missing)
    if load is refuse:
        assert (None, True) == (rows, "status 400" in other.reason)
    else:
        assert (0, [10**6], "") == (rows.height, other.missing["period"].to_list(), other.reason)


@pytest.mark.more
def test_errors_of_a_loader_are_the_reason(client, monkeypatch):
    """A loader that the service does not have is tried once, and the report is made without it."""
    from beaconframes.reports import inputs as module

    def refuse(*_, **__):
        raise NotServed("this service has no yield index")

    refuse.__name__ = "load_yield_index"
    monkeypatch.setattr(module.v1, "load_yield_index", refuse)

    loaded = load_inputs(
        MINE[:1], since=440, until=441, groups=None, detail="auto", explorer=client
    )

    assert loaded.get("index") is None
    assert "this service has no yield index" == loaded.items["index"].reason


@pytest.mark.more
def test_dates_of_a_report_are_days_of_its_time_zone(client):
    """2026-10-01 in Berlin begins 10 h after the genesis: its epochs are 94 to 318."""
    options = {"since": "2026-10-01", "until": "2026-10-01", "tz": "Europe/Berlin"}

    made = report([3], **options, explorer=client)

    row = made.frames["summary"].row(0, named=True)
    assert (94, 318) == (row["first_epoch"], row["last_epoch"])
    days = made.frames["income"].select("date", "complete").rows()
    assert [(date(2026, 10, 1), True)] == days


@pytest.mark.more
def test_blocks_of_the_last_epoch_count(client, tables):
    """A report ends with its last epoch: what a block of this epoch paid is in it."""
    block = tables["execution_blocks"].sort("slot").row(-1, named=True)
    span = {"since": block["epoch"] - 1, "until": block["epoch"]}

    made = report([block["proposer_index"]], **span, explorer=client)

    row = made.frames["summary"].row(0, named=True)
    assert (1, block["producer_reward_wei"]) == (row["blocks"], row["execution_income_wei"])


@pytest.mark.parametrize(
    ("first", "last", "complete"),
    [(113, 337, True), (114, 337, False), (113, 336, False)],
)
def test_a_day_is_complete_with_all_of_its_epochs(made, first, last, complete):
    """2026-10-01 begins 12 h after the genesis: epochs 113 to 337 begin in it."""
    time = made.inputs.chain.time_of("epoch", 200)
    item = made.inputs.items["income"]
    rows = item.rows.head(1).with_columns(epoch=200, time=pl.lit(time).dt.cast_time_unit("us"))
    items = {"income": dataclasses.replace(item, rows=rows)}
    inputs = dataclasses.replace(made.inputs, first=first, last=last, items=items)

    income = build_income(inputs, {})["income"]

    assert [(date(2026, 10, 1), complete)] == income.select("date", "complete").rows()


def end_activity(made, **epochs):
    """Return the item of validators, of which the first one is active in these *epochs* only."""
    item = made.inputs.items["validators"]
    is_first = pl.col("validator_index") == MINE[0]
    rows = item.rows.with_columns(
        pl.when(is_first).then(pl.lit(epoch)).otherwise(name).alias(name)
        for name, epoch in epochs.items()
    )
    return {"validators": dataclasses.replace(item, rows=rows)}


def test_votes_after_the_exit_of_a_validator_do_not_count(made, no_charts):
    """They are penalties of a slashed validator: all of its votes would be missed ones."""
    income, exited = made.inputs.items["income"], pl.col("validator_index") == MINE[0]
    has_exited = exited & (pl.col("epoch") >= FIRST + 100)
    rows = income.rows.with_columns(
        pl.when(has_exited).then(amount).otherwise(pl.col(f"attestation_{name}_gwei")).alias(
            f"attestation_{name}_gwei"
        )
        for name, amount in (
            ("head_reward", 0), ("source_reward", 0), ("target_reward", 0),
            ("source_penalty", 3000), ("target_penalty", 5000),
        )
    )  # fmt: skip
    items = made.inputs.items | {"income": dataclasses.replace(income, rows=rows)}
    items |= end_activity(made, exit_epoch=FIRST + 100)

    frames, _ = build_frames(dataclasses.replace(made.inputs, items=items))

    voted = bf.analysis.attestation_rates(rows.filter(~has_exited), every="all")
    assert voted["effectiveness"][0] == frames["summary"]["effectiveness"][0]
    assert voted["votes"][0] == frames["effectiveness"]["votes"].sum()
    own = frames["validators"].filter(exited)
    assert 100 == own["votes"][0]
    assert own["effectiveness"][0] > 0.9


def test_days_before_the_activation_are_no_stake(made, tables, no_charts):
    """The rate of daily statistics is that of the active validators, together and for each."""
    stats = tables["validator_stats"].filter(pl.col("day") == 1)
    blocks = tables["execution_blocks"].filter(pl.col("epoch").is_between(225, 449))
    items = {"stats": Input("stats", "", stats), "blocks": Input("blocks", "", blocks)}
    rates, each = [], []
    for activation in (0, 225 + 75):
        known = items | end_activity(made, activation_epoch=activation)
        inputs = dataclasses.replace(made.inputs, detail="days", first=225, last=449, items=known)
        frames, _ = build_frames(inputs)
        rates.append(frames["rate"]["apr_on_effective"][0])
        assert rates[-1] == frames["rates"]["apr_on_effective"][0]
        each.append(frames["validators"].sort("validator_index")["apr_on_effective"].to_list())

    whole, late = each
    assert late[0] == pytest.approx(1.5 * whole[0])
    assert whole[1:] == late[1:]
    stakes = stats.sort("validator_index")["start_effective_balance_gwei"]
    ratio = stakes.sum() / (stakes.sum() - stakes[0] / 3)
    assert rates[1] == pytest.approx(rates[0] * ratio)


@pytest.mark.more
@pytest.mark.parametrize(
    ("activation", "exit_epoch", "active"),
    [(LAST, LAST + 1, 6), (LAST, LAST, 5), (LAST + 1, None, 5)],
)
def test_validators_that_are_active_in_the_last_epoch_count(made, activation, exit_epoch, active):
    """A validator has no duty any more in the epoch of its exit."""
    ends = end_activity(made, activation_epoch=activation, exit_epoch=exit_epoch)
    items = made.inputs.items | ends

    frames, _ = build_frames(dataclasses.replace(made.inputs, items=items))

    assert active == frames["summary"]["active"][0]


def test_a_young_chain_is_reported_from_its_genesis(client):
    """Without since, a devnet of some hours is no error; an older chain has the last 30 days."""
    head, genesis = client.chain_head, client.chain.genesis
    final = head.latest("epoch", finalized=True)

    for age, first in ((29, 0), (31, 225)):
        aged = dataclasses.replace(head, present=lambda age=age: genesis + timedelta(days=age))
        assert (first, final) == find_range(aged, None, None)


@pytest.mark.more
@pytest.mark.parametrize("dtype", [pl.Int64, pl.UInt16])
def test_names_of_the_requested_frame_are_shown(client, dtype):
    """By index or by public key; a validator without a name keeps that of the service."""
    known = bf.load_validators(MINE[:3], explorer=client)
    named = pl.DataFrame(
        {
            "validator_index": pl.Series([MINE[0], MINE[1], None, MINE[0]], dtype=dtype),
            "pubkey": [None, None, known["pubkey"][2], None],
            "name": ["rock-1", None, "house", "rock-1"],
        }
    )

    inputs = load_inputs(named, since=440, until=449, groups=None, detail="epochs", explorer=client)
    table = build_frames(inputs)[0]["validators"]

    assert [(MINE[0], "rock-1"), (MINE[1], known["name"][1]), (MINE[2], "house")] == table.select(
        "validator_index", "name"
    ).rows()


def test_missing_rows_are_listed(client):
    """An unknown validator is a gap of each input, and the report is about the others."""
    with pytest.warns(MissingRows, match="is incomplete: load_validators: rows are missing"):
        made = report([3, 99_999], since=440, until=442, explorer=client)

    rows = made.frames["inputs"].filter(pl.col("input") == "validators")
    assert ("incomplete", 1, 1) == rows.select("state", "rows", "gaps").row(0)
    assert [3] == made.frames["validators"]["validator_index"].to_list()
    assert "unknown" in made.frames["missing"]["reason"].str.join().item()


def test_gaps_of_several_loads_are_joined():
    """Income is loaded 1,500 epochs at a time: one gap of a validator is one row."""
    reason = ["not in the dataset"] * 5
    gaps = pl.DataFrame(
        {
            "input": ["income"] * 4 + ["balances"],
            "reason": reason,
            "validator_index": [1, 2, 1, 1, 1],
            "first_epoch": [10, 10, 20, 31, 30],
            "last_epoch": [19, 19, 29, 40, 40],
        }
    )

    joined = trust.merge_gaps(gaps)

    assert [
        ("income", reason[0], 1, 10, 29),
        ("income", reason[0], 1, 31, 40),
        ("income", reason[0], 2, 10, 19),
        ("balances", reason[0], 1, 30, 40),
    ] == joined.rows()
    assert gaps.drop("first_epoch").equals(trust.merge_gaps(gaps.drop("first_epoch")))


@pytest.mark.more
def test_daily_statistics_make_a_report(client, no_charts, tables, made, chain):
    """With daily statistics, income is the change of the balances of the whole days."""
    daily = report(MINE, since=225, until=449, detail="days", explorer=client)

    stats = tables["validator_stats"].filter(pl.col("day") == 1)
    change = stats["end_balance_gwei"].sum() - stats["start_balance_gwei"].sum()
    moved = stats["withdrawals_amount_gwei"].sum() - stats["deposits_amount_gwei"].sum()
    answer = daily.frames["summary"].row(0, named=True)
    assert change + moved == answer["consensus_income_gwei"]
    votes = 225 * len(MINE)
    assert 1 - stats["missed_attestations"].sum() / votes == pytest.approx(answer["included_rate"])
    stake = stats["start_effective_balance_gwei"].sum()
    assert float(answer["net_income_wei"]) / 1e9 * 365 / stake == pytest.approx(
        answer["apr_on_effective"]
    )
    absent = {"network", "sync_epochs", "sync_luck", "unexplained"}
    assert absent < made.report.frames.keys()
    assert daily.left_out.keys() == {"reconciliation", *absent}
    page = daily.to_html()
    assert "Balances are not checked" in page
    # Sync duties have a cost: the yield index shows what they earn.
    assert "Estimated from daily statistics. Without late votes" in page
    assert "no cost" not in page
    outcomes = daily.frames["proposals"]["status"]
    lost = (outcomes != "proposed").sum()
    assert stats.select(pl.sum("missed_blocks", "orphaned_blocks")).sum_horizontal().item() == lost
    assert stats["proposed_blocks"].sum() == (outcomes == "proposed").sum() > 0
    head = client.chain_head
    latest, final = head.latest("epoch"), head.latest("epoch", finalized=True)
    source = Source(chain, MINE, 225, 449, latest, final, client.chain)
    missed = daily.frames["problems"].filter(pl.col("table") != "validators").sort("kind")
    columns = "kind", "validator_index", "cost_gwei", "cost_basis"
    assert compute_daily_costs(source) == sorted(missed.select(columns).rows())
    kinds = {"missed votes", "sync committee", "missed proposal"}
    assert kinds <= set(missed["kind"])
    assert 0 == answer["cost_unknown"]
    assert (FIRST, LAST) == (made.inputs.first, made.inputs.last)


def answer_with(stored, calls):
    """A loader whose source has one validator in the epochs of *stored*, and says so."""

    def load_income_history(indices, *, since, until, **_):
        calls.append((since, until))
        epochs = [epoch for epoch in range(since, until + 1) if epoch in stored]
        index = pl.lit(indices[0]).alias("validator_index")
        rows = pl.DataFrame({"epoch": epochs}, schema={"epoch": pl.Int64}).with_columns(index)
        if len(epochs) <= until - since:
            error = MissingRows("rows are missing")
            last = min(epochs, default=until + 1) - 1
            gap = {"reason": "not in the dataset", "validator_index": indices[0]}
            error.missing = pl.DataFrame([gap | {"first_epoch": since, "last_epoch": last}])
            error.rows = rows
            raise error
        return rows

    return load_income_history


def test_a_source_that_begins_late_is_searched_with_few_requests():
    """Of each window before the rows, its first epoch is requested; the gap is one row."""
    calls = []
    explorer = SimpleNamespace(chain=MAINNET, requests=0)
    inputs = Inputs(explorer, [7], None, 20_000, 79_999, "epochs")

    inputs.load_epochs("income", answer_with(range(77_100, 80_000), calls))
    inputs.begin_with("income", "epoch")

    # Windows of 1,500 epochs, from the latest.
    assert [78_500, 77_000, 75_500] == [since for since, until in calls if until > since]
    assert [*range(74_000, 19_999, -1500)] == [since for since, until in calls if until == since]
    rows, missing = inputs.items["income"].rows, inputs.items["income"].missing
    assert list(range(77_100, 80_000)) == rows["epoch"].to_list()
    assert (77_100, 20_000) == (inputs.first, inputs.requested)
    assert [("not in the dataset", 20_000, 77_099)] == (
        missing.select("reason", "first_epoch", "last_epoch").rows()
    )


def test_a_gap_of_weeks_does_not_end_the_report():
    """An index of two ranges: the rows of both are in the report, and the gap is missing."""
    stored = {*range(2_000, 4_100), *range(14_000, 15_000)}
    inputs = Inputs(SimpleNamespace(chain=MAINNET, requests=0), [7], None, 0, 14_999, "epochs")

    inputs.load_epochs("income", answer_with(stored, []))
    inputs.begin_with("income", "epoch")

    rows, missing = inputs.items["income"].rows, inputs.items["income"].missing
    assert sorted(stored) == rows["epoch"].to_list()
    assert (2_000, 0) == (inputs.first, inputs.requested)
    gaps = missing.select("first_epoch", "last_epoch").rows()
    lost = set().union(*(range(first, last + 1) for first, last in gaps))
    assert {4_500, 13_499, 13_999} <= lost
    assert not lost & stored


@pytest.mark.parametrize(
    ("reason", "is_given", "is_missing"),
    [
        ("not in the dataset", False, False),
        ("not in the dataset", True, True),
        ("not returned by the service", False, True),
    ],
)
def test_a_dataset_shorter_than_the_default_range_is_not_incomplete(reason, is_given, is_missing):
    """The range of a report is 30 days unless one is requested; a dataset can have fewer."""
    item = Input("income", "load_income_history", pl.DataFrame({"epoch": [70, 71]}))
    item.missing = pl.DataFrame({"reason": [reason], "first_epoch": [0], "last_epoch": [69]})
    inputs = Inputs(SimpleNamespace(chain=MAINNET), [7], None, 0, 71, "epochs")
    inputs.items["income"], inputs.is_range_given = item, is_given

    inputs.begin_with("income", "epoch")

    assert (70, 0) == (inputs.first, inputs.requested)
    assert ("incomplete" if is_missing else "complete") == item.state
    gaps = [] if item.missing is None else item.missing.rows()
    assert ([(reason, 0, 69)] if is_missing else []) == gaps


def test_a_gap_around_the_first_row_is_one_before_and_one_after_it():
    """What comes before the first row is one gap of the source; the rest stays with its part."""
    item = Input("income", "load_income_history", pl.DataFrame({"epoch": [70, 90]}))
    gaps = {"reason": ["not returned by the service"] * 2, "first_epoch": [60, 75]}
    item.missing = pl.DataFrame(gaps | {"last_epoch": [72, 80]})
    inputs = Inputs(SimpleNamespace(chain=MAINNET), [7], None, 0, 90, "epochs")
    inputs.items["income"], inputs.is_range_given = item, True

    inputs.begin_with("income", "epoch")

    found = item.missing.select("first_epoch", "last_epoch").rows()
    assert [(0, 69), (70, 72), (75, 80)] == found


def test_ages_of_a_report_count_from_the_last_final_epoch(client):
    """A report is made of final epochs: -3 are the last three of them."""
    head = client.chain_head
    final = head.latest("epoch", finalized=True)

    assert head.latest("epoch") > final
    assert (final - 2, final) == find_range(head, -3, None)
    with pytest.raises(UsageError, match=f"epoch {final + 1} is not final yet"):
        find_range(head, 0, final + 1)


def test_validators_that_exited_before_others_were_active_stay_in_the_report():
    """The epochs between them have no rows, and none is missing."""
    lives = {7: range(2_000), 8: range(12_000, 15_000)}
    inputs = Inputs(SimpleNamespace(chain=MAINNET, requests=0), [7, 8], None, 0, 14_999, "epochs")

    def load_income_history(indices, *, since, until, **_):
        rows = [
            (index, epoch)
            for index in indices
            for epoch in range(max(since, lives[index].start), min(until + 1, lives[index].stop))
        ]
        return pl.DataFrame(rows, {"validator_index": pl.Int64, "epoch": pl.Int64}, orient="row")

    inputs.load_epochs("income", load_income_history)

    counts = dict(inputs.items["income"].rows.group_by("validator_index").len().iter_rows())
    assert {7: 2_000, 8: 3_000} == counts
    assert inputs.items["income"].missing is None


def test_windows_without_a_row_at_the_end_are_no_end():
    """Validators that exited have rows of earlier epochs alone."""
    calls = []
    explorer = SimpleNamespace(chain=MAINNET, requests=0)
    inputs = Inputs(explorer, [7], None, 0, 5_999, "epochs")

    def load_income_history(indices, *, since, until, **_):
        calls.append(since)
        return pl.DataFrame({"epoch": range(since, until + 1) if since == 0 else []})

    inputs.load_epochs("income", load_income_history)
    inputs.begin_with("income", "epoch")

    assert [4500, 3000, 1500, 0] == calls
    assert (0, None) == (inputs.first, inputs.requested)


def test_daily_statistics_begin_with_their_first_day(made, no_charts):
    """The page and the summary state the range that was requested."""
    explorer = SimpleNamespace(chain=MAINNET, requests=0)
    inputs = Inputs(explorer, [7], None, 900, 2249, "days")
    inputs.items["stats"] = Input(
        "stats",
        "load_validator_stats",
        pl.DataFrame({"day": [7, 8, 9]}),
        missing=pl.DataFrame({"reason": ["no row"], "first_day": [4], "last_day": [6]}),
    )

    inputs.begin_with("stats", "day")

    assert (1575, 900) == (inputs.first, inputs.requested)
    assert [("no row", 4, 6)] == inputs.items["stats"].missing.rows()
    late = dataclasses.replace(made.inputs, requested=5)
    frames, left_out = build_frames(late)
    begin = made.inputs.chain.time_of("epoch", 5)
    assert begin == frames["summary"]["requested_since"].item()
    assert f"requested from {begin:%Y-%m-%d %H:%M}" in render_page(
        frames, left_out, interactive=False
    )
    assert f"requested from {begin:%Y-%m-%d %H:%M}" in "\n".join(
        Report(frames, left_out).summarize()
    )


def test_an_exit_after_the_last_whole_day_is_not_ahead(made, tables):
    """Epoch 460 is in the range, which ends with epoch 470, and not in its last whole day."""
    items = {"stats": Input("stats", "", tables["validator_stats"].filter(pl.col("day") == 1))}
    items |= end_activity(made, exit_epoch=460)
    inputs = dataclasses.replace(made.inputs, detail="days", first=225, last=449, items=items)
    inputs.period = 225, 470

    frames, _ = build_frames(inputs)

    summary = frames["summary"].row(0, named=True)
    assert (470, 5) == (summary["last_epoch"], summary["active"])
    assert frames["problems"].filter(kind="exiting").is_empty()
    assert "epoch=470," in build_notebook(inputs, frames)


def test_execution_income_of_days_that_are_not_counted_is_stated(made, tables, no_charts):
    """A proposer without a balance at the end of the day: what it received is no longer silent."""
    stats = tables["validator_stats"].filter(pl.col("day") == 1)
    blocks = tables["execution_blocks"].filter(pl.col("epoch").is_between(225, 449))
    proposer = blocks["proposer_index"][0]
    end = pl.when(pl.col("validator_index") != proposer).then("end_balance_gwei")
    items = {"stats": Input("stats", "", stats.with_columns(end.alias("end_balance_gwei")))}
    items["blocks"] = Input("blocks", "", blocks)
    items["validators"] = made.inputs.items["validators"]

    inputs = dataclasses.replace(made.inputs, detail="days", first=225, last=449, items=items)
    frames, left_out = build_frames(inputs)

    lost = blocks.filter(pl.col("proposer_index") == proposer)["producer_reward_wei"].sum()
    row = frames["summary"].row(0, named=True)
    assert (1, lost) == (row["left_out_days"], row["left_out_execution_wei"])
    assert blocks["producer_reward_wei"].sum() == lost + row["execution_income_wei"]
    page = render_page(frames, left_out, interactive=False)
    assert "1 validator-day of unknown consensus income is not counted" in page
    assert "1 validator-day not counted" in "\n".join(Report(frames, left_out).summarize())


def test_a_frame_of_several_loads_is_left_out_if_one_fails():
    """Missed proposals of two days: those of the first day alone would look complete."""
    inputs = Inputs(SimpleNamespace(chain=MAINNET, requests=0), [7], None, 0, 449, "days")

    def load_proposals(indices, *, since, **_):
        if since == 225:
            raise NotServed("the service does not answer")
        return pl.DataFrame({"slot": [since]})

    found = [inputs.load("proposals", load_proposals, [7], since=day * 225) for day in range(3)]

    assert [1, None, None] == [rows if rows is None else rows.height for rows in found]
    assert "the service does not answer" == inputs.items["proposals"].reason


def test_unknown_execution_income_of_days_that_are_not_counted_is_not_zero():
    """If the payment of one block is unknown, so is the sum."""
    gaps = pl.DataFrame(
        {"validator_index": [7, 8], "day": [1, 1], "execution_income_wei": [5, None]},
        schema_overrides={"execution_income_wei": pl.Decimal(28, 0)},
    )

    (totals,) = answer.list_income(SimpleNamespace(get=lambda _: None), {"income_gaps": gaps})

    assert [(2, None)] == totals.rows()
    assert "with unknown execution income" in describe_left_out(totals.row(0, named=True))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "no validators are given"),
        ({"validators": [99_999]}, "the validators cannot be loaded"),
        ({"groups": {"A": [1], "B": [1, 2]}}, "validator 1 is in several groups"),
        ({"groups": {"A": "one"}}, "group 'A' is 'one'"),
        ({"groups": {"A": [1.5, 2]}}, r"group 'A' is \[1.5, 2\]"),
        ({"groups": 7}, "groups is int"),
        ({"groups": {}}, "groups has no validators"),
        ({"groups": {"A": [1], "B": []}}, r"group 'B' is \[\]"),
        (
            {"validators": [1, 2], "groups": {"A": [1, 7], "typo": [50]}},
            "group 'typo' has no validator of this report",
        ),
        (
            {"groups": pl.DataFrame({"validator_index": [1, 2, 3], "group": ["A", None, "B"]})},
            "groups has 1 validator without a group, such as 2. Name their groups, or pass all",
        ),
        ({"validators": [1], "detail": "slots"}, "detail='slots' is not valid"),
    ],
)
def test_invalid_arguments(client, arguments, message):
    with pytest.raises(UsageError, match=message):
        report(**arguments, since=440, until=441, explorer=client)


def test_a_requested_group_that_is_unknown_is_no_mistake(client):
    """Its validators may deposit later: the report lists them as missing."""
    groups = {"A": [1], "next": [50, 99_999]}

    with pytest.warns(MissingRows, match="load_validators"):
        made = report([1, 99_999], groups=groups, since=440, until=441, explorer=client)

    assert ["A"] == made.frames["group_verdict"]["group"].to_list()


def test_groups_of_public_keys_in_other_spellings(client):
    """Keys in capitals, without 0x, are those of the same validators."""
    keys = bf.load_validators([1, 2], explorer=client)["pubkey"].str.strip_prefix("0x")
    groups = pl.DataFrame({"pubkey": keys.str.to_uppercase(), "group": ["A", "B"]})

    made = report(groups=groups, since=440, until=441, explorer=client)

    assert ["A", "B"] == made.frames["group_verdict"]["group"].to_list()
