"""The reader of a chain: what it makes of the answers of a node."""

from __future__ import annotations

from beaconframes.beacon_node.api import BeaconApi
from beaconframes.beacon_node.reader import ChainReader
from beaconframes.errors import NotFound

from ..support.beacon_node_stub import BeaconNodeStub

SKIPPED = 39
"""The last slot of epoch 4 of the Capella chain has no block."""
BLOCK_ROOTS = 8 + 32 + 8 + 16 + 112
"""Bytes of an SSZ state before its block roots; the slot begins at byte 40."""


def test_the_state_of_the_head_has_the_duties_of_its_epoch(monkeypatch):
    """No state of a slot after the head is requested."""
    api = BeaconApi("http://node.test", transport=BeaconNodeStub("capella").transport)
    whole, requested = bytes(api.state(SKIPPED)), []

    def read_state(slot):
        requested.append(slot)
        return whole[:40] + slot.to_bytes(8, "little") + whole[48:]

    complete = ChainReader(api, api.chain_spec, head_slot=100, has_states=True)
    monkeypatch.setattr(api, "state", read_state)
    partial = ChainReader(api, api.chain_spec, head_slot=35, has_states=True)
    assert complete.proposers(4) == partial.proposers(4)
    assert [SKIPPED, 35] == requested


def test_the_state_of_the_last_block_stands_for_that_of_a_skipped_slot(monkeypatch):
    """Planted quirk: no state of a skipped slot. The state before it has no root of its block."""
    api = BeaconApi("http://node.test", transport=BeaconNodeStub("capella").transport)
    whole = bytes(api.state(SKIPPED))

    def read_state(slot):
        if slot == SKIPPED:
            raise NotFound("no state of a skipped slot")
        start = BLOCK_ROOTS + 32 * slot
        state = bytearray(whole)
        state[40:48] = slot.to_bytes(8, "little")
        state[start : start + 32] = bytes(32)
        return bytes(state)

    def read():
        return ChainReader(api, api.chain_spec, head_slot=100, has_states=True).state(4)

    expected = read()
    monkeypatch.setattr(api, "state", read_state)
    found = read()
    assert expected.slot == SKIPPED == found.slot
    assert expected.block_roots.tolist() == found.block_roots.tolist()
