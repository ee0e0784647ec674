"""What the index says of nodes: one that the balances refute, and one without a verified chain."""

from __future__ import annotations

import json

import pytest

import beaconframes as bf
from beaconframes.errors import UnreconciledRows, UnverifiedRows

from ..support.beacon_node_faults import Fault, MoreBalance
from ..support.beacon_node_stub import BeaconNodeStub

HEAD = 95
VALIDATOR, SLOT = 3, 40


@pytest.mark.more
@pytest.mark.parametrize(
    "is_first",
    [pytest.param(True, id="first", marks=pytest.mark.long), pytest.param(False, id="second")],
)
def test_the_node_that_balances_confirm_is_believed(tmp_path, caplog, is_first):
    """From slot 40 on, one of two nodes states 1 gwei more: the other one is asked, and stored."""
    wrong = BeaconNodeStub("capella", head=HEAD, faults=[MoreBalance((VALIDATOR, SLOT, 1))])
    with wrong, BeaconNodeStub("capella", head=HEAD) as right:
        nodes = [wrong.url, right.url] if is_first else [right.url, wrong.url]
        coverage = bf.index(nodes, tmp_path / "both", until=6)
        bf.index(right.url, tmp_path / "right", until=6)

    assert {"explained"} == set(coverage["status"])
    remarks = dict(coverage.select("epoch", "remark").drop_nulls().iter_rows())
    # A node has runs of four epochs. The change of epoch 5 has income of the epochs 3 to 5. Later,
    # the balance of the wrong node is too high without a further change.
    assert set(remarks) == ({3} if is_first else {4, 5})
    for remark in remarks.values():
        assert remark == f"the balances refute {wrong.url}, and confirm another node"
    assert f"epoch {min(remarks)}: the balances refute {wrong.url}" in caplog.text
    frames = {}
    for folder in ("both", "right"):
        dataset = bf.Dataset.open(tmp_path / folder)
        for name in ("income_history", "balance_history", "unexplained_changes"):
            rows = dataset.scan(name).sort("validator_index", "epoch").collect()
            frames.setdefault(name, []).append(rows)
    for name, (both, right_only) in frames.items():
        assert both.equals(right_only), name


@pytest.mark.more
def test_an_epoch_that_no_node_explains_is_unexplained(tmp_path):
    """Two nodes with the same error: the epoch is flagged, and none of them is named."""
    nodes = [
        BeaconNodeStub("capella", head=HEAD, faults=[MoreBalance((VALIDATOR, SLOT, 1))])
        for _ in range(2)
    ]
    with nodes[0], nodes[1]:
        coverage = bf.index([node.url for node in nodes], tmp_path / "index", since=3, until=6)
    assert ["unexplained"] * 3 + ["explained"] == coverage["status"].to_list()
    assert 4 == coverage["remark"].null_count()


def test_several_nodes_have_the_lowest_finality(tmp_path):
    """With the head in slot 95, epoch 9 is finalized: the income of epoch 6 is the last final."""
    with BeaconNodeStub("capella", head=HEAD) as behind, BeaconNodeStub("capella", head=119) as far:
        coverage = bf.index([far.url, behind.url], tmp_path / "index", since=5)
    assert [5, 6] == coverage["epoch"].to_list()


class Optimistic(Fault):
    """The execution node has verified the blocks before a slot."""

    def __init__(self, slot):
        self.slot = slot

    def change(self, node, request, answer):
        given = request.args.get("state_id", request.args.get("block_id", "0"))
        slot = node.head if given == "head" else int(given) if given.isdigit() else 0
        is_json = answer.status == 200 and answer.body.startswith(b"{")
        if slot >= self.slot and is_json:
            answer.body = json.dumps(answer.json | {"execution_optimistic": True}).encode()
        return answer


@pytest.fixture
def stub():
    """A node whose execution node has verified the blocks before epoch 4."""
    with BeaconNodeStub("capella", head=HEAD, faults=[Optimistic(4 * 8)]) as node:
        yield node


@pytest.mark.more
def test_optimistic_epochs_are_unverified_until_their_chain_is_verified(stub, tmp_path):
    """The index warns, and its coverage has the epochs; later a verified head confirms them."""
    folder = tmp_path / "index"
    with pytest.warns(UnverifiedRows, match="not verified the blocks of epochs 4 to 5: "):
        coverage = bf.index(stub.url, folder, since=2, until=5)
    assert ["explained"] * 2 + ["unverified"] * 2 == coverage["status"].to_list()
    assert [None] * 2 == coverage["remark"].to_list()[:2]
    assert coverage["remark"][2:].str.contains("had not verified the blocks").all()

    # Without new epochs, there is no warning; nothing is verified yet.
    assert coverage.equals(bf.index(stub.url, folder, since=2, until=5))
    stub.faults.clear()
    coverage = bf.index(stub.url, folder, since=2, until=5)
    assert {"explained"} == set(coverage["status"])
    assert 4 == coverage["remark"].null_count()


def test_a_verified_chain_with_another_block_confirms_nothing(stub, tmp_path):
    """The execution node found an invalid block: the chain that it verified has another root."""
    with pytest.warns(UnverifiedRows):
        bf.index(stub.url, tmp_path / "index", since=4, until=4)
    stub.faults[:] = [OtherRoot()]
    coverage = bf.index(stub.url, tmp_path / "index", since=4, until=4)
    assert ["unverified"] == coverage["status"].to_list()


class OtherRoot(Fault):
    """The headers have other roots."""

    def change(self, node, request, answer):
        if answer.status != 200 or "/headers/" not in request.route:
            return answer
        return answer.with_data({**answer.data, "root": "0x" + "77" * 32})


@pytest.mark.more
def test_loads_warn_of_optimistic_rows(stub):
    """Rows of the epochs warn, rows of epochs before do not; so do validators of the head."""
    with bf.node(stub.url, store=False) as node:
        assert 1 == bf.load_balance_history([1], since=1, until=1).height
        with pytest.warns(UnverifiedRows, match=r"of epochs 5: .*Load again when print\(node\)"):
            rows = bf.load_balance_history([1], since=5, until=5)
        assert 1 == rows.height
        with pytest.warns(UnverifiedRows, match="of the head: "):
            bf.load_validators([1])
        with pytest.raises(UnverifiedRows) as caught:
            bf.load_balance_history([1], since=5, until=5, strict=True)
        assert isinstance(caught.value, UnreconciledRows)
        assert caught.value.rows.equals(rows)
        assert "1 unverified" in str(node)
        stub.faults.clear()
        node.index._read_at = -1.0
        stub.advance(HEAD + 1)
        assert 1 == bf.load_validators([1]).height
