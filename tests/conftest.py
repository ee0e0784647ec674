"""What several test files share: a small simulated chain, and an explorer that serves it."""

from __future__ import annotations

import itertools
import os
import shutil

import pytest

from beaconframes import config
from beaconframes.client import Explorer, use
from beaconframes.dataset import Dataset
from beaconframes.server import Server
from beaconframes.simulator import open_or_simulate

NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def clean_surroundings(monkeypatch, tmp_path_factory):
    """No test sees the settings of the machine, or those of another test."""
    for name in (
        "URL",
        "API_KEY",
        "CHAIN",
        "RATE",
        "STORE",
        "OFFLINE",
        "FRAME",
        "STRICT",
        "PROGRESS",
        "MAX_REQUESTS",
        "STATE",
    ):
        monkeypatch.delenv(f"BEACONFRAMES_{name}", raising=False)
    # Rates are remembered, but not from one test to the next. Made by whoever writes there.
    state = tmp_path_factory.getbasetemp() / f"state-{next(NUMBERS)}"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    yield
    use(None)
    config.reset()


@pytest.fixture(scope="session")
def sample_cache(tmp_path_factory):
    """A cache that starts empty and is kept for the run, so that its sample is simulated once."""
    # What several workers have in common lies above the folder of each.
    several = "PYTEST_XDIST_WORKER" in os.environ
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if several else base) / "sample-cache"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def chain(tmp_path_factory, pytestconfig):
    """A simulated chain of 1,010 validators and 470 epochs from genesis.

    It is simulated once for each fingerprint of the simulator; a test run has a copy of its own.
    """
    cache = getattr(pytestconfig, "cache", None)
    folder = tmp_path_factory.mktemp("chain") if cache is None else cache.mkdir("chain")
    stored = open_or_simulate(folder, "chain", validators=1010, epochs=470, seed=7)
    copy = tmp_path_factory.mktemp("chain") / "data"
    return Dataset.open(shutil.copytree(stored.path, copy))


@pytest.fixture(scope="session")
def running(chain):
    """A local explorer that serves the simulated chain for the whole run: to start costs time."""
    with Server(chain) as server:
        yield server


@pytest.fixture
def explorer(running):
    """That explorer, as if nobody had asked it yet; loaders ask it, by a client of their own."""
    running.service.requests = 0
    with Explorer(running.url, chain=running.service.chain, head=running.service.head) as client:
        use(client)
        yield running
