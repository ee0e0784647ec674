"""The yield index of V2: ranges, pages, plans of keys, the store, unknown names."""

from __future__ import annotations

import json
import logging
import warnings
from contextlib import contextmanager

import httpx
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import errors
from beaconframes.dataset import Grid
from beaconframes.endpoint import ChainHead
from beaconframes.server import Server
from beaconframes.v2 import yield_index as module
from beaconframes.v2.yield_index import YIELD_INDEX

from ..support import small_dataset as small
from ..support.replay import replaying

PATH = "/api/v2/ethereum/eth-store"
FREE, PREMIUM = "free-key-0123456789", "premium-key-0123456789"


@pytest.fixture(scope="module")
def years(tmp_path_factory):
    """A chain with 400 days of yields behind it."""
    from beaconframes.simulator import simulate

    folder = tmp_path_factory.mktemp("years") / "data"
    return simulate(folder, validators=60, epochs=8, seed=3, history_days=400)


@pytest.fixture(scope="module")
def server(years):
    """A local explorer with one key of each tier."""
    with Server(years, keys={FREE: "free", PREMIUM: "premium"}) as server:
        yield server


def connect(server, key=PREMIUM, **more):
    """Return an explorer with an API key, whose head is known."""
    service = server.service
    head = more.pop("head", service.head)
    return bf.Explorer(
        server.url, api_key=key, chain=service.chain, head=head, rate=1000, store=False, **more
    )


def first_version(years):
    """Return the index as V1 stores it."""
    return years.scan("yield_index").sort("day").collect()


def own_columns(rows):
    """Return the columns that V1 has too."""
    return rows.drop("finality", "more")


def post(server, body, key=PREMIUM):
    """Return the answer to a request."""
    return httpx.post(
        f"{server.url}{PATH}",
        json={"chain": "mainnet", **body},
        headers={"Authorization": f"Bearer {key}"},
    )


def days_of(reply):
    """Return the days of an answer, in its order."""
    return [record["day"] for record in reply.json()["data"]]


@pytest.mark.parametrize("key", [FREE, PREMIUM])
@pytest.mark.parametrize(
    ("days", "requests"),
    [(1, 1), (10, 1), (11, 2), (30, 3), pytest.param(365, 37, marks=pytest.mark.more)],
)
def test_ten_days_cost_one_request(years, server, key, days, requests):
    """The plan is exact, for every key: the days before now are in a window."""
    with connect(server, key) as explorer:
        plan = bf.plan(bf.v2.load_yield_index, since=-days, explorer=explorer)
        rows = bf.v2.load_yield_index(since=-days, explorer=explorer)

        assert requests == explorer.requests
    assert (requests, "exactly", days) == (plan.requests, plan.bound, plan.rows)
    assert_frame_equal(first_version(years).tail(days), own_columns(rows))
    assert {"finalized"} == set(rows["finality"])
    assert rows["more"].null_count() == days


def test_without_a_range_it_is_the_latest_day(years, server):
    """One request, for every key, of which the first record counts."""
    with connect(server, FREE) as explorer:
        plan = bf.plan(bf.v2.load_yield_index, explorer=explorer)
        rows = bf.v2.load_yield_index(explorer=explorer)

        assert 1 == explorer.requests == plan.requests
    assert "exactly" == plan.bound
    assert_frame_equal(first_version(years).tail(1), own_columns(rows))


def test_a_large_plan_requests_old_days_alone(years, server):
    """Twelve old days are two pages."""
    with connect(server) as explorer:
        rows = bf.v2.load_yield_index(since=100, until=111, explorer=explorer)

        assert 2 == explorer.requests
    assert_frame_equal(first_version(years)[100:112], own_columns(rows))


def test_a_small_plan_reads_the_pages_since_old_days(years, server):
    """The refusal is learned once: then the plan is exact, and no range of time is sent."""
    newest = first_version(years)["day"].max()
    old = {"since": newest - 35, "until": newest - 33}
    with connect(server, FREE) as explorer:
        before = bf.plan(bf.v2.load_yield_index, explorer=explorer, **old)
        first = bf.v2.load_yield_index(explorer=explorer, **old)
        cost = explorer.requests
        after = bf.plan(bf.v2.load_yield_index, explorer=explorer, **old)
        second = bf.v2.load_yield_index(explorer=explorer, **old)

        assert 4 == explorer.requests - cost
    assert 1 + 4 == cost
    assert (1, "at least") == (before.requests, before.bound)
    assert any("may not include ranges" in reason for reason in before.why)
    assert (4, "exactly", 3) == (after.requests, after.bound, after.rows)
    assert_frame_equal(first, second)
    assert_frame_equal(first_version(years)[newest - 35 : newest - 32], own_columns(first))


@pytest.mark.more
def test_the_bounds_are_those_of_v1(years, server):
    """A month, a date, an age and negative numbers select the same days."""
    with connect(server) as explorer:
        for bounds in (
            {"since": "2025-10", "until": "2025-10"},
            {"until": "2025-11-20"},
            {"since": "30d"},
            {"since": -5, "until": -2},
            {"until": 7},
        ):
            expected = bf.load_yield_index(explorer=explorer, **bounds)
            assert_frame_equal(
                expected, own_columns(bf.v2.load_yield_index(explorer=explorer, **bounds))
            )
            assert not expected.is_empty()


def ask(now_day, since, until, **more):
    """Return the ranges that a plan on mainnet sends, on a day, with those of its alternatives."""
    moment = bf.MAINNET.time_of("day", now_day)
    head = ChainHead(bf.MAINNET, lambda: None, lambda: moment, **more)
    calls = YIELD_INDEX.plan({"since": since, "until": until}, head)
    others = [YIELD_INDEX.find_alternative(call) for call in calls]
    return [
        call and call.fields["range"] for pair in zip(calls, others, strict=True) for call in pair
    ]


@pytest.mark.parametrize(
    ("first", "window"),
    [(1999, "7d"), (1994, "7d"), (1993, "30d"), (1971, "30d"), (1970, "90d"), (1911, "90d"),
     (1910, "all_time"), (0, "all_time")],
)  # fmt: skip
def test_the_window_is_the_smallest_that_holds_the_first_day(first, window):
    """It ends now, in day 2000: a window of 7 days has all of the six days before."""
    assert [{"evaluation_window": window}, None] == ask(2000, first, 1999)


def test_old_days_are_a_range_of_time_with_a_window_as_alternative():
    """From the first to the last second; only where it needs fewer pages."""
    start = 1606824023 + 1900 * 86_400
    seconds = {"start": start, "end": start + 2 * 86_400 - 1}

    assert [{"timestamp": seconds}, {"evaluation_window": "all_time"}] == ask(2000, 1900, 1901)
    assert [{"evaluation_window": "all_time"}, None] == ask(2000, 1900, 1901, refuses_ranges=True)
    assert [{"evaluation_window": "30d"}, None] == ask(2000, 1990, 1991)
    assert [{"evaluation_window": "30d"}, None] == ask(2000, 1981, 1989, refuses_ranges=True)


def test_the_service_has_windows_and_other_ranges(server, years):
    """A window has as many days as its name says; a range has the days that end in it."""
    newest = first_version(years)["day"].max()
    start = int(server.service.chain.time_of("day", 5).timestamp())
    size = server.service.chain.epochs_per_day
    for interval, days in (
        ({"evaluation_window": "24h"}, [newest]),
        ({"evaluation_window": "7d"}, [*range(newest, newest - 7, -1)]),
        ({"timestamp": {"start": start, "end": start + 2 * 86_400 - 1}}, [6, 5]),
        ({"timestamp": {"start": start, "end": start + 2 * 86_400 - 2}}, [6, 5]),
        ({"timestamp": {"start": start, "end": start + 86_400 * 2 - 13}}, [5]),
        ({"epoch": {"start": 5 * size, "end": 7 * size - 1}}, [6, 5]),
        ({"epoch": {"start": 5 * size, "end": 7 * size - 2}}, [5]),
        ({"slot": {"start": 5 * size * 32, "end": 7 * size * 32 - 1}}, [6, 5]),
        ({"slot": {"start": 6 * size * 32, "end": 7 * size * 32 - 2}}, []),
    ):
        reply = post(server, {"range": interval})
        assert (200, days) == (reply.status_code, days_of(reply)), interval
    stated = post(server, {"range": {"epoch": {"start": 5 * size, "end": 6 * size}}}).json()
    assert {"start": 5 * size, "end": 6 * size} == stated["range"]["epoch"]
    assert "more" not in stated["data"][0]


@pytest.mark.parametrize(
    "interval",
    [
        None, {}, "7d", {"evaluation_window": "31d"}, {"epoch": {"start": 5}}, {"epoch": 5},
        {"slot": {"start": 6, "end": 5}}, {"slot": {"start": -1, "end": 5}},
        {"day": {"start": 1, "end": 5}},
        {"slot": {"start": 1, "end": 5}, "evaluation_window": "7d"},
    ],
)  # fmt: skip
def test_invalid_ranges_are_bad_requests(server, interval):
    """No range, an unknown form or window, two forms, and ends that are no range."""
    assert 400 == post(server, {} if interval is None else {"range": interval}).status_code


@pytest.mark.parametrize("form", ["timestamp", "epoch", "slot"])
def test_a_free_key_has_windows_only(server, form):
    """The error names the form."""
    reply = post(server, {"range": {form: {"start": 0, "end": 10**6}}}, FREE)

    assert 403 == reply.status_code
    assert f"the range {form} is not allowed for your subscription tier" in reply.json()["error"]
    assert 200 == post(server, {"range": {"evaluation_window": "all_time"}}, FREE).status_code


def test_final_days_are_stored(server, years, tmp_path):
    """The second load sends nothing, a longer one requests the other days alone."""
    service = server.service
    with bf.Explorer(
        server.url,
        api_key=PREMIUM,
        chain=service.chain,
        head=service.head,
        store=tmp_path,
        rate=1000,
    ) as explorer:
        rows = bf.v2.load_yield_index(since=100, until=119, explorer=explorer)
        before = explorer.requests
        again = bf.v2.load_yield_index(since=100, until=119, explorer=explorer)
        assert 2 == before == explorer.requests
        plan = bf.plan(bf.v2.load_yield_index, since=98, until=121, explorer=explorer)
        wider = bf.v2.load_yield_index(since=98, until=121, explorer=explorer)

        assert plan.requests == explorer.requests - before
    assert_frame_equal(rows, again)
    assert_frame_equal(first_version(years)[98:122], own_columns(wider))


def record(day, **more):
    """Return a day as the service may send it."""
    amounts = {"rewards": "2000000000000000000"}
    return {
        "day": day,
        "combined": {"apr": 0.0365, **amounts},
        "consensus_layer": {"apr": 0.0365, **amounts},
        "execution_layer": {"apr": 0.0, "priority_fees": "0"},
        "deposits": "0",
        "balances": {"effective": "20000000000000000000000", "start": "1", "end": "2"},
        **more,
    }


def page(records, cursor="", end=5):
    """Return a page with its cursor, and a range that ends with an epoch."""
    stated = {"epoch": {"start": 1, "end": end}}
    return json.dumps(
        {"data": records, "range": stated, "paging": {"next_cursor": cursor}}
    ).encode()


@contextmanager
def serving(reply, **more):
    """Serve *reply* of the request body for every request."""
    with (
        replaying({"*": reply}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000, **more) as explorer,
    ):
        yield server, explorer


def test_absent_days_are_missing_rows_with_a_reason():
    """Days at an end are named in a warning, once they were requested twice."""
    with (
        serving(lambda _: page([record(1501)])) as (server, explorer),
        pytest.warns(bf.MissingRows, match="day 1500") as caught,
    ):
        rows = bf.v2.load_yield_index(since=1500, until=1501, explorer=explorer)

    assert [1501] == rows["day"].to_list()
    assert 2 == len(server.posted)
    assert [(1500, 1500, "not returned by the service")] == [
        gap[:3] for gap in caught[0].message.missing.rows()
    ]


def test_a_hole_between_days_is_an_error():
    """Every day has a row."""
    with (
        serving(lambda _: page([record(1502), record(1500)])) as (_, explorer),
        pytest.raises(errors.IntegrityError, match=r"final rows are missing.*day 1501"),
    ):
        bf.v2.load_yield_index(since=1500, until=1502, explorer=explorer)


def test_pages_after_the_first_day_are_not_read():
    """The service returns the newest days first, and other days are dropped."""
    with serving(lambda body: page([record(1502), record(1501)], "next")) as (server, explorer):
        rows = bf.v2.load_yield_index(since=1501, until=1501, explorer=explorer)

    assert [1501] == rows["day"].to_list()
    assert 1 == len(server.posted)


def test_a_moving_window_is_no_warning():
    """Published days are the same in every window."""

    def reply(body):
        first = body["cursor"] == ""
        return page([record(1501 if first else 1500)], "next" if first else "", end=5 + first)

    with serving(reply) as (_, explorer), warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = bf.v2.load_yield_index(since=1500, until=1501, explorer=explorer)

    assert [1500, 1501] == rows["day"].to_list()


@pytest.mark.parametrize("status", [400, 403])
def test_any_refusal_of_a_range_of_time_leads_to_a_window(status):
    """Whether the plan or the service refuses it is not documented."""

    def reply(body):
        if "timestamp" in body["range"]:
            return status, {}, b'{"error": "not now"}'
        return page([record(1500)])

    with serving(reply) as (server, explorer):
        rows = bf.v2.load_yield_index(since=1500, until=1500, explorer=explorer)
        bf.v2.load_yield_index(since=1500, until=1500, explorer=explorer)

    sent = [next(iter(json.loads(body)["range"])) for body in server.posted]
    assert ["timestamp", "evaluation_window", "evaluation_window"] == sent
    assert [1500] == rows["day"].to_list()


def test_unknown_names_stay_and_such_rows_are_not_stored(tmp_path, caplog):
    """The column is null, its value in the last column; a warning names the columns, once."""
    module.warn_missing_values.cache_clear()
    renamed = record(1500, combined={"yearly": 0.0365}, balances={"effective": "1"}, parts=[1])
    head = b'{"data": {"slot": 12771199}}'
    with (
        serving(lambda body: head if "slot" in body else page([renamed]), store=tmp_path) as (
            server,
            explorer,
        ),
        caplog.at_level(logging.WARNING, "beaconframes"),
    ):
        rows = bf.v2.load_yield_index(since=1500, until=1500, explorer=explorer)
        bf.v2.load_yield_index(since=1500, until=1500, explorer=explorer)

    assert 2 == sum(b"range" in body for body in server.posted)
    assert [None] == rows["finality"].to_list()
    assert [None] == rows["apr"].to_list()
    assert {"combined": {"yearly": 0.0365}, "parts": [1]} == json.loads(rows["more"][0])
    logged = [text for text in caplog.messages if "yield_index" in text]
    assert 1 == len(logged)
    assert "no value for apr, start_balances_sum_wei, end_balances_sum_wei, total_" in logged[0]


def test_a_day_that_is_not_final_is_not_called_final():
    """The service's own word counts."""
    with serving(lambda _: page([record(1500, finality="not_finalized")])) as (_, explorer):
        rows = bf.v2.load_yield_index(since=1500, until=1500, explorer=explorer)

    assert ["not_finalized"] == rows["finality"].to_list()


@pytest.mark.parametrize("apr", [3.65, -3.65])
def test_rates_in_per_cent_are_an_error(apr):
    """The amounts give 0.0365: a rate is never a hundred times too large."""
    wrong = record(1500, combined={"apr": apr, "rewards": "2000000000000000000"})
    with (
        serving(lambda _: page([wrong])) as (_, explorer),
        pytest.raises(errors.IntegrityError, match=r"apr -?3.65 is not a fraction"),
    ):
        bf.v2.load_yield_index(since=1500, until=1500, explorer=explorer)


@pytest.mark.parametrize("name", ["day", "Day"])
def test_a_record_without_a_day_is_an_error(name):
    """Nothing else says which day it is."""
    wrong = {key: value for key, value in record(1500).items() if key != "day"}
    wrong |= {"Day": 1500} if name == "Day" else {}
    with (
        serving(lambda _: page([wrong])) as (_, explorer),
        pytest.raises(errors.SchemaError, match="day"),
    ):
        bf.v2.load_yield_index(since=1500, until=1500, explorer=explorer)


def test_no_record_at_all_is_missing(years):
    """Days that are not published raise with strict."""
    with (
        serving(lambda _: page([])) as (_, explorer),
        pytest.raises(bf.MissingRows, match="day 1500"),
    ):
        bf.v2.load_yield_index(since=1500, until=1500, explorer=explorer, strict=True)


def test_a_lazy_frame_and_pandas_are_the_same(server):
    """Both have the latest day alone."""
    with connect(server) as explorer:
        rows = bf.v2.load_yield_index(explorer=explorer)
        lazy = bf.v2.load_yield_index(explorer=explorer, lazy=True)

        assert isinstance(lazy, pl.LazyFrame)
        assert_frame_equal(rows, lazy.collect())
        assert 1 == len(bf.v2.load_yield_index(explorer=explorer, frame="pandas"))


def test_a_wire_of_the_public_service_sends_the_same(years):
    """V2 has one wire."""
    with Server(years, wire="public", keys={PREMIUM: "premium"}) as public, connect(public) as own:
        rows = bf.v2.load_yield_index(since=-12, explorer=own)

    assert_frame_equal(first_version(years).tail(12), own_columns(rows))


@pytest.mark.more
@pytest.mark.parametrize("wire", ["spec", "public", "opened"])
def test_days_that_a_dataset_does_not_have_are_missing_rows(years, tmp_path, wire):
    """A hole in its coverage is no contradiction: V2 says what V1 says, with the same rows."""
    days = first_version(years).filter(pl.col("day").is_in([10, 11, 12, 15, 16, 17]))
    covered = {"": ((10, 12), (15, 17))}
    meta = {name: value for name, value in years.meta.items() if name != "simulated"}
    dataset = small.create(
        tmp_path / "days", meta=meta, yield_index=(days, Grid(None, "day", ("day",)), covered)
    )
    found = []
    with (
        bf.open(dataset) if wire == "opened" else bf.local(dataset, wire=wire),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        for load in (bf.load_yield_index, bf.v2.load_yield_index):
            rows = load(since=5, until=18)
            found.append((rows[days.columns].rows(), bf.missing().rows()))

    gaps = [(5, 9), (13, 14), (18, 18)]
    assert [(days.rows(), [(*gap, "not in the dataset") for gap in gaps])] * 2 == found
    assert [bf.MissingRows] * 2 == [warning.category for warning in caught]


@pytest.mark.parametrize("wire", ["spec", "public", "opened"])
def test_days_without_a_promised_value_are_not_called_final(years, tmp_path, wire):
    """Means of several days may be missing: such a row is final all the same."""
    days = first_version(years).filter(pl.col("day").is_in([10, 11, 12]))
    days = days.with_columns(
        pl.when(pl.col("day") != 11).then("cl_apr"),
        pl.when(pl.col("day") != 12).then("apr_avg_7d"),
    )
    meta = {name: value for name, value in years.meta.items() if name != "simulated"}
    dataset = small.create(
        tmp_path / "days",
        meta=meta,
        yield_index=(days, Grid(None, "day", ("day",)), {"": ((10, 12),)}),
    )
    with bf.open(dataset) if wire == "opened" else bf.local(dataset, wire=wire):
        rows = bf.v2.load_yield_index(since=10, until=12)

    assert [(10, "finalized"), (11, None), (12, "finalized")] == rows.select(
        "day", "finality"
    ).rows()
    assert [None] == rows.filter(day=11)["cl_apr"].to_list()
