"""An outage is not multiplied by those who suffer from it."""

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


def attempts_of(session):
    """How many attempts one failing call was worth."""
    with pytest.raises(ServerError) as caught:
        session.fetch(EPOCHS)
    return caught.value.attempts


def test_a_thousand_calls_in_an_outage_take_eleven_hundred_requests():
    """The first calls are tried four times; after a hundred retries in all, each call but once."""
    with FaultServer("5xx?code=503") as server, ThreadPoolExecutor(8) as pool:
        session = Session(server.url, clock=FastClock(), rate=float("inf"))
        first = [attempts_of(session) for _ in range(5)]
        rest = list(pool.map(lambda _: attempts_of(session), range(995)))
        session.close()

    assert [4] * 5 == first
    assert 1 == rest[-1]
    assert 1100 == len(server.seen) == sum(first + rest)


def test_what_succeeds_earns_retries():
    """Five good answers pay for one retry, and a retry that helped costs nothing."""
    with FaultServer("5xx?code=503") as server:
        session = Session(
            server.url, clock=FastClock(), rate=float("inf"), retry_quota=RetryQuota(15)
        )
        spent = [attempts_of(session) for _ in range(2)]
        server.fault("")
        for _ in range(5):
            session.fetch(EPOCHS)
        server.fault("5xx?code=503&times=1")
        before = session.request_count
        session.fetch(EPOCHS)
        helped = session.request_count - before
        server.fault("5xx?code=503")
        again = attempts_of(session)
        session.close()

    assert ([4, 1], 2, 2) == (spent, helped, again)


def test_a_silent_service_is_repeated_half_as_often():
    """A retry after a timeout costs twice as much, and nothing is ever owed."""
    credit = RetryQuota(25)

    assert [10, 10, 0, 5] == [
        credit.take(kind) for kind in (RequestTimeout, RequestTimeout, RequestTimeout, ServerError)
    ]
    assert 0 == credit.left


def test_credit_does_not_grow_beyond_its_beginning():
    """A million good answers are no licence to flood a failing service."""
    credit = RetryQuota(10)
    for _ in range(50):
        credit.earn(0)

    assert 10 == credit.left


def test_all_loaders_of_an_explorer_share_the_credit():
    """Both generations are one service: what the one spends the other lacks."""
    explorer = Explorer(api_key="a-key", chain="hoodi", store=False)
    first, second = explorer.asking.sessions

    assert first is not second
    assert first.retry_quota is second.retry_quota
