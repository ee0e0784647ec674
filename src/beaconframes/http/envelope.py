"""The JSON object that every answer is, without looking into its data."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

import msgspec

from beaconframes.errors import ProtocolError
from beaconframes.http.failure import AttemptFailed
from beaconframes.schema.decode_checked import repair_surrogates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.http.body import Reply

BOM = b"\xef\xbb\xbf"
NOT_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
MARKUP = re.compile(r"<(style|script)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)


class _Name(str):
    """A member's name. Its own type, so that the parser hands over each one, twins too."""

    __slots__ = ()


_heard = threading.local()


def _named(kind: type[_Name], name: str) -> _Name:
    _heard.names += 1
    return kind(name)


# Made once: each answer has an envelope, and making a decoder costs more than reading one.
_MEMBERS = msgspec.json.Decoder(dict[_Name, msgspec.Raw], dec_hook=_named)
_TEXT = msgspec.json.Decoder(str | None)
_ANYTHING = msgspec.json.Decoder(msgspec.Raw)
_USUAL = b'{"status":"OK","data":'


def members(reply: Reply) -> dict[str, bytes]:
    """Return the members of the JSON object that *reply* must be, each as raw JSON."""
    body = reply.body.removeprefix(BOM)
    try:
        try:
            found, names = _parse(body)
        except msgspec.DecodeError:
            body = repair_surrogates(body)
            found, names = _parse(body)
        if not body.isascii():
            # The parser does not look into a string that it hands on raw.
            body.decode()
    except NOT_JSON as error:
        if not reply.body.strip():
            raise AttemptFailed(ProtocolError, "the answer is empty") from None
        if is_page(reply):
            raise AttemptFailed(
                ProtocolError, "a page instead of data", said=words(reply)
            ) from None
        raise AttemptFailed(
            ProtocolError, "the answer is no JSON object", said=str(error)
        ) from None
    if names > len(found):
        raise AttemptFailed(ProtocolError, "the answer names a member twice")
    return found


def usual_data(reply: Reply) -> bytes | None:
    """Return the data of a *reply* in the envelope that nearly all have, None for any other.

    Only what is certain: two members, each named once, of which one is the data.
    """
    body = reply.body
    if not (body.startswith(_USUAL) and body.endswith(b"}") and body.isascii()):
        return None
    data = body[len(_USUAL) : -1]
    try:
        _ANYTHING.decode(data)
    except NOT_JSON:
        return None
    return data if data[:1] in (b"[", b"{") else None


def members_if_any(body: bytes) -> dict[str, bytes]:
    """Return the members of *body*, or none if it is something else."""
    try:
        return _parse(body.removeprefix(BOM))[0]
    except NOT_JSON:
        return {}


def _parse(body: bytes) -> tuple[dict[str, bytes], int]:
    """Return the members of a JSON object, and how many there are with those named twice."""
    _heard.names = 0
    found = _MEMBERS.decode(body)
    return {str(name): bytes(raw) for name, raw in found.items()}, _heard.names


def error_in(found: Mapping[str, bytes]) -> str | None:
    """Return the message if the members are an error of either generation."""
    for name in ("error", "status"):
        if name not in found:
            continue
        try:
            text: str | None = _TEXT.decode(found[name])
        except NOT_JSON:
            continue
        if text is not None and name == "error":
            return text
        if text is not None and text.startswith("ERROR"):
            return text.removeprefix("ERROR").removeprefix(":").strip()
    return None


def is_page(reply: Reply) -> bool:
    """Tell whether *reply* is made for a browser."""
    kind = reply.headers.get("content-type", "").lower()
    return "html" in kind or reply.body.removeprefix(BOM).lstrip()[:1] == b"<"


def words(reply: Reply) -> str:
    """Return what *reply* says: its error message, or its text without markup."""
    error = error_in(members_if_any(reply.body))
    if error is not None:
        return error
    text = reply.body[: 2**14].decode(errors="replace")
    return MARKUP.sub(" ", text) if is_page(reply) else text
