"""uvicorn's server, which stops at once: uvicorn itself looks for a stop ten times a second."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import uvicorn
from anyio.to_thread import current_default_thread_limiter

if TYPE_CHECKING:
    import socket

TICK_SECONDS = 1.0
TICKS_OF_A_DATE = 10
"""uvicorn updates the date in its answers once in so many of its ticks."""
THREADS = 4
"""Threads that answer requests. More of them answer nothing sooner, and each needs memory."""


class StoppableServer(uvicorn.Server):
    """A server that another thread can stop; answers that are being sent are completed."""

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
