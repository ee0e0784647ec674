"""A process that is killed, or that finds the disk full, while it exports: nothing is lost."""

from __future__ import annotations

import json
import logging
import random
import shutil
import signal
import subprocess
import sys
import threading

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.dataset import Dataset
from beaconframes.service import Server

from .test_store_kills import WRITING

log = logging.getLogger(__name__)

REFUSED = 3
LAST = 299
EXPORT = """
import sys
import beaconframes as bf
from beaconframes.dataset import Dataset
from beaconframes.errors import DatasetError
from beaconframes.service.facts import Facts

url, data, target = sys.argv[1:4]
facts = Facts.of(Dataset.open(data))
explorer = bf.Explorer(url, chain=facts.chain, head=facts.head)
try:
    bf.export(
        bf.load_balance_history, target, validators=range(30), since=0, until=LAST,
        explorer=explorer,
    )
except DatasetError as error:
    with open(target + ".error", "w") as file:
        file.write(str(error))
    sys.exit(REFUSED)
""".replace("LAST", str(LAST)).replace("REFUSED", str(REFUSED))


@pytest.fixture(scope="module")
def server(chain):
    """The local explorer."""
    with Server(chain) as running:
        yield running


def export(server, target, until=LAST):
    """Export in this process."""
    with bf.Explorer(server.url, chain=server.service.chain, head=server.service.head) as asked:
        return bf.export(
            bf.load_balance_history, target, validators=range(30), since=0, until=until,
            explorer=asked,
        )  # fmt: skip


def files(folder):
    """Every file of a folder with its bytes, but not the history, which tells the time."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "history.jsonl"
    }


@pytest.fixture(scope="module")
def states(server, tmp_path_factory):
    """A dataset before it is extended, and the same as it is when nothing goes wrong."""
    folder = tmp_path_factory.mktemp("states")
    export(server, folder / "before", until=150)
    shutil.copytree(folder / "before", folder / "after")
    export(server, folder / "after")
    export(server, folder / "new")
    return folder


def worker(server, target, within=()):
    """Start a process that exports to *target*, inside the command *within*."""
    command = [*within, sys.executable, "-c", EXPORT, server.url,
               str(server.service.dataset.path), str(target)]  # fmt: skip
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def prepared(states, folder, *, extends):
    """Return a target: of a dataset that is to be extended, or of none."""
    target = folder / "target"
    shutil.rmtree(target, ignore_errors=True)
    if extends:
        shutil.copytree(states / "before", target)
    return target


def check(states, target, *, extends):
    """Whatever happened, a reader finds the dataset as it was before or as it will be."""
    if not (target / "manifest.json").exists():
        assert not extends
        return
    dataset = Dataset.open(target)
    assert [] == dataset.verify()
    until = json.loads((target / "manifest.json").read_text())["tables"]["balance_history"]
    last = until["request"]["until"]
    assert last in ((150, LAST) if extends else (LAST,))
    truth = Dataset.open(states / "new").scan("balance_history").collect()
    expected = truth.filter(pl.col("epoch") <= last).sort("validator_index", "epoch")
    found = dataset.scan("balance_history").collect().sort("validator_index", "epoch")
    assert expected.equals(found)


def resumed(server, states, target, *, extends):
    """The same call ends what was begun: the bytes are those of an export undisturbed."""
    check(states, target, extends=extends)
    export(server, target)
    assert files(states / ("after" if extends else "new")) == files(target)


@pytest.mark.parametrize("kills", [2, pytest.param(100, marks=pytest.mark.long)])
def test_killed_at_random(server, states, tmp_path, kills):
    """Killed at any moment, also several times in a row, and then resumed."""
    dice, count, rounds = random.Random(1), 0, 0
    while count < kills:
        extends = rounds % 2 == 0
        target, rounds = prepared(states, tmp_path, extends=extends), rounds + 1
        for _ in range(dice.choice((1, 1, 2, 3))):
            with worker(server, target) as process:
                timer = threading.Timer(dice.uniform(0.3, 1.8), process.kill)
                timer.start()
                _, said = process.communicate()
                timer.cancel()
            assert process.returncode in (0, -signal.SIGKILL), said
            count += process.returncode != 0
            check(states, target, extends=extends)
        resumed(server, states, target, extends=extends)


def traced(server, target, call, inject):
    """Export under strace, which does to the *call* what *inject* says; return the exit status."""
    within = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}",
              "-e", f"inject={call}:{inject}",
              "env", "POLARS_MAX_THREADS=1", "PYTHONDONTWRITEBYTECODE=1"]  # fmt: skip
    with worker(server, target, within) as process:
        _, said = process.communicate()
    return process.returncode, said


@pytest.fixture
def strace():
    """Skip where nobody may trace a process."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    if subprocess.run(["strace", "-qq", "-e", "trace=none", "true"], check=False).returncode:
        pytest.skip("nobody may trace a process here")


@pytest.mark.long
@pytest.mark.parametrize("extends", [True, False])
@pytest.mark.parametrize("call", WRITING)
def test_killed_at_every_writing_call(server, states, tmp_path, strace, call, extends):
    """Killed before the first, the second, ... call that writes, until there is none left."""
    number = 0
    while True:
        target = prepared(states, tmp_path, extends=extends)
        status, said = traced(server, target, call, f"signal=SIGKILL:when={number + 1}")
        resumed(server, states, target, extends=extends)
        if status == 0:
            break
        assert "Traceback" not in said
        number += 1
    if call in ("write", "fsync", "rename", "unlink"):
        assert number > 4
    log.info("%s: %d kills", call, number)


@pytest.mark.long
@pytest.mark.parametrize("reason", ["ENOSPC", "EIO", "EACCES"])
# Not write: the threads of polars also wake each other by it, which no full disk hinders.
@pytest.mark.parametrize("call", ["fsync", "rename", "mkdir", "openat"])
def test_the_disk_fails_at_any_call(server, states, tmp_path, strace, call, reason):
    """A full disk, a broken one, a forbidden one: a clear error, and nothing that was is lost."""
    if call == "openat" and reason != "EACCES":
        pytest.skip("what is opened is on the disk of the program too")
    first = 1 if call != "openat" else opened(server, states, tmp_path)
    failed = 0
    for number in range(first, first + 60):
        target = prepared(states, tmp_path, extends=True)
        error = target.with_name("target.error")
        error.unlink(missing_ok=True)
        status, said = traced(server, target, call, f"error={reason}:when={number}")
        check(states, target, extends=True)
        if status == REFUSED:
            failed += 1
            assert str(tmp_path) in error.read_text()
        elif status == 0:
            # Nothing that mattered, or the last call was before.
            assert "Traceback" not in said
        resumed(server, states, target, extends=True)
        if status == 0 and number > first + 30:
            break
    assert failed or call == "openat"


def opened(server, states, tmp_path):
    """Return the number of the first file that is opened in the target."""
    target, told = prepared(states, tmp_path, extends=True), tmp_path / "opened"
    within = ["strace", "-f", "-qq", "-o", str(told), "-e", "trace=openat",
              "env", "POLARS_MAX_THREADS=1", "PYTHONDONTWRITEBYTECODE=1"]  # fmt: skip
    with worker(server, target, within) as process:
        process.communicate()
    lines = told.read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if f"{target}/" in line)


@pytest.mark.long
def test_what_is_named_is_on_the_disk_before(server, states, tmp_path, strace):
    """Each file is made durable before it gets its name, and the manifest gets its own last."""
    told = tmp_path / "calls"
    target = tmp_path / "target"
    within = ["strace", "-f", "-qq", "-y", "-o", str(told), "-e",
              "trace=fsync,fdatasync,rename,renameat,renameat2"]  # fmt: skip
    with worker(server, target, within) as process:
        process.communicate()
    lines = told.read_text().splitlines()
    synced, renames = set(), []
    for line in lines:
        if "sync(" in line:
            synced.add(line.partition("<")[2].partition(">")[0])
        elif "rename" in line:
            old, new = line.split('"')[1::2][:2]
            assert old in synced, line
            renames.append(new)
            folders = {str(target / "balance_history")}
            if new.endswith("manifest.json"):
                assert folders <= synced
    assert renames[-1].endswith("manifest.json")
    assert [name for name in renames if name.endswith(".parquet")]
