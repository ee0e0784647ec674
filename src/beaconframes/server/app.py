"""The web application of the local explorer: routes, request parsing, middleware."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from beaconframes.server import wire
from beaconframes.server.access import V2_PREFIX, Access
from beaconframes.server.faults import FaultMiddleware, FaultPlan
from beaconframes.server.limits import RATE_LIMIT_HEADERS, RateLimitMiddleware
from beaconframes.server.middleware import AccessLog, HostCheck, KeyCheck
from beaconframes.server.openapi import HEALTH_PATHS, OPENAPI_PATH, encode_openapi
from beaconframes.server.service import (
    JSON,
    NOSNIFF,
    build_error,
    build_error_for,
    build_error_v2,
)
from beaconframes.server.service_v2 import find_endpoints
from beaconframes.v1 import ENDPOINTS
from beaconframes.v1._execution_requests import REQUEST_LISTS
from beaconframes.v1.chart import CHART_PATH

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from beaconframes.endpoint import Endpoint
    from beaconframes.server.service import Service

MAX_BODY_BYTES = 1 << 20
MAX_BRACKETS = 1_000
"""Valid bodies have fewer than ten. Decoding thousands of levels overflows the stack of a thread,
if another library has raised Python's limit of recursion.
"""
CORS_HEADERS = ("apikey", "x-api-key", "authorization", "content-type", "accept")


def build_app(
    service: Service,
    access: Access | None = None,
    faults: FaultPlan | None = None,
    origins: Collection[str] = (),
) -> Starlette:
    """Return the web application of *service* for the callers that *access* permits.

    Web pages of the *origins* may read answers.
    """
    access = access or Access(wire=service.wire)
    check = [Middleware(KeyCheck, access=access)]
    routes = [
        Route(
            CHART_PATH,
            lambda request: service.answer_chart(request.path_params["chart"]),
            middleware=check,
        )
    ]
    # Health checks and the OpenAPI document need no key.
    routes += [Route(path, lambda _: service.answer_health()) for path in HEALTH_PATHS]
    for endpoint in (*ENDPOINTS, *REQUEST_LISTS):
        paths = {endpoint.path, endpoint.alias, wire.EXTRA_PATHS.get(endpoint.name)} - {None}
        routes += [
            Route(str(path), build_get_handler(service, access, endpoint), middleware=check)
            for path in paths
        ]
        if endpoint.post is not None:
            handler = build_post_handler(service, access, endpoint)
            routes.append(Route(endpoint.post.path, handler, methods=["POST"], middleware=check))
    for endpoint in find_endpoints(old_queues=service.old_queues):
        handler = build_v2_handler(service, access, endpoint)
        routes.append(Route(endpoint.path, handler, methods=["POST"], middleware=check))
    routes.append(
        Route(
            OPENAPI_PATH,
            lambda _: Response(
                encode_openapi(service.wire, old_queues=service.old_queues),
                media_type=JSON,
                headers=NOSNIFF,
            ),
        )
    )
    # Fixed paths first: the leaderboard's path also matches the path of a validator. V2 last: each
    # of its paths is fixed, and a request of V1 is compared with all routes before its own.
    routes.sort(key=lambda route: (route.path.startswith(V2_PREFIX), route.path.count("{")))
    application = Starlette(
        routes=routes,
        exception_handlers={404: handle_unknown, 405: handle_unknown, 500: handle_failure},
    )
    application.router.redirect_slashes = False
    if faults is not None and (faults.faults or faults.latency):
        application.add_middleware(FaultMiddleware, plan=faults)
    if access.limits:
        application.add_middleware(RateLimitMiddleware, access=access)
    if service.wire == "public":
        application.add_middleware(GZipMiddleware, compresslevel=1)
    if origins:
        application.add_middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST"],
            allow_headers=CORS_HEADERS,
            allow_private_network=True,
            expose_headers=["retry-after", *RATE_LIMIT_HEADERS],
        )
    application.add_middleware(HostCheck, origins=origins)
    application.add_middleware(AccessLog)
    return application


def build_get_handler(
    service: Service, access: Access, endpoint: Endpoint
) -> Callable[[Request], Response]:
    """Return the handler of a GET route. Not async, so that polars does not block others."""

    def handler(request: Request) -> Response:
        fields = dict(request.query_params)
        fields.pop("apikey", None)
        tier = access.identify(request).tier
        return service.answer(endpoint, fields | request.path_params, tier)

    return handler


def build_post_handler(
    service: Service, access: Access, endpoint: Endpoint
) -> Callable[[Request], Any]:
    """Return the handler of the POST variant of *endpoint*."""
    post = endpoint.post
    assert post is not None

    async def handler(request: Request) -> Response:
        body = await read_body(request)
        try:
            text = None if body is None else msgspec.json.decode(body)[post.field]
        except (msgspec.MsgspecError, KeyError, TypeError):
            text = None
        if not isinstance(text, str):
            return build_error("error decoding request body", 400)
        tier = access.identify(request).tier
        return await run_in_threadpool(service.answer, endpoint, {post.arg: text}, tier)

    return handler


def build_v2_handler(
    service: Service, access: Access, endpoint: Endpoint
) -> Callable[[Request], Any]:
    """Return the handler of a V2 endpoint."""

    async def handler(request: Request) -> Response:
        body = await read_body(request)
        if body is None:
            return build_error_v2(400)
        tier = access.identify(request).tier or "premium"
        return await run_in_threadpool(service.answer_v2, endpoint, body, tier)

    return handler


async def handle_unknown(request: Request, failure: Exception) -> Response:
    """Return the answer to a path or method that the API does not have."""
    if request.url.path.startswith(V2_PREFIX):
        return build_error_v2(getattr(failure, "status_code", 404), request.method)
    return build_error("404 page not found", 404)


async def handle_failure(request: Request, _: Exception) -> Response:
    """Return the answer to a request whose handler failed."""
    return build_error_for(request.url.path, 500)


async def read_body(request: Request) -> bytes | None:
    """Return the body of a request, or None if it is too long, too deep or incomplete."""
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                return None
    except ClientDisconnect:
        return None
    return None if body.count(b"[") + body.count(b"{") > MAX_BRACKETS else body
