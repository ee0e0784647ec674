"""The limit of the store: least recently used rows are removed, and no load is disturbed."""

from __future__ import annotations

import os
import threading
import time
import warnings

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import errors
from beaconframes.cache.local_store import LocalStore, StoreUse
from beaconframes.calendar import MAINNET
from beaconframes.config import settings
from beaconframes.dataset import Dataset, Grid
from beaconframes.dataset.eviction import count_bytes
from beaconframes.fetch import source
from beaconframes.fetch.pipeline import Pipeline

GRID = Grid("validator", "epoch", ("validator", "epoch"))
SCHEMA = pl.Schema({"validator": pl.Int64, "epoch": pl.Int64, "noise": pl.Int64})
ENTRY = 2_500
"""Rows of an entry: about 20 kB, since the noise cannot be compressed."""


@pytest.fixture(autouse=True)
def one_file_per_load(monkeypatch):
    """Write one file per load: the bytes of several would depend on the speed of the machine."""
    monkeypatch.setattr(source, "FLUSH_SECONDS", 60.0)


@pytest.fixture
def store(tmp_path):
    """A store of at most 150 kB, which is about six entries beside the ledger."""
    return LocalStore(tmp_path / "store", url="http://x", chain=MAINNET, limit=150_000)


def make_entry(validator):
    """Return one row per epoch."""
    noise = pl.int_range(ENTRY, eager=True).hash(validator).reinterpret(signed=True)
    return pl.DataFrame({"validator": validator, "epoch": range(ENTRY), "noise": noise}).cast(
        dict(SCHEMA)
    )


def put(store, validator, **more):
    """Store the entry of a validator."""
    covered = {str(validator): ((0, ENTRY - 1),)}
    return store.put("noise", make_entry(validator), GRID, covered, 9, **more)


def list_stored(store):
    """Return the validators whose rows are complete, after a check that they are."""
    covered = store.coverage("noise", [str(n) for n in range(99)], ((0, ENTRY - 1),))
    assert all(intervals == ((0, ENTRY - 1),) for intervals in covered.values())
    rows = store.select("noise", None, ((0, ENTRY - 1),), SCHEMA).rows.collect()
    assert set(rows["validator"]) == {int(subject) for subject in covered}
    assert ENTRY * len(covered) == rows.height
    return sorted(int(subject) for subject in covered)


def test_least_recently_used_entries_are_removed(store):
    """F16, C11: the size never exceeds the limit by more than an entry; the oldest goes first."""
    sizes = []
    for validator in range(8):
        assert put(store, validator)
        sizes.append(count_bytes(store.path))
        store.mark_used("noise", ["1"], ((0, 5),))
    stored = list_stored(store)

    assert max(sizes) <= 150_000 < count_bytes(store.path) / len(stored) * 8
    assert [1, *range(9 - len(stored), 8)] == stored
    assert 4 <= len(stored) <= 6
    assert [] == Dataset.open(store.path).verify()


def test_entries_used_in_the_future_are_removed_first(store):
    """The clock was set back: a year ahead is no time at which a load can have used them."""
    for validator in range(4):
        put(store, validator)
    files = sorted(store.path.glob("noise/*.parquet"))
    later = time.time() + 365 * 86_400
    os.utime(files[2], (later, later))
    for validator in range(4, 7):
        put(store, validator)

    assert 2 not in list_stored(store)


def test_rows_of_the_current_load_stay(store):
    """C11: a load that is larger than the limit says so once, and removes none of its rows."""
    use = StoreUse(time.time_ns(), store.removals)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = [put(store, validator, use=use) for validator in range(9)]
    stored = list_stored(store)

    assert stored == [validator for validator, is_stored in enumerate(results) if is_stored]
    assert results == sorted(results, reverse=True)
    assert 4 <= len(stored) <= 7
    assert count_bytes(store.path) <= 150_000 + 25_000
    (warning,) = caught
    assert issubclass(warning.category, errors.StoreUnavailable)
    assert "reached its limit of 150,000 bytes" in str(warning.message)

    assert put(store, 20)
    assert 20 in list_stored(store)


@pytest.mark.more
def test_a_lower_limit_makes_room_at_the_next_load(store):
    """C11: with a lower limit than before, the next load makes room."""
    for validator in range(5):
        put(store, validator)
    lower = LocalStore(store.path, url="http://x", chain=MAINNET, limit=80_000)

    assert put(lower, 7)
    assert 7 in list_stored(lower)
    assert count_bytes(store.path) <= 80_000


@pytest.mark.more
def test_damaged_entry_is_removed(store):
    """C11, F12: a damaged file that is the least recently used one is removed like another."""
    put(store, 0)
    (segment,) = Dataset.open(store.path).segments("noise")
    path = store.path / segment.path
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    for validator in range(1, 7):
        assert put(store, validator)

    assert 0 not in list_stored(store)


@pytest.mark.more
def test_compaction_respects_the_limit(store):
    """C11: many small files are not merged into one that would be removed as a whole."""
    for validator in range(25):
        covered = {str(validator): ((0, 99),)}
        store.put("noise", make_entry(validator).head(100), GRID, covered, 9)
        store.compact_small("noise")
        assert count_bytes(store.path) <= 150_000 + 2_500


BALANCES = [{"validators": range(n, n + 40), "since": 0, "until": 150} for n in range(0, 200, 20)]


@pytest.mark.more
def test_loads_have_all_rows(server, tmp_path):
    """F16, C11: threads whose loads remove each other's rows return the right rows."""
    known = {"chain": server.service.chain, "rate": 10_000}
    with bf.Explorer(server.url, **known, store=False) as plain:
        expected = [bf.load_balance_history(**wanted, explorer=plain) for wanted in BALANCES[:4]]
    failures = []

    def load(number):
        try:
            with bf.Explorer(
                server.url, **known, store=tmp_path / "store", store_limit="60 kB"
            ) as explorer:
                for n in (number, (number + 1) % 4, number):
                    found = bf.load_balance_history(**BALANCES[n], explorer=explorer)
                    assert_frame_equal(expected[n], found)
        except BaseException as error:  # noqa: BLE001 - reported by the test
            failures.append(error)

    threads = [threading.Thread(target=load, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == failures


def test_eviction_takes_no_request(server, tmp_path):
    """C11: a load that removes rows of others requests nothing twice, not even young rows."""
    known = {"chain": server.service.chain, "rate": 10_000}
    young = {"validators": range(40), "since": 400, "until": 469}
    with (
        bf.Explorer(server.url, **known, store=tmp_path / "a") as without_limit,
        bf.Explorer(server.url, **known, store=tmp_path / "b", store_limit=30_000) as explorer,
    ):
        frames, requests = [], []
        for one in (without_limit, explorer):
            bf.load_balance_history(**BALANCES[9], explorer=one)
            before = one.requests
            frames.append(bf.load_balance_history(**young, explorer=one))
            requests.append(one.requests - before)
        stored = bf.store(explorer).tables()["subjects"].to_list()
        full = bf.store(without_limit).tables()["subjects"].to_list()

    assert_frame_equal(*frames)
    assert requests[0] == requests[1]
    assert (full, stored) == ([80], [40])


def test_files_deleted_before_they_are_read(server, tmp_path, monkeypatch):
    """F16: if another process deletes files between plan and read, their rows are fetched."""
    known = {"chain": server.service.chain, "rate": 10_000, "store": tmp_path}
    load_rows, deleted = Pipeline.load_rows, []

    def load_then_delete(*arguments):
        result = load_rows(*arguments)
        if not deleted:
            deleted.extend(tmp_path.rglob("*.parquet"))
            for path in deleted:
                path.unlink()
        return result

    with bf.Explorer(server.url, **known) as explorer:
        expected = bf.load_balance_history(**BALANCES[0], explorer=explorer)
        monkeypatch.setattr(Pipeline, "load_rows", load_then_delete)
        assert_frame_equal(expected, bf.load_balance_history(**BALANCES[0], explorer=explorer))
    assert 1 == len(deleted)


def test_lazy_frame_keeps_its_rows(server, tmp_path):
    """F16, C11: the files under a LazyFrame stay while other loads need room."""
    known = {"chain": server.service.chain, "rate": 10_000}
    with bf.Explorer(server.url, **known, store=tmp_path, store_limit=40_000) as explorer:
        lazy = bf.load_balance_history(**BALANCES[0], lazy=True, explorer=explorer)
        for wanted in BALANCES[2:5:2]:
            bf.load_balance_history(**wanted, explorer=explorer)
        assert 40 * 151 == lazy.collect().height


def test_the_limit_is_an_argument_a_block_or_a_variable(monkeypatch):
    """C11: bytes or a size, from an argument, a block or the environment."""
    sizes = {"2GB": 2 * 10**9, "512 MiB": 2**29, "1.5k": 1_500, "700": 700, 64_000: 64_000}
    for text, size in sizes.items():
        with settings(store_limit=text) as given:
            assert size == given.store_limit
    monkeypatch.setenv("BEACONFRAMES_STORE_LIMIT", "3 MB")
    with settings() as given:
        assert 3_000_000 == given.store_limit
    for wrong in ("2 furlongs", "0", "-1GB", 0, True, 1.5, "GB"):
        with pytest.raises(errors.ConfigError, match="store_limit"):
            bf.Explorer("http://127.0.0.1:1", store=True, store_limit=wrong)
