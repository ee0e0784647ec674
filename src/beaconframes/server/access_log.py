"""The log of requests: one line each, without keys and query values."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("beaconframes.server.access")


class AccessLog:
    """Middleware that logs the method, path, status, size and duration of every answer."""

    def __init__(self, app: ASGIApp) -> None:
        """Log the requests to *app*."""
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
