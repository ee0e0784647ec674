"""The public functions of a store: tables, coverage and maintenance."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import beaconframes as bf
from beaconframes import errors
from beaconframes.dataset import Dataset

from ..support.store_loads import CALLS, CountedLoad, connect


def test_tables_are_listed_with_rows_and_range(server, store):
    """bf.store() lists tables: rows, bytes, subjects, and the stored range."""
    with connect(server, store) as explorer:
        CALLS["balances"](explorer)
        CALLS["epochs"](explorer)
        bf.load_epochs(since=200, until=201, explorer=explorer)
        stored = bf.store(explorer)
    tables = {row["table"]: row for row in stored.tables().iter_rows(named=True)}

    assert {"balance_history", "epochs"} == set(tables)
    assert (120 * 121, 120, "epoch", 0, 120) == tuple(
        tables["balance_history"][n] for n in ("rows", "subjects", "unit", "first", "last")
    )
    assert (13, 1, 100, 201) == tuple(
        tables["epochs"][n] for n in ("rows", "subjects", "first", "last")
    )
    assert [("7", 0, 120)] == stored.coverage("balance_history", [7]).rows()
    assert stored.size >= sum(row["bytes"] for row in tables.values())
    assert "balance_history" in repr(stored)
    assert str(stored.path) in repr(stored)
    assert "<table" in stored._repr_html_()


def test_the_store_can_be_verified_mended_compacted_and_pruned(server, store):
    """It can be verified, mended, compacted and pruned; pruned rows are requested again."""
    with connect(server, store) as explorer:
        CALLS["balances"](explorer)
        stored = bf.store(explorer)
        stored.compact()
        assert [] == stored.verify() == stored.mend()
        stored.prune("balance_history", range(50), last=99)
        assert 1 == CountedLoad(server, CALLS["balances"], explorer).requests
        stored.prune()
        assert stored.tables().is_empty()
        assert 4 == CountedLoad(server, CALLS["balances"], explorer).requests


def test_public_keys_are_compacted(server, store, chain):
    """Their key is text, and not the name of a column."""
    keys = chain.scan("validators").sort("validator_index").head(4).collect()["pubkey"].to_list()
    with connect(server, store) as explorer:
        for some in (keys[:2], keys[2:]):
            bf.load_balance_history(some, since=0, until=0, explorer=explorer)
        stored = bf.store(explorer)
        stored.compact()

        assert 1 == len(stored.dataset.segments("validator_keys"))
        again = CountedLoad(
            server, lambda e: bf.load_balance_history(keys, since=0, until=0, explorer=e), explorer
        )
        assert (0, 4) == (again.requests, again.rows.height)


def test_pruned_validators_are_named_as_loaders_name_them(server, store, chain):
    """Tables of the whole chain have no rows of a validator, so they stay complete."""
    key = chain.scan("validators").filter(validator_index=7).collect()["pubkey"][0]
    with connect(server, store) as explorer:
        epochs = CALLS["epochs"](explorer)
        CALLS["balances"](explorer)
        bf.load_balance_history([key], since=0, until=0, explorer=explorer)
        stored = bf.store(explorer)
        stored.prune("balance_history", "65")
        stored.prune("balance_history", key.upper().replace("0X", "0x"), last=9)
        stored.prune(subjects=5)

        subjects = set(stored.coverage("balance_history")["subject"].to_list())
        assert {str(n) for n in range(120)} - {"5", "65"} == subjects
        assert [("7", 10, 120)] == stored.coverage("balance_history", 7).rows()
        again = CountedLoad(server, CALLS["epochs"], explorer)
        assert (0, True) == (again.requests, again.rows.equals(epochs))
        with pytest.raises(errors.UsageError, match="is not a validator"):
            stored.prune("balance_history", "five")


def test_a_file_that_another_process_removes_has_no_size(server, store):
    with connect(server, store) as explorer:
        CALLS["epochs"](explorer)
        stored = bf.store(explorer)
    size = stored.size
    (stored.path / "ledger.sqlite-wal").unlink(missing_ok=True)
    (stored.path / "ledger.sqlite-wal").symlink_to("removed")

    assert 0 < size == stored.size


def test_a_store_that_cannot_be_read_stops_no_load(server, tmp_path, monkeypatch):
    """A folder of another user: its rows are requested, with one warning."""
    stat, folder = os.stat, str(tmp_path / "store")

    def refuse(path, **options):
        if str(path).startswith(folder):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(os, "stat", refuse)
    monkeypatch.setattr(Path, "rename", lambda *_: Path(folder).stat())
    with (
        connect(server, tmp_path / "store") as explorer,
        pytest.warns(errors.StoreUnavailable, match="Permission denied"),
    ):
        assert 11 == CALLS["epochs"](explorer).height
    assert "Store(" in repr(bf.client.Store(folder))
    for path in (folder, f"{folder}/x"):
        with pytest.raises(errors.DatasetError, match="cannot be read: Permission denied"):
            bf.open(path)


def test_a_table_without_complete_units_has_no_range(server, store):
    """The printed store leaves out the range of a table that has none."""
    with connect(server, store) as explorer:
        CALLS["balances"](explorer)
        CALLS["epochs"](explorer)
        stored = bf.store(explorer)
        stored.prune("epochs", first=0, last=200)

    assert "epoch 0 to 120" in repr(stored)
    assert "None" not in repr(stored)


def test_an_empty_store_has_no_tables(server, store):
    """An empty store has no tables; an explorer without a store raises."""
    stored = bf.store(connect(server, store))

    assert (0, 0, []) == (
        stored.size,
        stored.tables().height,
        stored.verify(),
    )
    with pytest.raises(errors.ConfigError, match="has no store"):
        bf.store(connect(server, False))


@pytest.mark.more
def test_many_loads_make_few_files(server, store):
    """Small files are merged when there are many."""
    with connect(server, store) as explorer:
        for first in range(0, 50, 2):
            bf.load_balance_history([1], since=first, until=first + 1, explorer=explorer)

    (folder,) = store.iterdir()
    assert len(Dataset.open(folder).segments("balance_history")) <= 17


def test_a_plan_tolerates_damaged_rows_of_validators(server, store):
    """The store removes them, with a warning; a load requests them again."""
    call = {"since": 100, "until": 101}
    with connect(server, store) as explorer:
        with pytest.warns(errors.MissingRows):
            bf.load_income_history([1, 999_999], explorer=explorer, **call)
        path = bf.store(explorer).path
    (segment,) = (path / "validator_epochs").glob("*.parquet")
    data = bytearray(segment.read_bytes())
    data[40] ^= 1
    segment.write_bytes(data)
    with (
        connect(server, store) as explorer,
        pytest.warns(errors.StoreUnavailable, match="requested again"),
    ):
        assert (
            1
            <= bf.plan(bf.load_income_history, [1, 2, 999_999], explorer=explorer, **call).requests
        )
