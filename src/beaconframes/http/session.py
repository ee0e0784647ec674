"""The session: requests to one service with one key, rate-limited, retried and bounded in time."""

from __future__ import annotations

import logging
import math
import os
import threading
import weakref
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from beaconframes.addresses import check_url
from beaconframes.endpoint.chain_metadata import STATED_HEADERS
from beaconframes.errors import BeaconframesError, ConnectionFailed, RequestTimeout, UsageError
from beaconframes.http.rate_limiter import TICK, Clock, RateLimiter
from beaconframes.http.redact import Redactor
from beaconframes.http.response import HttpResponse, ResponsePage, parse_page
from beaconframes.http.retry import (
    MAX_RETRY_AFTER,
    AttemptFailed,
    RetryQuota,
    parse_retry_after,
    retry_call,
)
from beaconframes.http.transport import MAX_BODY, Timeouts, Transport
from beaconframes.load_context import LOAD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx

    from beaconframes.endpoint import Request
    from beaconframes.http.credentials import Credentials
    from beaconframes.secret import Secret

log = logging.getLogger("beaconframes.http")


class Session:
    """Sends requests to one service, from any number of threads, within its limits.

    The key goes into one header of each request and nowhere else. Without a *rate* the permitted
    rate is learned from the service. Sessions of one key share a *rate_limiter*, and sessions of
    one client share a *retry_quota*. A beacon node has *credentials* instead of a key, and its own
    *parse*, which returns the page in a response or raises AttemptFailed.
    """

    def __init__(
        self,
        base_url: str,
        key: Secret | None = None,
        *,
        credentials: Credentials | None = None,
        parse: Callable[[HttpResponse, Request], ResponsePage] = parse_page,
        rate: float | None = None,
        rate_limiter: RateLimiter | None = None,
        retry_quota: RetryQuota | None = None,
        timeouts: Timeouts | None = None,
        max_body: int = MAX_BODY,
        clock: Clock | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Check *base_url*, which must not expose the key; connections are opened on first use."""
        self.base_url = check_url(base_url, has_key=key is not None)
        if key is not None:
            # Raises if the key was left behind in another process.
            key.reveal()
        self.rate_limiter = rate_limiter or RateLimiter(rate, clock=clock)
        self.retry_quota = retry_quota or RetryQuota()
        self.request_count = 0
        """Requests sent so far, retries included."""
        self.stated_headers: dict[str, str] = {}
        """What a local explorer states about itself, in any response, also of an error."""
        self._timeouts = timeouts or Timeouts()
        self.redact = Redactor(key, *(credentials.secrets if credentials else ()))
        self._parse = parse
        self._open_transport = partial(
            Transport,
            self.base_url,
            key,
            credentials=credentials,
            max_body=max_body,
            transport=transport,
        )
        self._transport: Transport | None = None
        self._close_transport: Callable[[], object] | None = None
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._process = os.getpid()

    def __repr__(self) -> str:
        return f"Session({getattr(self, 'base_url', None)!r})"

    def fetch(
        self,
        request: Request,
        *,
        stop: threading.Event | None = None,
        timeouts: Timeouts | None = None,
    ) -> ResponsePage:
        """Return the page that *request* selects, with retries.

        Setting *stop* from another thread ends the call within a fraction of a second.
        """
        outcome = self._fetch(request, stop, timeouts or self._timeouts)
        # Raised here, so that no frame of the traceback holds a header or a body.
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def stream_lines(
        self, request: Request, *, stop: threading.Event | None = None
    ) -> Iterator[str]:
        """Yield the lines of a response that does not end, without retries."""
        deadline = Deadline(math.inf, self.rate_limiter.clock, self._closed, stop)
        try:
            transport = self._count_request()
            yield from transport.stream_lines(request, self._timeouts, deadline.seconds_left)
        except AttemptFailed as failure:
            outcome = failure.public_error(request.endpoint, 1, self.redact)
        else:
            return
        # Raised here, so that no frame of the traceback holds a header.
        raise outcome

    def send(self, request: Request, deadline: Deadline, timeouts: Timeouts) -> ResponsePage:
        """Return the page that *request* selects, in one attempt, as the rate limit permits."""

        def on_headers(status: int, headers: dict[str, str]) -> None:
            self.rate_limiter.update(headers, status)
            for name in STATED_HEADERS:
                if name in headers:
                    self.stated_headers[name] = self.redact(headers[name])
            wait = parse_retry_after(status, headers)
            if wait is not None and wait <= MAX_RETRY_AFTER:
                self.rate_limiter.pause(wait)
            permit.start_window()

        def parse(response: HttpResponse) -> ResponsePage:
            try:
                return self._parse(response, request)
            except AttemptFailed:
                # Parsed again after redaction, so that the error cannot quote a part of the key.
                response = response.redacted(self.redact)
            return self._parse(response, request)

        seconds_left = deadline.seconds_left
        with self.rate_limiter.acquire(seconds_left) as permit:
            seconds_left()
            given = LOAD.get().timeouts
            if given is not None and given.per_request is not None:
                seconds_left = deadline.start_attempt(given.per_request)
                connect = min(timeouts.connect, given.per_request)
                timeouts = replace(timeouts, read=given.per_request, connect=connect)
            return self._count_request().send(
                request, parse, timeouts, seconds_left=seconds_left, on_headers=on_headers
            )

    def close(self) -> None:
        """Close all connections and end the calls that wait; a later call opens new ones."""
        with self._lock:
            close, self._close_transport, self._transport = self._close_transport, None, None
            closed, self._closed = self._closed, threading.Event()
        closed.set()
        if close is not None:
            close()

    def _count_request(self) -> Transport:
        """Count one more request and return the transport for it."""
        with self._lock:
            self.request_count += 1
            if self._transport is None:
                self._transport = self._open_transport()
                # Closes the connections of a session that is never closed.
                self._close_transport = weakref.finalize(self, self._transport.close)
            return self._transport

    def _fetch(
        self, request: Request, stop: threading.Event | None, timeouts: Timeouts
    ) -> ResponsePage | BeaconframesError | KeyboardInterrupt:
        """Return the page, or the exception to raise."""
        if self._process != os.getpid():
            return UsageError(
                "this session was opened in another process",
                hint="Create a new one after the fork: two processes cannot share a connection",
            )
        if (spent := self.rate_limiter.spent_quota_error()) is not None:
            return spent.public_error(request.endpoint, 0, self.redact)
        deadline = Deadline(timeouts.total, self.rate_limiter.clock, self._closed, stop)
        attempts = 0

        def attempt() -> ResponsePage:
            nonlocal attempts
            attempts += 1
            try:
                return self.send(request, deadline, timeouts)
            except AttemptFailed as failure:
                log.debug("%s: attempt %d: %s", request.endpoint, attempts, failure.kind.category)
                raise

        try:
            return retry_call(
                attempt,
                seconds_left=deadline.seconds_left,
                sleep=deadline.sleep,
                pause=self.rate_limiter.pause,
                quota=self.retry_quota,
            )
        except AttemptFailed as failure:
            return failure.public_error(request.endpoint, attempts, self.redact)
        except KeyboardInterrupt:
            # The original traceback leads into frames that hold the key.
            return KeyboardInterrupt()


class Deadline:
    """The deadline of one call; it also ends when the call is stopped or the session closed."""

    def __init__(
        self,
        seconds: float,
        clock: Clock,
        closed: threading.Event,
        stop: threading.Event | None = None,
    ) -> None:
        self._given = LOAD.get().timeouts
        """The timeouts that the user has set for the call."""
        if self._given is not None and self._given.per_request is not None:
            seconds = max(seconds, self._given.per_request)
        self._seconds = seconds
        self._clock = clock
        self._end = clock.now() + seconds
        self._closed = closed
        self._stop = stop or LOAD.get().stop

    def start_attempt(self, seconds: float) -> Callable[[], float]:
        """Return `seconds_left` for one attempt, which may take *seconds*."""
        end = self._clock.now() + seconds

        def seconds_left() -> float:
            left = min(self.seconds_left(), end - self._clock.now())
            if left <= 0:
                raise AttemptFailed(RequestTimeout, f"no complete response within {seconds:g} s")
            return left

        return seconds_left

    def seconds_left(self) -> float:
        """Return the seconds until the deadline; raise AttemptFailed when the call is over."""
        if self._closed.is_set():
            raise AttemptFailed(
                ConnectionFailed, "the session was closed before the response", max_attempts=1
            )
        if self._stop is not None and self._stop.is_set():
            raise AttemptFailed(
                ConnectionFailed, "the call was stopped before the response", max_attempts=1
            )
        seconds = self._end - self._clock.now()
        if self._given is not None and self._given.per_call is not None:
            left = self._given.ends_at - self._clock.now()
            if left <= 0:
                raise AttemptFailed(
                    RequestTimeout,
                    f"the call did not end within {self._given.per_call:g} s",
                    hint="Request less in one call, or raise the second number of timeout=",
                    max_attempts=1,
                )
            seconds = min(seconds, left)
        if seconds <= 0:
            raise AttemptFailed(
                RequestTimeout, f"no complete response within {self._seconds:g} s", max_attempts=1
            )
        return seconds

    def sleep(self, seconds: float) -> None:
        """Sleep for *seconds*; raise AttemptFailed when the call is over."""
        end = self._clock.now() + seconds
        while (left := end - self._clock.now()) > 0:
            self.seconds_left()
            self._clock.sleep(min(left, TICK))
