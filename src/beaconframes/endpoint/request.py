"""A request and a page of its response, as plain data."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


EMPTY_LIST = re.compile(rb"\s*\[\s*\]\s*")
"""The data of a page without a record."""


class Envelope(StrEnum):
    """The JSON object around the data of a response."""

    V1 = "v1"
    """``{"status": "OK", "data": ...}``"""
    BARE = "bare"
    """No envelope, or that of V1."""
    CODE = "code"
    """``{"code": 200, "data": ...}``"""
    PNG = "png"
    """No envelope: the body is a picture."""
    V2 = "v2"
    """``{"data": ..., "paging": ...}``"""


@dataclass(frozen=True)
class Request:
    """A request, without the host and the key.

    ``path`` begins with ``/api/``; ``endpoint`` is the route with its placeholders, for errors.
    ``absent`` is the text of the error by which the service says that an object does not exist;
    such a response has no rows, and is no error. ``accept`` is the requested version of the
    response, where the service has several. Only the ``first_bytes`` of the response are read.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    endpoint: str = ""
    envelope: Envelope = Envelope.V1
    absent: str = ""
    accept: str = ""
    first_bytes: int | None = None


@dataclass(frozen=True)
class Page:
    """The data of one response without its envelope: raw JSON, or a picture.

    ``envelope_fields`` are the other fields of the envelope, as raw JSON: for example ``range``,
    the part of the chain that the data covers.
    """

    data: bytes = field(repr=False)
    paging: bytes | None = field(default=None, repr=False)
    envelope_fields: Mapping[str, bytes] = field(default_factory=dict, repr=False)
