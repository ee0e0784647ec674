"""The epochs that an index covers: errors state why there are none."""

from __future__ import annotations

import pytest

from beaconframes.beacon_node.index.arguments import choose_part
from beaconframes.beacon_node.index.indexing import index
from beaconframes.errors import NotFound, ServerError, UsageError
from beaconframes.http import retry

from ..support.beacon_node_faults import Fault, PrunedStates
from ..support.beacon_node_stub import BeaconNodeStub


@pytest.mark.parametrize("head", [3, 12, 31])
def test_a_young_chain_has_no_final_epoch(head, tmp_path):
    with (
        BeaconNodeStub("altair", head=head) as stub,
        pytest.raises(UsageError, match="no final epoch yet"),
    ):
        index(stub.url, tmp_path / "index")


def test_a_node_that_started_lately_has_no_final_epoch_yet(tmp_path):
    """All epochs that the node can answer are after the last final one."""
    with (
        BeaconNodeStub("electra", faults=[PrunedStates(epochs=5)]) as stub,
        pytest.raises(UsageError, match="epochs from 46 on, and the last final one is 44"),
    ):
        index(stub.url, tmp_path / "index")


@pytest.mark.parametrize(("head", "last"), [(94, 9), (95, 10), (96, 10)])
def test_the_last_epoch_of_an_index_needs_all_slots_of_the_next_one(head, last, tmp_path):
    """Blocks of the next epoch include votes, and its end pays for them: slot 95 is its last."""
    with BeaconNodeStub("electra", head=head, faults=["debug-forbidden"]) as stub:
        with pytest.raises(UsageError, match=rf"epoch {last + 1} .* last complete one is {last}\."):
            index(stub.url, tmp_path / "index", since=last, until=last + 1)
        found = index(stub.url, tmp_path / "index", since=last, until=last, validators=[1])
    assert found["epoch"].to_list() == [last]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 10])
def test_parts_have_every_epoch_once(count):
    """Machines that index a part each leave out no epoch, and do similar work."""
    parts = [choose_part(range(5, 15), f"{n + 1}/{count}", 5, "2026-01-02") for n in range(count)]

    assert [*range(5, 15)] == [epoch for part in parts for epoch in part]
    sizes = {len(part) for part in parts}
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"part": "0/2"}, "part='0/2' is not a part"),
        ({"part": "3/2"}, "part='3/2' is not a part"),
        ({"part": "half"}, "part='half' is not a part"),
        ({"part": "1/11"}, "10 epochs cannot be divided into 11 parts"),
        ({"until": "finalized"}, "the same on each machine"),
        ({"until": -1}, "the same on each machine"),
        ({"since": None}, "the same on each machine"),
        ({"since": "30d"}, "the same on each machine"),
    ],
)
def test_a_part_that_is_not_the_same_on_each_machine_is_refused(arguments, message):
    with pytest.raises(UsageError, match=message):
        choose_part(range(5, 15), **({"part": "1/2", "since": 5, "until": 14} | arguments))


class NoGenesisState(Fault):
    """The node has the state of each slot, but not that of genesis by its name."""

    def __init__(self, status):
        self.status = status

    def refuse(self, node, request):
        if request.args.get("state_id") == "genesis":
            return node.error(self.status, "missing state at slot 0")
        return None


def test_a_node_without_the_state_of_genesis(tmp_path, monkeypatch):
    """Epoch 0 fails with the argument that leaves it out, and this argument works."""
    monkeypatch.setattr(retry, "back_off", lambda _: 0.0)
    missing = NoGenesisState(404)
    with BeaconNodeStub("capella", head=39, faults=[missing]) as stub:
        for missing.status, kind in ((404, NotFound), (500, ServerError)):
            with pytest.raises(kind, match="epoch 0") as refused:
                index(stub.url, tmp_path / "whole", until=1)
            assert refused.value.hint.startswith("Leave out epoch 0, which starts with the state")
            assert "since=1" in refused.value.hint
        found = index(stub.url, tmp_path / "index", since=1, until=1)

    assert found["epoch"].to_list() == [1]
