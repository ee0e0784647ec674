"""The web application of the local explorer: routes, request parsing, middleware."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route

from beaconframes.server import wire
from beaconframes.server.host_check import HostCheck
from beaconframes.server.limits import PUBLIC_RATE, RateLimitMiddleware
from beaconframes.server.service import build_error, build_error_v2
from beaconframes.server.v2 import find_endpoints
from beaconframes.v1 import ENDPOINTS
from beaconframes.v1.chart import CHART_PATH

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response
    from starlette.types import Scope

    from beaconframes.endpoint import Endpoint
    from beaconframes.server.service import Service

MAX_BODY_BYTES = 1 << 20
V2_PREFIX = "/api/v2/"


def build_app(service: Service, rate: int | None = None) -> Starlette:
    """Return the web application of *service*, which permits *rate* requests per second."""
    routes = [Route(CHART_PATH, handle_chart(service), methods=["GET"])]
    for endpoint in ENDPOINTS:
        paths = {endpoint.path, endpoint.alias, wire.EXTRA_PATHS.get(endpoint.name)} - {None}
        routes += [
            Route(str(path), handle_get(service, endpoint), methods=["GET"]) for path in paths
        ]
        if endpoint.post is not None:
            handler = handle_post(service, endpoint)
            routes.append(Route(endpoint.post.path, handler, methods=["POST"]))
    for endpoint in find_endpoints():
        routes.append(Route(endpoint.path, handle_v2(service, endpoint), methods=["POST"]))
    # Fixed paths first: the leaderboard's path also matches the path of a validator.
    routes.sort(key=lambda route: route.path.count("{"))
    application = Starlette(
        routes=routes,
        exception_handlers={404: handle_unknown, 405: handle_unknown, 500: handle_failure},
    )
    application.router.redirect_slashes = False
    if rate is not None or service.wire == "public":

        def has_valid_key(scope: Scope) -> bool:
            request = Request(scope)
            key = parse_key(request) or parse_bearer_key(request)
            return bool(key) and service.is_authorized(key)

        permitted = PUBLIC_RATE if rate is None else rate
        application.add_middleware(RateLimitMiddleware, rate=permitted, has_valid_key=has_valid_key)
    if service.wire == "public":
        application.add_middleware(GZipMiddleware, compresslevel=1)
    application.add_middleware(HostCheck, build_refusal=build_refusal)
    return application


def handle_get(service: Service, endpoint: Endpoint) -> Callable[[Request], Response]:
    """Return the handler of a GET route. Not async, so that polars does not block others."""

    def handler(request: Request) -> Response:
        fields = dict(request.query_params)
        fields.pop("apikey", None)
        return service.answer(endpoint, fields | request.path_params, parse_key(request))

    return handler


def handle_chart(service: Service) -> Callable[[Request], Response]:
    """Return the handler of the charts."""
    return lambda request: service.answer_chart(request.path_params["chart"], parse_key(request))


def handle_post(service: Service, endpoint: Endpoint) -> Callable[[Request], Any]:
    """Return the handler of the POST variant of *endpoint*."""
    post = endpoint.post
    if post is None:  # pragma: no cover
        raise ValueError(endpoint.name)

    async def handler(request: Request) -> Response:
        body = await read_body(request)
        try:
            text = None if body is None else msgspec.json.decode(body)[post.field]
        except (msgspec.MsgspecError, KeyError, TypeError):
            text = None
        if not isinstance(text, str):
            return build_error("error decoding request body", 400)
        key = parse_key(request)
        return await run_in_threadpool(service.answer, endpoint, {post.arg: text}, key)

    return handler


def handle_v2(service: Service, endpoint: Endpoint) -> Callable[[Request], Any]:
    """Return the handler of a V2 endpoint."""

    async def handler(request: Request) -> Response:
        body = await read_body(request)
        if body is None:
            return build_error_v2(400)
        key = parse_bearer_key(request)
        return await run_in_threadpool(service.answer_v2, endpoint, body, key)

    return handler


async def handle_unknown(request: Request, failure: Exception) -> Response:
    """Return the answer to a path or method that the API does not have."""
    if request.url.path.startswith(V2_PREFIX):
        return build_error_v2(getattr(failure, "status_code", 404), request.method)
    return build_error("404 page not found", 404)


async def handle_failure(request: Request, _: Exception) -> Response:
    """Return the answer to a request whose handler failed."""
    if request.url.path.startswith(V2_PREFIX):
        return build_error_v2(500)
    return build_error("internal server error", 500)


def build_refusal(scope: Scope, status: int) -> Response:
    """Return the answer to a request that the host check refuses."""
    if scope["path"].startswith(V2_PREFIX):
        return build_error_v2(status)
    return build_error("this server only answers programs on this machine", status)


async def read_body(request: Request) -> bytes | None:
    """Return the body of a request, or None if it is too long or incomplete."""
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                return None
    except ClientDisconnect:
        return None
    return body


def parse_key(request: Request) -> str | None:
    """Return the API key of a V1 request: from the query, else from either header."""
    return (
        request.query_params.get("apikey")
        or request.headers.get("apikey")
        or request.headers.get("x-api-key")
    )


def parse_bearer_key(request: Request) -> str | None:
    """Return the API key of a V2 request."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None
