"""The permitted rate, and the headers in which every answer tells what is left of it.

Second, hour and month are real windows; minute and day repeat the hour and the month, as the
public service keeps them for its older clients.
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

PERMITTED = 1_000
"""Requests a second that the public wire permits when nobody says how many."""

SECONDS = {"second": 1, "hour": 3_600, "month": 31 * 86_400}
TOO_MANY = b"Too Many Requests\n"
TOO_MANY_V2 = b'{"error":"Rate limit exceeded. Please try again later."}'


@dataclass
class Window:
    """Requests counted since ``began``, of at most ``limit`` until ``ends``."""

    limit: int
    ends: float = 0.0
    count: int = 0

    @property
    def left(self) -> int:
        """Return how many more are permitted."""
        return max(self.limit - self.count, 0)


class Meter:
    """Counts the requests of one key."""

    def __init__(self, rate: int, hour: int | None, month: int | None) -> None:
        """Permit *rate* requests a second, and no more an hour or a month than that comes to."""
        limits = {"second": rate, "hour": hour, "month": month}
        self.windows = {
            name: Window(rate * SECONDS[name] if limit is None else limit)
            for name, limit in limits.items()
        }

    def count(self, now: float) -> str | None:
        """Count a request; return the window that is used up, if one is."""
        for name, window in self.windows.items():
            if now >= window.ends:
                window.ends, window.count = end_of(name, now), 0
        for name in ("month", "hour", "second"):
            window = self.windows[name]
            if window.count >= window.limit:
                return name
        for window in self.windows.values():
            window.count += 1
        return None

    def forgive(self) -> None:
        """Take back a request that the server could not answer: only its second is used up."""
        for name in ("hour", "month"):
            # The window may have ended since it was counted.
            self.windows[name].count = max(self.windows[name].count - 1, 0)

    def headers(self, now: float, *, blocked: str | None, valid: bool) -> dict[str, str]:
        """Return what an answer tells about the windows."""
        name = blocked or "second"
        window = self.windows[name]
        reset = str(1 if name == "second" else max(int(window.ends - now), 1))
        told = {
            "ratelimit-limit": str(window.limit),
            "ratelimit-remaining": str(window.left),
            "ratelimit-reset": reset,
            "ratelimit-window": name,
            "ratelimit-bucket": "default",
            "ratelimit-validapikey": str(valid).lower(),
        }
        if blocked:
            told["retry-after"] = reset
        twins = {"second": ["second"], "hour": ["minute", "hour"], "month": ["day", "month"]}
        for real, names in twins.items():
            for shown in names:
                told[f"x-ratelimit-limit-{shown}"] = str(self.windows[real].limit)
                told[f"x-ratelimit-remaining-{shown}"] = str(self.windows[real].left)
        return told


class Limited:
    """An application that answers no key more often than is permitted."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        rate: int,
        hour: int | None = None,
        month: int | None = None,
        known: Callable[[Scope], bool],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Put the limits before *app*; *known* tells whether a request carries a key."""
        self.app = app
        self.known = known
        self.clock = clock
        self.meters = {valid: Meter(rate, hour, month) for valid in (True, False)}
        self.lock = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or say that it was too often."""
        if scope["type"] != "http" or scope["method"] == "OPTIONS":
            await self.app(scope, receive, send)
            return
        valid = self.known(scope)
        meter, now = self.meters[valid], self.clock()
        with self.lock:
            blocked = meter.count(now)
            told = meter.headers(now, blocked=blocked, valid=valid)
        headers = [(name.encode(), text.encode()) for name, text in told.items()]

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *headers]
                if message["status"] >= 500:
                    with self.lock:
                        meter.forgive()
            await send(message)

        if blocked is None:
            await self.app(scope, receive, answer)
            return
        second = scope["path"].startswith("/api/v2/")
        body = TOO_MANY_V2 if second else TOO_MANY
        plain = {
            "content-type": "application/json" if second else "text/plain; charset=utf-8",
            "content-length": str(len(body)),
            "x-content-type-options": "nosniff",
        }
        start: dict[str, Any] = {"type": "http.response.start", "status": 429}
        start["headers"] = [*headers, *((n.encode(), t.encode()) for n, t in plain.items())]
        await send(start)
        await send({"type": "http.response.body", "body": body})


def end_of(window: str, now: float) -> float:
    """Return when a window ends that begins *now*: hours and months are those of the calendar."""
    if window == "second":
        return now + 1
    moment = datetime.fromtimestamp(now, UTC).replace(minute=0, second=0, microsecond=0)
    if window == "hour":
        return (moment + timedelta(hours=1)).timestamp()
    first = moment.replace(day=1, hour=0)
    return (first + timedelta(days=32)).replace(day=1).timestamp()
