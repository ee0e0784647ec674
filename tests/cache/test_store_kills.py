"""A process that is killed while it fills a store: the store stays readable, right and useful."""

from __future__ import annotations

import logging
import random
import re
import shutil
import signal
import subprocess
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from polars.testing import assert_frame_equal

from ..support.store_processes import LAST, check_store, connect, list_datasets, load, start_worker

pytestmark = pytest.mark.crash

log = logging.getLogger(__name__)

FILL = """
from beaconframes.fetch import source
source.FLUSH_SECONDS = 0.0
print("begins", flush=True)
for since in range(0, int(count), 10):
    load(since=since, until=since + 9)
    if since % 50 == 20:
        bf.store(explorer).compact()
print("done", flush=True)
"""
TWICE = """
from beaconframes.fetch import source
source.FLUSH_SECONDS = 0.0
for since in 0, 10:
    load(since=since, until=since + 9)
bf.store(explorer).compact()
print("done", flush=True)
"""
WRITING = (
    "openat", "write", "pwrite64", "writev", "pwritev", "ftruncate", "fallocate", "fsync",
    "fdatasync", "rename", "renameat", "renameat2", "link", "unlink", "unlinkat", "mkdir",
    "mkdirat", "rmdir", "chmod", "fchmod", "fchmodat", "copy_file_range", "sendfile",
)  # fmt: skip
"""System calls that change something on a disk."""

ALIKE = 12
"""Most calls of one kind, on files of one kind, at which the process is killed."""

LANES = 2
"""Stores that are filled concurrently."""


def check_resumes(server, store, truth, until):
    """Check that the store of a killed process is right, and that a load completes it."""
    if list_datasets(store):
        check_store(store, truth)
    expected = truth[0].filter(truth[0]["epoch"] <= until)
    with connect(server, store) as explorer:
        assert_frame_equal(expected, load(explorer, until=until))
        sent = explorer.requests
        assert_frame_equal(expected, load(explorer, until=until))
        assert sent == explorer.requests
    check_store(store, truth)


def kill_until_full(server, store, truth, seed, most):
    """Fill a store, killed at random moments, until it is full; return the number of kills.

    After *most* kills it is filled without a kill.
    """
    dice = random.Random(seed)
    kills = 0
    while True:
        process = start_worker(FILL, server, store, truth, count=LAST)
        with process:
            assert "begins\n" == process.stdout.readline()
            timer = threading.Timer(dice.uniform(0, 0.8), process.kill)
            timer.start()
            out, err = process.communicate()
            timer.cancel()
        assert process.returncode in (0, -signal.SIGKILL), err
        if "done" in out:
            check_resumes(server, store, truth, LAST)
            return kills
        kills += 1
        if kills >= most:
            check_resumes(server, store, truth, LAST)
            return kills
        if list_datasets(store):
            check_store(store, truth)


@pytest.mark.long
@pytest.mark.parametrize("kills", [200])
def test_killed_at_random(server, tmp_path, truth, kills, sample):
    """F11: killed at random moments, many times, until the store is full."""
    kills = sample.limit(kills)
    count, seeds, lock = 0, iter(range(10_000)), threading.Lock()

    def fill_stores():
        nonlocal count
        while count < kills:
            with lock:
                seed = next(seeds)
            found = kill_until_full(server, tmp_path / str(seed), truth, seed, kills)
            with lock:
                count += found

    with ThreadPoolExecutor(LANES if kills > 1 else 1) as pool:
        lanes = [pool.submit(fill_stores) for _ in range(LANES if kills > 1 else 1)]
    for one in lanes:
        one.result()
    assert count >= kills


def trace_command(store, *more):
    """Return the command prefix that traces what a command writes to the disk."""
    return [
        "strace", "-f", "-y", "-qq", "-o", str(store) + ".log", "-e", "trace=" + ",".join(WRITING),
        *more, "env", "POLARS_MAX_THREADS=1", "PYTHONDONTWRITEBYTECODE=1",
    ]  # fmt: skip


def list_writing_calls(server, folder, truth):
    """Return the system calls that change the store, as pairs of name and number.

    Of calls of the same kind at most ALIKE are chosen: the first, the last, and some between.
    """
    store = folder / "undisturbed"
    with start_worker(TWICE, server, store, truth, within=trace_command(store)) as process:
        out, err = process.communicate()
    assert "done" in out, err
    counts: Counter[tuple[str, str]] = Counter()
    by_kind: dict[tuple[str, str], list[int]] = {}
    for line in (folder / "undisturbed.log").read_text().splitlines():
        thread, call, rest = re.fullmatch(r"(\d+) +(\w+)\((.*)|.*", line).groups()
        if call is None:
            continue
        counts[thread, call] += 1
        path = re.search(rf"{re.escape(str(folder))}/\.?undisturbed[^\">]*", rest)
        if path is None or (call == "openat" and "O_CREAT" not in rest):
            continue
        kind = re.sub(r"[0-9a-f]{8,}|\d+", "#", path[0].removeprefix(str(folder)))
        by_kind.setdefault((call, kind), []).append(counts[thread, call])
    chosen = set()
    for (call, kind), numbers in by_kind.items():
        step = max(1, (len(numbers) - 1) / (ALIKE - 1))
        selected = {numbers[min(round(step * n), len(numbers) - 1)] for n in range(ALIKE)}
        log.info("%s %s: %d of %d", call, kind, len(selected), len(numbers))
        chosen |= {(call, number) for number in selected}
    return sorted(chosen)


def kill_at(server, folder, truth, at):
    """Kill a filling process at a system call; return whether it got that far."""
    call, number = at
    store = folder / f"{call}-{number}"
    within = trace_command(store, "-e", f"inject={call}:signal=SIGKILL:when={number}")
    with start_worker(TWICE, server, store, truth, within=within) as process:
        out, err = process.communicate()
    if "done" in out:
        assert 0 == process.returncode, err
    check_resumes(server, store, truth, 19)
    shutil.rmtree(store)
    return "done" not in out


@pytest.mark.long
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_killed_at_every_writing_call(server, tmp_path, truth, sample):
    """Killed before each call that changes the store, from its first folder to compacted files."""
    able = subprocess.run(["strace", "-qq", "-e", "trace=none", "true"], check=False)
    if able.returncode:
        pytest.skip("tracing a process is not permitted on this machine")
    calls = sample.choose(list_writing_calls(server, tmp_path, truth))
    with ThreadPoolExecutor(LANES) as pool:
        was_killed = list(pool.map(partial(kill_at, server, tmp_path, truth), calls))
    kills = Counter(call for (call, _), one in zip(calls, was_killed, strict=True) if one)
    log.info("%d kills at %d calls: %s", sum(was_killed), len(calls), dict(kills))
    # Check that processes were killed at all kinds of calls.
    if sample.most is None:
        assert {"openat", "pwrite64", "rename", "mkdir", "unlink"} <= set(kills)
        assert {"fsync", "fdatasync"} & set(kills)
    # The distribution of work among threads varies.
    assert sum(was_killed) >= 0.9 * len(calls)
