"""Trying again: what is worth it, how often, and how long to wait before.

Nothing here knows HTTP beyond the two headers in which a service says when to come back.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_random_exponential

from beaconframes.http.failure import AttemptFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from beaconframes.http.retry_quota import RetryQuota

LONGEST_WAIT = 120.0
"""Seconds: what a service may ask for and still be waited for inside a call."""

BACKOFF = wait_random_exponential(multiplier=0.5, max=8, min=0.05)
"""Full jitter. The lower bound keeps a wait from being none at all."""

SECONDS = re.compile(r"[0-9]{1,15}(\.[0-9]{1,9})?", re.ASCII)

T = TypeVar("T")


def asked_wait(status: int, headers: Mapping[str, str]) -> float | None:
    """Return the seconds after which the service wants to be asked again.

    None when it says nothing, or nothing sensible: zero, the past, words.
    """
    if status not in {408, 429} and status < 500:
        return None
    # Any answer tells when the window resets; only under 429 does that mean us.
    names = ("retry-after", "ratelimit-reset") if status == 429 else ("retry-after",)
    for name in names:
        text = headers.get(name)
        seconds = _seconds(text, headers.get("date")) if text else None
        if seconds is not None and seconds > 0:
            return seconds
    return None


def moment_after(seconds: float, headers: Mapping[str, str]) -> str:
    """Return the date, by the service's own clock, that lies *seconds* after its answer."""
    try:
        date = datetime.fromtimestamp(_date(headers.get("date")) + seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return "no date within reach"
    return f"{date:%Y-%m-%d %H:%M} UTC"


def _seconds(text: str, date: str | None) -> float | None:
    text = text.strip()
    if SECONDS.fullmatch(text):
        return float(text)
    when = _timestamp(text)
    # The service's clock may be hours off; its two dates are off by the same amount.
    return None if when is None else when - _date(date)


def _date(text: str | None) -> float:
    sent = _timestamp(text) if text else None
    return datetime.now(UTC).timestamp() if sent is None else sent


def _timestamp(text: str) -> float | None:
    if len(text) > 64:
        return None
    try:
        date = parsedate_to_datetime(text)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


def persist(
    attempt: Callable[[], T],
    *,
    seconds_left: Callable[[], float],
    sleep: Callable[[float], None],
    hold: Callable[[float], None],
    credit: RetryQuota,
) -> T:
    """Return what *attempt* gives, trying as often as its failures are worth.

    The last Failure is raised when that was not often enough, or at once when the wait before
    the next attempt does not fit into *seconds_left* or *credit* does not pay for it.
    """
    paid = 0

    def pause(state: RetryCallState) -> float:
        failure = _failure(state)
        seconds = BACKOFF(state) if failure.wait is None else failure.wait
        if failure.everyone and failure.wait is None:
            hold(seconds)
        return seconds

    def enough(state: RetryCallState) -> bool:
        nonlocal paid
        failure = _failure(state)
        if state.attempt_number >= failure.attempts or state.upcoming_sleep >= seconds_left():
            return True
        paid = credit.take(failure.kind)
        return not paid

    result = Retrying(
        retry=retry_if_exception_type(AttemptFailed),
        wait=pause,
        stop=enough,
        sleep=sleep,
        reraise=True,
    )(attempt)
    credit.earn(paid)
    return result


def _failure(state: RetryCallState) -> AttemptFailed:
    failure = state.outcome.exception() if state.outcome else None
    assert isinstance(failure, AttemptFailed)
    return failure
