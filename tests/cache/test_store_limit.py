"""The limit of the store, which is a warning, and the removal of what was stored first."""

from __future__ import annotations

import os
import threading
import warnings
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import errors
from beaconframes.cache.local_store import LocalStore
from beaconframes.cache.read_through import ReadThrough
from beaconframes.calendar import MAINNET
from beaconframes.config import settings
from beaconframes.dataset import Dataset, Grid
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
    """A store with a limit of 150 kB, which is about seven entries; its path is no pattern."""
    return LocalStore(tmp_path / "store [1]", url="http://x", chain=MAINNET, limit=150_000)


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


def count_bytes(store):
    """Return the size of the listed files."""
    return sum(table.bytes for table in Dataset.open(store.path).tables().values())


def test_the_limit_is_one_warning(store):
    """C11: the rows are stored; one warning states the size, the limit and the remedy."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert all(put(store, validator) for validator in range(9))

    assert list(range(9)) == list_stored(store)
    (warning,) = caught
    assert issubclass(warning.category, errors.StoreUnavailable)
    assert "more than its limit of 150,000" in str(warning.message)
    assert "bf.store().prune(to=150000)" in str(warning.message)


def test_a_size_keeps_what_was_stored_last(store):
    """The files that were written first are removed, with their coverage, until the size fits."""
    for validator in (5, 3, 1, 4, 2, 0):
        put(store, validator)
    size = count_bytes(store)
    bf.client.Store(store.path).prune(to=size // 2)
    assert [0, 2, 4] == list_stored(store)
    assert count_bytes(store) <= size // 2

    bf.client.Store(store.path).prune(to="1 GB")
    assert [0, 2, 4] == list_stored(store)
    bf.client.Store(store.path).prune(to=1)
    assert [] == list_stored(store)


@pytest.mark.parametrize("kind", ["age", "instant", "timedelta"])
def test_an_age_keeps_what_was_stored_since(store, kind):
    """Files that were written before the time are removed, whatever their order."""
    for validator in range(4):
        put(store, validator)
    files = [store.path / segment.path for segment in Dataset.open(store.path).segments("noise")]
    now = datetime.now(UTC)
    for validator, days in ((0, 10), (2, 40), (3, 31)):
        at = (now - timedelta(days=days)).timestamp()
        os.utime(files[validator], (at, at))
    ages = {"age": "30d", "instant": now - timedelta(days=30), "timedelta": timedelta(days=30)}
    bf.client.Store(store.path).prune(older_than=ages[kind])

    assert [0, 1] == list_stored(store)


def test_units_of_a_removed_file_are_removed_from_others(store):
    """A unit has rows in two files if one commit filled both: it is removed as a whole."""
    put(store, 0)
    dataset = Dataset.open(store.path)
    with dataset.writing() as writer:
        rows = make_entry(1)
        writer.add_covered("noise", rows.head(0), GRID, {"1": ((0, ENTRY - 1),)})
        # One file ends within an epoch of which the next one has more rows.
        writer.add_segment("noise", rows[:100])
        writer.add_segment("noise", pl.concat([rows[99:100], rows[100:]]))
    files = [store.path / segment.path for segment in dataset.segments("noise")]
    os.utime(files[2], (1, 1))
    bf.client.Store(store.path).prune(older_than="1d")

    assert {"0": ((0, ENTRY - 1),), "1": ((0, 98),)} == dataset.coverage("noise")
    assert 99 == dataset.scan("noise").filter(pl.col("validator") == 1).collect().height


def test_damaged_file_is_removed(store):
    """C11, F12: a damaged file that was written first is removed like another."""
    for validator in range(3):
        put(store, validator)
    (path, *_) = (store.path / one.path for one in Dataset.open(store.path).segments("noise"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    bf.client.Store(store.path).prune(to=count_bytes(store) - 1)

    assert [1, 2] == list_stored(store)


def test_other_arguments_are_refused(store):
    """A size or an age is for the whole store."""
    for wrong in ({"table": "noise", "to": 5}, {"first": 3, "older_than": "1d"}, {"to": "5 miles"}):
        with pytest.raises(errors.UsageError, match=r"older_than= and to= exclude|is not a size"):
            bf.client.Store(store.path).prune(**wrong)


BALANCES = [{"validators": range(n, n + 40), "since": 0, "until": 150} for n in range(0, 200, 20)]


@pytest.mark.more
def test_loads_have_all_rows(server, tmp_path):
    """F16, C11: threads that remove each other's rows return the right rows."""
    known = {"chain": server.service.chain, "rate": 10_000}
    with bf.Explorer(server.url, **known, store=False) as plain:
        expected = [bf.load_balance_history(**wanted, explorer=plain) for wanted in BALANCES[:4]]
    failures = []

    def load(number):
        try:
            with bf.Explorer(server.url, **known, store=tmp_path / "store") as explorer:
                for n in (number, (number + 1) % 4, number):
                    found = bf.load_balance_history(**BALANCES[n], explorer=explorer)
                    assert_frame_equal(expected[n], found)
                    bf.store(explorer).prune(to=20_000)
        except BaseException as error:  # noqa: BLE001 - reported by the test
            failures.append(error)

    threads = [threading.Thread(target=load, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == failures


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


@pytest.mark.more
@pytest.mark.parametrize("loader", ["balance_history", "proposals"])
@pytest.mark.parametrize("moment", ["missing_arguments", "put"])
def test_rows_pruned_during_a_load_are_requested_again(
    server, tmp_path, monkeypatch, moment, loader
):
    """F16: another process prunes rows that were stored before, or by this load: none is lost."""
    known = {"chain": server.service.chain, "rate": 10_000}
    load, method, pruned = getattr(bf, f"load_{loader}"), getattr(ReadThrough, moment), []

    def prune_after(rows, *arguments):
        result = method(rows, *arguments)
        if rows.table == loader and not pruned:
            pruned.append(rows.store.dataset)
            pruned[0].prune(loader, first=20)
        return result

    with bf.Explorer(server.url, **known, store=False) as plain:
        expected = load(**BALANCES[0], explorer=plain)
    with bf.Explorer(server.url, **known, store=tmp_path) as explorer:
        if moment == "missing_arguments":
            load(**BALANCES[0], explorer=explorer)
        monkeypatch.setattr(ReadThrough, moment, prune_after)
        found = load(**BALANCES[0], explorer=explorer)
    assert_frame_equal(expected, found)
    assert 1 == len(pruned)
    assert expected.height > 20


def test_lazy_frame_keeps_its_rows(server, tmp_path):
    """F16, C11: the files under a LazyFrame stay readable after they are pruned."""
    known = {"chain": server.service.chain, "rate": 10_000}
    with bf.Explorer(server.url, **known, store=tmp_path) as explorer:
        lazy = bf.load_balance_history(**BALANCES[0], lazy=True, explorer=explorer)
        bf.store(explorer).prune(to=1)
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
