"""The local explorer as a web application: the API of the specification, over a dataset."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from beaconframes.endpoint import Endpoint, Refused
from beaconframes.endpoint.chain_metadata import ChainMetadata
from beaconframes.fetch.response_warnings import GENESIS
from beaconframes.server import charts, wire
from beaconframes.server.host_check import Visitors
from beaconframes.server.limits import PERMITTED, Limited
from beaconframes.server.rows import Rows
from beaconframes.server.v2 import Generation2, endpoints_of, refused
from beaconframes.v1 import ENDPOINTS
from beaconframes.v1.chart import CHART_PATH

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import polars as pl
    from starlette.types import Scope

    from beaconframes.dataset import Dataset
    from beaconframes.server.v2.tiers import Tier
    from beaconframes.server.wire import Wire

JSON = "application/json"
LARGEST_BODY = 1 << 20


class Service:
    """One dataset, answering. Holds what handlers share; it never changes the dataset."""

    def __init__(self, dataset: Dataset, keys: Collection[str] = (), spoken: Wire = "spec") -> None:
        """Serve *dataset* on one wire; with *keys*, only to those who know one.

        Keys may be given with the tier that each belongs to, ``"free"`` or ``"premium"``.
        """
        self.wire = spoken
        self.dataset = dataset
        self.rows = Rows(dataset, public=spoken == "public")
        self.keys = frozenset(keys)
        self.tiers: dict[str, Tier] = dict(keys) if isinstance(keys, Mapping) else {}
        metadata = ChainMetadata.parse(dataset.meta)
        self.chain, self.head = metadata.chain, metadata.head
        self.told = {GENESIS: str(self.chain.genesis)}
        self.requests = 0
        self._counting = threading.Lock()
        self.generation2 = Generation2(self)

    @cached_property
    def indices(self) -> dict[str, int]:
        """Return the validator index of every public key."""
        known = self.dataset.scan("validators").select("pubkey", "validator_index").collect()
        return dict(known.iter_rows())

    def index_of(self, pubkey: str) -> int | None:
        """Return the validator index of a public key, or None."""
        return self.indices.get(pubkey)

    @cached_property
    def pubkeys(self) -> dict[int, str]:
        """Return the public key of every validator index."""
        return {index: pubkey for pubkey, index in self.indices.items()}

    def pubkey_of(self, index: int) -> str | None:
        """Return the public key of a validator index, or None."""
        return self.pubkeys.get(index)

    def scan(self, table: str) -> pl.LazyFrame:
        """Return the rows of another table, for what follows from several."""
        return self.rows.scan(table)

    def answer(self, endpoint: Endpoint, fields: dict[str, str], supplied: str | None) -> Response:
        """Return the answer of *endpoint* to a request that carries *fields* and a key."""
        with self._counting:
            self.requests += 1
        if not self.admits(supplied):
            return error("invalid or missing API key", 401)
        try:
            asked = wire.asked(endpoint, fields, self, self.wire)
            found = self.rows.records(endpoint, asked, self)
            body = wire.body(endpoint, found, asked, self.wire)
        except Refused as refusal:
            return error(wire.words(endpoint, refusal.message, fields, self, self.wire), 400)
        return Response(body, media_type=JSON, headers=self.told)

    def answer_2(self, endpoint: Endpoint, body: bytes, supplied: str | None) -> Response:
        """Return the answer of *endpoint* of generation 2 to a request with *body* and a key."""
        with self._counting:
            self.requests += 1
        if not self.admits(supplied):
            return error_2(401)
        tier = self.tiers.get(supplied or "", "premium")
        status, found = self.generation2.answer(endpoint, body, tier)
        return Response(found, status, media_type=JSON, headers=self.told)

    def chart(self, name: str, supplied: str | None) -> Response:
        """Return the picture called *name* to a request that carries a key."""
        with self._counting:
            self.requests += 1
        if not self.admits(supplied):
            return error("invalid or missing API key", 401)
        picture = charts.draw(self.dataset, name)
        if picture is None:
            return error("no data available for the requested chart", 400)
        return Response(picture, media_type="image/png")

    def admits(self, supplied: str | None) -> bool:
        """Return whether a request that carries this key, or none, is answered."""
        return not self.keys or supplied in self.keys


def error(message: str, status: int) -> Response:
    """Return the error body of generation 1."""
    body = msgspec.json.encode({"status": f"ERROR: {message}", "data": None})
    return Response(body, status, media_type=JSON, headers={"x-content-type-options": "nosniff"})


def error_2(status: int, method: str = "") -> Response:
    """Return the error body of generation 2."""
    body = refused(status, method=method)
    return Response(body, status, media_type=JSON, headers={"x-content-type-options": "nosniff"})


def key_of(request: Request) -> str | None:
    """Return the key that came with a request: query first, then either header."""
    return (
        request.query_params.get("apikey")
        or request.headers.get("apikey")
        or request.headers.get("x-api-key")
    )


def get(service: Service, endpoint: Endpoint) -> Callable[[Request], Response]:
    """Return the handler of a GET route. Not async, so that polars lets other threads run."""

    def handler(request: Request) -> Response:
        fields = dict(request.query_params)
        fields.pop("apikey", None)
        return service.answer(endpoint, fields | request.path_params, key_of(request))

    return handler


def chart(service: Service) -> Callable[[Request], Response]:
    """Return the handler of the pictures."""
    return lambda request: service.chart(request.path_params["chart"], key_of(request))


def post(service: Service, endpoint: Endpoint) -> Callable[[Request], Any]:
    """Return the handler of the POST twin of *endpoint*."""
    twin = endpoint.post
    if twin is None:  # pragma: no cover
        raise ValueError(endpoint.name)

    async def handler(request: Request) -> Response:
        body = await body_of(request)
        try:
            text = None if body is None else msgspec.json.decode(body)[twin.field]
        except (msgspec.MsgspecError, KeyError, TypeError):
            text = None
        if not isinstance(text, str):
            return error("error decoding request body", 400)
        key = key_of(request)
        return await run_in_threadpool(service.answer, endpoint, {twin.arg: text}, key)

    return handler


async def body_of(request: Request) -> bytes | None:
    """Return the body of a request, or None for one that is too long or does not come."""
    body = b""
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > LARGEST_BODY:
                return None
    except ClientDisconnect:
        return None
    return body


def bearer_of(request: Request) -> str | None:
    """Return the key that came with a request of generation 2."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None


def post_2(service: Service, endpoint: Endpoint) -> Callable[[Request], Any]:
    """Return the handler of an endpoint of generation 2."""

    async def handler(request: Request) -> Response:
        body = await body_of(request)
        if body is None:
            return error_2(400)
        return await run_in_threadpool(service.answer_2, endpoint, body, bearer_of(request))

    return handler


async def unknown(request: Request, failure: Exception) -> Response:
    """Answer a path or method that the API does not have."""
    if request.url.path.startswith("/api/v2/"):
        return error_2(getattr(failure, "status_code", 404), request.method)
    return error("404 page not found", 404)


def turned_away(scope: Scope, status: int) -> Response:
    """Answer somebody who is not served."""
    if scope["path"].startswith("/api/v2/"):
        return error_2(status)
    return error("this server is for programs of this machine", status)


async def broken(request: Request, _: Exception) -> Response:
    """Answer when something here failed."""
    if request.url.path.startswith("/api/v2/"):
        return error_2(500)
    return error("internal server error", 500)


def app(service: Service, rate: int | None = None) -> Starlette:
    """Return the web application of *service*, with *rate* requests a second permitted."""
    routes = [Route(CHART_PATH, chart(service), methods=["GET"])]
    for endpoint in ENDPOINTS:
        paths = {endpoint.path, endpoint.alias, wire.ALSO.get(endpoint.name)} - {None}
        routes += [Route(str(path), get(service, endpoint), methods=["GET"]) for path in paths]
        if endpoint.post is not None:
            routes.append(Route(endpoint.post.path, post(service, endpoint), methods=["POST"]))
    for endpoint in endpoints_of():
        routes.append(Route(endpoint.path, post_2(service, endpoint), methods=["POST"]))
    # A fixed path, such as that of the leaderboard, goes before one that would take it for a name.
    routes.sort(key=lambda route: route.path.count("{"))
    application = Starlette(
        routes=routes, exception_handlers={404: unknown, 405: unknown, 500: broken}
    )
    application.router.redirect_slashes = False
    if rate is not None or service.wire == "public":

        def known(scope: Scope) -> bool:
            request = Request(scope)
            key = key_of(request) or bearer_of(request)
            return bool(key) and service.admits(key)

        permitted = PERMITTED if rate is None else rate
        application.add_middleware(Limited, rate=permitted, known=known)
    if service.wire == "public":
        application.add_middleware(GZipMiddleware, compresslevel=1)
    application.add_middleware(Visitors, refuse=turned_away)
    return application
