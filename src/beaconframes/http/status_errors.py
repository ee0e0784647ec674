"""What it means when no data came: whose fault it is, whether to ask again, and when."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from beaconframes.errors import (
    BadRequest,
    ChallengePage,
    NotFound,
    NotServed,
    ProtocolError,
    QuotaSpent,
    RateLimited,
    ServerError,
    ServiceError,
    TierTooLow,
    TooManyIdentifiers,
    Unauthorized,
)
from beaconframes.http.envelope import error_in, is_page, members_if_any, words
from beaconframes.http.failure import ATTEMPTS, AttemptFailed
from beaconframes.http.retry import LONGEST_WAIT, asked_wait, moment_after

if TYPE_CHECKING:
    from beaconframes.http.body import Reply

CHALLENGE = re.compile(
    rb"just a moment|challenge-platform|cf-chl|captcha|attention required", re.IGNORECASE
)
DATABASE = re.compile(r"could not (retrieve|parse|adjust) (db|query) results", re.IGNORECASE)
TOO_MANY_NAMED = re.compile(r"identifiers? exceeds? (the )?(allowed )?limit", re.IGNORECASE)
NO_SUCH_PATH = re.compile(r"page not found|no such (route|endpoint|path)", re.IGNORECASE)


def refusal(reply: Reply) -> AttemptFailed:
    """Return what a *reply* with another status than 200 means."""
    status = reply.status
    if (challenge := challenged(reply)) is not None:
        return challenge
    if status < 400:
        return _strange(reply)
    if status == 429:
        return _too_many(reply)
    said = words(reply)
    if status >= 500 or status == 408:
        wait = asked_wait(status, reply.headers)
        return AttemptFailed(
            ServerError,
            f"the service failed with {status}",
            said=said,
            attempts=ATTEMPTS if wait is None or wait <= LONGEST_WAIT else 1,
            wait=wait,
            everyone=wait is not None,
        )
    if status == 400 and DATABASE.search(said):
        return AttemptFailed(ServerError, "the service's database failed", said=said, attempts=2)
    return AttemptFailed(
        _meaning(reply), f"the service refused with {status}", said=said, attempts=1
    )


def challenged(reply: Reply) -> AttemptFailed | None:
    """Return the Failure if not the service answered but a bot check in front of it."""
    if reply.headers.get("cf-mitigated", "").strip().lower() != "challenge":
        if reply.status not in {200, 403, 503}:
            return None
        # When the service itself forbids something, it says so in JSON.
        if reply.status == 403 and members_if_any(reply.body):
            return None
        if reply.status != 403 and not (is_page(reply) and CHALLENGE.search(reply.body)):
            return None
    return AttemptFailed(
        ChallengePage,
        "a bot check in front of the service answered",
        attempts=1,
    )


def _meaning(reply: Reply) -> type[ServiceError]:
    """Return what a 4xx *reply* says about the request."""
    if reply.status == 404 and _absent(reply):
        return NotFound
    if reply.status == 403 and TOO_MANY_NAMED.search(words(reply)):
        return TooManyIdentifiers
    meanings: dict[int, type[ServiceError]] = {
        401: Unauthorized,
        403: TierTooLow,
        404: NotServed,
        405: NotServed,
        410: NotServed,
    }
    return meanings.get(reply.status, BadRequest)


def _absent(reply: Reply) -> bool:
    """Tell a thing that does not exist, as V2 puts it, from a path that does not."""
    found = members_if_any(reply.body)
    error = error_in(found) if "error" in found else None
    return error is not None and not NO_SUCH_PATH.search(error)


def _strange(reply: Reply) -> AttemptFailed:
    """Return the Failure of a status that is neither an answer nor a refusal."""
    if reply.status < 300:
        return AttemptFailed(ProtocolError, f"status {reply.status} instead of data")
    try:
        host = urlsplit(reply.headers.get("location", "")).hostname
    except ValueError:
        host = None
    return AttemptFailed(
        ProtocolError,
        f"the service redirects ({reply.status}), which is not followed",
        said=host or "another path",
        hint="If the service has moved, connect to its new address: bf.connect(url=...)",
        attempts=1,
    )


def _too_many(reply: Reply) -> AttemptFailed:
    headers = reply.headers
    limits = [
        text.strip()
        for name, text in headers.items()
        if name == "ratelimit-limit" or name.startswith("x-ratelimit-limit-")
    ]
    if limits and all(text and not text.strip("0") for text in limits):
        return AttemptFailed(
            Unauthorized, "the key is not active: it is allowed nothing", attempts=1
        )
    wait = asked_wait(429, headers)
    window = headers.get("ratelimit-window", "").strip().lower()
    when = "" if wait is None else f"; come back in {wait:.0f} s, at {moment_after(wait, headers)}"
    if window in {"hour", "day", "month"} and (wait is None or wait > LONGEST_WAIT):
        return AttemptFailed(
            QuotaSpent,
            f"the requests of this {window} are used up{when}",
            said=words(reply),
            wait=wait,
            attempts=1,
        )
    if wait is not None and wait > LONGEST_WAIT:
        return AttemptFailed(
            RateLimited, f"too many requests{when}", said=words(reply), wait=wait, attempts=1
        )
    return AttemptFailed(
        RateLimited,
        "too many requests",
        said=words(reply),
        wait=wait,
        everyone=True,
    )
