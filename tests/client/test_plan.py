"""The plan states the requests of a call in advance; the server counts the actual ones."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime
from typing import ClassVar

import polars as pl
import pytest

import beaconframes as bf
from beaconframes import errors
from beaconframes.client.plan import Plan
from beaconframes.config import settings

from ..support.cases import every
from ..support.store_processes import connect


@pytest.fixture
def server(running):
    """The local explorer, which counts its requests."""
    return running


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


INCOME, BALANCES = bf.load_income_history, bf.load_balance_history
HALF = [(BALANCES, range(0, 100, 2), {"since": 0, "until": 110})]
CALLS = {
    "one window": ((), INCOME, [1, 2, 3], {"since": 100, "until": 199}),
    "three windows": ((), INCOME, range(4), {"since": 100, "until": 349}),
    "two batches": ((), BALANCES, range(130), {"since": 0, "until": 99}),
    "batches and windows": ((), BALANCES, range(101), {"since": 10, "until": 112}),
    "1,000 validators": ((), BALANCES, range(1000), {"since": 300, "until": 301}),
    "relative": ((), INCOME, range(5), {"since": -120}),
    "default range": ((), BALANCES, range(5), {}),
    "state of 250": ((), bf.load_validators, range(250), {}),
    "recent duties": ((), bf.load_attestations, range(101), {"since": -20}),
    "epoch by epoch": ((), bf.load_epochs, None, {"since": 100, "until": 111}),
    "slots of epochs": ((), bf.load_epoch_slots, None, {"since": 100, "until": 102}),
    "slots": ((), bf.load_slots, range(3200, 3211), {}),
    "words": ((), bf.load_slots, ["latest"], {}),
    "the newest slot": ((), bf.v2.load_slot, ["latest"], {}),
    "committees": ((), bf.load_sync_committees, [0, 1], {}),
    "wall": ((), bf.load_graffiti_wall, None, {"since": 0, "until": 12_000}),
    "days of validators": ((), bf.load_validator_stats, range(4), {"since": 0, "until": 1}),
    "execution blocks": ((), bf.load_execution_blocks, range(1000, 1120), {}),
    "now": ((), bf.load_latest_state, None, {}),
    "picture": ((), bf.load_chart, "validators", {}),
    "25 of V2": ((), bf.v2.load_validators, range(25), {}),
    "120 of V2": ((), bf.v2.load_balances, range(120), {"since": 200, "until": 200}),
    "three epochs": ((), bf.v2.load_rewards, range(12), {"since": 100, "until": 102}),
    "one slot": ((), bf.v2.load_slot, range(3200, 3203), {}),
    "everything stored": (HALF, BALANCES, range(0, 100, 2), {"since": 0, "until": 110}),
    "half of the validators stored": (HALF, BALANCES, range(100), {"since": 0, "until": 110}),
    "half of the range stored": (HALF, BALANCES, range(0, 100, 2), {"since": 80, "until": 189}),
    "the other windows": (HALF, BALANCES, range(0, 120, 3), {"since": 40, "until": 150}),
    "relative, stored": (HALF, BALANCES, range(0, 100, 2), {"since": -400, "until": 130}),
    "another table": (HALF, INCOME, range(5), {"since": 0, "until": 20}),
    "rewards stored": (
        [(bf.v2.load_rewards, range(12), {"since": 100, "until": 101})],
        bf.v2.load_rewards, range(25), {"since": 100, "until": 102},
    ),
    "slots stored": ([(bf.load_slots, [3200, 3202, 3209], {})],
                     bf.load_slots, range(3200, 3210), {}),
}  # fmt: skip
"""Earlier loads, a loader, its subject, and its other arguments."""


def call_quietly(loader, subject, more, explorer):
    """Call the loader without warnings of missing rows."""
    positional = () if subject is None else (subject,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.MissingRows)
        return loader(*positional, **more, explorer=explorer)


@pytest.mark.parametrize("name", every(3, CALLS))
def test_the_plan_is_the_number_of_requests(server, store, name):
    """C5: the plan sends nothing, and equals the number of requests that the server counts.

    If a head is assumed, its age decides about one request: the second response about finality.
    """
    before, loader, subject, more = CALLS[name]
    has_store = before or [*CALLS].index(name) % 2
    for call in before:
        call_quietly(*call, connect(server, store))
    with connect(server, store if has_store else False) as explorer:
        before_plan = server.requests
        positional = () if subject is None else (subject,)
        plan = bf.plan(loader, *positional, **more, explorer=explorer)
        planned = server.requests
        rows = call_quietly(loader, subject, more, explorer)

    assert planned == before_plan
    tolerance = 1 if "from the clock" in str(plan) else 0
    assert abs(plan.requests - (server.requests - planned)) <= tolerance
    if plan.rows is not None:
        # The epochs to finality of this chain are one less than those of the public service.
        epochs = 1 if "from the store" in str(plan) else 0
        assert abs(rows.height - plan.rows - plan.stored_rows) <= epochs * len(subject or ())


class TestBounds:
    def test_an_unknown_number_of_pages_is_a_lower_bound(self, server):
        """If the number of pages is unknown, the plan is a lower bound, with the reason."""
        with connect(server, False) as explorer:
            plan = bf.plan(bf.v2.load_entities, explorer=explorer)

        assert (1, "at least", None) == (plan.requests, plan.bound, plan.rows)
        assert "unknown until the last page" in str(plan)

    def test_an_unknown_identifier_limit_is_stated(self, server):
        """The limit of identifiers per request is unknown before the first response."""
        with connect(server, False) as explorer:
            call = {"since": 200, "until": 200, "explorer": explorer}
            before = bf.plan(bf.v2.load_balances, range(30), **call)
            bf.v2.load_balances(range(30), **call)
            after = bf.plan(bf.v2.load_balances, range(30), **call)

        # The head of a simulated chain is unknown at first, and takes one more request.
        bounds = [(3 + 1, "at least"), (3, "exactly")]
        assert bounds == [(p.requests, p.bound) for p in (before, after)]
        assert "100 are assumed" in before.why[0]

    def test_unknown_keys_cost_a_request(self, server, store):
        """Public keys cost a request to look up; their stored rows are known only afterwards."""
        with connect(server, store) as explorer:
            keys = bf.load_validators([3, 4], explorer=explorer)["pubkey"].to_list()
            BALANCES([3], since=0, until=9, explorer=explorer)
            call = {"since": 0, "until": 9, "explorer": explorer}
            first = bf.plan(BALANCES, keys, **call)
            BALANCES(keys, **call)
            second = bf.plan(BALANCES, keys, **call)

        assert [(2, "at most"), (0, "exactly")] == [(p.requests, p.bound) for p in (first, second)]

    def test_days_of_keys(self, server):
        """If an endpoint accepts no keys, the plan includes the request that looks them up."""
        with connect(server, False) as explorer:
            keys = bf.load_validators([3, 4], explorer=explorer)["pubkey"].to_list()
            plan = bf.plan(bf.load_validator_stats, keys, since=0, until=1, explorer=explorer)

        assert (1 + 2, "exactly") == (plan.requests, plan.bound)

    def test_invalid_arguments_are_usage_errors(self, server):
        """Any function but a loader raises UsageError; other errors are those of the loader."""
        with connect(server, False) as explorer:
            with pytest.raises(errors.UsageError, match="is not a loader"):
                bf.plan(print, 1)
            for name in ("income_history", "income-history", "load_income_history"):
                with pytest.raises(errors.UsageError, match=r"bf\.load_income_history, \.\.\."):
                    bf.plan(name, [1])
            with pytest.raises(errors.UsageError, match=r"plan\(bf\.v2\.load_rewards, \.\.\."):
                bf.plan("v2.rewards", [1])
            with pytest.raises(errors.UsageError, match="is not a validator"):
                bf.plan(INCOME, "x", explorer=explorer)
            with pytest.raises(TypeError):
                bf.plan(INCOME, [1], sincce=1, explorer=explorer)


class TestWithoutKey:
    """C5: plans, quotas and the store need no key. A request would fail: there is no network."""

    def test_absolute_epochs_are_planned_exactly(self, tmp_path):
        """Three windows, and with a store one request for the chain head: the plan is exact."""
        call = {"since": 100_000, "until": 100_249}
        with settings(store=False):
            plain = bf.plan(INCOME, range(100), **call)
        with settings(store=tmp_path):
            stored = bf.plan(INCOME, range(100), **call)

        assert [(3, "exactly", 25_000), (4, "exactly", 25_000)] == [
            (p.requests, p.bound, p.rows) for p in (plain, stored)
        ]

    @pytest.mark.parametrize(
        ("loader", "epochs"), [(bf.v2.load_rewards, 7), (bf.v2.load_balances, 10)]
    )
    def test_assumed_heads_are_final_where_the_rows_are(self, loader, epochs):
        """Rewards end with the last final epoch, three before the head; balances with the head."""
        first = bf.calendar.MAINNET.at("epoch", datetime.now(UTC)) - 9
        with settings(store=False):
            plan = bf.plan(loader, [1], since=first)

        assert plan.rows in {epochs, epochs + 1}

    def test_many_epochs_name_what_is_cheaper(self):
        """30 days have 6,750 epochs of 384 seconds, and 60 have 13,500; few need no note."""
        notes = bf.plan(bf.load_epochs, since=100_000, until=106_749).remarks
        blocks = bf.plan(bf.load_epoch_slots, since=100_000, until=113_499).remarks
        short = bf.plan(bf.load_epochs, since=100_000, until=100_299).remarks

        none = "a dataset of your own node takes none: bf.node, bf.index"
        assert ("one epoch of each day takes 30 requests", none) == notes
        assert ("one epoch of each day takes 60 requests", none) == blocks
        assert () == short

    def test_the_cheaper_loader_of_days_is_one_of_v2(self):
        """Ten days per request: what the note promises is what its plan states."""
        days = {"since": 1000, "until": 1364}
        plan = bf.plan(bf.load_yield_index, **days)

        assert ("bf.v2.load_yield_index needs fewer requests",) == plan.remarks
        assert bf.plan(bf.v2.load_yield_index, **days).requests < plan.requests / 5

    def test_relative_epochs_name_the_assumed_head(self):
        """30 days have 6,750 epochs, so 68 windows; the plan names the head that it assumes."""
        with settings(store=False):
            plan = bf.plan(INCOME, [1], since="30d")
        now = bf.calendar.MAINNET.at("epoch", datetime.now(UTC))

        assert (68 + 1, "about") == (plan.requests, plan.bound)
        assert plan.why[0] in {
            f"plans request no chain head; epoch {epoch:,} is assumed, from the clock"
            for epoch in (now - 1, now)
        }

    def test_pages_that_cannot_be_counted_are_more_requests(self):
        """An assumed head decides about a request or two, and pages about many."""
        with settings(store=False):
            plan = bf.plan(bf.report, [3, 5], since="30d", detail="epochs")

        assert "at least" == plan.bound
        assert "the number of pages is unknown until the last page" in plan.why
        assert any("plans request no chain head" in reason for reason in plan.why)

    def test_offline_nothing_is_requested(self, tmp_path):
        """Without stored rows, an offline explorer has nothing to load, and the plan says so."""
        with settings(store=tmp_path, offline=True):
            plan = bf.plan(INCOME, [1], since=0, until=9)

        assert (0, 0, 0) == (plan.requests, plan.rows, plan.stored_rows)

    def test_unknown_head_of_a_simulated_chain(self, server):
        """If the assumed head makes the range invalid, the error says that the head is assumed."""
        with (
            connect(server, False) as explorer,
            pytest.raises(errors.UsageError, match=r"plans request none: since.* is after until"),
        ):
            bf.plan(INCOME, [1], since=-9, until=400, explorer=explorer)

    def test_quota_and_store(self, tmp_path):
        """The quota says that no key is set; the store has its folder."""
        with settings(store=tmp_path):
            assert "no API key is set" in str(bf.quota())
            assert tmp_path in bf.store().path.parents
        with pytest.raises(errors.ConfigError, match="BEACONFRAMES_API_KEY"):
            bf.load_validators(1)


class TestDisplay:
    plan = Plan(
        "load_income_history", 822, rows=2_600_000, stored_rows=900_000, requests_saved=300,
        rate=1.0, month_left=900, month_limit=1000,
    )  # fmt: skip

    def test_a_terminal_shows_a_line_per_figure(self):
        """A terminal shows one line for each figure: requests, rows, store, time, quota."""
        assert """load_income_history:
  requests      822
  new rows      2,600,000
  in the store  900,000 rows, which saves 300 requests
  time          14 min at 1 request per second
  this month    91.3% of the 900 requests left of 1,000""" == repr(self.plan)

    def test_a_notebook_shows_a_table(self):
        """A notebook shows the same as a table."""
        html = self.plan._repr_html_()

        assert ("<table>", True) == (html[:7], "14 min at 1 request per second" in html)

    def test_stored_rows_need_no_time(self):
        """If all rows are stored, no time is needed."""
        plan = Plan("load_epochs", 0, rows=0, stored_rows=11, requests_saved=11)

        assert (0.0, None, "11 rows, which saves 11 requests") == (
            plan.seconds, plan.month_share, dict(plan.lines())["in the store"]
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("requests", "words"),
        [(1, "1 s"), (119, "119 s"), (7140, "119 min"), (90_000, "25 h"), (500_000, "5.8 days")],
    )
    def test_durations_are_rounded_to_a_useful_unit(self, requests, words):
        """Times are rounded to a useful unit."""
        assert Plan("load_x", requests, rate=1.0).time().startswith(f"{words} at ")


class TestLimit:
    call: ClassVar = {"since": 0, "until": 249}

    def check_refused(self, server, explorer, **more):
        before = server.requests
        with pytest.raises(
            errors.RequestLimitExceeded, match="needs 3 requests, but max_requests=2"
        ) as caught:
            INCOME(range(50), **self.call, explorer=explorer, **more)
        assert (before, "bf.plan" in str(caught.value)) == (server.requests, True)

    def test_every_way_to_set_it(self, server, monkeypatch):
        """As an argument, in a block, of the explorer, in the environment: no request is sent."""
        with connect(server, False) as explorer:
            self.check_refused(server, explorer, max_requests=2)
            with settings(max_requests=2):
                self.check_refused(server, explorer)
            monkeypatch.setenv("BEACONFRAMES_MAX_REQUESTS", "2")
            self.check_refused(server, explorer)
            # An argument overrides the environment; the limit itself is permitted.
            assert (
                50 * 250 == INCOME(range(50), **self.call, explorer=explorer, max_requests=3).height
            )
        with connect(server, False, max_requests=2) as explorer:
            self.check_refused(server, explorer)

    def test_rows_that_cannot_exist_are_not_planned(self, server, chain):
        """G1: once a load has found the activity epochs, the plan knows them as well."""
        validators = chain.scan("validators").collect()
        late = validators.filter(pl.col("activation_epoch") > 350)["validator_index"][:2]
        gone = validators.filter(pl.col("exit_epoch") < 410)["validator_index"][:2]
        call = {"validators": [1, *late, *gone], "since": 340, "until": 410}
        with connect(server, False) as explorer:
            before = bf.plan(INCOME, **call, explorer=explorer)
            found = INCOME(**call, explorer=explorer, strict=True)
            after = bf.plan(INCOME, **call, explorer=explorer)

        assert (4 * 71, found.height) == (before.rows, after.rows)

    def test_balances_after_the_withdrawal_are_planned(self, server, chain):
        """They need not exist, but the service has rows of 0: only their absence is no gap."""
        validators = chain.scan("validators").collect()
        gone = validators.filter(pl.col("withdrawable_epoch") < 410)["validator_index"][:2]
        call = {"validators": [1, *gone], "since": 340, "until": 410}
        with connect(server, False) as explorer:
            found = bf.load_balance_history(**call, explorer=explorer, strict=True)
            INCOME(**call, explorer=explorer)
            after = bf.plan(bf.load_balance_history, **call, explorer=explorer)

        assert 2 == len(gone)
        assert 3 * 71 == found.height == after.rows

    def test_stored_rows_cost_no_request(self, server, store):
        """Only missing rows count: a second load needs no request."""
        with connect(server, store) as explorer:
            INCOME(range(50), **self.call, explorer=explorer, max_requests=3)
            again = INCOME(range(50), **self.call, explorer=explorer, max_requests=0)

        assert 50 * 250 == again.height

    def test_limit_with_unknown_pages(self, server):
        """A load with more pages than permitted stops at the limit."""
        with connect(server, False) as explorer:
            before = server.requests
            with pytest.raises(errors.RequestLimitExceeded, match="stopped after 2 requests"):
                bf.v2.load_validators(bf.v2.dashboard(1), explorer=explorer, max_requests=2)

        assert server.requests - before <= 3

    def test_requests_for_finality_count_in_the_limit(self, server, tmp_path):
        """Young rows are stored only if a second response confirms the head: one page less."""
        for most in (3, 4):
            with connect(server, tmp_path / f"store-{most}") as explorer:
                before = server.requests
                with pytest.raises(errors.RequestLimitExceeded, match=f"after {most - 1} requests"):
                    bf.v2.load_proposal_slots(
                        range(200), since=-200, explorer=explorer, max_requests=most
                    )

            # The request of the chain head does not count.
            assert most + 1 == server.requests - before

    @pytest.mark.parametrize("value", [-1, 1.5, True, "many"])
    def test_an_invalid_limit_is_refused(self, value):
        """A limit is a whole number from 0 up."""
        with (
            pytest.raises(errors.ConfigError, match="max_requests is"),
            settings(max_requests=value),
        ):
            pass
