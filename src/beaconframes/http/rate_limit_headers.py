"""The response headers in which the service states its rate limits and when to retry.

Every header is optional. For a window without a limit the service repeats the limit of the next
longer window: so the limit of a minute counts only if it is lower than the limit of the hour.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_RETRY_AFTER = 120.0
"""Seconds: the longest wait that the service may request and that a call still waits for."""
MAX_DIGITS = 15
"""A longer number is not a count of requests."""
MAX_DATE_LENGTH = 64
SECONDS = re.compile(r"[0-9]{1,15}(\.[0-9]{1,9})?", re.ASCII)


@dataclass(frozen=True)
class RateLimitHeaders:
    """The permitted requests per window and those that remain this month; None if not stated.

    ``month`` is the month of the response, such as ``"2026-11"``. ``is_counted`` says whether the
    service counts the request against its monthly limit.
    """

    per_second: int | None = None
    per_minute: int | None = None
    per_hour: int | None = None
    per_month: int | None = None
    remaining: int | None = None
    month: str = ""
    is_counted: bool = True

    @property
    def has_limits(self) -> bool:
        """Return whether the service stated any limit."""
        limits = (self.per_second, self.per_minute, self.per_hour, self.per_month, self.remaining)
        return any(limit is not None for limit in limits)


def parse_rate_limit_headers(headers: Mapping[str, str], status: int = 200) -> RateLimitHeaders:
    """Return the rate limits in *headers*, the headers of a response with this *status*."""
    window = headers.get("ratelimit-window", "").strip().lower()
    limit = parse_count(headers.get("ratelimit-limit"))
    minute = parse_count(headers.get("x-ratelimit-limit-minute"))
    hour = parse_count(headers.get("x-ratelimit-limit-hour"))
    month = parse_count(headers.get("x-ratelimit-limit-month"))
    remaining = parse_count(headers.get("x-ratelimit-remaining-month"), minimum=0)
    if window == "month":
        month, remaining = limit, parse_count(headers.get("ratelimit-remaining"), minimum=0)
    if window == "hour":
        hour = limit
    return RateLimitHeaders(
        per_second=limit if window == "second" else None,
        per_minute=minute if hour is None or (minute or hour) < hour else None,
        per_hour=hour if month is None or (hour or month) < month else None,
        per_month=month,
        # Without a limit the remaining requests mean nothing.
        remaining=remaining if month is not None else None,
        month=parse_month(headers.get("date")),
        is_counted=status < 500 and status != 429,
    )


def parse_retry_after(status: int, headers: Mapping[str, str]) -> float | None:
    """Return the seconds after which the service permits a retry.

    None if it states none, or a value that makes no sense: zero, the past, words.
    """
    if status not in {408, 429} and status < 500:
        return None
    # Every response states when its window resets; only under 429 is that a request to wait.
    names = ("retry-after", "ratelimit-reset") if status == 429 else ("retry-after",)
    for name in names:
        text = headers.get(name)
        seconds = _parse_wait(text, headers.get("date")) if text else None
        if seconds is not None and seconds > 0:
            return seconds
    return None


def format_retry_date(seconds: float, headers: Mapping[str, str]) -> str:
    """Return the date *seconds* after the response, by the service's own clock."""
    try:
        date = datetime.fromtimestamp(_response_time(headers.get("date")) + seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return "a date out of range"
    return f"{date:%Y-%m-%d %H:%M} UTC"


def parse_month(date: str | None) -> str:
    """Return the month of a Date header, or the current month if the header is missing."""
    when = datetime.now(UTC)
    if date is not None and len(date) <= MAX_DATE_LENGTH:
        with suppress(ValueError, OverflowError, TypeError, IndexError):
            when = parsedate_to_datetime(date).astimezone(UTC)
    return f"{when:%Y-%m}"


def next_month(now: datetime) -> datetime:
    """Return the start of the month after *now*."""
    year, month = divmod(now.year * 12 + now.month, 12)
    return datetime(year, month + 1, 1, tzinfo=UTC)


def parse_count(text: str | None, minimum: int = 1) -> int | None:
    """Return the whole number in *text*; None for other text or a number below *minimum*."""
    text = "" if text is None else text.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        return None
    return int(text) if int(text) >= minimum else None


def _parse_wait(text: str, date: str | None) -> float | None:
    text = text.strip()
    if SECONDS.fullmatch(text):
        return float(text)
    when = _parse_timestamp(text)
    # The service's clock may be hours off; both of its dates are off by the same amount.
    return None if when is None else when - _response_time(date)


def _response_time(date: str | None) -> float:
    sent = _parse_timestamp(date) if date else None
    return datetime.now(UTC).timestamp() if sent is None else sent


def _parse_timestamp(text: str) -> float | None:
    if len(text) > MAX_DATE_LENGTH:
        return None
    try:
        date = parsedate_to_datetime(text)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
