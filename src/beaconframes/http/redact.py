"""Redaction of the API key, or of a node's credentials, in error texts and log lines.

A key is never part of a URL, and the HTTP library does not log the headers it sends. But it logs
the headers it receives, and a service may echo the key there or in an error message.
"""

from __future__ import annotations

import logging
import weakref
from base64 import b64encode, urlsafe_b64encode
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from beaconframes.secret import Secret

REPLACEMENT = "***"
LOGGERS = (
    "beaconframes",
    *(f"beaconframes.{name}" for name in ("http", "fetch", "store", "index", "node", "record")),
    *(
        f"{library}{part}"
        for library in ("httpx", "httpcore", "httpx2", "httpcore2")
        for part in ("", ".connection", ".http11", ".http2", ".proxy", ".socks")
    ),
)
"""Every logger by name, because a filter does not see the records of child loggers."""


class Redactor:
    """Replaces keys in any text, also URL-encoded, in base64 and in hex."""

    def __init__(self, *keys: Secret | None) -> None:
        """Replace the *keys*, in this order; None stands for no key."""
        self._keys = [key for key in keys if key is not None]
        if self._keys:
            _redactors.add(self)
            for name in LOGGERS:
                logging.getLogger(name).addFilter(_redact_record)

    def __call__(self, text: str) -> str:
        """Return *text* without the keys."""
        for key in self._keys:
            for spelling in _spellings(key.reveal()):
                text = text.replace(spelling, REPLACEMENT)
        return text


def _spellings(key: str) -> list[str]:
    raw = key.encode()
    texts = {
        key,
        quote(key, safe=""),
        quote(key),
        key.encode("unicode_escape").decode(),
        b64encode(raw).decode().rstrip("="),
        urlsafe_b64encode(raw).decode().rstrip("="),
        raw.hex(),
        raw.hex().upper(),
        key.lower(),
        key.upper(),
    }
    return sorted((text for text in texts if text), key=len, reverse=True)


_redactors: weakref.WeakSet[Redactor] = weakref.WeakSet()


def _redact_record(record: logging.LogRecord) -> bool:
    text = redacted = record.getMessage()
    for redactor in list(_redactors):
        redacted = redactor(redacted)
    if redacted != text:
        record.msg, record.args = redacted, ()
    return True
