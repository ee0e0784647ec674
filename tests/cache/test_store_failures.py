"""Failures of the store stop no load."""

from __future__ import annotations

import inspect
import sqlite3
import sys
import threading

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import errors
from beaconframes.dataset import Dataset, ledger

from ..support.store_loads import CALLS, connect, load_counted


def test_an_unwritable_folder_is_one_warning(server, tmp_path):
    """F13: if the store cannot be written, one warning is raised, and loads continue."""
    (tmp_path / "file").write_text("in the way")
    with connect(server, tmp_path / "file" / "store") as explorer:
        with pytest.warns(errors.StoreUnavailable, match=r"not used.*Choose another") as caught:
            first = CALLS["balances"](explorer)
        second = CALLS["balances"](explorer)

    assert [inspect.getfile(CALLS["balances"])] == [warning.filename for warning in caught]
    assert_frame_equal(first, second)
    assert_frame_equal(load_counted(server, False, CALLS["balances"]).rows, first)


@pytest.mark.more
def test_rows_that_do_not_fit_are_not_stored(server, store, monkeypatch):
    """F13: rows that do not fit are not stored; rows stored before are still used."""
    part = lambda e: bf.load_balance_history(range(120), since=0, until=50, explorer=e)  # noqa: E731
    load_counted(server, store, part)

    def raise_disk_full(self, *_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(pl.DataFrame, "write_parquet", raise_disk_full)
        found = load_counted(server, store, CALLS["balances"])
    assert_frame_equal(load_counted(server, False, CALLS["balances"]).rows, found.rows)
    (warning,) = found.warnings
    assert "No space left on device" in str(warning)

    load_counted(server, store, CALLS["balances"])
    assert 0 == load_counted(server, store, CALLS["balances"]).requests


@pytest.mark.more
@pytest.mark.parametrize("how", ["flip", "cut", "gone", "folder", "link"])
def test_only_the_rows_of_a_damaged_file_are_requested_again(server, store, how):
    """The rows of a damaged file are requested again, and no others."""
    other = lambda e: bf.load_balance_history([900], since=0, until=9, explorer=e)  # noqa: E731
    expected = load_counted(server, store, CALLS["balances"]).rows
    load_counted(server, store, other)
    (folder,) = store.iterdir()
    path = folder / Dataset.open(folder).segments("balance_history")[0].path
    content = bytearray(path.read_bytes())
    path.unlink()
    content[len(content) // 2] ^= 1
    if how == "folder":
        path.mkdir()
    elif how == "link":
        path.symlink_to("/etc/passwd")
    elif how != "gone":
        path.write_bytes(content[: -3 if how == "cut" else None])

    found = load_counted(server, store, CALLS["balances"])
    assert_frame_equal(expected, found.rows)
    assert found.requests > 0
    (warning,) = found.warnings
    assert isinstance(warning, errors.StoreUnavailable)
    assert "rows of balance_history are requested again (validator_index 0 to " in str(warning)
    assert 0 == load_counted(server, store, CALLS["balances"]).requests
    assert 0 == load_counted(server, store, other).requests


@pytest.mark.more
@pytest.mark.parametrize("how", ["rubbish", "empty", "newer", "foreign"])
def test_an_unreadable_store_is_renamed(server, store, how):
    """An unreadable store is renamed, and a new one is created."""
    expected = load_counted(server, store, CALLS["balances"]).rows
    (folder,) = store.iterdir()
    ledger = folder / "ledger.sqlite"
    if how in {"rubbish", "empty"}:
        ledger.write_bytes(b"" if how == "empty" else b"no database, but long enough" * 99)
    else:
        connection = sqlite3.connect(ledger)
        connection.execute(
            "PRAGMA user_version = 99" if how == "newer" else "PRAGMA application_id = 1"
        )
        connection.close()

    found = load_counted(server, store, CALLS["balances"])
    (warning,) = found.warnings
    assert ("was renamed to" in str(warning), type(warning)) == (True, errors.StoreUnavailable)
    assert_frame_equal(expected, found.rows)
    assert 2 == len(list(store.iterdir()))
    assert 0 == load_counted(server, store, CALLS["balances"]).requests


def test_rows_with_other_columns_are_requested_again(server, store):
    """F14: a table that another version stored with other columns is requested again."""
    load_counted(server, store, CALLS["balances"])
    (folder,) = store.iterdir()
    dataset = Dataset.open(folder)
    old = dataset.scan("balance_history").drop("time").collect()
    grid, covered = dataset.grids()["balance_history"], dataset.coverage("balance_history")
    dataset.prune("balance_history")
    with dataset.writing() as writer:
        writer.add_covered("balance_history", old, grid, covered)

    found = load_counted(server, store, CALLS["balances"])
    assert_frame_equal(load_counted(server, False, CALLS["balances"]).rows, found.rows)
    assert 0 == load_counted(server, store, CALLS["balances"]).requests


def test_a_store_that_is_deleted_while_in_use_is_created_again(server, store):
    """A store may be deleted at any time."""
    import shutil

    with connect(server, store) as explorer:
        first = CALLS["balances"](explorer)
        shutil.rmtree(store)
        assert_frame_equal(first, CALLS["balances"](explorer))
        before = server.requests
        assert_frame_equal(first, CALLS["balances"](explorer))

    assert before == server.requests


def test_a_store_that_another_process_creates_meanwhile_is_used(server, store, monkeypatch):
    """A store that another process creates between two checks is used."""
    created, first = [], connect(server, store)
    real = ledger.exists

    def exists_then_create(path):
        there = real(path)
        if sys._getframe(1).f_code.co_name == "_create" and not created:
            created.append(path)
            with connect(server, store) as other:
                bf.load_balance_history(1, since=0, until=9, explorer=other)
        return there

    monkeypatch.setattr(ledger, "exists", exists_then_create)
    with first:
        bf.load_balance_history(2, since=0, until=9, explorer=first)

    (folder,) = store.iterdir()
    assert 20 == Dataset.open(folder).scan("balance_history").collect().height


@pytest.mark.more
def test_concurrent_threads_store_no_duplicate_row(server, store):
    """Threads that load overlapping parts: no error, no duplicate row."""
    frames, failures = {}, []

    def load(n):
        try:
            with connect(server, store) as explorer:
                frames[n] = bf.load_balance_history(
                    range(n * 5, n * 5 + 20), since=n * 10, until=n * 10 + 60, explorer=explorer
                )
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    work = [threading.Thread(target=load, args=(n,)) for n in range(8)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    (folder,) = store.iterdir()
    stored = Dataset.open(folder).scan("balance_history").collect()

    assert [] == failures
    assert {20 * 61} == {frame.height for frame in frames.values()}
    assert stored.height == stored.select("validator_index", "epoch").n_unique()
