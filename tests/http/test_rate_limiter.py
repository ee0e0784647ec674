"""The rate limiter: it uses the permitted rate and never exceeds it."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from beaconframes.client import Explorer
from beaconframes.endpoint import Envelope, Request
from beaconframes.errors import UsageError
from beaconframes.http.rate_limiter import RateLimiter
from beaconframes.http.session import Session

from ..support.faults import (
    FastClock,
    FaultServer,
    QuickClock,
    StillClock,
    max_requests_in_window,
)

EPOCHS = Request("GET", "/api/v1/epoch/7", endpoint="GET /api/v1/epoch/{epoch}")
BLOCKS = Request("POST", "/api/v2/ethereum/x", body=b"{}", envelope=Envelope.V2)


def send_times(rate_limiter, count, *, latency=0.0):
    """Return when *count* requests in a row are sent, in seconds from now."""
    times = []
    for _ in range(count):
        with rate_limiter.acquire():
            times.append(rate_limiter.clock.now() - 1000)
            rate_limiter.clock.time += latency
    return [round(moment, 6) for moment in times]


def test_threads_do_not_exceed_the_rate():
    """T27: 8 threads at 10/s: the server counts at most 10 requests in any second."""
    with FaultServer() as server, ThreadPoolExecutor(8) as pool:
        session = Session(server.url, rate=10, clock=QuickClock())
        list(pool.map(lambda _: session.fetch(EPOCHS), range(50)))
        session.close()

    assert max_requests_in_window(server.seen, 1 / QuickClock.SPEED) <= 10
    assert 50 == len(server.seen)


def test_full_rate_is_used():
    """At 10/s ten requests are sent at the start of each second."""
    rate_limiter = RateLimiter(10, clock=StillClock())

    assert [n // 10 for n in range(600)] == send_times(rate_limiter, 600)


@pytest.mark.long
def test_threads_use_the_rate():
    """T27: 8 threads at 10/s use 95 % of the rate, on a machine without other load."""
    with FaultServer() as server, ThreadPoolExecutor(8) as pool:
        session = Session(server.url, rate=10)
        list(pool.map(lambda _: session.fetch(EPOCHS), range(50)))
        session.close()

    arrived = sorted(seen.arrived for seen in server.seen)
    # The fifth ten requests may be sent after four windows.
    assert 40 / (arrived[40] - arrived[0]) >= 9.5


@pytest.mark.more
def test_latency_does_not_exceed_the_rate():
    """T31: responses after 0.3 s: at most 10 requests in any second, on at most 8 connections."""
    with FaultServer(latency=0.3) as server, ThreadPoolExecutor(12) as pool:
        session = Session(server.url, rate=10)
        list(pool.map(lambda _: session.fetch(EPOCHS), range(15)))
        session.close()

    assert max_requests_in_window(server.seen) <= 10
    assert server.most_open <= 8


@pytest.mark.long
def test_rate_is_used_despite_latency():
    """T31: responses after 0.4 s at 10/s: more than 6 requests per second, never more than 10."""
    with FaultServer(latency=0.4) as server, ThreadPoolExecutor(12) as pool:
        session = Session(server.url, rate=10)
        start = time.monotonic()
        list(pool.map(lambda _: session.fetch(EPOCHS), range(30)))
        elapsed = time.monotonic() - start
        session.close()

    assert max_requests_in_window(server.seen) <= 10
    assert server.most_open <= 8
    assert 30 / elapsed >= 6


@pytest.mark.more
def test_v1_and_v2_share_the_rate():
    """T28: V1 and V2 alternate on 8 threads: at most 5 requests in any second."""
    with (
        FaultServer() as server,
        Explorer(server.url, rate=5, state=False) as explorer,
        ThreadPoolExecutor(8) as pool,
    ):
        list(pool.map(lambda n: explorer.fetch(BLOCKS if n % 2 else EPOCHS), range(16)))

    assert {True, False} == {seen.v2 for seen in server.seen}
    assert max_requests_in_window(server.seen) <= 5


def test_changed_date_does_not_change_a_wait(monkeypatch):
    """T26: the system's date jumps by a day, and then back, during a wait of one second."""
    jumps, real = iter([86_400.0, -3600.0]), time.time

    class JumpingDate(FastClock):
        def wait(self, condition, seconds):
            monkeypatch.setattr(time, "time", lambda: real() + next(jumps, 0.0))
            super().wait(condition, seconds)

    with FaultServer("429_seconds?retry_after=1&times=1") as server:
        session = Session(server.url, rate=1000, clock=JumpingDate())
        start = session.rate_limiter.clock.now()
        session.fetch(EPOCHS)
        session.close()

    assert 1 <= session.rate_limiter.clock.now() - start <= 600


def test_permit_is_free_one_window_after_the_response():
    """The window starts with the response: the request arrived before that."""
    rate_limiter = RateLimiter(2, clock=StillClock())

    assert [0, 0.25, 1.25, 1.5, 2.5] == send_times(rate_limiter, 5, latency=0.25)


def test_window_starts_with_the_headers():
    """A slow body does not delay the next request: the headers start the window."""
    rate_limiter = RateLimiter(1, clock=StillClock())
    with rate_limiter.acquire() as permit:
        permit.start_window()
        rate_limiter.clock.time += 5

    assert [5] == send_times(rate_limiter, 1)


def test_request_under_way_holds_its_permit():
    """A request without a response may arrive at any time, so its permit stays taken."""
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
def test_rate_becomes_permits_and_a_window(rate, expected):
    """A rate above one permits whole requests per second; below one the window is longer."""
    assert expected == send_times(RateLimiter(rate, clock=StillClock()), len(expected))


@pytest.mark.parametrize("rate", [0, -1, float("nan")])
def test_invalid_rate_is_refused(rate):
    """A rate must be above zero."""
    with pytest.raises(UsageError, match="not a positive number"):
        RateLimiter(rate)


def test_rate_is_learned_from_the_service():
    """The first response states the rate; until then one request is sent at a time."""
    with FaultServer("learn?limit=5") as server, ThreadPoolExecutor(8) as pool:
        session = Session(server.url, clock=QuickClock())
        list(pool.map(lambda _: session.fetch(EPOCHS), range(8)))
        session.close()

    assert 5 == session.rate_limiter.rate
    assert max_requests_in_window(server.seen, 1 / QuickClock.SPEED) <= 5


def test_given_rate_is_not_replaced():
    """The service's headers do not replace a rate that the user set."""
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
def test_other_headers_do_not_set_the_rate(headers):
    """Only a valid limit per second is a rate."""
    rate_limiter = RateLimiter()
    rate_limiter.update(headers)

    assert rate_limiter.rate is None


def test_lower_rate_counts_earlier_requests():
    """After five requests the service states 2/s: the next request waits for a free permit."""
    rate_limiter = RateLimiter(clock=StillClock())
    send_times(rate_limiter, 5)
    rate_limiter.update({"ratelimit-limit": "2", "ratelimit-window": "second"})

    assert [1, 1, 2] == send_times(rate_limiter, 3)


def test_pause_stops_all_requests():
    """A pause holds for every thread, and a shorter pause does not shorten a longer one."""
    rate_limiter = RateLimiter(10, clock=StillClock())
    rate_limiter.pause(7)
    rate_limiter.pause(2)

    assert [7, 7] == send_times(rate_limiter, 2)


def test_system_date_does_not_matter(monkeypatch):
    """Setting the system's date back delays no request."""
    rate_limiter = RateLimiter(1000)
    with rate_limiter.acquire():
        pass
    monkeypatch.setattr(time, "time", lambda: 0.0)
    start = time.monotonic()
    with rate_limiter.acquire():
        pass

    assert time.monotonic() - start < 600


def test_wait_for_a_permit_can_be_ended():
    """An exception from *check* ends the wait."""
    rate_limiter = RateLimiter(10)
    rate_limiter.pause(60)
    stop = threading.Event()

    def check():
        if stop.is_set():
            raise KeyboardInterrupt

    threading.Timer(0.1, stop.set).start()
    with pytest.raises(KeyboardInterrupt), rate_limiter.acquire(check):
        pass
