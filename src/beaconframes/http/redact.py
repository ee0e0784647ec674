"""Keeping the key out of words: error texts and the log lines of the HTTP library.

The key is never in a URL, and the HTTP library does not log the headers it sends. It does log
the headers it receives, and a service may echo in those, or in an error text, what it was sent.
"""

from __future__ import annotations

import logging
import weakref
from base64 import b64encode, urlsafe_b64encode
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from beaconframes.config import Secret

SHOWN = "***"
LOGGERS = (
    "beaconframes.client",
    *(
        f"{library}{part}"
        for library in ("httpx", "httpcore", "httpx2", "httpcore2")
        for part in ("", ".connection", ".http11", ".http2", ".proxy", ".socks")
    ),
)
"""A filter sees what its own logger is given, not what its children pass up: so all by name."""


class Redactor:
    """Replaces a key in any text, also URL-encoded, in base64 and in hex."""

    def __init__(self, key: Secret | None) -> None:
        self._key = key
        if key is not None:
            _masks.add(self)
            for name in LOGGERS:
                logging.getLogger(name).addFilter(_mask_record)

    def __call__(self, text: str) -> str:
        """Return *text* without the key."""
        if self._key is None:
            return text
        for spelling in _spellings(self._key.reveal()):
            text = text.replace(spelling, SHOWN)
        return text


def _spellings(key: str) -> list[str]:
    raw = key.encode()
    texts = {
        key,
        quote(key, safe=""),
        quote(key),
        key.encode("unicode_escape").decode(),
        *(b64encode(raw).decode().rstrip("="), urlsafe_b64encode(raw).decode().rstrip("=")),
        *(raw.hex(), raw.hex().upper()),
        *(key.lower(), key.upper()),
    }
    return sorted((text for text in texts if text), key=len, reverse=True)


_masks: weakref.WeakSet[Redactor] = weakref.WeakSet()


def _mask_record(record: logging.LogRecord) -> bool:
    text = masked = record.getMessage()
    for mask in list(_masks):
        masked = mask(masked)
    if masked != text:
        record.msg, record.args = masked, ()
    return True
