"""The quota: what a key may ask for, and what is left of it, told without asking."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from beaconframes.client.summary import as_html, as_text
from beaconframes.http.rate_limiter import next_month

if TYPE_CHECKING:
    from beaconframes.http.rate_limiter import RateLimiter

UNKNOWN = "not known"


@dataclass(frozen=True)
class Quota:
    """What is permitted, and what is left; it prints well in a terminal and in a notebook.

    ``second``, ``minute``, ``hour`` and ``month`` are the requests that are permitted in each, None
    where the service has no such limit or did not tell. ``used`` of the month are counted, and
    ``left`` is None where nobody knows. ``renewed`` is when the month's count starts anew.
    ``source`` says where the figures come from.
    """

    host: str
    second: float | None = None
    minute: int | None = None
    hour: int | None = None
    month: int | None = None
    used: int = 0
    left: int | None = None
    renewed: datetime | None = None
    source: str = "nobody: the service has not been asked yet"

    def lines(self) -> list[tuple[str, str]]:
        """Return what there is to say, by what it is about."""
        plural = "" if self.second == 1 else "s"
        rate = UNKNOWN if self.second is None else f"{self.second:g} request{plural}"
        told = [("a second", rate)]
        for name, limit in (("a minute", self.minute), ("an hour", self.hour)):
            if limit is not None:
                told.append((name, f"{limit:,} requests"))
        told.append(("a month", UNKNOWN if self.month is None else f"{self.month:,} requests"))
        told.append(("used", f"{self.used:,} this month"))
        if self.left is not None:
            told.append(("left", f"{self.left:,} this month"))
        if self.renewed is not None:
            told.append(("starts anew", f"{self.renewed:%Y-%m-%d %H:%M} UTC"))
        return [*told, ("told by", self.source)]

    def __str__(self) -> str:
        """Return the quota, a line for each thing that there is to say."""
        return as_text(self.host, self.lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the quota as a table, for a notebook."""
        return as_html(self.host, self.lines())


def quota_of(rate_limiter: RateLimiter) -> Quota:
    """Return the quota of the allowance that *pacer* keeps to."""
    limits, now = rate_limiter.known_limits, datetime.now(UTC)
    this_month = limits.month == f"{now:%Y-%m}"
    left = limits.remaining if this_month else limits.per_month
    used = limits.used if this_month else 0
    source = "the requests counted on this machine" if used else Quota.source
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


def requests_left(rate_limiter: RateLimiter) -> int | None:
    """Return how many requests are left of the month, None if nobody knows."""
    limits = rate_limiter.known_limits
    return limits.remaining if limits.month == f"{datetime.now(UTC):%Y-%m}" else None
