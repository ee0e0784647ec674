"""A process that is killed, or that finds the disk full, while it exports: nothing is lost."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.dataset import Dataset
from beaconframes.server import Server

from ..support.killing import CHANGING, REFUSED, killed, points, workers

log = logging.getLogger(__name__)

LAST = 299


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


@pytest.fixture(scope="module")
def forge(server):
    """Processes that do the same as `export`."""
    with workers(server, LAST) as found:
        yield found


@pytest.mark.parametrize(
    "kills", [pytest.param(3, marks=pytest.mark.more), pytest.param(500, marks=pytest.mark.long)]
)
def test_killed_at_random(server, states, tmp_path, forge, kills):
    """Killed at any moment, also several times in a row, and then resumed."""
    dice, count, rounds = random.Random(1), 0, 0
    forge.run(prepared(states, tmp_path, extends=False))
    started = time.monotonic()
    forge.run(prepared(states, tmp_path, extends=False))
    took = time.monotonic() - started
    while count < kills:
        extends = rounds % 2 == 0
        target, rounds = prepared(states, tmp_path, extends=extends), rounds + 1
        for _ in range(dice.choice((1, 1, 2, 3))):

            def kill(pid):
                time.sleep(dice.uniform(0, took))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

            status = forge.run(target, kill)
            assert status in (0, -signal.SIGKILL)
            count += killed(status)
            check(states, target, extends=extends)
        resumed(server, states, target, extends=extends)
    log.info("%d kills in %d rounds", count, rounds)


@pytest.fixture
def strace():
    """Skip where nobody may trace a process."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    if subprocess.run(["strace", "-qq", "-e", "trace=none", "true"], check=False).returncode:
        pytest.skip("nobody may trace a process here")


def every_point(forge, states, tmp_path, *, extends):
    """Return every call that changes something in the target, in order."""
    target, told = prepared(states, tmp_path, extends=extends), tmp_path / "calls"
    assert 0 == forge.traced(target, "-o", str(told), "-e", f"trace={','.join(CHANGING)}")
    return list(points(told.read_text().splitlines(), target))


def spoiled(forge, target, point, inject):
    """Export under strace, which does at that *point* what *inject* says; return the status."""
    call, path, which = point
    return forge.traced(
        target, "-o", "/dev/null", "-P", path, "-e", f"trace={call}",
        "-e", f"inject={call}:{inject}:when={which}",
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("extends", [True, False])
def test_killed_at_every_writing_call(server, states, tmp_path, strace, forge, extends):
    """Killed before each call that changes something, and then resumed."""
    every = every_point(forge, states, tmp_path, extends=extends)
    assert {"write", "fsync", "rename", "openat", "mkdir", "unlink", "rmdir"} <= {
        p[0] for p in every
    }
    kills = 0
    for point in every:
        target = prepared(states, tmp_path, extends=extends)
        status = spoiled(forge, target, point, "signal=SIGKILL")
        assert killed(status) or status == 0, point
        kills += killed(status)
        resumed(server, states, target, extends=extends)
    log.info("%d kills at %d calls", kills, len(every))
    assert kills >= len(every) - 2


@pytest.mark.long
@pytest.mark.parametrize("extends", [True, False])
@pytest.mark.parametrize("reason", ["ENOSPC", "EIO", "EACCES", "EDQUOT"])
def test_the_disk_fails_at_every_call(server, states, tmp_path, strace, forge, reason, extends):
    """A full disk, a broken one, a forbidden one: a clear error, and nothing that was is lost."""
    every = every_point(forge, states, tmp_path, extends=extends)
    words = os.strerror(getattr(errno, reason))
    refused, silent = 0, []
    for point in every:
        target = prepared(states, tmp_path, extends=extends)
        error = target.with_name("target.error")
        error.unlink(missing_ok=True)
        status = spoiled(forge, target, point, f"error={reason}")
        said = error.read_text() if error.exists() else ""
        assert status in (0, REFUSED), (point, said)
        if status == REFUSED:
            refused += 1
            assert str(target) in said, point
            assert words in said or "(os error" in said or "transport error" in said, (point, said)
            if reason in ("ENOSPC", "EDQUOT"):
                assert "bytes are free there" in said
        else:
            silent.append(point)
        resumed(server, states, target, extends=extends)
    log.info("%s: refused at %d of %d calls, not at %s", reason, refused, len(every), silent)
    # A file that was there, a lock that is tried again: nobody needs to hear of that.
    assert refused >= len(every) - 12


@pytest.mark.long
def test_a_disk_of_256_kib(server, states, tmp_path, forge):
    """An export that does not fit says so; with room it goes on and ends the same to the byte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False).returncode:
        pytest.skip("nobody may mount a disk here")
    try:
        for room in (8, 24, 40, 56):
            (disk / "filler").write_bytes(b"x" * (256 - room) * 1024)
            target = disk / "target"
            status = forge.run(target)
            assert REFUSED == status, room
            assert str(target) in (disk / "target.error").read_text() or room == 8
            check(states, target, extends=False)
            (disk / "filler").unlink()
            resumed(server, states, target, extends=False)
            shutil.rmtree(target)
    finally:
        subprocess.run(["umount", str(disk)], check=False)


@pytest.mark.long
@pytest.mark.parametrize("extends", [True, False])
def test_what_is_named_is_on_the_disk_before(server, states, tmp_path, strace, forge, extends):
    """Each file is made durable before it gets its name, and the manifest gets its own last."""
    told = tmp_path / "calls"
    target = prepared(states, tmp_path, extends=extends)
    calls = "fsync,fdatasync,rename,renameat,renameat2,write,pwrite64,mkdir"
    assert 0 == forge.traced(target, "-s", "200", "-o", str(told), "-e", f"trace={calls}")
    dirty, renames = set(), []
    for line in told.read_text().splitlines():
        call = re.match(r"\d+ +(\w+)\(", line)
        if call is None or str(target) not in line:
            continue
        if "write" in call[1]:
            dirty.add(line.partition("<")[2].partition(">")[0])
        elif "sync" in call[1]:
            dirty.discard(line.partition("<")[2].partition(">")[0])
        elif call[1] == "mkdir" and " = 0" in line:
            dirty.add(str(Path(line.split('"')[1]).parent))
        elif "rename" in call[1]:
            old, new = line.split('"')[1::2][:2]
            assert old not in dirty, line
            renames.append(new)
            if new.endswith("manifest.json"):
                # Not of that which lies in the workshop.
                assert {p for p in dirty if "/.beaconframes" not in p} <= {str(tmp_path)}
            dirty.add(str(Path(new).parent))
    assert renames[-1].endswith("manifest.json")
    assert [name for name in renames if name.endswith(".parquet")]
