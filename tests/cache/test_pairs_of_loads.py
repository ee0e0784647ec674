"""Pairs of random loads on one connection: the first of a faulty service, the second of a good one.

Whatever the first one has received, the second one has the rows of the service.
"""

from __future__ import annotations

import hashlib
import random
import shutil
import warnings
from collections import Counter

import httpx
import pytest

import beaconframes as bf
from beaconframes import errors
from beaconframes.endpoint import Shape
from beaconframes.server.service import Service

from ..support.faults import QuickClock
from ..support.replicas import ServiceTransport, connect_to
from ..support.store_loads import FINAL

OF_ROWS = ("empty", "twice", "lack", "late")
KINDS = ("503", "404", "html", "cut", *OF_ROWS * 2)
"""The faults: an error, a page, half a body; no rows, repeated rows, and too few rows."""
HEADS = ("/api/v1/latestState", "/api/v2/ethereum/slot")


class VeryQuickClock(QuickClock):
    """A clock that runs a thousand times as fast: requests are sent again after milliseconds."""

    SPEED = 1000


class FaultyService(ServiceTransport):
    """A service in this process whose answers are faulty while `seed` is a number.

    The seed, the request and how often it was sent decide on the fault.
    """

    seed: int | None = None

    def __init__(self, service):
        super().__init__(service)
        self.sent = Counter()
        self.faults = Counter()

    def answer(self, request, path):
        if not any(pattern.fullmatch(path) for pattern, _ in self.routes):
            return httpx.Response(404, text="404 page not found")
        answer = super().answer(request, path)
        if self.seed is None or answer.status_code != 200:
            return answer
        sent = f"{self.seed} {request.url} {request.content!r}"
        self.sent[sent] += 1
        dice = random.Random(hashlib.sha256(f"{sent} {self.sent[sent]}".encode()).digest())
        if dice.random() < 0.5:
            return answer
        fault = dice.choice(KINDS)
        if path in HEADS and fault in OF_ROWS:
            return answer
        self.faults[fault] += 1
        return self.spoil(answer, fault, path, dice)

    def spoil(self, answer, fault, path, dice):
        """Return the *answer* with the *fault*."""
        if fault in ("503", "404"):
            return httpx.Response(int(fault), json={"error": "not now"})
        if fault == "html":
            return httpx.Response(200, text="<html>Just a moment...</html>")
        if fault == "cut":
            return httpx.Response(200, content=answer.content[: len(answer.content) // 2])
        envelope = answer.json()
        rows = envelope["data"]
        if fault == "empty":
            envelope["data"] = []
        elif isinstance(rows, list):
            endpoint = next(e for pattern, e in self.routes if pattern.fullmatch(path))
            envelope["data"] = self.spoil_rows(rows, fault, endpoint, dice)
        return httpx.Response(200, json=envelope)

    def spoil_rows(self, rows, fault, endpoint, dice):
        """Return the *rows* of a list with the *fault*.

        The rows that are left out are those of the last epochs, which the service may not have
        yet; or any, if the table has a known number of them.
        """
        if fault == "twice":
            return [*rows, *rows[::-2]]
        if fault == "late":
            last = FINAL - dice.randrange(100)
            return [row for row in rows if find_epoch(row) <= last]
        if endpoint.is_contiguous and endpoint.shape is Shape.LIST:
            return [row for row in rows if dice.random() < 0.9]
        return rows


def find_epoch(row):
    """Return the epoch of a record, as far as it has one."""
    if "epoch" in row:
        return int(row["epoch"])
    slot = row.get("slot", row.get("block_slot", 0))
    return slot // 32 if isinstance(slot, int) else 0


def choose_validators(dice, pubkeys, counts):
    """Return some validators, the first one sometimes by its public key."""
    first = dice.choice([0, 0, 90, 300, 980, 1005])
    validators = list(range(first, first + dice.choice(counts)))
    return [pubkeys[first], *validators[1:]] if pubkeys and dice.random() < 0.2 else validators


def choose_epochs(dice, lengths):
    """Return the first and the last epoch, which is often one of the latest."""
    last = dice.choice([FINAL - dice.randrange(3), dice.randrange(FINAL), dice.randrange(FINAL)])
    return {"since": max(last - dice.choice(lengths) + 1, 0), "until": last}


def choose_slots(dice):
    """Return the range of slots of some epochs."""
    epochs = choose_epochs(dice, (1, 4, 40))
    return {name: 32 * epoch for name, epoch in epochs.items()}


def of_epochs(dice, pubkeys):
    return (), choose_epochs(dice, (1, 4, 12))


def of_validators(dice, pubkeys):
    return (choose_validators(dice, pubkeys, (1, 2, 6, 30)),), choose_epochs(dice, (1, 4, 40))


def of_indices(dice, pubkeys):
    return of_validators(dice, None)


def of_duties(dice, pubkeys):
    (validators,), epochs = of_validators(dice, None)
    return (validators,), {name: max(epoch, 375) for name, epoch in epochs.items()}


def of_windows(dice, pubkeys):
    validators = choose_validators(dice, pubkeys, (1, 30, 80))
    return (validators,), choose_epochs(dice, (10, 60, 101, 151, 260))


def of_slots(dice, pubkeys):
    last, step = dice.randrange(100, 15_000), dice.choice([1, 1, 3])
    return (list(range(last - dice.randrange(12 * step), last + 1, step)),), {}


def of_days(dice, pubkeys):
    return (), {"since": 0, "until": dice.choice([0, 1])}


def of_validators_by_day(dice, pubkeys):
    return (choose_validators(dice, None, (1, 3)),), of_days(dice, None)[1]


def of_slot_range(dice, pubkeys):
    return (), choose_slots(dice)


def of_proposal_slots(dice, pubkeys):
    return (choose_validators(dice, None, (1, 30)),), choose_slots(dice)


def of_periods(dice, pubkeys):
    return ([0, 1],), {}


def of_present(dice, pubkeys):
    return (choose_validators(dice, pubkeys, (1, 30)),), {}


CALLS = {
    bf.load_balance_history: of_validators, bf.load_income_history: of_validators,
    bf.load_attestations: of_duties, bf.v2.load_balances: of_indices,
    bf.v2.load_rewards: of_indices, bf.v2.load_performance: of_indices,
    bf.load_proposals: of_windows, bf.load_validator_withdrawals: of_windows,
    bf.load_epochs: of_epochs, bf.load_epoch_slots: of_epochs,
    bf.load_slots: of_slots, bf.load_slot_withdrawals: of_slots,
    bf.load_slot_attestations: of_slots, bf.load_voluntary_exits: of_slots,
    bf.load_execution_blocks: of_slots, bf.v2.load_slot: of_slots,
    bf.v2.load_slot_withdrawals: of_slots, bf.v2.load_proposal_slots: of_proposal_slots,
    bf.load_yield_index: of_days, bf.load_validator_stats: of_validators_by_day,
    bf.load_graffiti_wall: of_slot_range, bf.load_sync_committees: of_periods,
    bf.load_validators: of_present, bf.v2.load_validators: of_present,
}  # fmt: skip
"""The loaders, each with the function that chooses its arguments."""
OFTEN = [*CALLS, *[load for load, choose in CALLS.items() if choose is of_windows] * 2]


def choose_call(dice, pubkeys, load=None):
    """Return a random call of the loader, or of any: the function and its arguments."""
    load = dice.choice(OFTEN) if load is None else load
    return load, *CALLS[load](dice, pubkeys)


def run(call, explorer):
    """Return the rows of the *call*, or the type of its error."""
    load, values, options = call
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return load(*values, explorer=explorer, **options)
        except errors.BeaconframesError as error:
            return type(error)


def choose_pair(seed, pubkeys):
    """Return two random calls; half of the pairs are the same call twice."""
    dice = random.Random(seed)
    first = choose_call(dice, pubkeys)
    kind = dice.choice(["the same call", "the same call", "the same loader", "any loader"])
    if kind == "the same call":
        return first, first
    return first, choose_call(dice, pubkeys, first[0] if kind == "the same loader" else None)


@pytest.fixture(scope="module")
def transport(chain):
    """A service in this process, which has answered the slow first queries once for all tests."""
    return FaultyService(Service(chain))


def find_differing(chain, transport, tmp_path, seeds, *, has_store):
    """Return the pairs whose second load differs from one without a store."""
    pubkeys = chain.scan("validators").sort("validator_index").collect()["pubkey"].to_list()
    transport.faults.clear()
    differing = []
    for seed in seeds:
        first, second = choose_pair(seed, pubkeys)
        expected = run(second, connect_to(transport, store=False))
        store = tmp_path / str(seed) if has_store else False
        with connect_to(transport, store=store, timeout=1_000_000) as explorer:
            explorer.rate_limiter.clock = VeryQuickClock()
            transport.sent.clear()
            transport.seed = seed
            run(first, explorer)
            transport.seed = None
            found = run(second, explorer)
        if isinstance(expected, type) or isinstance(found, type):
            is_equal = found is expected
        else:
            is_equal = expected.equals(found)
        if not is_equal:
            differing.append((seed, first, second))
        shutil.rmtree(tmp_path / str(seed), ignore_errors=True)
    return differing


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(0, id="each response at once"),
        pytest.param(60, id="all together", marks=pytest.mark.more),
    ],
)
@pytest.mark.parametrize(
    "seeds",
    [
        range(6),
        *(pytest.param(range(n, n + 100), marks=pytest.mark.long) for n in (0, 100, 200)),
    ],
    ids=str,
)
@pytest.mark.parametrize("has_store", [pytest.param(False, marks=pytest.mark.more), True])
def test_a_load_after_a_faulty_one_has_all_rows(
    chain, transport, tmp_path, monkeypatch, has_store, seeds, seconds
):
    """G4: the second load equals one without a store, on a connection of its own.

    Responses are stored together or one by one, as it happens.
    """
    monkeypatch.setattr("beaconframes.fetch.source.FLUSH_SECONDS", seconds)

    found = find_differing(chain, transport, tmp_path, seeds, has_store=has_store)

    assert [] == found
    assert len(seeds) // 3 < transport.faults.total()
    assert min(len(seeds) // 2, 6) <= len(transport.faults)


def test_rows_of_another_window_are_not_lost(chain, transport, tmp_path, monkeypatch):
    """Two windows overlap; a replica that lags behind answers one of them, and the other is whole.

    Each response is stored at once. The first load has all rows already, and so has the second.
    """
    monkeypatch.setattr("beaconframes.fetch.source.FLUSH_SECONDS", 0)
    pubkeys = chain.scan("validators").sort("validator_index").collect()["pubkey"].to_list()
    call, _ = choose_pair(295, pubkeys)
    expected = run(call, connect_to(transport, store=False))

    with connect_to(transport, store=tmp_path, timeout=1_000_000) as explorer:
        explorer.rate_limiter.clock = VeryQuickClock()
        transport.sent.clear()
        transport.faults.clear()
        transport.seed = 295
        found = [run(call, explorer)]
        transport.seed = None
        found.append(run(call, explorer))

    assert 1 == transport.faults["late"]
    assert [expected.height] * 2 == [rows.height for rows in found]
    assert all(expected.equals(rows) for rows in found)
