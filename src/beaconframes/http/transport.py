"""The wire: the one module that imports an HTTP library's client, and the last to see the key.

One exchange is one request and its whole answer, or a Failure. Redirects are not followed,
cookies are not kept, and what is read is bounded in bytes and in time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version
from typing import TYPE_CHECKING, cast
from urllib.parse import quote, urlencode, urlsplit

import httpcore
import httpx

from beaconframes.errors import ConnectionFailed, ProtocolError, RequestTimeout
from beaconframes.http.body import Reply, bounded
from beaconframes.http.failure import AttemptFailed
from beaconframes.http.sockets import Deadline, TimeLeft, open_pool

if TYPE_CHECKING:
    from beaconframes.config import Secret
    from beaconframes.endpoint import Request

BODY_CAP = 64 * 2**20
REFUSAL_CAP = 64 * 2**10
"""Bytes of a refusal that are read: enough to see what it is."""
REFUSAL_SECONDS = 5.0


@dataclass(frozen=True)
class Timeouts:
    """Seconds: for a call with all its retries, for a connection, for silence in an answer."""

    total: float = 300.0
    connect: float = 10.0
    read: float = 30.0


Heard = Callable[[int, dict[str, str]], None]
"""Is told the status and the headers of an answer as soon as it begins."""


class Transport:
    """A pool of connections to one service, and the key that the service is given."""

    def __init__(
        self,
        base_url: str,
        key: Secret | None = None,
        *,
        timeouts: Timeouts | None = None,
        body_cap: int = BODY_CAP,
        transport: httpx.BaseTransport | None = None,
        http_client: httpx.Client | None = None,
    ) -> None:
        """Speak to *base_url*, through *transport* or *http_client* where one is handed in."""
        address = urlsplit(base_url)
        self.host = f"{address.hostname}:{address.port}" if address.port else address.hostname
        self._agent = f"beaconframes/{version('beaconframes')}"
        self._base_url = base_url.rstrip("/")
        self._key = key
        self._timeouts = timeouts or Timeouts()
        self._body_cap = body_cap
        self._patience = Deadline()
        self._client = http_client or httpx.Client(
            transport=transport or _Wire(base_url, self._patience),
            # A jar that takes nothing in.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            trust_env=False,
        )

    def exchange(self, request: Request, *, time_left: TimeLeft, heard: Heard) -> Reply:
        """Send *request* and return the whole answer, all within *time_left*."""
        self._patience.left = time_left
        try:
            return self._exchange(request, time_left, heard)
        except AttemptFailed:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is ours to name
            raise self._failure(error) from None
        finally:
            self._patience.reset()

    def close(self) -> None:
        """Close every connection."""
        self._client.close()

    def _exchange(self, request: Request, time_left: TimeLeft, heard: Heard) -> Reply:
        query = f"?{urlencode(request.query, quote_via=quote)}" if request.query else ""
        headers = {
            "Accept": request.accept or "application/json",
            "Accept-Encoding": "gzip",
            "User-Agent": self._agent,
        }
        if request.body is not None:
            headers["Content-Type"] = "application/json"
        patience = self._timeouts
        sent = self._client.build_request(
            request.method,
            f"{self._base_url}{request.path}{query}",
            content=request.body,
            headers=headers,
            timeout=httpx.Timeout(patience.read, connect=patience.connect, pool=time_left()),
        )
        sign = self._sign_v2 if request.path.startswith("/api/v2/") else self._sign_v1
        response = self._client.send(sent, stream=True, auth=sign, follow_redirects=False)
        try:
            told = {name: text for name, text in response.headers.items() if name != "set-cookie"}
            heard(response.status_code, told)
            if response.is_stream_consumed:
                # A transport that was handed in may have its answer ready, and decompressed.
                told.pop("content-encoding", None)
            if response.status_code == 200:
                parts = _parts(response, time_left)
                body = b"".join(bounded(parts, told, self._body_cap))
            else:
                body = self._refusal(response, told, time_left)
        finally:
            response.close()
        return Reply(response.status_code, told, body)

    def _sign_v1(self, request: httpx.Request) -> httpx.Request:
        """Put the key on *request*: the last thing that happens to it."""
        if self._key is not None:
            request.headers["apikey"] = self._key.reveal()
        return request

    def _sign_v2(self, request: httpx.Request) -> httpx.Request:
        if self._key is not None:
            request.headers["Authorization"] = f"Bearer {self._key.reveal()}"
        return request

    def _refusal(
        self, response: httpx.Response, told: dict[str, str], time_left: TimeLeft
    ) -> bytes:
        """Return the beginning of a body whose status has already said what matters."""
        end = time.monotonic() + REFUSAL_SECONDS

        def left() -> float:
            return min(time_left(), end - time.monotonic())

        self._patience.left = left
        start = bytearray()
        try:
            for piece in bounded(_parts(response, left), told, REFUSAL_CAP):
                start += piece
        except Exception:  # noqa: BLE001 - what could be read is enough
            time_left()
        return bytes(start)

    def _failure(self, error: Exception) -> AttemptFailed:
        # By name and not by class: a client handed in may be of a library with the same names.
        names = {kind.__name__ for kind in type(error).__mro__}
        told = str(error)
        if "TimeoutException" in names and "ConnectTimeout" not in names:
            return AttemptFailed(
                RequestTimeout,
                f"{self.host} was silent for {self._timeouts.read:g} s",
            )
        if "RemoteProtocolError" in names and "disconnect" not in told and "closed" not in told:
            return AttemptFailed(ProtocolError, f"{self.host} does not speak HTTP", said=told)
        if "certificate" in told.lower():
            return AttemptFailed(
                ConnectionFailed,
                f"{self.host} cannot prove that it is {self.host}",
                said=told,
                hint="Nothing was sent. SSL_CERT_FILE can name an authority of your own",
                attempts=1,
            )
        if names & {
            "NetworkError",
            "RemoteProtocolError",
            "ConnectTimeout",
            "ProxyError",
            "OSError",
        }:
            return AttemptFailed(
                ConnectionFailed,
                f"no answer from {self.host}",
                said=told or type(error).__name__,
            )
        # Such an error may quote what was to be sent, so it is named and not quoted.
        return AttemptFailed(
            ProtocolError, f"cannot speak with {self.host} ({type(error).__name__})", attempts=1
        )


def _parts(response: httpx.Response, time_left: TimeLeft) -> Iterator[bytes]:
    for part in [response.content] if response.is_stream_consumed else response.iter_raw():
        time_left()
        yield part


class _Wire(httpx.BaseTransport):
    """The HTTP library's own connections, with our patience."""

    def __init__(self, base_url: str, patience: Deadline) -> None:
        secure = urlsplit(base_url).scheme == "https"
        self._pool = open_pool(base_url, httpx.create_ssl_context() if secure else None, patience)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        response = self._pool.handle_request(
            httpcore.Request(
                request.method,
                httpcore.URL(
                    scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=_Body(response),
            extensions=response.extensions,
        )

    def close(self) -> None:
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        return iter(cast("Iterable[bytes]", self._response.stream))

    def close(self) -> None:
        self._response.close()
