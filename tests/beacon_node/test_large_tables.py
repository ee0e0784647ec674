"""Chains with many validators: their largest table is indexed on request only."""

from __future__ import annotations

from contextlib import closing

import pytest
from click.testing import CliRunner

import beaconframes as bf
from beaconframes.beacon_node import probe
from beaconframes.beacon_node.chain import reader
from beaconframes.beacon_node.connection import NodeConnection
from beaconframes.beacon_node.index import indexing
from beaconframes.beacon_node.index.arguments import choose_tables
from beaconframes.beacon_node.index.verdicts import read_report
from beaconframes.cli import commands
from beaconframes.errors import TableNotInDataset, UsageError

from ..support.beacon_node_stub import BeaconNodeStub

LARGE = "slot_attestations"


@pytest.fixture
def stub(monkeypatch):
    """A chain whose 16 validators are many."""
    monkeypatch.setattr(probe, "MANY_VALIDATORS", 15)
    monkeypatch.setattr(indexing, "MANY_VALIDATORS", 15)
    with BeaconNodeStub("capella", head=39) as stub:
        yield stub


@pytest.mark.more
def test_the_largest_table_is_left_out_until_it_is_requested(stub, tmp_path, caplog):
    """The log, the report and the error name it; once it is there, later calls extend it."""
    folder = tmp_path / "index"
    bf.index(stub.url, folder, until=0)

    (line,) = [record.message for record in caplog.records if LARGE in record.message]
    assert 'tables="all"' in line
    assert read_report(folder).left_out == (LARGE,)
    printed = CliRunner().invoke(commands, ["index", "--out", str(folder), "--check"]).stdout
    assert f"Left out because of its size: {LARGE}. --tables {LARGE} adds it\n" in printed
    assert {"blocks", "attestations"} <= set(read_report(folder).tables)
    with bf.open(folder), pytest.raises(TableNotInDataset, match=f"has no {LARGE}") as refused:
        bf.load_slot_attestations([5])
    assert f"beaconframes index ... --tables {LARGE}" in refused.value.hint

    bf.index(stub.url, folder, until=0, tables=LARGE)
    bf.index(stub.url, folder, until=1)
    assert read_report(folder).left_out == ()
    assert bf.Dataset.open(folder).coverage(LARGE) == {"": ((0, 15),)}


def test_all_tables_of_a_large_chain(stub, tmp_path):
    with closing(NodeConnection(stub.url)) as connection:
        assert {LARGE, "blocks", "attestations"} <= set(choose_tables(connection, "all"))
    with pytest.raises(UsageError, match="'slot' is not a table"):
        bf.index(stub.url, tmp_path / "index", until=0, tables="slot")


def test_what_a_node_can_answer_names_the_table(stub):
    """Loads from a node still have it: the line is about an index."""
    with bf.node(stub.url, store=False) as node:
        assert "without slot_attestations, unless" in str(node)
        assert bf.load_slot_attestations([5]).height > 0


@pytest.mark.parametrize(("limit", "calls"), [(15, 1), (16, 0)])
def test_large_arrays_are_returned_only_of_large_chains(monkeypatch, limit, calls):
    """F9: the arrays of states of a million validators were retained after each epoch."""
    mapped = []
    monkeypatch.setattr(reader, "MANY_VALIDATORS", limit)
    monkeypatch.setattr(reader, "map_large_arrays", lambda: mapped.append(1))
    with BeaconNodeStub("capella", head=39) as stub, closing(NodeConnection(stub.url)) as node:
        node.build_reader(39, "states", {}).state(3)

    assert calls == len(mapped)
