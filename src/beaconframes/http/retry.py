"""Retries: which failures are retried, how often and when, and the quota for outages."""

from __future__ import annotations

import re
import threading
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeVar

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
    ServerError,
    TableNotInDataset,
    TierTooLow,
    TooManyIdentifiers,
    Unauthorized,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tenacity import RetryCallState

QUOTA = 500
RETRY_COST = 5
TIMEOUT_RETRY_COST = 10
"""A retry after a timeout costs more, because the service may still work on the request."""
MAX_RETRY_AFTER = 120.0
"""Seconds: a call fails immediately if the service requests a longer wait than this."""
MAX_DATE_LENGTH = 64
SECONDS = re.compile(r"[0-9]{1,15}(\.[0-9]{1,9})?", re.ASCII)
MAX_ATTEMPTS = 4
MAX_QUOTED = 200
"""Characters of the service's own text in an error."""

HINTS: dict[type[BeaconframesError], str] = {
    ConnectionFailed: "Check the address and the network, or try again later",
    RequestTimeout: "Try again later, or request less in one call",
    RateLimited: "Lower the request rate: bf.connect(rate=...), in requests per second",
    QuotaSpent: "Wait for the next period, or use another key or a larger plan",
    Unauthorized: "Set the key with bf.connect(api_key=...) or in BEACONFRAMES_API_KEY",
    TierTooLow: "The plan of this key does not include this request: use a larger plan",
    TooManyIdentifiers: "Request fewer validators, or use a key of a larger plan",
    BadRequest: "Check the arguments of the call",
    NotFound: "Check the arguments of the call",
    NotServed: "Check the address: the service may not have this endpoint any more, or not yet",
    ServerError: "The problem is on the service's side: try again later",
    ChallengePage: "Use a key, wait a while, or try from another network",
    ProtocolError: "Check that the address is that of a chain explorer, or try again later",
}

T = TypeVar("T")


@dataclass(eq=False)
class AttemptFailed(Exception):
    """One failed attempt: the error for the user, and whether and when to retry.

    It never leaves this package. The public error is created from it, so that no traceback leads
    into frames that hold headers or bodies.

    ``kind`` is that of the public error, ``max_attempts`` how many attempts it permits in all.
    ``quoted`` is text of the service, of any length and content. ``retry_after`` is the wait that
    the service requested, in seconds. With ``pauses_all`` no thread sends during the wait.
    ``table`` is the attribute of `TableNotInDataset`.
    """

    kind: type[BeaconframesError]
    message: str
    _: KW_ONLY
    quoted: str = ""
    hint: str | None = None
    max_attempts: int = MAX_ATTEMPTS
    retry_after: float | None = None
    pauses_all: bool = False
    table: str | None = None

    def public_error(
        self, endpoint: str, attempts: int, redact: Callable[[str], str]
    ) -> BeaconframesError:
        """Return the error for the user, without the key."""
        # Redacted before it is shortened: half a key is a leak too.
        quoted = _shorten(redact(self.quoted)).removesuffix(".")
        error = self.kind(
            redact(f"{self.message}: {quoted}" if quoted else self.message),
            hint=self.hint or HINTS.get(self.kind),
            endpoint=endpoint or None,
            retry_after=self.retry_after,
            attempts=attempts,
        )
        if isinstance(error, TableNotInDataset) and self.table is not None:
            error.table = self.table
        return error


class RetryQuota:
    """The retries that all calls of one client share, as in botocore; thread-safe.

    A retry is useful while failures are rare. In an outage, retries add load to the service and
    use up the monthly limit. So each retry has a cost, and each success returns some of it: a
    single call has its four attempts, and a thousand calls in an outage share a hundred retries.
    """

    def __init__(self, capacity: int = QUOTA) -> None:
        self._capacity = self._available = capacity
        self._lock = threading.Lock()

    @property
    def available(self) -> int:
        """Return the quota that is available."""
        return self._available

    def acquire(self, error: type[BeaconframesError]) -> int:
        """Take the cost of a retry after this kind of *error* and return it; 0 if too little."""
        cost = TIMEOUT_RETRY_COST if issubclass(error, RequestTimeout) else RETRY_COST
        with self._lock:
            if cost > self._available:
                return 0
            self._available -= cost
            return cost

    def release(self, cost: int) -> None:
        """Count a success: return the *cost* of the retry that succeeded, or 1 without a retry."""
        with self._lock:
            self._available = min(self._capacity, self._available + (cost or 1))


def back_off(state: RetryCallState) -> float:
    """Return the seconds to wait: exponential backoff with full jitter; never zero."""
    from tenacity import wait_random_exponential

    return wait_random_exponential(multiplier=0.5, max=8, min=0.05)(state)


def retry_call(
    attempt: Callable[[], T],
    *,
    seconds_left: Callable[[], float],
    sleep: Callable[[float], None],
    pause: Callable[[float], None],
    quota: RetryQuota,
) -> T:
    """Return the result of *attempt*, retried as often as its failures permit.

    Raises the last AttemptFailed when no attempt is left, when the next wait does not fit into
    *seconds_left*, or when *quota* is used up. *pause* stops all requests during a backoff that
    every thread has to observe.
    """
    # tenacity imports tornado where it is installed. A load that sends no request needs neither.
    from tenacity import Retrying, retry_if_exception_type

    cost = 0

    def wait(state: RetryCallState) -> float:
        failure = _failure(state)
        seconds = back_off(state) if failure.retry_after is None else failure.retry_after
        if failure.pauses_all and failure.retry_after is None:
            pause(seconds)
        return seconds

    def stop(state: RetryCallState) -> bool:
        nonlocal cost
        failure = _failure(state)
        if state.attempt_number >= failure.max_attempts or state.upcoming_sleep >= seconds_left():
            return True
        cost = quota.acquire(failure.kind)
        return not cost

    result = Retrying(
        retry=retry_if_exception_type(AttemptFailed),
        wait=wait,
        stop=stop,
        sleep=sleep,
        reraise=True,
    )(attempt)
    quota.release(cost)
    return result


def parse_retry_after(status: int, headers: Mapping[str, str]) -> float | None:
    """Return the seconds after which the service permits a retry.

    None without a header, or if its value is invalid: zero, a time in the past, other text.
    """
    if status not in {408, 429} and status < 500:
        return None
    # Every response states when its window resets; only with status 429 must the client wait.
    names = ("retry-after", "ratelimit-reset") if status == 429 else ("retry-after",)
    for name in names:
        text = headers.get(name)
        seconds = _parse_wait(text, headers.get("date")) if text else None
        if seconds is not None and seconds > 0:
            return seconds
    return None


def format_retry_date(seconds: float, headers: Mapping[str, str]) -> str:
    """Return the date *seconds* after the response, by the clock of the service."""
    try:
        date = datetime.fromtimestamp(_response_time(headers.get("date")) + seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return "a date out of range"
    return f"{date:%Y-%m-%d %H:%M} UTC"


def _failure(state: RetryCallState) -> AttemptFailed:
    failure = state.outcome.exception() if state.outcome else None
    assert isinstance(failure, AttemptFailed)
    return failure


def _parse_wait(text: str, date: str | None) -> float | None:
    text = text.strip()
    if SECONDS.fullmatch(text):
        return float(text)
    when = parse_date(text)
    # The service's clock may be wrong by hours, but equally in both of its dates.
    return None if when is None else when.timestamp() - _response_time(date)


def _response_time(date: str | None) -> float:
    return (parse_date(date or "") or datetime.now(UTC)).timestamp()


def parse_date(text: str) -> datetime | None:
    """Return the date in an HTTP header, without a zone in UTC; None for other text."""
    if len(text) > MAX_DATE_LENGTH:
        return None
    try:
        date = parsedate_to_datetime(text)
        return date.astimezone(UTC) if date.tzinfo else date.replace(tzinfo=UTC)
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


def _shorten(text: str) -> str:
    """Return *text* on one line, without control characters, shortened to MAX_QUOTED."""
    shown = " ".join("".join(c if c.isprintable() else " " for c in text[: 2**16]).split())
    return shown if len(shown) <= MAX_QUOTED else f"{shown[: MAX_QUOTED - 1]}…"
