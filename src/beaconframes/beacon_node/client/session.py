"""Requests to a beacon node or an execution node: credentials, retries, and errors for users."""

from __future__ import annotations

import re
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

import msgspec

from beaconframes.beacon_node.client.clients import find_archive_hint, find_client
from beaconframes.beacon_node.client.json_rpc import EXECUTION_HINT, parse_results
from beaconframes.endpoint import Envelope, Request
from beaconframes.errors import (
    BadRequest,
    BeaconframesError,
    NotFound,
    NotServed,
    ProtocolError,
    ServerError,
    Unauthorized,
)
from beaconframes.http.credentials import split_address
from beaconframes.http.rate_limiter import RateLimiter
from beaconframes.http.response import ResponsePage, parse_page
from beaconframes.http.retry import MAX_ATTEMPTS, AttemptFailed
from beaconframes.http.session import Session
from beaconframes.http.status_errors import error_for_status, parse_members
from beaconframes.http.transport import Timeouts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import httpx

    from beaconframes.http.rate_limiter import Clock
    from beaconframes.http.response import HttpResponse
    from beaconframes.secret import Secret

SSZ: Final = "application/octet-stream"
MAX_BODY: Final = 4 * 2**30
"""Bytes: the JSON of all validators of mainnet has one gibibyte."""
SLOW: Final = Timeouts(total=1800.0, read=600.0)
"""For what the client may have to regenerate: some need minutes for an old state."""
USUAL: Final = Timeouts(total=300.0, read=60.0)
QUICK: Final = Timeouts(total=60.0, read=15.0)
"""For the first request, which shows whether the address is that of a node."""
MAX_ATTEMPTS_500: Final = 2
"""Clients also answer 500 to what they do not have, which a retry does not change."""

NO_ROUTE = re.compile(
    r"(route|endpoint|page|method|path)\b.{0,200}\bnot found|cannot (get|post) /|^NOT_FOUND$|^$",
    re.IGNORECASE | re.DOTALL,
)
CREDENTIALS_HINT = (
    "Put the credentials into the node's address: https://user:password@host, or as the provider "
    "states it"
)

_TEXT = msgspec.json.Decoder(str | None)


class Measured(NamedTuple):
    """What the successful requests of one route took."""

    requests: int = 0
    byte_count: int = 0
    seconds: float = 0.0


class NodeSession:
    """Sends requests to one node, from any number of threads.

    Credentials in *url* (user and password, a token in its path, a query) are sent with each
    request and shown nowhere. Without a *rate*, only `MAX_CONCURRENT` limits requests, unless the
    node states a limit.
    """

    def __init__(
        self,
        url: str | Secret,
        *,
        rate: float | None = None,
        clock: Clock | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Check *url*; connections are opened on first use."""
        self.url, credentials = split_address(url)
        """The address without credentials."""
        self.has_credentials = credentials is not None
        self.client_version = ""
        """The version that the node has stated, for the texts of errors."""
        self.measured: dict[str, Measured] = {}
        """What successful requests took, by route."""
        self.stated_sizes: dict[str, int] = {}
        """Bytes of the largest response of which only the beginning was read, by route."""
        self._lock = threading.Lock()
        self._session = Session(
            self.url,
            credentials=credentials,
            parse=self._parse,
            rate_limiter=RateLimiter(rate, clock=clock),
            timeouts=USUAL,
            max_body=MAX_BODY,
            transport=transport,
        )

    def __repr__(self) -> str:
        return f"NodeSession({self.url!r})"

    @property
    def rate_limiter(self) -> RateLimiter:
        """Return the rate limiter of the node."""
        return self._session.rate_limiter

    @property
    def request_count(self) -> int:
        """Return the number of requests sent so far, retries included."""
        return self._session.request_count

    def close(self) -> None:
        """Close all connections; a later request opens new ones."""
        self._session.close()

    def fetch(
        self,
        route: str,
        path_arguments: Mapping[str, object] | None = None,
        *,
        query: Sequence[tuple[str, object]] = (),
        body: Any = None,
        accept: str = "",
        timeouts: Timeouts = USUAL,
        first_bytes: int | None = None,
    ) -> ResponsePage:
        """Return the page of a *route* such as ``/eth/v2/beacon/blocks/{block_id}``.

        Of an SSZ response, only the *first_bytes* are read.
        """
        request = self._build(route, path_arguments, query, body, accept, first_bytes)
        started_at = time.monotonic()
        page = self._session.fetch(request, timeouts=timeouts)
        with self._lock:
            if first_bytes is None:
                count, size, seconds = self.measured.get(route, Measured())
                seconds += time.monotonic() - started_at
                self.measured[route] = Measured(count + 1, size + len(page.data), seconds)
            elif "content-encoding" not in page.headers:
                stated = page.headers.get("content-length", "")
                if re.fullmatch(r"[0-9]{1,15}", stated):
                    self.stated_sizes[route] = max(int(stated), self.stated_sizes.get(route, 0))
        return page

    def stream_lines(
        self,
        route: str,
        *,
        query: Sequence[tuple[str, object]] = (),
        stop: threading.Event | None = None,
    ) -> Iterator[str]:
        """Yield the lines of an event stream, until it ends with an error."""
        request = self._build(route, None, query, None, "text/event-stream")
        return self._session.stream_lines(request, stop=stop)

    def call(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        """Return the results of JSON-RPC *calls*, (method, parameters) each, sent as one batch.

        One call is not sent as a batch: some providers refuse batches.
        """
        outcome = self._call(calls)
        # Raised here, so that no frame of the traceback holds a body.
        if isinstance(outcome, BeaconframesError):
            raise outcome
        return outcome

    def _call(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any] | BeaconframesError:
        batch = [
            {"jsonrpc": "2.0", "id": number, "method": method, "params": list(parameters)}
            for number, (method, parameters) in enumerate(calls)
        ]
        names = " + ".join(sorted({method for method, _ in calls}))
        body = msgspec.json.encode(batch if len(batch) > 1 else batch[0])
        request = Request("POST", "", body=body, endpoint=names, envelope=Envelope.BARE)
        page = self._session.fetch(request, timeouts=SLOW)
        return parse_results(page.data, calls, names, self._session.redact)

    def _build(
        self,
        route: str,
        path_arguments: Mapping[str, object] | None,
        query: Sequence[tuple[str, object]],
        body: Any,
        accept: str,
        first_bytes: int | None = None,
    ) -> Request:
        given = {name: quote(str(text), safe="") for name, text in (path_arguments or {}).items()}
        method = "GET" if body is None else "POST"
        return Request(
            method,
            route.format(**given),
            tuple((name, str(text)) for name, text in query),
            None if body is None else msgspec.json.encode(body),
            endpoint=f"{method} {route}",
            envelope=Envelope.V2,
            accept=accept,
            first_bytes=first_bytes,
        )

    def _parse(self, response: HttpResponse, request: Request) -> ResponsePage:
        is_rpc = request.envelope is Envelope.BARE
        # Some servers send the errors of JSON-RPC with the status of an HTTP error.
        is_answer = is_rpc and response.status in {400, 404, 405, 413, 500}
        if response.status != 200 and not (is_answer and b'"jsonrpc"' in response.body):
            raise self._error(response, request)
        is_json = "json" in response.headers.get("content-type", "").lower()
        if request.accept == SSZ and is_json:
            raise AttemptFailed(
                ProtocolError,
                f"{self._describe()} answered JSON where SSZ was requested",
                hint="Update the client, or check the proxy in front of it",
                max_attempts=1,
            )
        if is_rpc or request.accept == SSZ:
            return ResponsePage(response.body, headers=response.headers)
        try:
            return parse_page(response, request)
        except AttemptFailed as failure:
            failure.hint = failure.hint or "Check that the address is that of a beacon node"
            raise

    def _error(self, response: HttpResponse, request: Request) -> AttemptFailed:
        status, text = response.status, error_text(response.body)
        if status < 400 or status in {408, 429, 502, 503, 504}:
            return error_for_status(status, response.headers, response.body)
        kind: type[Any] = BadRequest
        hint = None
        if request.envelope is Envelope.BARE:
            hint = EXECUTION_HINT
        if status in {401, 403}:
            kind, hint = Unauthorized, f"{CREDENTIALS_HINT}. {hint}" if hint else CREDENTIALS_HINT
        elif status in {405, 415, 501} or (status == 404 and NO_ROUTE.search(text)):
            kind, hint = NotServed, hint or self._route_hint(request)
        elif status == 404:
            kind, hint = NotFound, hint or self._state_hint(request)
        elif status >= 500:
            kind, hint = ServerError, hint or self._state_hint(request)
        return AttemptFailed(
            kind,
            f"{self._describe()} answered with status {status}",
            quoted=text,
            hint=hint or "Check that the node is synchronized and of the right chain",
            max_attempts=1 if status < 500 else min(MAX_ATTEMPTS, MAX_ATTEMPTS_500),
        )

    def _describe(self) -> str:
        return self.client_version.split("/x86")[0] or "the node"

    def _route_hint(self, request: Request) -> str:
        client = find_client(self.client_version)
        if client is not None and "/rewards/" in request.path:
            return f"This version of {client.name} does not have it: {client.rewards_note}"
        return "Check that the address is that of a beacon node, without a path such as /eth/v1"

    def _state_hint(self, request: Request) -> str | None:
        needs_state = re.search(r"/(states|rewards|duties)/", request.path)
        if needs_state is None:
            return None
        hint = find_archive_hint(self.client_version)
        return f"The node may not store states of this time: {hint}"


def error_text(body: bytes) -> str:
    """Return the message in the error of a node, or its text."""
    members = parse_members(body)
    for name in ("message", "title", "error", "code"):
        with suppress(KeyError, msgspec.MsgspecError):
            text: str | None = _TEXT.decode(members[name])
            if text is not None:
                return text.strip()
    return body[: 2**14].decode(errors="replace").strip()
