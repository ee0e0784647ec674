"""The transport: one HTTP exchange, bounded in bytes and in time.

Only this module imports the HTTP client and adds the key to a request. It follows no redirects and
stores no cookies.
"""

from __future__ import annotations

import functools
import io
import math
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version
from ssl import PROTOCOL_TLS_CLIENT, SSLContext
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from beaconframes.errors import ConfigError, ConnectionFailed, ProtocolError, RequestTimeout
from beaconframes.http.response import HttpResponse, ResponsePage, decode_body
from beaconframes.http.retry import AttemptFailed
from beaconframes.http.status_errors import error_for_status

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from beaconframes.endpoint import Request
    from beaconframes.http.credentials import Credentials
    from beaconframes.secret import Secret

MAX_BODY = 64 * 2**20
MAX_ERROR_BODY = 64 * 2**10
"""Bytes to read of an error response: enough to classify it."""
ERROR_BODY_SECONDS = 5.0
POLL_INTERVAL = 0.1
"""Seconds: how often a waiting call checks its deadline and whether it was stopped."""
MAX_CONNECTIONS = 8
MAX_ABANDONED_WAIT = 2.0
"""Seconds: how long a request waits for abandoned ones to end, to open no further connection."""
FIRST_BYTES = 2**20
"""Bytes of a page after which its stated length is believed, and its memory allocated."""
SecondsLeft = Callable[[], float]
"""Returns the seconds until the deadline of a call; raises AttemptFailed when the call is over."""
Parse = Callable[[HttpResponse], ResponsePage]
"""Returns the page in a response, or raises AttemptFailed."""
OnHeaders = Callable[[int, dict[str, str]], None]
"""Receives the status and the headers of a response as soon as they arrive."""


@dataclass(frozen=True)
class Timeouts:
    """Seconds for a call with all its retries, for connecting, and between parts of a response."""

    total: float = 300.0
    connect: float = 10.0
    read: float = 30.0


class Transport:
    """The connections to one service, and the key to send."""

    def __init__(
        self,
        base_url: str,
        key: Secret | None = None,
        *,
        credentials: Credentials | None = None,
        max_body: int = MAX_BODY,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Connect to *base_url*, through *transport* if one is given."""
        address = urlsplit(base_url)
        self.host = f"{address.hostname}:{address.port}" if address.port else address.hostname
        self._user_agent = _read_user_agent()
        self._base_url = base_url.rstrip("/")
        self._key = key
        self._credentials = credentials
        self.max_body = max_body
        self.client = _open_client(base_url, transport)
        self._lock = threading.Lock()
        self.open_exchanges: set[_Exchange] = set()
        """The exchanges that have a connection, abandoned ones included."""
        self._threads = threading.local()

    def send(
        self,
        request: Request,
        parse: Parse,
        timeouts: Timeouts,
        *,
        seconds_left: SecondsLeft,
        on_headers: OnHeaders,
    ) -> ResponsePage:
        """Send *request* and return the page that *parse* finds, or raise AttemptFailed.

        The exchange runs in a separate thread, so that this thread notices its deadline, a stop
        and Ctrl-C at any time. An abandoned exchange ends when its headers or the next chunk of its
        body arrive, or after the read timeout. Its thread is not used again.
        """
        exchange = _Exchange(self, request, timeouts, parse)
        try:
            with self._lock:
                if len(self.open_exchanges) >= MAX_CONNECTIONS:
                    self._wait_for_abandoned(seconds_left)
                self.open_exchanges.add(exchange)
            self._open_thread().start(exchange)
            _wait(exchange.head, seconds_left)
            status, headers = exchange.head.result()
            on_headers(status, headers)
            # The status identifies an error; the body only adds its text.
            at_most = math.inf if status == 200 else ERROR_BODY_SECONDS
            _wait(exchange.page, seconds_left, at_most)
            if status == 200 and (page := exchange.page.result()) is not None:
                return page
            return parse(HttpResponse(status, headers, bytes(exchange.error_body)))
        except AttemptFailed:
            raise
        except Exception as error:  # noqa: BLE001 - any error of the HTTP client
            raise self._failure(error, timeouts) from None
        finally:
            exchange.is_abandoned = True
            if not exchange.page.done():
                self._threads.current = None

    def _open_thread(self) -> _ExchangeThread:
        """Return the thread for the exchanges of this thread; a new one for each costs 0.3 ms."""
        thread: _ExchangeThread | None = getattr(self._threads, "current", None)
        if thread is None:
            thread = self._threads.current = _ExchangeThread()
        return thread

    def stream_lines(
        self, request: Request, timeouts: Timeouts, seconds_left: SecondsLeft
    ) -> Iterator[str]:
        """Yield the lines of a response that does not end; raise AttemptFailed when it does."""
        stream = _LineStream(self.prepare(request, timeouts))
        stream.start()
        try:
            while True:
                try:
                    line = stream.lines.get(timeout=POLL_INTERVAL)
                except queue.Empty:
                    seconds_left()
                    continue
                if isinstance(line, str):
                    yield line
                    continue
                if isinstance(line, AttemptFailed):
                    raise line
                raise self._failure(line, timeouts) from None
        finally:
            stream.is_abandoned = True

    def _wait_for_abandoned(self, seconds_left: SecondsLeft) -> None:
        """Wait until a connection is free; but not long, because abandoned requests may hang."""
        end = time.monotonic() + MAX_ABANDONED_WAIT
        while len(self.open_exchanges) >= MAX_CONNECTIONS and time.monotonic() < end:
            time.sleep(min(seconds_left(), POLL_INTERVAL / 5))

    def close(self) -> None:
        """Close all connections."""
        self.client.close()

    def prepare(self, request: Request, timeouts: Timeouts) -> Callable[[], httpx.Response]:
        """Return the function that sends *request*, and returns the response before its body."""
        query = f"?{urlencode(request.query, quote_via=quote)}" if request.query else ""
        headers = {
            "Accept": request.accept or "application/json",
            "Accept-Encoding": "gzip",
            "User-Agent": self._user_agent,
        }
        if request.body is not None:
            headers["Content-Type"] = "application/json"
        built = self.client.build_request(
            request.method,
            f"{self._base_url}{request.path}{query}",
            content=request.body,
            headers=headers,
            timeout=(timeouts.connect, timeouts.read, timeouts.read, timeouts.read),
        )
        auth = functools.partial(self._add_key, request.path)
        return functools.partial(
            self.client.send, built, stream=True, auth=auth, follow_redirects=False
        )

    def _add_key(self, path: str, request: httpx.Request) -> httpx.Request:
        """Add the key to a *request*: its last change before it is sent."""
        if self._credentials is not None:
            return self._credentials.apply(request)
        if self._key is not None and path.startswith("/api/v2/"):
            request.headers["Authorization"] = f"Bearer {self._key.reveal()}"
        elif self._key is not None:
            request.headers["apikey"] = self._key.reveal()
        return request

    def _failure(self, error: Exception, timeouts: Timeouts) -> AttemptFailed:
        # By name, not by class: only `_open_client` imports the HTTP client.
        names = {kind.__name__ for kind in type(error).__mro__}
        text = str(error)
        if "TimeoutException" in names and "ConnectTimeout" not in names:
            return AttemptFailed(
                RequestTimeout, f"{self.host} sent nothing for {timeouts.read:g} s"
            )
        if "RemoteProtocolError" in names and "disconnect" not in text and "closed" not in text:
            return AttemptFailed(
                ProtocolError, f"{self.host} sent an invalid HTTP response", quoted=text
            )
        if "certificate" in text.lower():
            return AttemptFailed(
                ConnectionFailed,
                f"the TLS certificate of {self.host} is not valid",
                quoted=text,
                hint="Nothing was sent. For your own certificate authority, set SSL_CERT_FILE",
                max_attempts=1,
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
                f"cannot connect to {self.host}"
                if names & {"ConnectError", "ConnectTimeout", "ProxyError"}
                else f"the connection to {self.host} was lost",
                quoted=text or type(error).__name__,
            )
        # The text may quote the request with its headers.
        return AttemptFailed(
            ProtocolError,
            f"the request to {self.host} failed ({type(error).__name__})",
            max_attempts=1,
        )


class _ExchangeThread:
    """A daemon thread that runs one exchange after another, until this object is deleted."""

    def __init__(self) -> None:
        self._exchanges: queue.SimpleQueue[_Exchange | None] = queue.SimpleQueue()
        thread = threading.Thread(
            target=_run_exchanges, args=[self._exchanges], name="beaconframes-http", daemon=True
        )
        thread.start()

    def start(self, exchange: _Exchange) -> None:
        self._exchanges.put(exchange)

    def __del__(self) -> None:
        self._exchanges.put(None)


def _run_exchanges(exchanges: queue.SimpleQueue[_Exchange | None]) -> None:
    for exchange in iter(exchanges.get, None):
        exchange.run()
        # While this thread waits, it would keep the memory of the page.
        del exchange


class _Exchange:
    """One request and its response, which the calling thread can abandon."""

    def __init__(
        self, transport: Transport, request: Request, timeouts: Timeouts, parse: Parse
    ) -> None:
        self._transport, self._parse = transport, parse
        self._send = transport.prepare(request, timeouts)
        self._first_bytes = math.inf if request.first_bytes is None else request.first_bytes
        self.head: Future[tuple[int, dict[str, str]]] = Future()
        self.page: Future[ResponsePage | None] = Future()
        """The parsed response; None for an error, which the calling thread parses."""
        self.error_body = bytearray()
        """The body of an error response, as far as it was read."""
        self.is_abandoned = False

    def run(self) -> None:
        try:
            page = self._receive()
        except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
            self._transport.open_exchanges.discard(self)
            pending: Future[Any] = self.page if self.head.done() else self.head
            # The frames of a traceback would keep the memory of the body.
            pending.set_exception(error.with_traceback(None))
        else:
            self.page.set_result(page)

    def _receive(self) -> ResponsePage | None:
        """Send the request; return the parsed response, or None for an error."""
        response = self._send()
        with closing(response):
            status = response.status_code
            headers = {
                name: text for name, text in response.headers.items() if name != "set-cookie"
            }
            self.head.set_result((status, headers))
            if status == 200:
                body = self._read_page(response)
            else:
                with suppress(Exception):
                    for chunk in self._read_body(response, MAX_ERROR_BODY):
                        self.error_body += chunk
        if self._transport.client.is_closed and "network_stream" in response.extensions:
            # A connection that was opened while the client was closed is not in its pool.
            response.extensions["network_stream"].close()
        self._transport.open_exchanges.discard(self)
        if status != 200:
            return None
        # Parsed here, where the body was allocated: a page in a second thread would need as
        # much memory again.
        return self._parse(HttpResponse(status, headers, body))

    def _read_page(self, response: httpx.Response) -> bytes:
        """Return the body of a page, or its first bytes if only these are requested."""
        # Unlike a join of all chunks, this needs the memory of the body only once.
        buffer, size = io.BytesIO(), 0
        stated = response.headers.get("content-length", "")
        is_stated = (
            len(stated) < 10 and stated.isdecimal() and int(stated) <= self._transport.max_body
        )
        most = int(stated) if is_stated else 0
        for chunk in self._read_body(response, self._transport.max_body):
            if size >= FIRST_BYTES and most > size:
                # A buffer that grows with each chunk is copied several times.
                buffer.seek(most - 1)
                buffer.write(b"\0")
                buffer.seek(size)
                most = 0
            size += buffer.write(chunk)
            if size >= self._first_bytes:
                break
        buffer.truncate()
        return buffer.getvalue()

    def _read_body(self, response: httpx.Response, max_size: int) -> Iterator[bytes]:
        # A transport from the caller may return a response that is already read and decompressed.
        is_read = response.is_stream_consumed
        headers = {} if is_read else response.headers
        chunks = [response.content] if is_read else self._chunks(response)
        return decode_body(chunks, headers, max_size)

    def _chunks(self, response: httpx.Response) -> Iterator[bytes]:
        for chunk in response.iter_raw():
            if self.is_abandoned:
                return
            yield chunk


class _LineStream(threading.Thread):
    """A response that does not end, read line by line on a daemon thread."""

    def __init__(self, send: Callable[[], httpx.Response]) -> None:
        super().__init__(name="beaconframes-stream", daemon=True)
        self._send = send
        self.lines: queue.SimpleQueue[str | Exception] = queue.SimpleQueue()
        """The lines, and at the end the reason why there are no more."""
        self.is_abandoned = False

    def run(self) -> None:
        try:
            with closing(self._send()) as response:
                if response.status_code != 200:
                    body = b"".join(decode_body(response.iter_raw(), response.headers, MAX_BODY))
                    raise error_for_status(response.status_code, dict(response.headers), body)
                for line in response.iter_lines():
                    if self.is_abandoned:
                        return
                    self.lines.put(line)
            self.lines.put(AttemptFailed(ConnectionFailed, "the stream of events ended"))
        except Exception as error:  # noqa: BLE001 - raised again in the calling thread
            self.lines.put(error)


def _wait(future: Future[Any], seconds_left: SecondsLeft, at_most: float = math.inf) -> None:
    """Wait until *future* is done, for *at_most* that many seconds."""
    end = time.monotonic() + at_most
    while not future.done() and (seconds := min(seconds_left(), end - time.monotonic())) > 0:
        with suppress(TimeoutError):
            future.exception(min(seconds, POLL_INTERVAL))


@functools.cache
def _read_user_agent() -> str:
    """Return name and version of this package, whose metadata takes a millisecond to parse."""
    return f"beaconframes/{version('beaconframes')}"


def _open_client(base_url: str, transport: httpx.BaseTransport | None) -> httpx.Client:
    """Return an HTTP client that stores no cookies and sends no plain http through a proxy."""
    import httpx  # loads from a dataset send no request

    is_https = urlsplit(base_url).scheme == "https"
    try:
        return httpx.Client(
            transport=transport,
            # Without https the certificates are not needed, and loading them takes 20 ms.
            verify=httpx.create_ssl_context() if is_https else SSLContext(PROTOCOL_TLS_CLIENT),
            # A proxy can read plain http: the environment's proxy is only used as an https tunnel.
            trust_env=is_https,
            # The rate limiter limits the requests under way.
            limits=httpx.Limits(
                max_connections=None,
                max_keepalive_connections=MAX_CONNECTIONS,
                keepalive_expiry=5.0,
            ),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        )
    except (ImportError, ValueError, OSError) as error:
        raise AttemptFailed(
            ConfigError,
            f"cannot use the proxy or the certificates of the environment ({type(error).__name__})",
            hint="Check HTTPS_PROXY, ALL_PROXY, NO_PROXY and SSL_CERT_FILE",
            max_attempts=1,
        ) from None
