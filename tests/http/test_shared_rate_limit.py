"""Processes that use one key keep to its rate together, and remember what it allows."""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime

import pytest

import beaconframes as bf
from beaconframes import errors
from beaconframes.client import Explorer
from beaconframes.config import Secret
from beaconframes.endpoint import Request
from beaconframes.http import shared_rate_limit
from beaconframes.http.rate_limit_headers import next_month, parse_rate_limit_headers
from beaconframes.http.rate_limiter import Clock, RateLimiter
from beaconframes.http.shared_rate_limit import FILE, SharedRateLimit

from ..support.faults import UNDER_WAY, FaultServer, busiest, sent_while_told_to_wait

EPOCHS = Request("GET", "/api/v1/epoch/7", endpoint="GET /api/v1/epoch/{epoch}")
THIS_MONTH = f"{datetime.now(UTC):%Y-%m}"
SECOND = {"ratelimit-limit": "5", "ratelimit-window": "second"}
PROGRAM = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from beaconframes.client import Explorer
from beaconframes.endpoint import Request
url, folder, rate, threads, seconds = sys.argv[1:]
epochs = Request("GET", "/api/v1/epoch/7", endpoint="GET /api/v1/epoch/{epoch}")
with Explorer(url, api_key="a-key", rate=float(rate) or None, state=folder, store=False) as it:
    print("ready", flush=True)
    end = time.monotonic() + float(sys.stdin.readline())
    def go(_):
        while time.monotonic() < end:
            it.fetch(epochs)
    with ThreadPoolExecutor(int(threads)) as pool:
        list(pool.map(go, range(int(threads))))
"""


AT_ONCE = """
import sys, time
from pathlib import Path
from beaconframes.http.shared_rate_limit import SharedRateLimit
from beaconframes.config import Secret
print("ready", flush=True)
begin = float(sys.stdin.readline())
for number in range(50):
    while time.monotonic() < begin + number / 50:
        pass
    shared = SharedRateLimit(Path(sys.argv[1], str(number)), "one.example", Secret("a-key"))
    shared.acquire(1000, time.monotonic)
    print(shared.account if shared._folder else "alone", flush=True)
    shared.close()
"""


class StillClock(Clock):
    """A clock that stands still until it is waited for."""

    def __init__(self, begin=1000.0):
        self.time = begin

    def now(self):
        return self.time

    def wait(self, condition, seconds):
        self.time += seconds


def pacer_in(folder, rate=None, *, clock=None, key="a-key", host="one.example", **options):
    """The pacer of a process of its own, as far as the file can tell."""
    shared = SharedRateLimit(folder, host, None if key is None else Secret(key))
    return RateLimiter(rate, clock=clock or StillClock(), shared_rate_limit=shared, **options)


def send(*pacers):
    """When each of these may send, one after the other, on one clock; answered at once."""
    found = []
    for rate_limiter in pacers:
        with rate_limiter.acquire():
            found.append(round(rate_limiter.clock.now() - 1000, 3))
    return found


def processes(server, folder, *, rate, seconds, threads=8, count=2):
    """Let so many processes ask as fast as they may, all beginning together."""
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
    assert [0] * count == [process.wait(seconds + 30) for process in running]
    for process in running:
        process.stdin.close()
        process.stdout.close()


def used(server, seconds):
    """Which share of 10 requests a second the server saw in the first seconds."""
    first = min(seen.arrived for seen in server.seen)
    return sum(seen.arrived < first + seconds for seen in server.seen) / (10 * seconds)


@pytest.mark.more
def test_two_processes_with_eight_threads_keep_to_the_rate(tmp_path):
    """Four seconds at 10/s: never eleven in a second by the server's count."""
    with FaultServer() as server:
        processes(server, tmp_path, rate=10, seconds=4)

    assert busiest(server.seen) <= 10
    assert len(server.seen) > 10


@pytest.mark.long
@pytest.mark.parametrize("latency", [0.0, 0.4])
def test_two_processes_keep_to_the_rate_for_a_minute(tmp_path, latency):
    """60 s at 10/s with 8 threads in each of 2 processes: no violation, 95 % of the rate."""
    with FaultServer(latency=latency) as server:
        processes(server, tmp_path, rate=10, seconds=60)

    assert busiest(server.seen) <= 10
    # An answer that takes its time keeps a slot for as long.
    assert used(server, 58) >= (0.95 if not latency else 0.6)


def test_processes_learn_the_rate_from_each_other(tmp_path):
    """What one was told, the next one knows before it asks, and no other key or service does."""
    first = pacer_in(tmp_path)
    first.update(SECOND)

    assert 5 == pacer_in(tmp_path).rate
    assert [0] * 5 == send(*[pacer_in(tmp_path)] * 5)
    assert pacer_in(tmp_path, key="another").rate is None
    assert pacer_in(tmp_path, host="two.example").rate is None


def test_slots_of_one_process_are_taken_for_the_other(tmp_path):
    """Two a second, for both together; each has a window from its answer on."""
    clock = StillClock()
    one, two = (pacer_in(tmp_path, 2, clock=clock) for _ in range(2))

    assert [0, 0, 1, 1, 2] == send(one, two, two, one, one)


def test_request_under_way_elsewhere_holds_its_slot(tmp_path):
    """Nobody knows when it will arrive; when its process has died, a window after that is seen."""
    one, two = (pacer_in(tmp_path, 1) for _ in range(2))

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
    begun = two.clock.time
    send(two)

    assert 1 <= two.clock.time - begun <= 1.2


def test_request_that_nobody_hears_of_again_is_given_up(tmp_path):
    """A process that sleeps for ever does not stop the others: after a minute they go on."""
    rate_limiter = pacer_in(tmp_path, 1)
    shared = rate_limiter._shared
    delay, _ = shared.acquire(1, lambda: 1000.0)
    rate_limiter.clock.time += 0.5
    send(rate_limiter)

    assert 0 == delay
    assert 1061 <= rate_limiter.clock.time <= 1062


def test_wait_after_429_is_known_to_all(tmp_path):
    """One is told to wait for 7 s: the other waits as well, and a shorter wait shortens nothing."""
    clock = StillClock()
    one, two = (pacer_in(tmp_path, 100, clock=clock) for _ in range(2))
    one.pause(7)
    one.pause(2)

    assert [7, 7] == send(two, one)


def test_what_a_service_asks_of_one_all_processes_do(tmp_path):
    """A 429 that one process is answered with lets the other wait; nobody sends in between."""
    fault = "429_seconds?retry_after=2&times=1"
    with FaultServer(fault) as server:
        explorers = [
            Explorer(server.url, api_key="a-key", rate=100, state=tmp_path, store=False)
            for _ in range(2)
        ]
        first = threading.Thread(target=explorers[0].fetch, args=(EPOCHS,))
        first.start()
        while not (server.seen and server.seen[0].status == 429):
            time.sleep(0.01)
        time.sleep(UNDER_WAY)
        explorers[1].fetch(EPOCHS)
        first.join()
        for explorer in explorers:
            explorer.close()

    assert 3 == len(server.seen)
    assert 0 == sent_while_told_to_wait(server.seen)


@pytest.mark.parametrize("now", [0.0, 5.0, 1e9])
def test_machine_started_anew_hangs_nobody(tmp_path, now):
    """The time since its start begins at zero again, whatever was written before."""
    before = pacer_in(tmp_path, 2, clock=StillClock(5e5))
    before.pause(100)
    for _ in range(2):
        before._shared.acquire(2, before.clock.now)
    after = pacer_in(tmp_path, 2, clock=StillClock(now))
    send(after, after)

    assert now == after.clock.time


def test_date_of_the_machine_does_not_matter(tmp_path, monkeypatch):
    """Set back by an hour or ahead by a day between two requests: neither faster nor slower."""
    one, two = (pacer_in(tmp_path, 1, clock=Clock()) for _ in range(2))
    begun = time.monotonic()
    real = time.time
    found = []
    for rate_limiter, shift in ((one, 0), (two, -3600), (one, 86_400)):
        monkeypatch.setattr(time, "time", lambda shift=shift: real() + shift)
        with rate_limiter.acquire():
            found.append(time.monotonic() - begun)

    assert 1 <= found[1] - found[0] <= 20
    assert 1 <= found[2] - found[1] <= 20


def test_file_is_for_its_owner_alone_and_does_not_tell_the_key(tmp_path):
    """Folder 0700, files 0600, whatever the umask; the key is in none of them, nor is its hash."""
    folder = tmp_path / "state"
    before = os.umask(0)
    try:
        rate_limiter = pacer_in(folder, key="a-very-secret-key")
        send(rate_limiter)
        rate_limiter.update(SECOND)
        files = list(folder.iterdir())
        modes = {stat.S_IMODE(file.stat().st_mode) for file in files}
        written = b"".join(file.read_bytes() for file in files)
    finally:
        os.umask(before)
    other = pacer_in(tmp_path / "other", key="a-very-secret-key")
    send(other)

    assert (0o700, {0o600}) == (stat.S_IMODE(folder.stat().st_mode), modes)
    assert FILE in {file.name for file in files}
    assert not any(part in written for part in (b"a-very", b"secret", b"-key"))
    assert other._shared.account != rate_limiter._shared.account


@pytest.mark.parametrize("damage", ["no database", "a folder", "no folder"])
def test_file_that_cannot_be_used_costs_one_warning(tmp_path, caplog, damage):
    """Each process then keeps to the rate alone; nothing else is different."""
    folder = tmp_path / "state"
    if damage == "no folder":
        folder.write_text("in the way")
    elif damage == "a folder":
        (folder / FILE).mkdir(parents=True)
    else:
        folder.mkdir()
        (folder / FILE).write_bytes(b"something else " * 1000)
    rate_limiter = pacer_in(folder, 2)
    with caplog.at_level(logging.WARNING):
        moments = send(*[rate_limiter] * 5)
    rate_limiter.update(SECOND)

    assert [0, 0, 1, 1, 2] == moments
    assert 1 == len(caplog.records)
    assert "BEACONFRAMES_STATE" in caplog.text
    assert 5 == rate_limiter.known_limits.per_second


def test_file_that_breaks_later_costs_one_warning(tmp_path, caplog):
    """What happens to the file while it is used does not end a call."""
    rate_limiter = pacer_in(tmp_path, 1000)
    send(rate_limiter)
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("DROP TABLE requests")
    database.close()
    send(rate_limiter, rate_limiter)

    assert 1 == len(caplog.records)


def test_processes_that_begin_at_the_same_moment_share_the_file(tmp_path):
    """Whoever makes it, the other waits for that: none goes on alone, fifty times."""
    command = [sys.executable, "-c", AT_ONCE, str(tmp_path)]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for process in running:
        assert "ready\n" == process.stdout.readline()
    for process in running:
        process.stdin.write(f"{time.monotonic() + 0.1}\n")
        process.stdin.flush()
    found = [process.communicate()[0].split() for process in running]

    assert 50 == len(set(found[0]))
    assert [found[0]] * 4 == found


def test_one_that_holds_the_file_for_long_stops_nobody(tmp_path, caplog, monkeypatch):
    """A process that was stopped in its turn is not waited for more than a moment."""
    monkeypatch.setattr(shared_rate_limit, "LOCK_TIMEOUT", 0.1)
    rate_limiter = pacer_in(tmp_path, 10)
    send(pacer_in(tmp_path, 10))
    database = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    begun = time.monotonic()
    send(rate_limiter)
    database.execute("COMMIT")
    database.close()

    assert time.monotonic() - begun < 20
    assert 1 == len(caplog.records)


# --- which services it is for, and what it costs ------------------------------------------------


def test_local_service_without_limits_has_no_file(explorer, tmp_path, monkeypatch):
    """A service on this machine that needs no key leaves nothing behind."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    client = Explorer(explorer.url)
    client.fetch(EPOCHS)
    client.close()

    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("told", ["limits", "a key"])
def test_service_with_limits_or_a_key_has_one(tmp_path, monkeypatch, told):
    """As soon as it tells of limits, or is asked with a key."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with FaultServer("learn?limit=5" if told == "limits" else "") as server:
        with Explorer(server.url, api_key="a-key" if told == "a key" else None) as client:
            client.fetch(EPOCHS)

        assert [tmp_path / "beaconframes" / FILE] == list(tmp_path.rglob(FILE))


@pytest.mark.parametrize("how", ["argument", "variable"])
def test_folder_is_chosen_or_none_is_wanted(tmp_path, monkeypatch, how):
    """`state=` or its variable names the folder; false means none."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    with FaultServer() as server:
        for value in (str(tmp_path / "mine"), False):
            if how == "variable":
                monkeypatch.setenv("BEACONFRAMES_STATE", str(value).lower())
            state = value if how == "argument" else None
            with Explorer(server.url, api_key="a-key", state=state) as client:
                client.fetch(EPOCHS)

    name = tmp_path / "mine"
    assert [name / FILE] == list(tmp_path.rglob(FILE))


def test_it_costs_little(tmp_path):
    """Taking a slot and giving it back takes a millisecond of CPU at most, more when crowded."""
    rate_limiter = pacer_in(tmp_path, 1e6, clock=Clock())
    send(rate_limiter)
    begun = time.process_time()
    for _ in range(300):
        with rate_limiter.acquire():
            rate_limiter.update(SECOND)

    assert (time.process_time() - begun) / 300 < 0.003


# --- what is left -------------------------------------------------------------------------------


def month_headers(left, *, limit=1000, date=None):
    """The headers of an answer of a service with a limit of the month."""
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


def test_headers_tell_the_limits_that_there_are():
    """The minute repeats the hour and the day the month: neither is a limit of its own."""
    found = parse_rate_limit_headers(month_headers(995))
    spent = parse_rate_limit_headers(
        {"ratelimit-window": "month", "ratelimit-limit": "9", "ratelimit-remaining": "0"}
    )

    assert (5, None, 200, 1000, 995) == (
        found.second, found.minute, found.hour, found.monthly, found.left,
    )  # fmt: skip
    assert (9, 0) == (spent.monthly, spent.left)
    assert not parse_rate_limit_headers({"content-type": "text/html"}).anything


def test_answers_that_overtake_each_other_do_not_bring_requests_back(tmp_path):
    """Within a month less is left and never more, but for another plan; a new month begins anew."""
    rate_limiter = pacer_in(tmp_path)
    lefts = []
    for left, limit, date in (
        (995, 1000, datetime(2026, 11, 20, tzinfo=UTC)),
        (996, 1000, datetime(2026, 11, 20, tzinfo=UTC)),
        (4990, 5000, datetime(2026, 11, 21, tzinfo=UTC)),
        (4999, 5000, datetime(2026, 12, 1, tzinfo=UTC)),
    ):
        rate_limiter.update(month_headers(left, limit=limit, date=date))
        lefts.append(rate_limiter.known_limits.remaining)

    assert [995, 995, 4990, 4999] == lefts
    assert ("2026-12", 1) == (rate_limiter.known_limits.month, rate_limiter.known_limits.used)


def test_failures_do_not_count():
    """The service counts neither its own failures nor what it turned away."""
    assert [True, True, False, False] == [
        parse_rate_limit_headers({}, code).counts for code in (200, 400, 429, 503)
    ]


def test_quota_is_told_without_a_request(tmp_path):
    """Another process asked; this one shows what is left, and never the key."""
    with FaultServer() as server:
        asked = {"api_key": "key-WXYZ", "state": tmp_path, "store": False}
        explorer = Explorer(server.url, **asked)
        nothing = bf.quota(explorer)
        explorer.rate_limiter.update(month_headers(990))
        found = bf.quota(Explorer(server.url, **asked))
        requests = len(server.seen)
    shown = f"{found}{found._repr_html_()}{found!r}"

    assert 0 == requests
    assert (None, None, 0) == (nothing.month, nothing.left, nothing.used)
    assert "not been asked yet" in str(nothing)
    assert (5, 200, 1000, 10, 990) == (
        found.second, found.hour, found.month, found.used, found.left,
    )  # fmt: skip
    assert next_month(datetime.now(UTC)) == found.renewed
    assert "990 this month" in shown
    assert "the service, on" in shown
    assert "WXYZ" not in shown


def test_spent_month_fails_at_once_until_the_service_may_have_another_plan(tmp_path, monkeypatch):
    """Any process that shares the key knows; an hour later a request finds out how it is now."""
    with FaultServer() as server:
        asked = {"api_key": "key-WXYZ", "state": tmp_path, "store": False}
        Explorer(server.url, **asked).rate_limiter.update(month_headers(0))
        with pytest.raises(errors.QuotaSpent) as caught:
            Explorer(server.url, **asked).fetch(EPOCHS)
        without = len(server.seen)
        monkeypatch.setattr(rate_limiter, "QUOTA_CHECK_INTERVAL", 0)
        Explorer(server.url, **asked).fetch(EPOCHS)
        requests = len(server.seen)

    assert (0, 1) == (without, requests)
    renewed = next_month(datetime.now(UTC))
    assert f"renewed on {renewed:%Y-%m-%d}" in str(caught.value)
    assert 0 < caught.value.retry_after <= 31 * 86_400


@pytest.mark.parametrize(
    "headers", [{"left": 1}, {"left": 0, "date": datetime(2026, 10, 1, tzinfo=UTC)}]
)
def test_month_that_is_not_spent_or_is_over_stops_nobody(tmp_path, headers):
    """The last request of a month is sent, and so is the first of the next one."""
    with FaultServer() as server:
        asked = {"api_key": "key-WXYZ", "state": tmp_path, "store": False}
        Explorer(server.url, **asked).rate_limiter.update(month_headers(**headers))
        Explorer(server.url, **asked).fetch(EPOCHS)

    assert 1 == len(server.seen)


def test_quota_of_the_connected_explorer_and_of_requests_counted_here(tmp_path):
    """Where the service tells nothing, what was sent from this machine is counted."""
    with (
        FaultServer() as server,
        bf.connect(server.url, api_key="a-key", state=tmp_path, store=False) as explorer,
    ):
        for _ in range(3):
            explorer.fetch(EPOCHS)
        quota = bf.quota()

    assert (3, None, None) == (quota.used, quota.left, quota.month)
    assert "counted on this machine" in str(quota)


def test_plan_tells_the_share_of_the_month(tmp_path, running):
    """What a call takes of what is left, known from an answer to an earlier process."""
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
    ("now", "renewed"),
    [((2026, 11, 30), (2026, 12, 1)), ((2026, 12, 31), (2027, 1, 1)), ((2027, 1, 1), (2027, 2, 1))],
)
def test_month_ends_at_the_first_of_the_next(now, renewed):
    """Also at the end of a year."""
    assert datetime(*renewed, tzinfo=UTC) == next_month(datetime(*now, 23, tzinfo=UTC))
