"""The response to one request: its decoded body, its envelope, and the page of data inside.

Status 200 does not prove that a response is data. The service reports some errors with status 200
and failures of its database with 400, and proxies in front of it respond with HTML pages.
"""

from __future__ import annotations

import threading
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from beaconframes.endpoint import Page
from beaconframes.endpoint.uncovered import UNCOVERED_HEADER
from beaconframes.errors import ConnectionFailed, ProtocolError, ServerError
from beaconframes.http.retry import AttemptFailed
from beaconframes.http.status_errors import (
    BOM,
    NOT_JSON,
    error_for_status,
    error_message,
    error_text,
    find_challenge,
    is_html,
)
from beaconframes.schema.decode_checked import repair_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from beaconframes.endpoint import Request

CHUNK = 2**20
"""Bytes to decompress at a time, so that a decompression bomb is noticed early."""
NO_ROWS = b"[]"
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
V1_START = b'{"status":"OK","data":'


@dataclass(frozen=True)
class HttpResponse:
    """An HTTP response with its body, decompressed."""

    status: int
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)

    def redacted(self, redact: Callable[[str], str]) -> HttpResponse:
        """Return the same response with *redact* applied to its headers and body."""
        headers = {name: redact(text) for name, text in self.headers.items()}
        body = redact(self.body.decode("latin-1")).encode("latin-1")
        return HttpResponse(self.status, headers, body)


@dataclass(frozen=True)
class ResponsePage(Page):
    """The page of data in a response, and the response's headers.

    With ``not_found`` the service reported that the requested object does not exist.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    not_found: bool = False


def decode_body(
    chunks: Iterable[bytes], headers: Mapping[str, str], max_size: int
) -> Iterator[bytes]:
    """Yield the decompressed *chunks* of a body, at most *max_size* bytes in all.

    A truncated gzip body raises AttemptFailed: HTTP libraries accept it as complete.
    """
    size = 0
    for chunk in _decompress(chunks, headers.get("content-encoding", "").strip().lower()):
        size += len(chunk)
        if size > max_size:
            raise AttemptFailed(
                ProtocolError,
                f"the response is longer than {max_size / 2**20:g} MiB",
                hint="Request less in one call",
                max_attempts=1,
            )
        yield chunk


def parse_page(response: HttpResponse, request: Request) -> ResponsePage:
    """Return the page of data in the *response* to a *request*, or raise AttemptFailed."""
    envelope, no_rows_message = request.envelope, request.absent
    status, headers, body = response.status, response.headers, response.body
    is_error = status in {400, 404}
    if no_rows_message and is_error and no_rows_message in body.decode(errors="replace"):
        return ResponsePage(NO_ROWS, headers=headers, not_found=True)
    if status == 404 and UNCOVERED_HEADER in headers:
        return ResponsePage(NO_ROWS, headers=headers)
    if status != 200:
        raise error_for_status(status, headers, body)
    if envelope == "v1" and (data := _parse_plain_v1(body)) is not None:
        return ResponsePage(data, headers=headers)
    if (challenge := find_challenge(status, headers, body)) is not None:
        raise challenge
    if envelope == "png" and body.startswith(PNG_SIGNATURE):
        return ResponsePage(body, headers=headers)
    members = _parse_envelope(response)
    if (message := error_message(members)) is not None:
        raise AttemptFailed(ServerError, "the service reported", quoted=message)
    if envelope == "bare" and members and not members.keys() & {"status", "data"}:
        return ResponsePage(body.removeprefix(BOM), headers=headers)
    _check_envelope(envelope, members)
    data, paging = members.pop("data", None), members.pop("paging", None)
    if data is None or data[:1] not in (b"[", b"{"):
        raise _unexpected("has no data: no list and no object")
    return ResponsePage(data, None if paging == b"null" else paging, members, headers)


def _decompress(chunks: Iterable[bytes], encoding: str) -> Iterable[bytes]:
    if encoding in {"", "identity"}:
        return chunks
    if encoding == "gzip":
        return _gunzip(chunks)
    raise AttemptFailed(ProtocolError, "the response is not encoded as gzip", quoted=encoding)


def _gunzip(chunks: Iterable[bytes]) -> Iterator[bytes]:
    decompressor = zlib.decompressobj(wbits=31)
    for chunk in chunks:
        rest = chunk
        while rest:
            if decompressor.eof:
                raise AttemptFailed(ProtocolError, "the compressed response has data after its end")
            try:
                yield decompressor.decompress(rest, CHUNK)
            except zlib.error as error:
                raise AttemptFailed(
                    ProtocolError, f"the compressed response is damaged: {error}"
                ) from None
            rest = decompressor.unconsumed_tail or decompressor.unused_data
    if not decompressor.eof:
        raise AttemptFailed(ConnectionFailed, "the compressed response ends too early")


class _Name(str):
    """The name of a member: a separate type, so that the parser calls a hook for each name."""

    __slots__ = ()


_parsed = threading.local()


def _count_name(kind: type[_Name], name: str) -> _Name:
    _parsed.names += 1
    return kind(name)


# Created once, because creating a decoder takes longer than parsing an envelope.
_MEMBERS = msgspec.json.Decoder(dict[_Name, msgspec.Raw], dec_hook=_count_name)
_ANY_VALUE = msgspec.json.Decoder(msgspec.Raw)


def _parse_plain_v1(body: bytes) -> bytes | None:
    """Return the data of the usual V1 envelope; None for any other body.

    It is faster than a full parse, and it accepts no body that the full parse would refuse.
    """
    if not (body.startswith(V1_START) and body.endswith(b"}") and body.isascii()):
        return None
    data = body[len(V1_START) : -1]
    try:
        _ANY_VALUE.decode(data)
    except NOT_JSON:
        return None
    return data if data[:1] in (b"[", b"{") else None


def _parse_envelope(response: HttpResponse) -> dict[str, bytes]:
    """Return the members of the JSON object in a *response*, each as raw JSON."""
    body = response.body.removeprefix(BOM)
    try:
        try:
            members, name_count = _parse_members(body)
        except msgspec.DecodeError:
            body = repair_surrogates(body)
            members, name_count = _parse_members(body)
        if not body.isascii():
            # The parser does not check the encoding of strings that stay raw.
            body.decode()
    except NOT_JSON as error:
        raise _not_json(response, error) from None
    if name_count > len(members):
        raise AttemptFailed(ProtocolError, "the response has a duplicate member")
    return members


def _parse_members(body: bytes) -> tuple[dict[str, bytes], int]:
    """Return the members of a JSON object, and their count including duplicates."""
    _parsed.names = 0
    members = _MEMBERS.decode(body)
    return {str(name): bytes(raw) for name, raw in members.items()}, _parsed.names


def _check_envelope(envelope: str, members: Mapping[str, bytes]) -> None:
    if envelope == "png":
        raise _unexpected("is not a PNG image")
    if envelope == "code" and members.get("code") != b"200":
        raise _unexpected("does not have code 200")
    if envelope in {"v1", "bare"} and members.get("status") != b'"OK"':
        raise _unexpected("does not have status OK")


def _not_json(response: HttpResponse, error: Exception) -> AttemptFailed:
    if not response.body.strip():
        return AttemptFailed(ProtocolError, "the response is empty")
    if is_html(response.headers, response.body):
        text = error_text(response.headers, response.body)
        return AttemptFailed(
            ProtocolError, "the response is an HTML page instead of JSON", quoted=text
        )
    return AttemptFailed(ProtocolError, "the response is not a JSON object", quoted=str(error))


def _unexpected(reason: str) -> AttemptFailed:
    return AttemptFailed(ProtocolError, f"the response {reason}: it is not from this API")
