"""What a node can answer: head, oldest states, tables, and the flag that would add more."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from beaconframes import v1
from beaconframes.beacon_node.capabilities import NEEDS, NEVER, find_absent
from beaconframes.beacon_node.client.api import BeaconApi
from beaconframes.beacon_node.client.clients import CONSENSUS_CLIENTS, find_client
from beaconframes.beacon_node.client.session import NodeSession
from beaconframes.beacon_node.execution.api import ExecutionApi
from beaconframes.beacon_node.probe import probe
from beaconframes.beacon_node.tables import EXECUTION_TABLES, READINGS
from beaconframes.endpoint import Endpoint, absent_table
from beaconframes.errors import ConnectionFailed, ResponseError

from ..support.beacon_node_faults import PrunedStates
from ..support.beacon_node_stub import VERSIONS, BeaconNodeStub
from ..support.execution_node import FakeNode
from ..support.faults import FastClock


def probe_stub(recording="capella", *, execution=False, **options):
    """Return the capabilities of a stub, and the stub."""
    stub = BeaconNodeStub(recording, **options)
    api = BeaconApi(NodeSession("http://node.example", transport=stub.transport, clock=FastClock()))
    node = ExecutionApi(NodeSession("http://node.example/execution", transport=stub.transport))
    return probe(api, node if execution else None), stub


@pytest.mark.parametrize(
    ("recording", "head", "finalized"), [("capella", 479, 57), ("electra", 399, 47)]
)
def test_an_archive_node_serves_the_whole_chain(recording, head, finalized):
    """Head, finality and the whole chain; about 20 requests, and no whole state."""
    found, stub = probe_stub(recording)

    assert (head, head // 8, finalized) == (
        found.head_slot, found.head_epoch, found.finalized_epoch,
    )  # fmt: skip
    assert 0 == found.oldest_state_epoch
    assert 0 == found.find_table("income_history").oldest_epoch
    assert {""} == {each.reason for each in found.tables if each.oldest_epoch is not None}
    assert sum(stub.counts.values()) <= 26
    assert [] == stub.unrecorded
    assert "the whole chain" in str(found)
    assert "<td" in found._repr_html_()


@pytest.mark.parametrize("client", CONSENSUS_CLIENTS)
def test_pruned_node_names_the_oldest_epoch_and_the_flag(client):
    """A node with the states of six epochs: tables since then, blocks since genesis, the flag."""
    faults = ["pruned-states", "pruned-duties"]
    found, stub = probe_stub(faults=faults, client=client)
    income = found.find_table("income_history")

    # The amounts of an epoch need the state before it.
    assert (54, 55) == (found.oldest_state_epoch, income.oldest_epoch)
    assert (0, "") == found.find_table("slots")[1:]
    assert CONSENSUS_CLIENTS[client].archive_flag in income.reason
    assert f"oldest state   epoch 54; for older ones start {CONSENSUS_CLIENTS[client].name}" in (
        " ".join(str(found).split()).replace("oldest state", "oldest state  ")
    )
    assert sum(stub.counts.values()) <= 32


def test_node_without_rewards_and_old_duties():
    """Planted quirks of Lodestar 1.5.1: SSZ states replace the routes; the reasons are stated."""
    found, _ = probe_stub(
        faults=["skipped-slot-state", "old-duties", "no-rewards-routes", "committee-labels"],
        finalized=52,
    )

    assert {"attestation_rewards", "block_rewards", "sync_rewards", "duties", "proposers"} == set(
        found.reasons
    ) - {"execution"}
    assert {0} == {
        found.find_table(name).oldest_epoch for name in ("income_history", "attestations")
    }
    assert "skipped-slot-state" in found.corrected
    assert "attestation rewards, block rewards, sync committee rewards: " in str(found)


def test_node_without_states_and_rewards():
    """Without SSZ and rewards, income is computed from blocks, if the chain is whole."""
    found, _ = probe_stub("altair")
    assert 0 == found.find_table("income_history").oldest_epoch

    found, _ = probe_stub("altair", faults=["pruned-states", "pruned-duties"])
    income = found.find_table("income_history")
    assert None is income.oldest_epoch
    assert income.reason.startswith("needs SSZ states; or validators of old states, attestation")


def test_a_replay_needs_the_whole_chain_before_electra():
    """Since Electra, blocks do not show which requests move a balance; states may be pruned."""
    without_rewards = ["debug-forbidden", "no-rewards-routes"]
    found, _ = probe_stub("electra", faults=without_rewards)
    assert None is found.find_table("income_history").oldest_epoch
    assert "needs SSZ states" in found.find_table("income_history").reason
    found, _ = probe_stub(faults=without_rewards)
    assert 0 == found.find_table("income_history").oldest_epoch
    found, _ = probe_stub(faults=[*without_rewards, "pruned-states"])
    assert None is found.find_table("income_history").oldest_epoch


def test_states_with_holes():
    """Measured: a node may have states at intervals; only what is without holes counts."""
    found, _ = probe_stub(faults=[PrunedStates(holes=True)])

    assert (True, 54) == (found.has_holes, found.oldest_state_epoch)
    assert "with holes before it" in str(found)


@pytest.mark.parametrize(
    ("fault", "ability", "words"),
    [
        ("no-inactivity", "attestation_rewards", "no inactivity penalty"),
        ("no-attestation-rewards", "attestation_rewards", "Route not found"),
        ("sync-reward-is-balance", "sync_rewards", "not a reward but a balance"),
        ("json-instead-of-ssz", "ssz", "answered JSON"),
        ("debug-forbidden", "ssz", "Forbidden"),
        ("rewards-fail-above-32-eth", "attestation_rewards", "AttestationRewardsError"),
    ],
)
def test_quirks_of_routes_are_found(fault, ability, words):
    """Planted quirks that one answer shows take the route out of use, with the reason."""
    found, _ = probe_stub("electra", faults=[fault])

    assert ability not in found.oldest
    assert words in found.reasons[ability]
    assert 0 == found.find_table("balance_history").oldest_epoch


@pytest.mark.parametrize("more", [[], ["debug-forbidden"]], ids=["states", "routes"])
def test_a_wrong_genesis_time_is_an_error(more):
    """All times of frames would be wrong, also of loads that read no block and no state."""
    with pytest.raises(ResponseError, match=r"timestamp is .* by the node's genesis time"):
        probe_stub("electra", faults=["old-genesis", *more])


def test_rewards_of_recent_epochs_only():
    """Planted quirk: Lodestar computes rewards from cached states; the states are all there."""
    found, _ = probe_stub(faults=["rewards-from-cached-states"], finalized=59)

    assert (56, 0) == (found.oldest["attestation_rewards"], found.oldest["ssz"])


def test_node_without_old_blocks():
    """Blocks end at another epoch than states: a table needs both."""
    found, _ = probe_stub(faults=["no-old-blocks"])

    assert (25, 0) == (found.oldest["blocks"], found.oldest["states"])
    assert (25, 25) == tuple(
        found.find_table(name).oldest_epoch for name in ("slots", "slot_attestations")
    )


def test_an_absent_execution_node_is_a_reason():
    """The execution node answers, or its absence is the reason of its tables."""
    found, stub = probe_stub(execution=True)
    assert ("stub/v1", 0) == (found.execution_version, found.find_table("deposits").oldest_epoch)

    # Without batches and other methods than those of eth.
    node = FakeNode({"eth_blockNumber": "0x1"}, batches="http-400")
    del node.methods["web3_clientVersion"]
    api = BeaconApi(NodeSession("http://node.example", transport=stub.transport, clock=FastClock()))
    found = probe(api, node.api())
    assert ("the execution node", 0) == (
        found.execution_version,
        found.find_table("execution_blocks").oldest_epoch,
    )

    found, _ = probe_stub()
    assert "pass the address of an execution node" in found.find_table("deposits").reason


def test_a_young_chain_has_nothing_to_store():
    """Before the second finalized epoch there is nothing to store, and it says so."""
    found, _ = probe_stub(head=20)

    assert None is found.oldest_state_epoch
    assert "wait" in found.find_table("slots").reason


def test_no_node_is_an_error():
    """A refused connection is raised, not reported as a missing ability."""
    with BeaconNodeStub() as stub:
        address = stub.url
    api = BeaconApi(NodeSession(address, clock=FastClock()))
    with pytest.raises(ConnectionFailed):
        probe(api)


def test_every_table_of_v1_has_its_needs():
    """Each table that a loader returns is either answered or refused by name."""
    endpoints = {
        each.name
        for found in pkgutil.iter_modules(v1.__path__, "beaconframes.v1.")
        for each in vars(importlib.import_module(found.name)).values()
        if isinstance(each, Endpoint)
    }

    assert endpoints == (NEEDS.keys() | NEVER.keys()) - {"slot_income"}


def test_a_loader_without_a_table_of_a_node_is_refused():
    """An endpoint needs no line here; some have a reason of their own."""
    absent = find_absent(["epochs", "names", "new_endpoint"])

    assert ["names", "new_endpoint"] == list(absent)
    assert "no table of a node has its rows: use the explorer API" == absent["new_endpoint"]


def test_tables_of_an_execution_node_have_the_hint_for_datasets_without_them():
    assert EXECUTION_TABLES == absent_table.EXECUTION_TABLES | absent_table.READING_TABLES
    assert READINGS == absent_table.READING_TABLES


def test_clients_by_their_version():
    """The client is the first word of its version; another one is unknown."""
    assert {name: CONSENSUS_CLIENTS[name] for name in VERSIONS} == {
        name: find_client(version) for name, version in VERSIONS.items()
    }
    assert None is find_client("Caplin/v3") is find_client("")
