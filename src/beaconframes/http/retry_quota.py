"""The credit of a client for retries: what keeps it from multiplying an outage.

A retry is worth its request while failures are rare. When everything fails, retries only add to
what the service suffers from, and to the month's count; so they are paid for, and what succeeds
earns. A single call has its four attempts, a thousand calls in an outage share a hundred retries.
"""

from __future__ import annotations

import threading

from beaconframes.errors import BeaconframesError, RequestTimeout

CREDIT = 500
RETRY = 5
RETRY_OF_SILENCE = 10
"""A request that timed out has cost the service, and whoever waits, more than a quick refusal."""


class RetryQuota:
    """What the retries of all the calls of one client are paid from; thread-safe."""

    def __init__(self, most: int = CREDIT) -> None:
        self._most = self._left = most
        self._lock = threading.Lock()

    @property
    def left(self) -> int:
        """Return what is left."""
        return self._left

    def take(self, failure: type[BeaconframesError]) -> int:
        """Pay for a retry after this kind of *failure*; return its price, 0 if it is too much."""
        price = RETRY_OF_SILENCE if issubclass(failure, RequestTimeout) else RETRY
        with self._lock:
            if price > self._left:
                return 0
            self._left -= price
            return price

    def earn(self, paid: int) -> None:
        """Count a success: what was *paid* for the retry that brought it comes back, or else 1."""
        with self._lock:
            self._left = min(self._most, self._left + (paid or 1))
