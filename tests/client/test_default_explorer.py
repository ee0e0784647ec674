"""Which source loaders use, whatever the order in which sources are opened and closed."""

from __future__ import annotations

import gc
import itertools
import weakref
from contextlib import ExitStack

import pytest

import beaconframes as bf
from beaconframes import client
from beaconframes.calendar import MAINNET
from beaconframes.client.connection import get_explorer
from beaconframes.client.defaults import public_url
from beaconframes.errors import ConfigError, UsageError

from ..support.beacon_node_stub import BeaconNodeStub

KINDS = ("connect", "local", "node", "open")


@pytest.fixture(scope="module")
def stub():
    with BeaconNodeStub("capella", head=95) as stub:
        yield stub


@pytest.fixture
def open_source(chain, running, stub):
    """Return a function that opens a source of loaders."""

    def open_source(kind):
        if kind == "node":
            return bf.node(stub.url, store=False)
        if kind == "connect":
            return bf.connect(running.url)
        return bf.open(chain) if kind == "open" else bf.local(chain)

    return open_source


@pytest.fixture(autouse=True)
def environment(monkeypatch, running):
    """A new explorer from the environment belongs to the shared server."""
    monkeypatch.setenv("BEACONFRAMES_URL", running.url)


@pytest.mark.parametrize("kinds", [*itertools.permutations(KINDS, 2)], ids="-".join)
def test_the_first_source_closes_before_the_second(kinds, open_source):
    """Loaders use the second; then the source before both, never one that is closed."""
    base = open_source("open")
    first, second = map(open_source, kinds)
    first.close()
    assert get_explorer() is second
    second.close()
    second.close()
    assert get_explorer() is base
    base.close()
    assert get_explorer() is not base


def test_blocks_of_sources(open_source):
    """At the end of each block, loaders use the source of the block around it."""
    before = []
    with ExitStack() as blocks:
        for kind in KINDS:
            explorer = open_source(kind)
            if before:
                blocks.callback(lambda: used.append(get_explorer()))
            blocks.enter_context(explorer)
            before.append(explorer)
        used = [get_explorer()]
    assert before[::-1] == used


def test_a_later_connect_replaces_the_earlier_one(running):
    """A program that connects each hour has one open connection, not all of them."""
    with bf.open(running.service.dataset) as opened:
        earlier = weakref.ref(bf.connect(running.url))
        with bf.connect(running.url):
            gc.collect()
            assert earlier() is None
        assert get_explorer() is opened


class ChangingList(list):
    """A list from which another thread removes an item between a check and what follows it."""

    def __len__(self):
        count = super().__len__()
        self.clear()
        return count

    def __contains__(self, item):
        is_contained = super().__contains__(item)
        self.clear()
        return is_contained


@pytest.mark.parametrize("needs_key", [True, False])
def test_threads_may_close_the_default(needs_key, running, monkeypatch):
    """A thread that closes the source of another one is no IndexError or ValueError there."""
    with bf.Explorer(running.url) as explorer:
        explorers = ChangingList([explorer])
        for module in (client.connection, client.explorer):
            monkeypatch.setattr(module, "default_explorers", explorers)
        assert get_explorer(needs_key=needs_key) is explorer
        explorer.close()
        explorers.append(explorer)
        explorer.close()
    assert isinstance(get_explorer(needs_key=needs_key), bf.Explorer)


def test_a_misspelled_variable_of_the_key_is_named(monkeypatch):
    """A key in BEACONFRAMES_APIKEY is not read: the error says so, without the key."""
    monkeypatch.delenv("BEACONFRAMES_API_KEY", raising=False)
    with pytest.raises(ConfigError) as plain:
        public_url(MAINNET, has_key=False)
    monkeypatch.setenv("BEACONFRAMES_APIKEY", "a-secret")
    with pytest.raises(ConfigError) as raised:
        public_url(MAINNET, has_key=False)

    assert "not read" not in str(plain.value)
    assert "none is set (the variable BEACONFRAMES_APIKEY is not read)" in str(raised.value)
    assert "a-secret" not in str(raised.value)


CALLS = {
    "load": lambda explorer: bf.load_validators([3], explorer=explorer).height,
    "plan": lambda explorer: bf.plan(bf.load_validators, [3], explorer=explorer).rows,
    "quota": lambda explorer: bf.quota(explorer) and 1,
    "export": lambda explorer: (
        bf.export(
            bf.load_validators, "rows.csv", validators=[3], explorer=explorer, overwrite=True
        ).rows
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_local_explorer_is_an_explorer(name, chain, tmp_path, monkeypatch):
    """`explorer=` takes what `bf.local` returned, as it takes what `bf.open` returned."""
    monkeypatch.chdir(tmp_path)
    with bf.local(chain) as local, bf.open(chain):
        before = local.requests
        assert local.explorer is local
        assert CALLS[name](local) == 1
        assert (local.requests > before) == (name in {"load", "export"})


@pytest.mark.parametrize("name", CALLS)
def test_an_address_is_not_an_explorer(name, running, tmp_path, monkeypatch):
    """`explorer=` with an address is a UsageError, and not an AttributeError."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"of type str, not an explorer\. Pass what bf\.connect"):
        CALLS[name](running.url)
