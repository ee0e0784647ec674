"""Middleware of the local explorer: the log of requests, the check of hosts, the check of keys."""

from __future__ import annotations

import logging
import re
import time
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.requests import Request

from beaconframes.server.service import build_error_for
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from beaconframes.server.access import Access

log = logging.getLogger("beaconframes.server.access")

LOOPBACK_HOST = re.compile(
    r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?", re.ASCII | re.IGNORECASE
)
"""A loopback name with any port: a tunnel or a proxy listens on another one."""


class AccessLog:
    """Middleware that logs the method, path, status, size and duration of every answer.

    The lines have no keys and no values of queries.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or not log.isEnabledFor(logging.INFO):
            await self.app(scope, receive, send)
            return
        start, status, size = time.perf_counter(), 0, 0

        async def send_and_count(message: Message) -> None:
            nonlocal status, size
            status = message.get("status", status)
            size += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, send_and_count)
        finally:
            # The query may hold a key.
            log.info(
                "%s %s %d %d bytes %.1f ms",
                scope["method"],
                scope["path"],
                status,
                size,
                (time.perf_counter() - start) * 1e3,
            )


class HostCheck:
    """Middleware that refuses requests with another host, and POST requests of other sites.

    A page in the user's browser can send requests to this machine: as a form, or under a host name
    that resolves to loopback (DNS rebinding). Such a page must not read answers or cause load.
    """

    def __init__(self, app: ASGIApp, origins: Collection[str] = ()) -> None:
        """Forward permitted requests to *app*; pages of the *origins* may send POST requests."""
        self.app, self.origins = app, frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        refusal = find_refusal(scope, self.origins) if scope["type"] == "http" else None
        answer = self.app if refusal is None else build_error_for(scope["path"], *refusal)
        await answer(scope, receive, send)


def find_refusal(scope: Scope, origins: Collection[str] = ()) -> tuple[int, str] | None:
    """Return the HTTP status and the reason of a refusal, None if a request is permitted."""
    headers = Headers(scope=scope)
    hosts = headers.getlist("host")
    # Only HTTP/1.0 has requests without a host, and no browser sends these.
    if len(hosts) > 1 or not all(LOOPBACK_HOST.fullmatch(host) for host in hosts):
        return 421, (
            f"this server answers requests for 127.0.0.1 and localhost only, "
            f"not for {shorten(', '.join(hosts))}"
        )
    origin = headers.get("origin")
    if scope["method"] != "POST" or origin in origins:
        return None
    is_foreign = origin is not None and origin.lower() not in {f"http://{h.lower()}" for h in hosts}
    if is_foreign or headers.get("sec-fetch-site") == "cross-site":
        site = shorten(origin) if origin else "another site"
        return 403, f"this server answers no POST request of {site}: --origin permits an origin"
    return None


class KeyCheck:
    """Middleware that answers 401 to requests without the key that they need."""

    def __init__(self, app: ASGIApp, *, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        answer: ASGIApp = self.app
        if scope["type"] == "http" and not self.access.permits(Request(scope)):
            answer = build_error_for(scope["path"], 401)
        await answer(scope, receive, send)
