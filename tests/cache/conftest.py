"""The local explorer that is loaded from, the folder of a new store, and expected rows."""

import itertools
import time

import pytest

from beaconframes.cache import local_store

from ..support.store_processes import connect, load


@pytest.fixture(scope="session")
def server(running):
    """The local explorer, which counts its requests."""
    return running


@pytest.fixture
def store(tmp_path):
    """The folder of a store that does not exist yet."""
    return tmp_path / "store"


@pytest.fixture(scope="session")
def truth(server, tmp_path_factory):
    """The rows of the explorer, as a frame, and the file that worker processes read them from."""
    rows = load(connect(server, False))
    path = tmp_path_factory.mktemp("truth") / "rows.parquet"
    rows.write_parquet(path)
    return rows, path


@pytest.fixture
def later(monkeypatch):
    """Move the clock with each call, so that the next response confirms earlier ones."""
    now = time.time()
    times = itertools.count(1)

    def move():
        at = now + next(times) * local_store.CONFIRMATION_SECONDS
        monkeypatch.setattr(time, "time", lambda: at)

    return move
