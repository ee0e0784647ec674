"""Nodes that have only a part of their chain: what they promise is answered, the rest refused."""

from __future__ import annotations

import warnings

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.errors import MissingRows, NotServed, UsageError

from ..support.beacon_node_faults import Fault, PrunedStates
from ..support.beacon_node_stub import BeaconNodeStub
from ..support.recorded_blocks import load_blocks
from .test_index_loads import V1, V2

HEAD = 119
"""The last slot of epoch 14; epoch 12 is finalized."""


class NoBlockRewards(Fault):
    """A node without the route of block rewards."""

    def refuse(self, node, request):
        return node.no_route() if "/rewards/blocks/" in request.route else None


WITHOUT_SSZ = ["debug-forbidden", "pruned-duties"]
LODESTAR = [
    "skipped-slot-state", "old-duties", "no-rewards-routes", "committee-labels", "comma-ids",
    "no-post-ids",
]  # fmt: skip
NODES = {
    # Lodestar 1.5.1 without its debug routes: blocks are replayed, duties of old epochs missing.
    "replay": [*WITHOUT_SSZ, NoBlockRewards()],
    "no income": [*LODESTAR, "debug-forbidden"],
    "pruned": [PrunedStates(7), "pruned-duties"],
    "pruned, no SSZ": [PrunedStates(8), "debug-forbidden"],
    "pruned, no income": [PrunedStates(7), *WITHOUT_SSZ, "no-rewards-routes"],
    "Lodestar 1.5.1": LODESTAR,
}


class OneInvalid(Fault):
    """The first answer of a route for a state has a record without its first field."""

    def __init__(self, route, state):
        self.route, self.state, self.is_sent = route, state, False

    def change(self, node, request, answer):
        is_chosen = request.route.endswith(self.route) and request.args["state_id"] == self.state
        if not is_chosen or self.is_sent:
            return answer
        self.is_sent = True
        first, *others = answer.data
        return answer.with_data([dict([*first.items()][1:]), *others])


@pytest.mark.parametrize(
    ("fault", "load", "column"),
    [
        (("/committees", "71"), lambda: bf.load_slots(range(66, 70)), "votes"),
        (("/validators", "7"), lambda: bf.load_performance([1, 2]), "performance_total_gwei"),
    ],
)
def test_one_invalid_answer_of_the_probe_hides_nothing(fault, load, column):
    """The node would lack a route for the whole connection, and columns were null."""
    invalid = OneInvalid(*fault)
    with (
        BeaconNodeStub("capella", head=95, faults=["debug-forbidden", invalid]) as stub,
        bf.node(stub.url, store=False),
    ):
        found = load()
    assert invalid.is_sent
    assert 0 == found[column].null_count() < found.height


FINAL = {"slot_attestation_duties": ([75],)}
"""The income of epoch 9 is the last final one."""


@pytest.fixture
def stub(request):
    """A node with the faults of NODES."""
    with BeaconNodeStub("capella", head=HEAD, faults=NODES[request.param]) as node:
        yield node


def on(*names):
    """Return the decorator of a test on some NODES."""
    return pytest.mark.parametrize("stub", names, indirect=True, ids=names)


def missed_slots(first, last):
    """Return the slots without a block in the recording."""
    answers = load_blocks("capella").answers
    return [slot for slot in range(first, last + 1) if slot and answers[slot] is None]


@pytest.mark.long
@pytest.mark.parametrize("stub", NODES, indirect=True)
def test_every_loader_is_answered_or_refused_as_planned(stub, tmp_path):
    """What `bf.plan` calls available is answered; what it does not is refused by name."""
    answered = refused = 0
    with bf.node(stub.url, store=False) as node, warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingRows)
        for package, loads in ((bf, V1), (bf.v2, V2 | FINAL)):
            for name, arguments in loads.items():
                load = getattr(package, f"load_{name}")
                try:
                    load(*arguments)
                    answered += 1
                except NotServed:
                    assert bf.plan(load, *arguments, explorer=node).unavailable, name
                    refused += 1
    assert answered > 15
    if node.connection.find_source(None) is None:
        assert refused >= 14
        with pytest.raises(NotServed, match="the node cannot answer income_history"):
            bf.index(stub.url, tmp_path / "index")
        return
    coverage = bf.index(stub.url, tmp_path / "index")
    assert coverage.height > 0
    assert {"explained"} == set(coverage["status"])


@pytest.mark.more
@on("no income")
def test_blocks_need_no_states(stub):
    """Blocks, withdrawals and pixels since genesis are those of the recording."""
    recorded = load_blocks("capella")
    slots = range(1, 88)  # Up to epoch 10; the oldest state is that of epoch 8.
    messages = [recorded.answers[slot] and recorded.answers[slot]["message"] for slot in slots]
    with bf.node(stub.url, store=False) as node:
        blocks = bf.load_epoch_slots(since=0, until=10).filter(pl.col("slot").is_between(1, 87))
        withdrawals = bf.load_slot_withdrawals(slots)
        wall = bf.load_graffiti_wall(since=1, until=87)
        assert 0 == node.capabilities.find_table("slots").oldest_epoch
    assert [message and message["state_root"] for message in messages] == (
        blocks["state_root"].to_list()
    )
    payloads = [(m or {}).get("body", {}).get("execution_payload", {}) for m in messages]
    assert withdrawals.height == sum(len(p.get("withdrawals", ())) for p in payloads) > 0
    # Only duties say who had to propose: those of epoch 8 follow from its state.
    proposers = dict(blocks.filter(status="missed").select("slot", "proposer_index").iter_rows())
    known = 64 if node.connection.find_source(None) else HEAD
    assert proposers == {
        slot: recorded.proposers[slot] if slot >= known else None for slot in missed_slots(1, 87)
    }
    assert wall.height == bf.wall.from_blocks(blocks).height


@pytest.mark.more
@on("replay")
def test_missed_proposals_of_unknown_validators_are_reported(stub):
    """Without old duties, the proposer of a missed slot is null; a load of validators says so."""
    slots = missed_slots(0, 23)
    with bf.node(stub.url, store=False):
        blocks = bf.load_epoch_slots(since=0, until=2)
        v2 = bf.v2.load_slot(slots)
        with pytest.warns(MissingRows, match=rf"in {len(slots)} slots .* from slot {slots[0]} to"):
            proposals = bf.load_proposals(range(16), since=0, until=2)
        assert slots == bf.missing()["slot"].to_list()
        with pytest.warns(MissingRows, match="missed proposals are incomplete"):
            income = bf.load_income_history(range(16), since=0, until=2)
        with pytest.raises(MissingRows, match="missed proposals are incomplete") as caught:
            bf.load_proposals(range(16), since=0, until=2, strict=True)
        # The node has the duties of the last epochs.
        late = bf.load_proposals(range(16), since=12, until=12)
    assert slots == blocks.filter(status="missed")["slot"].to_list()
    assert (
        slots
        == blocks.filter(pl.col("proposer_index").is_null() & (pl.col("slot") > 0))[
            "slot"
        ].to_list()
    )
    assert [None] * len(slots) == v2["proposer_index"].to_list()
    assert {"proposed"} == set(proposals["status"])
    assert caught.value.rows.equals(proposals)
    assert income["proposals_missed"].sum() == 0
    assert late.filter(status="missed").height == len(missed_slots(96, 103))


@pytest.mark.more
@on("pruned")
def test_an_index_of_a_pruned_node_has_the_blocks_of_older_epochs(stub, tmp_path, caplog):
    """By default it begins with the oldest income; an older *since* adds what blocks show."""
    coverage = bf.index(stub.url, tmp_path / "index")
    assert 9 == coverage["epoch"][0]
    assert "epochs 0 to 8 are left out" in caplog.text
    coverage = bf.index(stub.url, tmp_path / "index", since=3)
    assert 9 == coverage["epoch"][0]
    assert "epochs 3 to 8 have no income, only what blocks show" in caplog.text
    with bf.open(tmp_path / "index"):
        assert {3, 9} <= set(bf.load_epoch_slots(since=3)["epoch"])
    with pytest.raises(UsageError, match=r"can answer epochs from 9 on.* last requested one is 8"):
        bf.index(stub.url, tmp_path / "index", since=3, until=8)


@on("pruned")
def test_one_state_of_a_period_has_its_sync_committee(stub):
    """The oldest state is that of epoch 10, and the period has the epochs 8 to 15."""
    stub.faults[0] = PrunedStates(5)
    with bf.node(stub.url, store=False) as node:
        assert 11 == node.capabilities.find_table("sync_committees").oldest_epoch
        assert [1] == bf.v2.load_sync_committee()["period"].to_list()
        seats = bf.load_sync_committees([1])
        with pytest.raises(NotServed, match="needs epochs 0 to 7, before epoch 11"):
            bf.v2.load_sync_committee(0)
    members = load_blocks("capella").expected["sync_committee"]["8"]
    assert members == seats["validator_index"].to_list()


@on("pruned")
def test_a_period_that_ends_before_the_first_epoch_is_refused(stub):
    """The oldest state is that of epoch 7, so that loads begin with epoch 8, as does period 1."""
    stub.faults[0] = PrunedStates(8)
    with bf.node(stub.url, store=False):
        assert [1] == bf.v2.load_sync_committee(1)["period"].to_list()
        with pytest.raises(NotServed, match="needs epochs 0 to 7, before epoch 8"):
            bf.v2.load_sync_committee(0)


@on("pruned, no SSZ")
def test_rewards_routes_begin_two_epochs_after_the_oldest_state(stub):
    """The oldest state is that of epoch 7; the start of an epoch pays the rewards of two before."""
    with bf.node(stub.url, store=False) as node:
        assert 9 == node.capabilities.find_table("income_history").oldest_epoch
        assert "since epoch 9 " in " ".join(str(node).split())


@on("replay")
def test_duties_are_requested_for_empty_slots_only(stub):
    """A load of an epoch of blocks reads two more, for votes, which need no duties."""
    requested = set()
    with bf.node(stub.url, store=False):
        for epoch in (8, 9, 10, 11):
            del stub.requests[:]
            bf.load_epoch_slots(since=epoch, until=epoch)
            routes = [each.args["epoch"] for each in stub.requests if "/duties/" in each.route]
            requested |= set(map(int, routes))
    empty = {slot // 8 for slot in missed_slots(64, 95)}
    assert empty == requested < {8, 9, 10, 11}


@pytest.mark.more
@on("pruned")
def test_several_nodes_have_the_epochs_that_all_of_them_have(stub, tmp_path):
    """An archive node and a pruned one share the epochs from 9 on, and all blocks."""
    with BeaconNodeStub("capella", head=HEAD) as archive:
        coverage = bf.index([archive.url, stub.url], tmp_path / "index", since=2)
    assert [9] == coverage["epoch"].to_list()
    assert {"explained"} == set(coverage["status"])
    with bf.open(tmp_path / "index"):
        assert set(range(2, 10)) <= set(bf.load_epoch_slots(since=2)["epoch"])
