"""Two parts of a chain, indexed into two folders, become the index of the whole."""

from __future__ import annotations

import logging

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


# Dask sends a function of `__main__` itself; workers cannot import this file.
INDEX_PART = """
def index_part(folder, part, last, fails):
    import os
    import beaconframes as bf

    def end_worker(progress):
        if fails and progress.done == 3 and not os.path.exists(f"{folder}-ended"):
            open(f"{folder}-ended", "x").close()
            os._exit(1)

    node = os.environ["BEACONFRAMES_NODE"]
    bf.index(node, folder, since=0, until=last, part=part, on_epoch=end_worker)
    return folder
"""


@pytest.mark.long
def test_dask_workers_index_parts(electra_folder, tmp_path, monkeypatch):
    """Each worker writes its part; the part of a worker that ends is continued by another one.

    The credentials of the node are in the environment of the workers only.
    """
    distributed = pytest.importorskip("distributed")
    defined = {"__name__": "__main__"}
    exec(INDEX_PART, defined)
    whole = Dataset.open(electra_folder)
    last = whole.meta["finalized_epoch"]
    with BeaconNodeStub("electra") as node:
        monkeypatch.setenv("BEACONFRAMES_NODE", node.url.replace("//", "//user:t0psecret@"))
        with distributed.Client(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
            local_directory=str(tmp_path / "dask"),
            silence_logs=logging.CRITICAL,
        ) as cluster:
            runs = [
                cluster.submit(
                    defined["index_part"], str(tmp_path / str(n)), f"{n}/3", last, n == 2
                )
                for n in (1, 2, 3)
            ]
            parts = cluster.gather(runs)
    merged = Dataset.merge(parts, tmp_path / "merged")

    assert (tmp_path / "2-ended").exists()
    assert_equal(whole, merged, whole.grids())
    stored = [path for path in tmp_path.rglob("*") if path.is_file() and "dask" not in path.parts]
    assert [] == [path for path in stored if b"t0psecret" in path.read_bytes()]
