"""Who is served: whoever asks for this machine by its own name, and no page of somebody else.

A page in the user's browser may send requests to this machine, under a name of its own that leads
here, or as a form. It must neither read answers nor have requests answered in the user's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

NAMES = ("127.0.0.1", "localhost")
HTTP_PORT = 80


class Visitors:
    """Lets those in who may be, and answers the others without asking the application."""

    def __init__(self, app: ASGIApp, refuse: Callable[[Scope, int], Response]) -> None:
        """Let visitors in to *app*, or answer what *refuse* says to a status."""
        self.app, self.refuse = app, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        status = judged(scope) if scope["type"] == "http" else None
        answer = self.app if status is None else self.refuse(scope, status)
        await answer(scope, receive, send)


def judged(scope: Scope) -> int | None:
    """Return the status with which a request is refused, None if it is not."""
    headers = Headers(scope=scope)
    own = hosts(scope)
    if len(said := headers.getlist("host")) != 1 or said[0].lower() not in own:
        return 421
    origin = headers.get("origin")
    elsewhere = origin is not None and origin.lower() not in {f"http://{host}" for host in own}
    if scope["method"] == "POST" and (elsewhere or headers.get("sec-fetch-site") == "cross-site"):
        return 403
    return None


def hosts(scope: Scope) -> set[str]:
    """Return what this server may be called in a request."""
    port = scope["server"][1]
    return {f"{name}:{port}" for name in NAMES} | (set(NAMES) if port == HTTP_PORT else set())
