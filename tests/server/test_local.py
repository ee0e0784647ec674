"""The local explorer as a server on this machine."""

from __future__ import annotations

import signal
import socket
import threading
from datetime import timedelta

import httpx
import polars as pl
import pytest

import beaconframes as bf
from beaconframes.calendar import MAINNET
from beaconframes.dataset import Dataset
from beaconframes.endpoint.chain_metadata import describe_chain
from beaconframes.errors import ConfigError, DatasetError
from beaconframes.server import Server

from ..support import small_dataset as small


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

    # A thread of a test before may end meanwhile.
    assert before >= threading.active_count()


@pytest.mark.parametrize("chain", [small.CHAIN, MAINNET])
def test_ages_count_from_the_head_of_a_served_dataset(tmp_path, chain):
    """It may have ended years ago. The age is that of ten epochs."""
    size, end = chain.slots_per_epoch, small.EPOCHS * chain.slots_per_epoch - 1
    dataset = Dataset.create(
        tmp_path / "data",
        meta={**small.META, "chain": describe_chain(chain), "latest_slot": end},
    )
    rows = small.balances().with_columns(time=chain.time_expr("epoch", pl.col("epoch")))
    dataset.write("balance_history", [rows])
    last = chain.time_of("slot", end)
    age = timedelta(seconds=10 * size * chain.seconds_per_slot)
    with Server(dataset) as server, bf.connect(server.url, store=False) as client:
        found = bf.load_balance_history([3], since=age, until="finalized")
        assert last == client.now()
    first = chain.at("epoch", last - age) + 1

    assert list(range(first, small.EPOCHS - 2)) == found["epoch"].to_list()


@pytest.mark.more
def test_a_report_of_a_served_dataset_ends_at_its_head(running):
    """Its default range is the last thirty days of the chain, not of the clock."""
    with bf.connect(running.url, store=False):
        report = bf.report([1, 2, 3])

    assert report.frames["summary"]["consensus_income_gwei"][0] > 0


def test_an_interrupted_wait_leaves_the_server_running(chain):
    """After Ctrl-C, `serve` closes the server and waits for its thread, which is still running."""

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with Server(chain) as server:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(KeyboardInterrupt):
                server.wait()
            assert server.is_running
        assert not server.is_running
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
