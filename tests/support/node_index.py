"""Indexes of recorded chains, made once for all tests and all processes that run tests."""

from __future__ import annotations

import os
import shutil
import sys

from beaconframes.beacon_node.index.indexing import index

from .beacon_node_stub import BeaconNodeStub

if sys.platform != "win32":
    import fcntl


def open_index(tmp_path_factory, name, until):
    """Return the folder of an index of the epochs up to *until* of a recorded chain."""
    base = tmp_path_factory.getbasetemp()
    home = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = home / f"index-{name}-{until}"
    with (home / f"{folder.name}.lock").open("w") as lock:
        if sys.platform != "win32":
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            draft = folder.with_suffix(".draft")
            shutil.rmtree(draft, ignore_errors=True)
            index_chain(name, draft, until=until)
            draft.rename(folder)
    return folder


def index_chain(name, folder, **options):
    """Index a recorded chain in *folder*, and return the epochs with their verdicts."""
    with BeaconNodeStub(name) as node:
        return index(node.url, folder, **options)
