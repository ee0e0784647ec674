"""What goes over the wire, and how the connections are kept."""

from __future__ import annotations

import ast
import asyncio
import gzip
import os
import shutil
import ssl
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

import beaconframes
from beaconframes.config import Secret
from beaconframes.endpoint import Envelope, Request
from beaconframes.errors import (
    ConfigError,
    ConnectionFailed,
    ProtocolError,
    UsageError,
)
from beaconframes.http.rate_limiter import RateLimiter
from beaconframes.http.session import Session
from beaconframes.http.transport import Timeouts

from ..support.faults import ROWS, FaultServer, v1_body

V1 = Request("GET", "/api/v1/epoch/7", endpoint="GET /api/v1/epoch/{epoch}")
V2 = Request("POST", "/api/v2/ethereum/x", body=b'{"a":1}', envelope=Envelope.V2)


@pytest.fixture
def server():
    with FaultServer() as running:
        yield running


def ask(server, request=V1, *, prefix="", key="a-key", **settings):
    """The one request that a call makes, as the server saw it."""
    session = Session(server.url + prefix, Secret(key) if key else None, **settings)
    session.fetch(request)
    session.close()
    (seen,) = server.seen
    return seen


def test_request_as_the_server_sees_it(server):
    """Path and query as planned; the body, if any, is JSON."""
    request = Request(
        "GET", "/api/v1/validator/1,0xab/x", (("latest_epoch", "7"), ("q", "a b&c/ü"))
    )
    seen = ask(server, request)

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


def test_post_carries_its_body(server):
    """The body goes out byte for byte, announced as JSON."""
    seen = ask(server, V2)

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
def test_key_in_the_header_of_its_generation(request_, header, other, expected, prefix, server):
    """V1 takes it as apikey, V2 as a bearer token; never as both."""
    seen = ask(server, request_, prefix=prefix)

    assert expected == seen.headers[header]
    assert other not in seen.headers


def test_without_a_key_none_is_sent(server):
    """No key, no header."""
    seen = ask(server, key=None)

    assert not {"apikey", "authorization"} & set(seen.headers)


@pytest.mark.parametrize("prefix", ["/gate/way", "/gate/way/"])
def test_address_may_have_a_path(prefix, server):
    """Gateways put services under a prefix."""
    assert "/gate/way/api/v1/epoch/7" == ask(server, prefix=prefix).target


def test_connections_are_reused(server):
    """Fifty calls in a row take one connection; eight threads at most eight."""
    session = Session(server.url, rate=float("inf"))
    for _ in range(50):
        session.fetch(V1)

    assert 1 == server.most_open

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: session.fetch(V1), range(200)))
    session.close()

    assert server.most_open <= 8
    assert 250 == session.request_count == len(server.seen)


def test_connection_that_the_server_closed_is_no_error():
    """T19: a service that closes after each answer costs nothing but connections."""
    with FaultServer("no_length_close?fraction=1") as server:
        session = Session(server.url, rate=float("inf"))
        answers = {session.fetch(V1).data for _ in range(100)}
        session.close()

    assert 1 == len(answers)


def test_inside_a_running_event_loop(server):
    """A notebook cell runs inside one; the call just works."""

    async def cell():
        return ask(server)

    assert "/api/v1/epoch/7" == asyncio.run(cell()).target


def test_handed_in_client_is_used(server):
    """An HTTP client of one's own is taken as it is, except that it follows no redirect."""
    with httpx.Client(headers={"X-Own": "yes"}, follow_redirects=True) as client:
        seen = ask(server, http_client=client)
    with FaultServer("redirect") as loop, httpx.Client(follow_redirects=True) as client:
        session = Session(loop.url, http_client=client)
        with pytest.raises(ProtocolError, match="redirects"):
            session.fetch(V1)

    assert ("yes", "a-key") == (seen.headers["x-own"], seen.headers["apikey"])
    assert 1 == len(loop.seen)


@pytest.mark.parametrize("form", ["ready", "stream", "gzip"])
def test_handed_in_transport_is_used(form):
    """A transport that answers without a network serves tests."""
    packed = gzip.compress(v1_body())
    made = {
        "ready": lambda: httpx.Response(200, content=v1_body()),
        "stream": lambda: httpx.Response(200, stream=httpx.ByteStream(v1_body())),
        "gzip": lambda: httpx.Response(
            200, stream=httpx.ByteStream(packed), headers={"Content-Encoding": "gzip"}
        ),
    }
    transport = httpx.MockTransport(lambda request: made[form]())
    answer = Session("https://explorer.example", transport=transport).fetch(V1)

    assert len(ROWS) == answer.data.count(b"epoch")


def test_sessions_may_share_a_pacer(server):
    """Two addresses, one allowance: the rate is kept by both together."""
    rate_limiter = RateLimiter(4)
    first, second = (Session(server.url, rate_limiter=rate_limiter) for _ in range(2))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: (first, second)[n % 2].fetch(V1), range(8)))
    moments = sorted(one.arrived for one in server.seen)

    assert moments[4] - moments[0] >= 1


def test_nothing_is_opened_before_the_first_call():
    """Making a session is free: no connection, no thread."""
    threads = threading.active_count()
    session = Session("https://explorer.invalid", Secret("a-key"))
    session.close()

    assert threads == threading.active_count()
    assert 0 == session.request_count


@pytest.mark.parametrize("url", ["", "explorer.example", "ftp://explorer.example", "http://"])
def test_wrong_address_is_refused_before_anything_is_sent(url):
    """One clear error, at once."""
    with pytest.raises(ConfigError):
        Session(url)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_process_gets_a_clear_error(server):
    """T29: two processes on one connection would read each other's answers."""
    session = Session(server.url)
    session.fetch(V1)
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - in the other process
        try:
            session.fetch(V1)
        except UsageError as error:
            os.write(theirs, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    session.close()

    assert b"opened in another process" in os.read(ours, 1000)


@pytest.fixture
def certificate(tmp_path):
    """A fresh certificate for localhost that only its own file vouches for, and how to use it."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 "
        "-subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem"
    )
    subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    return tmp_path / "cert.pem", context


def test_certificate_that_proves_nothing_is_refused(certificate):
    """T24: a self-signed certificate ends the matter before the key is sent, at once."""
    _, context = certificate
    with FaultServer(tls=context) as server:
        session = Session(f"https://localhost:{server.port}", Secret("a-key"))
        with pytest.raises(ConnectionFailed, match="cannot prove") as caught:
            session.fetch(V1)
        session.close()

    assert [] == server.seen
    assert 1 == caught.value.attempts


def test_certificate_of_an_own_authority(certificate, monkeypatch):
    """SSL_CERT_FILE names an authority; an answer over TLS may keep one waiting."""
    path, context = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with FaultServer(tls=context, latency=0.5) as server:
        session = Session(f"https://localhost:{server.port}", Secret("a-key"))
        answer = session.fetch(V1)
        session.close()

    assert len(ROWS) == answer.data.count(b"epoch")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://explorer.example", (b"http", b"proxy.example", 3128)),
        ("https://inside.example", None),
        ("http://explorer.example", None),
        ("http://127.0.0.1:8080", None),
    ],
)
def test_proxy_is_used_as_a_tunnel_only(url, expected, monkeypatch):
    """The environment's proxy serves https, where it sees nothing; and not where it is told off."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "proxy.example:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    proxy = _proxy(url)

    assert expected == (proxy and (proxy.url.scheme, proxy.url.host, proxy.url.port))


def test_unreachable_host_ends_in_time():
    """T30: an address where nobody is: an error within the deadline, naming it."""
    session = Session("http://192.0.2.1:81", timeouts=Timeouts(total=1, connect=0.2))
    with pytest.raises(ConnectionFailed, match=r"192\.0\.2\.1:81"):
        session.fetch(V1)


def test_one_module_imports_the_http_library():
    """Everything else is handed its transport."""
    package = Path(beaconframes.__file__).parent
    found = set()
    for path in package.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            if any(name.partition(".")[0] in {"httpx", "httpx2"} for name in names):
                found.add(path.relative_to(package).as_posix())

    assert {"http/transport.py"} == found
