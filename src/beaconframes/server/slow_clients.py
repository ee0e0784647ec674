"""Protection against slow clients: connections that send nothing, or single bytes with pauses.

Such connections could use up all file descriptors of the process, and then no other client could
connect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from beaconframes.server.joined_writes import JoinedWrites

if TYPE_CHECKING:
    import asyncio

REQUEST_SECONDS = 8.0
"""Seconds from the start of a connection, or from the first byte of a request, to its last byte."""

PART_BYTES = 1 << 14


class RequestDeadlineProtocol(H11Protocol):
    """uvicorn's HTTP protocol, which closes connections whose request is incomplete in time."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first request."""
        super().connection_made(JoinedWrites(transport, self.loop))
        self._update_deadline()

    def data_received(self, data: bytes) -> None:
        """Process received bytes, and start or stop the deadline."""
        # h11 limits the size of incomplete headers, so it receives long ones in parts.
        for start in range(0, len(data), PART_BYTES):
            if not self.transport.is_closing():
                super().data_received(data[start : start + PART_BYTES])
        self._update_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the deadline."""
        super().connection_lost(exc)
        self._stop_deadline()

    def _update_deadline(self) -> None:
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_SECONDS, self.transport.close)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
