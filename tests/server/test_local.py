"""The local explorer as a server on this machine."""

from __future__ import annotations

import socket
import threading

import httpx
import pytest

import beaconframes as bf
from beaconframes.dataset import Dataset
from beaconframes.errors import ConfigError, DatasetError
from beaconframes.server import Server


def test_connections_have_tcp_nodelay(running):
    """Without TCP_NODELAY, each request after the first on a connection takes 40 ms longer."""
    with httpx.Client(base_url=running.url) as client:
        client.get("/api/v1/latestState")
        (options,) = {
            protocol.transport.get_extra_info("socket").getsockopt(
                socket.IPPROTO_TCP, socket.TCP_NODELAY
            )
            for protocol in list(running._server.server_state.connections)
        }
    assert options != 0


@pytest.mark.parametrize("meta", [{}, {"chain": {"name": "other"}}, {"chain": None}])
def test_a_dataset_without_its_chain_cannot_be_served(tmp_path, meta):
    """The error says that the metadata do not state the chain and its head."""
    dataset = Dataset.create(tmp_path / "data", meta=meta)

    with pytest.raises(DatasetError, match="does not state its chain"):
        Server(dataset)


def test_an_invalid_argument_leaves_no_server(chain):
    """The thread of the server ends."""
    before = threading.active_count()

    with pytest.raises(ConfigError, match="nope"):
        bf.local(chain.path, frame="nope")

    assert before == threading.active_count()


def test_head_and_body_are_one_write(running):
    """E1: a small answer arrives in one packet."""
    host, port = running.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        request = f"GET /api/v1/epoch/x HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n"
        connection.sendall(request.encode())
        received = connection.recv(1 << 16)

    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert body.endswith(b"}")
