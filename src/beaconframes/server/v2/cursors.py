"""Cursors: opaque, and good only for the request that they were given for."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import struct
from typing import TYPE_CHECKING, Any

import msgspec

from beaconframes.endpoint import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

PLACES = ("cursor", "page_size")
"""What may differ between the pages of one list."""


class Cursors:
    """Makes cursors and reads them again; another server's are refused."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(16)

    def after(self, place: int, question: bytes) -> str:
        """Return the cursor to the record at *place* of the answer to *question*."""
        raw = struct.pack(">Q", place)
        return base64.urlsafe_b64encode(raw + self._sign(raw, question)).decode().rstrip("=")

    def place(self, cursor: str, question: bytes) -> int:
        """Return the place that *cursor* leads to: the beginning for an empty one."""
        if not cursor:
            return 0
        try:
            raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        except ValueError:
            raise Refused("cursor is none of ours") from None
        if not hmac.compare_digest(raw[8:], self._sign(raw[:8], question)):
            raise Refused("cursor belongs to another request")
        return int(struct.unpack(">Q", raw[:8])[0])

    def _sign(self, raw: bytes, question: bytes) -> bytes:
        return hmac.digest(self._secret, raw + question, "sha256")[:12]


def question_of(path: str, body: Mapping[str, Any]) -> bytes:
    """Return what a request asks, whichever page of it: the same for the same question."""
    asked = {name: value for name, value in body.items() if name not in PLACES}
    told = msgspec.json.encode([path, asked], order="deterministic")
    return hashlib.sha256(told).digest()
