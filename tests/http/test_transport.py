"""The requests on the wire, and the reuse of connections."""

from __future__ import annotations

import ast
import asyncio
import gzip
import io
import os
import shutil
import ssl
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

import beaconframes
from beaconframes.endpoint import Envelope, Request
from beaconframes.errors import (
    ConfigError,
    ConnectionFailed,
    ProtocolError,
    UsageError,
)
from beaconframes.http import transport
from beaconframes.http.rate_limiter import RateLimiter
from beaconframes.http.response import ResponsePage
from beaconframes.http.session import Session
from beaconframes.http.transport import Timeouts
from beaconframes.secret import Secret

from ..support.faults import ROWS, FastClock, FaultServer, QuickClock, v1_body

V1 = Request("GET", "/api/v1/epoch/7", endpoint="GET /api/v1/epoch/{epoch}")
V2 = Request("POST", "/api/v2/ethereum/x", body=b'{"a":1}', envelope=Envelope.V2)


@pytest.fixture
def server():
    with FaultServer() as running:
        yield running


def fetch_once(server, request=V1, *, prefix="", key="a-key", **settings):
    """Return the one request of a call, as the server received it."""
    session = Session(server.url + prefix, Secret(key) if key else None, **settings)
    session.fetch(request)
    session.close()
    (seen,) = server.seen
    return seen


def test_request_as_the_server_receives_it(server):
    """Path, query and headers are those of the request."""
    request = Request(
        "GET", "/api/v1/validator/1,0xab/x", (("latest_epoch", "7"), ("q", "a b&c/ü"))
    )
    seen = fetch_once(server, request)

    assert ("GET", "/api/v1/validator/1,0xab/x?latest_epoch=7&q=a%20b%26c%2F%C3%BC", b"") == (
        seen.method,
        seen.target,
        seen.body,
    )
    assert {"application/json", "gzip"} == {
        seen.headers["accept"],
        seen.headers["accept-encoding"],
    }
    assert "content-type" not in seen.headers
    assert seen.headers["user-agent"].startswith("beaconframes/")


def test_post_sends_its_body(server):
    """The body is sent unchanged, with the content type of JSON."""
    seen = fetch_once(server, V2)

    assert ("POST", b'{"a":1}', "application/json") == (
        seen.method,
        seen.body,
        seen.headers["content-type"],
    )


@pytest.mark.parametrize(
    ("request_", "header", "other", "expected"),
    [
        (V1, "apikey", "authorization", "a-key"),
        (Request("POST", "/api/v1/validator", body=b"{}"), "apikey", "authorization", "a-key"),
        (V2, "authorization", "apikey", "Bearer a-key"),
    ],
)
@pytest.mark.parametrize("prefix", ["", "/gate/way"])
def test_key_is_in_the_header_of_its_api_version(request_, header, other, expected, prefix, server):
    """V1 expects the header apikey, V2 a bearer token; never both are sent."""
    seen = fetch_once(server, request_, prefix=prefix)

    assert expected == seen.headers[header]
    assert other not in seen.headers


def test_no_key_no_header(server):
    """Without a key neither header is sent."""
    seen = fetch_once(server, key=None)

    assert not {"apikey", "authorization"} & set(seen.headers)


@pytest.mark.parametrize("prefix", ["/gate/way", "/gate/way/"])
def test_address_may_have_a_path(prefix, server):
    """Gateways serve the API under a path prefix."""
    assert "/gate/way/api/v1/epoch/7" == fetch_once(server, prefix=prefix).target


@pytest.mark.more
def test_connections_are_reused(server):
    """T29: fifty calls in a row use one connection; 16 threads use at most eight."""
    session = Session(server.url, rate=float("inf"))
    for _ in range(50):
        session.fetch(V1)

    assert 1 == server.most_open

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: session.fetch(V1), range(200)))
    session.close()

    assert server.most_open <= 8
    assert 250 == session.request_count == len(server.seen)


def test_closed_connection_is_replaced():
    """T19: a service may close the connection after each response."""
    with FaultServer("no_length_close?fraction=1") as server:
        session = Session(server.url, rate=float("inf"))
        pages = {session.fetch(V1).data for _ in range(100)}
        session.close()

    assert 1 == len(pages)


def test_inside_a_running_event_loop(server):
    """T29: a notebook cell runs inside an event loop, and calls work there."""

    async def cell():
        return fetch_once(server)

    assert "/api/v1/epoch/7" == asyncio.run(cell()).target


def test_settings_of_the_client_are_used_except_for_redirects(server, monkeypatch):
    """The HTTP client adds its own headers, but follows no redirects, whatever its settings."""

    def open_client(*_):
        return httpx.Client(headers={"X-Own": "yes"}, follow_redirects=True)

    monkeypatch.setattr("beaconframes.http.transport._open_client", open_client)
    seen = fetch_once(server)
    with FaultServer("redirect") as redirecting:
        session = Session(redirecting.url)
        with pytest.raises(ProtocolError, match="redirects"):
            session.fetch(V1)

    assert ("yes", "a-key") == (seen.headers["x-own"], seen.headers["apikey"])
    assert 1 == len(redirecting.seen)


@pytest.mark.parametrize("form", ["ready", "stream", "gzip"])
def test_given_transport_is_used(form):
    """A transport may respond without a network, decompressed or compressed."""
    compressed = gzip.compress(v1_body())
    responses = {
        "ready": lambda: httpx.Response(200, content=v1_body()),
        "stream": lambda: httpx.Response(200, stream=httpx.ByteStream(v1_body())),
        "gzip": lambda: httpx.Response(
            200, stream=httpx.ByteStream(compressed), headers={"Content-Encoding": "gzip"}
        ),
    }
    transport = httpx.MockTransport(lambda request: responses[form]())
    page = Session("https://explorer.example", transport=transport).fetch(V1)

    assert len(ROWS) == page.data.count(b"epoch")


def test_a_connection_opened_while_the_session_closes_is_closed(server):
    """Such a connection is in no pool: not closed, its socket would cause a ResourceWarning."""
    streams = []

    class Late(httpx.HTTPTransport):
        """Connects after the session was closed."""

        def handle_request(self, request):
            session.close()
            response = super().handle_request(request)
            streams.append(response.extensions["network_stream"])
            body = response.read()
            return httpx.Response(200, content=body, extensions=response.extensions)

    session = Session(server.url, transport=Late())
    with suppress(ConnectionFailed):  # unless the response came first
        session.fetch(V1)
    end = time.monotonic() + 60
    while not (streams and streams[0].get_extra_info("socket").fileno() == -1):
        assert time.monotonic() < end, "the connection stays open"
        time.sleep(0.01)


def test_sessions_may_share_a_rate_limiter(server):
    """Two sessions with one rate limiter send at its rate together."""
    rate_limiter = RateLimiter(4, clock=QuickClock())
    first, second = (Session(server.url, rate_limiter=rate_limiter) for _ in range(2))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: (first, second)[n % 2].fetch(V1), range(8)))
    times = sorted(request.arrived for request in server.seen)

    assert times[4] - times[0] >= 1 / QuickClock.SPEED


def test_nothing_is_opened_before_the_first_call():
    """Creating a session opens no connection and starts no thread."""
    # Threads of earlier tests may end meanwhile.
    before = set(threading.enumerate())
    session = Session("https://explorer.invalid", Secret("a-key"))
    session.close()

    assert set() == set(threading.enumerate()) - before
    assert 0 == session.request_count


def test_requests_of_a_thread_share_one_thread(server, monkeypatch):
    """A new one for each request takes 0.3 ms of CPU. It ends when the session is closed."""
    threads, run = [], transport._Exchange.run

    def note_and_run(exchange):
        threads.append(threading.current_thread())
        run(exchange)

    monkeypatch.setattr(transport._Exchange, "run", note_and_run)
    session = Session(server.url)
    for _ in range(3):
        session.fetch(V1)
    session.close()
    threads[0].join(60)

    assert [threads[0]] * 3 == threads
    assert not threads[0].is_alive()


@pytest.mark.parametrize("url", ["", "explorer.example", "ftp://explorer.example", "http://"])
def test_invalid_address_is_refused(url):
    """An address that is not http or https raises ConfigError."""
    with pytest.raises(ConfigError):
        Session(url)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_forked_process_gets_a_clear_error(server):
    """T29: two processes on one connection would read each other's responses."""
    session = Session(server.url)
    session.fetch(V1)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - in the other process
        try:
            session.fetch(V1)
        except UsageError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    session.close()

    assert b"opened in another process" in os.read(reader, 1000)


@pytest.fixture
def certificate(tmp_path):
    """Return a new self-signed certificate for localhost, and a server context with it."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to create the certificate")
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 "
        "-subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem"
    )
    subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    return tmp_path / "cert.pem", context


def test_self_signed_certificate_is_refused(certificate):
    """T24: the call fails at the first attempt, before the key is sent."""
    _, context = certificate
    with FaultServer(tls=context) as server:
        session = Session(f"https://localhost:{server.port}", Secret("a-key"))
        with pytest.raises(
            ConnectionFailed, match=r"certificate of localhost:\d+ is not valid"
        ) as caught:
            session.fetch(V1)
        session.close()

    assert [] == server.seen
    assert 1 == caught.value.attempts


def test_own_certificate_authority(certificate, monkeypatch):
    """SSL_CERT_FILE names a certificate authority to trust."""
    path, context = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with FaultServer(tls=context, latency=0.5) as server:
        session = Session(f"https://localhost:{server.port}", Secret("a-key"))
        page = session.fetch(V1)
        session.close()

    assert len(ROWS) == page.data.count(b"epoch")


@pytest.fixture
def proxy(monkeypatch):
    """A proxy that the environment names for every scheme, except for localhost."""
    with FaultServer("status?code=403") as running:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, running.url)
            monkeypatch.setenv(name.upper(), running.url)
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.setenv(name, "localhost")
        yield running


def test_proxy_of_the_environment_is_used_as_a_tunnel(proxy):
    """The proxy sees the host of an https request, and neither its path nor its key."""
    session = Session("https://explorer.example", Secret("a-key"), clock=FastClock())
    with pytest.raises(ConnectionFailed, match="403"):
        session.fetch(V1)
    session.close()
    seen = proxy.seen[0]

    assert ("CONNECT", "explorer.example:443") == (seen.method, seen.target)
    assert "a-key" not in str(seen)


def test_proxy_is_not_used_for_plain_http(proxy, server):
    """A proxy could read the key in a plain http request."""
    fetch_once(server)

    assert [] == proxy.seen


def test_no_proxy_is_respected(proxy, certificate, monkeypatch):
    """Hosts in NO_PROXY are connected to directly."""
    path, context = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with FaultServer(tls=context) as server:
        session = Session(f"https://localhost:{server.port}", Secret("a-key"))
        session.fetch(V1)
        session.close()

    assert ([], 1) == (proxy.seen, len(server.seen))


@pytest.mark.parametrize(
    ("name", "value"), [("ALL_PROXY", "gopher://proxy"), ("SSL_CERT_FILE", "/nowhere.pem")]
)
def test_unusable_environment_is_a_configuration_error(name, value, monkeypatch):
    """A proxy of an unknown kind and a missing certificate file name the variables to check."""
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=name) as caught:
        Session("https://explorer.example").fetch(V1)

    assert 1 == caught.value.attempts


def test_a_stream_in_an_unusable_environment_is_a_configuration_error(monkeypatch):
    """The error names the variables, and no frame of its traceback leads to the transport."""
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    with pytest.raises(ConfigError, match="SSL_CERT_FILE") as caught:
        next(Session("https://node.example").stream_lines(V1))

    assert 1 == caught.value.attempts
    assert caught.value.__context__ is None
    assert "transport.py" not in [entry.path.name for entry in caught.traceback]


def test_unreachable_host_is_named():
    """T30: the error names the host and the port."""
    # Whether it refuses the connection or stays silent depends on the network.
    session = Session("http://192.0.2.1:81", timeouts=Timeouts(connect=0.2), clock=FastClock())
    with pytest.raises(ConnectionFailed, match=r"192\.0\.2\.1:81"):
        session.fetch(V1)


@pytest.mark.more
def test_one_module_imports_the_http_library():
    """Only the transport depends on the HTTP library."""
    package = Path(beaconframes.__file__).parent
    found = set()
    for path in package.rglob("*.py"):
        # Functions, too, but no imports for types.
        waiting = list(ast.parse(path.read_text()).body)
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                continue
            waiting += ast.iter_child_nodes(node)
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.partition(".")[0] in {"httpx", "httpx2"} for name in names):
                found.add(path.relative_to(package).as_posix())

    assert {"http/transport.py"} == found


class Chunks(httpx.SyncByteStream):
    """A body in parts of 1,000 bytes."""

    def __init__(self, body):
        self.body = body

    def __iter__(self):
        for start in range(0, len(self.body), 1_000):
            yield self.body[start : start + 1_000]


def test_a_false_length_takes_no_memory(monkeypatch):
    """A connection that ends early may have stated much."""
    sizes = []

    class Buffer(io.BytesIO):
        def truncate(self, size=None):
            sizes.append(len(self.getbuffer()))
            return super().truncate(size)

    monkeypatch.setattr(transport.io, "BytesIO", Buffer)
    headers = {"content-length": "60000000"}
    given = httpx.MockTransport(
        lambda request: httpx.Response(200, headers=headers, stream=Chunks(b"[]"))
    )
    session = Session("http://127.0.0.1:1", parse=lambda *_: ResponsePage(b"[]"), transport=given)
    session.fetch(Request("GET", "/"))

    assert [2] == [size for size in sizes if size]


@pytest.mark.parametrize("first_bytes", [None, 2_500])
@pytest.mark.parametrize(
    "stated", ["10000", "0", "1", "20000", "99999999", "9" * 5_000, "-5", "²", "gzip"]
)
def test_the_stated_length_changes_no_body(stated, first_bytes):
    """The length only sizes the buffer: a wrong one neither cuts a body nor adds bytes to it."""
    body = bytes(range(250)) * 40
    sent, headers = body, {"content-length": stated}
    if stated == "gzip":
        sent = gzip.compress(body)
        headers = {"content-encoding": "gzip", "content-length": str(len(sent))}
    encoded = {name: text.encode() for name, text in headers.items()}
    received = []

    def parse(response, request):
        received.append(response.body)
        return ResponsePage(b"[]")

    transport = httpx.MockTransport(
        lambda request: httpx.Response(200, headers=encoded, stream=Chunks(sent))
    )
    session = Session("http://127.0.0.1:1", parse=parse, transport=transport)
    session.fetch(Request("GET", "/", first_bytes=first_bytes))

    read = body if first_bytes is None or stated == "gzip" else body[:3_000]
    assert [read] == received
