"""What holds for one load: its head, its limits, its progress, and whether it was stopped.

The threads that a load starts get its context by `contextvars.copy_context`.
"""

from __future__ import annotations

import math
import threading
import time
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from beaconframes.errors import RequestLimitExceeded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class CallTimeouts:
    """The timeouts of one call, as the user has set them: in seconds, and as a moment."""

    per_request: float | None
    """For each attempt of each request, until its response is complete."""
    per_call: float | None
    """For the whole call, with all its requests, retries and waits."""
    ends_at: float
    """The moment at which the call ends, by the clock of the rate limiter."""

    @classmethod
    def start(cls, seconds: tuple[float | None, float | None], now: float) -> CallTimeouts:
        """Return the timeouts of a call that starts *now*, by the clock of the rate limiter."""
        per_request, per_call = seconds
        ends_at = math.inf if per_call is None else now + per_call
        return cls(per_request, per_call, ends_at)


class RequestLimit:
    """The maximum number of requests that one load may send, without failed attempts."""

    def __init__(self, maximum: int) -> None:
        self._maximum = self._left = maximum
        self._lock = threading.Lock()

    def count(self, endpoint: str) -> None:
        """Count one request, or raise RequestLimitExceeded when none is left."""
        with self._lock:
            self._left -= 1
            if self._left < 0:
                raise RequestLimitExceeded(
                    f"stopped after {self._maximum:,} requests: there are more pages",
                    endpoint=endpoint,
                    hint="Request less, or raise max_requests",
                )


class Progress:
    """Counts the requests and rows of one load, from any thread; for a node, its epochs.

    The loads of an export count their rows only. Without a unit, only the time is shown.
    """

    def __init__(self, unit: str = "requests") -> None:
        self.unit = unit
        self.finished = 0
        """Successful requests, stored epochs, or finished loads."""
        self.rows = 0
        self.expected: int | None = 0
        """Planned requests, epochs or loads; None while the number of pages is not known."""
        self.count_sent: Callable[[], int] | None = None
        """Returns the requests sent for the epochs."""
        self.started_at = time.monotonic()
        self._lock = threading.Lock()

    def expect(self, requests: int | None) -> None:
        """Add planned *requests*; None if their number is not known."""
        if self.unit != "requests":
            return
        is_known = self.expected is not None and requests is not None
        self.expected = (self.expected or 0) + (requests or 0) if is_known else None

    def count_request(self) -> None:
        """Count one request, unless epochs are counted."""
        with self._lock:
            self.finished += self.unit == "requests"

    def expect_epochs(self, epochs: int, count_sent: Callable[[], int]) -> None:
        """Add planned *epochs*, and count these instead of requests."""
        if self.unit not in ("requests", "epochs"):
            return
        if self.unit != "epochs":
            self.unit, self.finished, self.expected = "epochs", 0, 0
        self.expected = (self.expected or 0) + epochs
        self.count_sent = count_sent

    def count_epoch(self) -> None:
        """Count one stored epoch."""
        self.finished += self.unit == "epochs"

    def expect_loads(self, loads: int) -> None:
        """Add planned *loads* of an export, and count these instead of requests."""
        self.unit, self.expected = "loads", (self.expected or 0) + loads

    def count_load(self) -> None:
        """Count one finished load of an export."""
        self.finished += 1

    @property
    def seconds(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self.started_at


@dataclass(frozen=True)
class LoadContext:
    """The load that is running."""

    heads: dict[object, Any] | None = None
    """The heads that it has read: "latest" has one meaning in a load. None outside of a load."""
    timeouts: CallTimeouts | None = None
    """If the user has set any."""
    request_limit: RequestLimit | None = None
    progress: Progress | None = None
    """If it is shown."""
    stop: threading.Event | None = None
    """Ends its requests once it is set, unless they are given another event."""
    sort_first: str = ""
    """The column of the key by which rows without a store are sorted first; empty: the first."""


NO_LOAD = LoadContext()
LOAD: ContextVar[LoadContext] = ContextVar("load", default=NO_LOAD)


@contextmanager
def change_load(**changes: Any) -> Iterator[None]:
    """Run the block with *changes* of the context."""
    token = LOAD.set(replace(LOAD.get(), **changes))
    try:
        yield
    finally:
        LOAD.reset(token)
