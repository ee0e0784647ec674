"""Processes that fill a store, and a check of its contents."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys

import polars as pl
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes.dataset import Dataset

VALIDATORS, LAST = range(40), 199
"""The validators that are loaded, and the last epoch."""

PRELUDE = f"""
import json, random, sys, warnings
import polars as pl
import beaconframes as bf
from beaconframes.dataset import Dataset
from beaconframes.endpoint.chain_metadata import ChainMetadata
url, data, store, truth, seed, count = sys.argv[1:7]
dice = random.Random(int(seed))
explorer = bf.Explorer(url, chain=ChainMetadata.parse(Dataset.open(data).meta).chain, store=store)
def load(validators=range({VALIDATORS.stop}), since=0, until={LAST}):
    return bf.load_balance_history(validators, since=since, until=until, explorer=explorer)
"""


def connect(server, store, **more):
    """Return an explorer without any state but the store."""
    return bf.Explorer(server.url, chain=server.service.chain, store=store, **more)


def load(explorer, validators=VALIDATORS, since=0, until=LAST):
    return bf.load_balance_history(validators, since=since, until=until, explorer=explorer)


def start_worker(code, server, store, truth, *, seed=0, count=1, within=()):
    """Start a process that runs *code* on the store, with *within* as command prefix."""
    command = [
        *within, sys.executable, "-c", PRELUDE + code, server.url,
        str(server.service.dataset.path), str(store), str(truth[1]), str(seed), str(count),
    ]  # fmt: skip
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def read_result(process):
    """Return the JSON that a worker printed, after it has ended without an error."""
    with process:
        out, err = process.communicate(timeout=900)
    assert 0 == process.returncode, err
    return json.loads(out)


def list_datasets(store):
    """Return the datasets of a store, without temporary and renamed ones."""
    names = list(store.iterdir()) if store.exists() else []
    return [path for path in names if path.name[0] != "." and "unreadable" not in path.name]


def open_dataset(store):
    (folder,) = list_datasets(store)
    return Dataset.open(folder)


def check_store(store, truth):
    """Check that the store is intact: rows that it states as complete are there, and right."""
    dataset = open_dataset(store)
    assert [] == dataset.verify()
    ledger = sqlite3.connect(dataset.path / "ledger.sqlite")
    assert ("ok",) == ledger.execute("PRAGMA integrity_check").fetchone()
    ledger.close()
    covered = dataset.coverage("balance_history")
    cells = [(int(v), e) for v, runs in covered.items() for a, b in runs for e in range(a, b + 1)]
    key = ["validator_index", "epoch"]
    stated = pl.DataFrame(cells, schema=dict.fromkeys(key, pl.Int64), orient="row")
    rows = dataset.scan("balance_history", schema=truth[0].schema).collect()
    assert_frame_equal(truth[0].join(stated, on=key, how="semi").sort(key), rows.sort(key))
