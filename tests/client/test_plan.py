"""The plan says what a call takes before it is made; the server counts what it took."""

from __future__ import annotations

import warnings
from typing import ClassVar

import pytest

import beaconframes as bf
from beaconframes import errors
from beaconframes.client.plan import Plan
from beaconframes.config import settings
from beaconframes.server import Server


@pytest.fixture(scope="module")
def server(chain):
    """The local explorer, which counts what it is asked."""
    with Server(chain) as running:
        yield running


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


def connect(server, store, **more):
    """An explorer that knows nothing yet but the store."""
    return bf.Explorer(server.url, chain=server.service.chain, store=store, **more)


INCOME, BALANCES = bf.load_income_history, bf.load_balance_history
HALF = [(BALANCES, range(0, 100, 2), {"since": 0, "until": 150})]
CALLS = {
    "one window": ((), INCOME, [1, 2, 3], {"since": 100, "until": 199}),
    "three windows": ((), INCOME, range(20), {"since": 100, "until": 349}),
    "two batches": ((), BALANCES, range(130), {"since": 0, "until": 99}),
    "batches and windows": ((), BALANCES, range(110), {"since": 10, "until": 220}),
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
    "25 of generation 2": ((), bf.v2.load_validators, range(25), {}),
    "120 of generation 2": ((), bf.v2.load_balances, range(120), {"since": 200, "until": 200}),
    "three epochs": ((), bf.v2.load_rewards, range(12), {"since": 100, "until": 102}),
    "one slot": ((), bf.v2.load_slot, range(3200, 3203), {}),
    "everything kept": (HALF, BALANCES, range(0, 100, 2), {"since": 0, "until": 150}),
    "half of the validators kept": (HALF, BALANCES, range(100), {"since": 0, "until": 150}),
    "half of the range kept": (HALF, BALANCES, range(0, 100, 2), {"since": 100, "until": 299}),
    "the other windows": (HALF, BALANCES, range(0, 120, 3), {"since": 40, "until": 240}),
    "relative, kept": (HALF, BALANCES, range(0, 100, 2), {"since": -400, "until": 160}),
    "another table": (HALF, INCOME, range(5), {"since": 0, "until": 20}),
    "rewards kept": (
        [(bf.v2.load_rewards, range(12), {"since": 100, "until": 101})],
        bf.v2.load_rewards, range(25), {"since": 100, "until": 102},
    ),
    "slots kept": ([(bf.load_slots, [3200, 3202, 3209], {})], bf.load_slots, range(3200, 3210), {}),
}  # fmt: skip
"""What was loaded before, a loader, whom or what it is asked for, and its other arguments."""


def called(loader, subject, more, explorer):
    """Call, without what it has to say of rows that there are none of."""
    whom = () if subject is None else (subject,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.MissingRows)
        return loader(*whom, **more, explorer=explorer)


@pytest.mark.parametrize(
    ("name", "keeps"), [(name, place % 2 or CALLS[name][0]) for place, name in enumerate(CALLS)]
)
def test_request_for_request(server, store, name, keeps):
    """What the plan says is what the call then takes, by the server's own count."""
    before, loader, subject, more = CALLS[name]
    for call in before:
        called(*call, connect(server, store))
    with connect(server, store if keeps else False) as explorer:
        at_first = server.requests
        whom = () if subject is None else (subject,)
        plan = bf.plan(loader, *whom, **more, explorer=explorer)
        planned = server.requests
        rows = called(loader, subject, more, explorer)

    assert planned - at_first <= 1
    assert plan.requests == server.requests - planned
    if plan.rows is not None:
        assert rows.height == plan.rows + plan.kept_rows


class TestWhatCannotBeKnown:
    def test_pages(self, server):
        """Where the number of pages depends on the answers, it is at least so many, and why."""
        with connect(server, False) as explorer:
            plan = bf.plan(bf.v2.load_entities, explorer=explorer)

        assert (1, "at least", None) == (plan.requests, plan.bound, plan.rows)
        assert "not known before the last one" in str(plan)

    def test_how_many_at_once(self, server):
        """How many validators a request may name is not known before the service said so."""
        with connect(server, False) as explorer:
            call = {"since": 200, "until": 200, "explorer": explorer}
            before = bf.plan(bf.v2.load_balances, range(30), **call)
            bf.v2.load_balances(range(30), **call)
            after = bf.plan(bf.v2.load_balances, range(30), **call)

        assert [(3, "at least"), (3, "exactly")] == [(p.requests, p.bound) for p in (before, after)]
        assert "100 validators" in before.why[0]

    def test_unknown_keys(self, server, store):
        """Keys cost a request to look up; what is kept of them is known only then."""
        with connect(server, store) as explorer:
            keys = bf.load_validators([3, 4], explorer=explorer)["pubkey"].to_list()
            BALANCES([3], since=0, until=9, explorer=explorer)
            call = {"since": 0, "until": 9, "explorer": explorer}
            first = bf.plan(BALANCES, keys, **call)
            BALANCES(keys, **call)
            second = bf.plan(BALANCES, keys, **call)

        assert [(2, "at most"), (0, "exactly")] == [(p.requests, p.bound) for p in (first, second)]

    def test_days_of_keys(self, server):
        """An endpoint that takes no keys is planned with the request that looks them up."""
        with connect(server, False) as explorer:
            keys = bf.load_validators([3, 4], explorer=explorer)["pubkey"].to_list()
            plan = bf.plan(bf.load_validator_stats, keys, since=0, until=1, explorer=explorer)

        assert (1 + 2, "exactly") == (plan.requests, plan.bound)

    def test_no_loader(self, server):
        """What is no loader is refused, and bad arguments are what they are in the loader."""
        with connect(server, False) as explorer:
            with pytest.raises(errors.UsageError, match="is no loader"):
                bf.plan(print, 1)
            with pytest.raises(errors.UsageError, match="is not a validator"):
                bf.plan(INCOME, "nobody", explorer=explorer)
            with pytest.raises(TypeError):
                bf.plan(INCOME, [1], sincce=1, explorer=explorer)


class TestShown:
    plan = Plan(
        "load_income_history", 822, rows=2_600_000, kept_rows=900_000, requests_saved=300,
        rate=1.0, month_left=900, month_limit=1000,
    )  # fmt: skip

    def test_terminal(self):
        """A terminal shows a line for each thing: requests, rows, store, time, quota."""
        assert """load_income_history:
  requests      822
  new rows      2,600,000
  in the store  900,000 rows, which saves 300 requests
  time          14 min at 1 requests a second
  this month    91.3% of the 900 requests left of 1,000""" == repr(self.plan)

    def test_notebook(self):
        """A notebook shows the same as a table."""
        html = self.plan._repr_html_()

        assert ("<table>", True) == (html[:7], "14 min at 1 requests a second" in html)

    def test_nothing_to_do(self):
        """Where everything is in the store, no time is needed."""
        plan = Plan("load_epochs", 0, rows=0, kept_rows=11, requests_saved=11)

        assert (0.0, None, "11 rows, which saves 11 requests") == (
            plan.seconds, plan.month_share, dict(plan.lines())["in the store"]
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("requests", "words"),
        [(1, "1 s"), (119, "119 s"), (7140, "119 min"), (90_000, "25 h"), (500_000, "5.8 days")],
    )
    def test_durations(self, requests, words):
        """Times are as exact as one wants to know."""
        assert Plan("load_x", requests, rate=1.0).time().startswith(f"{words} at ")


class TestLimit:
    call: ClassVar = {"since": 0, "until": 249}

    def refused(self, server, explorer, **more):
        before = server.requests
        with pytest.raises(
            errors.RequestLimitExceeded, match="takes 3 requests, and max_requests=2"
        ) as told:
            INCOME(range(50), **self.call, explorer=explorer, **more)
        assert (before, "bf.plan" in str(told.value)) == (server.requests, True)

    def test_every_way_to_set_it(self, server, monkeypatch):
        """As an argument, in a block, of the explorer, in the environment: nothing is sent."""
        with connect(server, False) as explorer:
            self.refused(server, explorer, max_requests=2)
            with settings(max_requests=2):
                self.refused(server, explorer)
            monkeypatch.setenv("BEACONFRAMES_MAX_REQUESTS", "2")
            self.refused(server, explorer)
            # Nearer ones stand above: as many as it takes is enough.
            assert (
                50 * 250 == INCOME(range(50), **self.call, explorer=explorer, max_requests=3).height
            )
        with connect(server, False, max_requests=2) as explorer:
            self.refused(server, explorer)

    def test_what_is_kept_costs_nothing(self, server, store):
        """Only what is missing counts: everything may be loaded again with no request."""
        with connect(server, store) as explorer:
            INCOME(range(50), **self.call, explorer=explorer, max_requests=3)
            again = INCOME(range(50), **self.call, explorer=explorer, max_requests=0)

        assert 50 * 250 == again.height

    def test_pages_that_nobody_could_foresee(self, server):
        """What turns out to have more pages stops when so many have come."""
        with connect(server, False) as explorer:
            before = server.requests
            with pytest.raises(errors.RequestLimitExceeded, match="stopped after 2 requests"):
                bf.v2.load_validators(bf.v2.dashboard(1), explorer=explorer, max_requests=2)

        assert server.requests - before <= 3

    @pytest.mark.parametrize("value", [-1, 1.5, True, "many"])
    def test_what_is_no_number(self, value):
        """A limit is a whole number from 0 up."""
        with (
            pytest.raises(errors.ConfigError, match="max_requests is"),
            settings(max_requests=value),
        ):
            pass
