"""Small answers of the local explorer: rows found by position, records encoded once."""

from __future__ import annotations

from decimal import Decimal

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from beaconframes import v1
from beaconframes.answers import table_cache
from beaconframes.answers.row_index import NumberIndex, Window
from beaconframes.answers.selectors import find_bounds, find_selector
from beaconframes.answers.table_cache import find_windowed_subject
from beaconframes.calendar import MAINNET
from beaconframes.endpoint import RequestRefused
from beaconframes.schema.encode import compact
from beaconframes.server.access import V2_PREFIX, Access
from beaconframes.server.app import build_app
from beaconframes.server.service import Service
from beaconframes.v1.income_history import IncomeHistory

from ..support.cases import every
from ..support.selected_rows import select_answer

BY_NUMBER = [
    endpoint
    for endpoint in v1.ENDPOINTS
    if len(endpoint.all_parameters) == 1
    and find_selector(type(endpoint.all_parameters[0])).has_positions
]
"""Endpoints whose rows are found by position."""


@pytest.fixture(scope="module", params=["spec", "public"])
def service(chain, request):
    return Service(chain, request.param)


@pytest.fixture
def queries(monkeypatch):
    """Return a list that gets an item for each query of polars."""
    found = []

    def count(run):
        def counted(self, *arguments, **options):
            found.append(run)
            return run(self, *arguments, **options)

        return counted

    monkeypatch.setattr(pl.LazyFrame, "collect", count(pl.LazyFrame.collect))
    monkeypatch.setattr(pl.DataFrame, "select", count(pl.DataFrame.select))
    return found


@pytest.mark.parametrize(
    ("endpoint", "first", "second"),
    [
        (v1.SLOTS, {"slot": "3200"}, {"slot": "3201"}),
        (v1.EPOCHS, {"epoch": "100"}, {"epoch": "101"}),
        (v1.EPOCH_SLOTS, {"epoch": "100"}, {"epoch": "101"}),
        (v1.VALIDATORS, {"validators": "5"}, {"validators": "6,7"}),
        (v1.PERFORMANCE, {"validators": "5"}, {"validators": "6,7"}),
        (v1.LATEST_STATE, {}, {}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_neighbors_are_answered_without_a_query(service, queries, endpoint, first, second):
    """E1: a query takes longer than the rest of a small answer."""
    assert 200 == service.answer(endpoint, first).status_code
    # The rows before and after a multiple of 64 are encoded separately.
    service.answer(endpoint, second)
    queries.clear()

    answers = [service.answer(endpoint, fields) for fields in (first, second)]

    assert [200, 200] == [answer.status_code for answer in answers]
    assert (endpoint is v1.LATEST_STATE) == (answers[0].body == answers[1].body)
    assert [] == queries


def test_statistics_of_neighbors_are_found_without_a_query(chain, queries):
    """A report of 10,000 validators requests the same days of each, one by one."""
    days = {"start_day": "0", "end_day": "1"}
    requests = [days | {"validator": str(index)} for index in (3, 4, 5, 10**7)]
    expected = [Service(chain).answer(v1.VALIDATOR_STATS, fields).body for fields in requests]
    service, answers = Service(chain), []
    for fields in requests:
        queries.clear()
        answers.append(service.answer(v1.VALIDATOR_STATS, fields).body)

    assert expected == answers
    # The rows are found in the window of all validators, and then encoded.
    assert len(queries) <= 1
    refused = service.answer(v1.VALIDATOR_STATS, days | {"validator": "-1"})
    assert 400 == refused.status_code


def test_statistics_of_neighbors_are_encoded_together(chain, queries, monkeypatch):
    """The answers are equal, also of validators whose rows are in two pieces."""

    def answer_all():
        service, days = Service(chain), {"start_day": "0", "end_day": "2"}
        requests = [days | {"validator": str(index)} for index in range(300)]
        queries.clear()
        return [service.answer(v1.VALIDATOR_STATS, fields).body for fields in requests]

    together = answer_all()
    assert 0 < len(queries) < 20
    monkeypatch.setattr("beaconframes.answers.table_cache.READ_AHEAD", 1)
    assert together == answer_all()
    assert 300 <= len(queries)


def test_neighbors_are_encoded_together(chain, queries):
    """E1: a load of consecutive slots needs one query for many of them."""
    service = Service(chain)
    service.answer(v1.SLOTS, {"slot": "3200"})
    queries.clear()

    for slot in range(3200, 3400):
        service.answer(v1.SLOTS, {"slot": str(slot)})

    assert 0 < len(queries) <= 5


@pytest.mark.parametrize(
    "endpoint",
    every(3, BY_NUMBER),
    ids=lambda endpoint: endpoint.name,
)
def test_positions_find_the_rows_that_a_query_selects(service, endpoint):
    """E1: the same records in the same order, also of missed and orphaned blocks."""
    view = service.views.current()
    rows = view.scan(endpoint.table.table_name, endpoint.table.schema())
    parameter = endpoint.all_parameters[0]
    (field,) = parameter.field_schemas
    numbers = rows.select(parameter.rows_column.name).unique().collect().to_series().sort()
    wanted = {*numbers.gather_every(max(numbers.len() // 6, 1)), 10**15}
    if endpoint.table is v1.SLOTS.table:
        for status in ("missed", "orphaned"):
            unit = pl.col(parameter.rows_column.name)
            wanted |= {*rows.filter(status=status).select(unit).head(2).collect().to_series()}
    texts = [str(number) for number in wanted]
    if parameter.resolves_pubkeys:
        texts += [",".join(texts), ",".join(reversed(texts)), view.pubkeys[3]]

    for text in texts:
        fields = {field: text}
        try:
            selected = select_answer(endpoint, rows, fields, view).collect()
        except RequestRefused as refusal:
            with pytest.raises(RequestRefused, match=refusal.message):
                view.table_cache.select_records(endpoint, fields, view)
            continue
        expected = endpoint.table.encode_records(
            selected,
            view.chain,
            without=endpoint.omitted_fields(fields),
            public=service.wire == "public",
        )
        assert expected == view.table_cache.select_records(endpoint, fields, view), text


def test_encoded_records_count_as_cached_bytes(chain, queries):
    """E17: the oldest records are removed, and not the rows from which others are made."""
    size = 8_000_000
    view = Service(chain, cache_bytes=size).views.current()
    cache = view.table_cache
    cache.select_records(v1.SLOTS, {"slot": "1"}, view)
    rows = cache.memory.size
    # They are compressed, and count as well.
    uncompressed = chain.scan("blocks").head(2_048).collect().estimated_size()
    assert uncompressed / 5 < rows < uncompressed / 1.5
    queries.clear()

    for slot in range(64, 2_000, 64):
        cache.select_records(v1.SLOTS, {"slot": str(slot)}, view)
        assert cache.memory.size <= size

    # Each query encodes records; further ones would read the rows again.
    assert len(range(64, 2_000, 64)) == len(queries)
    assert 1_000_000 < cache.memory.size - rows


WINDOWED = [endpoint for endpoint in v1.ENDPOINTS if find_windowed_subject(endpoint)]
"""Endpoints whose rows are cached for all validators of a range of epochs or days."""


@pytest.mark.more
@pytest.mark.parametrize(
    "endpoint",
    every(3, WINDOWED),
    ids=lambda endpoint: endpoint.name,
)
def test_a_window_has_the_records_that_a_query_selects(service, endpoint):
    """F4: the same records in the same order, of validators with and without rows."""
    view = service.views.current()
    subject = find_windowed_subject(endpoint)
    (field,) = subject.field_schemas
    several = f"3,998,0,1000000,5,{view.pubkeys[7]}"
    fields = {field: several if subject.resolves_pubkeys else "998"}
    rows = view.scan(endpoint.table.table_name)
    selected = select_answer(endpoint, rows, fields, view).collect()
    expected = endpoint.table.encode_records(
        selected,
        view.chain,
        without=endpoint.omitted_fields(fields),
        public=service.wire == "public",
    )

    answers = [view.table_cache.select_records(endpoint, fields, view) for _ in range(2)]

    assert [expected, expected] == answers
    assert isinstance(view.table_cache.find((endpoint.name,)), Window)


@pytest.mark.more
def test_windows_of_a_load_stay_cached_within_the_limit(chain):
    """F4: four windows of 100 epochs are cached, if each is requested again after the others.

    A row of income takes 152 bytes in a frame.
    """
    service = Service(chain, cache_bytes=32_000_000)
    view = service.views.current()
    cache, head = view.table_cache, view.head.finalized_epoch
    requests = [
        {"validators": validators, "latest_epoch": str(head - 100 * n), "limit": "100"}
        for validators in ("1", "2", "3")
        for n in range(4)
    ]

    for fields in requests:
        assert len(cache.select_records(v1.INCOME_HISTORY, fields, view)) == 100
        assert cache.memory.size <= cache.memory.max_bytes

    windows = [value for _, value in cache.memory._entries.values() if isinstance(value, Window)]
    assert 4 == len(windows)
    assert sum(window.size for window in windows) < 72 * sum(w.rows.height for w in windows)


@pytest.mark.parametrize(("rows", "last_query"), [(300_000, 1), (100_000, 3), (60_000, 5), (1, 9)])
def test_a_large_window_is_read_once_many_requests_follow(chain, monkeypatch, rows, last_query):
    """F6: to read the rows of all validators for two requests took seven times as long.

    The rows of the window are in one of two files, which has 262,144 rows.
    """
    monkeypatch.setattr(table_cache, "WINDOW_ROWS", rows)
    service = Service(chain)
    view = service.views.current()
    window = {"latest_epoch": "99", "limit": "100"}

    has_window = []
    for validator in range(9):
        fields = window | {"validators": str(validator)}
        assert 100 == len(view.table_cache.select_records(v1.INCOME_HISTORY, fields, view))
        found = view.table_cache.find(("income_history", *sorted(window.items())))
        has_window.append(found is not None)

    assert [False] * last_query + [True] * (9 - last_query) == has_window


def test_the_latest_row_may_be_outside_of_later_bounds(chain):
    """The latest day of all rows is not that of the rows in the window of another parameter."""
    view = Service(chain).views.current()
    (latest,), (_, window) = v1.YIELD_INDEX.all_parameters, v1.INCOME_HISTORY.all_parameters
    fields = {"day": "latest", "latest_epoch": "300"}

    assert {"epoch": (201, 300)} == find_bounds([window, latest], fields, view)
    assert {} == find_bounds([latest, window], fields, view)


def test_a_window_selects_rows_by_validator():
    """F4: in the order of an answer; validators without rows are left out."""
    rows = pl.DataFrame({"validator_index": [5, 3, 5, 9], "wei": [1, 2, None, 4]})
    ordered = rows.with_row_index("position").reverse().select("validator_index", "position")
    window = Window((), rows, NumberIndex.build(ordered))

    def select(*validators):
        return window.rows[window.find(validators)]

    assert_frame_equal(rows[[2, 0]], select(5))
    assert_frame_equal(rows[[2, 0]], select(5, 4))
    assert_frame_equal(rows.reverse(), select(9, 5, 3))
    assert_frame_equal(rows.clear(), select(4, 10))
    assert_frame_equal(rows.clear(), select(4))


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("rows", [1, 6])
def test_compact_rows_have_the_same_records(public, rows):
    """F4: the largest and smallest integers, zero, null, a whole object of nulls, and weeks."""
    extremes = [0, 2**63 - 1, -(2**63), None, 127, -129]
    amounts = [name for name in IncomeHistory.schema() if name.endswith("_gwei")]
    frame = IncomeHistory.arrange(
        pl.DataFrame(
            {
                "validator_index": range(6),
                "epoch": [0, 1574, 1575, 200_000, 1575, 2**31],
                "proposals_missed": [0, 0, 1, None, 300, 0],
                "tx_fee_reward_wei": [*map(Decimal, [0, 10**27, 1]), None, Decimal(5), None],
                **{name: extremes[n % 3 :] + extremes[: n % 3] for n, name in enumerate(amounts)},
            },
            schema_overrides=IncomeHistory.schema(),
        )
        .with_columns(time=MAINNET.time_expr("epoch", pl.col("epoch")))
        .select(IncomeHistory.schema().names())
        .with_columns(
            pl.when(pl.col("validator_index") != 3).then(pl.col(amounts)).name.keep(),
        )
        .head(rows)
    )
    compacted = compact(IncomeHistory.spec, frame, MAINNET)

    expected = IncomeHistory.encode_records(frame, MAINNET, public=public)
    assert expected == IncomeHistory.encode_records(compacted, MAINNET, public=public)
    assert "time" not in compacted.columns
    assert pl.Int8 == compacted.schema["validator_index"]


def test_requests_of_v1_are_not_compared_with_the_routes_of_v2(chain):
    """E1: each comparison takes time, and V2 has many routes."""
    paths = [route.path for route in build_app(Service(chain), Access()).routes]
    versions = [path.startswith(V2_PREFIX) for path in paths]

    assert sorted(versions) == versions


def test_the_canonical_block_of_a_slot_answers_for_it():
    """Also if the root of the orphaned block comes first; a missed slot has no block."""
    rows = pl.LazyFrame(
        {
            "slot": [5, 5, 6, 7],
            "status": ["orphaned", "proposed", "missed", "orphaned"],
            "block_root": ["0x01", "0x02", None, "0x03"],
        }
    )
    choose = find_selector(type(v1.SLOTS.all_parameters[0])).choose

    assert ["0x02", "0x03"] == choose(rows).collect()["block_root"].to_list()
