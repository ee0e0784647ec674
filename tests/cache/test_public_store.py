"""The public functions of a store: tables, coverage and maintenance."""

from __future__ import annotations

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
