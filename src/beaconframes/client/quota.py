"""The quota of a key, as reported by earlier responses."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from beaconframes.http.rate_limiter import next_month
from beaconframes.summary import render_html, render_text

if TYPE_CHECKING:
    from beaconframes.http.rate_limiter import RateLimiter

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Quota:
    """The permitted and the remaining requests; prints as a table in a terminal or a notebook.

    ``second``, ``minute``, ``hour`` and ``month`` are the permitted requests in each, None if the
    service has no such limit or has not reported it. ``used`` are the requests of this month, and
    ``left`` the remaining ones, None if unknown. ``resets_at`` is the start of the next month, when
    the count is reset. ``source`` is the origin of the figures.
    """

    host: str
    second: float | None = None
    minute: int | None = None
    hour: int | None = None
    month: int | None = None
    used: int = 0
    left: int | None = None
    resets_at: datetime | None = None
    source: str = "no response of the service so far"

    def lines(self) -> list[tuple[str, str]]:
        """Return the figures, each with its label."""
        plural = "" if self.second == 1 else "s"
        rate = UNKNOWN if self.second is None else f"{self.second:g} request{plural}"
        lines = [("per second", rate)]
        for name, limit in (("per minute", self.minute), ("per hour", self.hour)):
            if limit is not None:
                lines.append((name, f"{limit:,} requests"))
        lines.append(("per month", UNKNOWN if self.month is None else f"{self.month:,} requests"))
        lines.append(("used", f"{self.used:,} this month"))
        if self.left is not None:
            lines.append(("left", f"{self.left:,} this month"))
        if self.resets_at is not None:
            lines.append(("resets at", f"{self.resets_at:%Y-%m-%d %H:%M} UTC"))
        return [*lines, ("source", self.source)]

    def __str__(self) -> str:
        return render_text(self.host, self.lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render_html(self.host, self.lines())


def read_quota(rate_limiter: RateLimiter, *, has_key: bool = True) -> Quota:
    """Return the quota of the key that *rate_limiter* belongs to."""
    limits, now = rate_limiter.reported_limits, datetime.now(UTC)
    this_month = limits.month == f"{now:%Y-%m}"
    left = limits.remaining if this_month else limits.per_month
    used = limits.used if this_month else 0
    source = "the requests counted on this machine" if used else Quota.source
    if not has_key:
        source += "; no API key is set, and each key has its own limits"
    if limits.reported_at is not None:
        when = datetime.fromtimestamp(limits.reported_at, UTC)
        source = f"the service, on {when:%Y-%m-%d %H:%M} UTC"
        if limits.per_month is not None and left is not None:
            used = max(limits.per_month - left, 0)
    return Quota(
        rate_limiter.host,
        rate_limiter.rate,
        limits.per_minute,
        limits.per_hour,
        limits.per_month,
        used,
        left,
        next_month(now),
        source,
    )


def count_requests_left(rate_limiter: RateLimiter) -> int | None:
    """Return how many requests are left this month; None if unknown."""
    limits = rate_limiter.reported_limits
    return limits.remaining if limits.month == f"{datetime.now(UTC):%Y-%m}" else None
