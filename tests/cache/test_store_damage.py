"""Damage in the ledger of a store: it is noticed, and the store is set aside and rebuilt."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import warnings
from contextlib import closing

import polars as pl
import pytest

from beaconframes.cache.local_store import LocalStore
from beaconframes.calendar import MAINNET
from beaconframes.dataset import Grid
from beaconframes.errors import DatasetError, StoreUnavailable

GRID = Grid("validator_index", "epoch", ("validator_index", "epoch"))
SCHEMA = pl.Schema({"validator_index": pl.Int64, "epoch": pl.Int64, "reward": pl.Int64})
VALIDATORS = [str(validator) for validator in range(12)]
FINAL = 400


def make_rows(validators):
    """Return rows of the first epochs of some validators."""
    cells = [(v, e, v * 1_000 + e) for v in validators for e in range(20)]
    return pl.DataFrame(cells, schema=SCHEMA, orient="row")


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """A store with three segments. Of the first epochs all have rows, others have none."""
    folder = tmp_path_factory.mktemp("stores") / "example"
    store = LocalStore(folder, url="http://x", chain=MAINNET)
    for first in (0, 4, 8):
        some = range(first, first + 4)
        covered = {str(validator): ((0, 19 + first),) for validator in some}
        assert store.put("income", make_rows(some), GRID, covered, FINAL)
    return folder


@pytest.fixture
def full(example, tmp_path):
    """A copy of the store."""
    return shutil.copytree(example, tmp_path / "full")


def read(path):
    """Return the coverage and the rows of a store as a load reads them: at most twice."""
    store = LocalStore(path, url="http://x", chain=MAINNET)
    for _ in range(2):
        covered = store.coverage("income", VALIDATORS, ((0, 99),))
        try:
            rows = store.select("income", VALIDATORS, ((0, 99),), SCHEMA).rows.collect()
        except DatasetError:
            continue  # The damaged rows were removed.
        return store, covered, rows
    raise AssertionError("the store was not repaired")


def check(store, covered, rows):
    """Check that a store states nothing that is not so."""
    expected = make_rows(range(12))
    assert expected.join(rows, on=list(SCHEMA), how="semi").height == rows.height
    assert store.finalized <= FINAL
    present = set(rows.select("validator_index", "epoch").iter_rows())
    for subject, intervals in covered.items():
        for first, last in intervals:
            assert last <= 19 + int(subject) // 4 * 4
            stated = {(int(subject), epoch) for epoch in range(first, min(last, 19) + 1)}
            assert stated <= present


@pytest.mark.parametrize("flips", [15, pytest.param(400, marks=pytest.mark.more)])
def test_flipped_bits_of_the_ledger(full, tmp_path, flips):
    """F12: after any flipped bit no row is wrong, none is lost, and nothing else is raised."""
    dice, content = random.Random(12), (full / "ledger.sqlite").read_bytes()
    used = [offset for offset, byte in enumerate(content) if byte]
    for number in range(flips):
        damaged = tmp_path / str(number)
        shutil.copytree(full, damaged, copy_function=os.link)
        changed = bytearray(content)
        changed[dice.choice(used)] ^= 1 << dice.randrange(8)
        (damaged / "ledger.sqlite").unlink()
        (damaged / "ledger.sqlite").write_bytes(changed)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StoreUnavailable)
            check(*read(damaged))


CHANGES = (
    "UPDATE coverage SET last = last + 1 WHERE subject = '3'",
    "UPDATE coverage SET subject = '77' WHERE subject = '3'",
    "UPDATE coverage SET last = 'x' WHERE subject = '3'",
    "UPDATE segments SET table_name = 'proposals' WHERE number = 2",
    "UPDATE segments SET ranges = '{\"epoch\": [50, 60]}' WHERE number = 2",
    "UPDATE segments SET rows = rows + 1 WHERE number = 2",
    "DELETE FROM segments WHERE number = 2",
    "UPDATE meta SET value = '967' WHERE key = 'finalized_epoch'",
)
"""Changes of a table alone, as a failing disk makes them: its index is the one before."""

INVALID = (
    "UPDATE meta SET value = '{\"income\": {}}' WHERE key = '_grids'",
    "UPDATE meta SET value = '{\"income\": [1]}' WHERE key = '_grids'",
    "UPDATE meta SET value = '[]' WHERE key = '_grids'",
    "UPDATE meta SET value = 'null' WHERE key = '_grids'",
    "UPDATE meta SET value = '{' WHERE key = 'chain'",
    "UPDATE segments SET ranges = '[]'",
    "DELETE FROM meta",
)
"""Values that no version of this library writes."""


def change_table(ledger, statement, *, alone):
    """Execute a statement; with *alone*, leave the indexes of the table as they are."""
    hidden = "type = 'index' AND sql IS NOT NULL"
    with closing(sqlite3.connect(ledger, isolation_level=None)) as connection:
        indexes = connection.execute(f"SELECT * FROM sqlite_schema WHERE {hidden}").fetchall()
        if alone:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute(f"DELETE FROM sqlite_schema WHERE {hidden}")
    # Another connection does not know the indexes.
    with closing(sqlite3.connect(ledger, isolation_level=None)) as connection:
        connection.execute(statement)
        if alone:
            connection.execute("PRAGMA writable_schema = ON")
            connection.executemany("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", indexes)


@pytest.mark.parametrize("statement", [*CHANGES, *INVALID])
def test_changed_ledger_is_set_aside(full, statement):
    """F12, G12: a changed ledger is one warning; the store is renamed, and a new one works."""
    change_table(full / "ledger.sqlite", statement, alone=statement in CHANGES)

    with pytest.warns(StoreUnavailable, match="damaged; it was renamed to") as caught:
        store, covered, rows = read(full)
    assert (1, {}, 0) == (len(caught), covered, rows.height)

    assert store.put("income", make_rows([3]), GRID, {"3": ((0, 19),)}, FINAL)
    store, covered, rows = read(full)
    assert ({"3": ((0, 19),)}, 20) == (covered, rows.height)


@pytest.mark.parametrize("use", ["coverage", "put", "drop_outdated", "newest", "compact_small"])
def test_metadata_damaged_while_the_store_is_open(full, use):
    """G12: whatever meets the damage first, it is one warning, and the store is rebuilt."""
    store, _, rows = read(full)
    with sqlite3.connect(full / "ledger.sqlite") as connection:
        connection.execute("UPDATE meta SET value = '{\"income\": {}}' WHERE key = '_grids'")
        connection.execute("UPDATE segments SET ranges = '[]'")
    connection.close()
    arguments = {
        "coverage": ("income", VALIDATORS, ((0, 9),)),
        "put": ("income", rows, GRID, {"3": ((0, 30),)}, FINAL),
        "drop_outdated": ("income", SCHEMA),
        "newest": ("income", "epoch"),
        "compact_small": ("income",),
    }

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(store, use)(*arguments[use])
        with pytest.raises(DatasetError) if use == "coverage" else warnings.catch_warnings():
            store.select("income", VALIDATORS, ((0, 99),), SCHEMA)
    assert [StoreUnavailable] == [warning.category for warning in caught]

    assert store.put("income", make_rows([3]), GRID, {"3": ((0, 19),)}, FINAL)
    assert ({"3": ((0, 19),)}, 20) == (read(full)[1], read(full)[2].height)


def test_table_without_a_readable_file(tmp_path):
    """F12: if the only file of a table is damaged, a load of other rows can still be stored."""
    store = LocalStore(tmp_path / "store", url="http://x", chain=MAINNET)
    covered = {"1": ((0, 19),)}
    assert store.put("income", make_rows([1]), GRID, covered, FINAL)
    (path,) = store.path.glob("income/*.parquet")
    path.write_bytes(path.read_bytes()[:-5] + b"12345")

    with pytest.warns(StoreUnavailable, match="rows of income are requested again"):
        store.drop_outdated("income", SCHEMA)
    assert store.put("income", make_rows([2]), GRID, {"2": ((0, 19),)}, FINAL)
    assert {"2": ((0, 19),)} == store.coverage("income", ["1", "2"], ((0, 99),))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_pipe_in_place_of_a_file(tmp_path):
    """F12: opening a pipe waits until another process writes into it."""
    store = LocalStore(tmp_path / "store", url="http://x", chain=MAINNET)
    assert store.put("income", make_rows([1]), GRID, {"1": ((0, 19),)}, FINAL)
    (path,) = store.path.glob("income/*.parquet")
    path.unlink()
    os.mkfifo(path)

    with pytest.warns(StoreUnavailable, match="rows of income are requested again"):
        store.drop_outdated("income", SCHEMA)


def test_the_stored_finality_does_not_go_back(tmp_path):
    """Two processes store rows; the first one knows an older final epoch."""
    first, second = (LocalStore(tmp_path / "store", url="http://x", chain=MAINNET) for _ in "12")
    for store, finalized in ((first, 50), (second, 100), (first, 60)):
        assert store.put("income", make_rows([1]), GRID, {"1": ((0, 19),)}, finalized)

    assert 100 == LocalStore(tmp_path / "store", url="http://x", chain=MAINNET).finalized


def test_a_removed_folder_gets_its_finality_again(tmp_path):
    """The user may delete the folder of a store while a process uses it."""
    store = LocalStore(tmp_path / "store", url="http://x", chain=MAINNET)
    assert store.put("income", make_rows([1]), GRID, {"1": ((0, 19),)}, FINAL)
    shutil.rmtree(store.path)

    assert {} == store.coverage("income", ["2"], ((0, 99),))
    assert store.put("income", make_rows([2]), GRID, {"2": ((0, 19),)}, FINAL)

    assert FINAL == LocalStore(tmp_path / "store", url="http://x", chain=MAINNET).finalized
