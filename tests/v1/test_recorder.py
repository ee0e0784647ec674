"""The recorder stores duties before the service drops them, and reports missed ones."""

from __future__ import annotations

import json
from datetime import timedelta
from types import SimpleNamespace
from urllib.parse import parse_qsl

import pytest

import beaconframes as bf
from beaconframes import errors
from beaconframes.cache import local_store, validator_epochs
from beaconframes.calendar import MAINNET
from beaconframes.v1 import recorder

from ..support import faults
from ..support.faults import FaultServer

VALIDATORS = [3, 4, 5]
BASE = 399_000
"""The epoch that the tests count from."""


class ForgettingServer(FaultServer):
    """An explorer with a growing chain, which serves the duties of the last 100 epochs."""

    epoch = 0

    @property
    def requests(self):
        return len(self.seen)

    def _good(self, seen):
        if "latestState" in seen.target:
            state = {
                "currentEpoch": self.epoch,
                "currentSlot": self.epoch * 32 + 31,
                "currentFinalizedEpoch": self.epoch - 2,
            }
            return 200, json.dumps({"status": "OK", "data": state}).encode()
        path, _, query = seen.target.partition("?")
        query_values = {name: int(value) for name, value in parse_qsl(query)}
        first, last = query_values["startEpoch"], query_values["endEpoch"]
        if not self.epoch - 99 <= first <= last <= self.epoch:
            return 400, b'{"status":"ERROR: invalid start epoch parameter","data":null}'
        rows = [
            duty(int(one), epoch)
            for one in path.split("/")[-2].split(",")
            for epoch in range(first, last + 1)
        ]
        return 200, json.dumps({"status": "OK", "data": rows}).encode()


def duty(validator, epoch):
    """One duty as the service sends it; every seventh is one slot late."""
    slot = epoch * 32 + validator
    return {
        "attesterslot": slot,
        "committeeindex": validator % 4,
        "epoch": epoch,
        "inclusionslot": slot + 1 + ((validator + epoch) % 7 == 0),
        "status": 1,
        "validatorindex": validator,
    }


class FastClock:
    """A clock whose sleep returns immediately and moves the chain."""

    def __init__(self, server, epoch):
        self.server, self.epoch = server, BASE + epoch
        self.slept = []
        self.then = lambda: None
        self.move(0)

    def move(self, epochs):
        self.epoch += epochs
        self.server.epoch = int(self.epoch)

    def now(self):
        return MAINNET.genesis + timedelta(seconds=self.epoch * 384)

    def sleep(self, seconds):
        self.slept.append(seconds / 384)
        self.move(seconds / 384)
        self.then()


@pytest.fixture
def server():
    """An explorer that drops old duties."""
    with ForgettingServer() as running:
        yield running


@pytest.fixture
def clock(server, monkeypatch):
    """A clock that the recorder reads and waits on; it shows epoch 150."""
    passing = FastClock(server, 150)
    monkeypatch.setattr(recorder, "now", passing.now)
    monkeypatch.setattr(recorder, "sleep", passing.sleep)
    return passing


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


def connect(server, store, **more):
    return bf.Explorer(server.url, store=store, rate=10_000, **more)


def record(explorer, until=None, **more):
    """Record attestations until an epoch, counted from the base."""
    last = None if until is None else BASE + until
    return bf.record("attestations", VALIDATORS, until=last, explorer=explorer, **more)


def intervals(report):
    """Return the intervals of the first validator; those of the others are equal."""
    each = [report.filter(validator_index=one).drop("validator_index").rows() for one in VALIDATORS]
    assert [each[0]] * 3 == each
    return [(first - BASE, last - BASE, state) for first, last, state in each[0]]


def test_a_recording_longer_than_the_service_keeps(server, store, clock):
    """A recording of 200 epochs is complete, although the service has only 100 at a time."""
    with connect(server, store) as explorer:
        report = record(explorer, until=350)
        with connect(server, store, offline=True) as later:
            loaded = bf.load_attestations(
                VALIDATORS, since=BASE + 53, until=BASE + 350, explorer=later
            )

    assert [(53, 350, "stored")] == intervals(report)
    expected = [
        duty(validator, epoch) for validator in VALIDATORS for epoch in range(BASE + 53, BASE + 351)
    ]
    assert [row["inclusionslot"] for row in expected] == loaded["inclusion_slot"].to_list()


def test_a_window_costs_one_request_for_rows_and_one_for_the_head(server, store, clock):
    """One request for the chain; per window, one for rows and one for the head, and a sleep."""
    with connect(server, store) as explorer:
        record(explorer, until=350)

    assert 6 == len(clock.slept)
    assert 1 + 2 * 6 >= server.requests


def test_epochs_not_recorded_in_time_are_reported_as_lost(server, store, clock):
    """Epochs that were not recorded in time are reported as lost, also by a later recording."""
    with connect(server, store) as explorer:
        record(explorer, until=150)
        clock.move(200)
        report = record(explorer, until=360)

    oldest = report.filter(state="lost")["last_epoch"].max() + 1 - BASE
    assert [(53, 150, "stored"), (151, oldest - 1, "lost"), (oldest, 360, "stored")] == intervals(
        report
    )


def test_the_recorder_retries_during_an_outage(server, store, clock):
    """The recorder retries during an outage, and reports the result."""
    with connect(server, store) as explorer:
        explorer.rate_limiter.clock = faults.FastClock()
        clock.then = lambda: server.fault("5xx?code=503" if 198 < clock.epoch - BASE < 201 else "")
        report = record(explorer, until=300)

    assert [(53, 300, "stored")] == intervals(report)
    assert 1 in {round(epochs) for epochs in clock.slept}


def test_an_interrupted_recording_continues(server, store, clock):
    """Ctrl-C returns the report, and another call continues."""

    def press():
        if clock.epoch > BASE + 240:
            raise KeyboardInterrupt

    clock.then = press
    with connect(server, store) as explorer:
        first = record(explorer)
        clock.then = lambda: None
        second = record(explorer, for_="12h")

    assert [53, "stored"] == [intervals(first)[0][0], intervals(first)[0][2]]
    ((begin, end, state),) = intervals(second)
    assert (53, "stored", True) == (begin, state, end > intervals(first)[0][1])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"what": "income"}, "cannot be recorded"),
        ({"until": -1}, "until=-1 is negative"),
        ({"for_": "2026-01-01"}, "not a duration"),
        ({"for_": "7d", "until": 9}, "are both given"),
        ({"validators": []}, "validators is empty"),
    ],
)
def test_invalid_arguments_are_refused_before_the_first_wait(server, store, clock, call, words):
    """Invalid arguments raise before the first wait."""
    call = {"what": "attestations", "validators": VALIDATORS, **call}
    with (
        connect(server, store) as explorer,
        pytest.raises(errors.UsageError, match=words),
    ):
        bf.record(**call, explorer=explorer)


def test_needs_a_store(server):
    """Recording without a store is an error."""
    with connect(server, False) as explorer, pytest.raises(errors.ConfigError, match="store=True"):
        bf.record("attestations", VALIDATORS, explorer=explorer)


def test_an_error_that_a_retry_cannot_cure(server, store, clock):
    """An invalid key ends the recording; recorded rows stay."""
    clock.then = lambda: server.fault("status?code=401")
    with connect(server, store) as explorer:
        with pytest.raises(errors.Unauthorized):
            record(explorer, until=300)
        assert 3 * 96 == bf.store(explorer).tables()["rows"].sum()


NEW = 9
FAR = 2**63 - 1


class LearningServer(ForgettingServer):
    """It has no duties of a validator, which it knows only since an epoch."""

    def _good(self, seen):
        path = seen.target.partition("?")[0]
        if path.rpartition("/")[2] in {"3,9", "9,3"}:
            known = [3, NEW] if self.epoch > BASE + 160 else [3]
            epochs = {"activationepoch": 0, "exitepoch": FAR, "withdrawableepoch": FAR}
            rows = [
                {"validatorindex": one, "status": "active_online", "slashed": False, **epochs}
                for one in known
            ]
        elif path.endswith("/attestations"):
            body = super()._good(seen)[1]
            rows = json.loads(body)["data"] or []
            rows = [row for row in rows if row["validatorindex"] != NEW]
        else:
            return super()._good(seen)
        return 200, json.dumps({"status": "OK", "data": rows}).encode()


@pytest.mark.filterwarnings("ignore::beaconframes.MissingRows")
def test_a_validator_that_was_unknown_once(store, monkeypatch):
    """Once the service knows the validator, duties that it never sent are lost, not absent."""
    with LearningServer() as server, connect(server, store) as explorer:
        clock = FastClock(server, 150)
        monkeypatch.setattr(recorder, "now", clock.now)
        monkeypatch.setattr(recorder, "sleep", clock.sleep)
        for module in (validator_epochs, local_store):
            passing = SimpleNamespace(time=lambda: clock.now().timestamp())
            monkeypatch.setattr(module, "time", passing)

        def record_until(until):
            report = bf.record("attestations", [3, NEW], until=BASE + until, explorer=explorer)
            return [
                (first - BASE, last - BASE, state)
                for first, last, state in report.filter(validator_index=NEW)
                .drop("validator_index")
                .rows()
            ]

        assert [(53, 140, "absent")] == record_until(140)
        # After the load of epoch 163, which fails, the service does not have these epochs.
        clock.slept.clear()
        clock.then = lambda: clock.move(300 * (len(clock.slept) - 1))
        assert [(53, 160, "lost")] == record_until(160)
