"""Runs of an index: killed and continued, with any executor, over nodes that fail half-way."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

import beaconframes as bf
from beaconframes.beacon_node.connection import NodeConnection
from beaconframes.beacon_node.index.epoch_builder import EpochBuilder, build_address
from beaconframes.beacon_node.index.indexing import index
from beaconframes.dataset import Dataset
from beaconframes.errors import NotFound, ResponseError, UsageError

from ..support.beacon_node_faults import PrunedStates, is_state
from ..support.beacon_node_stub import BeaconNodeStub
from .test_api import NullFields, UpperCase

log = logging.getLogger(__name__)


class OwnFault:
    """A fault of a test, which is no known quirk of a client."""

    def refuse(self, node, request):
        """Answer as the node does."""

    def change(self, node, request, answer):
        """Send the answer of the node."""
        return answer


FEW = {"validators": [1, 2, 3], "tables": ["income_history"]}


def read_files(folder):
    """Return the bytes of the segments of an index, by table and number."""
    segments = Dataset.open(folder).segments()
    return {segment.path: (folder / segment.path).read_bytes() for segment in segments}


def read_rows(folder):
    """Return the rows of each table, sorted."""
    dataset = Dataset.open(folder)
    tables = {name: dataset.scan(name).collect() for name in sorted(dataset.tables())}
    return {name: rows.sort(rows.columns[:4]) for name, rows in tables.items()}


def assert_equal_rows(expected, found):
    """Check that two indexes have the same rows."""
    expected, found = read_rows(expected), read_rows(found)
    assert expected.keys() == found.keys()
    assert [] == [name for name, rows in expected.items() if not rows.equals(found[name])]


def list_states(stub):
    """Return the epochs of the states that were requested in full or in part."""
    found = [re.search(r"debug/beacon/states/(\d+)", line) for line in stub.log]
    return [int(match[1]) // stub.slots_per_epoch for match in found if match]


# Killed processes.

RUNNER = """
import importlib, os, pkgutil, sys, traceback
import beaconframes.beacon_node as package
from beaconframes.beacon_node.index.indexing import index

for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
url, options = sys.argv[1], eval(sys.argv[2])
print("ready", flush=True)
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        try:
            index(url, line.rstrip("\\n"), **options)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


class KillAtRequest(OwnFault):
    """The process that sends the requests is killed at one of them."""

    pid = None

    def arm(self, pid, number):
        """Kill the process at its request of this number."""
        self.left, self.pid = number, pid

    def refuse(self, node, request):
        if self.pid is not None:
            self.left -= 1
            if self.left <= 0:
                os.kill(self.pid, signal.SIGKILL)
                self.pid = None


class Runner:
    """A process that forks for each run of an index: after all imports, before any thread."""

    def __init__(self, url, options):
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUNNER, url, repr(options)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "POLARS_MAX_THREADS": "1"},
        )  # fmt: skip
        assert "ready\n" == self.process.stdout.readline()

    def run(self, folder, meanwhile=None):
        """Index in *folder* and return the exit status; *meanwhile* gets the process id."""
        self.process.stdin.write(f"{folder}\n")
        self.process.stdin.flush()
        pid = int(self.process.stdout.readline())
        if meanwhile is not None:
            meanwhile(pid)
        return int(self.process.stdout.readline())

    def close(self):
        """End the process."""
        with self.process:
            self.process.stdin.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    ("kills", "options"),
    [
        pytest.param(3, {**FEW, "until": 3}, id="few", marks=pytest.mark.more),
        pytest.param(100, {"until": 20}, id="all", marks=pytest.mark.long),
    ],
)
def test_killed_and_continued(tmp_path, kills, options, sample):
    """Done when: after `kill -9` at random points, the same command ends with equal contents.

    No stored epoch is requested again, except the state of one: the next epoch starts from it.
    """
    dice, killed, killer = random.Random(3), 0, KillAtRequest()
    with BeaconNodeStub("electra", faults=[killer]) as stub, contextlib.ExitStack() as stack:
        runner = Runner(stub.url, options)
        stack.callback(runner.close)
        started = time.monotonic()
        assert 0 == runner.run(tmp_path / "expected")
        took, total = time.monotonic() - started, len(stub.log)
        # What a run requests that finds nothing to do.
        stub.log.clear()
        assert 0 == runner.run(tmp_path / "expected")
        always = set(stub.log)
        target = None
        while killed < sample.limit(kills):
            if target is None:
                target = tmp_path / f"run-{killed}"
            stored = read_stored_epochs(target)
            stub.log.clear()

            def kill(pid):
                if kills == 3:
                    killer.arm(pid, dice.randrange(len(always), total // 2))
                    return
                time.sleep(dice.uniform(0, took))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

            status = runner.run(target, kill)
            killer.pid = None
            assert status in (0, -signal.SIGKILL)
            killed += status != 0
            check_requests(stub, stored, always)
            if status == 0:
                assert_equal_rows(tmp_path / "expected", target)
                target = None
        if target is not None:
            stored = read_stored_epochs(target)
            stub.log.clear()
            assert 0 == runner.run(target)
            check_requests(stub, stored, always)
            assert_equal_rows(tmp_path / "expected", target)


def read_stored_epochs(folder):
    """Return the epochs whose income is stored."""
    if not (folder / "ledger.sqlite").exists():
        return set()
    dataset = Dataset.open(folder)
    assert [] == dataset.verify()
    parts = next(iter(dataset.coverage("income_history").values()), ())
    return {epoch for low, high in parts for epoch in range(low, high + 1)}


def check_requests(stub, stored, always):
    """Check that no stored epoch was requested, but for the state of the last one."""
    size = stub.slots_per_epoch
    slots = [
        (line, int(match[1]))
        for line in stub.log
        if line not in always and (match := re.search(r"(?:states|blocks)/(\d+)", line))
    ]
    repeated = {line for line, slot in slots if slot // size in stored}
    assert len(repeated) <= 1, repeated
    assert all("/debug/" in line for line in repeated)


# Executors.


@pytest.fixture(scope="module")
def one_worker(tmp_path_factory):
    """An index of one thread, of four epochs."""
    folder = tmp_path_factory.mktemp("index") / "one"
    with BeaconNodeStub("electra") as stub, ThreadPoolExecutor(1) as executor:
        index(stub.url, folder, since=8, until=11, executor=executor, **FEW)
    return folder


@pytest.mark.more
@pytest.mark.parametrize("workers", [2, 4])
def test_any_number_of_threads_gives_the_same_bytes(tmp_path, one_worker, workers):
    """Step 11, item 5: the same segments in the same order."""
    with BeaconNodeStub("electra") as stub, ThreadPoolExecutor(workers) as executor:
        index(stub.url, tmp_path / "index", since=8, until=11, executor=executor, **FEW)
        requested = list_states(stub)
    assert read_files(one_worker) == read_files(tmp_path / "index")
    # Epochs 7 to 13; besides, the check of what the node has, and the head of the index.
    assert {7, 8, 9, 10, 11, 12, 13} <= set(requested)
    # A thread that begins after its successor requests states again. Without shared states, each
    # epoch would request four: 18 with the two others.
    assert 14 >= len(requested)


@pytest.mark.more
def test_two_nodes_share_the_epochs(tmp_path, one_worker):
    with BeaconNodeStub("electra") as first, BeaconNodeStub("electra") as second:
        index([first.url, second.url], tmp_path / "index", since=8, until=17, **FEW)
        counts = [len(set(list_states(stub))) for stub in (first, second)]
        expected = tmp_path / "expected"
        index(first.url, expected, since=8, until=17, **FEW)
    assert min(counts) >= 6
    assert dict(read_files(expected).items()) == read_files(tmp_path / "index")


def test_nodes_of_other_chains_are_refused(tmp_path):
    with BeaconNodeStub("electra") as first, BeaconNodeStub("capella") as second:
        with pytest.raises(UsageError, match="a node of another chain") as caught:
            index([first.url, second.url], tmp_path / "index", **FEW)
        assert second.url in str(caught.value)
    with pytest.raises(UsageError, match="no node is given"):
        index([], tmp_path / "index")
    assert not (tmp_path / "index").exists()


@pytest.mark.more
@pytest.mark.parametrize("kind", ["processes", "dask"])
def test_workers_in_other_processes(tmp_path, one_worker, kind, monkeypatch):
    """Two workers over two nodes equal one; each opens a node at most once.

    The credentials of the second node are in the environment of the workers.
    """
    with (
        BeaconNodeStub("electra") as first,
        BeaconNodeStub("electra") as second,
        contextlib.ExitStack() as stack,
    ):
        hosted = second.url.replace("//", "//user:t0psecret@")
        monkeypatch.setenv("BEACONFRAMES_NODE", f"{first.url} {hosted}")
        if kind == "dask":
            distributed = pytest.importorskip("distributed")
            executor = stack.enter_context(
                distributed.Client(
                    n_workers=2,
                    threads_per_worker=1,
                    dashboard_address=":0",
                    local_directory=str(tmp_path),
                    silence_logs=logging.ERROR,
                )
            )
        else:
            context = multiprocessing.get_context("spawn")
            executor = stack.enter_context(ProcessPoolExecutor(2, mp_context=context))
        nodes = [first.url, hosted]
        index(nodes, tmp_path / "index", since=8, until=11, executor=executor, **FEW)
        opened = sum(stub.counts["/eth/v1/config/spec"] for stub in (first, second))
    assert read_files(one_worker) == read_files(tmp_path / "index")
    assert 2 + 1 <= opened <= 2 + 4


@pytest.mark.parametrize("credentials", ["", "user:t0psecret@"])
def test_credentials_do_not_leave_the_process(monkeypatch, credentials):
    """A pickled builder opens the address again, with the credentials of the other process."""
    with BeaconNodeStub("electra") as stub:
        address = stub.url.replace("//", f"//{credentials}")
        connection = NodeConnection(address)
        with contextlib.closing(connection):
            reader = connection.build_reader(100, "states", connection.capabilities.oldest)
            builder = EpochBuilder(reader, None, build_address(connection, reader, "states"))
            sent = pickle.dumps(builder)
        assert "t0psecret" not in f"{builder!r} {builder.address!r} {sent!r}"
        if credentials:
            monkeypatch.delenv("BEACONFRAMES_NODE", raising=False)
            refused = "process has no credentials.*Set BEACONFRAMES_NODE"
            with pytest.raises(UsageError, match=refused) as caught:
                pickle.loads(sent)
            assert "t0psecret" not in str(caught.value)
            monkeypatch.setenv("BEACONFRAMES_NODE", f"https://other {address}")
        copy = pickle.loads(sent)
        assert copy is pickle.loads(sent)
        assert copy.reader is not reader
        assert 100 == copy.reader.head_slot
        assert bool(credentials) == copy.reader.api.session.has_credentials


# Nodes that fail half-way.


class MissingState(OwnFault):
    """A state of the middle of the chain is gone, as if the node had pruned it by now."""

    def __init__(self, epoch):
        self.epoch = epoch
        self.is_planted = False

    def refuse(self, node, request):
        if not (self.is_planted and is_state(request)):
            return None
        slot = int(request.args["state_id"])
        return node.no_state(slot) if slot // node.slots_per_epoch == self.epoch else None


@pytest.mark.more
def test_an_error_in_the_middle_stores_what_came_before(tmp_path):
    """Item 6: it names the epoch and the reason, and the same call continues."""
    fault = MissingState(11)
    with BeaconNodeStub("electra", faults=[fault]) as stub:

        def plant(progress):
            fault.is_planted = True

        index(stub.url, tmp_path / "index", since=7, until=7, on_epoch=plant, **FEW)
        with pytest.raises(NotFound, match=r"epoch 9: .*state not found") as caught:
            index(stub.url, tmp_path / "index", since=7, until=12, **FEW)
        assert "the same call continues" in caught.value.hint
        failed = int(re.search(r"epoch (\d+)", str(caught.value))[1])
        stored = read_stored_epochs(tmp_path / "index")
        # The changes of balance that follow an epoch need the states of two more.
        assert (9, {7, 8}) == (failed, stored)
        with bf.local(tmp_path / "index"):
            income = bf.load_income_history([1], since=7)
        assert [7, 8] == income["epoch"].to_list()
        fault.is_planted = False
        stub.log.clear()
        found = index(stub.url, tmp_path / "index", since=7, until=12, **FEW)
        assert list(range(7, 13)) == found["epoch"].to_list()
        assert {7} & set(list_states(stub)) <= {7}


class ReorganizedState(OwnFault):
    """From some state on, the node has another chain: a block before it has another root."""

    def __init__(self, epoch, slot):
        self.epoch, self.slot = epoch, slot

    def change(self, node, request, answer):
        if "/debug/" not in request.route or answer.status != 200 or not is_state(request):
            return answer
        if int(request.args["state_id"]) // node.slots_per_epoch < self.epoch:
            return answer
        # block_roots follow genesis (40 bytes), slot, fork (16) and the latest header (112).
        length = int(node.recording.spec["SLOTS_PER_HISTORICAL_ROOT"])
        place = 176 + 32 * (self.slot % length)
        answer.body = answer.body[:place] + b"\x99" * 32 + answer.body[place + 32 :]
        return answer


def test_a_reorganization_between_two_requests_stores_nothing_wrong(tmp_path):
    """Item 7: the roots in the next state are not those of the blocks."""
    with (
        BeaconNodeStub("electra", faults=[ReorganizedState(10, 9 * 8 + 3)]) as stub,
        pytest.raises(ResponseError, match=r"slot 75.*reorganized between two requests"),
    ):
        index(stub.url, tmp_path / "index", since=7, until=10, validators=[1, 2, 3])
    assert max(read_stored_epochs(tmp_path / "index"), default=-1) < 9


class AlteredBlock(OwnFault):
    """The body of a block has another value: the JSON is valid, and no balance depends on it."""

    def __init__(self, slot, *path):
        self.slot, self.path = str(slot), path

    def change(self, node, request, answer):
        if "/v2/beacon/blocks/" not in request.route or request.args["block_id"] != self.slot:
            return answer
        block = answer.data
        place = block["message"]["body"]
        for key in self.path[:-1]:
            place = place[key]
        text = place[self.path[-1]]
        place[self.path[-1]] = text[:-1] + ("1" if text[-1] == "0" else "0")
        return answer.with_data(block)


GRAFFITI, GAS = ("graffiti",), ("execution_payload", "gas_used")


@pytest.mark.parametrize(
    ("recording", "faults", "slot", "path"),
    [
        pytest.param("electra", [], 34, GRAFFITI, id="states"),
        pytest.param("electra", [], 31, GAS, id="last block of an epoch", marks=pytest.mark.more),
        pytest.param(
            "electra", [], 51, GRAFFITI, id="votes of the epoch after", marks=pytest.mark.more
        ),
        pytest.param("electra", ["debug-forbidden"], 34, GRAFFITI, id="routes"),
        pytest.param(
            "electra",
            ["debug-forbidden"],
            31,
            GAS,
            id="routes, last block of an epoch",
            marks=pytest.mark.more,
        ),
        pytest.param(
            "capella", ["debug-forbidden", "no-rewards-routes"], 34, GRAFFITI, id="replay"
        ),
    ],
)
def test_a_block_that_the_node_has_altered_is_an_error(tmp_path, recording, faults, slot, path):
    """Its root is not the one that its child, a header or a state has."""
    fault = AlteredBlock(slot, *path)
    # A replay checks the blocks of all epochs, also for income alone.
    tables = ["income_history"] if recording == "capella" else None
    with (
        BeaconNodeStub(recording, faults=[*faults, fault]) as stub,
        pytest.raises(ResponseError, match=rf"slot {slot} is invalid: its content has the root 0x"),
    ):
        index(stub.url, tmp_path / "index", since=3, until=4, tables=tables)


@pytest.mark.parametrize("name", ["deposits", "yield_index"])
def test_tables_that_need_an_execution_node_are_refused_by_name(tmp_path, name):
    with (
        BeaconNodeStub("capella") as stub,
        pytest.raises(UsageError, match=rf"cannot answer {name}: .*execution"),
    ):
        index(stub.url, tmp_path / "index", since=3, until=4, tables=["blocks", name])


@pytest.mark.more
@pytest.mark.parametrize("fault", [NullFields, pytest.param(UpperCase, marks=pytest.mark.more)])
@pytest.mark.parametrize(
    ("recording", "faults", "validators"),
    [
        pytest.param("altair", [], None, id="states-altair", marks=pytest.mark.long),
        pytest.param("capella", [], None, id="states", marks=pytest.mark.long),
        pytest.param("capella", ["debug-forbidden"], range(8), id="routes", marks=pytest.mark.long),
        pytest.param(
            *("capella", ["debug-forbidden", "no-rewards-routes"], None),
            id="replay", marks=pytest.mark.more,
        ),
        pytest.param("electra", ["debug-forbidden"], [2, 12, 60, 70], id="routes-electra"),
    ],
)  # fmt: skip
def test_blocks_written_in_another_way(tmp_path, recording, faults, validators, fault):
    """Income and balances are the same from states, from routes and from blocks."""
    for name, more in (("plain", []), ("other", [fault()])):
        with BeaconNodeStub(recording, faults=[*faults, *more]) as stub:
            found = index(stub.url, tmp_path / name, until=4, validators=validators)
        assert {"explained"} == set(found["status"])

    assert_equal_rows(tmp_path / "plain", tmp_path / "other")


@pytest.mark.more
def test_a_node_without_old_states(tmp_path, caplog):
    """Item 6: the index covers exactly what exists, and its coverage says so."""
    with BeaconNodeStub("electra", faults=[PrunedStates(12)], client="lighthouse") as stub:
        connection = NodeConnection(stub.url)
        with contextlib.closing(connection):
            assert "--reconstruct-historic-states" in str(connection.capabilities)
            oldest = connection.capabilities.oldest_state_epoch
            assert f"epoch {oldest}" in str(connection.capabilities)
        found = index(stub.url, tmp_path / "index", since=0, **FEW)
    assert re.search("epochs 0 to 38 .*--reconstruct-historic-states", caplog.text)
    assert 38 == oldest
    epochs = found["epoch"].to_list()
    assert oldest + 1 == epochs[0]
    assert epochs == list(range(epochs[0], epochs[-1] + 1))
    covered = Dataset.open(tmp_path / "index").coverage("income_history")
    assert {(oldest + 1, epochs[-1])} == {part for parts in covered.values() for part in parts}
