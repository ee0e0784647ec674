"""The answer as it comes off the wire: decompressed, bounded, and whole or not at all."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from beaconframes.errors import ConnectionFailed, ProtocolError
from beaconframes.http.failure import AttemptFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

PIECE = 2**20
"""Bytes that are decompressed at a time, so that a bomb is seen before it has gone off."""


@dataclass(frozen=True)
class Reply:
    """An HTTP answer as it came, decompressed."""

    status: int
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)

    def masked(self, mask: Callable[[str], str]) -> Reply:
        """Return the same answer after *mask* went over all of its text."""
        headers = {name: mask(text) for name, text in self.headers.items()}
        return Reply(self.status, headers, mask(self.body.decode("latin-1")).encode("latin-1"))


def bounded(parts: Iterable[bytes], headers: Mapping[str, str], cap: int) -> Iterator[bytes]:
    """Yield the body whose *parts* come from the wire, decompressed, at most *cap* bytes of it.

    A compressed body without its end is a Failure: HTTP libraries pass it on as if it were whole.
    """
    size = 0
    for piece in _decoded(parts, headers.get("content-encoding", "").strip().lower()):
        size += len(piece)
        if size > cap:
            raise AttemptFailed(
                ProtocolError,
                f"the answer is longer than {cap / 2**20:g} MiB",
                hint="Ask for less in one call",
                attempts=1,
            )
        yield piece


def _decoded(parts: Iterable[bytes], coding: str) -> Iterable[bytes]:
    if coding in {"", "identity"}:
        return parts
    if coding == "gzip":
        return _gunzipped(parts)
    raise AttemptFailed(ProtocolError, "the answer is not encoded as gzip", said=coding)


def _gunzipped(parts: Iterable[bytes]) -> Iterator[bytes]:
    inflate = zlib.decompressobj(wbits=31)
    for part in parts:
        rest = part
        while rest:
            if inflate.eof:
                raise AttemptFailed(ProtocolError, "the compressed answer goes on after its end")
            try:
                yield inflate.decompress(rest, PIECE)
            except zlib.error as error:
                raise AttemptFailed(
                    ProtocolError, f"the compressed answer is damaged: {error}"
                ) from None
            rest = inflate.unconsumed_tail or inflate.unused_data
    if not inflate.eof:
        raise AttemptFailed(ConnectionFailed, "the compressed answer ends too early")
