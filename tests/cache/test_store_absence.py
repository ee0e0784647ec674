"""Absence in the store: rows that a response left out are requested again, until it is certain."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import beaconframes as bf
from beaconframes import errors, v1, v2
from beaconframes.calendar import MAINNET
from beaconframes.dataset import Grid
from beaconframes.endpoint.cache_policy import CachePolicy
from beaconframes.server import Server

from ..support.faults import FaultServer


@pytest.fixture(scope="module")
def server(chain):
    """The local explorer."""
    with Server(chain) as running:
        yield running


@pytest.fixture
def faulty(server):
    """A server with faults, in front of the local explorer."""
    with FaultServer(upstream=server.url) as running:
        yield running


@pytest.fixture
def explorer(server, faulty, tmp_path):
    """An explorer with a new store."""
    with bf.Explorer(
        faulty.url, chain=server.service.chain, store=tmp_path / "store", rate=10_000
    ) as connected:
        yield connected


def count_data_requests(faulty, call):
    """Return the rows of *call*, and how many requests for data it sends."""
    seen = len(faulty.seen)
    rows = call()
    targets = [one.target for one in faulty.seen[seen:]]
    return rows, sum("latestState" not in target for target in targets)


def income(explorer, since, until):
    """Load the income of a few validators."""
    return bf.load_income_history(range(5), since=since, until=until, explorer=explorer)


class TestHoles:
    """A table with one row per unit has no holes, so the store has none."""

    def test_tables_with_one_row_per_unit_declare_it(self):
        """G3: a stored table with one row per unit, or per validator and unit, is contiguous."""
        undeclared = []
        for endpoint in (*v1.ENDPOINTS, *v2.ENDPOINTS):
            policy = CachePolicy.of(endpoint)
            if policy is None or endpoint.is_contiguous:
                continue
            if not getattr(policy.subject, "required", True):
                continue  # Events: most units have none.
            columns = {policy.unit_column, policy.subject_column}
            if policy.subject is not None and policy.subject.pubkey_column is not None:
                columns.add(policy.subject.pubkey_column.name)
            if set(endpoint.table.key()) <= columns:
                undeclared.append((endpoint.envelope, endpoint.name))

        assert [] == undeclared
        assert v1.INCOME_HISTORY.is_contiguous
        assert all(e.is_contiguous for e in (v2.REWARDS, v2.PERFORMANCE, v2.BALANCES, v2.SLOT))

    def test_hole_is_requested_again(self, faulty, explorer):
        """G3: a row of income that is missing between two rows is an error, and is not stored."""
        faulty.fault("rows_lack?fields=epoch&cells=240&path=incomedetail")
        with pytest.raises(errors.IntegrityError, match="240"):
            income(explorer, 230, 249)
        faulty.fault("")

        rows, requests = count_data_requests(faulty, lambda: income(explorer, 230, 249))
        assert (100, 1) == (rows.height, requests)
        assert 0 == count_data_requests(faulty, lambda: income(explorer, 230, 249))[1]

    def test_stored_hole_is_requested_again(self, faulty, explorer):
        """G3: a hole that an earlier version stored as absent is requested again."""
        income(explorer, 230, 239)
        income(explorer, 241, 249)
        grid = Grid("validator_index", "epoch", ("validator_index", "epoch"))
        nothing = v1.INCOME_HISTORY.table.empty()
        assert explorer.local_store.put(
            "income_history", nothing, grid, {"2": ((240, 240),), "3": ((240, 240),)}, 467
        )

        rows, requests = count_data_requests(faulty, lambda: income(explorer, 230, 249))
        assert (100, 2) == (rows.height, requests)
        assert 0 == count_data_requests(faulty, lambda: income(explorer, 230, 249))[1]


def test_response_without_any_row_is_not_stored(faulty, explorer):
    """G4: if a response has no rows of any validator, their absence is not stored."""
    faulty.fault("rows_empty?path=incomedetail")
    with pytest.warns(errors.MissingRows):
        assert income(explorer, 100, 109).is_empty()
    faulty.fault("")

    assert 50 == income(explorer, 100, 109).height


def test_running_day_is_not_final():
    """A day is final when its last epoch is: with 225 epochs a day, from epoch 224 on."""
    chain_head = SimpleNamespace(chain=MAINNET)
    for endpoint in (v1.VALIDATOR_STATS, v1.YIELD_INDEX):
        policy = CachePolicy.of(endpoint)
        last = {epoch: policy.final_until(chain_head, epoch) for epoch in (223, 224, 448, 449)}
        assert {223: -1, 224: 0, 448: 0, 449: 1} == last


@pytest.mark.parametrize(
    ("path", "load", "rows"),
    [
        (
            "v2/ethereum/slot",
            lambda e: bf.v2.load_rewards(range(3), since=9, until=9, explorer=e),
            3,
        ),
        ("latestState", lambda e: bf.load_balance_history([1], since=9, until=10, explorer=e), 2),
    ],
)
@pytest.mark.parametrize("code", [404, 405])
def test_service_without_the_route_of_finality(faulty, explorer, path, load, rows, code):
    """C4: without the route that states the final epoch, rows are loaded and not stored."""
    faulty.fault(f"status?code={code}&path={path}")
    for _ in range(2):
        assert rows == load(explorer).height
    assert explorer.local_store.dataset is None

    faulty.fault("")
    assert rows == load(explorer).height
    assert 0 == count_data_requests(faulty, lambda: load(explorer))[1]
