"""Loads from a node of a chain with so many validators that a load has only those it requests."""

from __future__ import annotations

import json

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.beacon_node.client.api import BeaconApi
from beaconframes.client import set_explorer
from beaconframes.errors import NotServed

from ..support.beacon_node_stub import BeaconNodeStub

NEED_ALL = {
    "epochs": bf.load_epochs,
    "leaderboard": bf.load_leaderboard,
    "proposal_luck": lambda: bf.load_proposal_luck([1]),
    "queues": bf.v2.load_queues,
    "validator_queue": bf.load_validator_queue,
    "withdrawal_credentials": lambda: bf.load_withdrawal_credentials("0x" + "ab" * 20),
}


@pytest.fixture(scope="module")
def open_node():
    """A node of a chain whose validators are more than a load indexes all of."""
    with pytest.MonkeyPatch.context() as patch, BeaconNodeStub("electra", head=71) as stub:
        # As on a chain of 30,000 validators.
        patch.setattr(BeaconApi, "request_has_validator", lambda self, index: index <= 30_000)
        with bf.node(stub.url, store=False) as node:
            yield node


@pytest.fixture
def node(open_node):
    """That node, for the loaders of a test."""
    set_explorer(open_node)
    return open_node


def read_keys(stub):
    """Return the public keys of all validators, in the order of their indices."""
    rows = json.loads(stub.recording.validators(stub.head))["data"]
    return [row["validator"]["pubkey"] for row in rows]


def sum_income(validators):
    """Return rewards less penalties since epoch 0, by validator."""
    income = bf.load_income_history(validators, since=0, until=-1)
    reward = pl.sum_horizontal("^.*_reward_gwei$") - pl.sum_horizontal("^.*_penalty_gwei$")
    return income.group_by("validator_index", maintain_order=True).agg(reward.sum())


@pytest.mark.more
def test_performance_is_that_of_the_requested_validators(node):
    """Epochs that an earlier load did not request of other validators do not matter."""
    bf.load_income_history([5], since=2, until=2)
    loaded = bf.load_performance([1, 3])
    by_key = bf.load_performance(bf.load_validators([2])["pubkey"].to_list())

    totals = pl.concat([loaded, by_key]).select("validator_index", "performance_total_gwei")
    assert (
        totals.rows()
        == sum_income([1, 3, 2])
        .sort(pl.col("validator_index").replace_strict({1: 0, 3: 1, 2: 2}))
        .rows()
    )
    assert (totals["performance_total_gwei"] > 0).all()
    assert loaded["rank_7d"].to_list() == [None, None]


@pytest.mark.parametrize(
    "load",
    [
        bf.load_income_history,
        bf.load_balance_history,
        bf.load_attestations,
        pytest.param(bf.v2.load_rewards, marks=pytest.mark.more),
        pytest.param(bf.v2.load_performance, marks=pytest.mark.more),
    ],
)
def test_public_keys_load_the_rows_of_their_validators(load):
    """The node has not said yet which validators they are, alone or beside an index."""
    with pytest.MonkeyPatch.context() as patch, BeaconNodeStub("electra", head=71) as stub:
        patch.setattr(BeaconApi, "request_has_validator", lambda self, index: index <= 30_000)
        keys = read_keys(stub)
        with bf.node(stub.url, store=False):
            by_index = load([1, 2, 3], since=2, until=3)
        call = {"since": 2, "until": 3, "explorer": bf.node(stub.url, store=False)}
        with call["explorer"]:
            planned = bf.plan(load, [1, keys[2], keys[3]], **call)
            assert by_index.equals(load([1, keys[2], keys[3]], **call))
            again = bf.plan(load, [1, keys[2], keys[3]], **call)
    assert 0 == again.requests < planned.requests


def test_a_plan_of_public_keys_is_that_of_their_validators(monkeypatch):
    """Each one has a record in the responses, whatever its index is."""
    monkeypatch.setattr(BeaconApi, "request_has_validator", lambda self, index: True)
    with BeaconNodeStub("electra", head=71, faults=("debug-forbidden",)) as stub:
        keys = read_keys(stub)
        with bf.node(stub.url, store=False):
            by_index, by_key, of_one = (
                bf.plan(bf.load_income_history, members, since=2, until=3)
                for members in ([1, 2, 3], [1, *keys[2:4]], [1])
            )
    assert (by_index.requests, by_index.bytes) == (by_key.requests, by_key.bytes)
    assert of_one.bytes < by_key.bytes


SETS = [
    bf.v2.load_rewards_aggregate,
    pytest.param(bf.v2.load_performance_aggregate, marks=pytest.mark.more),
    pytest.param(bf.v2.load_apy_roi, marks=pytest.mark.more),
    bf.v2.load_sync_committee_periods,
    bf.v2.load_upcoming_duty_slots,
    bf.v2.load_balances,
]


@pytest.mark.parametrize("load", SETS)
def test_sets_of_public_keys_are_those_of_their_validators(load, monkeypatch):
    """A key that is left out would make a sum too small, without a warning."""
    with BeaconNodeStub("capella", head=95) as stub:
        monkeypatch.setattr(BeaconApi, "request_has_validator", lambda self, index: True)
        keys = read_keys(stub)
        found = []
        for members in ([1, 2, 3], [1, keys[2], 3], keys[1:4]):
            with bf.node(stub.url, store=False):
                found.append(load(members))
    assert found[0].height
    assert found[0].equals(found[1])
    assert found[0].equals(found[2])


def test_connections_share_an_index(tmp_path, monkeypatch):
    """Each connection requests other validators, and keeps those of the other one."""
    with BeaconNodeStub("capella", head=95) as stub:
        monkeypatch.setattr(BeaconApi, "request_has_validator", lambda self, index: True)
        keys, span = read_keys(stub), {"since": 5, "until": 6}
        with bf.node(stub.url, store=False):
            expected = bf.v2.load_rewards_aggregate([1, 2])
        first, second = bf.node(stub.url, store=tmp_path), bf.node(stub.url, store=tmp_path)
        with first, second:
            bf.load_income_history(keys[1:3], explorer=first, **span)
            bf.load_income_history([7], explorer=second, **span)
            assert 2 == bf.load_income_history(keys[1:2], explorer=first, **span).height
            assert expected.equals(bf.v2.load_rewards_aggregate(keys[1:3], explorer=first))
            assert [1, 7] == bf.load_validators([1, 7], explorer=second)[
                "validator_index"
            ].to_list()


def test_a_validator_that_another_connection_adds_meanwhile_stays(tmp_path, monkeypatch):
    """Between the list of known validators and the new one, the other connection adds number 7."""
    with BeaconNodeStub("capella", head=95) as stub:
        monkeypatch.setattr(BeaconApi, "request_has_validator", lambda self, index: True)
        first, second = bf.node(stub.url, store=tmp_path), bf.node(stub.url, store=tmp_path)
        request = BeaconApi.validators

        def request_late(api, *arguments):
            found = request(api, *arguments)
            if api is first.connection.api and ("head", [9]) == arguments:
                bf.load_balance_history([7], since=5, until=5, explorer=second)
            return found

        monkeypatch.setattr(BeaconApi, "validators", request_late)
        with first, second:
            bf.load_balance_history([9], since=5, until=5, explorer=first)
            assert [7, 9] == first.index.validators["validator_index"].to_list()


def test_a_stored_chain_may_grow(tmp_path, monkeypatch):
    """Its index of all validators stays, and another one has those of loads."""
    with BeaconNodeStub("electra", head=71) as stub:
        for limit in (73, 30_000):
            monkeypatch.setattr(BeaconApi, "request_has_validator", lambda _, n, m=limit: n <= m)
            with bf.node(stub.url, store=tmp_path):
                assert 1 == bf.load_balance_history([1], since=2, until=2).height


@pytest.mark.parametrize("name", NEED_ALL)
def test_what_needs_all_validators_is_refused_by_name(node, name):
    with pytest.raises(NotServed, match=f"load_{name} needs all validators") as refused:
        NEED_ALL[name]()
    assert "bf.index(node, folder)" in refused.value.hint


def test_a_node_lists_what_needs_all_validators(node):
    """A small chain has these tables."""
    (line,) = [line for line in str(node).splitlines() if "needs all validators" in line]
    assert "bf.index(node, folder)" in line
    names = set(line.replace(",", " ").replace(":", " ").split())
    assert NEED_ALL.keys() - {"queues"} <= names
    assert not names & {"performance", "income_history"}
