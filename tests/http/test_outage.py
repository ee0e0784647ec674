"""The retry quota: retries do not multiply the load of an outage."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from beaconframes.client import Explorer
from beaconframes.endpoint import Request
from beaconframes.errors import RequestTimeout, ServerError
from beaconframes.http.retry import RetryQuota
from beaconframes.http.session import Session

from ..support.faults import FastClock, FaultServer

EPOCHS = Request("GET", "/api/v1/epoch/7", endpoint="GET /api/v1/epoch/{epoch}")


def count_attempts(session):
    """Return how many attempts one failing call made."""
    with pytest.raises(ServerError) as caught:
        session.fetch(EPOCHS)
    return caught.value.attempts


@pytest.mark.more
def test_a_thousand_calls_in_an_outage_send_eleven_hundred_requests():
    """T13: the first calls make four attempts; after a hundred retries each call makes one."""
    with FaultServer("5xx?code=503") as server, ThreadPoolExecutor(8) as pool:
        session = Session(server.url, clock=FastClock(), rate=float("inf"))
        first = [count_attempts(session) for _ in range(5)]
        rest = list(pool.map(lambda _: count_attempts(session), range(995)))
        session.close()

    assert [4] * 5 == first
    assert 1 == rest[-1]
    assert 1100 == len(server.seen) == sum(first + rest)


def test_successes_refill_the_quota():
    """Five successes pay for one retry, and a retry that succeeds costs nothing."""
    with FaultServer("5xx?code=503") as server:
        session = Session(
            server.url, clock=FastClock(), rate=float("inf"), retry_quota=RetryQuota(15)
        )
        outage = [count_attempts(session) for _ in range(2)]
        server.fault("")
        for _ in range(5):
            session.fetch(EPOCHS)
        server.fault("5xx?code=503&times=1")
        before = session.request_count
        session.fetch(EPOCHS)
        recovered = session.request_count - before
        server.fault("5xx?code=503")
        last = count_attempts(session)
        session.close()

    assert ([4, 1], 2, 2) == (outage, recovered, last)


def test_timeouts_cost_twice_as_much():
    """A timeout takes 10, another error 5, and the quota never becomes negative."""
    quota = RetryQuota(25)

    assert [10, 10, 0, 5] == [
        quota.acquire(kind)
        for kind in (RequestTimeout, RequestTimeout, RequestTimeout, ServerError)
    ]
    assert 0 == quota.available


def test_quota_does_not_exceed_its_capacity():
    """Successes refill the quota to its capacity and not beyond."""
    quota = RetryQuota(10)
    for _ in range(50):
        quota.release(0)

    assert 10 == quota.available


def test_v1_and_v2_share_the_quota():
    """V1 and V2 are one service, so their retries have one quota."""
    explorer = Explorer(api_key="a-key", chain="hoodi", store=False)
    first, second = explorer.source.sessions

    assert first is not second
    assert first.retry_quota is second.retry_quota
