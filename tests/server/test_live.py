"""A live chain: its head follows the clock, and clients see each slot and each epoch once."""

from __future__ import annotations

import json
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import httpx
import msgspec
import polars as pl
import pytest

import beaconframes as bf
from beaconframes import errors
from beaconframes.answers.memory_cache import CACHE_BYTES
from beaconframes.answers.view import MAX_VIEWS
from beaconframes.calendar import HOODI
from beaconframes.server import Server, local
from beaconframes.server.service import Service
from beaconframes.simulator import head_clock
from beaconframes.simulator.head_clock import HeadClock
from beaconframes.v1.epochs import EPOCHS
from beaconframes.v1.latest_state import LATEST_STATE
from beaconframes.v2.validator_list import VALIDATORS

from ..support.replicas import ServiceTransport, connect_to

SLOT, EPOCH = 12, 384
"""Seconds."""


class FakeTime:
    """The module ``time`` for a live chain: it moves only when a test says so."""

    def __init__(self, epoch):
        self.seconds = HOODI.time_of("epoch", epoch).timestamp()

    def time(self):
        return self.seconds

    def sleep(self, seconds):
        self.seconds += seconds


class SharedTime(FakeTime):
    """A fake time for threads: those that sleep wait until another one has moved it."""

    def __init__(self, epoch):
        super().__init__(epoch)
        self._moved, self.sleeping = threading.Condition(), []

    def sleep(self, seconds):
        with self._moved:
            end = self.seconds + seconds
            self.sleeping.append(end)
            assert self._moved.wait_for(lambda: self.seconds >= end, 300)

    def move(self, seconds):
        with self._moved:
            self.seconds += seconds
            self.sleeping = [end for end in self.sleeping if end > self.seconds]
            self._moved.notify_all()


@pytest.fixture
def first(hoodi):
    """The first epoch that can be the head of the live chain, and is final two epochs later."""
    return hoodi.meta["first_epoch"] + 2


@pytest.fixture
def clock(first, monkeypatch):
    """The fake clock, at the start of the tenth epoch of the dataset."""
    fake = FakeTime(first + 8)
    monkeypatch.setattr(head_clock, "time", fake)
    return fake


@pytest.fixture
def service(hoodi, clock):
    """A live chain in this process."""
    return Service(hoodi, clock=HeadClock(hoodi))


def get(service, endpoint, **fields):
    """Return the data of an answer of V1."""
    return json.loads(service.answer(endpoint, fields).body)["data"]


def read_head(service):
    """Return slot, epoch and finalized epoch of the latest state."""
    state = get(service, LATEST_STATE)
    return state["currentSlot"], state["currentEpoch"], state["currentFinalizedEpoch"]


def test_the_head_moves_slot_by_slot(service, clock, first):
    """E9: latest state, latest slot and latest epoch have one head; slots advance one by one."""
    clock.sleep(29 * SLOT)
    heads = []
    for _ in range(5):
        heads.append(read_head(service))
        clock.sleep(SLOT)
    start = (first + 8) * 32

    slots = range(start + 29, start + 34)
    assert [(slot, slot // 32, slot // 32 - 2) for slot in slots] == heads


def test_a_poller_sees_every_epoch_finalize_once(service, clock, first):
    """E9: over two hours, finality moves by one epoch at a time, and never back."""
    seen = []
    for _ in range(2 * 3600 // 300 + 1):
        slot, epoch, final = read_head(service)
        if not seen or final != seen[-1]:
            seen.append(final)
        assert (epoch, final) == (slot // 32, slot // 32 - 2)
        clock.sleep(300)

    final = read_head(service)[2]
    assert [True, False] == [
        get(service, EPOCHS, epoch=str(number))["finalized"] for number in (final, final + 1)
    ]
    assert list(range(first + 6, first + 6 + 19)) == seen


def test_a_recording_loses_and_repeats_no_duty(hoodi, clock, first, tmp_path):
    """E9: the duties of every final epoch are stored once, while the head moves on."""
    clock.seconds = HOODI.time_of("epoch", first + 99).timestamp()
    service = Service(hoodi, clock=HeadClock(hoodi))
    explorer = connect_to(ServiceTransport(service), store=tmp_path / "store")
    explorer.clock = service.clock
    last = first + 99 + 40
    report = bf.record("attestations", [0, 1], until=last, explorer=explorer)

    assert [(0, "stored"), (1, "stored")] == report.select("validator_index", "state").rows()
    assert [last] * 2 == report["last_epoch"].to_list()
    rows = bf.load_attestations(
        [0, 1], since=int(report["first_epoch"][0]), until=last, explorer=explorer
    )
    epochs = pl.col("epoch").is_between(report["first_epoch"][0], last)
    expected = hoodi.scan("attestations").filter(pl.col("validator_index") < 2, epochs)
    columns = ["validator_index", "epoch", "attester_slot", "inclusion_slot"]
    assert 2 * 120 < rows.height
    assert expected.select(columns).collect().rows() == rows.select(columns).rows()


def test_an_export_that_follows_has_every_epoch_once(service, clock, first, tmp_path):
    """E9: each round adds the newly finalized epochs to the dataset."""
    out = tmp_path / "out"
    for _ in range(2):
        explorer = connect_to(ServiceTransport(service), store=False)
        bf.export(bf.load_income_history, out, validators=[0, 1], since=first, explorer=explorer)
        clock.sleep(2.5 * EPOCH)
    rows = pl.read_parquet(out / "**" / "*.parquet").sort("validator_index", "epoch")

    expected = [(index, epoch) for index in (0, 1) for epoch in range(first, first + 9)]
    assert expected == rows.select("validator_index", "epoch").rows()


def test_pages_of_a_list_have_the_head_of_the_first_page(service, clock):
    """E9: a list that is read while the head moves has each row once."""
    body = {"chain": "hoodi", "page_size": 10, "validator": {"validator_identifiers": [*range(15)]}}

    _, first = post(service, VALIDATORS, body)
    clock.sleep(3 * EPOCH)
    cursor = first["paging"]["next_cursor"]
    _, second = post(service, VALIDATORS, body | {"cursor": cursor})

    indices = [row["validator"]["index"] for page in (first, second) for row in page["data"]]
    assert list(range(15)) == indices
    assert first["range"] == second["range"]
    assert first["range"] != post(service, VALIDATORS, body)[1]["range"]


def test_rows_of_one_head_are_not_those_of_another(hoodi, service, clock, first):
    """E9: caches of rows do not answer for a later head."""
    request = {"chain": "hoodi", "validator": {"validator_identifiers": [1]}}
    balances = []
    for _ in range(3):
        record = post(service, VALIDATORS, request)[1]["data"][0]
        balances.append(int(record["balances"]["current"]) // 10**9)
        clock.sleep(EPOCH)

    epochs = pl.col("epoch").is_between(first + 8, first + 10)
    stored = hoodi.scan("balance_history").filter(pl.col("validator_index") == 1, epochs)
    assert stored.collect()["balance_gwei"].to_list() == balances
    assert 1 < len(set(balances))


def test_the_head_stops_at_the_end_of_the_dataset(hoodi, service, clock, caplog):
    """E9: the log says so, once."""
    end = hoodi.meta["latest_slot"]
    clock.sleep(200 * EPOCH)
    with caplog.at_level(logging.WARNING, "beaconframes.server"):
        heads = [read_head(service)[0] for _ in range(2)]

    assert [end, end] == heads
    assert [f"the dataset ends at slot {end}: the head stays there"] == caplog.messages


def test_a_faster_clock(hoodi, clock, first):
    """E9: --speed 100 moves 100 times as fast, --start chooses the epoch; times agree with it."""
    faster = HeadClock(hoodi, start=first + 3, speed=100)
    clock.sleep(SLOT)

    assert (first + 3) * 32 + 100 == faster.head().slot
    assert HOODI.time_of("slot", faster.head().slot) == faster.now()


def post(service, endpoint, body):
    """Return status and body of an answer of V2."""
    answer = service.answer_v2(endpoint, msgspec.json.encode(body), "premium")
    return answer.status_code, json.loads(answer.body)


def test_v2_answers_for_the_chain_of_the_dataset(hoodi, caplog):
    """E3: hoodi is served; mainnet, also as the default, is 404, and the log says why."""
    service = Service(hoodi)
    request = {"validator": {"validator_identifiers": [1]}}
    with caplog.at_level(logging.INFO, "beaconframes.server"):
        answers = [
            post(service, VALIDATORS, request | chain)
            for chain in ({"chain": "hoodi"}, {"chain": "mainnet"}, {})
        ]

    assert [200, 404, 404] == [status for status, _ in answers]
    assert {"The requested resource was not found."} == {body["error"] for _, body in answers[1:]}
    assert "mainnet is not served here, only hoodi" in caplog.text


def test_epochs_have_the_numbers_of_the_real_chain(hoodi):
    """E3, E9: clients compute the epoch of a time from hoodi's genesis, and find it."""
    epoch = HOODI.at("epoch", datetime(2026, 9, 30, 20, tzinfo=UTC))
    row = get(Service(hoodi), EPOCHS, epoch=str(epoch))

    assert HOODI == Service(hoodi).chain
    assert HOODI.time_of("epoch", epoch).isoformat().replace("+00:00", "Z") == row["ts"]
    assert HOODI.at("slot", datetime(2026, 10, 1, tzinfo=UTC)) == hoodi.meta["latest_slot"]


def test_cached_rows_have_a_limit(hoodi):
    """E17: the oldest rows are removed; a table above the limit is read from its files."""
    cache = Service(hoodi, cache_bytes=500_000).views.current().table_cache
    for table in ("blocks", "epochs", "validators", "attestations", "deposits"):
        assert hoodi.tables()[table].rows == cache.scan(table).collect().height
        assert cache.memory.size <= 500_000

    assert 0 < cache.memory.size
    assert cache.find("deposits") is not None
    assert cache.find("attestations") is None


def test_all_heads_of_a_live_chain_share_the_limit(service, clock):
    """E17: a few heads are cached, in one memory with the whole dataset."""
    for _ in range(6):
        service.views.current()
        clock.sleep(SLOT)
    views = service.views._views.values()
    memories = {
        id(cache.memory) for cache in (service.views._whole, *(v.table_cache for v in views))
    }

    assert MAX_VIEWS == len(views)
    assert {id(service.views.memory)} == memories
    assert CACHE_BYTES == service.views.memory.max_bytes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"live": True, "start": 5}, "cannot be served live from start=5: a live head can be in"),
        ({"live": True}, "cannot be served live from the present time"),
        ({"live": True, "start": 1, "speed": 0}, "speed=0 is not valid"),
        ({"start": 5}, "start and speed need a live chain"),
        ({"cache_bytes": "lots"}, "cache_bytes='lots' is not a size"),
    ],
)
def test_options_that_make_no_sense_are_refused(hoodi, options, message):
    """E9, E17: the error names the value and what is possible; no server starts."""
    with pytest.raises(errors.UsageError, match=message):
        Server(hoodi, **options)


def test_a_chain_without_old_duties_cannot_start_early(chain):
    """E9: a head needs the duties of the hundred epochs before it."""
    with pytest.raises(errors.UsageError, match="can be in epochs 469 to 469"):
        Server(chain, live=True, start=200)


def test_loaders_of_a_live_local_explorer(hoodi, first):
    """E9: `bf.local(live=True)`: the explorer reads the head, and takes the time of the chain."""
    with local(hoodi, live=True, start=first + 10, speed=0.001) as service:
        assert [first + 9, first + 10] == bf.load_epochs(since=-2)["epoch"].to_list()
        ages = bf.load_income_history(0, since="40m", until=first + 8)
        assert HOODI.time_of("epoch", first + 10) <= service.now()

    assert first + 8 == ages["epoch"].max()
    assert timedelta(minutes=40) > HOODI.time_of("epoch", first + 10) - ages["time"].min()


def test_two_requests_that_compute_the_validators_of_a_head_end(service):
    """One reads keys of the dataset, the other one a table of the cache, at the same time."""
    view = service.views.current()
    data, cache = view.dataset, view.table_cache
    has_begun, holds_cache, scan_all = threading.Event(), threading.Event(), data.scan_all

    def scan_all_slowly(table):
        has_begun.set()
        assert holds_cache.wait(60)
        return scan_all(table)

    def compute():
        holds_cache.set()
        assert has_begun.wait(60)
        return 0, data.scan("validators").collect()

    data.scan_all = scan_all_slowly
    keys = threading.Thread(target=lambda: view.indices, daemon=True)
    cached = threading.Thread(target=cache.get_or_compute, args=("x", compute), daemon=True)
    for thread in (keys, cached):
        thread.start()
    for thread in (cached, keys):
        thread.join(20)

    assert [False, False] == [cached.is_alive(), keys.is_alive()]


@pytest.mark.more
def test_two_hours_at_high_speed(hoodi, first, tmp_path, monkeypatch):
    """E9: over HTTP, a poller, a recording and an export meet one moving head."""
    rows, epochs, clock = [], 19, SharedTime(first + 99)
    monkeypatch.setattr(head_clock, "time", clock)
    with (
        Server(hoodi, live=True, start=first + 99) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
        ThreadPoolExecutor() as pool,
    ):

        def export():
            with bf.Explorer(server.url, rate=10_000) as explorer:
                bf.export(
                    bf.load_income_history, tmp_path / "out",
                    validators=[0, 1], since=first, explorer=explorer,
                )  # fmt: skip

        def export_repeatedly():
            while not recording.done():
                export()

        def record():
            with bf.Explorer(server.url, store=tmp_path / "store", rate=10_000) as explorer:
                explorer.clock = server.service.clock
                return bf.record(
                    "attestations", [0, 1], until=first + 97 + epochs, explorer=explorer
                )

        recording = pool.submit(record)
        exporting = pool.submit(export_repeatedly)
        while not recording.done():
            state = client.get("/api/v1/latestState").json()["data"]
            assert state["currentEpoch"] - 2 == state["currentFinalizedEpoch"]
            if not rows or rows[-1] != state["currentFinalizedEpoch"]:
                rows.append(state["currentFinalizedEpoch"])
            # The recorder may take longer than an epoch on a busy machine.
            if clock.sleeping:
                clock.move(EPOCH / 3)
        report = recording.result()
        exporting.result()
        export()
    exported = pl.read_parquet(tmp_path / "out" / "**" / "*.parquet")
    exported = exported.sort("validator_index", "epoch")

    assert list(range(rows[0], rows[0] + len(rows))) == rows
    assert epochs <= len(rows)
    assert {"stored"} == set(report["state"])
    assert [first + 97 + epochs] * 2 == report["last_epoch"].to_list()
    last = exported["epoch"].max()
    assert last >= first + 97 + epochs
    expected = [(index, epoch) for index in (0, 1) for epoch in range(first, last + 1)]
    assert expected == exported.select("validator_index", "epoch").rows()
