"""A transport that sends the head and the body of an answer in one write.

uvicorn writes them separately. A client would wake up twice, and a small answer would take two
packets.
"""

from __future__ import annotations

import asyncio
from typing import Any

MAX_JOINED_BYTES = 1 << 16
"""Bytes up to which parts are joined: copying more takes longer than a second write."""


class JoinedWrites(asyncio.Transport):
    """Collects what is written in one iteration of the event loop, and writes it at its end."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        """Write to *transport*."""
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write *data* at the end of this iteration of the event loop."""
        if not data:
            return
        if self._size + len(data) > MAX_JOINED_BYTES:
            self.flush()
            # Of a view, the transport can take what it has not sent yet without a copy.
            self._transport.write(memoryview(data))
            return
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(bytes(data))
        self._size += len(data)

    def flush(self) -> None:
        """Write the collected parts."""
        if self._parts:
            data = b"".join(self._parts)
            self._parts, self._size = [], 0
            self._transport.write(data)

    def close(self) -> None:
        """Write the collected parts, then close the connection."""
        self.flush()
        self._transport.close()

    def is_closing(self) -> bool:
        """Return whether the connection is closing."""
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        """Stop reading requests."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read requests again."""
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return information about the connection."""
        return self._transport.get_extra_info(name, default)
