"""The epochs that an index covers: errors state why there are none."""

from __future__ import annotations

import pytest

from beaconframes.beacon_node.indexing import index
from beaconframes.errors import UsageError

from ..support.beacon_node_faults import PrunedStates
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
