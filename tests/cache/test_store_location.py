"""Where the store is, who can read it, and which data are stored separately."""

from __future__ import annotations

import stat

import pytest

import beaconframes as bf
from beaconframes import errors
from beaconframes.server import Server

from ..support.store_loads import CALLS, connect, load_counted


@pytest.mark.more
def test_each_service_and_chain_has_its_own_store(server, store, chain):
    """F08: each address, path and chain has its own store."""
    load_counted(server, store, CALLS["balances"])
    with Server(chain) as other:
        assert load_counted(other, store, CALLS["balances"]).requests > 0
    stored = {bf.Explorer(url, chain=name, store=store, api_key="k").local_store.path
            for url in ("https://a.example", "https://a.example/x", "https://b.example")
            for name in ("mainnet", "hoodi")}  # fmt: skip

    assert 6 == len(stored)
    assert 2 == len(list(store.iterdir()))


def test_slim_attestations_have_their_own_table(server, store):
    """F08: slim attestations have fewer columns, so they have a table of their own."""
    with connect(server, store) as explorer:
        load = lambda slim: bf.load_attestations(  # noqa: E731
            [1], since=400, until=420, slim=slim, explorer=explorer
        )
        slim, whole = load(True), load(False)

    assert slim["committee_index"].is_null().all()
    assert not whole["committee_index"].is_null().any()


def test_rows_of_sets_are_not_stored(server, store):
    """The members of a set may change, and depend on the key: rows of sets are not stored."""
    with connect(server, store) as explorer:
        for _ in range(2):
            before = server.requests
            bf.v2.load_rewards(bf.v2.dashboard(1), since=100, until=100, explorer=explorer)
            assert server.requests > before


def test_a_service_on_this_machine_has_no_store_by_default(server, monkeypatch, tmp_path):
    """Rows of a service on this machine are stored only with store=True."""
    assert bf.Explorer(server.url, chain=server.service.chain).local_store is None
    assert bf.Explorer(server.url, chain=server.service.chain, store=True).local_store is not None
    with bf.local(server.service.dataset) as local:
        assert local.local_store is None


def test_a_remote_service_has_a_store_by_default(monkeypatch, tmp_path):
    """Rows are stored in the platform's folder for data, or in the folder of the setting."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    url = "https://explorer.example/x"
    assert tmp_path / "data/beaconframes/store" == bf.Explorer(url).local_store.path.parent
    assert bf.Explorer(url, store=False).local_store is None
    assert tmp_path / "mine" == bf.Explorer(url, store=tmp_path / "mine").local_store.path.parent
    for text, where in (("no", None), ("yes", "data/beaconframes/store"), ("~/x", "home/x")):
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.setenv("BEACONFRAMES_STORE", text)
        local_store = bf.Explorer(url).local_store
        assert (tmp_path / where if where else None) == (local_store and local_store.path.parent)
    assert not (tmp_path / "data").exists()


def test_only_the_owner_can_read_the_store(server, store):
    """F17: folders are 0700 and files 0600."""
    load_counted(server, store, CALLS["balances"])
    modes = {stat.S_IMODE(path.stat().st_mode) for path in store.rglob("*") if path.is_dir()}
    files = {stat.S_IMODE(path.stat().st_mode) for path in store.rglob("*") if path.is_file()}

    assert ({0o700}, {0o600}) == (modes, files)


def test_the_store_does_not_contain_the_key(server, store):
    """The store does not contain the key, in any usual spelling."""
    key = "a-very-secret-key"
    with connect(server, store, api_key=key) as explorer:
        CALLS["balances"](explorer)
    content = b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file())
    names = "".join(map(str, store.rglob("*")))

    for spelling in (key, key.encode().hex(), key[::-1], key.upper()):
        assert spelling.encode() not in content
        assert spelling not in names


def test_a_local_explorer_may_have_a_store(chain, store):
    """With a store, a later local explorer of the same dataset uses the rows."""
    call = {"since": 10, "until": 20}
    for expected in (1, 0):
        with bf.local(chain, store=store) as local:
            found = bf.load_balance_history([1, 2], **call)
            assert (expected, 22) == (local.requests, found.height)
            assert bf.store().dataset.meta["simulated"]
    with bf.local(chain, store=False):
        bf.load_balance_history([1, 2], **call)
        with pytest.raises(errors.ConfigError, match="has no store"):
            bf.store()


@pytest.mark.more
def test_another_dataset_has_another_store(chain, store, tmp_path):
    """Two simulations in the same folder never share rows."""
    from beaconframes.simulator import simulate

    seen = []
    for seed in (1, 2):
        simulation = simulate(tmp_path / str(seed) / "made", validators=64, epochs=8, seed=seed)
        with bf.local(simulation, store=store):
            seen.append(bf.load_balance_history(range(32), since=0, until=3))

    assert 2 == len(list(store.iterdir()))
    assert not seen[0].equals(seen[1])


def test_the_store_can_be_served(server, store):
    """The store is a dataset: a local explorer can serve it."""
    load_counted(server, store, CALLS["balances"])
    (folder,) = store.iterdir()
    with bf.local(folder) as local:
        found = bf.load_balance_history([3, 4], since=10, until=20)
        assert 1 == local.requests

    assert 22 == found.height
