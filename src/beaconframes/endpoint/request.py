"""One HTTP request, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Envelope(StrEnum):
    """What the service wraps its data in."""

    V1 = "v1"
    """``{"status": "OK", "data": ...}``"""
    BARE = "bare"
    """No envelope at all, or the usual one."""
    CODE = "code"
    """``{"code": 200, "data": ...}``"""
    PNG = "png"
    """None: the body is a picture."""
    V2 = "v2"
    """``{"data": ..., "paging": ...}``"""


@dataclass(frozen=True)
class Request:
    """What to ask, without where and without the key.

    ``path`` begins with ``/api/``; ``endpoint`` is the route with its placeholders, which is
    what errors name. ``absent`` are the words of the error by which this endpoint says that
    there is no such thing: no failure, but an answer without rows.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    endpoint: str = ""
    envelope: Envelope = Envelope.V1
    absent: str = ""
