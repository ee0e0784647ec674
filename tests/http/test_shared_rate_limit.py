"""The shared rate limit: processes with one key share its rate and what they learned of it."""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest

import beaconframes as bf
from beaconframes import errors
from beaconframes.client import Explorer
from beaconframes.endpoint import Request
from beaconframes.http import rate_limiter as rate_limiter_module
from beaconframes.http import shared_rate_limit
from beaconframes.http.rate_limiter import (
    RateLimiter,
    next_month,
    parse_rate_limit_headers,
)
from beaconframes.http.shared_rate_limit import FILE, SharedRateLimit, move_damaged_file
from beaconframes.secret import Secret

from ..support.faults import (
    FaultServer,
    QuickClock,
    SteppedClock,
    StillClock,
    max_requests_in_window,
)

EPOCHS = Request("GET", "/api/v1/epoch/7", endpoint="GET /api/v1/epoch/{epoch}")
SECOND = {"ratelimit-limit": "5", "ratelimit-window": "second"}
PROGRAM = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from beaconframes.client import Explorer
from beaconframes.endpoint import Request
from beaconframes.http import shared_rate_limit
shared_rate_limit.LOCK_TIMEOUT = 60  # the machine may be busy
url, folder, rate, threads, seconds = sys.argv[1:]
epochs = Request("GET", "/api/v1/epoch/7", endpoint="GET /api/v1/epoch/{epoch}")
with Explorer(url, api_key="a-key", rate=float(rate) or None, state=folder, store=False) as e:
    print("ready", flush=True)
    end = time.monotonic() + float(sys.stdin.readline())
    def send(_):
        while time.monotonic() < end:
            e.fetch(epochs)
    with ThreadPoolExecutor(int(threads)) as pool:
        list(pool.map(send, range(int(threads))))
"""


SIMULTANEOUS = """
import sys, time
from pathlib import Path
from beaconframes.http import shared_rate_limit
from beaconframes.http.shared_rate_limit import SharedRateLimit
from beaconframes.secret import Secret
shared_rate_limit.LOCK_TIMEOUT = 60  # the machine may be busy
print("ready", flush=True)
start = float(sys.stdin.readline())
for number in range(50):
    time.sleep(max(0, start + number / 50 - time.monotonic() - 0.002))
    while time.monotonic() < start + number / 50:
        pass
    shared = SharedRateLimit(Path(sys.argv[1], str(number)), "one.example", Secret("a-key"))
    shared.acquire(1000, time.monotonic)
    print(shared.account if shared._folder else "not shared", flush=True)
    shared.close()
"""


def rate_limiter_in(folder, rate=None, *, clock=None, key="a-key", host="one.example", **options):
    """Return a rate limiter that shares the file in *folder*, as another process would."""
    shared = SharedRateLimit(folder, host, None if key is None else Secret(key))
    return RateLimiter(rate, clock=clock or StillClock(), shared_rate_limit=shared, **options)


def send(*rate_limiters):
    """Send one request with each in turn; return when, in seconds of their clock."""
    times = []
    for rate_limiter in rate_limiters:
        with rate_limiter.acquire():
            times.append(round(rate_limiter.clock.now() - 1000, 3))
    return times


def run_processes(server, folder, *, rate, seconds, threads=8, count=2):
    """Let *count* processes send as fast as their rate limiter permits, from the same moment on."""
    command = [sys.executable, "-c", PROGRAM, server.url, str(folder), str(rate), str(threads)]
    running = [
        subprocess.Popen([*command, "0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    for process in running:
        assert "ready\n" == process.stdout.readline()
    for process in running:
        process.stdin.write(f"{seconds}\n")
        process.stdin.flush()
    assert [0] * count == [process.wait(seconds + 120) for process in running]
    for process in running:
        process.stdin.close()
        process.stdout.close()


def share_of_rate(server, seconds):
    """Return the share of 10 requests per second that the server received."""
    first = min(seen.arrived for seen in server.seen)
    return sum(seen.arrived < first + seconds for seen in server.seen) / (10 * seconds)


@pytest.mark.more
def test_two_processes_with_eight_threads_share_the_rate(tmp_path):
    """T27: four seconds at 10/s: the server counts at most 10 requests in any second."""
    with FaultServer() as server:
        run_processes(server, tmp_path, rate=10, seconds=4)

    assert max_requests_in_window(server.seen) <= 10
    assert len(server.seen) > 10


@pytest.mark.long
@pytest.mark.parametrize("latency", [0.0, 0.4])
def test_two_processes_share_the_rate_for_a_minute(tmp_path, latency):
    """T27: 2 processes with 8 threads for 60 s at 10/s: they use 95 % of the rate, never more."""
    with FaultServer(latency=latency) as server:
        run_processes(server, tmp_path, rate=10, seconds=60)

    assert max_requests_in_window(server.seen) <= 10
    # A slow response holds its permit longer.
    assert share_of_rate(server, 58) >= (0.95 if not latency else 0.6)


def test_processes_learn_the_rate_from_each_other(tmp_path):
    """A learned rate holds for every process with this key and host, and for no other."""
    first = rate_limiter_in(tmp_path)
    first.update(SECOND)

    assert 5 == rate_limiter_in(tmp_path).rate
    assert [0] * 5 == send(*[rate_limiter_in(tmp_path)] * 5)
    assert rate_limiter_in(tmp_path, key="another").rate is None
    assert rate_limiter_in(tmp_path, host="two.example").rate is None


def test_permits_of_one_process_are_taken_for_the_other(tmp_path):
    """At 2/s two processes send two requests per second together."""
    clock = StillClock()
    one, two = (rate_limiter_in(tmp_path, 2, clock=clock) for _ in range(2))

    assert [0, 0, 1, 1, 2] == send(one, two, two, one, one)


def test_request_of_another_process_holds_its_permit(tmp_path):
    """The permit is free when the request is answered, or one window after its process ended."""
    one, two = (rate_limiter_in(tmp_path, 1) for _ in range(2))

    def check():
        if two.clock.time > 1030:
            raise TimeoutError

    with one.acquire(), pytest.raises(TimeoutError), two.acquire(check):
        pass
    with sqlite3.connect(tmp_path / FILE) as database:
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        database.execute("DELETE FROM requests")
        database.execute(
            "INSERT INTO requests VALUES (NULL, ?, ?, ?, NULL)",
            (two._shared.account, ended.pid, two.clock.time),
        )
    database.close()
    start = two.clock.time
    send(two)

    assert 1 <= two.clock.time - start <= 1.2


def test_request_without_a_response_expires(tmp_path):
    """A suspended process does not stop the others for more than a minute."""
    rate_limiter = rate_limiter_in(tmp_path, 1)
    shared = rate_limiter._shared
    delay, _ = shared.acquire(1, lambda: 1000.0)
    rate_limiter.clock.time += 0.5
    send(rate_limiter)

    assert 0 == delay
    assert 1061 <= rate_limiter.clock.time <= 1062


def test_pause_holds_for_all_processes(tmp_path):
    """A pause of 7 s in one process holds in the other, and a shorter pause changes nothing."""
    clock = StillClock()
    one, two = (rate_limiter_in(tmp_path, 100, clock=clock) for _ in range(2))
    one.pause(7)
    one.pause(2)

    assert [7, 7] == send(two, one)


def test_429_of_one_process_pauses_all(tmp_path):
    """After a 429 for one explorer no explorer sends until Retry-After has passed."""
    fault, clock = "429_seconds?retry_after=2&times=1", SteppedClock()
    with FaultServer(fault) as server, ThreadPoolExecutor(2) as pool, ExitStack() as stack:
        calls = []
        for number in range(2):
            explorer = stack.enter_context(
                Explorer(server.url, api_key="a-key", rate=100, state=tmp_path, store=False)
            )
            explorer.rate_limiter.clock = clock
            calls.append(pool.submit(explorer.fetch, EPOCHS))
            clock.await_waiting(number + 1)
        clock.move(1.9)
        clock.await_waiting(2)
        before = len(server.seen)
        clock.move(0.2)
        for call in calls:
            call.result()

    assert (1, 3) == (before, len(server.seen))


@pytest.mark.parametrize("now", [0.0, 5.0, 1e9])
def test_restart_of_the_machine_blocks_no_request(tmp_path, now):
    """The time since the start begins at zero again: earlier entries are ignored."""
    before = rate_limiter_in(tmp_path, 2, clock=StillClock(5e5))
    before.pause(100)
    for _ in range(2):
        before._shared.acquire(2, before.clock.now)
    after = rate_limiter_in(tmp_path, 2, clock=StillClock(now))
    send(after, after)

    assert now == after.clock.time


def test_date_of_the_machine_does_not_matter(tmp_path, monkeypatch):
    """T26: the date moves back an hour or ahead a day between two requests: the rate stays."""
    clock = QuickClock()
    one, two = (rate_limiter_in(tmp_path, 1, clock=clock) for _ in range(2))
    real = time.time
    times = []
    for rate_limiter, shift in ((one, 0), (two, -3600), (one, 86_400)):
        monkeypatch.setattr(time, "time", lambda shift=shift: real() + shift)
        with rate_limiter.acquire():
            times.append(clock.now())

    assert 1 <= times[1] - times[0] <= 600
    assert 1 <= times[2] - times[1] <= 600


def test_file_is_private_and_does_not_contain_the_key(tmp_path):
    """Folder 0700 and files 0600 with any umask; no file holds the key or an unsalted hash."""
    folder = tmp_path / "state"
    before = os.umask(0)
    try:
        rate_limiter = rate_limiter_in(folder, key="a-very-secret-key")
        send(rate_limiter)
        rate_limiter.update(SECOND)
        files = list(folder.iterdir())
        modes = {stat.S_IMODE(file.stat().st_mode) for file in files}
        written = b"".join(file.read_bytes() for file in files)
    finally:
        os.umask(before)
    other = rate_limiter_in(tmp_path / "other", key="a-very-secret-key")
    send(other)

    assert (0o700, {0o600}) == (stat.S_IMODE(folder.stat().st_mode), modes)
    assert FILE in {file.name for file in files}
    assert not any(part in written for part in (b"a-very", b"secret", b"-key"))
    assert other._shared.account != rate_limiter._shared.account


@pytest.mark.parametrize("damage", ["a folder", "no folder"])
def test_unusable_file_logs_one_warning(tmp_path, caplog, damage):
    """Each process then limits its own rate, and requests are sent as before."""
    folder = tmp_path / "state"
    if damage == "no folder":
        folder.write_text("in the way")
    else:
        (folder / FILE).mkdir(parents=True)
    rate_limiter = rate_limiter_in(folder, 2)
    with caplog.at_level(logging.WARNING):
        times = send(*[rate_limiter] * 5)
    rate_limiter.update(SECOND)

    assert [0, 0, 1, 1, 2] == times
    assert 1 == len(caplog.records)
    assert "BEACONFRAMES_STATE" in caplog.text
    assert 5 == rate_limiter.reported_limits.per_second


def test_file_damaged_during_use_logs_one_warning(tmp_path, caplog):
    """Damage to the file does not end a call."""
    rate_limiter = rate_limiter_in(tmp_path, 1000)
    send(rate_limiter)
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("DROP TABLE requests")
    database.close()
    send(rate_limiter, rate_limiter)

    assert 1 == len(caplog.records)


WRITE = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=0)
try:
    database.execute("BEGIN IMMEDIATE")
except sqlite3.OperationalError as error:
    print(error)
"""


def test_explorers_of_one_process_keep_their_locks(tmp_path, monkeypatch):
    """While one writes, another one opens the file: other processes still cannot write to it.

    The system drops all locks that a process has on a file if it closes any descriptor of it.
    """
    monkeypatch.setattr(shared_rate_limit, "LOCK_TIMEOUT", 0.01)
    one, two = (SharedRateLimit(tmp_path, "one.example", Secret("a-key")) for _ in range(2))
    one.reported_limits()
    one._database.execute("BEGIN IMMEDIATE")
    two.reported_limits()
    command = [sys.executable, "-c", WRITE, str(tmp_path / FILE)]
    other = subprocess.run(command, capture_output=True, text=True, check=True)
    one._database.execute("COMMIT")
    one.close()

    assert "database is locked\n" == other.stdout


FORKED = """
import multiprocessing, sys, time
from pathlib import Path
from beaconframes.secret import Secret
from beaconframes.http import shared_rate_limit
from beaconframes.http.shared_rate_limit import SharedRateLimit
shared_rate_limit.LOCK_TIMEOUT = 60  # the machine may be busy
def open_file():
    return SharedRateLimit(Path(sys.argv[1]), "one.example", Secret("a-key"))
def use():
    for _ in range(30):
        shared = open_file()
        _, permit = shared.acquire(1e9, time.monotonic)
        shared.start_window(permit, time.monotonic())
        shared.close()
inherited = open_file()
inherited.reported_limits()
children = [multiprocessing.get_context("fork").Process(target=use) for _ in range(3)]
for child in children:
    child.start()
inherited.close()
for child in children:
    child.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_forked_processes_do_not_damage_the_file(tmp_path):
    """Children of a process with an open explorer open their own, and their parent closes its."""
    command = [sys.executable, "-c", FORKED, str(tmp_path)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    warned = [process.communicate()[1] for process in running]
    database = sqlite3.connect(tmp_path / FILE)
    check = database.execute("PRAGMA integrity_check").fetchone()
    (count,) = database.execute("SELECT count(*) FROM salt").fetchone()
    database.close()

    assert [""] * 3 == warned
    assert (("ok",), 1) == (check, count)
    assert [] == list(tmp_path.glob("*.damaged-*"))


SEVERAL = """
import sys, threading, time
from beaconframes.client import Explorer
from beaconframes.endpoint import Request
url, folder, count, seconds = sys.argv[1:]
epochs = Request("GET", "/api/v1/epoch/7", endpoint="GET /api/v1/epoch/{epoch}")
end = time.monotonic() + float(seconds)
def send(number):
    while time.monotonic() < end:
        with Explorer(url, api_key="a-key", rate=10, state=folder, store=False) as explorer:
            for _ in range(1 + 4 * number):
                explorer.fetch(epochs)
threads = [threading.Thread(target=send, args=[number]) for number in range(int(count))]
for thread in threads:
    thread.start()
"""


@pytest.mark.parametrize(
    ("processes", "explorers", "seconds"),
    [
        pytest.param(3, 2, 4, marks=pytest.mark.more),
        pytest.param(12, 3, 120, marks=pytest.mark.long),
    ],
)
def test_processes_with_several_explorers_share_one_healthy_file(
    tmp_path, processes, explorers, seconds
):
    """Half of the processes live long, the others a second each; explorers come and go in all."""
    folder = tmp_path / "state"

    def run(server, number):
        end = time.monotonic() + seconds
        errors = []
        while (left := end - time.monotonic()) > 0:
            life = left if number % 2 else min(left, 1)
            command = [sys.executable, "-c", SEVERAL, server.url, str(folder), str(explorers)]
            done = subprocess.run([*command, str(life)], capture_output=True, check=False)
            errors.append(done.stderr)
        return errors

    with FaultServer() as server, ThreadPoolExecutor(processes) as pool:
        errors = list(pool.map(lambda number: run(server, number), range(processes)))
        most = max_requests_in_window(server.seen)
        sent = len(server.seen)

    assert {b""} == {text for texts in errors for text in texts}
    assert most <= 10
    assert sent >= 8 * seconds
    assert [] == list(folder.glob("*.damaged-*"))
    assert ("ok",) == sqlite3.connect(folder / FILE).execute("PRAGMA integrity_check").fetchone()


DAMAGE = {
    "no database": lambda file: file.write_bytes(b"something else " * 1000),
    "a page of zeros": lambda file: file.write_bytes(
        file.read_bytes()[:4096] + bytes(file.stat().st_size - 4096)
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_file_is_moved_aside_once(tmp_path, caplog, damage):
    """One process renames it and logs a warning; all of them share a new file."""
    users = [rate_limiter_in(tmp_path, 3) for _ in range(3)]
    send(users[0])
    users[0]._shared.close()
    DAMAGE[damage](tmp_path / FILE)

    with caplog.at_level(logging.WARNING):
        times = send(*users, users[0])

    assert [0, 0, 0, 1] == times
    (record,) = caplog.records
    (moved,) = tmp_path.glob(f"{FILE}.damaged-*[0-9]")
    assert moved.name in record.getMessage()
    (count,) = sqlite3.connect(tmp_path / FILE).execute("SELECT count(*) FROM requests").fetchone()
    assert count >= 1


def test_file_that_replaces_a_damaged_one_stays(tmp_path, caplog):
    """A second process that noticed the damage finds a healthy file under the name."""
    rate_limiter_in(tmp_path).update(SECOND)
    move_damaged_file(tmp_path / FILE)

    assert 5 == rate_limiter_in(tmp_path).rate
    assert [] == caplog.records


def test_file_that_was_moved_or_removed_is_opened_again(tmp_path):
    """A process that has the old file open shares the new one from its next request on."""
    first, second = (rate_limiter_in(tmp_path, 2) for _ in range(2))
    send(first, second)
    (tmp_path / FILE).replace(tmp_path / "old")

    assert [0, 0, 1] == send(second, first, second)


def test_answer_to_a_request_before_the_damage_frees_no_other_permit(tmp_path):
    """The number of a request in the damaged file is not that of one in the new file."""
    one, two = (SharedRateLimit(tmp_path, "one.example", Secret("a-key")) for _ in range(2))
    _, before = one.acquire(1, lambda: 1000.0)
    (tmp_path / FILE).replace(tmp_path / "old")
    two.acquire(1, lambda: 1000.0)
    one.start_window(before, 1000.5)

    assert 0 < two.acquire(1, lambda: 1001.6)[0]


def test_file_that_is_moved_during_a_transaction_is_opened_again(tmp_path, caplog):
    """SQLite refuses to write to a file that has moved; the request is recorded in the new one."""
    shared = SharedRateLimit(tmp_path, "one.example", Secret("a-key"))
    shared.acquire(1, lambda: 1000.0)

    def move():
        if not (tmp_path / "old").exists():
            (tmp_path / FILE).replace(tmp_path / "old")
        return 1001.5

    assert 0 == shared.acquire(10, move)[0]
    other = SharedRateLimit(tmp_path, "one.example", Secret("a-key"))

    assert 0 < other.acquire(1, lambda: 1002.0)[0]
    assert [] == caplog.records


def test_file_with_a_write_ahead_log_is_used(tmp_path):
    """Files of earlier versions have one."""
    rate_limiter_in(tmp_path).update(SECOND)
    database = sqlite3.connect(tmp_path / FILE)
    assert ("wal",) == database.execute("PRAGMA journal_mode = WAL").fetchone()
    database.close()

    assert 5 == rate_limiter_in(tmp_path).rate
    assert not (tmp_path / f"{FILE}-wal").exists()


@pytest.mark.more
def test_processes_that_start_together_share_the_file(tmp_path):
    """Four processes create the file at the same moment, fifty times: all of them use it."""
    command = [sys.executable, "-c", SIMULTANEOUS, str(tmp_path)]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for process in running:
        assert "ready\n" == process.stdout.readline()
    for process in running:
        process.stdin.write(f"{time.monotonic() + 0.1}\n")
        process.stdin.flush()
    accounts = [process.communicate()[0].split() for process in running]

    assert 50 == len(set(accounts[0]))
    assert [accounts[0]] * 4 == accounts


def test_locked_file_delays_a_request_briefly(tmp_path, caplog, monkeypatch):
    """A suspended process that holds the lock delays others for LOCK_TIMEOUT at most."""
    monkeypatch.setattr(shared_rate_limit, "LOCK_TIMEOUT", 0.1)
    rate_limiter = rate_limiter_in(tmp_path, 10)
    send(rate_limiter_in(tmp_path, 10))
    database = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    send(rate_limiter)
    database.execute("COMMIT")
    database.close()

    assert 1 == len(caplog.records)


# --- when the limit is shared, and what it costs ------------------------------------------------


def test_local_service_without_limits_has_no_file(explorer, tmp_path, monkeypatch):
    """A local service without a key and without limits creates no file."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    client = Explorer(explorer.url)
    client.fetch(EPOCHS)
    client.close()

    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("reason", ["limits", "a key"])
def test_service_with_limits_or_a_key_has_one(tmp_path, monkeypatch, reason):
    """Limits in the headers or a key create the file."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with FaultServer("learn?limit=5" if reason == "limits" else "") as server:
        with Explorer(server.url, api_key="a-key" if reason == "a key" else None) as client:
            client.fetch(EPOCHS)

        assert [tmp_path / "beaconframes" / FILE] == list(tmp_path.rglob(FILE))


@pytest.mark.parametrize("how", ["argument", "variable"])
def test_state_argument_and_variable_choose_the_folder(tmp_path, monkeypatch, how):
    """`state=` and its variable name the folder; false means that no file is created."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    with FaultServer() as server:
        for value in (str(tmp_path / "mine"), False):
            if how == "variable":
                monkeypatch.setenv("BEACONFRAMES_STATE", str(value).lower())
            state = value if how == "argument" else None
            with Explorer(server.url, api_key="a-key", state=state) as client:
                client.fetch(EPOCHS)

    folder = tmp_path / "mine"
    assert [folder / FILE] == list(tmp_path.rglob(FILE))


def test_it_costs_little(tmp_path):
    """A request takes three short transactions, also after hundreds of requests."""
    rate_limiter = rate_limiter_in(tmp_path, 1e6)
    send(rate_limiter)
    statements = []
    rate_limiter._shared._database._connection.set_trace_callback(statements.append)
    counts = []
    for _ in range(300):
        statements.clear()
        with rate_limiter.acquire():
            rate_limiter.update(SECOND)
        counts.append(len(statements))

    # Each has BEGIN and COMMIT; the first one reads, deletes, counts and inserts.
    assert {6 + 2 + 4} == set(counts)


# --- the quota -----------------------------------------------------------------------------------


def month_headers(left, *, limit=1000, date=None):
    """Return the headers of a service with a monthly limit."""
    date = datetime.now(UTC) if date is None else date
    return SECOND | {
        "x-ratelimit-limit-second": "5",
        "x-ratelimit-limit-minute": "200",
        "x-ratelimit-limit-hour": "200",
        "x-ratelimit-limit-day": str(limit),
        "x-ratelimit-limit-month": str(limit),
        "x-ratelimit-remaining-month": str(left),
        "date": f"{date:%a, %d %b %Y %H:%M:%S} GMT",
    }


def test_limits_are_parsed_from_headers():
    """A minute that repeats the hour, and a day that repeats the month, are no limits."""
    limits = parse_rate_limit_headers(month_headers(995))
    spent = parse_rate_limit_headers(
        {"ratelimit-window": "month", "ratelimit-limit": "9", "ratelimit-remaining": "0"}
    )

    assert (5, None, 200, 1000, 995) == (
        limits.per_second, limits.per_minute, limits.per_hour, limits.per_month, limits.remaining,
    )  # fmt: skip
    assert (9, 0) == (spent.per_month, spent.remaining)
    assert isinstance(limits.reported_at, int)
    assert parse_rate_limit_headers({"content-type": "text/html"}).reported_at is None


def test_remaining_requests_only_decrease_within_a_month(tmp_path):
    """Late responses do not raise them; another plan and a new month do."""
    rate_limiter = rate_limiter_in(tmp_path)
    remaining = []
    for left, limit, date in (
        (995, 1000, datetime(2026, 11, 20, tzinfo=UTC)),
        (996, 1000, datetime(2026, 11, 20, tzinfo=UTC)),
        (4990, 5000, datetime(2026, 11, 21, tzinfo=UTC)),
        (4999, 5000, datetime(2026, 12, 1, tzinfo=UTC)),
    ):
        rate_limiter.update(month_headers(left, limit=limit, date=date))
        remaining.append(rate_limiter.reported_limits.remaining)

    assert [995, 995, 4990, 4999] == remaining
    assert ("2026-12", 1) == (rate_limiter.reported_limits.month, rate_limiter.reported_limits.used)


def test_failed_requests_are_not_counted():
    """The service counts neither its own failures nor rate-limited requests."""
    assert [1, 1, 0, 0] == [
        parse_rate_limit_headers({}, code).used for code in (200, 400, 429, 503)
    ]


def test_quota_needs_no_request(tmp_path):
    """The quota comes from an earlier process's responses, and it never shows the key."""
    with FaultServer() as server:
        settings = {"api_key": "key-WXYZ", "state": tmp_path, "store": False}
        explorer = Explorer(server.url, **settings)
        unknown = bf.quota(explorer)
        explorer.rate_limiter.update(month_headers(990))
        quota = bf.quota(Explorer(server.url, **settings))
        requests = len(server.seen)
    shown = f"{quota}{quota._repr_html_()}{quota!r}"

    assert 0 == requests
    assert (None, None, 0) == (unknown.month, unknown.left, unknown.used)
    assert "no response of the service so far" in str(unknown)
    assert (5, 200, 1000, 10, 990) == (
        quota.second, quota.hour, quota.month, quota.used, quota.left,
    )  # fmt: skip
    assert next_month(datetime.now(UTC)) == quota.resets_at
    assert "990 this month" in shown
    assert "the service, on" in shown
    assert "WXYZ" not in shown


def test_spent_quota_sends_nothing_for_an_hour(tmp_path, monkeypatch):
    """Every process with the key raises QuotaSpent; an hour later a request checks the limit."""
    with FaultServer() as server:
        settings = {"api_key": "key-WXYZ", "state": tmp_path, "store": False}
        Explorer(server.url, **settings).rate_limiter.update(month_headers(0))
        with pytest.raises(errors.QuotaSpent) as caught:
            Explorer(server.url, **settings).fetch(EPOCHS)
        before = len(server.seen)
        monkeypatch.setattr(rate_limiter_module, "QUOTA_CHECK_INTERVAL", 0)
        Explorer(server.url, **settings).fetch(EPOCHS)
        requests = len(server.seen)

    assert (0, 1) == (before, requests)
    reset = next_month(datetime.now(UTC))
    assert f"resets on {reset:%Y-%m-%d}" in str(caught.value)
    assert 0 < caught.value.retry_after <= 31 * 86_400


@pytest.mark.parametrize(
    "headers", [{"left": 1}, {"left": 0, "date": datetime(2026, 10, 1, tzinfo=UTC)}]
)
def test_quota_of_another_month_or_not_yet_spent(tmp_path, headers):
    """The last request of a month is sent, and so is the first one of the next month."""
    with FaultServer() as server:
        settings = {"api_key": "key-WXYZ", "state": tmp_path, "store": False}
        Explorer(server.url, **settings).rate_limiter.update(month_headers(**headers))
        Explorer(server.url, **settings).fetch(EPOCHS)

    assert 1 == len(server.seen)


def test_quota_of_a_new_month_is_unused(tmp_path):
    """What the service reported last month does not count, nor do the requests counted then."""
    last_month = datetime.now(UTC).replace(day=1) - timedelta(days=1)
    date = {"date": f"{last_month:%a, %d %b %Y %H:%M:%S} GMT"}
    with FaultServer() as server:
        for folder, headers in ("limits", month_headers(5, date=last_month)), ("none", date):
            settings = {"api_key": "a-key", "state": tmp_path / folder, "store": False}
            explorer = Explorer(server.url, **settings)
            explorer.rate_limiter.update(headers)
            quota = bf.quota(explorer)
            left = 1000 if folder == "limits" else None
            assert (0, left) == (quota.used, quota.left), folder


def test_quota_with_more_requests_left_than_its_limit_is_unused(tmp_path):
    """A service may grant more for a while; no number of used requests is negative."""
    with FaultServer() as server:
        explorer = Explorer(server.url, api_key="a-key", state=tmp_path, store=False)
        explorer.rate_limiter.update(month_headers(1200))
        quota = bf.quota(explorer)

    assert (0, 1200) == (quota.used, quota.left)


def test_quota_counts_requests_without_limits(tmp_path):
    """If the service states no limits, the quota counts the requests of this machine."""
    with (
        FaultServer() as server,
        bf.connect(server.url, api_key="a-key", state=tmp_path, store=False) as explorer,
    ):
        for _ in range(3):
            explorer.fetch(EPOCHS)
        quota = bf.quota()

    assert (3, None, None) == (quota.used, quota.left, quota.month)
    assert "counted on this machine" in str(quota)


def test_plan_states_its_share_of_the_month(tmp_path, running):
    """The plan compares its requests with those that remain this month."""
    service = running.service
    with Explorer(running.url, chain=service.chain, head=service.head, state=tmp_path) as explorer:
        explorer.rate_limiter.update(month_headers(10))
        plan = bf.plan(bf.load_income_history, range(10), since=0, explorer=explorer)

    assert (5, 10, 1000, 0.5) == (
        plan.requests,
        plan.month_left,
        plan.month_limit,
        plan.month_share,
    )


@pytest.mark.parametrize(
    ("now", "reset"),
    [((2026, 11, 30), (2026, 12, 1)), ((2026, 12, 31), (2027, 1, 1)), ((2027, 1, 1), (2027, 2, 1))],
)
def test_quota_resets_on_the_first_of_the_month(now, reset):
    """The month after December is January of the next year."""
    assert datetime(*reset, tzinfo=UTC) == next_month(datetime(*now, 23, tzinfo=UTC))
