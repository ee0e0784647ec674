"""The plan of a load from a node: its requests are counted by the node that answers the load."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

import beaconframes as bf
from beaconframes.beacon_node.chain.cached_node import CONCURRENT_REQUESTS
from beaconframes.beacon_node.client import session as node_session
from beaconframes.beacon_node.connection import NodeConnection
from beaconframes.beacon_node.index.coverage import EpochTask
from beaconframes.beacon_node.loads import growing_index
from beaconframes.beacon_node.loads.estimate import (
    BLOCK,
    BLOCK_REWARDS,
    STATE,
    SYNC_REWARDS,
    LoadEstimate,
)
from beaconframes.errors import RequestLimitExceeded

from ..support.beacon_node_faults import PrunedStates
from ..support.beacon_node_stub import BeaconNodeStub

DOCS = Path(__file__).resolve().parents[2] / "docs"
HEAD_ROUTES = {
    "/eth/v1/beacon/headers/{block_id}",
    "/eth/v1/beacon/states/{state_id}/finality_checkpoints",
}
"""Requested once per slot, by any load."""

LOADS = {
    "income": lambda **options: bf.load_income_history([1, 2], since=5, until=5, **options),
    "genesis": lambda **options: bf.load_balance_history([1], since=0, until=0, **options),
    "blocks": lambda **options: bf.load_epoch_slots(since=7, until=7, **options),
    "sync_committees": lambda **options: bf.load_sync_committees([1], **options),
}


def plan(load, node):
    """Return the plan of a load of LOADS."""
    load.__name__ = "load_it"
    return bf.plan(load, explorer=node)


def count(stub):
    """Return the number of requests since the last clear, without those for the head."""
    return sum(number for route, number in stub.counts.items() if route not in HEAD_ROUTES)


@pytest.mark.parametrize(
    "faults",
    [(), pytest.param(("debug-forbidden", "no-rewards-routes"), marks=pytest.mark.more)],
    ids=["states", "replay"],
)
def test_planned_requests_are_sent(faults):
    """Requests are those that the node then counts; the plan itself sends none."""
    with (
        BeaconNodeStub("capella", head=95, faults=faults) as stub,
        bf.node(stub.url, store=False) as node,
    ):
        for name, load in LOADS.items():
            stub.counts.clear()
            planned = plan(load, node)
            assert 0 == stub.counts.total()
            load()
            # In a replay, epochs 5 to 8 have slots without a block, whose duties are requested.
            more = 2 if faults else 0
            assert planned.requests <= count(stub) <= planned.requests + more, name
            again = plan(load, node)
            assert (0, 0) == (again.requests, again.rows), name
            assert again.requests_saved == planned.requests, name


def test_rows_of_a_partly_stored_load_are_unknown():
    """What the node must still answer is not all that the load returns."""
    with (
        BeaconNodeStub("capella", head=95) as stub,
        bf.node(stub.url, store=False) as node,
    ):
        bf.load_epochs(since=0, until=0, explorer=node)
        planned = bf.plan(bf.load_epochs, since=0, until=1, explorer=node)

    assert planned.requests > 0
    assert (None, None) == (planned.rows, planned.stored_rows)


def test_bytes_and_time_are_measured():
    """A state has the size that the node states, a block that of the blocks received so far."""
    with BeaconNodeStub("capella", head=95) as stub, bf.node(stub.url, store=False) as node:
        session = node.connection.api.session
        slots = [
            int(request.args["state_id"]) for request in stub.requests if request.route == STATE
        ]
        size = max(len(stub.recording.ssz_state(slot)) for slot in slots)
        assert {STATE: size} == session.stated_sizes
        planned = plan(LOADS["income"], node)
        head = session.measured[BLOCK]
        assert (1, 4 * size + 24 * head.byte_count) == (head.requests, planned.bytes)
        assert planned.seconds is None
        assert "unknown: this connection has not loaded any epoch" in planned._repr_html_()

        LOADS["income"]()
        measured = session.measured[BLOCK]
        more = bf.plan(bf.load_income_history, [1], since=6, until=6, explorer=node)
        blocks = more.requests - 4
        expected = 4 * session.measured[STATE].byte_count / session.measured[STATE].requests
        assert round(expected + blocks * measured.byte_count / measured.requests) == more.bytes
        assert 0 < more.seconds < measured.seconds * 4 + session.measured[STATE].seconds * 4
        assert "at the speed of this connection so far" in str(more)


def test_rewards_of_slots_are_requested_as_many_at_a_time_as_blocks():
    """Rewards of blocks and of sync committees are requested by slot, as blocks are."""
    with (
        BeaconNodeStub("capella", head=95, faults=["debug-forbidden"]) as stub,
        bf.node(stub.url, store=False) as node,
    ):
        measured, slots = node.connection.api.session.measured, 3 * 8
        for route in (BLOCK, BLOCK_REWARDS, SYNC_REWARDS):
            measured.clear()
            # The time is unknown until a block was received.
            measured[BLOCK] = node_session.Measured(1, 100, 0.0)
            measured[route] = node_session.Measured(2, 200, 16.0)
            planned = plan(LOADS["income"], node)
            assert planned.seconds == pytest.approx(slots * 8.0 / CONCURRENT_REQUESTS), route


def test_what_the_node_cannot_answer():
    """Old epochs name the oldest usable epoch and the flag; other loads name the reason."""
    with (
        BeaconNodeStub("capella", head=95, faults=[PrunedStates(7)]) as stub,
        bf.node(stub.url, store=False) as node,
    ):
        planned = bf.plan(bf.load_income_history, [1], since=3, until=6, explorer=node)
        (reason,) = planned.unavailable
        assert reason.startswith("epochs 3 to 5, before epoch 6, the oldest that this node can")
        assert "start Lodestar with --serveHistoricalState" in reason
        rest = bf.plan(bf.load_income_history, [1], since=6, until=6, explorer=node)
        assert rest.requests == planned.requests > 0
        refused = bf.plan(bf.load_names, ["vitalik.eth"], explorer=node)
        assert 0 == refused.requests
        assert "names are not part of the beacon chain" in str(refused)


@pytest.mark.more
def test_long_loads_are_planned(monkeypatch):
    """A load of more epochs than one load adds has a plan, and names the way to load them."""
    with BeaconNodeStub("capella") as stub, bf.node(stub.url, store=False) as node:
        monkeypatch.setattr(growing_index, "MAX_EPOCHS", 3)
        planned = bf.plan(bf.load_income_history, [1], since=3, until=9, explorer=node)
        assert "bf.index(node, folder)" in planned.unavailable[0]


def test_the_limits_of_a_load_are_documented():
    """The pages about nodes have the epochs of one load, and the time for a state."""
    pages = [page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("own-node*.md"))]
    text = " ".join(" ".join(pages).split())

    assert f"up to {growing_index.MAX_EPOCHS:,} epochs in one load" in text
    assert "half an hour in all, with pauses of up to ten minutes" in text
    assert (1800.0, 600.0) == (node_session.SLOW.total, node_session.SLOW.read)


@pytest.mark.more
def test_max_requests_limits_requests_to_the_node():
    """A load that needs more raises before its first request; local requests do not count."""
    with (
        BeaconNodeStub("capella", head=95) as stub,
        bf.node(stub.url, store=False, max_requests=27) as node,
    ):
        needed = plan(LOADS["income"], node).requests
        stub.counts.clear()
        with pytest.raises(RequestLimitExceeded, match=f"needs {needed} requests.*none of"):
            LOADS["income"]()
        assert 0 == count(stub)
        assert 2 == LOADS["income"](max_requests=needed).height
        assert needed == count(stub)
        assert 2 == LOADS["income"](max_requests=0).height


def test_payments_need_the_blocks_of_their_epoch_as_aggregates_do():
    with BeaconNodeStub("electra") as stub, closing(NodeConnection(stub.url)) as node:
        status = node.read_status()
        aggregates, payments = (
            LoadEstimate(node, status.head_slot, None, None).build([EpochTask(3, (name,), None)])
            for name in ("slot_attestations", "execution_blocks")
        )

    assert aggregates.requests == payments.requests > 8
