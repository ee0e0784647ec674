"""Errors of responses: the error for a status and a body, how often to retry it, and when."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from beaconframes.endpoint.absent_table import ABSENT_TABLE_HEADER, AbsentTable
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
    TableNotInDataset,
    TierTooLow,
    TooManyIdentifiers,
    Unauthorized,
)
from beaconframes.http.retry import (
    MAX_ATTEMPTS,
    MAX_RETRY_AFTER,
    AttemptFailed,
    format_retry_date,
    parse_retry_after,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

STATUS_ERRORS: dict[int, type[ServiceError]] = {
    401: Unauthorized,
    403: TierTooLow,
    404: NotServed,
    405: NotServed,
    410: NotServed,
}

NOT_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
BOM = b"\xef\xbb\xbf"
MARKUP = re.compile(r"<(style|script)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)
CHALLENGE = re.compile(
    rb"just a moment|challenge-platform|cf-chl|captcha|attention required", re.IGNORECASE
)
DATABASE_FAILED = re.compile(r"could not (retrieve|parse|adjust) (db|query) results", re.IGNORECASE)
TOO_MANY_IDENTIFIERS = re.compile(
    r"identifiers? exceeds? (the )?(allowed )?limit|limit of [0-9]{1,3} (validator )?identifiers",
    re.IGNORECASE,
)
NO_SUCH_PATH = re.compile(r"page not found|no such (route|endpoint|path)", re.IGNORECASE)

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT = msgspec.json.Decoder(str | None)


NODE_HINT = "If the address is that of a beacon node, connect with bf.node(url)"


def error_for_status(status: int, headers: Mapping[str, str], body: bytes) -> AttemptFailed:
    """Return the error that a response with a *status* other than 200 means."""
    absent = AbsentTable.parse(headers.get(ABSENT_TABLE_HEADER, ""))
    if absent is not None:
        return AttemptFailed(
            TableNotInDataset,
            absent.message,
            hint=absent.hint,
            max_attempts=1,
            table=absent.table,
        )
    if (challenge := find_challenge(status, headers, body)) is not None:
        return challenge
    if status < 400:
        return _unexpected_status(status, headers)
    if status == 429:
        return _rate_limited(headers, body)
    text = error_text(headers, body)
    if status >= 500 or status == 408:
        wait = parse_retry_after(status, headers)
        return AttemptFailed(
            ServerError,
            f"the service failed with status {status}",
            quoted=text,
            max_attempts=MAX_ATTEMPTS if wait is None or wait <= MAX_RETRY_AFTER else 1,
            retry_after=wait,
            pauses_all=wait is not None,
        )
    if status == 400 and DATABASE_FAILED.search(text):
        return AttemptFailed(
            ServerError, "the service's database failed", quoted=text, max_attempts=2
        )
    is_node = status == 404 and parse_members(body).keys() & {"code", "statusCode"}
    return AttemptFailed(
        _client_error(status, body, text),
        f"the service refused the request with status {status}",
        quoted=text,
        hint=NODE_HINT if is_node else None,
        max_attempts=1,
    )


def find_challenge(status: int, headers: Mapping[str, str], body: bytes) -> AttemptFailed | None:
    """Return the error if a bot check in front of the service responded; None if it did not."""
    if headers.get("cf-mitigated", "").strip().lower() != "challenge":
        if status not in {200, 403, 503}:
            return None
        # A JSON object comes from the service itself, not from a bot check.
        if status == 403 and parse_members(body):
            return None
        if status != 403 and not (is_html(headers, body) and CHALLENGE.search(body)):
            return None
    return AttemptFailed(
        ChallengePage, "a bot check in front of the service responded", max_attempts=1
    )


def parse_members(body: bytes) -> dict[str, bytes]:
    """Return the members of a JSON object, each as raw JSON; none for any other *body*."""
    try:
        members = _MEMBERS.decode(body.removeprefix(BOM))
    except NOT_JSON:
        return {}
    return {name: bytes(raw) for name, raw in members.items()}


def error_message(members: Mapping[str, bytes]) -> str | None:
    """Return the message of an error in a V1 or V2 envelope; None if it is not an error."""
    for name in ("error", "status"):
        if name not in members:
            continue
        try:
            text: str | None = _TEXT.decode(members[name])
        except NOT_JSON:
            continue
        if text is not None and name == "error":
            return text
        if text is not None and text.startswith("ERROR"):
            return text.removeprefix("ERROR").removeprefix(":").strip()
    return None


def is_html(headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether a response is a page for a browser."""
    content_type = headers.get("content-type", "").lower()
    return "html" in content_type or body.removeprefix(BOM).lstrip()[:1] == b"<"


def error_text(headers: Mapping[str, str], body: bytes) -> str:
    """Return the error message in *body*, or its text without markup."""
    message = error_message(parse_members(body))
    if message is not None:
        return message
    text = body[: 2**14].decode(errors="replace")
    return MARKUP.sub(" ", text) if is_html(headers, body) else text


def _client_error(status: int, body: bytes, text: str) -> type[ServiceError]:
    if status == 404:
        # V2 reports a missing object in an envelope; an unknown path has none, or says so.
        members = parse_members(body)
        message = error_message(members) if "error" in members else None
        return NotServed if message is None or NO_SUCH_PATH.search(message) else NotFound
    if status == 403 and TOO_MANY_IDENTIFIERS.search(text):
        return TooManyIdentifiers
    return STATUS_ERRORS.get(status, BadRequest)


def _unexpected_status(status: int, headers: Mapping[str, str]) -> AttemptFailed:
    if status < 300:
        return AttemptFailed(ProtocolError, f"the response has status {status} instead of 200")
    try:
        host = urlsplit(headers.get("location", "")).hostname
    except ValueError:
        host = None
    return AttemptFailed(
        ProtocolError,
        f"the service redirects (status {status}); redirects are not followed",
        quoted=host or "another path",
        hint="If the service has moved, connect to its new address: bf.connect(url=...)",
        max_attempts=1,
    )


def _rate_limited(headers: Mapping[str, str], body: bytes) -> AttemptFailed:
    limits = [
        text.strip()
        for name, text in headers.items()
        if name == "ratelimit-limit" or name.startswith("x-ratelimit-limit-")
    ]
    if limits and all(text and not text.strip("0") for text in limits):
        return AttemptFailed(
            Unauthorized, "the key is not active: its limits are zero", max_attempts=1
        )
    text = error_text(headers, body)
    wait = parse_retry_after(429, headers)
    window = headers.get("ratelimit-window", "").strip().lower()
    is_spent = window in {"hour", "day", "month"}
    is_soon = not is_spent if wait is None else wait <= MAX_RETRY_AFTER
    if is_soon:
        return AttemptFailed(
            RateLimited, "too many requests", quoted=text, retry_after=wait, pauses_all=True
        )
    reason = f"the requests of this {window} are used up" if is_spent else "too many requests"
    if wait is not None:
        reason += f"; retry in {wait:.0f} s, at {format_retry_date(wait, headers)}"
    kind = QuotaSpent if is_spent else RateLimited
    return AttemptFailed(kind, reason, quoted=text, retry_after=wait, max_attempts=1)
