"""Only final rows are stored, whatever a response or its headers say."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from types import SimpleNamespace

import polars as pl
import pytest

import beaconframes as bf
from beaconframes import errors
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
        self.ends = {}
        """The withdrawable epochs of validators; they have no balance from then on."""

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
            if "balance" in row and row.get("epoch", 0) > 440:
                row["balance"] += self.branch
            if "finalized" in row:
                row["finalized"] = row["epoch"] <= self.finalized
            if "exit_epoch" in row and (end := self.ends.get(row["validator_index"])):
                row |= {"exit_epoch": end - 1, "withdrawable_epoch": end}
        if "balancehistory" in seen.target:
            response["data"] = [
                row for row in rows if row["epoch"] < self.ends.get(row["validatorindex"], 2**53)
            ]
        return status, json.dumps(response).encode()


@pytest.fixture
def moving(server):
    with MovingChain(server, epoch=452, finalized=450) as running:
        yield running


def load_from(moving, store, server, call, **more):
    explorer = bf.Explorer(moving.url, chain=server.service.chain, store=store, rate=10_000, **more)
    with explorer:
        return CountedLoad(moving, call, explorer)


LATE = 1007
"""A validator that is eligible from epoch 344 on, and active from epoch 351 on."""


def load_late_balances(until):
    return lambda e: bf.load_balance_history(LATE, since=300, until=until, explorer=e)


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


def test_absence_after_the_final_epoch_is_not_stored(server, store, moving, chain, later):
    """F01: a reorganization may add a proposal, however often there was none."""
    moving.finalized = 440
    had_any = chain.scan("blocks").filter(pl.col("epoch").is_between(430, 445)).collect()
    validator = min({*range(1000)} - {*had_any["proposer_index"]})
    call = lambda e: bf.load_proposals(validator, since=430, until=445, explorer=e)  # noqa: E731
    for _ in range(3):
        later()
        assert 0 < load_from(moving, store, server, call).requests

    assert {str(validator): ((430, 440),)} == open_dataset(store).coverage("proposals")


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


@pytest.mark.parametrize(("hours", "heads"), [(23, 2), (25, 1)])
def test_an_epoch_older_than_a_day_needs_one_response(
    server, store, moving, monkeypatch, hours, heads
):
    """F06: finality takes a quarter of an hour, so nothing of yesterday is reorganized."""
    chain = server.service.chain
    now = chain.time_of("epoch", 451) + timedelta(hours=hours)
    with bf.Explorer(moving.url, chain=chain, store=store, rate=10_000) as explorer:
        explorer.clock = SimpleNamespace(now=lambda: now)
        load_last_balances(430, 450)(explorer)

    assert heads == sum("latestState" in one.target for one in moving.seen)
    assert 450 == open_dataset(store).meta["finalized_epoch"]


def test_the_first_epoch_is_not_final_while_it_runs(server, store, moving):
    """F05: the service calls epoch 0 final from genesis on; its rows are stored once it is over."""
    moving.epoch = moving.finalized = 0
    for _ in range(2):
        assert 2 == load_from(moving, store, server, load_last_balances(0, 0)).rows.height
        assert not store.exists()

    moving.epoch = 1
    load_from(moving, store, server, load_last_balances(0, 0))
    assert 0 == load_from(moving, store, server, load_last_balances(0, 0)).requests


def test_rows_that_the_running_first_epoch_lacks_are_no_error(server, moving):
    """F05: they may follow, so they are missing; in a final epoch their absence is an error."""
    moving.epoch = moving.finalized = 0
    moving.fault("rows_lack?fields=validatorindex&cells=2&path=/incomedetailhistory")
    call = lambda e: bf.load_income_history([1, 2], since=0, until=0, explorer=e)  # noqa: E731

    found = load_from(moving, False, server, call)
    assert ([1], 1) == (found.rows["validator_index"].to_list(), len(found.warnings))
    moving.epoch = 1
    with pytest.raises(errors.IntegrityError):
        load_from(moving, False, server, call)


@pytest.mark.more
@pytest.mark.parametrize("has_store", [False, True])
def test_an_exit_after_an_earlier_load_is_found(server, store, moving, has_store):
    """A validator known as active at the end of one load may have exited at the end of the next.

    It is the same connection without a store, and another one with it.
    """
    with bf.Explorer(moving.url, chain=server.service.chain, store=False, rate=9_999) as explorer:

        def load(until):
            if has_store:
                return load_from(moving, store, server, load_late_balances(until))
            return CountedLoad(moving, load_late_balances(until), explorer)

        assert (440, []) == (load(440).rows["epoch"].max(), load(440).warnings)
        moving.ends = {LATE: 445}
        later = load(450)

    assert (444, []) == (later.rows["epoch"].max(), later.warnings)


@pytest.mark.parametrize(("before", "after"), [({}, {LATE: 446}), ({LATE: 443}, {})])
def test_an_exit_that_is_not_final_is_not_stored(server, store, moving, before, after):
    """F01: a reorganization may move an exit, or undo it, until its epoch is final.

    The service does not have the last two balances of a validator that has not exited, so its exit
    is requested.
    """
    moving.fault("rows_lack?fields=epoch&cells=449,450&path=/balancehistory")
    moving.finalized, moving.ends = 440, before
    first = load_from(moving, store, server, load_late_balances(450))
    moving.finalized, moving.epoch, moving.ends = 455, 457, after
    second = load_from(moving, store, server, load_late_balances(450))

    for found, ends in (first, before), (second, after):
        assert ends.get(LATE, 449) - 1 == found.rows["epoch"].max()
        assert ([] if ends else ["epoch 449 to 450"]) == [
            re.search(r"epoch \d+ to \d+", str(warning))[0] for warning in found.warnings
        ]


def test_an_index_that_is_not_final_is_not_stored(server, store, moving, chain):
    """F01: a reorganization may give the index of a public key to another validator."""
    (pubkey,) = chain.scan("validators").filter(validator_index=LATE).collect()["pubkey"]
    call = lambda e: bf.load_balance_history(pubkey, since=351, until=353, explorer=e)  # noqa: E731

    requested = []
    for finalized in (343, 343, 344, 344):
        moving.finalized, moving.epoch, before = finalized, 360, len(moving.seen)
        assert 3 == load_from(moving, store, server, call).rows.height
        posts = [one for one in moving.seen[before:] if "/api/v1/validator" == one.target]
        requested.append(len(posts))

    assert [1, 1, 1, 0] == requested
