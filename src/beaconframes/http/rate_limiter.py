"""Pacing: never more requests a second than are permitted, as the service counts them.

The service counts a request when it arrives, which is some time between sending it and hearing
the answer. So a slot is taken when a request is sent and is free again one window after its
answer began: two uses of a slot then arrive at least one window apart, however the network
bunches them. Spacing what is sent cannot promise that.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

from beaconframes.errors import UsageError
from beaconframes.http.rate_limit_headers import parse_rate_limit_headers
from beaconframes.http.shared_rate_limit import Known

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from beaconframes.http.shared_rate_limit import SharedRateLimit

TICK = 0.1
"""Seconds: how soon a waiting call notices that it should stop."""


class Clock:
    """The time that pacing and retries live by. Tests hand in one that runs faster."""

    def now(self) -> float:
        """Return the seconds since some fixed moment; never goes back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let *seconds* pass."""
        time.sleep(seconds)

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        """Let *seconds* pass, or less when *condition* is notified."""
        condition.wait(seconds)


class Permit:
    """Permission to send one request now."""

    def __init__(self, rate_limiter: RateLimiter, number: int) -> None:
        self._pacer = rate_limiter
        self._number = number
        self._counts = True

    def answered(self) -> None:
        """Say that the answer began: the service has certainly counted the request by now."""
        if self._counts:
            self._counts = False
            self._pacer._heard(self._number)  # noqa: SLF001 - the two are one thing


class RateLimiter:
    """The permitted rate of one key, shared by every thread that uses it.

    With no *rate* it is learned from the service's headers, and until the first answer one
    request is under way at a time. A rate below one a second widens the window instead.
    """

    def __init__(
        self,
        rate: float | None = None,
        *,
        at_once: int = 8,
        clock: Clock | None = None,
        together: SharedRateLimit | None = None,
        sharing: bool = True,
    ) -> None:
        if rate is not None and not rate > 0:
            raise UsageError(
                f"{rate!r} is no rate",
                hint="Give the permitted requests per second, such as 10 or 0.5",
            )
        self.clock = clock or Clock()
        self._condition = threading.Condition()
        self._at_once = at_once
        self._rate = rate
        self._learns = self._unknown = rate is None
        self._open = 0
        self._unanswered = 0
        self._answers: deque[float] = deque()
        self._held_until = -math.inf
        self._together = together
        self._sharing = sharing and together is not None
        self._number = 0

    @property
    def host(self) -> str:
        """Return the service whose allowance it is."""
        return "" if self._together is None else self._together.host

    @property
    def known(self) -> Known:
        """Return what is known of the allowance, by this process or any before it."""
        with self._condition:
            if self._together is None or not self._sharing:
                return Known()
            return self._together.known()

    @property
    def rate(self) -> float | None:
        """Return the requests per second that are kept to, or None when no limit is known."""
        with self._condition:
            self._remember()
            return self._rate

    @contextmanager
    def slot(self, check: Callable[[], object] = lambda: None) -> Iterator[Permit]:
        """Wait for permission to send one request, and hold the slot while it is under way.

        *check* is called while waiting; what it raises ends the wait.
        """
        with self._condition:
            while (delay := self._delay()) > 0:
                check()
                self.clock.wait(self._condition, min(delay, TICK))
            self._open += 1
            self._unanswered += 1
            slot = Permit(self, self._number)
        try:
            yield slot
        finally:
            slot.answered()
            with self._condition:
                self._open -= 1
                self._condition.notify_all()

    def hold(self, seconds: float) -> None:
        """Let nobody send for *seconds*."""
        with self._condition:
            until = self.clock.now() + seconds
            self._held_until = max(self._held_until, until)
            if self._sharing and self._together is not None:
                self._together.hold(until)

    def learn(self, headers: Mapping[str, str], status: int = 200) -> None:
        """Take the permitted rate from the *headers* of an answer, unless one was given."""
        found = parse_rate_limit_headers(headers, status)
        with self._condition:
            if self._learns and found.second is not None:
                self._rate = float(found.second)
            if self._together is not None:
                self._sharing = self._sharing or found.anything
                if self._sharing:
                    self._together.learn(found)

    def _heard(self, number: int) -> None:
        with self._condition:
            self._unknown = False
            self._unanswered -= 1
            self._answers.append(self.clock.now())
            if self._together is not None:
                self._together.answered(number, self._answers[-1])
            self._condition.notify_all()

    def _remember(self) -> None:
        """Take up the rate that was learned before, by whatever process."""
        if self._rate is None and self._sharing and self._together is not None:
            second = self._together.known().second
            if second is not None:
                self._rate, self._unknown = float(second), False

    def _delay(self) -> float:
        """Return the seconds until a request may be sent, by anybody; with 0 it is counted."""
        if self._unknown:
            self._remember()
        delay, self._number = self._delay_here(), 0
        if delay <= 0 and self._sharing and self._together is not None:
            given = None if self._learns else self._rate
            delay, self._number = self._together.take(given, self.clock.now)
        return delay

    def _delay_here(self) -> float:
        """Return the seconds until a request may be sent, as far as this process knows."""
        now = self.clock.now()
        if now < self._held_until:
            return self._held_until - now
        if self._open >= (1 if self._unknown else self._at_once):
            return TICK
        if self._rate is None or math.isinf(self._rate):
            self._forget(now - 1)
            return 0
        slots = max(1, math.floor(self._rate))
        window = max(1.0, 1 / self._rate)
        self._forget(now - window)
        taken = self._unanswered + len(self._answers)
        if taken < slots:
            return 0
        # With more taken than there are slots (the rate was learned a moment ago) the answer
        # that frees a slot is further down.
        excess = taken - slots
        return self._answers[excess] + window - now if excess < len(self._answers) else TICK

    def _forget(self, before: float) -> None:
        while self._answers and self._answers[0] <= before:
            self._answers.popleft()
