"""Plans: the fewest requests for the arguments; invalid arguments raise before any request."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from urllib.parse import unquote

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import beaconframes as bf
from beaconframes.answers.selectors import find_slots
from beaconframes.calendar import HOODI, MAINNET, Chain
from beaconframes.endpoint import ChainHead, Head, SlotTimeRange
from beaconframes.errors import UsageError
from beaconframes.v1 import ENDPOINTS

from ..support.replay import replaying

ENDPOINT = {endpoint.name: endpoint for endpoint in ENDPOINTS}
GENESIS = datetime(2020, 12, 1, 12, 0, 23, tzinfo=UTC)
NOW = datetime(2026, 11, 1, 12, 0, 23, tzinfo=UTC)
EPOCH_NOW = int((NOW - GENESIS).total_seconds()) // 384
HEAD = Head(epoch=EPOCH_NOW, finalized_epoch=EPOCH_NOW - 2, slot=32 * EPOCH_NOW + 5)
WINDOWED = ("income_history", "balance_history")
OF_VALIDATORS = ("validators", *WINDOWED)
thorough = settings(deadline=None, derandomize=True, database=None, max_examples=60)


def chain_head(head=HEAD, *, chain=MAINNET, fixed=None):
    """Return a chain head that records each request for the head."""
    head_requests = []

    def request_head():
        head_requests.append(head)
        return head

    chain_head = ChainHead(chain, request_head, lambda: NOW, fixed)
    object.__setattr__(chain_head, "head_requests", head_requests)
    return chain_head


def plan(name, head=None, **values):
    """Return the request lines of a plan."""
    arguments = {"since": None, "until": None, "region": None, "summarize": False} | values
    calls = ENDPOINT[name].plan(arguments, head or chain_head())
    return [line(call.request) for call in calls]


def line(request):
    query = "&".join(f"{name}={value}" for name, value in request.query)
    return f"{request.method} {request.path}" + (f"?{query}" if query else "")


def parse_cells(lines):
    """Return every (validator, epoch) that windowed request lines select, with repeats."""
    found = []
    for each in lines:
        path, _, query = each.removeprefix("GET /api/v1/validator/").partition("?")
        fields = dict(pair.split("=") for pair in query.split("&"))
        last, limit = int(fields["latest_epoch"]), int(fields["limit"])
        assert {"latest_epoch", "limit"} == set(fields)
        assert 1 <= limit <= 100
        assert last - limit + 1 >= 0
        validators = unquote(path.partition("/")[0]).split(",")
        assert len(validators) <= 100
        found += [
            (validator, epoch)
            for validator in validators
            for epoch in range(last - limit + 1, last + 1)
        ]
    return found


def keys(count):
    return [f"0x{number:096x}" for number in range(1, count + 1)]


# The fewest requests; each cell once.


def test_250_validators_over_250_epochs_take_nine_requests():
    """Three batches of at most 100 by three windows of at most 100."""
    head = chain_head()

    lines = plan("income_history", head, validators=range(250), since=-250)

    assert 9 == len(lines)
    newest = HEAD.finalized_epoch
    expected = {(str(v), e) for v in range(250) for e in range(newest - 249, newest + 1)}
    assert expected == set(parse_cells(lines))
    assert len(expected) == len(parse_cells(lines))
    assert 1 == len(head.head_requests)


@pytest.mark.parametrize("name", WINDOWED)
@pytest.mark.parametrize("first", [0, 1, 99, 100, 101, 1575, HEAD.finalized_epoch - 300])
@pytest.mark.parametrize("length", [1, 2, 99, 100, 101, 199, 200, 201, 301])
def test_windows_end_at_every_kind_of_border(name, first, length):
    """P18: epoch 0, one epoch, 99, 100, 101, the finalized one: no overlap, gap or underflow."""
    head = chain_head()

    lines = plan(name, head, validators=7, since=first, until=first + length - 1)

    assert math.ceil(length / 100) == len(lines)
    expected = [("7", epoch) for epoch in range(first, first + length)]
    assert expected == sorted(parse_cells(lines))
    assert [] == head.head_requests


@pytest.mark.more
@thorough
@given(
    validators=st.integers(1, 350),
    first=st.integers(0, 400_000),
    length=st.integers(1, 450),
)
def test_plans_are_minimal_and_exact(validators, first, length):
    """T32: as many requests as batches times windows; every validator and epoch exactly once."""
    lines = plan(
        "balance_history", validators=range(validators), since=first, until=first + length - 1
    )

    assert math.ceil(validators / 100) * math.ceil(length / 100) == len(lines)
    head_requests = parse_cells(lines)
    assert validators * length == len(head_requests) == len(set(head_requests))


@pytest.mark.parametrize(
    ("name", "newest"),
    [("income_history", HEAD.finalized_epoch), ("balance_history", HEAD.epoch)],
)
def test_the_default_range_is_the_last_hundred_epochs(name, newest):
    """Income ends at the finalized epoch, balances at the processed one."""
    assert [f"latest_epoch={newest}&limit=100"] == [
        each.partition("?")[2] for each in plan(name, validators=1)
    ]
    assert [("1", newest)] == parse_cells(plan(name, validators=1, since=-1))
    assert [("1", newest)] == parse_cells(plan(name, validators=1, since="latest"))
    assert [("1", newest - 1)] == parse_cells(plan(name, validators=1, since=-2, until=-2))


@pytest.mark.parametrize("name", WINDOWED)
def test_on_a_young_chain_a_window_starts_at_genesis(name):
    """P18: with 51 epochs, 51 are requested."""
    young = chain_head(Head(epoch=50, finalized_epoch=50, slot=1600))

    (only,) = plan(name, young, validators=1)

    assert only.endswith("?latest_epoch=50&limit=51")


def test_a_range_of_time_becomes_the_epochs_that_start_in_it():
    """Bare dates are whole days, and the range ends where the last day ends."""
    start = datetime(2026, 10, 1, tzinfo=UTC)
    end = datetime(2026, 11, 1, tzinfo=UTC)
    first = math.ceil((start - GENESIS).total_seconds() / 384)
    last = math.ceil((end - GENESIS).total_seconds() / 384) - 1

    for since, until in [
        ("2026-10-01", "2026-10-31"),
        (date(2026, 10, 1), date(2026, 10, 31)),
        (start, end - timedelta(seconds=1)),
        ("2026-10-01T02:00:00+02:00", "2026-10-31T23:59:59Z"),
    ]:
        lines = plan("income_history", validators=1, since=since, until=until)
        assert [("1", epoch) for epoch in range(first, last + 1)] == sorted(parse_cells(lines))
        assert math.ceil((last - first + 1) / 100) == len(lines)


def test_epochs_days_and_periods_take_a_request_each():
    """Each is requested once, duplicates included."""
    assert ["GET /api/v1/epoch/5", "GET /api/v1/epoch/6"] == plan("epochs", since=5, until=6)
    assert ["GET /api/v1/epoch/0/slots"] == plan("epoch_slots", since=0, until=0)
    assert ["GET /api/v1/yieldindex/9"] == plan("yield_index", since=9, until=9)
    assert [f"GET /api/v1/sync_committee/{p}" for p in (7, 290, "latest", "next")] == plan(
        "sync_committees", periods=[7, 290, 7, "latest", "7", "next", "latest"]
    )
    assert ["GET /api/v1/latestState"] == plan("latest_state")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("epochs", "GET /api/v1/epoch/latest"),
        ("epoch_slots", "GET /api/v1/epoch/latest/slots"),
        ("yield_index", "GET /api/v1/yieldindex/latest"),
        ("graffiti_wall", "GET /api/v1/graffitiwall?summarize=false"),
    ],
)
def test_the_latest_is_requested_as_latest(name, expected):
    """One request, without another one for the number of the latest."""
    head = chain_head()

    assert [expected] == plan(name, head)
    assert [] == head.head_requests


def test_the_public_service_has_another_path_for_the_yield_index():
    """The plan is the same, with the path of the public service."""
    values = {"since": 9, "until": 9}

    (call,) = ENDPOINT["yield_index"].plan(values, chain_head(), public=True)

    assert "GET /api/v1/ethstore/9" == line(call.request)


# The graffiti wall.


@pytest.mark.parametrize("region", [None, (0, 0, 0, 0), [1, 2, 3, 4], (0, 0, 999, 999)])
@pytest.mark.parametrize("summarize", [True, False])
@pytest.mark.parametrize("since", [None, 0, 5_000_000])
def test_the_wall_always_states_whether_to_summarize(region, summarize, since):
    """The default differs between services, so `summarize` is always sent.

    For a range that ends below slot 10,000 it is false: the service raises such an end.
    """
    lines = plan(
        "graffiti_wall", region=region, summarize=summarize, since=since, until=since and since + 9
    )

    word = "true" if summarize and since != 0 else "false"
    assert all(each.count("summarize=") == 1 for each in lines)
    assert all(f"summarize={word}" in each for each in lines)


def test_a_million_slots_of_the_wall_take_adjacent_windows():
    """P23: each slot is in exactly one request."""
    lines = plan("graffiti_wall", since=3, until=1_000_002)

    ends = [
        [int(pair.partition("=")[2]) for pair in each.partition("?")[2].split("&")[:2]]
        for each in lines
    ]
    assert 3 == ends[0][0]
    assert 1_000_002 == ends[-1][1]
    assert [last + 1 for _, last in ends[:-1]] == [first for first, _ in ends[1:]]


def test_a_summary_of_several_windows_is_one_summary():
    """P23: a pixel that is painted in two windows has one row, with the latest colour."""
    lines = plan("graffiti_wall", since=0, until=999_999, summarize=True)
    assert len(lines) > 1
    slots = [40_000 + number * (1_000_000 // len(lines)) for number in range(len(lines))]
    replies = {
        each: b'{"status":"OK","data":[{"x":7,"y":8,"slot":%d,"color":"00%04d","validator":1}]}'
        % (slot, number)
        for number, (each, slot) in enumerate(zip(lines, slots, strict=True))
    }

    with replaying(replies) as server, bf.Explorer(server.url, rate=1000) as explorer:
        wall = bf.load_graffiti_wall(since=0, until=999_999, summarize=True, explorer=explorer)

    assert [(slots[-1], 7, 8)] == wall.select("slot", "x", "y").rows()


@pytest.mark.parametrize(
    "region",
    [
        (0, 0, 0), (0, 0, 1, 1, 1), (), (0, 0, 1000, 5), (0, 0, 5, 1000), (-1, 0, 5, 5),
        (5, 0, 4, 5), (0, 5, 5, 4), (0.0, 0, 1, 1), (True, 0, 1, 1), "0,0,1,1", "0011", 5,
        [[0, 0, 1, 1]], ("0", 0, 1, 1), (None, 0, 1, 1), (float("nan"), 0, 1, 1), {},
        b"\x00\x00\x01\x01x",
    ],
)  # fmt: skip
def test_a_region_must_be_a_rectangle_on_the_wall(region):
    """P22: beyond the wall, reversed, of the wrong length or type: the error names the argument."""
    with pytest.raises(UsageError, match="region"):
        plan("graffiti_wall", region=region)


@pytest.mark.parametrize("summarize", [1, 0, "true", None, 1.0])
def test_summarize_must_be_a_bool(summarize):
    """Other values raise UsageError."""
    with pytest.raises(UsageError, match="summarize"):
        plan("graffiti_wall", summarize=summarize)


# Validators: one or many, of any type.


def parse_identifiers(lines):
    """Return the identifiers in request lines, in order."""
    return [
        validator
        for each in lines
        for validator in each.split("/validator/")[1].split("/")[0].split(",")
    ]


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (5, ["5"]),
        ("5", ["5"]),
        ("005", ["5"]),
        (0, ["0"]),
        (2**31 - 2, [str(2**31 - 2)]),
        (np.int64(5), ["5"]),
        (np.uint8(5), ["5"]),
        (range(3), ["0", "1", "2"]),
        ((n for n in (2, 1)), ["2", "1"]),
        ([3, "3", np.int32(3), 3], ["3"]),
        ((4, 2), ["4", "2"]),
        ({7}, ["7"]),
        (np.array([1, 2]), ["1", "2"]),
        (pl.Series([1, 2], dtype=pl.UInt32), ["1", "2"]),
        (pl.Series(["1", "2"]), ["1", "2"]),
        (pd.Series([1, 2]), ["1", "2"]),
        (pd.Series([1, 2], dtype="Int64"), ["1", "2"]),
        (pd.Series(["1", "2"]), ["1", "2"]),
        (pd.Index([1, 2]), ["1", "2"]),
        ([f"0x{'aB' * 48}", "AB" * 48, f"0X{'ab' * 48}", 1], [f"0x{'ab' * 48}", "1"]),
    ],
)
def test_validators_may_be_written_in_many_ways(subject, expected):
    """Integers of any library, text, public keys in any case: each once, in the order given."""
    assert expected == parse_identifiers(plan("validators", validators=subject))


def test_a_hundred_thousand_validators_are_a_thousand_requests():
    """P20: duplicates, indices and keys mixed: each identifier once, at most 100 at a time."""
    several = [
        *range(50_000),
        *map(str, range(50_000)),
        *range(49_999, 99_990),
        *keys(10),
        *keys(10),
    ]

    lines = plan("validators", validators=several)

    assert 1000 == len(lines)
    assert [*map(str, range(99_990)), *keys(10)] == parse_identifiers(lines)
    assert all(each.count(",") == 99 for each in lines)


@pytest.mark.parametrize("name", WINDOWED)
@pytest.mark.parametrize("count", [1, 70, 75, 76, 80, 100, 101, 250])
def test_public_keys_never_make_a_url_too_long(name, count):
    """P20: below 8 KiB with room for an address and a prefix; batches are smaller instead."""
    lines = plan(name, validators=keys(count), since=400_000, until=400_099)

    assert keys(count) == parse_identifiers(lines)
    assert max(map(len, lines)) < 8192 - 256
    assert len(lines) <= math.ceil(count / 70)


@pytest.mark.parametrize("count", [1, 70, 80, 100, 101, 250])
def test_validators_by_many_keys_are_posted_a_hundred_at_a_time(count):
    """A body has no length limit, so keys take as many requests as indices."""
    calls = ENDPOINT["validators"].plan({"validators": keys(count)}, chain_head())

    assert math.ceil(count / 100) == len(calls)
    for call in calls:
        if call.request.method == "POST":
            assert "POST /api/v1/validator" == line(call.request)
            assert call.request.body.startswith(b'{"indicesOrPubkey"')
        else:
            assert len(line(call.request)) < 8192 - 256


MALFORMED = [
    "../x", "1;2", "1%2C2", "1?apikey=x", "1#", "1 ", "-1", "1e3", "\u0661\u0662\u0663", "0x",
    "a" * 95, "a" * 97, True, 1.0, 2**64, "\r\nX: y", "1\x00", "9" * 10**6,
]  # fmt: skip
INVALID = [
    "", " ", "0x" + "a" * 95, "0x" + "g" * 96, "0x0x" + "a" * 94, "a" * 96 + "\n", "1\n", "+1",
    "1_0", "0x1", "latest", "\uff11", -1, 2**31 - 1, 2**63, np.bool_(True), np.float64(1),
    np.int64(-1), float("nan"), float("inf"), Decimal(1), 1j, None, b"1", b"\x00" * 48, [[1]],
    [1, None], {"a": 1}, [range(2)], pl.Series([1, None]), pl.Series([1.0]), pl.Series([True]),
    pd.Series([1.5]), pd.Series([1, None], dtype="Int64"), pl.DataFrame({"a": [1]}), object(),
    date(2026, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize("name", OF_VALIDATORS)
@pytest.mark.parametrize("bad", MALFORMED, ids=lambda bad: ascii(bad)[:20])
def test_a_malformed_identifier_raises_before_any_request(name, bad):
    """P21: eighteen malformed values: the error names the item, shortened; no request is sent."""
    for subject in (bad, [1, bad], iter([bad])):
        with (
            bf.Explorer("http://127.0.0.1:9", chain="mainnet") as explorer,
            pytest.raises(UsageError) as caught,
        ):
            getattr(bf, f"load_{name}")(subject, explorer=explorer)

        assert 0 == explorer.requests
        assert repr(bad)[:40] in str(caught.value)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 300
        assert caught.value.hint


@pytest.mark.parametrize("bad", INVALID, ids=lambda bad: ascii(bad)[:20].replace("\n", " "))
def test_values_of_other_types_are_no_validators(bad):
    """Nulls, floats, bytes, nested lists, frames: each raises UsageError."""
    with pytest.raises(UsageError):
        plan("validators", validators=bad)


@pytest.mark.parametrize(
    "no_subjects",
    [[], (), range(0), iter([]), pl.Series([], dtype=pl.Int64), pd.Series([], dtype=int)],
)
@pytest.mark.parametrize("name", [*OF_VALIDATORS, "sync_committees"])
@pytest.mark.filterwarnings("ignore:.* is empty, so no rows:UserWarning")
def test_no_subjects_are_no_rows_and_no_request(name, no_subjects):
    """An empty list is an empty frame with every column, even if the range needs the head."""
    windows = {"since": -5} if name in WINDOWED else {}

    with replaying({}) as server, bf.Explorer(server.url, chain="mainnet") as explorer:
        frame = getattr(bf, f"load_{name}")(no_subjects, explorer=explorer, **windows)

    assert [] == server.arrived
    assert 0 == frame.height
    assert ENDPOINT[name].table.schema() == frame.schema


@pytest.mark.parametrize("bad", ["x", "1;2", "../x", "", " 1", -1, 1.0, True, None, [None], b"1"])
def test_a_malformed_period_raises_before_any_request(bad):
    """A period is a number, "latest" or "next"."""
    with pytest.raises(UsageError, match="periods"):
        plan("sync_committees", periods=bad)


# Invalid ranges.

RANGED = [
    "income_history",
    "balance_history",
    "epochs",
    "epoch_slots",
    "graffiti_wall",
    "yield_index",
]


@pytest.mark.parametrize("name", RANGED)
@pytest.mark.parametrize(
    ("since", "until"),
    [
        (10, 9), (10, 0), ("2026-10-02", "2026-10-01"), (-5, -10), ("1d", "2d"),
        (datetime(2026, 10, 2, tzinfo=UTC), date(2026, 10, 1)),
    ],
)  # fmt: skip
def test_a_reversed_range_is_refused(name, since, until):
    """The error names the argument, and no request is planned."""
    with pytest.raises(UsageError) as caught:
        plan(name, validators=1, since=since, until=until)

    assert "since" in str(caught.value)


@pytest.mark.parametrize("name", RANGED)
@pytest.mark.parametrize(
    "bad", [True, False, 1.0, float("nan"), "soon", "", "30x", "-5", "1e3", [1], b"1", (1, 2), {}]
)
@pytest.mark.parametrize("end", ["since", "until"])
def test_an_invalid_bound_raises_and_is_named(name, bad, end):
    """Wrong types and invalid texts: the error names the value; no request is planned."""
    head = chain_head()

    with pytest.raises(UsageError) as caught:
        plan(name, head, validators=1, **{end: bad})

    assert repr(bad) in str(caught.value)
    assert [] == head.head_requests


@pytest.mark.parametrize("name", ["income_history", "balance_history", "epochs", "epoch_slots"])
@pytest.mark.parametrize("chain", [MAINNET, HOODI])
def test_a_future_epoch_of_a_real_chain_is_refused_by_the_clock(name, chain):
    """T32: an epoch after the current one raises before any request; the current one is valid."""
    now = int((NOW - chain.genesis).total_seconds()) // 384
    head = chain_head(chain=chain)

    assert 1 == len(plan(name, head, validators=1, since=now, until=now))
    for values in ({"since": now + 1}, {"until": now + 1}, {"since": 5, "until": 10**12}):
        with pytest.raises(UsageError, match="future"):
            plan(name, head, validators=1, **values)
    assert [] == head.head_requests


def test_an_epoch_after_the_latest_finalized_one_is_not_called_future():
    """The present epoch exists; income ends with the latest finalized epoch, balances do not."""
    head, finalized = chain_head(fixed=HEAD), HEAD.finalized_epoch

    text = f"epoch {EPOCH_NOW} is not final yet: the latest finalized epoch is {finalized}"
    with pytest.raises(UsageError, match=text):
        plan("income_history", head, validators=1, since=EPOCH_NOW, until=EPOCH_NOW)
    text = f"epoch {EPOCH_NOW + 1} is in the future: the latest "
    for name in ("income_history", "balance_history"):
        with pytest.raises(UsageError, match=text):
            plan(name, head, validators=1, since=5, until=EPOCH_NOW + 1)


def test_an_epoch_of_another_century_is_refused_on_any_chain():
    """A simulated chain may be ahead of the clock, but not by decades: no request is planned."""
    chain = Chain("devnet", genesis=NOW - timedelta(days=1), seconds_per_slot=2, slots_per_epoch=8)
    head = chain_head(chain=chain)

    assert plan("epochs", head, since=90_000, until=90_001)
    with pytest.raises(UsageError, match="future"):
        plan("epochs", head, since=5, until=10**9)
    assert [] == head.head_requests


@pytest.mark.parametrize(("name", "seconds"), [("graffiti_wall", 12), ("yield_index", 86_400)])
def test_a_future_slot_or_day_is_refused_by_the_clock(name, seconds):
    """The clock limits slots and days as well as epochs."""
    now = int((NOW - GENESIS).total_seconds()) // seconds
    head = chain_head()

    assert 1 == len(plan(name, head, since=now, until=now))
    with pytest.raises(UsageError, match="future"):
        plan(name, head, since=5, until=now + 1)
    assert [] == head.head_requests


def test_the_clock_does_not_limit_a_simulated_chain():
    """A simulated chain may be ahead of the clock; a served dataset has a known end."""
    genesis = datetime(2026, 10, 31, tzinfo=UTC)
    chain = Chain("simulated", genesis=genesis)
    beyond = {"validators": 1, "since": 0, "until": 99_999}

    assert 1000 == len(plan("income_history", chain_head(chain=chain), **beyond))

    fixed = chain_head(chain=chain, fixed=Head(epoch=470, finalized_epoch=467, slot=15_041))
    assert 5 == len(plan("income_history", fixed, validators=1, since=0, until=467))
    with pytest.raises(UsageError, match="467"):
        plan("income_history", fixed, validators=1, since=0, until=468)
    assert [] == fixed.head_requests


def test_a_range_after_the_head_is_refused():
    """A start after the latest epoch raises UsageError."""
    young = chain_head(Head(epoch=5, finalized_epoch=3, slot=160))

    with pytest.raises(UsageError):
        plan("income_history", young, validators=1, since=10)


@pytest.mark.parametrize("until", ["2026-11", "2026-11-01", datetime(2026, 11, 30, tzinfo=UTC)])
def test_an_end_after_the_latest_leaves_the_default_length(until):
    """The default start counts from the latest unit, not from a time that is still to come."""
    for name in ("income_history", "balance_history"):
        assert plan(name, validators=1) == plan(name, validators=1, until=until)


def test_a_month_that_is_not_over_ends_with_the_latest():
    """until="2026-11" on November 1 loads up to the head, as until="2026-11-01" does."""
    month = plan("income_history", validators=1, since="2026-11", until="2026-11")

    assert month == plan("income_history", validators=1, since="2026-11-01", until="2026-11-01")
    assert HEAD.finalized_epoch == parse_cells(month)[-1][1]


@pytest.mark.parametrize("bound", [np.int64(400_000), np.uint32(400_000)])
def test_a_bound_may_be_an_integer_of_another_library(bound):
    """Numbers of numpy are numbers."""
    lines = plan("income_history", validators=1, since=bound, until=bound)

    assert [("1", 400_000)] == parse_cells(lines)


@pytest.mark.parametrize(
    ("seconds", "slots"),
    [((24, 47), (2, 3)), ((13, 35), (2, 2)), ((23, 24), (2, 2)), ((25, 35), (3, 2))],
)
def test_a_range_of_time_selects_the_slots_that_start_in_it(seconds, slots):
    """Slot 2 starts after 24 seconds; a range without the start of a slot selects none."""
    head = Head(epoch=9, finalized_epoch=8, slot=300)
    view = SimpleNamespace(chain=MAINNET, head=head)
    start, end = (int(MAINNET.genesis.timestamp()) + n for n in seconds)

    fields = {"range": {"timestamp": {"start": start, "end": end}}}
    assert slots == find_slots([SlotTimeRange()], fields, view)
