"""Requests per epoch of an index: 33 on mainnet with states, at most 36 without them."""

from __future__ import annotations

import pytest

from beaconframes.beacon_node.index.indexing import index

from ..support.beacon_node_stub import BeaconNodeStub

SLOTS = 8
FIRST, LAST = 9, 10


def count(folder, last, **options):
    """Return the requests of an index of all tables, from the epoch FIRST to *last*."""
    faults = options.pop("faults", ())
    with BeaconNodeStub("electra", faults=faults) as stub:
        index(stub.url, folder, since=FIRST, until=last, **options)
        return sum(stub.counts.values())


@pytest.mark.more
def test_an_epoch_needs_its_blocks_and_one_state(tmp_path):
    """All tables of all validators: 8 blocks here, 32 on mainnet, and one state."""
    few, more = (count(tmp_path / str(last), last) for last in (LAST, LAST + 6))

    assert more - few == 6 * (SLOTS + 1)


@pytest.mark.more
def test_an_epoch_needs_four_requests_beside_its_blocks_without_states(tmp_path):
    """All tables of a validator that neither proposes nor sits in the committee meanwhile."""
    few, more = (
        count(tmp_path / str(last), last, validators=[3], faults=["debug-forbidden"])
        for last in (LAST, LAST + 6)
    )

    # Each period needs its committee.
    periods = 1
    assert more - few <= 6 * (SLOTS + 4) + periods
