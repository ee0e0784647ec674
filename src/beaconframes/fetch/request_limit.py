"""The budget: how many requests one call of a loader may send."""

from __future__ import annotations

import threading
from contextvars import ContextVar

from beaconframes.errors import RequestLimitExceeded


class Budget:
    """How many requests one call of a loader may send, failed attempts not counted."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most
        self._lock = threading.Lock()

    def spend(self, endpoint: str) -> None:
        """Count one request, or raise RequestLimitExceeded when there is none left."""
        with self._lock:
            self._left -= 1
            if self._left < 0:
                raise RequestLimitExceeded(
                    f"stopped after {self._most:,} requests, and there are more pages",
                    endpoint=endpoint,
                    hint="Ask for less, or for all of it with a larger max_requests",
                )


BUDGET: ContextVar[Budget | None] = ContextVar("budget", default=None)
"""What the call of a loader may spend that goes on here."""
