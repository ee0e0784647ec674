"""The rate limiter: at most the permitted requests per second, as the service counts them.

The service counts a request on arrival, at some time between sending it and receiving its response.
So a request takes a permit, and the permit is free again one window after the response began. Two
uses of a permit then arrive at least one window apart, whatever the delays of the network. Spacing
the sent requests cannot guarantee that.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from beaconframes.errors import QuotaSpent, UsageError
from beaconframes.http.retry import AttemptFailed, parse_date
from beaconframes.http.shared_rate_limit import ReportedLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from beaconframes.http.shared_rate_limit import SharedRateLimit

TICK = 0.1
"""Seconds: how often a waiting call checks whether it should stop."""
MAX_CONCURRENT = 8
"""Requests that are under way at the same time."""
QUOTA_CHECK_INTERVAL = 3600
"""Seconds for which a report that the month's requests are used up is trusted."""
MAX_DIGITS = 15
"""Digits of the longest number that is accepted as a count of requests."""


class Clock:
    """The clock of the rate limiter and of retries. Tests replace it with a faster one."""

    def now(self) -> float:
        """Return the seconds since some fixed moment; never goes back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Sleep for *seconds*."""
        time.sleep(seconds)

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        """Wait for *seconds*, or less when *condition* is notified."""
        condition.wait(seconds)


class Permit:
    """Permission to send one request now."""

    def __init__(self, rate_limiter: RateLimiter, number: int) -> None:
        self._rate_limiter = rate_limiter
        self._number = number
        self._window_started = False

    def start_window(self) -> None:
        """Start the window after which the permit is free again: the response has begun."""
        if not self._window_started:
            self._window_started = True
            self._rate_limiter._start_window(self._number)  # noqa: SLF001 - one unit


class RateLimiter:
    """The permitted rate of one key, shared by all threads that use it.

    Without a *rate* the limiter learns it from the service's headers, and sends one request at a
    time until the first response. A rate below one per second makes the window longer.
    """

    def __init__(
        self,
        rate: float | None = None,
        *,
        clock: Clock | None = None,
        shared_rate_limit: SharedRateLimit | None = None,
        is_shared: bool = True,
    ) -> None:
        if rate is not None and not rate > 0:
            raise UsageError(
                f"rate={rate!r} is not a positive number",
                hint="Pass the permitted requests per second, such as 10 or 0.5",
            )
        self.clock = clock or Clock()
        self._condition = threading.Condition()
        self._rate = rate
        self._learns_rate = self._is_rate_unknown = rate is None
        self._open = 0
        self._pending = 0
        self._windows: deque[float] = deque()
        """When the response of each recent request began."""
        self._paused_until = -math.inf
        self._shared = shared_rate_limit
        self._is_shared = is_shared and shared_rate_limit is not None
        self._number = 0

    @property
    def host(self) -> str:
        """Return the host of the service."""
        return "" if self._shared is None else self._shared.host

    @property
    def reported_limits(self) -> ReportedLimits:
        """Return the limits that this process or an earlier one has learned."""
        with self._condition:
            if self._shared is None or not self._is_shared:
                return ReportedLimits()
            return self._shared.reported_limits()

    @property
    def rate(self) -> float | None:
        """Return the limit in requests per second; None if no limit is known."""
        with self._condition:
            self._recall_rate()
            return self._rate

    @contextmanager
    def acquire(self, check: Callable[[], object] = lambda: None) -> Iterator[Permit]:
        """Wait for a permit to send one request, and hold it while the request is under way.

        *check* is called while waiting; an exception from it ends the wait.
        """
        with self._condition:
            while (delay := self._delay()) > 0:
                check()
                self.clock.wait(self._condition, min(delay, TICK))
            self._open += 1
            self._pending += 1
            permit = Permit(self, self._number)
        try:
            yield permit
        finally:
            permit.start_window()
            with self._condition:
                self._open -= 1
                self._condition.notify_all()

    def pause(self, seconds: float) -> None:
        """Stop all requests for *seconds*."""
        with self._condition:
            until = self.clock.now() + seconds
            self._paused_until = max(self._paused_until, until)
            if self._is_shared and self._shared is not None:
                self._shared.pause(until)

    def update(self, headers: Mapping[str, str], status: int = 200) -> None:
        """Take the permitted rate from the *headers* of a response, unless the user set one."""
        limits = parse_rate_limit_headers(headers, status)
        with self._condition:
            if self._learns_rate and limits.per_second is not None:
                self._rate = float(limits.per_second)
            if self._shared is not None:
                self._is_shared = self._is_shared or limits.reported_at is not None
                if self._is_shared:
                    self._shared.update(limits)

    def spent_quota_error(self) -> AttemptFailed | None:
        """Return the error if the service reported that the month's requests are used up.

        The report is trusted for an hour, in which nothing is sent. Then one request checks it
        again, because the key may have another plan by then.
        """
        limits, now = self.reported_limits, datetime.now(UTC)
        if limits.remaining != 0 or limits.month != f"{now:%Y-%m}" or limits.reported_at is None:
            return None
        if not 0 <= now.timestamp() - limits.reported_at < QUOTA_CHECK_INTERVAL:
            return None
        resets_at = next_month(now)
        reported = datetime.fromtimestamp(limits.reported_at, UTC)
        return AttemptFailed(
            QuotaSpent,
            f"the requests of this month are used up, as the service reported at "
            f"{reported:%H:%M} UTC; the quota resets on {resets_at:%Y-%m-%d}",
            hint="Nothing was sent. Use another key, or upgrade the plan: "
            f"{QUOTA_CHECK_INTERVAL // 60} minutes after the report one request checks the limit",
            retry_after=(resets_at - now).total_seconds(),
        )

    def _start_window(self, number: int) -> None:
        with self._condition:
            self._is_rate_unknown = False
            self._pending -= 1
            self._windows.append(self.clock.now())
            if self._shared is not None and number:
                self._shared.start_window(number, self._windows[-1])
            self._condition.notify_all()

    def _recall_rate(self) -> None:
        """Use the rate that another process has already learned."""
        if self._rate is None and self._is_shared and self._shared is not None:
            per_second = self._shared.reported_limits().per_second
            if per_second is not None:
                self._rate, self._is_rate_unknown = float(per_second), False

    def _delay(self) -> float:
        """Return the seconds until a request may be sent; 0 records the request as sent."""
        if self._is_rate_unknown:
            self._recall_rate()
        delay, self._number = self._local_delay(), 0
        if delay <= 0 and self._is_shared and self._shared is not None:
            rate = None if self._learns_rate else self._rate
            delay, self._number = self._shared.acquire(rate, self.clock.now)
        return delay

    def _local_delay(self) -> float:
        """Return the seconds until this process may send a request, without other processes."""
        now = self.clock.now()
        if now < self._paused_until:
            return self._paused_until - now
        if self._open >= (1 if self._is_rate_unknown else MAX_CONCURRENT):
            return TICK
        if self._rate is None or math.isinf(self._rate):
            self._remove_windows(now - 1)
            return 0
        permits = max(1, math.floor(self._rate))
        window = max(1.0, 1 / self._rate)
        self._remove_windows(now - window)
        used = self._pending + len(self._windows)
        if used < permits:
            return 0
        # More permits are used than exist if the rate was learned a moment ago: then a later
        # response frees one.
        excess = used - permits
        return self._windows[excess] + window - now if excess < len(self._windows) else TICK

    def _remove_windows(self, before: float) -> None:
        while self._windows and self._windows[0] <= before:
            self._windows.popleft()


def parse_rate_limit_headers(headers: Mapping[str, str], status: int = 200) -> ReportedLimits:
    """Return the limits in *headers*, the headers of a response with this *status*.

    Every header is optional. For a window without a limit the service repeats the limit of the next
    longer window: so the limit of a minute counts only if it is lower than the limit of the hour.
    A request counts as used, except with status 429, or 500 and above.
    """
    window = headers.get("ratelimit-window", "").strip().lower()
    limit = parse_count(headers.get("ratelimit-limit"))
    minute = parse_count(headers.get("x-ratelimit-limit-minute"))
    hour = parse_count(headers.get("x-ratelimit-limit-hour"))
    month = parse_count(headers.get("x-ratelimit-limit-month"))
    remaining = parse_count(headers.get("x-ratelimit-remaining-month"), minimum=0)
    if window == "month":
        month, remaining = limit, parse_count(headers.get("ratelimit-remaining"), minimum=0)
    if window == "hour":
        hour = limit
    second = limit if window == "second" else None
    has_limits = any(count is not None for count in (second, minute, hour, month))
    sent = parse_date(headers.get("date", "")) or datetime.now(UTC)
    return ReportedLimits(
        per_second=second,
        per_minute=minute if hour is None or (minute or hour) < hour else None,
        per_hour=hour if month is None or (hour or month) < month else None,
        per_month=month,
        # Without a limit the remaining requests mean nothing.
        remaining=remaining if month is not None else None,
        month=f"{sent:%Y-%m}",
        used=int(status < 500 and status != 429),
        reported_at=int(time.time()) if has_limits else None,
    )


def next_month(now: datetime) -> datetime:
    """Return the start of the month after *now*."""
    year, month = divmod(now.year * 12 + now.month, 12)
    return datetime(year, month + 1, 1, tzinfo=UTC)


def parse_count(text: str | None, minimum: int = 1) -> int | None:
    """Return the whole number in *text*; None for other text or a number below *minimum*."""
    text = "" if text is None else text.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        return None
    return int(text) if int(text) >= minimum else None
