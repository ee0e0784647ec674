"""Rows of epochs that are not final: marked until they are removed, also with two writers."""

from __future__ import annotations

import math
from contextlib import closing

import pytest

import beaconframes as bf
from beaconframes.beacon_node.connection import NodeConnection
from beaconframes.beacon_node.index.chain_index import ChainIndex
from beaconframes.beacon_node.index.indexing import index
from beaconframes.beacon_node.loads import growing_index
from beaconframes.errors import DatasetError

from ..support.beacon_node_stub import BeaconNodeStub

HEAD, LATER = 95, 119
SETTLED, LAST = 6, 10
"""By hand: with the head in slot 95, epoch 9 is finalized, and 10 is the last with known income."""


@pytest.fixture
def stub():
    """A node whose chain has 12 epochs of 8 slots."""
    with BeaconNodeStub("capella", head=HEAD) as node:
        yield node


def read_mark(chain_index):
    """Return the first epoch whose rows are marked as unsettled."""
    return chain_index.dataset.meta.get("first_unsettled_epoch")


@pytest.mark.more
def test_another_process_does_not_unmark_the_rows_of_a_load(stub, tmp_path, monkeypatch):
    """A second node opens the store between two commits of a load; no row of the load is lost."""
    with bf.node(stub.url, store=tmp_path) as node:
        chain_index = node.index.chain_index
        write, opened = growing_index.write_epochs, []

        def write_and_open(*arguments, **options):
            for task in write(*arguments, **options):
                if task.epoch == SETTLED + 2 and not opened:
                    opened.append(task.epoch)
                    bf.node(stub.url, store=tmp_path).close()
                yield task

        monkeypatch.setattr(growing_index, "write_epochs", write_and_open)
        # A warning of missing rows would be an error.
        blocks = bf.load_epoch_slots(since=SETTLED, until=LAST, explorer=node)
        assert opened
        assert list(range(SETTLED, LAST + 1)) == blocks["epoch"].unique().sort().to_list()
        assert SETTLED + 1 == read_mark(chain_index)
        chain_index.remove_unsettled()
        assert {"": ((SETTLED, SETTLED),)} == chain_index.dataset.coverage("blocks")
        assert read_mark(chain_index) is None


@pytest.mark.more
def test_another_process_does_not_unmark_the_rows_of_an_index(stub, tmp_path):
    """A second writer of the folder removes rows between two commits of `index`."""
    with closing(NodeConnection(stub.url)) as connection:
        index(stub.url, tmp_path, since=SETTLED, until=SETTLED)
        second = ChainIndex.open(tmp_path, connection.spec, source=stub.url)

    def remove_unsettled(progress):
        if progress.epoch == LAST - 1:
            second.remove_unsettled()

    index(stub.url, tmp_path, since=SETTLED, until=LAST, on_epoch=remove_unsettled)
    assert SETTLED + 1 == read_mark(second)


@pytest.mark.more
def test_a_writer_with_a_later_head_leaves_earlier_rows_marked(stub, tmp_path):
    """The epoch of a load is not final when it is written, but final for a second node."""
    with bf.node(stub.url, store=tmp_path) as node:
        stub.advance(LATER)
        with bf.node(stub.url, store=tmp_path) as second:
            last = second.index.head.epoch
            # A slot of the recording has two seconds: with a later head, its rows are settled.
            node.index._read_at = math.inf
            bf.load_epoch_slots(since=LAST, until=LAST, explorer=node)
            bf.load_epoch_slots(since=last, until=last, explorer=second)
            assert SETTLED + 1 == read_mark(second.index.chain_index)


def test_a_load_keeps_its_rows_while_the_head_moves(stub, tmp_path):
    """A load of rows that are not final lasts longer than a slot: the head is that of its start."""
    with bf.node(stub.url, store=tmp_path) as node:
        write = node.index._write

        def write_slowly(*arguments):
            write(*arguments)
            stub.advance(LATER)
            node.index._read_at = -math.inf

        node.index._write = write_slowly
        blocks = bf.load_epoch_slots(since=LAST, until=LAST)
        assert list(range(LAST * 8, LAST * 8 + 8)) == blocks["slot"].to_list()
        assert LAST == node.index.head.epoch
        bf.load_validators([1])
        assert LATER // 8 - 1 == node.index.head.epoch


def test_an_error_of_the_removal_leaves_rows_and_mark(stub, tmp_path):
    """Rows and mark are removed in one commit: no other process writes between the two."""
    with bf.node(stub.url, store=tmp_path) as node:
        bf.load_epoch_slots(since=SETTLED, until=LAST)
        chain_index = node.index.chain_index
        dataset = chain_index.dataset
        before = {name: dataset.coverage(name) for name in dataset.grids()}
        (dataset.path / dataset.segments("slot_withdrawals")[-1].path).unlink()
        with pytest.raises(DatasetError):
            chain_index.remove_unsettled()
        assert before == {name: dataset.coverage(name) for name in dataset.grids()}
        assert SETTLED + 1 == read_mark(chain_index)
