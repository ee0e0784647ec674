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

POSITION_AND_SLOT = ">QQ"


class CursorCodec:
    """Encodes and decodes cursors; those of another server are refused."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(16)

    def encode(self, position: int, slot: int, request_hash: bytes) -> str:
        """Return a cursor to the record at *position* of the answer with the head at *slot*."""
        raw = struct.pack(POSITION_AND_SLOT, position, slot)
        return base64.urlsafe_b64encode(raw + self._sign(raw, request_hash)).decode().rstrip("=")

    def decode(self, cursor: str, request_hash: bytes) -> tuple[int, int]:
        """Return position and slot of *cursor*; raise RequestRefused if it is not valid."""
        try:
            raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        except ValueError:
            raise RequestRefused("cursor is not valid") from None
        size = struct.calcsize(POSITION_AND_SLOT)
        if not hmac.compare_digest(raw[size:], self._sign(raw[:size], request_hash)):
            raise RequestRefused("cursor belongs to another request")
        position, slot = struct.unpack(POSITION_AND_SLOT, raw[:size])
        return int(position), int(slot)

    def _sign(self, raw: bytes, request_hash: bytes) -> bytes:
        return hmac.digest(self._secret, raw + request_hash, "sha256")[:12]


def hash_request(path: str, fields: Mapping[str, Any]) -> bytes:
    """Return a hash of a request that is the same for all its pages."""
    shared = {name: value for name, value in fields.items() if name not in PAGE_FIELDS}
    content = msgspec.json.encode([path, shared], order="deterministic")
    return hashlib.sha256(content).digest()
