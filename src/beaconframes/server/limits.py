"""Rate limits, and the rate-limit headers of every answer.

Second, hour and month are real windows. The headers of minute and day repeat those of hour and
month, as on the public service, which sends them for older clients.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PUBLIC_RATE = 1_000
"""Requests per second that the public wire permits by default."""

SECONDS = {"second": 1, "hour": 3_600, "month": 31 * 86_400}
TOO_MANY = b"Too Many Requests\n"
TOO_MANY_V2 = b'{"error":"Rate limit exceeded. Please try again later."}'


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
    """Counts the requests with an API key, or those without."""

    def __init__(self, rate: int, hour: int | None, month: int | None) -> None:
        """Permit *rate* requests per second, and by default the same rate per hour and month."""
        limits = {"second": rate, "hour": hour, "month": month}
        self.windows = {
            name: Window(rate * SECONDS[name] if limit is None else limit)
            for name, limit in limits.items()
        }

    def count(self, now: float) -> str | None:
        """Count a request; return the name of an exhausted window, or None."""
        for name, window in self.windows.items():
            if now >= window.end:
                window.end, window.count = find_window_end(name, now), 0
        for name in ("month", "hour", "second"):
            window = self.windows[name]
            if window.count >= window.limit:
                return name
        for window in self.windows.values():
            window.count += 1
        return None

    def refund(self) -> None:
        """Subtract a request that the server failed to answer, except in the window of a second."""
        for name in ("hour", "month"):
            # A new window may have started since the request was counted.
            self.windows[name].count = max(self.windows[name].count - 1, 0)

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
        self,
        app: ASGIApp,
        *,
        rate: int,
        hour: int | None = None,
        month: int | None = None,
        has_valid_key: Callable[[Scope], bool],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Limit requests to *app*; requests with and without a valid key are counted separately."""
        self.app = app
        self.has_valid_key = has_valid_key
        self.clock = clock
        self.counters = {valid: RequestCounter(rate, hour, month) for valid in (True, False)}
        self.lock = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] == "OPTIONS":
            await self.app(scope, receive, send)
            return
        valid = self.has_valid_key(scope)
        counter, now = self.counters[valid], self.clock()
        with self.lock:
            blocked = counter.count(now)
            limits = counter.headers(now, blocked=blocked, valid=valid)
        headers = [(name.encode(), text.encode()) for name, text in limits.items()]

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *headers]
                if message["status"] >= 500:
                    with self.lock:
                        counter.refund()
            await send(message)

        if blocked is None:
            await self.app(scope, receive, send_with_headers)
            return
        is_v2 = scope["path"].startswith("/api/v2/")
        body = TOO_MANY_V2 if is_v2 else TOO_MANY
        plain = {
            "content-type": "application/json" if is_v2 else "text/plain; charset=utf-8",
            "content-length": str(len(body)),
            "x-content-type-options": "nosniff",
        }
        start: dict[str, Any] = {"type": "http.response.start", "status": 429}
        start["headers"] = [*headers, *((n.encode(), t.encode()) for n, t in plain.items())]
        await send(start)
        await send({"type": "http.response.body", "body": body})


def find_window_end(window: str, now: float) -> float:
    """Return the end of the window around *now*; hours and months are those of the calendar."""
    if window == "second":
        return now + 1
    moment = datetime.fromtimestamp(now, UTC).replace(minute=0, second=0, microsecond=0)
    if window == "hour":
        return (moment + timedelta(hours=1)).timestamp()
    first = moment.replace(day=1, hour=0)
    return (first + timedelta(days=32)).replace(day=1).timestamp()
