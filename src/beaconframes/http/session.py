"""A session: one service, one key, and the manners with which it is asked."""

from __future__ import annotations

import logging
import os
import threading
import weakref
from functools import partial
from typing import TYPE_CHECKING

from beaconframes.client.quota import spent
from beaconframes.config import check_url
from beaconframes.errors import BeaconframesError, ConnectionFailed, RequestTimeout, UsageError
from beaconframes.http.failure import AttemptFailed
from beaconframes.http.rate_limiter import TICK, Clock, RateLimiter
from beaconframes.http.redact import Redactor
from beaconframes.http.response import Answer, judge
from beaconframes.http.retry import LONGEST_WAIT, asked_wait, persist
from beaconframes.http.retry_quota import RetryQuota
from beaconframes.http.transport import BODY_CAP, Timeouts, Transport

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from beaconframes.config import Secret
    from beaconframes.endpoint import Request

log = logging.getLogger("beaconframes.client")


class Session:
    """Asks one service, from as many threads as like, within its limits.

    The key goes into a header of every request and nowhere else. With no *rate* the permitted
    rate is learned from the service. Sessions that share an allowance share a *pacer*, and
    those of one client its *credit* for retries.
    """

    def __init__(
        self,
        base_url: str,
        key: Secret | None = None,
        *,
        rate: float | None = None,
        rate_limiter: RateLimiter | None = None,
        credit: RetryQuota | None = None,
        timeouts: Timeouts | None = None,
        body_cap: int = BODY_CAP,
        clock: Clock | None = None,
        transport: httpx.BaseTransport | None = None,
        http_client: httpx.Client | None = None,
    ) -> None:
        """Open nothing yet; refuse a *base_url* to which the key cannot go safely."""
        self.base_url = check_url(base_url, has_key=key is not None)
        if key is not None:
            # A key that stayed behind in another process says so here.
            key.reveal()
        self.rate_limiter = rate_limiter or RateLimiter(rate, clock=clock)
        self.credit = credit or RetryQuota()
        self.requests = 0
        """Requests sent so far, every attempt counted."""
        self._timeouts = timeouts or Timeouts()
        self._mask = Redactor(key)
        self._open = partial(
            Transport,
            self.base_url,
            key,
            timeouts=self._timeouts,
            body_cap=body_cap,
            transport=transport,
            http_client=http_client,
        )
        self._transport: Transport | None = None
        self._shut: Callable[[], object] | None = None
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._process = os.getpid()

    def __repr__(self) -> str:
        return f"Session({getattr(self, 'base_url', None)!r})"

    def fetch(self, request: Request, *, stop: threading.Event | None = None) -> Answer:
        """Return the answer to *request*, after as many attempts as it is worth.

        Setting *stop* from another thread ends the call within a fraction of a second.
        """
        outcome = self._outcome(request, stop)
        # Raised here, where no frame of the traceback has held a header or a body.
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def send(self, request: Request, call: Call) -> Answer:
        """Return the answer to *request* if one attempt, in its turn, brings it."""

        def heard(status: int, headers: dict[str, str]) -> None:
            self.rate_limiter.learn(headers, status)
            wait = asked_wait(status, headers)
            if wait is not None and wait <= LONGEST_WAIT:
                self.rate_limiter.hold(wait)
            slot.answered()

        with self.rate_limiter.slot(call.seconds_left) as slot:
            call.seconds_left()
            reply = self._line().exchange(request, time_left=call.seconds_left, heard=heard)
        try:
            return judge(reply, request.envelope, request.absent)
        except AttemptFailed:
            # Judged again without the key: no part of it is quoted, wherever a text is cut.
            masked = reply.masked(self._mask)
        return judge(masked, request.envelope)

    def close(self) -> None:
        """Close every connection and end the calls that wait; a later call opens new ones."""
        with self._lock:
            shut, self._shut, self._transport = self._shut, None, None
            closed, self._closed = self._closed, threading.Event()
        closed.set()
        if shut is not None:
            shut()

    def _line(self) -> Transport:
        """Return the connections for one more request, and count it."""
        with self._lock:
            self.requests += 1
            if self._transport is None:
                self._transport = self._open()
                # For sessions that nobody closes.
                self._shut = weakref.finalize(self, self._transport.close)
            return self._transport

    def _outcome(
        self, request: Request, stop: threading.Event | None
    ) -> Answer | BeaconframesError | KeyboardInterrupt:
        if self._process != os.getpid():
            return UsageError(
                "this session was opened in another process",
                hint="Open a new one after the fork: two processes cannot share a connection",
            )
        if (refused := spent(self.rate_limiter)) is not None:
            return refused.public(request.endpoint, 0, self._mask)
        call = Call(self._timeouts.total, self.rate_limiter.clock, self._closed, stop)

        def attempt() -> Answer:
            call.attempts += 1
            try:
                return self.send(request, call)
            except AttemptFailed as failure:
                kind = failure.kind.category
                log.debug("%s: attempt %d: %s", request.endpoint, call.attempts, kind)
                raise

        try:
            return persist(
                attempt,
                seconds_left=call.seconds_left,
                sleep=call.sleep,
                hold=self.rate_limiter.hold,
                credit=self.credit,
            )
        except AttemptFailed as failure:
            return failure.public(request.endpoint, call.attempts, self._mask)
        except KeyboardInterrupt:
            # The original one leads into frames of the HTTP library, which hold the key.
            return KeyboardInterrupt()


class Call:
    """One call of fetch: its deadline, and what may end it earlier."""

    def __init__(
        self,
        seconds: float,
        clock: Clock,
        closed: threading.Event,
        stop: threading.Event | None = None,
    ) -> None:
        self.attempts = 0
        self._seconds = seconds
        self._clock = clock
        self._end = clock.now() + seconds
        self._closed = closed
        self._stop = stop

    def seconds_left(self) -> float:
        """Return the seconds until the deadline; raise Failure when the call is over."""
        if self._closed.is_set():
            raise AttemptFailed(ConnectionFailed, "closed before an answer came", attempts=1)
        if self._stop is not None and self._stop.is_set():
            raise AttemptFailed(ConnectionFailed, "stopped before an answer came", attempts=1)
        seconds = self._end - self._clock.now()
        if seconds <= 0:
            raise AttemptFailed(
                RequestTimeout,
                f"no complete answer within {self._seconds:g} s",
                attempts=1,
            )
        return seconds

    def sleep(self, seconds: float) -> None:
        """Let *seconds* pass, noticing soon when the call is over."""
        end = self._clock.now() + seconds
        while (left := end - self._clock.now()) > 0:
            self.seconds_left()
            self._clock.sleep(min(left, TICK))
