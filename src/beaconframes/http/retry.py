"""Retries: how often, with which backoff, and the quota that limits them in an outage."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_random_exponential

from beaconframes.errors import BeaconframesError, RequestTimeout
from beaconframes.http.status_errors import AttemptFailed

if TYPE_CHECKING:
    from collections.abc import Callable

BACKOFF = wait_random_exponential(multiplier=0.5, max=8, min=0.05)
"""Exponential backoff with full jitter; never zero."""
QUOTA = 500
RETRY_COST = 5
TIMEOUT_RETRY_COST = 10
"""A retry after a timeout costs more: the timed-out request has kept the service busy."""

T = TypeVar("T")


class RetryQuota:
    """The retries that all calls of one client share, as in botocore; thread-safe.

    A retry is useful while failures are rare. In an outage, retries add load to the service and
    use up the monthly limit. So each retry has a cost, and each success returns some of it: a
    single call has its four attempts, and a thousand calls in an outage share a hundred retries.
    """

    def __init__(self, capacity: int = QUOTA) -> None:
        self._capacity = self._available = capacity
        self._lock = threading.Lock()

    @property
    def available(self) -> int:
        """Return the quota that is available."""
        return self._available

    def acquire(self, error: type[BeaconframesError]) -> int:
        """Take the cost of a retry after this kind of *error* and return it; 0 if too little."""
        cost = TIMEOUT_RETRY_COST if issubclass(error, RequestTimeout) else RETRY_COST
        with self._lock:
            if cost > self._available:
                return 0
            self._available -= cost
            return cost

    def release(self, cost: int) -> None:
        """Count a success: return the *cost* of the retry that succeeded, or 1 without a retry."""
        with self._lock:
            self._available = min(self._capacity, self._available + (cost or 1))


def retry_call(
    attempt: Callable[[], T],
    *,
    seconds_left: Callable[[], float],
    sleep: Callable[[float], None],
    pause: Callable[[float], None],
    quota: RetryQuota,
) -> T:
    """Return the result of *attempt*, retried as often as its failures permit.

    Raises the last AttemptFailed when no attempt is left, when the next wait does not fit into
    *seconds_left*, or when *quota* is used up. *pause* stops all requests during a backoff that
    every thread has to observe.
    """
    cost = 0

    def wait(state: RetryCallState) -> float:
        failure = _failure(state)
        seconds = BACKOFF(state) if failure.retry_after is None else failure.retry_after
        if failure.pauses_all and failure.retry_after is None:
            pause(seconds)
        return seconds

    def stop(state: RetryCallState) -> bool:
        nonlocal cost
        failure = _failure(state)
        if state.attempt_number >= failure.max_attempts or state.upcoming_sleep >= seconds_left():
            return True
        cost = quota.acquire(failure.kind)
        return not cost

    result = Retrying(
        retry=retry_if_exception_type(AttemptFailed),
        wait=wait,
        stop=stop,
        sleep=sleep,
        reraise=True,
    )(attempt)
    quota.release(cost)
    return result


def _failure(state: RetryCallState) -> AttemptFailed:
    failure = state.outcome.exception() if state.outcome else None
    assert isinstance(failure, AttemptFailed)
    return failure
