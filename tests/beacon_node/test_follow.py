"""`follow`: each epoch is added as it becomes final, with the blocks that were orphaned before."""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace
from typing import ClassVar

import pytest

import beaconframes as bf
from beaconframes.beacon_node.chain.reader import ChainReader
from beaconframes.beacon_node.client.api import BeaconApi
from beaconframes.beacon_node.client.records import Event
from beaconframes.beacon_node.client.session import NodeSession
from beaconframes.beacon_node.connection import ChainStatus, NodeConnection
from beaconframes.beacon_node.index import follower
from beaconframes.beacon_node.index.chain_index import ChainIndex
from beaconframes.beacon_node.index.head_events import HeadEvents
from beaconframes.dataset import Dataset
from beaconframes.errors import (
    BadRequest,
    ConnectionFailed,
    NotFound,
    NotServed,
    ResponseError,
    ServerError,
    Unauthorized,
)

from ..support.beacon_node_stub import BeaconNodeStub

# With the head at slot 48, epoch 4 is finalized, so that epoch 1 is settled; with 72, epoch 3 is.
START, LATER = 48, 72
MISSED = 18


@pytest.fixture
def no_polls(monkeypatch):
    """Let only events end a wait."""
    monkeypatch.setattr(follower, "seconds_to_poll", lambda *_: 3600)


@pytest.mark.more
def test_each_epoch_is_added_as_it_becomes_final(tmp_path, no_polls):
    """Epochs that may be reorganized are not stored; an orphan replaces the missed slot.

    The call ends after the epoch in progress; what it has stored is complete.
    """
    stop, seen = threading.Event(), []

    def on_epoch(progress):
        seen.append((progress.epoch, progress.done, progress.total))
        if progress.epoch == 1:
            stored = Dataset.open(tmp_path / "index").coverage("blocks")
            seen.append(stored)
            # On a busy machine, the thread of the event stream may be late.
            while not any(root in line for line in stub.log):
                time.sleep(0.01)
            stub.advance(LATER)
        elif progress.epoch == 2:
            stop.set()

    with (
        BeaconNodeStub("capella", head=START, events_since=0) as stub,
        ThreadPoolExecutor(1) as executor,
    ):
        root = stub.add_orphan(MISSED)
        coverage = bf.follow(
            stub.url, tmp_path / "index", executor=executor, stop=stop, on_epoch=on_epoch
        )
        lines = [line.rpartition("/blocks/")[2] for line in stub.log if "/blocks/" in line]
        requested = [int(block_id) for block_id in lines if block_id.isdecimal()]

    assert [(0, 1, 2), (1, 2, 2), {"": ((0, 1),)}, (2, 1, 2)] == seen
    assert [(0, "explained"), (1, "explained"), (2, "explained")] == coverage.select(
        "epoch", "status"
    ).rows()
    dataset = Dataset.open(tmp_path / "index")
    assert (2, 23) == (dataset.meta["latest_epoch"], dataset.meta["latest_slot"])
    blocks = dataset.scan("blocks").collect().sort("slot")
    assert list(range(24)) == blocks["slot"].to_list()
    assert [(MISSED, "orphaned", root)] == blocks.filter(status="orphaned").select(
        "slot", "status", "block_root"
    ).rows()
    epochs = dataset.scan("epochs").sort("epoch").collect()
    assert [0, 0, 1] == epochs["orphaned_blocks"].to_list()
    # Both rounds together request each final block once; the probe requests one of them.
    assert 48 > max(requested)
    assert len(requested) <= len(set(requested)) + 1


class FakeApi:
    """An API whose event stream has given events and errors, and blocks by root."""

    def __init__(self, api, streams, blocks):
        self.chain_spec, self._api, self.streams = api.chain_spec, api, iter(streams)
        self.blocks, self.requested = blocks, []

    def events(self, topics, *, stop):
        for event in next(self.streams):
            if isinstance(event, Exception):
                raise event
            yield event

    def block(self, root):
        self.requested.append(root)
        return self.blocks.get(root)


@pytest.fixture
def stub():
    """A node without a socket."""
    return BeaconNodeStub("capella")


def block_at(stub, slot):
    """Return the block of a slot, with another proposer's root as that of an orphan."""
    return BeaconApi(NodeSession("http://node", transport=stub.transport)).block(slot)


def test_blocks_that_were_never_the_head_are_requested(stub):
    """A late block has no reorganization: it is not the head when the next block is."""
    api = FakeApi(
        BeaconApi(NodeSession("http://node", transport=stub.transport)),
        [],
        {"0xb": block_at(stub, 9)},
    )
    events = HeadEvents(api, on_finalized=lambda: None)
    for topic, slot, root in (
        ("block", 8, "0xa"), ("head", 8, "0xa"), ("block", 9, "0xb"), ("block", 10, "0xc"),
        ("head", 10, "0xc"), ("block", 11, "0xd"), ("head", 11, "0xd"),
    ):  # fmt: skip
        events.handle(Event(topic, {"slot": str(slot), "block": root}))

    assert ["0xb"] == api.requested
    assert [("0xb", 9, "orphaned")] == [
        (root, block.slot, block.status) for root, block in events.blocks.items()
    ]
    events.forget(10)
    assert {} == events.blocks


def test_a_deep_reorganization(stub):
    """All blocks of the old head are requested, each by the parent root of the next."""
    last, parent = block_at(stub, 10), block_at(stub, 9)
    parents = last["message"]["parent_root"], parent["message"]["parent_root"]
    blocks = {"0xold": last, parents[0]: parent, parents[1]: block_at(stub, 8)}
    api = FakeApi(BeaconApi(NodeSession("http://node", transport=stub.transport)), [], blocks)
    events = HeadEvents(api, on_finalized=lambda: None)
    events.handle(Event("chain_reorg", {"slot": "11", "depth": "2", "old_head_block": "0xold"}))

    assert ["0xold", parents[0]] == api.requested
    assert {10, 9} == {block.slot for block in events.blocks.values()}


def test_the_stream_is_opened_again_after_an_error(stub, monkeypatch, caplog):
    """An error that a retry cannot resolve ends it, with a warning; so has an invalid event."""
    finalized = threading.Semaphore(0)
    checkpoint = Event("finalized_checkpoint", {"epoch": "3"})
    streams = [
        [Event("head", {"slot": "x"}), checkpoint, ConnectionFailed("the stream ended")],
        [checkpoint, NotServed("no events")],
    ]
    api = FakeApi(BeaconApi(NodeSession("http://node", transport=stub.transport)), streams, {})
    events = HeadEvents(api, on_finalized=finalized.release)
    monkeypatch.setattr(events._stop, "wait", lambda _seconds: False)
    with events:
        assert finalized.acquire(timeout=60)
        assert finalized.acquire(timeout=60)
        events._thread.join(60)
        assert not events._thread.is_alive()
    assert ["an event head is invalid: KeyError('block')", "orphaned blocks are not recorded"] == [
        record.getMessage().partition(": no events")[0] for record in caplog.records
    ]


class FakeIndexer:
    """An index that notes which epochs it gets; the second write fails."""

    writes: ClassVar = []
    heads: ClassVar = []
    clock: ClassVar = SimpleNamespace(seconds=0)

    def __init__(self):
        self.unsettled = None
        self.reader = self.chain_index = self
        self.orphans, self.is_closed = None, False

    def write(self, _status, epochs, **_options):
        assert not self.is_closed
        self.writes.append((id(self), epochs))
        if len(self.writes) == 2:
            raise ConnectionFailed("refused")

    def forget_from(self, epoch):
        self.unsettled = epoch

    def write_head(self):
        self.heads.append(len(self.writes))
        self.clock.seconds += 100

    def coverage(self):
        return "coverage"

    possible_orphans: ClassVar = {}

    def note_possible_orphans(self, slots):
        self.possible_orphans.update(slots)

    def close(self):
        self.is_closed = True


def test_failed_requests_are_repeated(stub, monkeypatch, caplog):
    """The node is asked again after a slot, by a new reader; Ctrl-C returns what is stored."""
    monkeypatch.setattr(FakeIndexer, "writes", [])
    monkeypatch.setattr(FakeIndexer, "heads", [])
    clock = SimpleNamespace(seconds=0, monotonic=lambda: clock.seconds)
    monkeypatch.setattr(FakeIndexer, "clock", clock)
    monkeypatch.setattr(follower, "time", clock)
    connection = NodeConnection("http://node")
    connection.api = BeaconApi(NodeSession("http://node", transport=stub.transport))
    heads = iter([ChainStatus(47, 4), *[ChainStatus(55, 5)] * 3])
    connection.read_status = lambda: next(heads)
    waits, keep = [], []

    class Interrupted(follower.Follower):
        def wait(self, *, is_added):
            waits.append(is_added)
            clock.seconds += 900 if len(waits) == 3 else 10
            if len(waits) == 4:
                raise KeyboardInterrupt

    def open_indexer(_status):
        keep.append(FakeIndexer())
        return keep[-1]

    found = Interrupted(
        connection, open_indexer, since=0, executor=None, on_epoch=None, stop=threading.Event()
    ).run()

    first, second = map(id, keep)
    assert [(first, range(2)), (first, range(2, 3)), (second, range(2, 3))] == FakeIndexer.writes
    assert ([True, False, True, True], "coverage") == (waits, found)
    assert [4, 5] == [indexer.unsettled for indexer in keep]
    # The head took 100 s, so that it is written again 900 s later.
    assert [1, 3] == FakeIndexer.heads
    assert "refused; retrying in one slot" in caplog.text


@pytest.mark.parametrize(("since", "written"), [(3, range(3, 4)), ("0m", range(6, 7))])
def test_the_first_epoch_may_become_final_later(stub, caplog, since, written):
    """The call waits for it, and says so once; "now" is the time of the call."""
    connection = NodeConnection("http://node")
    connection.api = BeaconApi(NodeSession("http://node", transport=stub.transport))
    # Epochs of 8 slots; the income of epoch 1 is settled once epoch 4 is finalized.
    heads = iter([ChainStatus(47, 4), ChainStatus(55, 5), ChainStatus(63, 6)])
    heads = itertools.chain(heads, [ChainStatus(71, 7), ChainStatus(79, 8), ChainStatus(87, 9)])
    connection.read_status = lambda: next(heads)
    writes = []

    class Indexer(FakeIndexer):
        def write(self, _status, epochs, **_options):
            writes.append(epochs)

        def write_head(self):
            """Write nothing."""

    following = follower.Follower(
        connection, lambda _: Indexer(), since=since, executor=None, on_epoch=None,
        stop=threading.Event(),
    )  # fmt: skip
    added = [following.add_epochs() for _ in range(6)]

    assert [True] * 6 == added
    assert written == writes[0]
    waiting = f"epoch {written.start} is not final yet: waiting for it"
    assert [waiting] == [record.getMessage() for record in caplog.records]


def test_invalid_responses_are_repeated_until_there_are_many_in_a_row(stub):
    """A damaged state, or a reorganization between two requests, ended the call."""
    connection = NodeConnection("http://node")
    connection.api = BeaconApi(NodeSession("http://node", transport=stub.transport))
    damaged, limit = ResponseError("the state is damaged"), follower.MAX_INVALID
    answers = iter([*[damaged] * (limit - 1), ChainStatus(5, 0), *[damaged] * limit])

    def read_status():
        if isinstance(answer := next(answers), Exception):
            raise answer
        return answer

    connection.read_status = read_status
    following = follower.Follower(
        connection, None, since=0, executor=None, on_epoch=None, stop=threading.Event()
    )
    added = [following.add_epochs() for _ in range(2 * limit - 1)]
    assert [*[False] * (limit - 1), True, *[False] * (limit - 1)] == added
    with pytest.raises(ResponseError, match="is damaged"):
        following.add_epochs()


@pytest.mark.parametrize("kind", [NotFound, BadRequest])
def test_what_the_node_does_not_have_is_requested_again(stub, kind):
    """A node that restarts has it later; one that has pruned it never: then the error says so."""
    connection = NodeConnection("http://node")
    connection.api = BeaconApi(NodeSession("http://node", transport=stub.transport))
    connection.read_status = lambda: ChainStatus(47, 4)
    limit, writes = follower.MAX_INVALID, []

    class Indexer(FakeIndexer):
        def write(self, _status, epochs, **_options):
            writes.append(epochs)
            raise kind("epoch 0: the node answered with status 404", hint="Use an archive node")

        def write_head(self):
            """Nothing is stored."""

    following = follower.Follower(
        connection, lambda _: Indexer(), since=0, executor=None, on_epoch=None,
        stop=threading.Event(),
    )  # fmt: skip
    assert [False] * (limit - 1) == [following.add_epochs() for _ in range(limit - 1)]
    with pytest.raises(kind, match=r"epoch 0: .*Use an archive node.*since=-1"):
        following.add_epochs()
    assert [range(2)] * limit == writes
    # Credentials that are wrong are wrong after a slot, too.
    refused = follower.Follower(
        connection, lambda _: Indexer(), since=0, executor=None, on_epoch=None,
        stop=threading.Event(),
    )  # fmt: skip
    kind = Unauthorized
    with pytest.raises(Unauthorized):
        refused.add_epochs()


def test_a_later_call_requests_possible_orphans_again(stub, tmp_path):
    """The event stream has an orphan once; the index notes it until its epoch is final."""
    api = BeaconApi(NodeSession("http://node", transport=stub.transport))
    spec = api.chain_spec
    index = ChainIndex.open(tmp_path / "index", spec, source="http://node")
    index.note_possible_orphans({"0xa": 9, "0xb": 10})
    later = ChainIndex.open(tmp_path / "index", spec, source="http://node")
    events = HeadEvents(FakeApi(api, [], {"0xa": block_at(stub, 9)}), on_finalized=lambda: None)
    events.request(later.possible_orphans)

    assert {"0xa": 9} == {root: block.slot for root, block in events.blocks.items()}
    later.note_possible_orphans({})
    assert {} == index.possible_orphans


class OneFailure(FakeApi):
    """An API that fails to answer the first request of a block."""

    def block(self, root):
        found = super().block(root)
        if len(self.requested) == 1:
            raise ServerError("overloaded")
        return found


@pytest.mark.parametrize("start", ["stored", "reorganization"])
def test_an_orphan_is_requested_again_after_an_error(stub, start):
    """The node has the block only for a short time, so the next event is the next attempt."""
    api = BeaconApi(NodeSession("http://node", transport=stub.transport))
    events = HeadEvents(OneFailure(api, [], {"0xa": block_at(stub, 9)}), on_finalized=lambda: None)
    if start == "stored":
        events.request({"0xa": 9})
        assert not events.blocks
    else:
        events.handle(Event("block", {"slot": "9", "block": "0xa"}))
        events.handle(Event("chain_reorg", {"old_head_block": "0xa", "depth": "1"}))
    events.handle(Event("block", {"slot": "10", "block": "0xb"}))

    assert {"0xa": 9} == {root: block.slot for root, block in events.blocks.items()}
    events.request({"0xd": 11})
    events.wanted["0xc"] = 3
    events.forget(10)
    assert ({}, {}) == (events.blocks, events.wanted)


def test_a_stopped_call_notes_the_orphans_of_epochs_that_it_left_out(stub, monkeypatch):
    """It ends after the epoch in progress; the next call needs the blocks of the others."""
    monkeypatch.setattr(FakeIndexer, "writes", [])
    monkeypatch.setattr(FakeIndexer, "possible_orphans", {})
    connection = NodeConnection("http://node")
    connection.api = BeaconApi(NodeSession("http://node", transport=stub.transport))
    connection.read_status = lambda: ChainStatus(71, 7)
    stop = threading.Event()

    class Stopped(FakeIndexer):
        def write(self, *arguments, **options):
            super().write(*arguments, **options)
            stop.set()

    one = follower.Follower(
        connection, lambda _: Stopped(), since=0, executor=None, on_epoch=None, stop=stop
    )
    one._events.blocks["0xa"] = SimpleNamespace(slot=9)
    one._events.wanted["0xb"] = 10
    one.add_epochs()
    one._note_orphans()

    assert {"0xa": 9, "0xb": 10} == FakeIndexer.possible_orphans


def test_polls_follow_the_first_block_of_an_epoch():
    """A node finalizes epochs when it processes the first block of an epoch."""
    chain = bf.MAINNET
    start = chain.genesis + timedelta(seconds=384 * 1000)
    for passed, expected in ((0, 12), (11, 1), (12, 384), (200, 196)):
        now = (start + timedelta(seconds=passed)).timestamp()
        assert expected == pytest.approx(follower.seconds_to_poll(chain, now))


def test_epochs_that_are_not_final_are_read_again(stub):
    """A reader serves many rounds: what it has read of an open epoch may be of another fork."""
    api = BeaconApi(NodeSession("http://node", transport=stub.transport))
    reader = ChainReader(api, api.chain_spec, head_slot=stub.head, has_states=True)
    before = [(reader.state(epoch), reader.signed_block(epoch * 8 + 1)) for epoch in (2, 3)]
    reader.forget_from(3)
    after = [(reader.state(epoch), reader.signed_block(epoch * 8 + 1)) for epoch in (2, 3)]
    reader.close()

    assert [True, False] == [a is b for (a, _), (b, _) in zip(before, after, strict=True)]
    assert [True, False] == [a is b for (_, a), (_, b) in zip(before, after, strict=True)]
