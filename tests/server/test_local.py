"""The local explorer as a server on this machine."""

from __future__ import annotations

import socket

import httpx
import pytest

from beaconframes.dataset import Dataset
from beaconframes.errors import DatasetError
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
