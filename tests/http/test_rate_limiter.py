"""The permitted rate is kept as the service counts it, and used."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from beaconframes.client import Explorer
from beaconframes.endpoint import Envelope, Request
from beaconframes.errors import UsageError
from beaconframes.http.rate_limiter import Clock, RateLimiter
from beaconframes.http.session import Session
from beaconframes.http.transport import Timeouts

from ..support.faults import FaultServer, busiest

EPOCHS = Request("GET", "/api/v1/epoch/7", endpoint="GET /api/v1/epoch/{epoch}")
BLOCKS = Request("POST", "/api/v2/ethereum/x", body=b"{}", envelope=Envelope.V2)


class StillClock(Clock):
    """A clock that stands still until it is waited for."""

    def __init__(self):
        self.time = 1000.0

    def now(self):
        return self.time

    def wait(self, condition, seconds):
        self.time += seconds


def moments(rate_limiter, count, *, latency=0.0):
    """When so many requests in a row may be sent, on a clock that only waiting moves."""
    found = []
    for _ in range(count):
        with rate_limiter.acquire():
            found.append(rate_limiter.clock.now() - 1000)
            rate_limiter.clock.time += latency
    return [round(moment, 6) for moment in found]


def test_rate_is_kept_by_threads():
    """8 threads at 10/s: the server counts 10 in no second more, and every request once."""
    with FaultServer() as server, ThreadPoolExecutor(8) as pool:
        session = Session(server.url, rate=10)
        list(pool.map(lambda _: session.fetch(EPOCHS), range(50)))
        session.close()

    assert busiest(server.seen) <= 10
    assert 50 == len(server.seen)


def test_rate_is_used():
    """At 10/s the next ten go as soon as they may: nothing of the rate is left lying."""
    rate_limiter = RateLimiter(10, clock=StillClock())

    assert [n // 10 for n in range(600)] == moments(rate_limiter, 600)


@pytest.mark.long
def test_rate_is_used_by_threads():
    """8 threads at 10/s use 95 % of the rate; only a machine without other work can show it."""
    with FaultServer() as server, ThreadPoolExecutor(8) as pool:
        session = Session(server.url, rate=10)
        list(pool.map(lambda _: session.fetch(EPOCHS), range(50)))
        session.close()

    arrived = sorted(seen.arrived for seen in server.seen)
    # The fifth burst of ten may be sent after four windows.
    assert 40 / (arrived[40] - arrived[0]) >= 9.5


def test_latency_makes_it_slower_but_never_faster_than_permitted():
    """Answers that take 0.3 s: no second with more than 10, and at most 8 connections."""
    with FaultServer(latency=0.3) as server, ThreadPoolExecutor(12) as pool:
        session = Session(server.url, rate=10)
        list(pool.map(lambda _: session.fetch(EPOCHS), range(15)))
        session.close()

    assert busiest(server.seen) <= 10
    assert server.most_open <= 8


@pytest.mark.long
def test_rate_is_used_as_far_as_latency_allows():
    """Answers that take 0.4 s, at 10/s: no violation, and more than 6 a second."""
    with FaultServer(latency=0.4) as server, ThreadPoolExecutor(12) as pool:
        session = Session(server.url, rate=10)
        begun = time.monotonic()
        list(pool.map(lambda _: session.fetch(EPOCHS), range(30)))
        took = time.monotonic() - begun
        session.close()

    assert busiest(server.seen) <= 10
    assert server.most_open <= 8
    assert 30 / took >= 6


@pytest.mark.more
def test_both_generations_are_counted_together():
    """One key, one allowance: V1 and V2 in turn, 8 threads, and no second with more than 5."""
    with (
        FaultServer() as server,
        Explorer(server.url, rate=5, state=False) as explorer,
        ThreadPoolExecutor(8) as pool,
    ):
        list(pool.map(lambda n: explorer.fetch(BLOCKS if n % 2 else EPOCHS), range(16)))

    assert {True, False} == {seen.v2 for seen in server.seen}
    assert busiest(server.seen) <= 5


def test_wait_and_deadline_do_not_follow_the_date(monkeypatch):
    """The date jumps by a day while a 429 is waited for: that wait stays one of a second."""
    with FaultServer("429_seconds?retry_after=1&times=1") as server:
        session = Session(server.url, rate=1000, timeouts=Timeouts(total=20))
        real = time.time
        begun = time.monotonic()
        jumped = iter([86_400.0, -3600.0])
        timer = threading.Timer(
            0.3, lambda: monkeypatch.setattr(time, "time", lambda: real() + next(jumped, 0.0))
        )
        timer.start()
        session.fetch(EPOCHS)
        session.close()
        timer.join()

    assert 1 <= time.monotonic() - begun <= 20


def test_slot_is_free_one_window_after_its_answer():
    """A window begins when the answer does: the request arrived before that."""
    rate_limiter = RateLimiter(2, clock=StillClock())

    assert [0, 0.25, 1.25, 1.5, 2.5] == moments(rate_limiter, 5, latency=0.25)


def test_answer_begins_a_window_however_long_its_body_takes():
    """A slow body delays nobody: its request was counted when its headers came."""
    rate_limiter = RateLimiter(1, clock=StillClock())
    with rate_limiter.acquire() as permit:
        permit.start_window()
        rate_limiter.clock.time += 5

    assert [5] == moments(rate_limiter, 1)


def test_request_under_way_holds_its_slot():
    """Nobody knows when a request without an answer will arrive, so its slot stays taken."""
    rate_limiter = RateLimiter(1, clock=StillClock())

    def check():
        if rate_limiter.clock.time > 1060:
            raise TimeoutError

    with rate_limiter.acquire(), pytest.raises(TimeoutError), rate_limiter.acquire(check):
        pass


@pytest.mark.parametrize(
    ("rate", "expected"),
    [(1, [0, 1, 2]), (0.5, [0, 2, 4]), (2.9, [0, 0, 1, 1, 2]), (float("inf"), [0] * 50)],
)
def test_rate_becomes_slots_and_a_window(rate, expected):
    """Whole requests per second, or one request per longer window."""
    assert expected == moments(RateLimiter(rate, clock=StillClock()), len(expected))


@pytest.mark.parametrize("rate", [0, -1, float("nan")])
def test_impossible_rate_is_refused(rate):
    """A rate is above zero; anything else would wait for ever."""
    with pytest.raises(UsageError, match="not a positive number"):
        RateLimiter(rate)


def test_rate_is_learned_from_the_service():
    """One request at a time until the first answer says how many there may be."""
    with FaultServer("learn?limit=5") as server, ThreadPoolExecutor(8) as pool:
        session = Session(server.url)
        list(pool.map(lambda _: session.fetch(EPOCHS), range(8)))
        session.close()

    assert 5 == session.rate_limiter.rate
    assert busiest(server.seen) <= 5


def test_given_rate_is_not_overruled():
    """What the user said stands."""
    rate_limiter = RateLimiter(3)
    rate_limiter.update({"ratelimit-limit": "10", "ratelimit-window": "second"})

    assert 3 == rate_limiter.rate


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"ratelimit-limit": "20"},
        {"ratelimit-limit": "1000", "ratelimit-window": "month"},
        {"ratelimit-limit": "0", "ratelimit-window": "second"},
        {"ratelimit-limit": "٣", "ratelimit-window": "second"},
        {"ratelimit-limit": "9" * 5000, "ratelimit-window": "second"},
    ],
)
def test_other_headers_teach_no_rate(headers):
    """Only the limit of the second's window is a rate."""
    rate_limiter = RateLimiter()
    rate_limiter.update(headers)

    assert rate_limiter.rate is None


def test_lower_rate_counts_what_was_sent_before():
    """Five requests, then the service says two a second: the next one waits for three slots."""
    rate_limiter = RateLimiter(clock=StillClock())
    moments(rate_limiter, 5)
    rate_limiter.update({"ratelimit-limit": "2", "ratelimit-window": "second"})

    assert [1, 1, 2] == moments(rate_limiter, 3)


def test_hold_lets_nobody_send():
    """After a 429 everyone waits, and a shorter hold does not shorten a longer one."""
    rate_limiter = RateLimiter(10, clock=StillClock())
    rate_limiter.pause(7)
    rate_limiter.pause(2)

    assert [7, 7] == moments(rate_limiter, 2)


def test_wall_clock_does_not_matter(monkeypatch):
    """Setting the computer's clock back an hour delays nothing."""
    rate_limiter = RateLimiter(1000)
    with rate_limiter.acquire():
        pass
    monkeypatch.setattr(time, "time", lambda: 0.0)
    begun = time.monotonic()
    with rate_limiter.acquire():
        pass

    assert time.monotonic() - begun < 20


def test_wait_for_a_slot_can_be_ended():
    """What *check* raises ends the wait soon, and the slot is not taken."""
    rate_limiter = RateLimiter(10)
    rate_limiter.pause(60)
    stop = threading.Event()

    def check():
        if stop.is_set():
            raise KeyboardInterrupt

    threading.Timer(0.1, stop.set).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), rate_limiter.acquire(check):
        pass

    assert time.monotonic() - begun < 20
