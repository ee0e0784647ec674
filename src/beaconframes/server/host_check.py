"""The host check: it refuses requests that web pages send through the user's browser.

A page in the user's browser can send requests to this machine: as a form, or under a host name
that resolves to loopback (DNS rebinding). Such a page must not read answers or cause load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK_NAMES = ("127.0.0.1", "localhost")
HTTP_PORT = 80


class HostCheck:
    """Middleware that refuses requests with another host, and POST requests of other sites."""

    def __init__(self, app: ASGIApp, build_refusal: Callable[[Scope, int], Response]) -> None:
        """Forward permitted requests to *app*; answer others with *build_refusal*."""
        self.app, self.build_refusal = app, build_refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        status = find_refusal_status(scope) if scope["type"] == "http" else None
        answer = self.app if status is None else self.build_refusal(scope, status)
        await answer(scope, receive, send)


def find_refusal_status(scope: Scope) -> int | None:
    """Return the HTTP status for a refused request, None if it is permitted."""
    headers = Headers(scope=scope)
    own_hosts = find_own_hosts(scope)
    if len(hosts := headers.getlist("host")) != 1 or hosts[0].lower() not in own_hosts:
        return 421
    origin = headers.get("origin")
    is_foreign = origin is not None and origin.lower() not in {f"http://{h}" for h in own_hosts}
    if scope["method"] == "POST" and (is_foreign or headers.get("sec-fetch-site") == "cross-site"):
        return 403
    return None


def find_own_hosts(scope: Scope) -> set[str]:
    """Return the values of the Host header that mean this server."""
    port = scope["server"][1]
    hosts = {f"{name}:{port}" for name in LOOPBACK_NAMES}
    return hosts | (set(LOOPBACK_NAMES) if port == HTTP_PORT else set())
