"""One HTTP request and what it brings, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


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
    there is no such thing: no failure, but an answer without rows. ``accept`` is the version of
    the answer that is asked for, where the service has several.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    endpoint: str = ""
    envelope: Envelope = Envelope.V1
    absent: str = ""
    accept: str = ""


@dataclass(frozen=True)
class Page:
    """What one request brought, out of its envelope: raw JSON (or a picture), and what is beside.

    ``beside`` are the envelope's other members, raw: such as ``range``, the part of the chain that
    the data is of.
    """

    data: bytes = field(repr=False)
    paging: bytes | None = field(default=None, repr=False)
    envelope_fields: Mapping[str, bytes] = field(default_factory=dict, repr=False)
