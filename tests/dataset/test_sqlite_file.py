"""SQLite files: whatever fails, and at which statement, is an error of this project."""

from __future__ import annotations

import itertools
import logging
import shutil
import sqlite3
import warnings
from contextlib import suppress

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.cache.local_store import LocalStore
from beaconframes.calendar import MAINNET
from beaconframes.dataset import Dataset, Grid
from beaconframes.errors import DatasetBusy, DatasetError, StoreUnavailable
from beaconframes.http.shared_rate_limit import ReportedLimits, SharedRateLimit
from beaconframes.secret import Secret

from ..support.sqlite_faults import FAULTS, plant

MESSAGES = [
    message if number == 0 else pytest.param(message, marks=pytest.mark.more)
    for number, message in enumerate(FAULTS)
]

GRID = Grid("validator", "epoch", ("validator", "epoch"))
COVERED = {"1": ((0, 9),), "2": ((0, 9),)}


def make_rows(first=0):
    """Return the rows of ten epochs of two validators."""
    cells = [(validator, epoch) for validator in (1, 2) for epoch in range(first, first + 10)]
    return pl.DataFrame(cells, schema={"validator": pl.Int64, "epoch": pl.Int64}, orient="row")


def write(dataset):
    with dataset.writing() as writer:
        writer.add_covered("income", make_rows(), GRID, COVERED)
        writer.set_meta({"finalized_epoch": 9})


def add(dataset):
    """Add rows beside others, which it merges with them."""
    with dataset.writing() as writer:
        writer.add_covered("income", make_rows(10), GRID, {"1": ((10, 19),), "2": ((10, 19),)})


OPERATIONS = {
    "write": write,
    "add": add,
    "read": lambda dataset: dataset.select("income", ["1"], [(0, 9)], schema={}).collect(),
    "prune": lambda dataset: dataset.prune("income", ["1"], first=3),
    "prune_units": lambda dataset: dataset.prune_units("income", {"2": ((0, 4),)}),
    "compact": lambda dataset: dataset.compact(),
    "replace_tables": lambda dataset: dataset.replace_tables({"income": make_rows()}),
    "mend": lambda dataset: dataset.mend(),
}


def find_error(function, *arguments):
    """Return the exception that *function* raises; None if it raises none."""
    try:
        function(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is
        return error
    return None


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_disk_that_fails_at_any_statement_is_an_error_of_this_project(
    tmp_path, monkeypatch, operation, message
):
    """The error names the folder and can be retried; afterwards the dataset is as it was."""
    dataset = Dataset.create(tmp_path / "some", meta={"finalized_epoch": -1})
    if operation != "write":
        write(dataset)
    if operation == "compact":
        add(dataset)
    before = dataset.meta, dataset.coverage("income"), dataset.scan("income", schema={}).collect()
    statements = plant(monkeypatch, tmp_path)
    for number in itertools.count(1):
        with statements.failing(number, message):
            raised = find_error(OPERATIONS[operation], Dataset(dataset.path))
        if not statements.failed:
            assert raised is None
            break
        assert isinstance(raised, DatasetBusy), statements.failed
        assert str(dataset.path) in str(raised)
        found = dataset.meta, dataset.coverage("income")
        assert before[:2] == found
        assert before[2].equals(dataset.scan("income", schema={}).collect())
    assert number > 4
    assert [] == dataset.verify()


@pytest.mark.parametrize("message", MESSAGES)
def test_a_disk_that_fails_at_any_statement_stops_no_load(tmp_path, monkeypatch, message):
    """The store warns, or all rows are stored."""
    statements, silent = plant(monkeypatch, tmp_path), []
    for number in itertools.count(1):
        shutil.rmtree(tmp_path / "store", ignore_errors=True)
        store = LocalStore(tmp_path / "store", url="http://x", chain=MAINNET)
        with statements.failing(number, message), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            store.put("income", make_rows(), GRID, COVERED, 9, empty={"3": ((0, 9),)})
            store.coverage("income", ["1", "2"], ((0, 9),))
            store.unconfirmed("income", ["3"], ((0, 9),))
        if not statements.failed:
            break
        kinds = {warning.category for warning in caught}
        if kinds != {StoreUnavailable}:
            # A check of the new ledger that fails is not repeated.
            assert (set(), COVERED) == (kinds, store.coverage("income", ["1", "2"], ((0, 9),)))
            silent.append(number)
    assert number > 15
    assert len(silent) < number / 2
    assert COVERED == store.coverage("income", ["1", "2"], ((0, 9),))


@pytest.mark.parametrize("message", MESSAGES)
def test_a_disk_that_fails_at_any_statement_ends_only_the_sharing(
    tmp_path, monkeypatch, caplog, message
):
    """The rate limit then holds for this process alone, with one line in the log."""
    statements = plant(monkeypatch, tmp_path)
    for number in itertools.count(1):
        caplog.clear()
        shared = SharedRateLimit(tmp_path / str(number), "one.example", Secret("a-key"))
        with statements.failing(number, message), caplog.at_level(logging.WARNING):
            _, permit = shared.acquire(10, lambda: 1000.0)
            shared.start_window(permit, 1000.0)
            shared.update(ReportedLimits(per_second=5, month="2026-11"))
            limit = shared.reported_limits().per_second
        shared.close()
        if not statements.failed:
            assert 5 == limit
            break
        # A file that cannot be opened is opened once more.
        assert len(caplog.records) == (statements.failed != "connect")
    assert number > 10


@pytest.mark.parametrize("message", MESSAGES)
def test_a_disk_that_fails_at_any_statement_does_not_hang_an_export(tmp_path, monkeypatch, message):
    """The lock of the export is an SQLite file, too."""
    statements = plant(monkeypatch, tmp_path)
    for number in itertools.count(1):
        with statements.failing(number, message), suppress(DatasetError):
            bf.export(pl.DataFrame({"n": [1]}), tmp_path / "out")
        if not statements.failed:
            break
    assert number > 2
    assert [1] == Dataset.open(tmp_path / "out").scan("rows").collect()["n"].to_list()


def test_a_lock_that_cannot_be_created_is_an_error(tmp_path, monkeypatch):
    """An export does not wait for ever for a file that its disk refuses."""

    def refuse(*args, **more):
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        raise error

    monkeypatch.setattr(sqlite3, "connect", refuse)
    with pytest.raises(DatasetError, match="lock"):
        bf.export(pl.DataFrame({"n": [1]}), tmp_path / "out")
