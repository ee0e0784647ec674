"""Only final rows are stored, whatever a response or its headers say."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

import beaconframes as bf
from beaconframes.cache import finality
from beaconframes.calendar import MAINNET
from beaconframes.dataset import Dataset
from beaconframes.fetch.head import HeadV2

from ..support.faults import FaultServer
from ..support.store_loads import CALLS, CountedLoad, load_counted


class MovingChain(FaultServer):
    """An explorer whose head and finality advance, and whose latest branch may change."""

    def __init__(self, upstream, *, epoch, finalized):
        super().__init__(upstream=upstream.url)
        self.epoch, self.finalized, self.branch, self.headers = epoch, finalized, 0, {}
        self.regress = iter(())
        """The finalized epochs in the next responses, each of another replica."""

    @property
    def requests(self):
        return len(self.seen)

    def _good(self, seen):
        status, body = super()._good(seen)
        response = json.loads(body)
        if "latestState" in seen.target:
            state = response.get("data", response)
            state |= {"currentEpoch": self.epoch, "currentSlot": self.epoch * 32 + 5}
            state |= {"currentFinalizedEpoch": next(self.regress, self.finalized)}
        rows = response.get("data")
        for row in rows if isinstance(rows, list) else [rows] if isinstance(rows, dict) else []:
            if "balance" in row and row["epoch"] > 440:
                row["balance"] += self.branch
            if "finalized" in row:
                row["finalized"] = row["epoch"] <= self.finalized
        return status, json.dumps(response).encode()


@pytest.fixture
def moving(server):
    with MovingChain(server, epoch=452, finalized=450) as running:
        yield running


def load_from(moving, store, server, call, **more):
    explorer = bf.Explorer(moving.url, chain=server.service.chain, store=store, rate=10_000, **more)
    with explorer:
        return CountedLoad(moving, call, explorer)


def load_last_balances(since=430, until=452):
    return lambda e: bf.load_balance_history([1, 2], since=since, until=until, explorer=e)


def open_dataset(store):
    (folder,) = store.iterdir()
    return Dataset.open(folder)


def test_reorganized_epochs_leave_no_trace(server, store, moving):
    """F01, F02: only the final part of a window is stored; the rest is requested again."""
    moving.finalized = 440
    first = load_from(moving, store, server, load_last_balances())
    assert 440 == open_dataset(store).scan("balance_history").collect()["epoch"].max()
    assert {"1": ((430, 440),), "2": ((430, 440),)} == open_dataset(store).coverage(
        "balance_history"
    )

    moving.branch = 7
    second = load_from(moving, store, server, load_last_balances())
    changed = second.rows["balance_gwei"] - first.rows["balance_gwei"]
    assert [7 if epoch > 440 else 0 for epoch in first.rows["epoch"]] == changed.to_list()
    assert 440 == open_dataset(store).scan("balance_history").collect()["epoch"].max()

    moving.finalized, moving.epoch = 455, 457
    load_from(moving, store, server, load_last_balances())
    third = load_from(moving, store, server, load_last_balances())
    assert (0, True) == (third.requests, second.rows.equals(third.rows))


def test_no_epoch_after_a_stalled_finality_is_stored(server, store, moving):
    """F05: no epoch after the finalized one is stored, however far the chain advances."""
    moving.epoch, moving.finalized = 460, 360
    load_from(moving, store, server, load_last_balances(340, 460))

    assert 360 == open_dataset(store).scan("balance_history").collect()["epoch"].max()


def test_stored_rows_stay_final_when_a_replica_lags(server, store, moving):
    """F06: stored rows stay final when a replica lags."""
    load_from(moving, store, server, load_last_balances(430, 450))
    moving.finalized, moving.epoch = 420, 452
    second = load_from(moving, store, server, load_last_balances(430, 450))

    assert (0, 42) == (second.requests, second.rows.height)
    assert 450 == open_dataset(store).meta["finalized_epoch"]


@pytest.mark.parametrize(
    ("stated", "stored", "then_stored"),
    [([450, 440], 440, 450), ([440, 450], 440, 450), ([450] * 2, 450, 450)],
)
def test_recent_finality_needs_two_responses(
    server, store, moving, monkeypatch, caplog, stated, stored, then_stored
):
    """F06: recent epochs are stored if two responses call them final; the plan counts both."""
    monkeypatch.setattr(finality, "SECOND_RESPONSE_AGE", timedelta(days=36_500))
    call = load_last_balances(430, 450)
    moving.regress = iter(stated)
    with bf.Explorer(moving.url, chain=server.service.chain, store=store, rate=99) as explorer:
        planned = bf.plan(bf.load_balance_history, [1, 2], since=430, until=450, explorer=explorer)
        found = CountedLoad(moving, call, explorer)

    assert planned.requests == found.requests == 3
    assert (42, stored) == (
        found.rows.height,
        open_dataset(store).meta["finalized_epoch"],
    )
    assert stored == open_dataset(store).scan("balance_history").collect()["epoch"].max()
    assert (stated == [450, 440]) == ("440 is finalized, but reported 450" in caplog.text)

    load_from(moving, store, server, call)
    assert then_stored == open_dataset(store).meta["finalized_epoch"]
    assert 0 == load_from(moving, store, server, call).requests


def test_recent_finality_of_v2_needs_two_responses():
    """V2 states a slot; two responses agree on a whole epoch."""
    slots = iter([15 * 32 + 31, 14 * 32 + 31, 16 * 32])
    views = HeadV2(lambda _: b'{"slot": %d}' % next(slots), MAINNET)

    assert (15, -1) == (
        views.latest("epoch", MAINNET, finalized=True),
        views.agreed(refresh=False),
    )
    assert 14 == views.agreed(refresh=True)
    assert 15 == views.agreed(refresh=True) == views.latest("epoch", MAINNET, finalized=True)


def test_rows_that_state_that_they_are_not_final_are_not_stored(server, store, moving):
    """F04: an epoch that states that it is not finalized is requested again until it is."""
    moving.finalized = 448
    call = lambda e: bf.load_epochs(since=447, until=449, explorer=e)  # noqa: E731
    counts = []
    for finalized in (448, 448, 449, 449):
        moving.finalized = finalized
        epochs = [s.target for s in moving.seen]
        load_from(moving, store, server, call)
        counts.append(sum("/epoch/" in s.target for s in moving.seen[len(epochs) :]))

    assert [3, 1, 1, 0] == counts


def test_the_present_state_is_never_stored(server, store):
    """F08: loaders of the present state send a request each time."""
    for call in (
        lambda e: bf.load_validators([1, 2], explorer=e),
        lambda e: bf.load_gas_fees(explorer=e),
        lambda e: bf.v2.load_machine_names(explorer=e),
    ):
        assert [1, 1] == [load_counted(server, store, call).requests for _ in range(2)]
    assert not store.exists()


def test_the_clock_of_the_machine_has_no_effect(server, store, monkeypatch):
    """F18: the clock of the machine has no effect; stored rows do not expire."""
    import time

    load_counted(server, store, CALLS["balances"])
    for years in (-1, 1):
        now = time.time() + years * 365 * 86_400
        monkeypatch.setattr(time, "time", lambda now=now: now)
        assert 0 == load_counted(server, store, CALLS["balances"]).requests


def test_a_lazy_frame_has_rows_that_are_not_final(server, store, moving):
    """Rows that cannot be stored yet are in the LazyFrame too."""
    call = lambda e: bf.load_balance_history(  # noqa: E731
        [1, 2], since=445, until=452, lazy=True, explorer=e
    )
    found = load_from(moving, store, server, call)

    assert 16 == found.rows.collect().height
