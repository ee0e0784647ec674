"""The local explorer as a server on this machine."""

from __future__ import annotations

import socket

import httpx


def test_the_server_sends_every_answer_at_once(running):
    """Connections have TCP_NODELAY: otherwise every request after the first takes 40 ms longer."""
    with httpx.Client(base_url=running.url) as client:
        client.get("/api/v1/latestState")
        (options,) = {
            protocol.transport.get_extra_info("socket").getsockopt(
                socket.IPPROTO_TCP, socket.TCP_NODELAY
            )
            for protocol in list(running._server.server_state.connections)
        }
    assert options != 0
