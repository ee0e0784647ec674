"""Cursor pagination, sets of validators and limits, with well-behaved and faulty services."""

from __future__ import annotations

import json
import warnings
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest

import beaconframes as bf
from beaconframes import errors
from beaconframes.endpoint import pagination as cursors
from beaconframes.v2.performance_aggregate import PerformanceAggregate
from beaconframes.v2.rewards_aggregate import RewardsAggregate
from beaconframes.v2.validator_list import Validators

from ..support.replay import replaying
from ..support.whole_records import whole

SLOT = 12_771_160
KEY = "0x" + "ab" * 48


def row(index, amount="1", kind="partial_sweep"):
    """Return a withdrawal as the service sends it."""
    return {"validator": {"index": index, "public_key": KEY}, "amount": amount, "type": kind}


def answer(rows, cursor=None, **more):
    """Return a page with its cursor, of any type."""
    return json.dumps({"data": rows, "paging": {"next_cursor": cursor}, **more}).encode()


@contextmanager
def serving(reply):
    """Serve *reply* of the request body for every request."""
    with (
        replaying({"*": reply}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000) as explorer,
    ):
        yield server, explorer


def withdrawals(reply, **more):
    """Load a slot from such a service; return the rows or the error, and the requests."""
    with serving(reply) as (server, explorer):
        try:
            found = bf.v2.load_slot_withdrawals(SLOT, explorer=explorer, **more)
        except errors.BeaconframesError as error:
            found = error
        return found, [json.loads(body) for body in server.posted]


def place(body):
    """Return the page number of a cursor."""
    return int(body["cursor"] or 0)


@pytest.mark.parametrize("length", [1, 2, 7])
def test_a_repeated_cursor_is_an_error(length):
    """P01: all cursors are remembered: a cycle ends after one more request."""

    def cycle(body):
        step = place(body)
        return answer([row(step)], str(step % length + 1))

    error, requests = withdrawals(cycle)

    assert isinstance(error, errors.PaginationError)
    assert len(requests) <= length + 1
    assert "POST /api/v2/ethereum/slot/withdrawals" == error.endpoint


@pytest.mark.more
def test_endless_empty_pages_are_an_error():
    """P02: after 32 empty pages in a row the call raises."""
    error, requests = withdrawals(lambda body: answer([], str(place(body) + 1)))

    assert isinstance(error, errors.PaginationError)
    assert 32 == len(requests)


def test_endless_empty_pages_of_many_calls_are_counted_together():
    """C6: they stop after 32 empty pages in all, and at most one more of each call ahead."""
    with (
        serving(lambda body: answer([], str(place(body) + 1))) as (server, explorer),
        pytest.raises(errors.PaginationError),
    ):
        bf.v2.load_slot_withdrawals(range(SLOT, SLOT + 40), explorer=explorer)

    assert 32 + 16 >= len(server.posted)


def test_pages_without_new_rows_are_an_error():
    """P02: new cursors with the same rows raise."""
    error, requests = withdrawals(lambda body: answer([row(1), row(2)], str(place(body) + 1)))

    assert isinstance(error, errors.PaginationError)
    assert 2 == len(requests)


def test_endless_pages_of_new_rows_are_an_error(monkeypatch):
    """New rows on each page do not end either: a list has a largest number of pages."""
    monkeypatch.setattr("beaconframes.endpoint.pagination.MAX_PAGES", 5)

    error, requests = withdrawals(lambda body: answer([row(place(body))], str(place(body) + 1)))

    assert isinstance(error, errors.PaginationError)
    assert "there are more than 5 pages" in str(error)
    assert 5 == len(requests)


@pytest.mark.parametrize(
    "paging", ["absent", None, {}, "", {"next_cursor": None}, {"next_cursor": ""}]
)
def test_every_form_of_the_last_page_ends_the_list(paging):
    """P03: absent, null and empty cursors end the pages."""
    page = {"data": [row(1)]} | ({} if paging == "absent" else {"paging": paging})

    found, requests = withdrawals(json.dumps(page).encode())

    assert [1] == found["validator_index"].to_list()
    assert 1 == len(requests)


@pytest.mark.parametrize("paging", [{}, {"paging": None}])
def test_a_full_page_without_paging_is_an_error(paging):
    """P03: a full page without any paging may not be the last one."""
    rows = [row(n) for n in range(10)]
    error, requests = withdrawals(json.dumps({"data": rows, **paging}).encode())
    assert isinstance(error, errors.ProtocolError)
    assert "the page is full (10 records), but the response has no paging" in str(error)
    assert 1 == len(requests)

    found, _ = withdrawals(json.dumps({"data": rows, "paging": {}}).encode())
    assert 10 == found.height


@pytest.mark.parametrize("paging", [{"next": "abc"}, {"next_cursor": None, "nextCursor": "abc"}])
def test_a_next_page_by_another_name_is_an_error(paging):
    """An unknown name of the next page raises, since rows would be missing."""
    error, _ = withdrawals(json.dumps({"data": [row(1)], "paging": paging}).encode())

    assert isinstance(error, errors.ProtocolError)


@pytest.mark.parametrize("cursor", [5, True, [], {}, {"a": 1}, "x" * (2**16 + 1), "x" * 2**20])
def test_an_invalid_cursor_is_an_error(cursor):
    """P04: a cursor must be a short text."""
    error, _ = withdrawals(answer([row(1)], cursor))

    assert isinstance(error, errors.ProtocolError)
    assert "x" * 100 not in str(error)


@pytest.mark.parametrize("status", [400, 404, 410])
def test_a_stale_cursor_restarts_the_pages(status):
    """P05: a stale cursor restarts the pages once."""
    refusals = [status]

    def stale(body):
        step = place(body)
        if step == 2 and refusals:
            return refusals.pop(), {}, b'{"error": "cursor expired"}'
        return answer([row(step)], str(step + 1) if step < 4 else "")

    found, requests = withdrawals(stale)

    assert [0, 1, 2, 3, 4] == found["validator_index"].to_list()
    assert ["", "1", "2", "", "1", "2", "3", "4"] == [body["cursor"] for body in requests]


def test_a_cursor_that_is_always_stale_is_an_error():
    """P05: the call raises instead of returning a part of the rows."""

    def stale(body):
        if body["cursor"]:
            return 400, {}, b'{"error": "cursor expired"}'
        return answer([row(1)], "1")

    error, requests = withdrawals(stale)

    assert isinstance(error, errors.PaginationError)
    assert 4 == len(requests)
    assert "cursor expired" in str(error)


def test_a_refused_first_page_is_not_a_stale_cursor():
    """The first page has no cursor, so the error is raised."""
    error, requests = withdrawals(lambda _: (400, {}, b'{"error": "no"}'))

    assert isinstance(error, errors.BadRequest)
    assert 1 == len(requests)


def test_short_long_and_empty_pages_are_complete():
    """P08: only the cursor marks the end."""
    pages = [[row(1)], [], [row(n) for n in range(2, 30)], [], [row(30)]]

    def uneven(body):
        step = place(body)
        return answer(pages[step], str(step + 1) if step + 1 < len(pages) else None)

    found, requests = withdrawals(uneven)

    assert list(range(1, 31)) == found["validator_index"].to_list()
    assert len(pages) == len(requests)


def test_overlapping_pages_return_every_row_once(caplog):
    """P06: repeated rows are dropped, and their number is logged."""

    def overlapping(body):
        step = place(body)
        return answer([row(n) for n in range(step, step + 10)], str(step + 7) if step < 14 else "")

    with caplog.at_level("INFO", logger="beaconframes.fetch"):
        found, _ = withdrawals(overlapping)

    assert list(range(24)) == found["validator_index"].to_list()
    assert ["6 rows were received more than once; each is used once"] == [
        record.getMessage().partition(": ")[2] for record in caplog.records
    ]


def test_a_row_repeated_on_a_page_is_returned_once(caplog):
    """Repeated rows of one page are dropped; pages without repeats log nothing."""
    pages = {0: answer([row(1), row(1), row(2)], "1"), 1: answer([row(3), row(3), row(3)], "")}

    with caplog.at_level("INFO", logger="beaconframes.fetch"):
        found, _ = withdrawals(lambda body: pages[place(body)])
        withdrawals(answer([row(1), row(2)]))

    assert [1, 2, 3] == found["validator_index"].to_list()
    (message,) = caplog.messages
    assert "POST /api/v2/ethereum/slot/withdrawals: 3 rows" in message


def test_rows_that_contradict_each_other_are_an_error():
    """A sweep withdraws once per validator and slot; the error names key and column."""
    pages = {0: answer([row(1), row(2, "5")], "1"), 1: answer([row(2, "6"), row(3)], "")}

    error, _ = withdrawals(lambda body: pages[place(body)])

    assert isinstance(error, errors.IntegrityError)
    assert "'validator_index': 2" in str(error)
    assert "amount_wei: Decimal('5') and Decimal('6')" in str(error)


def test_nothing_but_the_cursor_changes_from_page_to_page():
    """A cursor has no filter, so every page must repeat the request."""

    def three(body):
        step = place(body)
        return answer([row(step)], str(step + 1) if step < 2 else "")

    _, requests = withdrawals(three, validators=bf.v2.dashboard(4), type_filter="partial_sweep")

    first = requests[0]
    assert [first | {"cursor": c} for c in ("", "1", "2")] == requests


@pytest.mark.more
@pytest.mark.parametrize("size", [1, 3, 10])
def test_rows_do_not_depend_on_the_page_size(size, explorer, monkeypatch):
    """The rows do not depend on the page size, and no extra request is sent."""
    monkeypatch.setattr(cursors, "PAGE_SIZE", size)
    before = explorer.requests

    found = bf.v2.load_slot_withdrawals(range(5000, 5002))

    expected = bf.load_slot_withdrawals(range(5000, 5002))
    requests = explorer.requests - before - 2
    assert 32 == found.height
    assert expected["validator_index"].sort().to_list() == found["validator_index"].sort().to_list()
    assert 2 * -(-16 // size) == requests


def validators(limit, pages=False):
    """Serve every validator, up to a limit per request."""

    def reply(body):
        named = body["validator"]["validator_identifiers"]
        if len(named) > limit:
            text = f"number of validator identifiers exceeds allowed limit of {limit} for your tier"
            return 403, {}, json.dumps({"error": text}).encode()
        found = [
            whole(Validators, {"validator": {"index": n, "public_key": f"0x{n:096x}"}})
            for n in sorted(named)
        ]
        return json.dumps({"data": found}).encode()

    return reply


@pytest.mark.more
@pytest.mark.parametrize(("named", "requests"), [(100, 6), (101, 7), (1000, 51), (20, 1)])
def test_a_smaller_limit_costs_one_request_and_is_remembered(named, requests):
    """A refused batch is split, and later batches have the smaller size."""
    with serving(validators(20)) as (server, explorer):
        found = bf.v2.load_validators(range(named), explorer=explorer)
        first = len(server.posted)
        bf.v2.load_validators(range(named), explorer=explorer)

    assert list(range(named)) == found["validator_index"].to_list()
    assert requests == first
    assert -(-named // 20) == len(server.posted) - first


def test_batches_of_a_hundred_where_the_service_takes_them():
    """Four hundred validators take four requests."""
    with serving(validators(100)) as (server, explorer):
        found = bf.v2.load_validators(range(400), explorer=explorer)

    assert 400 == found.height
    assert 4 == len(server.posted)


def test_a_limit_of_the_plan_is_not_retried():
    """A parameter that the plan does not include is not retried in smaller batches."""
    forbidden = (403, {}, b'{"error": "this endpoint is not allowed for your tier"}')

    with serving(forbidden) as (server, explorer), pytest.raises(errors.TierTooLow) as caught:
        bf.v2.load_validators(range(100), explorer=explorer)

    assert errors.TierTooLow is type(caught.value)
    assert 1 == len(server.posted)


@pytest.mark.parametrize("limit", [20, 100])
def test_scores_of_batches_are_never_combined(limit):
    """A set must fit into one request; otherwise the call raises."""

    def reply(body):
        refused = validators(limit)(body)
        scores = whole(PerformanceAggregate, {"finality": "finalized"})
        return refused if isinstance(refused, tuple) else json.dumps({"data": scores}).encode()

    with serving(reply) as (server, explorer):
        if limit == 20:
            with pytest.raises(errors.UsageError, match="21 validators are more than the 20"):
                bf.v2.load_performance_aggregate(range(21), explorer=explorer)
        else:
            assert 1 == bf.v2.load_performance_aggregate(range(100), explorer=explorer).height

    assert 1 == len(server.posted)


def test_amounts_are_added_only_if_no_validator_counts_twice():
    """An index and the public key of the same validator could be in two requests."""
    with (
        serving(answer([])) as (server, explorer),
        pytest.raises(errors.UsageError, match="count twice"),
    ):
        bf.v2.load_rewards_aggregate([*range(100), KEY], explorer=explorer)

    assert [] == server.posted


@pytest.mark.parametrize("start", [10_000_000_000_000, 2**64 - 1])
def test_an_invalid_range_of_an_answer_is_named(start):
    """Milliseconds instead of seconds, for example: the path is that of the envelope."""
    total = whole(RewardsAggregate, {"finality": "finalized"})
    span = {"epoch": {"start": 1, "end": 2}, "timestamp": {"start": start, "end": start}}
    body = json.dumps({"data": total, "range": span}).encode()

    with (
        serving((200, {}, body)) as (_, explorer),
        pytest.raises(errors.SchemaError, match=r"range\.timestamp\.start"),
    ):
        bf.v2.load_rewards_aggregate([1, 2], explorer=explorer)


@pytest.mark.parametrize("span", [5, "x", [], {"epoch": 5}])
def test_a_range_of_an_answer_that_is_no_object_is_refused(span):
    """Its epochs would be null."""
    total = whole(RewardsAggregate, {"finality": "finalized"})

    with (
        serving((200, {}, json.dumps({"data": total, "range": span}).encode())) as (_, explorer),
        pytest.raises(errors.SchemaError, match=r"range\.epoch\.start .*: .* is not an object"),
    ):
        bf.v2.load_rewards_aggregate([1, 2], explorer=explorer)


def test_a_range_with_a_number_out_of_range_is_refused():
    """B07: the envelope is valid JSON, but no float is so large."""
    total = json.dumps(whole(RewardsAggregate, {"finality": "finalized"}))
    body = f'{{"data": {total}, "range": {{"epoch": {{"start": 1e400}}}}}}'

    with (
        serving((200, {}, body.encode())) as (_, explorer),
        pytest.raises(errors.ProtocolError, match="the envelope of the response"),
    ):
        bf.v2.load_rewards_aggregate([1, 2], explorer=explorer)


def test_an_amount_that_is_unknown_in_a_part_is_unknown():
    """Rewards of the inclusion delay are null where there are none, which is not unknown."""
    names = RewardsAggregate.schema()
    part = dict.fromkeys(names) | {"window": "24h", "finality": "finalized"}
    known = dict.fromkeys(["total_wei", "attestation_total_wei"], 100)
    delay = "attestation_inclusion_delay_total_wei"
    rows = [part | known | {delay: 7}, part | {"attestation_total_wei": 5}]

    (row,) = RewardsAggregate.arrange(pl.DataFrame(rows, names)).rows(named=True)

    assert (None, 105, 7) == (row["total_wei"], row["attestation_total_wei"], row[delay])


@pytest.mark.parametrize("times", [1, 2])
def test_figures_updated_between_pages_are_requested_again_once(times):
    """Rows of two updates cannot be combined, so all pages are requested once more."""
    readings = [1, *[2] * 3] if times == 1 else [1, 2, 2, 3]

    def hourly(body):
        step, reading = place(body), readings.pop(0)
        name = f"of reading {reading}, {step}"
        record = {"entity": name, "validator_count": 5, "beaconscore": 1, "net_share": 0.5}
        return answer([record], "1" if step == 0 else "", last_updated=1_760_076_000 + reading)

    with serving(hourly) as (server, explorer):
        if times == 2:
            with pytest.raises(errors.SnapshotMoved, match="recomputed its figures twice"):
                bf.v2.load_entities("7d", explorer=explorer)
        else:
            found = bf.v2.load_entities("7d", explorer=explorer)
            assert ["of reading 2, 0", "of reading 2, 1"] == found["entity"].to_list()

    assert ["", "1", "", "1"] == [json.loads(sent)["cursor"] for sent in server.posted]


def moving(body):
    """Serve a head that moves between two pages."""
    step = place(body)
    window = {"epoch": {"start": 7 + step, "end": 7 + step}}
    return answer([row(step)], "1" if step == 0 else "", range=window)


def test_a_window_that_moves_between_pages_warns():
    """The warning names both windows; the rows are returned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found, _ = withdrawals(moving)

    assert 2 == found.height
    (warning,) = caught
    assert errors.WindowMoved is warning.category
    assert "from epoch 7 to 7 to epoch 8 to 8" in str(warning.message)
    assert __file__ == warning.filename


def test_the_end_of_an_endpoint_warns_once():
    """The warning has the date, and appears once per explorer."""
    headers = {"Deprecation": "true", "Sunset": "Thu, 17 Dec 2026 10:00:00 GMT"}
    old = (200, headers, answer([row(1)]))

    with serving(old) as (_, explorer), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            bf.v2.load_slot_withdrawals(SLOT, explorer=explorer)

    (warning,) = caught
    assert errors.EndpointDeprecated is warning.category
    expected = "on 2026-12-17 10:00 UTC (POST /api/v2/ethereum/slot/withdrawals). Check whether"
    assert expected in str(warning.message)
    assert __file__ == warning.filename


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bf.v2.load_validators(None), "selects no validators"),
        (lambda: bf.v2.load_validators("0xabc"), "is not a validator"),
        (lambda: bf.v2.dashboard(-1), "whole number"),
        (lambda: bf.v2.dashboard(1, True), "whole number"),
        (lambda: bf.v2.withdrawal("0x1234"), "address or credentials"),
        (lambda: bf.v2.deposit_address("03" * 32), "40 hex digits"),
        (lambda: bf.v2.entity(" "), "not a name"),
        (lambda: bf.v2.owner(""), "owner='' is not a name"),
        (lambda: bf.v2.owner("lido", operator=-1), "operator -1 is not a whole number"),
        (lambda: bf.v2.operator(None), "operator=None is not a name"),
        (lambda: bf.v2.load_rewards_aggregate(1, "31d"), "one of '24h'"),
        (lambda: bf.v2.load_slot_withdrawals(5, type_filter="sweep"), "one of 'manual'"),
        (lambda: bf.v2.load_slot_withdrawals("newest"), "is not a number"),
        (lambda: bf.v2.load_entities("all_time"), "one of '24h', '7d', '30d', '90d'"),
        (lambda: bf.v2.load_entities(sort_by="name"), "sort_by='name' is not one of 'net_share'"),
        (lambda: bf.v2.load_owners(sort_by="sub_entity_count"), "is not one of 'validator_count'"),
        (lambda: bf.v2.load_owners(sort_order="down"), "sort_order='down' is not one of 'asc'"),
        (lambda: bf.v2.load_operators(search=" "), "search=' ' is not a name"),
        (lambda: bf.v2.load_owners(operator=-1), "operator -1 is not a whole number"),
        (lambda: bf.v2.load_sub_entities(["Fyrlykt", 5]), "entity=5 is not a name"),
        (lambda: bf.v2.load_machine_metrics([["a"]]), r"machines=\['a'\] is not a name"),
        (lambda: bf.v2.load_slot_withdrawals(5, type_filter=[["sweep"]]), r"=\['sweep'\] is not"),
        (lambda: bf.v2.load_entities(np.array(["7d"])), r"window=array\(\['7d'\].* is not one of"),
        (lambda: bf.v2.load_entities(sort_by=pl.Series(["net_share"])), "sort_by=.* is not one of"),
        (lambda: bf.load_chart(np.array(["validators"])), "is not a chart of the service"),
        (lambda: bf.v2.load_block(2**63), f"blocks {2**63} is too large"),
        (lambda: bf.load_sync_committees(2**63), f"periods {2**63} is too large"),
        (lambda: bf.v2.load_proposal_slots(1, since=9, until=8), "is after until"),
        (
            lambda: bf.v2.load_machine_metrics(since="2026-10-06", until="2026-10-02"),
            r"^since \(2026-10-06\) is after until \(2026-10-02\)\. Swap them$",
        ),
        (lambda: bf.v2.load_proposal_slots(1, until=15_029), "slot 15029 is in the future"),
        (lambda: bf.v2.load_apy_roi(range(101)), "101 validators are more than the 100"),
    ],
)
def test_invalid_arguments_raise_before_any_request(call, words, explorer):
    """The error names the invalid value."""
    before = explorer.requests

    with pytest.raises(errors.UsageError, match=words):
        call()

    assert before == explorer.requests


def test_no_validators_send_no_request(explorer):
    """Without validators no request is sent, a warning says so, and the schema is whole."""
    before = explorer.requests

    with pytest.warns(errors.UsageWarning, match="^validators is empty, so no rows are loaded$"):
        found = bf.v2.load_rewards([])

    assert 0 == found.height
    assert "total_wei" in found.columns
    assert before == explorer.requests


def test_v2_of_the_public_service_has_one_host(monkeypatch):
    """The body names the chain; key and quota are shared."""
    explorer = bf.Explorer(api_key="k" * 20, chain="hoodi")

    assert "https://hoodi.beaconcha.in" == explorer.source._session.base_url
    assert "https://beaconcha.in" == explorer.source._session_v2.base_url
    assert explorer.source._session.rate_limiter is explorer.source._session_v2.rate_limiter
