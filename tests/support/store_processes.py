"""What tests of the store share: processes that fill it, and a check that all in it is true."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys

import polars as pl
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes.dataset import Dataset

WHOM, LAST = range(40), 199
"""What of the chain is loaded here: all of these validators, from epoch 0 on."""

PRELUDE = f"""
import json, random, sys, warnings
import polars as pl
import beaconframes as bf
from beaconframes.dataset import Dataset
from beaconframes.endpoint.chain_metadata import ChainMetadata
url, data, store, truth, seed, count = sys.argv[1:7]
dice = random.Random(int(seed))
explorer = bf.Explorer(url, chain=ChainMetadata.parse(Dataset.open(data).meta).chain, store=store)
def load(whom=range({WHOM.stop}), since=0, until={LAST}):
    return bf.load_balance_history(whom, since=since, until=until, explorer=explorer)
"""


def connect(server, store, **more):
    return bf.Explorer(server.url, chain=server.service.chain, store=store, **more)


def load(explorer, whom=WHOM, since=0, until=LAST):
    return bf.load_balance_history(whom, since=since, until=until, explorer=explorer)


def worker(code, server, store, truth, *, seed=0, count=1, within=()):
    """Start a process that does what *code* says to the store, inside the command *within*."""
    command = [
        *within, sys.executable, "-c", PRELUDE + code, server.url,
        str(server.service.dataset.path), str(store), str(truth[1]), str(seed), str(count),
    ]  # fmt: skip
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def told(process):
    """Return what a worker printed as JSON, when it has ended well."""
    with process:
        out, err = process.communicate(timeout=900)
    assert 0 == process.returncode, err
    return json.loads(out)


def folders(store):
    """Return the datasets of a store: neither drafts nor what was put aside."""
    names = list(store.iterdir()) if store.exists() else []
    return [path for path in names if path.name[0] != "." and "unreadable" not in path.name]


def kept(store):
    (folder,) = folders(store)
    return Dataset.open(folder)


def check(store, truth):
    """Whatever happened to the store: what it says is complete is there, and it is the truth."""
    dataset = kept(store)
    assert [] == dataset.verify()
    ledger = sqlite3.connect(dataset.path / "ledger.sqlite")
    assert ("ok",) == ledger.execute("PRAGMA integrity_check").fetchone()
    ledger.close()
    covered = dataset.coverage("balance_history")
    cells = [(int(v), e) for v, runs in covered.items() for a, b in runs for e in range(a, b + 1)]
    key = ["validator_index", "epoch"]
    named = pl.DataFrame(cells, schema=dict.fromkeys(key, pl.Int64), orient="row")
    rows = dataset.scan("balance_history", schema=truth[0].schema).collect()
    assert_frame_equal(truth[0].join(named, on=key, how="semi").sort(key), rows.sort(key))
