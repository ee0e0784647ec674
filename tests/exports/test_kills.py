"""Exports that are killed, or whose disk fails: no published row is damaged."""

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

pytestmark = pytest.mark.crash

log = logging.getLogger(__name__)

LAST = 299


@pytest.fixture(scope="module")
def server(chain):
    """The local explorer."""
    with Server(chain) as running:
        yield running


def export(server, target, until=LAST):
    """Export in this process."""
    with bf.Explorer(server.url, chain=server.service.chain, head=server.service.head) as explorer:
        return bf.export(
            bf.load_balance_history, target, validators=range(30), since=0, until=until,
            explorer=explorer,
        )  # fmt: skip


def files(folder):
    """Return the bytes of every file of a folder, without the history, which contains the time."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "history.jsonl"
    }


@pytest.fixture(scope="module")
def states(server, tmp_path_factory):
    """A dataset before and after it is extended."""
    folder = tmp_path_factory.mktemp("states")
    export(server, folder / "before", until=150)
    shutil.copytree(folder / "before", folder / "after")
    export(server, folder / "after")
    export(server, folder / "new")
    return folder


def prepare_target(states, folder, *, extends):
    """Return a target with a dataset to extend, or an empty one."""
    target = folder / "target"
    shutil.rmtree(target, ignore_errors=True)
    if extends:
        shutil.copytree(states / "before", target)
    return target


def check_readers(states, target, *, extends):
    """Check that a reader finds the dataset as it was before, or as it is afterwards."""
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


def check_resumed(server, states, target, *, extends):
    """Check that the same call resumes, and ends with the bytes of an undisturbed export."""
    check_readers(states, target, extends=extends)
    export(server, target)
    assert files(states / ("after" if extends else "new")) == files(target)


@pytest.fixture(scope="module")
def exporters(server):
    """Processes that do the same as `export`."""
    with workers(server, LAST) as found:
        yield found


@pytest.mark.long
@pytest.mark.parametrize("kills", [500])
def test_killed_at_random(server, states, tmp_path, exporters, kills, sample):
    """K02, K03: killed at any moment, also several times in a row, and then resumed."""
    dice, count, rounds = random.Random(1), 0, 0
    exporters.run(prepare_target(states, tmp_path, extends=False))
    started = time.monotonic()
    exporters.run(prepare_target(states, tmp_path, extends=False))
    took = time.monotonic() - started
    while count < sample.limit(kills):
        extends = rounds % 2 == 0
        target, rounds = prepare_target(states, tmp_path, extends=extends), rounds + 1
        for _ in range(dice.choice((1, 1, 2, 3))):

            def kill(pid):
                time.sleep(dice.uniform(0, took))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

            status = exporters.run(target, kill)
            assert status in (0, -signal.SIGKILL)
            count += killed(status)
            check_readers(states, target, extends=extends)
        check_resumed(server, states, target, extends=extends)
    log.info("%d kills in %d rounds", count, rounds)


@pytest.fixture
def strace():
    """Skip where processes cannot be traced."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    if subprocess.run(["strace", "-qq", "-e", "trace=none", "true"], check=False).returncode:
        pytest.skip("processes cannot be traced here")


def list_calls(exporters, states, tmp_path, *, extends):
    """Return every system call that changes the target, in order."""
    target, log = prepare_target(states, tmp_path, extends=extends), tmp_path / "calls"
    assert 0 == exporters.traced(target, "-o", str(log), "-e", f"trace={','.join(CHANGING)}")
    return list(points(log.read_text().splitlines(), target))


def inject_fault(exporters, target, point, inject):
    """Export under strace, which injects a fault into one call; return the status."""
    call, path, which = point
    return exporters.traced(
        target, "-o", "/dev/null", "-P", path, "-e", f"trace={call}",
        "-e", f"inject={call}:{inject}:when={which}",
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("extends", [True, False])
def test_killed_at_every_writing_call(server, states, tmp_path, strace, exporters, extends, sample):
    """K01: killed before each call that changes something, and then resumed."""
    every = list_calls(exporters, states, tmp_path, extends=extends)
    assert {"write", "fsync", "rename", "openat", "mkdir", "unlink", "rmdir"} <= {
        p[0] for p in every
    }
    every, kills = sample.choose(every), 0
    for point in every:
        target = prepare_target(states, tmp_path, extends=extends)
        status = inject_fault(exporters, target, point, "signal=SIGKILL")
        assert killed(status) or status == 0, point
        kills += killed(status)
        check_resumed(server, states, target, extends=extends)
    log.info("%d kills at %d calls", kills, len(every))
    assert kills >= len(every) - 2


@pytest.mark.long
@pytest.mark.parametrize("extends", [True, False])
@pytest.mark.parametrize("reason", ["ENOSPC", "EIO", "EACCES", "EDQUOT"])
def test_disk_fails_at_every_call(
    server, states, tmp_path, strace, exporters, reason, extends, sample
):
    """K06: a full, broken or read-only disk: a clear error, and published rows stay."""
    every = sample.choose(list_calls(exporters, states, tmp_path, extends=extends))
    words = os.strerror(getattr(errno, reason))
    refused, silent = 0, []
    for point in every:
        target = prepare_target(states, tmp_path, extends=extends)
        error = target.with_name("target.error")
        error.unlink(missing_ok=True)
        status = inject_fault(exporters, target, point, f"error={reason}")
        message = error.read_text() if error.exists() else ""
        assert status in (0, REFUSED), (point, message)
        if status == REFUSED:
            refused += 1
            assert str(target) in message, point
            assert words in message or "(os error" in message or "transport error" in message, (
                point,
                message,
            )
            if reason in ("ENOSPC", "EDQUOT"):
                assert "bytes are free there" in message
        else:
            silent.append(point)
        check_resumed(server, states, target, extends=extends)
    log.info("%s: refused at %d of %d calls, not at %s", reason, refused, len(every), silent)
    # Some faults are harmless: a file that exists already, a lock that is retried.
    assert refused >= max(1, len(every) - 12)


@pytest.mark.long
def test_disk_of_256_kib(server, states, tmp_path, exporters):
    """An export that does not fit reports it; with more space it resumes to the same bytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False).returncode:
        pytest.skip("disks cannot be mounted here")
    try:
        for room in (8, 24, 40, 56):
            (disk / "filler").write_bytes(b"x" * (256 - room) * 1024)
            target = disk / "target"
            status = exporters.run(target)
            assert REFUSED == status, room
            assert str(target) in (disk / "target.error").read_text() or room == 8
            check_readers(states, target, extends=False)
            (disk / "filler").unlink()
            check_resumed(server, states, target, extends=False)
            shutil.rmtree(target)
    finally:
        subprocess.run(["umount", str(disk)], check=False)


@pytest.mark.long
@pytest.mark.parametrize("extends", [True, False])
def test_files_are_durable_before_they_get_their_name(
    server, states, tmp_path, strace, exporters, extends
):
    """K08: each file is synced before it is renamed, and the manifest is renamed last."""
    log = tmp_path / "calls"
    target = prepare_target(states, tmp_path, extends=extends)
    calls = "fsync,fdatasync,rename,renameat,renameat2,write,pwrite64,mkdir"
    assert 0 == exporters.traced(target, "-s", "200", "-o", str(log), "-e", f"trace={calls}")
    dirty, renames = set(), []
    for line in log.read_text().splitlines():
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
                # The working folder need not be durable.
                assert {p for p in dirty if "/.beaconframes" not in p} <= {str(tmp_path)}
            dirty.add(str(Path(new).parent))
    assert renames[-1].endswith("manifest.json")
    assert [name for name in renames if name.endswith(".parquet")]
