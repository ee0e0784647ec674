"""Exports whose loading others do: threads and processes, at one pace, to the same bytes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import polars as pl
import pytest

import beaconframes as bf
from beaconframes import v1, v2
from beaconframes.client import elsewhere
from beaconframes.errors import ConfigError, DatasetError, NotServed, UsageError

from ..support.faults import FaultServer, busiest

SPAWN = multiprocessing.get_context("spawn")
ASKED = {"validators": range(100), "since": 0, "until": 449}
KEY = "a-very-secret-key"


def files(folder):
    """Return the bytes of all files that are published, but for the notes of the exporting."""
    paths = (p for p in folder.rglob("*") if p.is_file() and p.name != "history.jsonl")
    return {str(p.relative_to(folder)): p.read_bytes() for p in paths}


def known(running):
    """Return what an explorer is told of a chain that does not move."""
    return {"chain": running.service.chain, "head": running.service.head}


@pytest.fixture(autouse=True)
def stretches(monkeypatch):
    """Let a hundred epochs of the validators that are asked for be as much as is loaded at once."""
    monkeypatch.setattr("beaconframes.exports.walks.ROWS_AT_ONCE", 10_000)


@pytest.mark.parametrize("kind", ["threads", pytest.param("processes", marks=pytest.mark.more)])
def test_loading_is_spread_at_one_pace(tmp_path, running, kind):
    """The rate that was given is that of all workers together; every file is the same."""
    with bf.Explorer(running.url, **known(running)) as explorer:
        bf.export(bf.load_income_history, tmp_path / "here", explorer=explorer, **ASKED)
        alone = explorer.requests
    pools = {
        "threads": lambda: ThreadPoolExecutor(3),
        "processes": lambda: ProcessPoolExecutor(2, SPAWN),
    }
    with (
        FaultServer("", upstream=running.url) as server,
        bf.Explorer(server.url, **known(running), rate=2, state=tmp_path / "state") as explorer,
        pools[kind]() as pool,
    ):
        done = bf.export(
            bf.load_income_history, tmp_path / "there", explorer=explorer, executor=pool, **ASKED
        )
        own = explorer.requests

    assert done.complete
    assert files(tmp_path / "here") == files(tmp_path / "there")
    assert busiest(server.seen) <= 2
    assert alone == len(server.seen)
    # When validators began and ended is asked for here.
    assert (own == alone) if kind == "threads" else (own <= 2 < alone)


def test_loading_is_really_done_by_others(tmp_path, explorer):
    """Several stretches are under way at a time, and no more than eight."""
    most, under_way = [], []

    class Watched(ThreadPoolExecutor):
        def submit(self, work, *arguments, **named):
            loading = any(isinstance(one, bf.Explorer) for one in arguments)
            if loading:
                under_way.append(1)
                most.append(len(under_way))
            future = super().submit(work, *arguments, **named)
            if loading:
                result = future.result
                future.result = lambda *a: (under_way.pop(), result(*a))[1]
            return future

    with Watched(2) as pool:
        bf.export(bf.load_income_history, tmp_path / "a", by="validators", executor=pool, **ASKED)
        bf.export(bf.load_balance_history, tmp_path / "b", executor=pool, **ASKED)

    assert 1 < max(most) <= 8
    assert [] == under_way


def test_what_a_worker_misses_is_a_gap_here(tmp_path, running):
    """Rows that do not come are named, whoever asked for them; the next export has them."""
    with (
        FaultServer("rows_drop?every=1&at=7&times=1", upstream=running.url) as server,
        bf.Explorer(server.url, **known(running), store=False) as explorer,
        ThreadPoolExecutor(3) as pool,
    ):
        more = {"explorer": explorer, "executor": pool}
        first = bf.export(bf.load_balance_history, tmp_path / "out", **more, **ASKED)
        again = bf.export(bf.load_balance_history, tmp_path / "out", **more, **ASKED)

    assert first.complete or first.gaps
    assert again.complete
    found = pl.read_parquet(tmp_path / "out/balance_history/**/*.parquet")
    assert 100 * 450 == found.height


def test_error_of_a_worker_ends_the_export(tmp_path, running):
    """It is raised here as it was there; what had not begun is not begun any more."""
    submitted = []

    class Busy(ThreadPoolExecutor):
        def submit(self, *arguments, **named):
            first = not submitted
            submitted.append(super().submit(*arguments, **named) if first else Future())
            return submitted[-1]

    with (
        FaultServer("status?code=404&path=incomedetail", upstream=running.url) as server,
        bf.Explorer(server.url, **known(running), rate=10) as explorer,
        Busy(1) as pool,
        pytest.raises(NotServed),
    ):
        bf.export(
            bf.load_income_history, tmp_path / "out", explorer=explorer, executor=pool, **ASKED
        )

    assert [False, True, True, True, True] == [future.cancelled() for future in submitted]
    assert not (tmp_path / "out/manifest.json").exists()


# --- an explorer that goes elsewhere ------------------------------------------------------------


@pytest.mark.parametrize("endpoint", [*v1.ENDPOINTS, *v2.ENDPOINTS], ids=lambda e: e.name)
def test_every_loader_can_be_sent(endpoint):
    """A loader is found by its name wherever the package is."""
    for module in (v1, v2):
        loader = getattr(module, f"load_{endpoint.name}", None)
        assert loader is None or pickle.loads(pickle.dumps(loader)) is loader


def test_explorer_that_comes_back_is_itself():
    """Sent and received in one process: one explorer, with one pace."""
    with bf.Explorer("http://127.0.0.1:9") as explorer, bf.Explorer("http://127.0.0.1:9") as other:
        assert pickle.loads(pickle.dumps(explorer)) is explorer
        assert pickle.loads(pickle.dumps(explorer)) is explorer
        assert pickle.loads(pickle.dumps(other)) is other


def test_one_explorer_a_process(monkeypatch):
    """Elsewhere one is made for all that is asked there, of the same settings but for the key."""
    told = {"rate": 3.0, "max_requests": 70, "store": False}
    with bf.Explorer("http://127.0.0.1:9", **told) as explorer:
        sent = [pickle.dumps(explorer) for _ in range(2)]
        monkeypatch.setattr(elsewhere.os, "getpid", lambda: 1)
        one, other = map(pickle.loads, sent)

    assert one is other
    assert one is not explorer
    assert (3.0, explorer.url, explorer.chain) == (one.rate, one.url, one.chain)
    assert one.rate_limiter is not explorer.rate_limiter
    one.close()


def test_key_is_not_carried(monkeypatch):
    """It is not in what is sent; elsewhere the environment has it for that address, or an error."""
    monkeypatch.delenv("BEACONFRAMES_API_KEY", raising=False)
    url = "http://127.0.0.1:9"
    with bf.Explorer(url, api_key=KEY) as explorer:
        sent = pickle.dumps(explorer)
    assert KEY.encode() not in sent
    monkeypatch.setattr(elsewhere.os, "getpid", lambda: 2)

    with pytest.raises(ConfigError, match="not carried"):
        pickle.loads(sent)
    monkeypatch.setenv("BEACONFRAMES_API_KEY", KEY)
    with pytest.raises(ConfigError, match="not carried") as caught:
        pickle.loads(sent)
    assert f"BEACONFRAMES_URL={url}" in caught.value.hint
    monkeypatch.setenv("BEACONFRAMES_URL", url)
    with pickle.loads(sent) as found:
        assert url == found.url


def test_no_pace_can_be_kept_without_meeting(tmp_path):
    """state=False and a rate: processes would each send as much; threads are the way out."""
    with (
        bf.Explorer("http://127.0.0.1:9", rate=5, state=False) as explorer,
        pytest.raises(UsageError, match="one pace") as caught,
    ):
        pickle.dumps(explorer)
    assert "ThreadPoolExecutor" in caught.value.hint
    with bf.Explorer("http://127.0.0.1:9", state=False) as explorer:
        pickle.dumps(explorer)


def test_other_machines_are_refused_where_there_are_limits(monkeypatch):
    """What they send is not counted here."""
    with bf.Explorer("http://127.0.0.1:9", rate=5) as explorer:
        sent = pickle.dumps(explorer)
    monkeypatch.setattr(elsewhere.os, "getpid", lambda: 3)
    monkeypatch.setattr(elsewhere, "MACHINE", "another")
    with pytest.raises(UsageError, match="another cannot keep"):
        pickle.loads(sent)


# --- executors that cannot -----------------------------------------------------------------------


def shut_down():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    return pool


def broken():
    pool = ProcessPoolExecutor(1, mp_context=SPAWN)
    with pytest.raises(BrokenExecutor):
        pool.submit(os._exit, 1).result()
    return pool


class Cancels(ThreadPoolExecutor):
    def submit(self, *_, **__):
        future = Future()
        future.cancel()
        return future


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (shut_down, UsageError, "takes no work"),
        (broken, UsageError, "takes no work"),
        (lambda: Cancels(1), DatasetError, "did not end its work"),
        (lambda: 5, UsageError, "executor=int is no executor"),
        (object, UsageError, "executor=object is no executor"),
    ],
)
def test_an_executor_that_cannot_is_an_error_of_ours(tmp_path, explorer, make, error, words):
    """Of frames as of loaders; and without it the same call makes the dataset."""
    executor, asked = make(), {"validators": [1], "since": 0, "until": 5}
    for what, arguments in ((pl.DataFrame({"x": [1]}), {}), (bf.load_income_history, asked)):
        target = tmp_path / str(callable(what))
        with pytest.raises(error, match=words):
            bf.export(what, target, executor=executor, **arguments)
        assert not (target / "manifest.json").exists()
        assert bf.export(what, target, **arguments).complete
