"""uvicorn's server and HTTP protocol, with what the local explorer needs beside them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import h11
import uvicorn
from anyio.to_thread import current_default_thread_limiter
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import socket

REQUEST_SECONDS = 8.0
"""Seconds from the start of a connection, or from the first byte of a request, to its last byte."""

PART_BYTES = 1 << 14
TICK_SECONDS = 1.0
TICKS_OF_A_DATE = 10
"""uvicorn updates the date in its answers once in so many of its ticks."""
THREADS = 4
"""Threads that answer requests. More of them answer nothing sooner, and each needs memory."""


class RequestDeadlineProtocol(H11Protocol):
    """uvicorn's HTTP protocol, which closes connections whose request is incomplete in time.

    Connections that send nothing, or single bytes with pauses, could use up all file descriptors of
    the process, and then no other client could connect.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first request."""
        super().connection_made(transport)
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


class StoppableServer(uvicorn.Server):
    """A server that another thread can stop; answers that are being sent are completed.

    It stops at once: uvicorn's own looks for a stop ten times a second.
    """

    _loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and remember the event loop that `stop` wakes."""
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        current_default_thread_limiter().total_tokens = THREADS
        await super().startup(sockets=sockets)

    def stop(self) -> None:
        """Stop the server, from any thread."""
        self.should_exit = True
        # The loop is closed if the server has stopped already.
        with suppress(RuntimeError):
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._stopped.set)

    async def main_loop(self) -> None:
        """Wait until the server is to stop."""
        while not await self.on_tick(TICKS_OF_A_DATE):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), TICK_SECONDS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close idle connections at once, and the others after their answers."""
        for server in self.servers:
            server.close()
        for listening in sockets or []:
            listening.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        # Idle connections are closed in the next turn of the loop.
        await asyncio.sleep(0)
        try:
            timeout = self.config.timeout_graceful_shutdown
            await asyncio.wait_for(self._wait_tasks_to_complete(), timeout)
        except TimeoutError:
            for task in self.server_state.tasks:
                task.cancel()
