"""A service in this process whose replicas have the same rows and different heads."""

from __future__ import annotations

import itertools
import json
import re
import threading
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

import httpx

import beaconframes as bf
from beaconframes.endpoint import Head
from beaconframes.fetch.source import ApiSource
from beaconframes.http.session import Session
from beaconframes.v1 import ENDPOINTS, VALIDATORS
from beaconframes.v2 import ENDPOINTS as ENDPOINTS_V2

if TYPE_CHECKING:
    from collections.abc import Callable

    from beaconframes.server.service import Service

URL = "http://127.0.0.1:9"


def head_at(epoch: int) -> Head:
    """Return a head in the last slot of *epoch*; the epoch two before it is final."""
    return Head(epoch, max(epoch - 2, 0), epoch * 32 + 31)


class ServiceTransport(httpx.BaseTransport):
    """Answers requests from a *service* in this process.

    V1 requests for more than *at_most* validators are refused, as for the plan of some keys.
    """

    def __init__(self, service: Service, *, at_most: int = 100) -> None:
        self.service = service
        self.at_most = at_most
        self.paths: list[str] = []
        self.lock = threading.Lock()
        self.routes = [
            (re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", e.path)), e)
            for e in sorted([*ENDPOINTS, *ENDPOINTS_V2], key=lambda e: e.path.count("{"))
        ]
        self.routes.append((re.compile(VALIDATORS.post.path), VALIDATORS))

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with self.lock:
            path = unquote(request.url.path)
            self.paths.append(request.url.raw_path.decode())
            return self.answer(request, path)

    def answer(self, request: httpx.Request, path: str) -> httpx.Response:
        matches = ((pattern.fullmatch(path), endpoint) for pattern, endpoint in self.routes)
        match, endpoint = next(found for found in matches if found[0] is not None)
        if path.startswith("/api/v2/"):
            answer = self.service.answer_v2(endpoint, request.content, "premium")
        elif path.count(",") >= self.at_most:
            text = f"ERROR: your plan has a limit of {self.at_most} identifiers"
            return httpx.Response(403, json={"status": text, "data": None})
        else:
            fields = dict(parse_qsl(request.url.query.decode())) | match.groupdict()
            if request.method == "POST":
                post = endpoint.post
                fields[post.arg] = json.loads(request.content)[post.field]
            answer = self.service.answer(endpoint, fields)
        return httpx.Response(answer.status_code, content=answer.body)

    def count(self, part: str) -> int:
        """Return how many requests had *part* in their path."""
        return sum(part in path for path in self.paths)


class Replicas(ServiceTransport):
    """Answers each request with the head that `epoch_of` returns for its number and its path."""

    def __init__(
        self, service: Service, epoch_of: Callable[[int, str], int], *, at_most: int = 100
    ) -> None:
        super().__init__(service, at_most=at_most)
        self.epoch_of = epoch_of
        self.numbers = itertools.count()

    def answer(self, request: httpx.Request, path: str) -> httpx.Response:
        head = head_at(self.epoch_of(next(self.numbers), path))
        self.service.views.current().head = head
        if path == "/api/v1/latestState":
            return httpx.Response(200, json={
                "currentSlot": head.slot, "currentEpoch": head.epoch,
                "currentFinalizedEpoch": head.finalized_epoch,
            })  # fmt: skip
        if path == "/api/v2/ethereum/slot":
            view = json.loads(request.content)["slot"]["view"]
            slot = head.slot if view == "latest" else (head.finalized_epoch + 1) * 32 - 1
            return httpx.Response(200, json={"data": {"slot": slot}})
        return super().answer(request, path)


def connect_to(transport: ServiceTransport, **options: object) -> bf.Explorer:
    """Return an explorer whose requests the *transport* answers."""
    explorer = bf.Explorer(URL, chain=transport.service.chain, rate=10_000, **options)
    session = Session(URL, rate_limiter=explorer.rate_limiter, transport=transport)
    explorer.source = ApiSource(session, session, public=False)
    return explorer
