"""Cursors: opaque texts that are valid only for the request that returned them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import struct
from typing import TYPE_CHECKING, Any

import msgspec

from beaconframes.endpoint import RequestRefused

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGE_FIELDS = ("cursor", "page_size")
"""Fields that may differ between the pages of one list."""


class CursorCodec:
    """Encodes and decodes cursors; those of another server are refused."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(16)

    def encode(self, position: int, request_hash: bytes) -> str:
        """Return a cursor to the record at *position* of the answer to a request."""
        raw = struct.pack(">Q", position)
        return base64.urlsafe_b64encode(raw + self._sign(raw, request_hash)).decode().rstrip("=")

    def decode(self, cursor: str, request_hash: bytes) -> int:
        """Return the position of *cursor*, 0 if empty; raise RequestRefused if it is not valid."""
        if not cursor:
            return 0
        try:
            raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        except ValueError:
            raise RequestRefused("cursor is not valid") from None
        if not hmac.compare_digest(raw[8:], self._sign(raw[:8], request_hash)):
            raise RequestRefused("cursor belongs to another request")
        return int(struct.unpack(">Q", raw[:8])[0])

    def _sign(self, raw: bytes, request_hash: bytes) -> bytes:
        return hmac.digest(self._secret, raw + request_hash, "sha256")[:12]


def hash_request(path: str, fields: Mapping[str, Any]) -> bytes:
    """Return a hash of a request that is the same for all its pages."""
    shared = {name: value for name, value in fields.items() if name not in PAGE_FIELDS}
    content = msgspec.json.encode([path, shared], order="deterministic")
    return hashlib.sha256(content).digest()
