"""The reader of a chain: what it makes of the answers of a node."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from beaconframes.beacon_node.amounts.states import StateAmounts
from beaconframes.beacon_node.chain.cached_node import RequestCache
from beaconframes.beacon_node.chain.reader import ChainReader
from beaconframes.beacon_node.client.api import BeaconApi
from beaconframes.beacon_node.client.session import NodeSession
from beaconframes.beacon_node.index.coverage import EpochTask
from beaconframes.beacon_node.index.epoch_builder import build_epoch
from beaconframes.beacon_node.tables import REWARD_TABLES
from beaconframes.errors import ConnectionFailed, NotFound, ResponseError

from ..support.beacon_node_stub import BeaconNodeStub
from ..support.recorded_blocks import load_blocks

SKIPPED = 39
"""The last slot of epoch 4 of the Capella chain has no block."""
BLOCK_ROOTS = 8 + 32 + 8 + 16 + 112
"""Bytes of an SSZ state before its block roots; the slot begins at byte 40."""


def test_the_state_of_the_head_has_the_duties_of_its_epoch(monkeypatch):
    """No state of a slot after the head is requested."""
    api = BeaconApi(NodeSession("http://node.test", transport=BeaconNodeStub("capella").transport))
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
    api = BeaconApi(NodeSession("http://node.test", transport=BeaconNodeStub("capella").transport))
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


@pytest.mark.parametrize(
    ("slots", "expected"), [([], [SKIPPED]), ([32, SKIPPED], [SKIPPED]), ([32, 35], [SKIPPED, 35])]
)
def test_a_refused_state_is_requested_once_more_for_an_earlier_block(monkeypatch, slots, expected):
    """A state that no earlier block of its epoch can replace is an error of the node."""
    api = BeaconApi(NodeSession("http://node.test", transport=BeaconNodeStub("capella").transport))
    reader = ChainReader(api, api.chain_spec, head_slot=100, has_states=True)
    monkeypatch.setattr(reader, "block_messages", lambda epoch: dict.fromkeys(slots, b""))
    requested = []

    def refuse(slot):
        requested.append(slot)
        raise NotFound("no state")

    with pytest.raises(NotFound, match="no state"):
        reader.request_state(SKIPPED, refuse)
    assert expected == requested


def test_a_closed_reader_sends_no_request(monkeypatch):
    """Close ends hanging requests and waits for their threads; one that starts later fails.

    A thread that sends a request after the session was closed would open a connection again.
    """
    hang, sent, late = threading.Event(), threading.Event(), threading.Event()

    class Stop(threading.Event):
        def set(self):
            super().set()
            late.set()

    stub = BeaconNodeStub("capella")

    class Hanging(httpx.BaseTransport):
        def handle_request(self, request):
            if "/blocks/" in request.url.path:
                sent.set()
                hang.wait(60)
            return stub.transport.handle_request(request)

    api = BeaconApi(NodeSession("http://node.test", transport=Hanging()))
    reader = ChainReader(api, api.chain_spec, head_slot=100, has_states=False)
    reader._stop = Stop()
    request_block = api.block

    def start_late(slot):
        """Request slot 9 after the reader has begun to close."""
        if slot == 9:
            late.wait(60)
        return request_block(slot)

    monkeypatch.setattr(api, "block", start_late)
    count, earlier = api.request_count, set(threading.enumerate())
    load = threading.Thread(target=pytest.raises, args=(Exception, reader.signed_blocks, 1))
    load.start()
    assert sent.wait(60)
    started = time.monotonic()
    reader.cancel()
    assert time.monotonic() - started < 30
    load.join()
    running = {each.name for each in set(threading.enumerate()) - earlier}
    assert not [name for name in running if name.startswith("beacon-node")]
    assert api.session._session._transport is None
    assert api.request_count - count < 8, "slot 9 was requested"
    with pytest.raises(ConnectionFailed, match="the load was stopped before this request"):
        reader.signed_block(3)
    hang.set()


def test_states_are_freed_once_no_epoch_needs_them():
    """One state stays in memory after an epoch, and the next epoch requests one state more."""
    stub = BeaconNodeStub("electra")
    api = BeaconApi(NodeSession("http://node.test", transport=stub.transport))
    reader = ChainReader(api, api.chain_spec, head_slot=8 * 20 - 1, has_states=True)
    amounts, tables = StateAmounts(reader), (*REWARD_TABLES, "attestations", "blocks")
    requested = []
    for epoch in (9, 10, 11):
        result = build_epoch(reader, amounts, EpochTask(epoch, tables, None))
        assert epoch + 2 == result.verified_until
        assert [epoch + 2] == list(reader._states._values)
        assert [] == list(reader._objects["attestation rewards"]._values)
        requested.append(stub.counts["/eth/v2/debug/beacon/states/{state_id}"])
    assert [4, 5, 6] == requested


def test_a_block_with_a_validator_that_no_state_has_is_an_error(monkeypatch):
    """Its content has another root than the state of its own epoch, and the one after."""
    stub = BeaconNodeStub("electra")
    api = BeaconApi(NodeSession("http://node.test", transport=stub.transport))
    path = ("message", "body", "execution_payload", "withdrawals", 1, "validator_index")
    block, request_block = load_blocks("electra").change(18, path, "900"), api.block
    monkeypatch.setattr(api, "block", lambda slot: block if slot == 18 else request_block(slot))
    reader = ChainReader(api, api.chain_spec, head_slot=100, has_states=True)
    assert reader.slots(1)
    for read in (reader.slots, reader.votes_without_last_root, reader.check_blocks):
        with pytest.raises(ResponseError, match=r"slot 18 .*its content has the root 0x"):
            read(2)


def test_threads_that_wait_for_one_request_raise_an_error_each():
    """An error that one thread has completed with its epoch would name it in the others as well."""
    cache = RequestCache(1)
    is_requested, may_fail = threading.Event(), threading.Event()

    def request():
        is_requested.set()
        assert may_fail.wait(60)
        raise NotFound("state not found")

    def read(epoch):
        try:
            cache.get("state", request)
        except NotFound as error:
            error.message = f"epoch {epoch}: {error.message}"
            return error.message

    with ThreadPoolExecutor(3) as threads:
        futures = [threads.submit(read, 10)]
        assert is_requested.wait(60)
        futures += [threads.submit(read, epoch) for epoch in (9, 11)]
        while sum(future.running() for future in futures) < 3:
            time.sleep(0.001)
        # The threads run, but may not have arrived at the cache: both orders have to pass.
        time.sleep(0.01)
        may_fail.set()
        found = [future.result() for future in futures]
    assert [f"epoch {epoch}: state not found" for epoch in (10, 9, 11)] == found


def test_an_epoch_with_income_has_its_unexplained_changes():
    """Earlier epochs have compared it, but not the epochs after it."""
    stub = BeaconNodeStub("electra")
    api = BeaconApi(NodeSession("http://node.test", transport=stub.transport))
    reader = ChainReader(api, api.chain_spec, head_slot=8 * 20 - 1, has_states=True)
    result = build_epoch(reader, StateAmounts(reader), EpochTask(9, ("income_history",), None))
    assert {"income_history", "unexplained_changes"} == result.frames.keys()
