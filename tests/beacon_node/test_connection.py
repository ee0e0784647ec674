"""Which source of income a connection chooses: by what the node has, and by cost."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest

import beaconframes as bf
from beaconframes.beacon_node import connection as connections
from beaconframes.beacon_node.amounts.replay import ReplayAmounts
from beaconframes.beacon_node.amounts.routes import RouteAmounts
from beaconframes.beacon_node.amounts.states import StateAmounts
from beaconframes.beacon_node.capabilities import Capabilities
from beaconframes.beacon_node.connection import ChainStatus, NodeConnection
from beaconframes.beacon_node.index.indexing import index
from beaconframes.beacon_node.tables.declaration import ROUTE_NEEDS
from beaconframes.errors import NotServed, ServerError
from beaconframes.http import retry

from ..support.beacon_node_faults import Fault
from ..support.beacon_node_stub import BeaconNodeStub, read_recording

ROUTES = dict.fromkeys(ROUTE_NEEDS, 5)
REPLAY = {"blocks": 0, "states": 0, "duties": 0, "genesis": 0}


def connect(oldest, *, is_large):
    connection = NodeConnection("http://node.test")
    ability = SimpleNamespace(reason="needs SSZ states", oldest_epoch=5)
    connection.__dict__["capabilities"] = SimpleNamespace(
        oldest=oldest, first_epoch=0, find_table=lambda _: ability
    )
    connection.__dict__["has_large_registry"] = is_large
    connection.api.__dict__["chain_spec"] = SimpleNamespace(
        slots_per_epoch=8, epochs_per_slashings_vector=64, fork_at=lambda _: "altair", name="test"
    )
    return connection


@pytest.mark.parametrize(
    ("oldest", "validators", "is_large", "source"),
    [
        # States have all validators for one request an epoch, but they are large.
        ({"ssz": 5, **ROUTES}, None, True, StateAmounts),
        ({"ssz": 5, **ROUTES}, [1], True, RouteAmounts),
        ({"ssz": 5, **ROUTES}, [1], False, StateAmounts),
        # Older epochs count for more than cost.
        ({"ssz": 4, **ROUTES}, [1], True, StateAmounts),
        ({"ssz": 5}, [1], True, StateAmounts),
        (ROUTES, [1], False, RouteAmounts),
        (ROUTES, None, True, RouteAmounts),
        (ROUTES | REPLAY, [1], False, RouteAmounts),
        (REPLAY, [1], False, ReplayAmounts),
        (REPLAY, None, False, ReplayAmounts),
    ],
)
def test_the_cheapest_source_that_the_node_has_is_chosen(oldest, validators, is_large, source):
    connection = connect(oldest, is_large=is_large)
    reader = connection.open_reader(ChainStatus(100, 10), validators)
    amounts = connection.open_amounts(reader, validators)
    assert type(amounts) is source
    # Duties are computed from states only where states are read anyway.
    assert reader.has_states == (source is StateAmounts)
    reader.close()


@pytest.mark.parametrize("oldest", [{}, {"blocks": 0}, {**REPLAY, "states": 3}, {"states": 0}])
def test_a_node_without_any_source_is_refused(oldest):
    connection = connect(oldest, is_large=False)
    with pytest.raises(NotServed, match="cannot answer income_history: needs SSZ states"):
        connection.open_amounts(None, [1])


def test_routes_need_the_rewards_of_two_epochs_before():
    facts = Capabilities("http://node", "Lodestar/v1", "test", 100, 12, 10)
    states = replace(facts, oldest={"blocks": 0, "ssz": 5})
    assert [0, 6, 6] == [
        states.find_table(name).oldest_epoch for name in ("slots", "income_history", "attestations")
    ]
    routes = replace(facts, oldest={"blocks": 0, **ROUTES}, margin=2)
    assert routes.find_table("income_history").oldest_epoch == 7
    assert "for older epochs" in routes.find_table("income_history").reason
    # A chain whose Altair fork is in epoch 5 has states of phase0 before.
    altair = replace(facts, oldest={"blocks": 5, "ssz": 5}, first_epoch=5)
    assert (6, "") == altair.find_table("income_history")[1:]
    assert (5, "") == altair.find_table("slots")[1:]


@pytest.mark.more
@pytest.mark.parametrize("has_queues", [True, False])
def test_all_validators_are_indexed_without_states(tmp_path, has_queues):
    """Since Electra, the queue of deposits comes from its own route, if the node has it."""
    fault = Fault()
    fault.refuse = lambda node, request: (
        None if has_queues or "/pending_" not in request.route else node.no_route()
    )
    with BeaconNodeStub("electra", faults=["debug-forbidden", fault]) as stub:
        tables = ["income_history"]
        status = index(stub.url, tmp_path / "index", since=2, until=2, tables=tables)
    assert set(status["status"]) == ({"explained"} if has_queues else {"unexplained"})
    with bf.local(tmp_path / "index"):
        assert bf.load_balance_history(range(3), since=2, until=2).height == 3
        if has_queues:
            assert bf.load_validator_queue().height == 1


class Refusal(Fault):
    """A route that answers with an error; *is_refused* decides by the state id."""

    def __init__(self, end, status, is_refused=lambda state_id: True):
        self.end, self.status, self.is_refused = end, status, is_refused

    def refuse(self, node, request):
        if request.route.endswith(self.end) and self.is_refused(request.args.get("state_id")):
            return node.error(self.status, "unsupported")
        return None


@pytest.mark.parametrize("status", [400, 405, 500])
def test_a_node_whose_optional_routes_answer_with_errors(tmp_path, monkeypatch, status):
    """The sync state is unknown, and the validator queue unavailable; all else has its rows."""
    monkeypatch.setattr(retry, "back_off", lambda _: 0.0)
    faults = [Refusal("/node/syncing", status), Refusal("/pending_deposits", status)]
    with BeaconNodeStub("electra", faults=faults) as stub:
        with bf.node(stub.url, store=False) as node:
            assert "epoch 49, unknown" in str(node)
            assert 1 == bf.load_validators([3]).height
            assert re.search(f"pending queues: .* status {status}: unsupported", str(node))
            with pytest.raises(NotServed, match="no validator_queue"):
                bf.load_validator_queue()
        index(stub.url, tmp_path / "index", until=1, tables=["income_history"])
    with bf.open(tmp_path / "index"):
        assert 3 == bf.load_validators(range(3)).height


def test_a_failure_of_the_queue_of_deposits_is_an_error(monkeypatch):
    """The route answered at first: one failure does not make the queue unavailable."""
    monkeypatch.setattr(retry, "back_off", lambda _: 0.0)
    fault = Refusal("/pending_deposits", 500, lambda state_id: state_id == "head")
    with (
        BeaconNodeStub("electra", faults=[fault]) as stub,
        pytest.raises(ServerError, match="unsupported"),
    ):
        bf.node(stub.url, store=False)


@pytest.mark.parametrize(("most", "is_large"), [(15, True), (16, False)])
def test_the_size_of_the_registry_needs_no_request_for_all_validators(monkeypatch, most, is_large):
    """The Capella chain has 16 validators."""
    monkeypatch.setattr(connections, "LARGE_REGISTRY", most)
    with BeaconNodeStub() as stub:
        assert NodeConnection(stub.url).has_large_registry is is_large
        assert all(request.body for request in stub.requests if "/validators" in request.route)


@pytest.mark.more
def test_a_node_without_states_is_indexed_by_routes(tmp_path):
    """Chosen validators, without SSZ states; a route of states is only sent by the probe."""
    until, expected = 1, read_recording("electra").expected
    with BeaconNodeStub("electra", faults=["debug-forbidden"]) as stub:
        status = index(
            stub.url, tmp_path / "index", validators=[3, 70], until=until, tables=["income_history"]
        )
        assert set(status["status"]) == {"explained"}
        requests = Counter({route.rsplit("/", 2)[1]: n for route, n in stub.counts.items()})
        assert requests["attestations"] == until + 1 + 2  # Two of the probe.
    with bf.local(tmp_path / "index"):
        income = bf.load_income_history([3], since=0, until=until)
        balances = bf.load_balance_history([3], since=0, until=until)
    rewards = expected["attestation_rewards_of_duty_epoch"]
    targets = [rewards[str(epoch)]["target"][3] for epoch in range(until + 1)]
    found = income["attestation_target_reward_gwei"] - income["attestation_target_penalty_gwei"]
    assert found.to_list() == targets
    assert balances["balance_gwei"].to_list() == [
        expected["balance_first_slot_post_block"][str(epoch)][3] for epoch in range(until + 1)
    ]
