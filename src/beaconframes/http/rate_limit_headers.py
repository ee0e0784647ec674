"""What the headers of an answer tell of the allowance: how much there is, and how much is left.

None of them has to be there. Where a window has no limit the service repeats that of the next one,
so the limit of a minute is one only when it is less than that of the hour.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

DIGITS = 15
"""A number that is longer is none of requests."""


@dataclass(frozen=True)
class RateLimitHeaders:
    """Permitted requests by window, and what is left of the month; None is not told.

    ``month`` is the month that the answer is of, such as ``"2026-11"``; ``counts`` whether the
    request counts against it.
    """

    second: int | None = None
    minute: int | None = None
    hour: int | None = None
    monthly: int | None = None
    left: int | None = None
    month: str = ""
    counts: bool = True

    @property
    def anything(self) -> bool:
        """Tell whether the service said anything about limits."""
        return (self.second, self.minute, self.hour, self.monthly, self.left) != (None,) * 5


def parse_rate_limit_headers(headers: Mapping[str, str], status: int = 200) -> RateLimitHeaders:
    """Return what *headers* tell."""
    window = headers.get("ratelimit-window", "").strip().lower()
    limit = number(headers.get("ratelimit-limit"))
    hour = number(headers.get("x-ratelimit-limit-hour"))
    monthly = number(headers.get("x-ratelimit-limit-month"))
    minute = number(headers.get("x-ratelimit-limit-minute"))
    left = number(headers.get("x-ratelimit-remaining-month"), least=0)
    if window == "month":
        monthly, left = limit, number(headers.get("ratelimit-remaining"), least=0)
    if window == "hour":
        hour = limit
    return RateLimitHeaders(
        second=limit if window == "second" else None,
        minute=minute if hour is None or (minute or hour) < hour else None,
        hour=hour if monthly is None or (hour or monthly) < monthly else None,
        monthly=monthly,
        # Without a limit there is nothing of which it could be left.
        left=left if monthly is not None else None,
        month=month_of(headers.get("date")),
        counts=status < 500 and status != 429,
    )


def month_of(date: str | None) -> str:
    """Return the month of an answer by the service's own clock, or else by that of this machine."""
    when = datetime.now(UTC)
    if date is not None and len(date) <= 64:
        with suppress(ValueError, OverflowError, TypeError, IndexError):
            when = parsedate_to_datetime(date).astimezone(UTC)
    return f"{when:%Y-%m}"


def number(text: str | None, least: int = 1) -> int | None:
    """Return the whole number that *text* is; None for anything else, and for less than *least*."""
    text = "" if text is None else text.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS):
        return None
    return int(text) if int(text) >= least else None
