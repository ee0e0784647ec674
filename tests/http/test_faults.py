"""What goes wrong on the way, and what comes of it: the whole answer, or one clear error."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from beaconframes.config import Secret
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
from beaconframes.http.retry import RetryQuota, retry_call
from beaconframes.http.session import Session
from beaconframes.http.status_errors import AttemptFailed
from beaconframes.http.transport import Timeouts

from ..support.faults import (
    ABSURD,
    ROWS,
    UNDER_WAY,
    FastClock,
    FaultServer,
    ok,
    sent_while_told_to_wait,
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
BOTH = pytest.mark.parametrize("request_", [V1, V2], ids=["v1", "v2"])


class Outcome:
    """What a call came to, and what it took."""

    def __init__(self, fault, request=V1, **settings):
        clock = FastClock()
        begun = clock.now()
        self.data = self.error = self.paging = None
        with FaultServer(fault) as server:
            session = Session(server.url, Secret("a-key"), clock=clock, **settings)
            try:
                answer = session.fetch(request)
                self.data, self.paging = json.loads(answer.data), answer.paging
            except BeaconframesError as error:
                self.error = error
            session.close()
        self.waited = clock.waited
        self.took = clock.now() - begun
        self.requests = len(server.seen)
        # One may be lost on a connection that the server has just closed.
        assert session.request_count >= self.requests

    @property
    def kind(self):
        return type(self.error)


def body(text):
    """The fault that answers 200 with exactly this text."""
    return f"body?hex={(text if isinstance(text, bytes) else text.encode()).hex()}"


# --- too many requests -------------------------------------------------------------------------


def test_retry_after_is_obeyed_by_every_thread():
    """T01, T10: one 429 that asks for 2 s: one retry after that, nobody sends in between."""
    fault = "429_seconds?retry_after=2&times=1"
    with FaultServer(fault, latency=0.05) as server, ThreadPoolExecutor(8) as pool:
        session = Session(server.url, rate=1000)
        answers = list(pool.map(lambda _: session.fetch(V1).data, range(80)))
        session.close()
    told = next(s for s in server.seen if s.status == 429)
    later = [s.arrived - told.answered for s in server.seen]

    assert {json.dumps(ROWS).encode()} == set(answers)
    assert 81 == len(server.seen)
    assert 0 == sent_while_told_to_wait(server.seen)
    assert min(seconds for seconds in later if seconds > UNDER_WAY) >= 2.0


@pytest.mark.more
def test_storm_is_not_answered_with_a_storm():
    """T10: 24 times 429 for 8 threads: after each, at most what was already under way arrives."""
    with FaultServer("429_storm?retry_after=2&times=24") as server, ThreadPoolExecutor(8) as pool:
        session = Session(server.url, rate=1000)

        def call(_):
            try:
                return session.fetch(V1).data
            except RateLimited as error:
                return error.attempts

        outcomes = list(pool.map(call, range(80)))
        session.close()

    assert 24 == sum(s.status == 429 for s in server.seen)
    assert {4, json.dumps(ROWS).encode()} >= set(outcomes)
    assert 0 == sent_while_told_to_wait(server.seen)


@pytest.mark.parametrize("skew", [-7200, 7200])
def test_retry_after_as_a_date_is_read_by_the_clock_that_wrote_it(skew):
    """T02: the wait is the date minus the answer's own date, however wrong both are."""
    outcome = Outcome(f"429_date?delta=3&skew={skew}&times=1")

    assert ROWS == outcome.data
    assert outcome.took >= 3
    assert outcome.waited <= 4.5


def test_reset_stands_in_for_retry_after():
    """T03: without Retry-After, the seconds until the window resets."""
    outcome = Outcome("429_reset_only?reset=7&times=1")

    assert ROWS == outcome.data
    assert outcome.took >= 7
    assert outcome.waited <= 7.5


def test_backoff_is_jittered_never_none_and_never_long():
    """T04: 201 waits of retries, each above zero and at most 8 s, and no two series alike."""
    waits = []

    def attempt():
        raise AttemptFailed(RateLimited, "too many", pauses_all=True)

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


def test_429_without_advice_backs_off():
    """T04: plain text and no header: four attempts with short waits between."""
    outcome = Outcome("429_none")

    assert (RateLimited, 4, 4) == (outcome.kind, outcome.requests, outcome.error.attempts)
    assert 0.15 <= outcome.waited <= 7.2


@pytest.mark.parametrize("index", range(20), ids=[text[:12] or "nothing" for text in ABSURD])
def test_absurd_advice_is_no_advice(index):
    """T05: junk, zero and the past: backoff. Longer than two minutes: an error that says so."""
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
def test_spent_allowance_fails_at_once_with_the_date(window):
    """T06: two weeks of waiting are not started; the error says when there is more."""
    begun = time.monotonic()
    outcome = Outcome(f"429_month?window={window}")

    assert time.monotonic() - begun < 20
    assert (QuotaSpent, 1, 0.0) == (outcome.kind, outcome.requests, outcome.waited)
    assert 14 * 86_400 == outcome.error.retry_after
    assert "2026-12-05 12:00 UTC" in str(outcome.error)


@pytest.mark.parametrize("window", ["minute", "hour", "month"])
def test_allowance_that_is_renewed_within_two_minutes_is_waited_for(window):
    """Ninety seconds before a window ends the rest of a long load is worth that wait."""
    outcome = Outcome(f"429_month?window={window}&reset=90&times=1")

    assert (ROWS, 2) == (outcome.data, outcome.requests)
    assert outcome.took >= 90
    assert outcome.waited <= 92


def test_revoked_key_is_no_matter_of_waiting():
    """T07: a key that is allowed nothing at all is not active."""
    outcome = Outcome("429_revoked")

    assert (Unauthorized, 1) == (outcome.kind, outcome.requests)
    assert "not active" in str(outcome.error)
    assert "BEACONFRAMES_API_KEY" in str(outcome.error)


@pytest.mark.parametrize("form", ["html", "json", "plain"])
def test_429_is_one_thing_in_any_dress(form):
    """T08: page, JSON or text: a rate limit, quoted in at most 200 clean characters."""
    outcome = Outcome(f"429_{form}")

    assert RateLimited is outcome.kind
    assert len(outcome.error.message) <= len("too many requests: ") + 200
    assert "<" not in outcome.error.message


@BOTH
@pytest.mark.parametrize("times", [3, 50])
def test_fourth_attempt_is_the_last(times, request_):
    """T09: three refusals are survived, a fourth is not."""
    outcome = Outcome(f"429_storm?times={times}", request_)

    assert 4 == outcome.requests
    assert (ROWS if times == 3 else None) == outcome.data
    assert (type(None) if times == 3 else RateLimited) is outcome.kind


def test_wait_that_does_not_fit_the_deadline_is_not_begun():
    """A call with 5 s left does not sleep for 100."""
    outcome = Outcome("429_seconds?retry_after=100", timeouts=Timeouts(total=5))

    assert (RateLimited, 1, 0.0) == (outcome.kind, outcome.requests, outcome.waited)


# --- the service fails or refuses --------------------------------------------------------------


@pytest.mark.parametrize("code", [500, 502, 503, 504, 520, 524, 408])
@pytest.mark.parametrize("form", ["html", "json", "empty"])
def test_failing_service_is_asked_four_times(code, form):
    """T11: success on the fourth attempt; with a fifth failure there is none."""
    outcome = Outcome(f"5xx?code={code}&body={form}&times=3")

    assert (ROWS, 4) == (outcome.data, outcome.requests)
    assert outcome.waited <= 3.6


def test_service_that_goes_on_failing():
    """T11: after four attempts it is the service's fault, in one line."""
    outcome = Outcome("5xx?code=503&body=html")

    assert (ServerError, 4, 4) == (outcome.kind, outcome.requests, outcome.error.attempts)
    assert str(outcome.error) == (
        "GET /api/v1/validator/{validators}/x: the service failed with 503: Sorry "
        "(after 4 attempts). The trouble is on the service's side: try again later"
    )


def test_retry_after_of_a_failing_service_is_obeyed():
    """T12: a 503 may say when to come back; nobody sends before."""
    outcome = Outcome("5xx?code=503&retry_after=2&times=1")

    assert ROWS == outcome.data
    assert outcome.took >= 2
    assert outcome.waited <= 3


def test_long_maintenance_is_not_waited_for():
    """A 503 for an hour is an error at once, with the hour in it."""
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
def test_400_of_the_database_is_worth_one_more_attempt(fault, requests, kind):
    """T14: the service reports its own failure as the caller's; any other 400 is the caller's."""
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
def test_refusal_is_final(fault, kind):
    """T15, T16: what another attempt would not change is not attempted; each has its own name."""
    outcome = Outcome(fault)

    assert (kind, 1) == (outcome.kind, outcome.requests)
    assert outcome.error.hint


def test_absent_thing_is_not_an_absent_endpoint():
    """V2 says 404 for a thing that is not there; a page that is not there is another matter."""
    absent = Outcome("status?code=404&text=The requested resource was not found.", V2)
    unknown = Outcome("status?code=404&text=404 page not found", V2)

    assert (NotFound, NotServed) == (absent.kind, unknown.kind)


def test_unauthorized_says_what_to_do():
    """Somebody without a key learns where to put one."""
    error = Outcome("401").error

    assert "bf.connect(api_key=...)" in str(error)
    assert "BEACONFRAMES_API_KEY" in str(error)
    assert "GET /api/v1/validator/{validators}/x" == error.endpoint


# --- the line ----------------------------------------------------------------------------------

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
def test_broken_line_is_tried_again(fault, request_):
    """T18: once broken, the answer is the same; always broken, an error after four attempts."""
    once, always = Outcome(f"{fault}?times=1", request_), Outcome(fault, request_)

    assert (ROWS, 2) == (once.data, once.requests)
    assert 4 == always.requests == always.error.attempts
    assert isinstance(always.error, ConnectionFailed | ProtocolError)


@pytest.mark.parametrize("fraction", [n / 10 for n in range(1, 10)])
@pytest.mark.parametrize(
    "fault", ["no_length_close", "length_short", "truncated_json", "gzip_truncated"]
)
def test_part_of_an_answer_is_no_answer(fault, fraction):
    """T20: wherever it is cut: never a short answer, always another attempt."""
    outcome = Outcome(f"{fault}?fraction={fraction}&times=1")

    assert (ROWS, 2) == (outcome.data, outcome.requests)


def test_gzip_without_its_end_is_no_answer():
    """T20: all of the JSON is there, but not the checksum that proves it."""
    outcome = Outcome("gzip_without_trailer")

    assert (ConnectionFailed, 4) == (outcome.kind, outcome.requests)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirect_is_not_followed(code):
    """T23: one request here, none there, and the error names the host and no more."""
    with FaultServer() as sink:
        outcome = Outcome(f"redirect?code={code}&to=http://127.0.0.1:{sink.port}/private/path?a=b")

    assert [] == sink.seen
    assert (ProtocolError, 1) == (outcome.kind, outcome.requests)
    assert "127.0.0.1" in str(outcome.error)
    assert "private" not in str(outcome.error)


def test_redirect_loop_is_not_entered():
    """T23: a redirect to itself is one request."""
    outcome = Outcome("redirect_loop")

    assert (ProtocolError, 1) == (outcome.kind, outcome.requests)


@pytest.mark.parametrize("fault", ["hang_headers", "hang_body", "slow_drip", "slow_headers"])
def test_deadline_holds_whatever_drips(fault):
    """T21: silence and drops of one byte alike end at the deadline."""
    begun = time.monotonic()
    outcome = Outcome(f"{fault}?bytes_per_chunk=1&ms=20", timeouts=Timeouts(total=0.5))

    assert RequestTimeout is outcome.kind
    assert 0.5 <= time.monotonic() - begun <= 8


def test_silence_is_given_up_before_the_deadline():
    """A silent attempt ends after the read timeout, and there is another."""
    outcome = Outcome("hang_headers?times=1", timeouts=Timeouts(read=0.3))

    assert (ROWS, 2) == (outcome.data, outcome.requests)


def test_stop_ends_a_call_in_another_thread():
    """T22: a thread that waits for an answer or for its turn can be called off."""
    with FaultServer("hang_headers") as server:
        session, stop = Session(server.url, rate=1), threading.Event()
        with ThreadPoolExecutor(2) as pool:
            begun = time.monotonic()
            calls = [pool.submit(session.fetch, V1, stop=stop) for _ in range(2)]
            while not server.seen:
                time.sleep(0.01)
            stop.set()
            errors = [call.exception() for call in calls]
            took = time.monotonic() - begun
        session.close()

    assert [ConnectionFailed, ConnectionFailed] == [type(error) for error in errors]
    assert took < 8


def test_close_ends_a_call_and_a_later_one_opens_again():
    """Closing is for the connections: what waits ends, what comes later is served."""
    with FaultServer("hang_headers?times=1") as server:
        session = Session(server.url)
        with ThreadPoolExecutor(1) as pool:
            call = pool.submit(session.fetch, V1)
            while not server.seen:
                time.sleep(0.01)
            session.close()
            error = call.exception()
        again = session.fetch(V1)
        session.close()

    assert ConnectionFailed is type(error)
    assert ROWS == json.loads(again.data)


def test_refused_connection_names_the_address():
    """T30: nobody listens: a connection error with host and port."""
    with FaultServer() as server:
        port = server.port
    session = Session(f"http://127.0.0.1:{port}", clock=FastClock())
    with pytest.raises(ConnectionFailed, match=rf"127\.0\.0\.1:{port}") as caught:
        session.fetch(V1)

    assert 4 == caught.value.attempts


def test_headers_are_bounded_and_cookies_not_kept():
    """T25: a megabyte of headers is a protocol error; a cookie is not sent back."""
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
def test_no_answer_is_no_empty_answer(fault, request_):
    """B01: pages, nothing, and JSON that is no envelope: tried again, then a protocol error."""
    outcome = Outcome(fault, request_)

    assert (ProtocolError, 4) == (outcome.kind, outcome.requests)


@BOTH
def test_error_under_200_is_an_error(request_):
    """B02: the message without its prefix."""
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
def test_half_an_envelope_is_none(text, request_):
    """B03: no data, null for data, no status, another status: no rows cannot be meant."""
    assert ProtocolError is Outcome(body(text), request_).kind


@pytest.mark.parametrize("text", ['{"data": null, "paging": {}}', '{"paging": {}}'])
def test_half_an_envelope_is_none_in_v2(text):
    """B03: the same for generation 2."""
    assert ProtocolError is Outcome(body(text), V2).kind


@pytest.mark.parametrize("request_", [V1, V2, CODE], ids=["v1", "v2", "code"])
def test_bare_answer_is_accepted_nowhere_else(request_):
    """B04: data without envelope is what one endpoint sends, and only that one."""
    bare = '{"currentSlot": 7, "rates": {}}'

    assert {"currentSlot": 7, "rates": {}} == Outcome(body(bare), BARE).data
    assert {"currentSlot": 7} == Outcome(body(ok(b'{"currentSlot": 7}')), BARE).data
    assert ProtocolError is Outcome(body(bare), request_).kind


def test_code_envelope():
    """The gas fees come under a code instead of a status; their errors do not."""
    assert {"fast": 1} == Outcome(body('{"code": 200, "data": {"fast": 1}}'), CODE).data
    assert ProtocolError is Outcome(body('{"code": 500, "data": {"fast": 1}}'), CODE).kind
    assert ServerError is Outcome(body('{"status": "ERROR: x", "data": null}'), CODE).kind


@pytest.mark.parametrize("data", ['{"epoch": 1}', '[{"epoch": 1}]', "[]", "{}", "[[]]"])
def test_data_is_handed_on_as_it_is(data):
    """B05, B06: object, list or empty list: what that means is for the table to say."""
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
    ids=["two docs", "garbage", "utf-16", "bad utf-8", "twins", "nan", "octal", "deep"],
)
def test_what_is_not_quite_json_is_not_json(text):
    """B07, B08: nothing is read into what a strict parser would not accept."""
    assert ProtocolError is Outcome(body(text)).kind


def test_odd_but_valid_json_is_read():
    """B07, B14: a byte order mark, another content type, more members, half a surrogate pair."""
    assert ROWS == Outcome(body(b"\xef\xbb\xbf" + v1_body())).data
    assert ROWS == Outcome(body(v1_body(took_ms=3, version={"a": 1}))).data
    assert ["\ufffd", "\\ud800", "\U0001f600"] == Outcome(
        body(ok(rb'["\ud800", "\\ud800", "\ud83d\ude00"]'))
    ).data


def test_paging_comes_beside_the_data():
    """V2: the cursor of the next page is handed on raw; null is none."""
    assert {"next_cursor": "abc"} == json.loads(Outcome("", V2).paging)
    assert Outcome(body(v2_body(paging=None)), V2).paging is None


@pytest.mark.parametrize("fault", ["gzip_bomb?mb=9", body(b" " * 9 * 2**20)], ids=["gzip", "plain"])
def test_body_is_bounded(fault):
    """B09: what grows beyond the cap is cut off at once, and not asked for again."""
    outcome = Outcome(fault, max_body=8 * 2**20)

    assert (ProtocolError, 1) == (outcome.kind, outcome.requests)
    assert "longer than 8 MiB" in str(outcome.error)


def test_nested_compression_is_refused():
    """B09: one layer is what was offered."""
    assert ProtocolError is Outcome("gzip_nested?layers=50").kind
    assert ROWS == Outcome("gzip").data


def test_random_bodies_are_answers_or_our_errors():
    """B10: 300 bodies with a flipped bit, with one of a thousand shapes: no foreign exception."""
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


def test_key_that_comes_back_is_masked():
    """B15: the service quotes what it was sent, anywhere in a long text; the error does not."""
    for before in (0, 170, 195, 5000):
        error = Outcome(f"key_echo?before={before}").error

        assert "a-key" not in str(error)
    assert "you sent *** to" in str(Outcome("key_echo").error)
