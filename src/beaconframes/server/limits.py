"""Rate limits, and the rate-limit headers of every answer.

Second, hour and month are real windows. The headers of minute and day repeat those of hour and
month, as on the public service, which sends them for older clients.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from beaconframes.server.access import NO_KEY, V2_PREFIX, Access, Limits
from beaconframes.server.service import NOSNIFF, build_error_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

DEFAULT_RATE = 1_000
"""Requests per second where no limit per second is set."""

MAX_COUNTERS = 10_000
"""Number of keys whose requests are counted; the counter of the oldest key starts again."""

HOURS_PER_MONTH = 31 * 24
RATE_LIMIT_HEADERS = tuple(
    f"ratelimit-{name}" for name in ("limit", "remaining", "reset", "window", "validapikey")
)
"""The headers that web pages of a permitted origin may read."""
TOO_MANY = Response("Too Many Requests\n", 429, NOSNIFF, "text/plain")


@dataclass
class Window:
    """A number of requests, of which at most ``limit`` are permitted until ``end``."""

    limit: int
    end: float = 0.0
    count: int = 0

    @property
    def remaining(self) -> int:
        """Return how many more requests are permitted."""
        return max(self.limit - self.count, 0)


class RequestCounter:
    """Counts the requests with one API key, or those without a valid key."""

    def __init__(self, limits: Limits) -> None:
        """Permit the requests within *limits*.

        An hour without a limit shows the numbers of the month, as on the public service.
        """
        rate = limits.second or DEFAULT_RATE
        month = Window(limits.month or rate * 3_600 * HOURS_PER_MONTH)
        hour = month if limits.month and not limits.hour else Window(limits.hour or rate * 3_600)
        self.windows = {"second": Window(rate), "hour": hour, "month": month}
        self._counted = [self.windows["second"], month] + ([] if hour is month else [hour])

    def count(self, now: float) -> str | None:
        """Count a request; return the name of an exhausted window, or None."""
        for name in ("month", "hour", "second"):
            window = self.windows[name]
            if now >= window.end:
                window.end, window.count = find_window_end(name, now), 0
        for name in ("month", "hour", "second"):
            window = self.windows[name]
            if window.count >= window.limit:
                return name
        for window in self._counted:
            window.count += 1
        return None

    def refund(self) -> None:
        """Subtract a request that the server failed to answer, except in the window of a second."""
        for window in self._counted[1:]:
            # A new window may have started since the request was counted.
            window.count = max(window.count - 1, 0)

    def headers(self, now: float, *, blocked: str | None, valid: bool) -> dict[str, str]:
        """Return the rate-limit headers of an answer."""
        name = blocked or "second"
        window = self.windows[name]
        reset = str(1 if name == "second" else max(int(window.end - now), 1))
        headers = {
            "ratelimit-limit": str(window.limit),
            "ratelimit-remaining": str(window.remaining),
            "ratelimit-reset": reset,
            "ratelimit-window": name,
            "ratelimit-bucket": "default",
            "ratelimit-validapikey": str(valid).lower(),
        }
        if blocked:
            headers["retry-after"] = reset
        shown = {"second": ["second"], "hour": ["minute", "hour"], "month": ["day", "month"]}
        for real, header_names in shown.items():
            for header_name in header_names:
                headers[f"x-ratelimit-limit-{header_name}"] = str(self.windows[real].limit)
                headers[f"x-ratelimit-remaining-{header_name}"] = str(self.windows[real].remaining)
        return headers


class RateLimitMiddleware:
    """Middleware that answers 429 to requests beyond the rate limits."""

    def __init__(
        self, app: ASGIApp, *, access: Access, clock: Callable[[], float] = time.time
    ) -> None:
        """Limit requests to *app*: each key has a counter, and requests without a key have one."""
        self.app = app
        self.access = access
        self.clock = clock
        self.counters: OrderedDict[str | None, RequestCounter] = OrderedDict()
        self.lock = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] == "OPTIONS":
            await self.app(scope, receive, send)
            return
        caller = self.access.identify(Request(scope))
        limits_of_caller = self.access.limits.get(caller.tier or NO_KEY)
        if limits_of_caller is None:
            await self.app(scope, receive, send)
            return
        now = self.clock()
        with self.lock:
            counter = self.counters.setdefault(caller.key, RequestCounter(limits_of_caller))
            if len(self.counters) > MAX_COUNTERS:
                self.counters.popitem(last=False)
            blocked = counter.count(now)
            limits = counter.headers(now, blocked=blocked, valid=caller.key is not None)
        headers = [(name.encode(), text.encode()) for name, text in limits.items()]

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *headers]
                if message["status"] >= 500:
                    with self.lock:
                        counter.refund()
            await send(message)

        answer = self.app
        if blocked is not None:
            is_text = self.access.wire == "public" and not scope["path"].startswith(V2_PREFIX)
            answer = TOO_MANY if is_text else build_error_for(scope["path"], 429)
        await answer(scope, receive, send_with_headers)


def find_window_end(window: str, now: float) -> float:
    """Return the end of the window around *now*; hours and months are those of the calendar."""
    if window == "second":
        return now + 1
    moment = datetime.fromtimestamp(now, UTC).replace(minute=0, second=0, microsecond=0)
    if window == "hour":
        return (moment + timedelta(hours=1)).timestamp()
    first = moment.replace(day=1, hour=0)
    return (first + timedelta(days=32)).replace(day=1).timestamp()
