"""Two parts of a chain, indexed into two folders, become the index of the whole."""

from __future__ import annotations

import pytest

from beaconframes.beacon_node.index.indexing import index
from beaconframes.dataset import Dataset

from ..support.beacon_node_stub import BeaconNodeStub
from ..support.node_index import index_chain


def read(dataset, table):
    """Return the coverage and the rows of a table, sorted by key if it has one."""
    grid = dataset.grids().get(table)
    rows = dataset.scan(table).collect()
    return (dataset.coverage(table), rows.sort(grid.key)) if grid else (None, rows)


def assert_equal(expected, found, tables):
    for table in tables:
        (covered, rows), (found_coverage, found_rows) = read(expected, table), read(found, table)
        assert covered == found_coverage, table
        assert rows.equals(found_rows), table


@pytest.mark.more
def test_merged_halves_equal_the_index_of_the_whole(electra_folder, tmp_path):
    """All indexed rows are there after the merge; the next run only derives, and reads the head."""
    whole = Dataset.open(electra_folder)
    last = whole.meta["finalized_epoch"]
    index_chain("electra", tmp_path / "one", since=0, until=last, part="1/2")
    index_chain("electra", tmp_path / "two", since=0, until=last, part="2/2")
    merged = Dataset.merge([tmp_path / "two", tmp_path / "one"], tmp_path / "merged")

    assert whole.grids() == merged.grids()
    assert_equal(whole, merged, whole.grids())
    assert {"chain", "finalized_epoch", "latest_slot"} <= {
        name for name, value in whole.meta.items() if merged.meta[name] == value
    }
    counts = []
    for _ in range(2):
        with BeaconNodeStub("electra") as node:
            index(node.url, merged.path, until=last)
            counts.append(len(node.requests))
    # The first run requests no more than one of a complete index.
    assert counts[0] == counts[1]
    assert_equal(whole, merged, whole.tables())
