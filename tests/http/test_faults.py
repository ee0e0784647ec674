"""Faults of service and network: a call returns the complete page or raises one clear error."""

from __future__ import annotations

import _thread
import json
import re
import socket
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import httpx
import pytest

from beaconframes.endpoint import Envelope, Request
from beaconframes.errors import (
    BadRequest,
    BeaconframesError,
    ChallengePage,
    ConnectionFailed,
    NotFound,
    NotServed,
    ProtocolError,
    QuotaSpent,
    RateLimited,
    RequestTimeout,
    ResponseError,
    ServerError,
    ServiceError,
    TierTooLow,
    Unauthorized,
)
from beaconframes.http import transport
from beaconframes.http.response import decode_body
from beaconframes.http.retry import (
    AttemptFailed,
    RetryQuota,
    parse_date,
    parse_retry_after,
    retry_call,
)
from beaconframes.http.session import Session
from beaconframes.http.status_errors import error_for_status
from beaconframes.http.transport import Timeouts
from beaconframes.secret import Secret

from ..support.faults import (
    ABSURD,
    ROWS,
    FastClock,
    FaultServer,
    SteppedClock,
    ok,
    v1_body,
    v2_body,
)

V1 = Request("GET", "/api/v1/validator/1,2/x", endpoint="GET /api/v1/validator/{validators}/x")
V2 = Request(
    "POST",
    "/api/v2/ethereum/x",
    body=b'{"chain":"mainnet"}',
    endpoint="POST /api/v2/ethereum/x",
    envelope=Envelope.V2,
)
BARE = Request("GET", "/api/v1/latestState", endpoint="GET latest", envelope=Envelope.BARE)
CODE = Request("GET", "/api/v1/execution/gasfees", endpoint="GET fees", envelope=Envelope.CODE)
AT_MOST = 25
"""Seconds that a call may take on a busy machine: less than the read timeout of 30 s."""
BOTH = pytest.mark.parametrize("request_", [V1, V2], ids=["v1", "v2"])


class Outcome:
    """The outcome of one call: its page or its error, its requests and its waits."""

    def __init__(self, fault, request=V1, **settings):
        clock = FastClock()
        start = clock.now()
        self.data = self.error = self.paging = None
        with FaultServer(fault) as server:
            session = Session(server.url, Secret("a-key"), clock=clock, **settings)
            try:
                page = session.fetch(request)
                self.data, self.paging = json.loads(page.data), page.paging
            except BeaconframesError as error:
                self.error = error
            session.close()
        self.waited = clock.waited
        self.elapsed = clock.now() - start
        self.requests = len(server.seen)
        # A request on a connection that the server has just closed may not arrive.
        assert session.request_count >= self.requests

    @property
    def kind(self):
        return type(self.error)


def body(text):
    """Return the fault that responds with 200 and exactly this text."""
    return f"body?hex={(text if isinstance(text, bytes) else text.encode()).hex()}"


# --- too many requests -------------------------------------------------------------------------


def test_all_threads_wait_for_retry_after():
    """T01, T10: after one 429 with Retry-After 2 no thread sends for 2 s; there is one retry."""
    fault, clock = "429_seconds?retry_after=2&times=1", SteppedClock()
    with FaultServer(fault) as server, ThreadPoolExecutor(8) as pool:
        session = Session(server.url, rate=1000, clock=clock)
        calls = [pool.submit(session.fetch, V1)]
        clock.await_waiting(1)
        calls += [pool.submit(session.fetch, V1) for _ in range(79)]
        clock.await_waiting(8)
        clock.move(1.9)
        clock.await_waiting(8)
        before = len(server.seen)
        clock.move(0.2)
        pages = {call.result().data for call in calls}
        session.close()

    assert {json.dumps(ROWS).encode()} == pages
    assert (1, 81) == (before, len(server.seen))


def test_many_429_do_not_cause_many_requests():
    """T10: 24 responses with 429 for 8 threads: during each wait no new request is sent."""
    fault, clock, during_waits = "429_storm?retry_after=2&times=24", SteppedClock(), []
    with FaultServer(fault) as server, ThreadPoolExecutor(8) as pool:
        session = Session(server.url, rate=1000, clock=clock)

        def call():
            try:
                return session.fetch(V1).data
            except RateLimited as error:
                return error.attempts

        calls = [pool.submit(call) for _ in range(80)]
        while sum(seen.status == 429 for seen in server.seen) < 24:
            clock.await_waiting(8)
            before = len(server.seen)
            clock.move(1.9)
            clock.await_waiting(8)
            during_waits.append(len(server.seen) - before)
            clock.move(0.2)
        while not all(call.done() for call in calls):
            clock.move(0.2)
            time.sleep(0.001)
        session.close()

    assert 24 == sum(s.status == 429 for s in server.seen)
    assert {4, json.dumps(ROWS).encode()} >= {call.result() for call in calls}
    assert {0} == set(during_waits)


@pytest.mark.parametrize("skew", [-7200, 7200])
def test_retry_after_as_a_date_uses_the_clock_of_the_service(skew):
    """T02: the wait is the date minus the Date header, even if the service's clock is wrong."""
    outcome = Outcome(f"429_date?delta=3&skew={skew}&times=1")

    assert ROWS == outcome.data
    assert outcome.elapsed >= 3
    assert outcome.waited <= 4.5


def test_ratelimit_reset_without_retry_after():
    """T03: without Retry-After the wait lasts until the window resets."""
    outcome = Outcome("429_reset_only?reset=7&times=1")

    assert ROWS == outcome.data
    assert outcome.elapsed >= 7
    assert outcome.waited <= 7.5


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (429, {"retry-after": "5", "ratelimit-reset": "60"}, 5),
        (429, {"retry-after": "60", "ratelimit-reset": "5"}, 60),
        (429, {"retry-after": "0", "ratelimit-reset": "7"}, 7),
        (429, {"retry-after": "soon"}, None),
        (503, {"ratelimit-reset": "7"}, None),
        (503, {"retry-after": "5", "ratelimit-reset": "7"}, 5),
        (404, {"retry-after": "5"}, None),
    ],
)
def test_retry_after_precedes_ratelimit_reset(status, headers, expected):
    """Every response states when its window resets; Retry-After states when to try again."""
    assert expected == parse_retry_after(status, headers)


def test_backoff_has_jitter_and_bounds():
    """T04: 201 waits before retries: each is between 0.05 s and 8 s, and nearly all differ."""
    waits = []

    def attempt():
        raise AttemptFailed(RateLimited, "too many requests", pauses_all=True)

    for _ in range(67):
        with pytest.raises(AttemptFailed):
            retry_call(
                attempt,
                seconds_left=lambda: 300.0,
                sleep=waits.append,
                pause=lambda _: None,
                quota=RetryQuota(10_000),
            )

    assert 201 == len(waits)
    assert 0.05 <= min(waits) < max(waits) <= 8
    assert max(waits[0::3]) <= 0.5
    assert max(waits[1::3]) <= 1
    assert max(waits[2::3]) <= 2
    assert len(set(waits)) > 195


def test_429_without_retry_after_backs_off():
    """T04: without headers there are four attempts with short waits between them."""
    outcome = Outcome("429_none")

    assert (RateLimited, 4, 4) == (outcome.kind, outcome.requests, outcome.error.attempts)
    assert 0.15 <= outcome.waited <= 7.2


@pytest.mark.parametrize("index", range(20), ids=[text[:12] or "empty" for text in ABSURD])
def test_invalid_retry_after_is_ignored(index):
    """T05: junk, zero and the past lead to a backoff; more than two minutes to an error."""
    outcome = Outcome(f"429_absurd?index={index}&times=1")
    text = ABSURD[index]

    if text == "3600":
        assert (RateLimited, 3600.0, 1) == (
            outcome.kind,
            outcome.error.retry_after,
            outcome.requests,
        )
        assert "3600 s" in str(outcome.error)
    elif "31 Dec 9999" in text:
        assert (RateLimited, 1) == (outcome.kind, outcome.requests)
        assert "9999-12-31" in str(outcome.error)
    else:
        assert ROWS == outcome.data
        assert 0 < outcome.waited <= (2 if text == "1.5" else 0.6)


@pytest.mark.parametrize("window", ["month", "hour"])
def test_spent_quota_fails_at_once(window):
    """T06: a wait of two weeks is an error immediately, and it states the date."""
    start = time.monotonic()
    outcome = Outcome(f"429_month?window={window}")

    assert time.monotonic() - start < 600
    assert (QuotaSpent, 1, 0.0) == (outcome.kind, outcome.requests, outcome.waited)
    assert 14 * 86_400 == outcome.error.retry_after
    assert "2026-12-05 12:00 UTC" in str(outcome.error)


@pytest.mark.parametrize("window", ["minute", "hour", "month"])
def test_quota_that_resets_within_two_minutes_is_waited_for(window):
    """Ninety seconds before the window resets, the call waits."""
    outcome = Outcome(f"429_month?window={window}&reset=90&times=1")

    assert (ROWS, 2) == (outcome.data, outcome.requests)
    assert outcome.elapsed >= 90
    assert outcome.waited <= 92


def test_revoked_key_is_not_retried():
    """T07: a key whose limits are all zero is not active."""
    outcome = Outcome("429_revoked")

    assert (Unauthorized, 1) == (outcome.kind, outcome.requests)
    assert "not active" in str(outcome.error)
    assert "BEACONFRAMES_API_KEY" in str(outcome.error)


@pytest.mark.parametrize("form", ["html", "json", "plain"])
def test_429_with_any_body_is_rate_limited(form):
    """T08: HTML, JSON or text: the error quotes at most 200 characters, without markup."""
    outcome = Outcome(f"429_{form}")

    assert RateLimited is outcome.kind
    assert len(outcome.error.message) <= len("too many requests: ") + 200
    assert "<" not in outcome.error.message


@BOTH
@pytest.mark.parametrize("times", [3, 50])
def test_fourth_attempt_is_the_last(times, request_):
    """T09: a call survives three failed attempts, but not a fourth."""
    outcome = Outcome(f"429_storm?times={times}", request_)

    assert 4 == outcome.requests
    assert (ROWS if times == 3 else None) == outcome.data
    assert (type(None) if times == 3 else RateLimited) is outcome.kind


def test_wait_beyond_the_deadline_is_not_started():
    """A call with 5 s left does not wait for 100 s."""
    outcome = Outcome("429_seconds?retry_after=100", timeouts=Timeouts(total=5))

    assert (RateLimited, 1, 0.0) == (outcome.kind, outcome.requests, outcome.waited)


# --- errors of the service --------------------------------------------------------------


@pytest.mark.parametrize("code", [500, 502, 503, 504, 520, 524, 408])
@pytest.mark.parametrize("form", ["html", "json", "empty"])
def test_server_errors_are_retried_three_times(code, form):
    """T11: the fourth attempt succeeds, whatever the body of the errors."""
    outcome = Outcome(f"5xx?code={code}&body={form}&times=3")

    assert (ROWS, 4) == (outcome.data, outcome.requests)
    assert outcome.waited <= 3.6


def test_lasting_server_error():
    """T11: after four attempts the error has status, message and endpoint in one line."""
    outcome = Outcome("5xx?code=503&body=html")

    assert (ServerError, 4, 4) == (outcome.kind, outcome.requests, outcome.error.attempts)
    assert str(outcome.error) == (
        "the service failed with status 503: Sorry (GET /api/v1/validator/{validators}/x, "
        "4 attempts). The problem is on the service's side: try again later"
    )


@pytest.mark.parametrize(("seconds", "requests"), [(4, 2), (6, 1)])
def test_wait_that_does_not_fit_into_the_timeout_is_not_begun(seconds, requests):
    """With 5 s in all, a requested wait of 6 s is an error immediately."""
    fault = f"429_seconds?retry_after={seconds}&times=1"
    outcome = Outcome(fault, timeouts=Timeouts(total=5))

    assert requests == outcome.requests
    assert (outcome.waited == 0) == (requests == 1)


@pytest.mark.parametrize("size", [10, 11])
def test_body_of_the_largest_size_is_accepted(size):
    """One byte more is an error; the sizes of the parts add up."""
    chunks = [b"x" * 6, b"x" * (size - 6)]
    if size == 10:
        assert chunks == list(decode_body(chunks, {}, 10))
    else:
        with pytest.raises(AttemptFailed, match="longer than"):
            list(decode_body(chunks, {}, 10))


def test_retry_after_of_a_server_error_is_respected():
    """T12: a 503 may carry Retry-After; no request is sent before."""
    outcome = Outcome("5xx?code=503&retry_after=2&times=1")

    assert ROWS == outcome.data
    assert outcome.elapsed >= 2
    assert outcome.waited <= 3


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("Thu, 17 Dec 2026 10:00:00 GMT", 10),
        ("Thu, 17 Dec 2026 10:00:00", 10),
        ("Thu, 17 Dec 2026 10:00:00 +0200", 8),
        ("", None),
        ("soon", None),
        ("Fri, 31 Dec 9999 23:59:59 -0100", None),
        (f"Thu, 17 Dec 2026 10:00:00 GMT{' ' * 64}", None),
    ],
)
def test_dates_in_headers(text, hour):
    """Dates are in UTC, also those without a zone; other text is no date."""
    date = parse_date(text)
    assert date == (None if hour is None else datetime(2026, 12, 17, hour, tzinfo=UTC))


def test_long_maintenance_is_not_waited_for():
    """A 503 with Retry-After of an hour is an error immediately, and it states the hour."""
    outcome = Outcome("5xx?code=503&retry_after=3600")

    assert (ServerError, 1) == (outcome.kind, outcome.requests)
    assert 3600 == outcome.error.retry_after


@pytest.mark.parametrize(
    ("fault", "requests", "kind"),
    [
        ("db_error_400?times=1", 2, type(None)),
        ("db_error_400", 2, ServerError),
        ("status?code=400&text=invalid epoch parameter", 1, BadRequest),
    ],
)
def test_400_of_the_database_is_retried_once(fault, requests, kind):
    """T14: the service reports failures of its database as 400; any other 400 is final."""
    outcome = Outcome(fault)

    assert (requests, kind) == (outcome.requests, outcome.kind)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("401", Unauthorized),
        ("403_tier", TierTooLow),
        ("403_challenge", ChallengePage),
        ("status?code=404", NotServed),
        ("status?code=405", NotServed),
        ("status?code=410", NotServed),
        ("status?code=418", BadRequest),
    ],
)
def test_client_errors_are_not_retried(fault, kind):
    """T15, T16: each status has its own error with a hint, after one request.

    The sentence comes first, and the path of the request after it.
    """
    outcome = Outcome(fault)

    assert (kind, 1) == (outcome.kind, outcome.requests)
    assert outcome.error.hint
    assert re.match(r"[a-z][^(]+ \((GET|POST) /", str(outcome.error))


def test_quoted_sentence_is_followed_by_one_period():
    """The hint follows the text of the service, which may end in a period."""
    error = AttemptFailed(BadRequest, "refused", quoted="Bad input.", hint="Check it")

    assert "refused: Bad input. Check it" == str(error.public_error("", 1, str))


def test_missing_object_and_missing_endpoint_differ():
    """V2 responds with 404 for a missing object (NotFound) and for an unknown path (NotServed)."""
    missing = Outcome("status?code=404&text=The requested resource was not found.", V2)
    unknown = Outcome("status?code=404&text=404 page not found", V2)

    assert (NotFound, NotServed) == (missing.kind, unknown.kind)


@pytest.mark.parametrize(
    ("body", "is_node"),
    [
        (b'{"code":404,"message":"Not Found"}', True),
        (b'{"statusCode":404,"error":"Not Found","message":"Route GET:/api not found"}', True),
        (b'{"status":"ERROR: not found","data":null}', False),
        (b"404 page not found", False),
    ],
)
def test_a_beacon_node_instead_of_an_explorer_has_a_hint(body, is_node):
    """The Beacon API has errors of its own form: `bf.connect` got the address of a node."""
    assert ("bf.node(url)" in (error_for_status(404, {}, body).hint or "")) == is_node


def test_unauthorized_has_a_hint():
    """The error says where to set the key."""
    error = Outcome("401").error

    assert "bf.connect(api_key=...)" in str(error)
    assert "BEACONFRAMES_API_KEY" in str(error)
    assert "GET /api/v1/validator/{validators}/x" == error.endpoint


# --- the connection ----------------------------------------------------------------------------

BROKEN = [
    "drop",
    "rst",
    "disconnect_mid_headers",
    "disconnect_mid_body",
    "chunk_truncated",
    "bad_chunk",
    "garbage",
    "gzip_corrupt",
    "gzip_lie",
]


@BOTH
@pytest.mark.parametrize("fault", BROKEN)
def test_broken_connection_is_retried(fault, request_):
    """T18: one broken response is retried; four in a row are an error."""
    once, always = Outcome(f"{fault}?times=1", request_), Outcome(fault, request_)

    assert (ROWS, 2) == (once.data, once.requests)
    assert 4 == always.requests == always.error.attempts
    assert isinstance(always.error, ConnectionFailed | ProtocolError)


@pytest.mark.parametrize("fraction", [n / 10 for n in range(1, 10)])
@pytest.mark.parametrize(
    "fault", ["no_length_close", "length_short", "truncated_json", "gzip_truncated"]
)
def test_truncated_response_is_retried(fault, fraction):
    """T20: a response that is cut at any point is never returned."""
    outcome = Outcome(f"{fault}?fraction={fraction}&times=1")

    assert (ROWS, 2) == (outcome.data, outcome.requests)


def test_gzip_without_its_checksum_is_refused():
    """T20: the JSON is complete, but the checksum at its end is missing."""
    outcome = Outcome("gzip_without_trailer")

    assert (ConnectionFailed, 4) == (outcome.kind, outcome.requests)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirect_is_not_followed(code):
    """T23: no request goes to the target, and the error names only its host."""
    with FaultServer() as target:
        outcome = Outcome(
            f"redirect?code={code}&to=http://127.0.0.1:{target.port}/private/path?a=b"
        )

    assert [] == target.seen
    assert (ProtocolError, 1) == (outcome.kind, outcome.requests)
    assert "127.0.0.1" in str(outcome.error)
    assert "private" not in str(outcome.error)


def test_redirect_loop_is_not_followed():
    """T23: a redirect to the same URL is one request."""
    outcome = Outcome("redirect_loop")

    assert (ProtocolError, 1) == (outcome.kind, outcome.requests)


@pytest.mark.parametrize("fault", ["hang_headers", "hang_body", "slow_drip", "slow_headers"])
def test_deadline_holds_for_slow_responses(fault):
    """T21: silence and a byte at a time, in headers or body, end at the deadline."""
    start = time.monotonic()
    outcome = Outcome(f"{fault}?bytes_per_chunk=1&ms=20", timeouts=Timeouts(total=0.3))

    assert RequestTimeout is outcome.kind
    assert 0.3 <= time.monotonic() - start <= AT_MOST


def test_read_timeout_is_retried():
    """A silent attempt ends after the read timeout, and another one follows."""
    sent = []

    class OnceImpatient(httpx.HTTPTransport):
        """Gives later attempts more time: the machine may be busy."""

        def handle_request(self, request):
            if sent:
                request.extensions["timeout"] = {"read": 60.0}
            sent.append(request)
            return super().handle_request(request)

    outcome = Outcome(
        "hang_headers?times=1", timeouts=Timeouts(read=0.2), transport=OnceImpatient()
    )

    assert (ROWS, 2) == (outcome.data, outcome.requests)


def test_stop_ends_a_call_in_another_thread():
    """T22: a stop ends the wait for a response and the wait for the rate limiter."""
    with FaultServer("hang_headers") as server:
        session, stop = Session(server.url, rate=1), threading.Event()
        with ThreadPoolExecutor(2) as pool:
            start = time.monotonic()
            calls = [pool.submit(session.fetch, V1, stop=stop) for _ in range(2)]
            while not server.seen:
                time.sleep(0.01)
            stop.set()
            errors = [call.exception() for call in calls]
            elapsed = time.monotonic() - start
        session.close()

    assert [ConnectionFailed, ConnectionFailed] == [type(error) for error in errors]
    assert elapsed < AT_MOST


@pytest.mark.parametrize("fault", ["hang_headers", "hang_body", "slow_drip?ms=500", "slow_headers"])
def test_ctrl_c_ends_a_call(fault):
    """Ctrl-C ends a call immediately, whatever the call waits for."""
    pressed = []

    def press():
        while not server.seen:
            time.sleep(0.01)
        pressed.append(time.monotonic())
        _thread.interrupt_main()

    with FaultServer(fault) as server:
        session = Session(server.url)
        thread = threading.Thread(target=press)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            session.fetch(V1)
        elapsed = time.monotonic() - pressed[0]
        thread.join()
        session.close()

    assert elapsed < AT_MOST


def test_stopped_calls_do_not_block_later_calls(monkeypatch):
    """Eight stopped calls still wait on their connections; the next call opens another one."""
    monkeypatch.setattr(transport, "MAX_ABANDONED_WAIT", 0.1)
    with FaultServer("hang_headers?times=8") as server, ThreadPoolExecutor(8) as pool:
        session, stop = Session(server.url, rate=1000), threading.Event()
        calls = [pool.submit(session.fetch, V1, stop=stop) for _ in range(8)]
        while len(server.seen) < 8:
            time.sleep(0.01)
        stop.set()
        errors = {type(call.exception()) for call in calls}
        start = time.monotonic()
        page = session.fetch(V1)
        elapsed = time.monotonic() - start
        session.close()

    assert {ConnectionFailed} == errors
    assert ROWS == json.loads(page.data)
    assert elapsed < AT_MOST


def test_a_thread_does_not_wait_for_its_abandoned_request():
    """The request after one that hangs has a thread and a connection of its own."""
    with FaultServer("hang_headers?times=1") as server:
        session = Session(server.url, timeouts=Timeouts(total=2, read=60))
        with pytest.raises(RequestTimeout):
            session.fetch(V1)
        page = session.fetch(V1)
        session.close()

    assert ROWS == json.loads(page.data)


def test_abandoned_requests_count_as_connections(monkeypatch):
    """C6: the calls after a failed load wait for its requests under way: 8 connections, not 16."""
    monkeypatch.setattr(transport, "MAX_ABANDONED_WAIT", 60)
    counts, respond, is_waiting = [], threading.Event(), threading.Event()
    run, wait = transport._Exchange.run, transport.Transport._wait_for_abandoned

    def count(exchange):
        counts.append(len(exchange._transport.open_exchanges))
        run(exchange)

    def note_and_wait(*args):
        is_waiting.set()
        wait(*args)

    monkeypatch.setattr(transport._Exchange, "run", count)
    monkeypatch.setattr(transport.Transport, "_wait_for_abandoned", note_and_wait)
    with FaultServer("status?code=400") as server, ThreadPoolExecutor(8) as pool:
        server.hold = respond
        session = Session(server.url, rate=1000)
        stop = threading.Event()
        calls = [pool.submit(session.fetch, V1, stop=stop) for _ in range(8)]
        while len(server.seen) < 8:
            time.sleep(0.01)
        stop.set()
        assert {ConnectionFailed} == {type(call.exception()) for call in calls}
        calls = [pool.submit(session.fetch, V1) for _ in range(8)]
        assert is_waiting.wait(60)
        respond.set()
        assert {BadRequest} == {type(call.exception()) for call in calls}
        session.close()

    assert (16, 8) == (len(counts), max(counts))


def test_deadline_holds_for_a_client_that_waits(monkeypatch):
    """The HTTP client may wait for an hour; the call ends at its deadline."""
    monkeypatch.setattr(transport, "_open_client", lambda *_: httpx.Client(timeout=3600))
    with FaultServer("hang_headers") as server:
        session = Session(server.url, timeouts=Timeouts(total=0.5, read=3600))
        with pytest.raises(RequestTimeout, match=r"within 0\.5 s"):
            session.fetch(V1)


def test_body_of_an_error_is_optional(monkeypatch):
    """A status says enough: the call does not wait long for the body of an error."""
    monkeypatch.setattr(transport, "ERROR_BODY_SECONDS", 0.3)
    start = time.monotonic()
    outcome = Outcome("hang_body?code=404")

    assert (NotServed, 1) == (outcome.kind, outcome.requests)
    assert 0.3 <= time.monotonic() - start < AT_MOST


def test_close_ends_a_call_and_a_later_call_reconnects():
    """Calls under way end with an error; a later call opens a new connection."""
    with FaultServer("hang_headers?times=1") as server:
        session = Session(server.url)
        with ThreadPoolExecutor(1) as pool:
            call = pool.submit(session.fetch, V1)
            while not server.seen:
                time.sleep(0.01)
            session.close()
            error = call.exception()
        later = session.fetch(V1)
        session.close()

    assert ConnectionFailed is type(error)
    assert ROWS == json.loads(later.data)


def test_refused_connection_names_the_address():
    """T30: without a server the error names host and port."""
    with socket.socket() as bound:
        # Without `listen`: connections are refused, and no other server gets the port.
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        session = Session(f"http://127.0.0.1:{port}", clock=FastClock())
        with pytest.raises(ConnectionFailed, match=rf"127\.0\.0\.1:{port}") as caught:
            session.fetch(V1)

    assert 4 == caught.value.attempts


def test_traceback_of_an_error_is_short():
    """The traceback of an error has one frame of this package, and no second error is attached."""
    with FaultServer("5xx") as server:
        session = Session(server.url, clock=FastClock())
        with pytest.raises(ServerError) as caught:
            session.fetch(V1)
        session.close()
    frames = traceback.extract_tb(caught.value.__traceback__)

    assert ["fetch"] == [frame.name for frame in frames[1:]]
    assert (None, None) == (caught.value.__cause__, caught.value.__context__)


def test_headers_are_bounded_and_cookies_not_stored():
    """T25: a megabyte of headers is a protocol error; a cookie is never returned."""
    bomb = Outcome("header_bomb")
    with FaultServer("cookies") as server:
        session = Session(server.url)
        session.fetch(V1)
        session.fetch(V1)
        session.close()

    assert ProtocolError is bomb.kind
    assert "cookie" not in server.seen[1].headers


# --- bodies and envelopes ----------------------------------------------------------------------

SCALARS = ["null", "1", '"OK"', "[]", "true", "{}"]


@BOTH
@pytest.mark.parametrize("fault", ["200_html", "204", "empty_200", *map(body, SCALARS)])
def test_response_without_data_is_not_an_empty_page(fault, request_):
    """B01: HTML, empty bodies and JSON without an envelope are retried, then a protocol error."""
    outcome = Outcome(fault, request_)

    assert (ProtocolError, 4) == (outcome.kind, outcome.requests)


@BOTH
def test_error_with_status_200_is_an_error(request_):
    """B02: the error quotes the message without its prefix."""
    outcome = Outcome("error_200", request_)

    assert ServerError is outcome.kind
    assert "the service reported: no luck today" == outcome.error.message


@pytest.mark.parametrize(
    "text",
    [
        '{"status": "OK", "data": null}',
        '{"status": "OK"}',
        '{"data": []}',
        '{"status": "ok", "data": []}',
        '{"status": 1, "data": []}',
    ],
)
@pytest.mark.parametrize("request_", [V1, BARE], ids=["v1", "bare"])
def test_incomplete_envelope_is_refused(text, request_):
    """B03: missing or null data, and a missing or other status, do not mean zero rows."""
    assert ProtocolError is Outcome(body(text), request_).kind


@pytest.mark.parametrize("text", ['{"data": null, "paging": {}}', '{"paging": {}}'])
def test_incomplete_v2_envelope_is_refused(text):
    """B03: V2 data that is missing or null does not mean zero rows."""
    assert ProtocolError is Outcome(body(text), V2).kind


@pytest.mark.parametrize("request_", [V1, V2, CODE], ids=["v1", "v2", "code"])
def test_data_without_envelope_is_accepted_for_one_endpoint(request_):
    """B04: only the endpoint that documents it may omit the envelope."""
    bare = '{"currentSlot": 7, "rates": {}}'

    assert {"currentSlot": 7, "rates": {}} == Outcome(body(bare), BARE).data
    assert {"currentSlot": 7} == Outcome(body(ok(b'{"currentSlot": 7}')), BARE).data
    assert ProtocolError is Outcome(body(bare), request_).kind


def test_code_envelope():
    """The gas fees have a code instead of a status; their errors have a status."""
    assert {"fast": 1} == Outcome(body('{"code": 200, "data": {"fast": 1}}'), CODE).data
    assert ProtocolError is Outcome(body('{"code": 500, "data": {"fast": 1}}'), CODE).kind
    assert ServerError is Outcome(body('{"status": "ERROR: x", "data": null}'), CODE).kind


@pytest.mark.parametrize("data", ['{"epoch": 1}', '[{"epoch": 1}]', "[]", "{}", "[[]]"])
def test_data_of_any_shape_is_returned_unchanged(data):
    """B05, B06: the table decides what an object, a list or an empty list means."""
    assert json.loads(data) == Outcome(body(ok(data.encode()))).data


@pytest.mark.parametrize(
    "text",
    [
        v1_body() + b"\n" + v1_body(),
        v1_body() + b"</html>",
        v1_body().decode().encode("utf-16"),
        ok(b'["\xff\xfe"]'),
        b'{"status": "OK", "data": [], "data": [1]}',
        ok(b"[NaN]"),
        ok(b"[01]"),
        b'{"status": "OK", "data": ' + b"[" * 1_000_000,
    ],
    ids=["two docs", "garbage", "utf-16", "bad utf-8", "duplicates", "nan", "octal", "deep"],
)
def test_invalid_json_is_refused(text):
    """B07, B08: a response that a strict parser refuses is a protocol error."""
    assert ProtocolError is Outcome(body(text)).kind


def test_unusual_json_is_accepted():
    """B07, B14: a byte order mark, additional members and lone surrogates are accepted."""
    assert ROWS == Outcome(body(b"\xef\xbb\xbf" + v1_body())).data
    assert ROWS == Outcome(body(v1_body(took_ms=3, version={"a": 1}))).data
    assert ["\ufffd", "\\ud800", "\U0001f600"] == Outcome(
        body(ok(rb'["\ud800", "\\ud800", "\ud83d\ude00"]'))
    ).data


def test_paging_is_returned_with_the_page():
    """V2: the cursor of the next page is returned as raw JSON; null means no next page."""
    assert {"next_cursor": "abc"} == json.loads(Outcome("", V2).paging)
    assert Outcome(body(v2_body(paging=None)), V2).paging is None


@pytest.mark.parametrize("fault", ["gzip_bomb?mb=9", body(b" " * 9 * 2**20)], ids=["gzip", "plain"])
def test_body_is_bounded(fault):
    """B09: a body beyond the limit is an error immediately, without a retry."""
    outcome = Outcome(fault, max_body=8 * 2**20)

    assert (ProtocolError, 1) == (outcome.kind, outcome.requests)
    assert "longer than 8 MiB" in str(outcome.error)


def test_nested_compression_is_refused():
    """B09: one layer of gzip is accepted, more are not."""
    assert ProtocolError is Outcome("gzip_nested?layers=50").kind
    assert ROWS == Outcome("gzip").data


def test_damaged_bodies_raise_our_errors():
    """B10: 300 bodies with one flipped bit raise no foreign exception."""
    good = v1_body()
    with FaultServer() as server:
        session = Session(server.url, clock=FastClock(), rate=float("inf"))
        kinds = set()
        for n in range(300):
            damaged = bytearray(good)
            damaged[n * 7919 % len(good)] ^= 1 << (n % 8)
            server.fault(body(bytes(damaged)))
            try:
                session.fetch(V1)
            except (ResponseError, ServiceError) as error:
                kinds.add(type(error))
        session.close()

    assert {ProtocolError} == kinds


def test_echoed_key_is_redacted():
    """B15: the service echoes the key anywhere in a long text; the error does not show it."""
    for before in (0, 170, 195, 5000):
        error = Outcome(f"key_echo?before={before}").error

        assert "a-key" not in str(error)
    assert "you sent *** to" in str(Outcome("key_echo").error)
