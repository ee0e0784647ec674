"""The store: final rows are stored and not requested again; other rows are never stored.

Requests are counted by the server, never by the client.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
import stat
import subprocess
import sys
import threading
import time
import warnings
from datetime import timedelta

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import errors
from beaconframes.cache import empty_responses, finality
from beaconframes.calendar import MAINNET
from beaconframes.config import settings
from beaconframes.dataset import Dataset
from beaconframes.fetch.head import HeadV2
from beaconframes.server import Server

from ..support.faults import FastClock, FaultServer

FINAL = 467
"""The last finalized epoch of the chain; two more were processed."""


@pytest.fixture(scope="module")
def server(chain):
    """The local explorer, which counts its requests."""
    with Server(chain) as running:
        yield running


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


def connect(server, store, **more):
    """Return an explorer without any state but the store."""
    return bf.Explorer(server.url, chain=server.service.chain, store=store, **more)


class Counted:
    """The rows, the warnings and the requests of a call, counted by the server."""

    def __init__(self, server, call, explorer):
        before = server.requests
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.rows = call(explorer)
        self.warnings = [warning.message for warning in caught]
        self.requests = server.requests - before


def count(server, store, call, **more):
    with connect(server, store, **more) as explorer:
        return Counted(server, call, explorer)


CALLS = {
    "income": lambda e: bf.load_income_history(range(101), since=250, until=255, explorer=e),
    "balances": lambda e: bf.load_balance_history(range(120), since=0, until=120, explorer=e),
    "proposals": lambda e: bf.load_proposals(range(30), since=0, until=110, explorer=e),
    "withdrawals": lambda e: bf.load_validator_withdrawals(
        range(50), since=0, until=110, explorer=e
    ),
    "attestations": lambda e: bf.load_attestations(range(50), since=400, until=450, explorer=e),
    "slim": lambda e: bf.load_attestations([1, 2], since=400, until=450, slim=True, explorer=e),
    "epochs": lambda e: bf.load_epochs(since=100, until=110, explorer=e),
    "epoch slots": lambda e: bf.load_epoch_slots(since=100, until=103, explorer=e),
    "yield": lambda e: bf.load_yield_index(since=0, until=1, explorer=e),
    "slots": lambda e: bf.load_slots(range(3200, 3208), explorer=e),
    "slot attestations": lambda e: bf.load_slot_attestations([11840, 11841], explorer=e),
    "slot withdrawals": lambda e: bf.load_slot_withdrawals(range(3200, 3206), explorer=e),
    "sync": lambda e: bf.load_sync_committees([0, 1], explorer=e),
    "wall": lambda e: bf.load_graffiti_wall(since=0, until=12_000, explorer=e),
    "wall, summary": lambda e: bf.load_graffiti_wall(
        since=0, until=12_000, summarize=True, explorer=e
    ),
    "wall, part": lambda e: bf.load_graffiti_wall(
        (0, 0, 500, 500), since=0, until=12_000, explorer=e
    ),
    "days": lambda e: bf.load_validator_stats(range(3), since=0, until=1, explorer=e),
    "execution": lambda e: bf.load_execution_blocks(range(1000, 1120), explorer=e),
    "rewards of V2": lambda e: bf.v2.load_rewards(
        range(12), since=100, until=101, explorer=e
    ),
    "slots of V2": lambda e: bf.v2.load_slot(range(3200, 3206), explorer=e),
    "withdrawals of V2": lambda e: bf.v2.load_slot_withdrawals([3200, 3201], explorer=e),
}  # fmt: skip
"""Calls of every kind of loader whose rows can be final."""


class TestSecondLoad:
    @pytest.mark.parametrize("name", CALLS)
    def test_second_call(self, server, store, name):
        """F07: by another explorer, the same call sends no request and returns the same frame."""
        plain = count(server, False, CALLS[name])
        first, second = (count(server, store, CALLS[name]) for _ in range(2))

        assert_frame_equal(plain.rows, first.rows)
        assert_frame_equal(plain.rows, second.rows)
        assert 0 == second.requests < first.requests <= plain.requests + 1
        assert (
            [*map(str, plain.warnings)]
            == [*map(str, first.warnings)]
            == [*map(str, second.warnings)]
        )

    def test_other_batches_and_windows(self, server, store):
        """F07: rows that were stored by some batches and windows serve all others, in any order."""
        with connect(server, store) as explorer:
            bf.load_balance_history(range(130), since=0, until=249, explorer=explorer)
            before = server.requests
            for validators, since, until in [
                (range(99, 130), 30, 180),
                ([129, 3, 77], 249, 249),
                (range(130), 0, 249),
                ([5], 0, 100),
            ]:
                found = bf.load_balance_history(
                    validators, since=since, until=until, explorer=explorer
                )
                assert len(validators) * (until - since + 1) == found.height
            with settings(frame="pandas"):
                bf.load_balance_history("7", since=10, until=20, explorer=explorer)

        assert before == server.requests

    @pytest.mark.more
    def test_another_process(self, server, store, chain):
        """A new process uses the rows that another one stored."""
        expected = count(server, store, CALLS["balances"]).rows
        before = server.requests
        code = (
            "import sys, beaconframes as bf\n"
            "from beaconframes.dataset import Dataset\n"
            "from beaconframes.endpoint.chain_metadata import ChainMetadata\n"
            "chain = ChainMetadata.parse(Dataset.open(sys.argv[3]).meta).chain\n"
            "e = bf.Explorer(sys.argv[1], chain=chain, store=sys.argv[2])\n"
            "rows = bf.load_balance_history(range(120), since=0, until=120, explorer=e)\n"
            "print(rows['balance_gwei'].sum(), rows.height)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, server.url, str(store), str(chain.path)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip

        assert before == server.requests
        assert f"{expected['balance_gwei'].sum()} {expected.height}" == done.stdout.strip()

    def test_relative_range(self, server, store):
        """If the range depends on the head, the head is requested, and nothing else."""
        call = lambda e: bf.load_income_history(range(20), since=-50, explorer=e)  # noqa: E731
        count(server, store, call)

        second = count(server, store, call)
        assert (1, 1_000) == (second.requests, second.rows.height)

    def test_stored_wall_serves_regions_and_summaries(self, server, store):
        """Regions and summaries are computed from the stored slots."""
        count(server, store, CALLS["wall"])

        for name in ("wall, summary", "wall, part"):
            found = count(server, store, CALLS[name])
            assert 0 == found.requests
            assert_frame_equal(count(server, False, CALLS[name]).rows, found.rows)

    def test_public_keys(self, server, store):
        """Keys are looked up once; rows loaded by key serve the index, and the other way round."""
        keys = bf.load_validators([3, 4, 5], explorer=connect(server, False))["pubkey"].to_list()
        call = lambda e: bf.load_balance_history(keys, since=10, until=20, explorer=e)  # noqa: E731
        first, second = count(server, store, call), count(server, store, call)
        by_index = count(
            server, store, lambda e: bf.load_balance_history([4, 5], since=12, until=15, explorer=e)
        )

        assert_frame_equal(count(server, False, call).rows, first.rows)
        assert_frame_equal(first.rows, second.rows)
        assert (0, 0, 8) == (second.requests, by_index.requests, by_index.rows.height)

    def test_unknown_key(self, server, store):
        """An unknown key is reported by the first call and by later ones."""
        call = lambda e: bf.load_balance_history(  # noqa: E731
            [7, "0x" + "ab" * 48], since=10, until=20, explorer=e
        )
        for _ in range(2):
            found = count(server, store, call)
            (warning,) = found.warnings
            assert 11 == found.rows.height
            assert "1 of 2 validators have no rows: 1 unknown to the service" in str(warning)


SHAPES = {
    "nothing": ([], (range(150), 0, 149), 4),
    "everything": ([(range(150), 0, 149)], (range(150), 0, 149), 0),
    "the first half": ([(range(100), 0, 99)], (range(100), 0, 199), 1),
    "half of the validators": ([(range(0, 100, 2), 0, 150)], (range(100), 0, 150), 2),
    "all but one": ([(range(99), 0, 99)], (range(100), 0, 99), 1),
    "all but an epoch": ([(range(50), 0, 40), (range(50), 42, 99)], (range(50), 0, 99), 1),
    "an L": ([(range(50), 0, 99)], (range(100), 0, 199), 2),
    "the other windows": ([(range(50), 37, 120)], (range(50), 0, 136), 2),
    "two gaps in a window": ([(range(9), 0, 9), (range(9), 20, 69)], (range(9), 0, 89), 1),
    "two gaps apart": ([(range(9), 0, 9), (range(9), 30, 120)], (range(9), 0, 140), 2),
    "stairs": ([(range(n, n + 1), 0, n) for n in range(0, 60, 10)], (range(0, 60, 10), 0, 99), 1),
    "the other batches": ([(range(60, 160), 0, 9)], (range(160), 0, 9), 1),
    "two halves of many": (
        [(range(75), 0, 99), (range(75, 150), 100, 199)], (range(150), 0, 199), 2
    ),
}  # fmt: skip
"""Earlier loads, the next load, and the fewest requests that it takes."""


@pytest.mark.parametrize("shape", SHAPES)
def test_partly_stored(server, store, shape):
    """If some rows are stored, the rest takes the fewest requests."""
    before, (validators, since, until), fewest = SHAPES[shape]
    with connect(server, store) as explorer:
        for some, first, last in before:
            bf.load_balance_history(some, since=first, until=last, explorer=explorer)
        # The head is known from here on, so no other request is sent.
        explorer.chain_head.latest("epoch")
        call = lambda e: bf.load_balance_history(  # noqa: E731
            validators, since=since, until=until, explorer=e
        )
        found = Counted(server, call, explorer)

    assert fewest == found.requests
    assert_frame_equal(count(server, False, call).rows, found.rows)


class TestAbsence:
    """The absence of rows is stored as well."""

    @pytest.fixture
    def late_validator(self, chain):
        """A validator that was activated in the middle of the chain, and its first epoch."""
        first = pl.col("activation_epoch")
        rows = chain.scan("validators").filter(first.is_between(20, 300)).collect()
        return rows["validator_index"][0], rows["activation_epoch"][0]

    @pytest.mark.parametrize("beside", [[], [5]])
    def test_not_active_yet(self, server, store, late_validator, beside):
        """G1: epochs before the activation are not missing, and are requested once."""
        validator, first = late_validator
        call = lambda e: bf.load_income_history(  # noqa: E731
            [validator, *beside], since=0, until=first + 10, explorer=e
        )
        plain = count(server, False, call)
        found, second = (count(server, store, call) for _ in range(2))

        assert 0 == second.requests
        assert_frame_equal(plain.rows, second.rows)
        assert [] == plain.warnings == found.warnings == second.warnings
        assert first == second.rows.filter(validator_index=validator)["epoch"].min()

    @pytest.fixture
    def later(self, monkeypatch):
        """Move the clock, so that the next response confirms earlier ones."""
        now = time.time()
        times = itertools.count()

        def move():
            at = now + next(times) * empty_responses.CONFIRMATION_SECONDS
            monkeypatch.setattr(time, "time", lambda: at)

        return move

    def test_unknown_validator(self, server, store, later):
        """An unknown validator has no rows; two loads show that, and no later one requests it."""
        call = lambda e: bf.load_income_history([5, 999_999], since=9, until=40, explorer=e)  # noqa: E731
        for _ in range(2):
            later()
            assert 0 < count(server, store, call).requests
        later()
        third = count(server, store, call)

        assert (0, 32, 1) == (third.requests, third.rows.height, len(third.warnings))
        assert "unknown to the service (999999)" in str(third.warnings[0])

    def test_missed_slots(self, server, store, chain, later):
        """A slot without a block is requested by two loads."""
        missed = chain.scan("blocks").filter(status="missed").head(4).collect()["slot"].to_list()
        call = lambda e: bf.load_slots([*missed, 3200], explorer=e)  # noqa: E731
        for _ in range(2):
            later()
            assert 0 < count(server, store, call).requests
        later()
        third = count(server, store, call)

        assert (0, 1, 1) == (third.requests, third.rows.height, len(third.warnings))

    @pytest.mark.parametrize(
        ("path", "call"),
        [
            ("validator", lambda e: bf.load_income_history(101, since=9, until=9, explorer=e)),
            ("slot", lambda e: bf.load_slots([3200, 3201], explorer=e)),
        ],
    )
    def test_a_service_without_any_answer_is_not_evidence(self, server, store, path, call):
        """If nothing is received, not even from another table, no absence is stored."""
        expected = count(server, False, call).rows
        with FaultServer(f"rows_empty?path=/{path}", upstream=server.url) as silent:
            options = {"chain": server.service.chain, "store": store, "rate": 10_000}
            with bf.Explorer(silent.url, **options) as explorer:
                with pytest.warns(errors.MissingRows):
                    assert call(explorer).is_empty()
                silent.fault("")
                found = call(explorer)

        assert_frame_equal(expected, found)
        assert expected.height > 0

    def test_rows_that_are_not_published_yet(self, server, store):
        """Recent final epochs without rows are requested again, since rows may follow."""
        with FaultServer(
            "rows_lack?fields=epoch&cells=466,467&path=/income", upstream=server.url
        ) as late:
            call = lambda e: bf.load_income_history([5, 6], since=400, until=FINAL, explorer=e)  # noqa: E731
            explorer = bf.Explorer(late.url, chain=server.service.chain, store=store, rate=10_000)
            with pytest.warns(errors.MissingRows, match="epoch 466 to 467"):
                assert 2 * 66 == call(explorer).height
            late.fault("")
            assert 2 * 68 == call(explorer).height
            explorer.close()


class TestComplete:
    def test_gaps_are_never_stored(self, server, store):
        """A gap between final rows is an error, and the next call requests it again."""
        call = lambda e: bf.load_balance_history(range(9), since=0, until=150, explorer=e)  # noqa: E731
        with FaultServer("rows_drop?every=11&path=/validator", upstream=server.url) as bad:
            explorer = bf.Explorer(bad.url, chain=server.service.chain, store=store, rate=10_000)
            with pytest.raises(errors.IntegrityError, match="final rows are missing"):
                call(explorer)
            bad.fault("")
            seen = len(bad.seen)
            found = call(explorer)
            requested = [s.target for s in bad.seen[seen:] if "balance" in s.target]
            explorer.close()

        assert_frame_equal(count(server, False, call).rows, found)
        assert 2 == len(requested)

    @pytest.mark.parametrize("fault", ["5xx?code=503", "body?hex=7b7d", "204"])
    def test_errors_are_never_stored(self, server, store, fault):
        """F09: after an error, neither rows nor their absence are stored."""
        call = lambda e: bf.load_epochs(since=100, until=103, explorer=e)  # noqa: E731
        with FaultServer(f"{fault}&path=/epoch/" if "?" in fault else f"{fault}?path=/epoch/",
                         upstream=server.url) as bad:  # fmt: skip
            explorer = bf.Explorer(bad.url, chain=server.service.chain, store=store, rate=10_000)
            explorer.rate_limiter.clock = FastClock()
            with pytest.raises(errors.BeaconframesError):
                call(explorer)
            bad.fault("")
            assert 4 == call(explorer).height
            explorer.close()

    def test_rows_before_an_error_are_stored(self, server, store):
        """The next call continues where the previous one failed."""
        call = lambda e: bf.load_epochs(since=100, until=139, explorer=e)  # noqa: E731
        with FaultServer(upstream=server.url) as bad:
            explorer = bf.Explorer(bad.url, chain=server.service.chain, store=store, rate=10_000)
            bad.fault("status?code=401&path=/epoch/13")
            with pytest.raises(errors.Unauthorized):
                call(explorer)
            bad.fault("")
            before = {s.target for s in bad.seen if "/epoch/" in s.target}
            seen = len(bad.seen)
            found = call(explorer)
            after = {s.target for s in bad.seen[seen:] if "/epoch/" in s.target}
            explorer.close()

        assert_frame_equal(count(server, False, call).rows, found)
        assert {f"/api/v1/epoch/{epoch}" for epoch in range(130, 140)} <= after
        # Of the 30 good ones, only those in flight may be requested twice.
        assert len(after & before) <= 10 + 16

    def test_interrupt(self, server, store, monkeypatch):
        """Rows that were received before Ctrl-C are stored."""
        from beaconframes.fetch import source as api_source

        monkeypatch.setattr(api_source, "FLUSH_SECONDS", 0.0)
        call = lambda e: bf.load_epochs(since=100, until=115, explorer=e)  # noqa: E731
        with connect(server, store) as explorer:
            pieces, numbers = explorer.source.fetch_rows, iter(range(99))

            def interrupt(*arguments):
                for piece in pieces(*arguments):
                    yield piece
                    if next(numbers) == 7:
                        raise KeyboardInterrupt

            explorer.source.fetch_rows = interrupt
            with pytest.raises(KeyboardInterrupt):
                call(explorer)

            stored = bf.store(explorer).coverage("epochs")

        assert 8 == (stored["last"] - stored["first"] + 1).sum()
        assert_frame_equal(count(server, False, call).rows, count(server, store, call).rows)


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
        return Counted(moving, call, explorer)


class TestFinality:
    """Only final rows are stored, whatever a response or its headers say."""

    def balances(self, since=430, until=452):
        return lambda e: bf.load_balance_history([1, 2], since=since, until=until, explorer=e)

    def open_dataset(self, store):
        (folder,) = store.iterdir()
        return Dataset.open(folder)

    def test_reorganised_epochs_leave_no_trace(self, server, store, moving):
        """F01, F02: only the final part of a window is stored; the rest is requested again."""
        moving.finalized = 440
        first = load_from(moving, store, server, self.balances())
        assert 440 == self.open_dataset(store).scan("balance_history").collect()["epoch"].max()
        assert {"1": ((430, 440),), "2": ((430, 440),)} == self.open_dataset(store).coverage(
            "balance_history"
        )

        moving.branch = 7
        second = load_from(moving, store, server, self.balances())
        changed = second.rows["balance_gwei"] - first.rows["balance_gwei"]
        assert [7 if epoch > 440 else 0 for epoch in first.rows["epoch"]] == changed.to_list()
        assert 440 == self.open_dataset(store).scan("balance_history").collect()["epoch"].max()

        moving.finalized, moving.epoch = 455, 457
        load_from(moving, store, server, self.balances())
        third = load_from(moving, store, server, self.balances())
        assert (0, True) == (third.requests, second.rows.equals(third.rows))

    def test_stalled_finality(self, server, store, moving):
        """F05: no epoch after the finalized one is stored, however far the chain advances."""
        moving.epoch, moving.finalized = 460, 360
        load_from(moving, store, server, self.balances(340, 460))

        assert 360 == self.open_dataset(store).scan("balance_history").collect()["epoch"].max()

    def test_finality_that_goes_back(self, server, store, moving):
        """F06: stored rows stay final when a replica lags."""
        load_from(moving, store, server, self.balances(430, 450))
        moving.finalized, moving.epoch = 420, 452
        second = load_from(moving, store, server, self.balances(430, 450))

        assert (0, 42) == (second.requests, second.rows.height)
        assert 450 == self.open_dataset(store).meta["finalized_epoch"]

    @pytest.mark.parametrize(
        ("stated", "stored", "then_stored"),
        [([450, 440], 440, 450), ([440, 450], 440, 450), ([450] * 2, 450, 450)],
    )
    def test_recent_finality_needs_two_responses(
        self, server, store, moving, monkeypatch, caplog, stated, stored, then_stored
    ):
        """F06: recent epochs are stored if two responses call them final; the plan counts both."""
        monkeypatch.setattr(finality, "SECOND_RESPONSE_AGE", timedelta(days=36_500))
        call = self.balances(430, 450)
        moving.regress = iter(stated)
        with bf.Explorer(moving.url, chain=server.service.chain, store=store, rate=99) as explorer:
            planned = bf.plan(
                bf.load_balance_history, [1, 2], since=430, until=450, explorer=explorer
            )
            found = Counted(moving, call, explorer)

        assert planned.requests == found.requests == 3
        assert (42, stored) == (
            found.rows.height,
            self.open_dataset(store).meta["finalized_epoch"],
        )
        assert stored == self.open_dataset(store).scan("balance_history").collect()["epoch"].max()
        assert (stated == [450, 440]) == ("440 is finalized, but reported 450" in caplog.text)

        load_from(moving, store, server, call)
        assert then_stored == self.open_dataset(store).meta["finalized_epoch"]
        assert 0 == load_from(moving, store, server, call).requests

    def test_recent_finality_of_v2_needs_two_responses(self):
        """V2 states a slot; two responses agree on a whole epoch."""
        slots = iter([15 * 32 + 31, 14 * 32 + 31, 16 * 32])
        views = HeadV2(lambda _: b'{"slot": %d}' % next(slots), MAINNET)

        assert (15, -1) == (
            views.latest("epoch", MAINNET, finalized=True),
            views.agreed(refresh=False),
        )
        assert 14 == views.agreed(refresh=True)
        assert 15 == views.agreed(refresh=True) == views.latest("epoch", MAINNET, finalized=True)

    def test_rows_that_say_that_they_are_not_final(self, server, store, moving):
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

    def test_incomplete_epoch_is_not_stored(self, server, store):
        """P24: a final epoch with a missing slot is requested again."""
        fault = "rows_drop?every=40&path=/epoch/"
        call = lambda e: bf.load_epoch_slots(since=100, until=101, explorer=e)  # noqa: E731
        with FaultServer(fault, upstream=server.url) as bad:
            explorer = bf.Explorer(bad.url, chain=server.service.chain, store=store, rate=10_000)
            with explorer:
                try:
                    call(explorer)
                except errors.IntegrityError as error:
                    missing_epochs = set(error.missing["first_epoch"])
                else:
                    missing_epochs = set()
                bad.fault("")
                seen = len(bad.seen)
                found = call(explorer)
                requested = sum("/slots" in s.target for s in bad.seen[seen:])

        assert len(missing_epochs) == requested
        assert_frame_equal(count(server, False, call).rows, found)

    def test_present_state_is_never_stored(self, server, store):
        """F08: loaders of the present state send a request each time."""
        for call in (
            lambda e: bf.load_validators([1, 2], explorer=e),
            lambda e: bf.load_gas_fees(explorer=e),
            lambda e: bf.v2.load_machine_names(explorer=e),
        ):
            assert [1, 1] == [count(server, store, call).requests for _ in range(2)]
        assert not store.exists()

    def test_clock(self, server, store, monkeypatch):
        """F18: the clock of the machine has no effect; stored rows do not expire."""
        import time

        count(server, store, CALLS["balances"])
        for years in (-1, 1):
            now = time.time() + years * 365 * 86_400
            monkeypatch.setattr(time, "time", lambda now=now: now)
            assert 0 == count(server, store, CALLS["balances"]).requests


class TestSeparation:
    """Different data is stored separately."""

    def test_services_and_chains(self, server, store, chain):
        """F08: each address, path and chain has its own store."""
        count(server, store, CALLS["balances"])
        with Server(chain) as other:
            assert count(other, store, CALLS["balances"]).requests > 0
        stored = {bf.Explorer(url, chain=name, store=store, api_key="k").local_store.path
                for url in ("https://a.example", "https://a.example/x", "https://b.example")
                for name in ("mainnet", "hoodi")}  # fmt: skip

        assert 6 == len(stored)
        assert 2 == len(list(store.iterdir()))

    def test_slim(self, server, store):
        """F08: slim attestations have fewer columns, so they have a table of their own."""
        with connect(server, store) as explorer:
            load = lambda slim: bf.load_attestations(  # noqa: E731
                [1], since=400, until=420, slim=slim, explorer=explorer
            )
            slim, raise_disk_full = load(True), load(False)

        assert slim["committee_index"].is_null().all()
        assert not raise_disk_full["committee_index"].is_null().any()

    def test_sets_are_not_stored(self, server, store):
        """The members of a set may change, and depend on the key: rows of sets are not stored."""
        with connect(server, store) as explorer:
            for _ in range(2):
                before = server.requests
                bf.v2.load_rewards(bf.v2.dashboard(1), since=100, until=100, explorer=explorer)
                assert server.requests > before


class TestLocation:
    def test_off_on_this_machine(self, server, monkeypatch, tmp_path):
        """Rows of a service on this machine are stored only with store=True."""
        assert bf.Explorer(server.url, chain=server.service.chain).local_store is None
        assert (
            bf.Explorer(server.url, chain=server.service.chain, store=True).local_store is not None
        )
        with bf.local(server.service.dataset) as local:
            assert local.explorer.local_store is None

    def test_on_for_remote_services(self, monkeypatch, tmp_path):
        """Rows are stored in the platform's folder for data, or in the folder of the setting."""
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
        url = "https://explorer.example/x"
        assert tmp_path / "data/beaconframes/store" == bf.Explorer(url).local_store.path.parent
        assert bf.Explorer(url, store=False).local_store is None
        assert (
            tmp_path / "mine" == bf.Explorer(url, store=tmp_path / "mine").local_store.path.parent
        )
        for text, where in (("no", None), ("yes", "data/beaconframes/store"), ("~/x", "home/x")):
            monkeypatch.setenv("HOME", str(tmp_path / "home"))
            monkeypatch.setenv("BEACONFRAMES_STORE", text)
            local_store = bf.Explorer(url).local_store
            assert (tmp_path / where if where else None) == (
                local_store and local_store.path.parent
            )
        assert not (tmp_path / "data").exists()

    def test_permissions(self, server, store):
        """F17: folders are 0700 and files 0600."""
        count(server, store, CALLS["balances"])
        modes = {stat.S_IMODE(path.stat().st_mode) for path in store.rglob("*") if path.is_dir()}
        files = {stat.S_IMODE(path.stat().st_mode) for path in store.rglob("*") if path.is_file()}

        assert ({0o700}, {0o600}) == (modes, files)

    def test_no_key_in_the_store(self, server, store):
        """The store does not contain the key, in any usual spelling."""
        key = "a-very-secret-key"
        with connect(server, store, api_key=key) as explorer:
            CALLS["balances"](explorer)
        content = b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file())
        names = "".join(map(str, store.rglob("*")))

        for spelling in (key, key.encode().hex(), key[::-1], key.upper()):
            assert spelling.encode() not in content
            assert spelling not in names

    def test_local_explorer_with_a_store(self, chain, store):
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

    def test_another_dataset_has_another_store(self, chain, store, tmp_path):
        """Two simulations in the same folder never share rows."""
        from beaconframes.simulator import simulate

        seen = []
        for seed in (1, 2):
            simulation = simulate(tmp_path / str(seed) / "made", validators=64, epochs=8, seed=seed)
            with bf.local(simulation, store=store):
                seen.append(bf.load_balance_history(range(32), since=0, until=3))

        assert 2 == len(list(store.iterdir()))
        assert not seen[0].equals(seen[1])

    def test_store_can_be_served(self, server, store):
        """The store is a dataset: a local explorer can serve it."""
        count(server, store, CALLS["balances"])
        (folder,) = store.iterdir()
        with bf.local(folder) as local:
            found = bf.load_balance_history([3, 4], since=10, until=20)
            assert 1 == local.requests

        assert 22 == found.height


class TestFailures:
    """Failures of the store stop no load."""

    call = staticmethod(CALLS["balances"])

    def test_unwritable_folder(self, server, tmp_path):
        """F13: if the store cannot be written, one warning is raised, and loads continue."""
        (tmp_path / "file").write_text("in the way")
        with connect(server, tmp_path / "file" / "store") as explorer:
            with pytest.warns(errors.StoreUnavailable, match="the store is not used"):
                first = self.call(explorer)
            second = self.call(explorer)

        assert_frame_equal(first, second)
        assert_frame_equal(count(server, False, self.call).rows, first)

    def test_disk_full(self, server, store, monkeypatch):
        """F13: rows that do not fit are not stored; rows stored before are still used."""
        part = lambda e: bf.load_balance_history(range(120), since=0, until=50, explorer=e)  # noqa: E731
        count(server, store, part)

        def raise_disk_full(self, *_, **__):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(pl.DataFrame, "write_parquet", raise_disk_full)
            found = count(server, store, self.call)
        assert_frame_equal(count(server, False, self.call).rows, found.rows)
        (warning,) = found.warnings
        assert "No space left on device" in str(warning)

        count(server, store, self.call)
        assert 0 == count(server, store, self.call).requests

    @pytest.mark.parametrize("how", ["flip", "cut", "gone", "folder", "link"])
    def test_damaged_segment(self, server, store, how):
        """The rows of a damaged file are requested again, and no others."""
        other = lambda e: bf.load_balance_history([900], since=0, until=9, explorer=e)  # noqa: E731
        expected = count(server, store, self.call).rows
        count(server, store, other)
        (folder,) = store.iterdir()
        path = folder / Dataset.open(folder).segments("balance_history")[0].path
        content = bytearray(path.read_bytes())
        path.unlink()
        content[len(content) // 2] ^= 1
        if how == "folder":
            path.mkdir()
        elif how == "link":
            path.symlink_to("/etc/passwd")
        elif how != "gone":
            path.write_bytes(content[: -3 if how == "cut" else None])

        found = count(server, store, self.call)
        assert_frame_equal(expected, found.rows)
        assert (True, []) == (found.requests > 0, found.warnings)
        assert 0 == count(server, store, self.call).requests
        assert 0 == count(server, store, other).requests

    @pytest.mark.parametrize("how", ["rubbish", "empty", "newer", "foreign"])
    def test_unreadable_ledger(self, server, store, how):
        """An unreadable store is renamed, and a new one is created."""
        expected = count(server, store, self.call).rows
        (folder,) = store.iterdir()
        ledger = folder / "ledger.sqlite"
        if how in {"rubbish", "empty"}:
            ledger.write_bytes(b"" if how == "empty" else b"no database, but long enough" * 99)
        else:
            connection = sqlite3.connect(ledger)
            connection.execute(
                "PRAGMA user_version = 99" if how == "newer" else "PRAGMA application_id = 1"
            )
            connection.close()

        found = count(server, store, self.call)
        (warning,) = found.warnings
        assert ("was renamed to" in str(warning), type(warning)) == (True, errors.StoreUnavailable)
        assert_frame_equal(expected, found.rows)
        assert 2 == len(list(store.iterdir()))
        assert 0 == count(server, store, self.call).requests

    def test_other_columns(self, server, store):
        """F14: a table that another version stored with other columns is requested again."""
        count(server, store, self.call)
        (folder,) = store.iterdir()
        dataset = Dataset.open(folder)
        old = dataset.scan("balance_history").drop("time").collect()
        grid, covered = dataset.grids()["balance_history"], dataset.coverage("balance_history")
        dataset.prune("balance_history")
        with dataset.writing() as writer:
            writer.add_covered("balance_history", old, grid, covered)

        found = count(server, store, self.call)
        assert_frame_equal(count(server, False, self.call).rows, found.rows)
        assert 0 == count(server, store, self.call).requests

    def test_deleted_while_in_use(self, server, store):
        """A store may be deleted at any time."""
        import shutil

        with connect(server, store) as explorer:
            first = self.call(explorer)
            shutil.rmtree(store)
            assert_frame_equal(first, self.call(explorer))
            before = server.requests
            assert_frame_equal(first, self.call(explorer))

        assert before == server.requests

    def test_created_by_another_process_meanwhile(self, server, store, monkeypatch):
        """A store that another process creates between two checks is used."""
        created, first = [], connect(server, store)
        real = type(store).exists

        def exists_then_create(path, **more):
            there = real(path, **more)
            if sys._getframe(1).f_code.co_name == "_create" and not created:
                created.append(path)
                with connect(server, store) as other:
                    bf.load_balance_history(1, since=0, until=9, explorer=other)
            return there

        monkeypatch.setattr(type(store), "exists", exists_then_create)
        with first:
            bf.load_balance_history(2, since=0, until=9, explorer=first)

        (folder,) = store.iterdir()
        assert 20 == Dataset.open(folder).scan("balance_history").collect().height

    def test_concurrent_threads(self, server, store):
        """Threads that load overlapping parts: no error, no duplicate row."""
        frames, failures = {}, []

        def load(n):
            try:
                with connect(server, store) as explorer:
                    frames[n] = bf.load_balance_history(
                        range(n * 5, n * 5 + 20), since=n * 10, until=n * 10 + 60, explorer=explorer
                    )
            except BaseException as error:  # noqa: BLE001
                failures.append(error)

        work = [threading.Thread(target=load, args=(n,)) for n in range(8)]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        (folder,) = store.iterdir()
        stored = Dataset.open(folder).scan("balance_history").collect()

        assert [] == failures
        assert {20 * 61} == {frame.height for frame in frames.values()}
        assert stored.height == stored.select("validator_index", "epoch").n_unique()


class TestOffline:
    def test_loads_from_the_store(self, server, store):
        """Stored rows are loaded without a request, for absolute and for relative ranges."""
        expected = count(server, store, CALLS["balances"]).rows
        count(server, store, lambda e: bf.load_income_history([1], since=-9, explorer=e))
        found = count(server, store, CALLS["balances"], offline=True)
        newest = count(
            server, store, lambda e: bf.load_income_history([1], since=-5, explorer=e), offline=True
        )

        assert_frame_equal(expected, found.rows)
        assert (0, [], 0) == (found.requests, found.warnings, newest.requests)
        assert [463, 464, 465, 466, 467] == newest.rows["epoch"].to_list()

    def test_missing_rows_are_named(self, server, store):
        """Rows that are not stored are reported by subject and range; an error with strict."""
        count(server, store, CALLS["balances"])
        with connect(server, store, offline=True) as explorer:
            with pytest.warns(errors.MissingRows) as caught:
                found = bf.load_balance_history([5, 300], since=100, until=130, explorer=explorer)
            with pytest.raises(errors.MissingRows):
                bf.load_proposals([5], since=100, until=130, explorer=explorer, strict=True)

        assert 21 == found.height
        why = "not stored"
        expected = [(5, 121, 130, why), (300, 100, 130, why)]
        assert expected == caught[0].message.missing.rows()

    def test_present_state_needs_requests(self, server, store):
        """The present state cannot be loaded offline, and the error says so."""
        count(server, store, CALLS["balances"])
        explorer = connect(server, store, offline=True)

        with pytest.raises(errors.UsageError, match="needs requests"):
            bf.load_validators([1], explorer=explorer)
        with pytest.raises(errors.UsageError, match="needs requests"):
            bf.load_yield_index(explorer=explorer)

    def test_needs_a_store(self, server, store):
        """Offline without a store, or with an empty one, is an error."""
        with pytest.raises(errors.ConfigError, match="needs a store"):
            connect(server, False, offline=True)
        with pytest.raises(errors.ConfigError, match="needs stored rows"):
            connect(server, store, offline=True)

    def test_without_a_key(self, monkeypatch, tmp_path):
        """The store of the public service can be used without a key."""
        monkeypatch.setenv("BEACONFRAMES_OFFLINE", "1")
        with pytest.raises(errors.ConfigError, match="needs stored rows"):
            bf.Explorer(store=tmp_path)


class TestLazy:
    def test_same_rows(self, server, store):
        """A LazyFrame over the store has the rows that the frame has."""
        with connect(server, store) as explorer:
            expected = CALLS["balances"](explorer)
            lazy = bf.load_balance_history(
                range(120), since=0, until=120, lazy=True, explorer=explorer
            )
            assert isinstance(lazy, pl.LazyFrame)
            assert_frame_equal(expected, lazy.sort("validator_index", "epoch").collect())

    def test_rows_that_are_not_final(self, server, store, moving):
        """Rows that cannot be stored yet are in the LazyFrame too."""
        call = lambda e: bf.load_balance_history(  # noqa: E731
            [1, 2], since=445, until=452, lazy=True, explorer=e
        )
        found = load_from(moving, store, server, call)

        assert 16 == found.rows.collect().height

    @pytest.mark.parametrize("store", [False])
    def test_without_a_store(self, server, store):
        """Without a store the LazyFrame is made from the loaded frame."""
        with connect(server, store) as explorer:
            lazy = bf.load_balance_history([1], since=0, until=9, lazy=True, explorer=explorer)

        assert (True, 10) == (isinstance(lazy, pl.LazyFrame), lazy.collect().height)

    def test_compaction_keeps_the_files_of_a_lazy_frame(self, server, store):
        """A LazyFrame can be collected after the files under it were replaced."""
        with connect(server, store) as explorer:
            for first in range(0, 100, 20):
                bf.load_balance_history(range(9), since=first, until=first + 19, explorer=explorer)
            lazy = bf.load_balance_history(
                range(9), since=0, until=99, lazy=True, explorer=explorer
            )
            bf.store(explorer).compact()

        assert 900 == lazy.collect().height


class TestPublicStore:
    def test_tables(self, server, store):
        """bf.store() lists tables: rows, bytes, subjects, and the stored range."""
        with connect(server, store) as explorer:
            CALLS["balances"](explorer)
            CALLS["epochs"](explorer)
            stored = bf.store(explorer)
        tables = {row["table"]: row for row in stored.tables().iter_rows(named=True)}

        assert {"balance_history", "epochs"} == set(tables)
        assert (120 * 121, 120, "epoch", 0, 120) == tuple(
            tables["balance_history"][n] for n in ("rows", "subjects", "unit", "first", "last")
        )
        assert (11, 1, 100, 110) == tuple(
            tables["epochs"][n] for n in ("rows", "subjects", "first", "last")
        )
        assert [("7", 0, 120)] == stored.coverage("balance_history", [7]).rows()
        assert stored.size >= sum(row["bytes"] for row in tables.values())
        assert "balance_history" in repr(stored)
        assert str(stored.path) in repr(stored)
        assert "<table" in stored._repr_html_()

    def test_maintenance(self, server, store):
        """It can be verified, mended, compacted and pruned; pruned rows are requested again."""
        with connect(server, store) as explorer:
            CALLS["balances"](explorer)
            stored = bf.store(explorer)
            stored.compact()
            assert [] == stored.verify() == stored.mend()
            stored.prune("balance_history", range(50), last=99)
            assert 1 == Counted(server, CALLS["balances"], explorer).requests
            stored.prune()
            assert stored.tables().is_empty()
            assert 4 == Counted(server, CALLS["balances"], explorer).requests

    def test_empty_store(self, server, store):
        """An empty store has no tables; an explorer without a store raises."""
        stored = bf.store(connect(server, store))

        assert (0, 0, []) == (
            stored.size,
            stored.tables().height,
            stored.verify(),
        )
        with pytest.raises(errors.ConfigError, match="has no store"):
            bf.store(connect(server, False))

    def test_many_loads_make_few_files(self, server, store):
        """Small files are merged when there are many."""
        with connect(server, store) as explorer:
            for first in range(0, 50, 2):
                bf.load_balance_history([1], since=first, until=first + 1, explorer=explorer)

        (folder,) = store.iterdir()
        assert len(Dataset.open(folder).segments("balance_history")) <= 17
