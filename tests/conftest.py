"""Fixtures that all test files share: a small simulated chain and an explorer that serves it."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import os
import random
import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import platformdirs
import pytest
from httpx import _config
from httpx._transports import default

from beaconframes import config
from beaconframes.client import Explorer, set_explorer
from beaconframes.dataset import Dataset
from beaconframes.server import Server
from beaconframes.simulator import open_or_simulate

if sys.platform != "win32":
    import fcntl

    # On a machine in UTC, no test would find local time in place of UTC. The time zone also holds
    # for the processes that tests start.
    os.environ["TZ"] = "America/New_York"
    time.tzset()

# The profiler of a Dask worker reads the stacks of its threads. In CPython 3.11, a garbage
# collection at that moment stops the process for ever.
os.environ["DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED"] = "False"

NUMBERS = itertools.count()
SAMPLE_SEED = 20261122
RECURSION_LIMIT = sys.getrecursionlimit()


def pytest_addoption(parser):
    """Add the option --sample."""
    parser.addoption(
        "--sample", type=int, metavar="N",
        help="run at most N cases of each test, and N points of each crash, chosen at random",
    )  # fmt: skip


def pytest_report_header(config):
    """Say what is chosen."""
    most = config.getoption("--sample")
    return [] if most is None else [f"sample: {most} cases and points per test, seed {SAMPLE_SEED}"]


def pytest_configure(config):
    """Let each worker collect other folders first.

    In a new clone, pytest compiles each test file at its first import, which takes 7 s in all.
    Workers with one order would compile all files at the same time; so each finds most compiled.
    """
    worker = getattr(config, "workerinput", None)
    if worker and config.args_source is config.ArgsSource.TESTPATHS:
        tests = Path(__file__).parent
        parts = [str(path) for path in sorted(tests.glob("[a-z]*")) if path.name != "conftest.py"]
        first = int(worker["workerid"].removeprefix("gw")) * len(parts) // worker["workercount"]
        config.args = parts[first:] + parts[:first]


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config, items):
    """Sort the tests by file, as workers must have the same order, and leave out further cases."""
    items.sort(key=lambda item: item.nodeid.partition("::")[0].split("/"))
    yield  # Here, pytest leaves out what the option -m does not select.
    chosen = Sample(config.getoption("--sample")).choose_cases([item.nodeid for item in items])
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
    items[:] = [item for item in items if item.nodeid in chosen]


def pytest_collection_finish():
    """Exclude what collection made from garbage collection: a twentieth of the CPU time.

    DuckDB reports these objects at the end of the process: "nanobind: leaked". They are no leaks.
    To unfreeze them there would take a second.
    """
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config):
    """Remove the folder that pytest-mpl makes for each run, if it holds no picture."""
    if not hasattr(config, "workerinput"):
        with contextlib.suppress(OSError, AttributeError):
            Path(config.pytest_mpl_results_dir).rmdir()


class Sample:
    """Chooses the points at which a test kills processes or lets disks fail."""

    def __init__(self, most):
        self.most = most

    def limit(self, count):
        """Return how many of *count* random points to test."""
        return count if self.most is None else min(count, self.most)

    def choose(self, points):
        """Return all of the points, or a random sample of them in their order."""
        count = self.limit(len(points))
        chosen = sorted(random.Random(SAMPLE_SEED).sample(range(len(points)), count))
        return [points[number] for number in chosen]

    def choose_cases(self, names):
        """Return the names of all cases, or of a random sample of the cases of each test."""
        cases = {}
        for name in names:
            cases.setdefault(name.partition("[")[0], []).append(name)
        return {name for several in cases.values() for name in self.choose(several)}


@pytest.fixture(scope="session")
def sample(pytestconfig):
    """Which points to test: all, or as many as the option --sample says."""
    return Sample(pytestconfig.getoption("--sample"))


@contextlib.contextmanager
def locked(folder):
    """Hold the lock of *folder*, so that two workers do not simulate the same chain."""
    with (folder / "lock").open("w") as file:
        if sys.platform != "win32":
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def site_folder(tmp_path_factory):
    """Where one worker builds the documentation site for all workers, below its lock."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def machine_cache(pytestconfig, tmp_path_factory):
    """A folder that outlives the test run, for simulations, which are named by a fingerprint."""
    cache = getattr(pytestconfig, "cache", None)
    return tmp_path_factory.mktemp("cache") if cache is None else cache.mkdir("beaconframes")


@pytest.fixture(scope="session", autouse=True)
def clean_environment(machine_cache):
    """Hide the settings and caches of the machine from all tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("BEACONFRAMES_")]:
            patch.delenv(name)
        patch.setenv("XDG_CACHE_HOME", str(machine_cache))
        yield


@pytest.fixture(scope="session", autouse=True)
def shared_certificates():
    """Load the certificates for plain HTTP clients once: it takes 20 ms, and tests open hundreds.

    The package chooses its certificates itself, so that its clients are not affected.
    """
    create = default.create_ssl_context
    shared = functools.cache(create)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            default,
            "create_ssl_context",
            lambda verify=True, **more: (shared if verify is True else create)(verify, **more),
        )
        yield


@pytest.fixture(scope="session", autouse=True)
def long_timeouts():
    """Let plain HTTP clients of tests wait a minute instead of 5 s: the machine may be busy.

    The package sets its timeouts itself, so that its clients are not affected.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "read", "write", "pool"):
            patch.setattr(_config.DEFAULT_TIMEOUT_CONFIG, name, 60.0)
        yield


@pytest.fixture(autouse=True)
def clean_surroundings(clean_environment, tmp_path_factory):
    """Give each test remembered rates and settings of its own."""
    # The folder is made when a rate is remembered.
    state = tmp_path_factory.getbasetemp() / f"state-{next(NUMBERS)}"
    os.environ["XDG_STATE_HOME"] = str(state)
    yield
    set_explorer(None)
    config.reset()
    # py-evm raises it to 100,000, where a deeply nested body overflows the stack of a thread.
    sys.setrecursionlimit(RECURSION_LIMIT)


@pytest.fixture(scope="session")
def chain(tmp_path_factory, machine_cache):
    """A simulated chain of 1,010 validators and 470 epochs from genesis.

    It is simulated once for each fingerprint of the simulator; a test run has a copy of its own.
    """
    with locked(machine_cache):
        stored = open_or_simulate(machine_cache, "chain", validators=1010, epochs=470, seed=7)
        # Another process that opens it creates and removes a write-ahead log.
        copy = shutil.copytree(stored.path, tmp_path_factory.mktemp("chain") / "data")
    return Dataset.open(copy)


@pytest.fixture(scope="session")
def hoodi(machine_cache):
    """A simulated hoodi chain of 60 validators and 150 epochs, with all attestation duties."""
    arguments = {"validators": 60, "epochs": 150, "seed": 4, "history_days": 3, "chain": "hoodi"}
    with locked(machine_cache):
        ends = datetime(2026, 10, 1, tzinfo=UTC)
        return open_or_simulate(machine_cache, "hoodi", **arguments, ends=ends)


@pytest.fixture
def small_sample(chain, tmp_path, monkeypatch):
    """Let commands with --local serve the small chain, as if it were the stored sample."""
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda *_: tmp_path)
    monkeypatch.setenv("BEACONFRAMES_SAMPLE", str(chain.path))


@pytest.fixture(scope="session")
def running(chain):
    """A local explorer that serves the simulated chain for the whole run: to start costs time."""
    with Server(chain) as server:
        yield server


@pytest.fixture
def explorer(running):
    """That explorer with its request count at zero, and a client that loaders use."""
    running.service.requests = 0
    with Explorer(running.url, chain=running.service.chain, head=running.service.head) as client:
        set_explorer(client)
        yield running
