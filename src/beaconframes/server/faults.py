"""Simulated faults: errors, delays and lost answers, to rehearse an outage of the service.

The same seed and the same order of requests give the same faults.
"""

from __future__ import annotations

import asyncio
import random
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.responses import Response

from beaconframes.errors import UsageError
from beaconframes.server.service import build_error_for
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

SEED = 0
HANG_SECONDS = 600.0
"""Seconds until the connection of a request with the fault ``hang`` is closed."""
RETRY_AFTER = 1
"""Seconds that a simulated 429 asks the client to wait."""
HTML = b"<!DOCTYPE html><title>Service unavailable</title><h1>Service unavailable</h1>"
HINT = "Write '503@10%', 'hang@1%', 'truncate@1%', 'html@5%' or 'latency=80ms'"

FAULT = re.compile(r"(?P<kind>[45][0-9]{2}|hang|truncate|html)(@(?P<percent>[0-9.]+)%)?", re.ASCII)
LATENCY = re.compile(r"latency=(?P<number>[0-9.]+)(?P<unit>ms|s)", re.ASCII)


@dataclass(frozen=True)
class FaultPlan:
    """The faults of a server, and the delay of every answer in seconds.

    ``faults`` has each kind of fault with its share of the requests, from 0 to 1.
    """

    faults: tuple[tuple[str, float], ...] = ()
    latency: float = 0.0


def parse_faults(texts: str | Sequence[str]) -> FaultPlan:
    """Return the faults described by texts such as ``"503@10%"`` and ``"latency=80ms"``.

    Without a percentage a fault affects every request.
    """
    faults: list[tuple[str, float]] = []
    latency = 0.0
    for text in [texts] if isinstance(texts, str) else texts:
        fault, delay = FAULT.fullmatch(text), LATENCY.fullmatch(text)
        try:
            if fault is not None:
                faults.append((fault["kind"], float(fault["percent"] or 100) / 100))
            elif delay is not None:
                latency += float(delay["number"]) / (1_000 if delay["unit"] == "ms" else 1)
        except ValueError:
            fault = delay = None
        if fault is None and delay is None:
            raise UsageError(f"fault {shorten(text)} is not valid", hint=HINT)
    if sum(share for _, share in faults) > 1:
        raise UsageError("the faults affect more than 100% of the requests", hint=HINT)
    return FaultPlan(tuple(faults), latency)


class FaultMiddleware:
    """Middleware that delays answers and replaces some of them by faults."""

    def __init__(self, app: ASGIApp, plan: FaultPlan) -> None:
        self.app, self.plan = app, plan
        self._random = random.Random(SEED)  # noqa: S311 - repeatable, not secret

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        kind = self._choose_kind()
        if self.plan.latency:
            await asyncio.sleep(self.plan.latency)
        if kind is None:
            await self.app(scope, receive, send)
        elif kind == "hang":
            await wait_for_disconnect(receive)
        elif kind == "truncate":
            await self.app(scope, receive, TruncatedSend(send))
        elif kind == "html":
            response = Response(HTML, headers={"content-type": "text/html"})
            await response(scope, receive, send)
        else:
            response = build_error_for(scope["path"], int(kind), f"simulated fault {kind}")
            if response.status_code == HTTPStatus.TOO_MANY_REQUESTS:
                response.headers["retry-after"] = str(RETRY_AFTER)
            await response(scope, receive, send)

    def _choose_kind(self) -> str | None:
        """Return the kind of fault for the next request; None for a normal answer."""
        number = self._random.random()
        for kind, share in self.plan.faults:
            number -= share
            if number < 0:
                return kind
        return None


class TruncatedSend:
    """Sends half of the first part of a body; the server then closes the connection."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._is_cut = False

    async def __call__(self, message: Message) -> None:
        """Send a message, unless the body is already cut."""
        if self._is_cut:
            return
        if message["type"] == "http.response.body":
            self._is_cut = True
            body = message.get("body", b"")
            message = {**message, "body": body[: len(body) // 2], "more_body": True}
        await self._send(message)


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client closes the connection, for ten minutes at most."""
    try:
        async with asyncio.timeout(HANG_SECONDS):
            while (await receive())["type"] != "http.disconnect":
                pass
    except TimeoutError:
        pass
