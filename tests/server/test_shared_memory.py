"""Requests of the local explorer share what they derive, within one limit, and read few rows."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.request
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from copy import copy

import msgspec
import polars as pl
import polars.selectors as cs
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import v1, v2
from beaconframes.answers import selection
from beaconframes.answers.memory_cache import MemoryCache
from beaconframes.answers.v2 import ROWS, apy_roi, performance, rewards
from beaconframes.answers.view import SCANNED_TABLES
from beaconframes.server import Server
from beaconframes.server.service import Service

from ..support.selected_rows import select_answer

ENDPOINTS = {endpoint.name: endpoint for endpoint in v2.ENDPOINTS}
PAGED_BY_EPOCH = ("rewards", "performance", "balances")
WINDOW = {"range": {"evaluation_window": "24h"}}


def request(service, name, **fields):
    """Return the JSON of an answer of V2."""
    body = msgspec.json.encode({"chain": "mainnet", **fields})
    answer = service.answer_v2(ENDPOINTS[name], body, "premium")
    assert 200 == answer.status_code, bytes(answer.body)
    return json.loads(bytes(answer.body))


def select(validators):
    """Return the field with the *validators*."""
    return {"validator_identifiers": list(validators)}


@pytest.fixture
def reads(monkeypatch):
    """Return the number of rows that each read of a table finds in its files."""
    found = defaultdict(list)

    def scan(paths, *, scan=pl.scan_parquet, **options):
        def count(rows):
            found[paths[0].parent.name].append(rows.height)
            return rows

        rows = scan(paths, **options)
        return rows.map_batches(count, predicate_pushdown=True, slice_pushdown=True)

    monkeypatch.setattr(pl, "scan_parquet", scan)
    return found


@pytest.mark.more
@pytest.mark.parametrize("name", PAGED_BY_EPOCH)
def test_requests_for_other_epochs_read_no_table_again(chain, reads, name):
    """Each request reads the rows of its epoch, and nothing that an earlier one has read."""
    service = Service(chain, cache_bytes=40_000_000)
    epochs = range(20, 440, 30)
    read = []
    for epoch in epochs:
        reads.clear()
        rows = request(service, name, validator=select([7, 8, 9]), epoch=epoch)["data"]
        assert 3 == len(rows)
        read.append(dict(reads))

    table = "balance_history" if name == "balances" else "income_history"
    assert [{table: [3]}] * (len(epochs) - 3) == read[3:]


@pytest.mark.more
def test_no_cache_has_a_whole_wide_table(chain, reads):
    """Blocks take 2 kB of memory a row: requests for some of them read and cache these."""
    service = Service(chain)
    height = chain.tables()["blocks"].rows
    for slot in range(100, 15_000, 1_000):
        assert 200 == service.answer(v1.SLOTS, {"slot": str(slot)}).status_code
        request(service, "slot", slot={"number": slot})

    sizes = [
        value.height
        for _, value in service.views.memory._entries.values()
        if isinstance(value, pl.DataFrame) and len(value.columns) > 20
    ]
    assert 0 < max(sizes) < height / 4
    assert height > max(reads["execution_blocks"], default=0)


@pytest.mark.more
def test_answers_and_tables_share_one_limit(chain):
    """The rows of answers, which wait for the next page, count as well."""
    service = Service(chain, cache_bytes=3_000_000)
    memory = service.views.memory
    for epoch in range(20, 60):
        request(service, "rewards", validator=select(range(100)), epoch=epoch)
        assert memory.size <= memory.max_bytes
    assert memory.size == sum(size for size, _ in memory._entries.values()) > 1_000_000


def test_the_oldest_values_are_evicted():
    """A value that is found again stays; one above the limit is not cached."""
    memory = MemoryCache(10)
    for name in "abc":
        memory.put(name, 3, name.upper())
    assert (3, "A") == memory.find("a")
    memory.put("d", 4, "D")
    memory.put("e", 11, "E")
    memory.put("d", 2, "smaller")

    found = {name: memory.find(name) for name in "abcde"}
    assert {"a": (3, "A"), "b": None, "c": (3, "C"), "d": (2, "smaller"), "e": None} == found
    assert 8 == memory.size
    assert 1 == memory.get_or_compute("f", lambda: (1, 1)) == memory.get_or_compute("f", None)


@pytest.mark.more
@pytest.mark.parametrize("window", ["24h", pytest.param("all_time", marks=pytest.mark.more)])
@pytest.mark.parametrize(
    "validators",
    [pytest.param([3], id="one"), pytest.param(range(1010), id="all", marks=pytest.mark.more)],
)
def test_sums_by_day_are_those_of_all_epochs(chain, window, validators):
    """Days are counted back from the finalized epoch, as windows are."""
    view = Service(chain).views.current()
    last, size = view.head.finalized_epoch, view.chain.epochs_per_day
    first = last - size + 1 if window == "24h" else 0
    in_window = pl.col("epoch").is_between(first, last)
    is_selected = pl.col("validator_index").is_in(list(validators))
    endpoint = ENDPOINTS["rewards_aggregate"]
    fields = {"validator": select(validators), "range": {"evaluation_window": window}}
    plain = rewards.scan_rewards(view).filter(in_window, is_selected)
    expected = rewards.summarize(plain).collect()
    duties = performance.derive_duties(view).filter(in_window, is_selected)
    counts = duties.select(
        performance.COUNTS.sum(), pl.col(performance.AVERAGES).mean().fill_null(0)
    ).collect()

    for _ in range(3):
        rows = select_answer(endpoint, ROWS["rewards_aggregate"](view), fields, view)
        assert_frame_equal(expected, rewards.summarize(rows).collect())
        rows = select_answer(endpoint, ROWS["performance_aggregate"](view), fields, view)
        summary = performance.summarize(rows).collect()
        assert_frame_equal(counts, summary.select(counts.columns), check_exact=True)


@pytest.mark.more
def test_yields_count_each_epoch_once(chain):
    """The stake is a mean over the epochs in which any of the validators has income."""
    view = Service(chain).views.current()
    members = pl.col("validator_index").is_in([3, 4, 1_005])
    income = view.scan("income_history").filter(
        members, pl.col("epoch") <= view.head.finalized_epoch
    )
    stakes = view.scan("balance_history").select(
        "validator_index", "epoch", "effective_balance_gwei"
    )
    rows = income.join(stakes, on=["validator_index", "epoch"]).collect()
    earned = sum(
        rows[name].sum() * (1 if name.endswith("_reward_gwei") else -1)
        for name in rows.columns
        if name.endswith(("_reward_gwei", "_penalty_gwei"))
    )
    stake = rows["effective_balance_gwei"].sum() / rows["epoch"].n_unique()
    lengths = rows.group_by("validator_index").len()["len"]
    assert lengths.n_unique() > 1

    for _ in range(3):
        days = apy_roi.derive_rows(view).filter(members)
        found = apy_roi.summarize(days).collect()["consensus_roi"].item()
        assert found == pytest.approx(earned / stake, rel=1e-12)


def test_derived_tables_are_made_in_parts(chain, reads, monkeypatch):
    """Memory holds a share of the validators of a day at a time; the rows are the same."""
    views = [Service(chain).views.current() for _ in range(2)]
    expected = performance.sum_duties(views[0]).collect()
    whole = reads.pop("income_history")
    monkeypatch.setattr("beaconframes.answers.view.PART_ROWS", 100_000)
    derived = ROWS["network_performance"](views[1]).collect()

    # One column of all rows, to find the first day.
    assert whole == reads["income_history"][:1]
    parts = reads["income_history"][1:]
    assert whole == [sum(parts)]
    assert max(parts) < 100_000 < 1_010 * views[1].chain.epochs_per_day
    assert_frame_equal(expected, derived, check_row_order=False)


def test_a_derived_table_names_the_tables_that_it_needs(chain):
    """An answer is refused if one of them is incomplete, also when it is cached."""
    view = Service(chain).views.current()
    scanned = []
    for _ in range(3):
        token = SCANNED_TABLES.set(set())
        view.derive(rewards.sum_payments).collect()
        scanned.append(SCANNED_TABLES.get())
        SCANNED_TABLES.reset(token)
    assert [{"blocks", "execution_blocks"}] * 3 == scanned


@pytest.mark.parametrize(
    ("name", "fields", "tables"),
    [
        # A missed block of the epoch would have earned the mean of the others.
        ("rewards", {"validator": select([5]), "epoch": 300}, {"income_history": 1_011}),
        ("performance", {"validator": select([5]), "epoch": 300}, {"income_history": 1}),
        ("balances", {"validator": select([5]), "epoch": 300}, {"balance_history": 1}),
        (
            "rewards_aggregate",
            {"validator": select([5]), **WINDOW},
            {"income_history": 1_011 * 225},
        ),
        ("slot", {"slot": {"number": 9_000}}, {"blocks": 1, "slot_withdrawals": 16}),
        ("slot_withdrawals", {"slot": {"number": 9_000}}, {"slot_withdrawals": 16}),
        ("withdrawal_slots", {"validator": select([5])}, {"slot_withdrawals": 500}),
        ("block", {"block": {"number": 9_000}}, {"blocks": 1}),
        ("slot_attestation_duties", {"slot": {"number": 14_000}}, {"income_history": 1_010}),
        ("slot_sync_committee_duties", {"slot": {"number": 9_000}}, {"income_history": 1_010}),
    ],
)
def test_selections_reach_the_files(chain, reads, name, fields, tables):
    """A filter by validator, epoch or slot reduces the rows that are read, also at first."""
    request(Service(chain), name, **fields)
    for table, most in tables.items():
        assert 0 < sum(reads[table]) <= most, (table, reads[table])


@pytest.mark.parametrize("name", ["slot_attestation_duties", "slot_sync_committee_duties"])
def test_joined_requests_read_their_epochs_only(chain, reads, name):
    """One query for three slots of two epochs reads the income of these epochs."""
    slots = [14_000, 14_003, 14_040]
    with bf.open(chain):
        rows = getattr(v2, f"load_{name}")(slots)

    assert slots == rows["slot"].unique().sort().to_list()
    assert 0 < sum(reads["income_history"]) <= 2 * 1_010


def test_few_requests_are_answered_at_a_time(chain, monkeypatch):
    """Twenty requests at once do not need twenty times the memory of one."""
    running, counts = set(), []
    answer = Service.answer

    def count(service, endpoint, fields, tier):
        running.add(threading.get_ident())
        counts.append(len(running))
        time.sleep(0.02)
        try:
            return answer(service, endpoint, fields, tier)
        finally:
            running.discard(threading.get_ident())

    monkeypatch.setattr(Service, "answer", count)
    with Server(chain) as server, ThreadPoolExecutor(20) as clients:
        urls = [f"{server.url}/api/v1/epoch/{epoch}" for epoch in range(100, 120)]
        answers = [*clients.map(lambda url: urllib.request.urlopen(url).status, urls)]
    assert [200] * 20 == answers
    assert 2 <= max(counts) <= 4


def test_closing_waits_for_no_tick(chain):
    """Idle connections are closed at once."""
    seconds = []
    for _ in range(3):
        server = Server(chain)
        connection = socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])))
        connection.sendall(b"GET /api/v1/latestState HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(1 << 16)
        start = time.perf_counter()
        server.close()
        seconds.append(time.perf_counter() - start)
        assert not server.is_running
        connection.close()
    # uvicorn's ticks alone take 0.1 to 0.2 seconds.
    assert min(seconds) < 0.08


def test_closing_does_not_cut_an_answer(chain):
    """An answer that is being made is sent completely."""
    server = Server(chain, faults=["latency=300ms"])
    found = []

    def load():
        with urllib.request.urlopen(f"{server.url}/api/v1/epoch/100/slots") as answer:
            found.append(json.loads(answer.read()))

    client = threading.Thread(target=load)
    client.start()
    while not server._server.server_state.connections:
        time.sleep(0.005)
    time.sleep(0.1)
    server.close()
    client.join()
    assert 32 <= len(found[0]["data"])


@pytest.mark.parametrize("is_short", [True, False])
def test_pages_of_a_list_select_it_once(chain, monkeypatch, is_short):
    """Each page is a part of a list in memory; each order has its own. A long list is not kept."""
    service = Service(chain)
    blocks = chain.scan("execution_blocks").filter(pl.col("proposer_index") < 100)
    numbers = blocks.sort("block_number").collect()["block_number"].to_list()
    limit = len(numbers) if is_short else len(numbers) - 1
    monkeypatch.setattr("beaconframes.answers.table_cache.MAX_LIST_ROWS", limit)
    found = {"asc": [], "desc": []}
    lists = []
    for offset in range(0, 100, 25):
        for order, pages in found.items():
            fields = {"producers": ",".join(map(str, range(100))), "sort": order}
            fields |= {"limit": "25", "offset": str(offset)}
            body = service.answer(v1.PRODUCED_BLOCKS, fields).body
            pages += [row["blockNumber"] for row in json.loads(body)["data"]]
        kept = [value for (_, name), (_, value) in service.views.memory._entries.items()
                if name[0] == "list"]  # fmt: skip
        lists.append([None if rows is None else rows.height for rows in kept])

    assert {"asc": numbers[:100], "desc": numbers[:-101:-1]} == found
    assert [[len(numbers) if is_short else None] * 2] * 4 == lists


def test_a_list_of_v2_is_selected_once_for_all_its_pages(chain, monkeypatch):
    """One page is kept from its second request on: clients rarely send the same request again."""
    selected = []

    def select_rows(endpoint, *arguments):
        selected.append(endpoint.name)
        return selection.select_rows(endpoint, *arguments)

    monkeypatch.setattr("beaconframes.server.service_v2.select_rows", select_rows)
    service = Service(chain)

    def count_rows(validators):
        page = {"paging": {"next_cursor": ""}}
        fields = {"validator": select(range(validators)), "epoch": 50}
        while True:
            page = request(service, "balances", **fields, cursor=page["paging"]["next_cursor"])
            yield len(page["data"])
            if not page["paging"]["next_cursor"]:
                return

    def find_kept():
        entries = service.views.memory._entries.items()
        return [rows.height for name, (_, rows) in entries if len(name) == 3]

    assert [10] == list(count_rows(10))
    assert [] == find_kept()
    assert [10, 10, 5] == list(count_rows(25))
    assert [25] == find_kept()
    assert [10] * 2 == [*count_rows(10), *count_rows(10)]
    assert [25, 10] == find_kept()
    assert ["balances"] * 3 == selected


def test_members_of_a_sync_committee_signed_nothing_in_an_epoch_without_a_block(chain):
    """Without a block, a member has neither a reward nor a penalty."""
    view = copy(Service(chain).views.current())
    tables, epoch = view.table_cache, 40

    def scan(name, schema=None):
        rows = tables.scan(name, schema)
        if name == "blocks":
            return rows.filter(pl.col("epoch") != epoch)
        if name == "income_history":
            in_committee = cs.starts_with("sync_committee_")
            return rows.with_columns(
                pl.when(pl.col("epoch") != epoch).then(in_committee).otherwise(0)
            )
        return rows

    view.scan = scan
    seats = performance.derive_members(view).filter(period=epoch // 256).collect()
    members = seats["validator_index"]
    duties = performance.derive_duties(view).filter(pl.col("epoch") == epoch).collect()
    duties = duties.select("validator_index", cs.starts_with("sync_committee_"))

    of_members = duties.filter(pl.col("validator_index").is_in(members.implode())).drop(
        "validator_index"
    )
    assert 0 < of_members.height < duties.height
    assert [(32, 0, 0, 32)] == of_members.unique().rows()
