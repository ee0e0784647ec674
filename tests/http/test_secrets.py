"""The key is in one header of each request, and nowhere else."""

from __future__ import annotations

import _thread
import logging
import pickle
import re
import threading
import time
import traceback
from base64 import b64encode, urlsafe_b64encode
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

import beaconframes
from beaconframes.endpoint import Envelope, Request
from beaconframes.errors import BeaconframesError, ConfigError
from beaconframes.http.redact import Redactor
from beaconframes.http.session import Session
from beaconframes.secret import Secret

from ..support.faults import FastClock, FaultServer

MARKER = "ZEBRA-9f86d081/884c+7d65~9a2f=eaa"
NEEDLES = {
    MARKER,
    quote(MARKER, safe=""),
    quote(MARKER),
    b64encode(MARKER.encode()).decode().rstrip("="),
    urlsafe_b64encode(MARKER.encode()).decode().rstrip("="),
    MARKER.encode().hex(),
    # Parts of the key, to find partial leaks.
    "ZEBRA",
    "zebra-9f86",
    "884c+7d65",
}
V1 = Request("GET", "/api/v1/epoch/7", (("limit", "3"),), endpoint="GET /api/v1/epoch/{epoch}")
V2 = Request("POST", "/api/v2/x", body=b"{}", endpoint="POST /api/v2/x", envelope=Envelope.V2)
FAULTS = [
    "",
    "401",
    "403_tier",
    "429_none?times=2",
    "429_month",
    "429_revoked",
    "5xx?code=500",
    "status?code=400",
    *(f"key_echo?code={code}" for code in (200, 302, 400, 401, 403, 404, 429, 500)),
    "key_echo?code=500&before=190",
    "drop",
    "rst",
    "garbage",
    "header_bomb",
    "redirect?to=http://other.example/",
    "200_html",
    "error_200",
    "truncated_json?fraction=0.5",
    "hang_headers",
    "hang_body",
]


def dump(error):
    """Return all that can be printed of an error, its causes and its frames."""
    texts = []
    while error is not None:
        texts += [str(error), repr(error), repr(vars(error)), repr(pickle.dumps(error))]
        report = traceback.TracebackException.from_exception(error, capture_locals=True)
        texts += report.format()
        error = error.__context__ or error.__cause__
    return "\n".join(texts)


def find_leaks(text):
    return sorted(needle for needle in NEEDLES if needle in text)


@pytest.fixture
def logged(caplog):
    """Return all log records at level DEBUG."""
    caplog.set_level(logging.DEBUG)
    return lambda: "\n".join(f"{r.getMessage()} {vars(r)!r}" for r in caplog.records)


@pytest.mark.parametrize("request_", [V1, V2], ids=["v1", "v2"])
@pytest.mark.parametrize("fault", FAULTS)
def test_key_is_in_one_header_only(fault, request_, logged):
    """Q01, Q02: no error text, log record, frame or URL holds the key, whatever goes wrong."""
    shown, clock = "", FastClock()
    with FaultServer(fault) as server:
        session = Session(server.url, Secret(MARKER), clock=clock)
        if "hang" in fault:
            # The deadline passes when the call waits for headers or body, also on a busy machine.
            received = []
            session.rate_limiter.update = lambda headers, _: received.append(headers)
            is_sent = (lambda: server.seen) if fault == "hang_headers" else (lambda: received)
            clock.now = lambda: time.monotonic() + clock.waited + 1e6 * bool(is_sent())
        try:
            session.fetch(request_)
        except BeaconframesError as error:
            shown = dump(error)
        shown += f"{session!r} {vars(session)!r} {vars(session.redact)!r}"
        session.close()
    sent = [one.headers for one in server.seen]
    name, value = ("authorization", f"Bearer {MARKER}") if request_ is V2 else ("apikey", MARKER)

    assert [] == find_leaks(shown)
    assert [] == find_leaks(logged())
    assert "httpcore" in logged()
    assert [] == find_leaks(" ".join(one.target for one in server.seen))
    assert sent
    assert all(value == headers.pop(name) for headers in sent)
    assert [] == find_leaks(repr(sent))


def test_key_is_not_in_the_traceback_of_an_interrupt(logged):
    """Ctrl-C in the middle of a request shows no frame that holds the key."""
    sent = []
    released = threading.Event()

    def interrupt(request):
        sent.append(request.headers["apikey"] == MARKER)
        _thread.interrupt_main()
        released.wait(30)
        return httpx.Response(200)

    session = Session(
        "https://explorer.example", Secret(MARKER), transport=httpx.MockTransport(interrupt)
    )
    with pytest.raises(KeyboardInterrupt) as caught:
        session.fetch(V1)
    released.set()

    assert [True] == sent
    assert [] == find_leaks(dump(caught.value))
    assert [] == find_leaks(logged())


def test_key_is_not_in_errors_of_the_http_library():
    """Texts and frames of the HTTP library's exceptions do not reach the user."""

    def broken(request):
        raise RuntimeError(f"cannot send {request.headers['apikey']}")

    session = Session(
        "https://explorer.example", Secret(MARKER), transport=httpx.MockTransport(broken)
    )
    with pytest.raises(BeaconframesError) as caught:
        session.fetch(V1)

    assert [] == find_leaks(dump(caught.value))


def test_key_is_not_sent_to_the_target_of_a_redirect():
    """Q03: the other origin receives no request."""
    with FaultServer() as sink, FaultServer(f"redirect?code=307&to={sink.url}/") as server:
        session = Session(server.url, Secret(MARKER))
        with pytest.raises(BeaconframesError):
            session.fetch(V1)
        session.close()

    assert [] == sink.seen


def test_key_is_not_shown_to_a_proxy(monkeypatch):
    """Q03: plain http to this machine does not pass through a proxy."""
    with FaultServer() as proxy, FaultServer() as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        session = Session(server.url, Secret(MARKER))
        session.fetch(V1)
        session.close()

    assert [] == proxy.seen
    assert 1 == len(server.seen)


@pytest.mark.parametrize("address", ["http://explorer.example", "http://127.0.0.1.evil.example"])
def test_key_is_not_sent_over_plain_http(address):
    """T24: plain http with a key is permitted for this machine only."""
    with pytest.raises(ConfigError) as caught:
        Session(address, Secret(MARKER))

    assert [] == find_leaks(dump(caught.value))


CLIENT_LOGGERS = sorted(
    {
        name
        for path in Path(beaconframes.__file__).parent.rglob("*.py")
        for name in re.findall(r'getLogger\("(beaconframes[\w.]*)"\)', path.read_text())
        # These log what a server or a simulation does, which have no key.
        if not name.startswith(("beaconframes.server", "beaconframes.simulator"))
    }
)


@pytest.mark.parametrize("name", CLIENT_LOGGERS)
def test_key_is_redacted_in_log_lines(name, caplog):
    """A key in a log line is replaced, whichever part of the library writes the line."""
    redact = Redactor(Secret(MARKER))
    with caplog.at_level(logging.INFO):
        logging.getLogger(name).info("the service returned %s", MARKER)

    assert ["the service returned ***"] == caplog.messages
    assert "***" == redact(MARKER)


def test_redactor_finds_other_spellings():
    """The key is redacted also when it is URL-encoded, in base64 or in hex."""
    redact = Redactor(Secret(MARKER))

    assert all("***" in redact(f"x{needle}y") for needle in NEEDLES if len(needle) > 20)
    assert all(needle not in redact(f"x{needle}y") for needle in NEEDLES if len(needle) > 20)
    assert "nothing to hide" == redact("nothing to hide")
    assert MARKER == Redactor(None)(MARKER)
