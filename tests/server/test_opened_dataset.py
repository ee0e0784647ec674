"""`bf.open`: loaders read a dataset on disk, and return what the local explorer returns."""

from __future__ import annotations

import warnings

import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes.dataset import Grid, ledger
from beaconframes.errors import DatasetError, UsageError
from beaconframes.v1 import ENDPOINTS

from ..support import small_dataset as small

KEY = "0x" + "ab" * 48
LOADS = {
    "income": lambda e: bf.load_income_history(range(101), since=250, until=255, explorer=e),
    "latest income": lambda e: bf.load_income_history([3, 1, 2], explorer=e),
    "windows": lambda e: bf.load_balance_history(range(120), since=0, until=220, explorer=e),
    "days": lambda e: bf.load_balance_history([1], since="2d", explorer=e),
    "not active": lambda e: bf.load_income_history(range(990, 1005), since=300, explorer=e),
    "proposals": lambda e: bf.load_proposals(range(300), since=0, until=310, explorer=e),
    "withdrawals": lambda e: bf.load_validator_withdrawals(range(200), since=3, explorer=e),
    "attestations": lambda e: bf.load_attestations(range(50), since=-50, explorer=e),
    "slim": lambda e: bf.load_attestations([1, 2], since=-5, slim=True, explorer=e),
    "old attestations": lambda e: bf.load_attestations([1, 2], since=100, until=103, explorer=e),
    "epochs": lambda e: bf.load_epochs(since=100, until=110, explorer=e),
    "latest epoch": lambda e: bf.load_epochs(explorer=e),
    "epoch slots": lambda e: bf.load_epoch_slots(since=100, until=103, explorer=e),
    "yield": lambda e: bf.load_yield_index(since=0, until=1, explorer=e),
    "future days": lambda e: bf.load_yield_index(since=0, until=90, explorer=e),
    "yield of V2": lambda e: bf.v2.load_yield_index(since=0, until=1, explorer=e),
    "latest yield of V2": lambda e: bf.v2.load_yield_index(explorer=e),
    "validators": lambda e: bf.load_validators(range(150), explorer=e),
    "unknown": lambda e: bf.load_validators([1, 10**9], explorer=e),
    "unknown key": lambda e: bf.load_validators([1, KEY], explorer=e),
    "history of an unknown key": lambda e: bf.load_income_history([KEY], explorer=e),
    "statistics": lambda e: bf.load_validator_stats(range(3), since=0, until=1, explorer=e),
    "all statistics": lambda e: bf.load_validator_stats(range(3), explorer=e),
    "committees": lambda e: bf.load_sync_committees([0, 1], explorer=e),
    "next committee": lambda e: bf.load_sync_committees(["next"], explorer=e),
    "efficiency": lambda e: bf.load_attestation_efficiency(range(99), explorer=e),
    "slots": lambda e: bf.load_slots([*range(3200, 3206), "latest"], explorer=e),
    "slot withdrawals": lambda e: bf.load_slot_withdrawals(range(3200, 3206), explorer=e),
    "wall": lambda e: bf.load_graffiti_wall((0, 0, 500, 500), since=0, explorer=e),
    "leaderboard": lambda e: bf.load_leaderboard(explorer=e),
    "blocks": lambda e: bf.load_produced_blocks(range(30), explorer=e),
    "state": lambda e: bf.load_latest_state(explorer=e),
    "rewards of V2": lambda e: bf.v2.load_rewards(range(12), since=100, until=101, explorer=e),
    "queues of V2": lambda e: bf.v2.load_queues(explorer=e),
    "the future": lambda e: bf.load_income_history([1], until=10**6, explorer=e),
    "pandas": lambda e: bf.load_epochs(since=-3, explorer=e, frame="pandas"),
}


@pytest.fixture(scope="module")
def opened(chain):
    """The same dataset as that of the server, without a server."""
    with bf.open(chain) as opened:
        yield opened


@pytest.fixture(scope="module")
def served(running):
    """A client of the local explorer that serves this dataset."""
    head, chain = running.service.head, running.service.chain
    with bf.Explorer(running.url, chain=chain, head=head, store=False) as client:
        # The first response states that the service keeps old attestations.
        bf.load_latest_state(explorer=client)
        yield client


def observe(load, explorer):
    """Return the rows or the error of a load, its warnings, and the gaps."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            rows = load(explorer)
        except bf.BeaconframesError as error:
            return f"{type(error).__name__}: {error}", None, None
    messages = [str(warning.message) for warning in caught]
    return rows, messages, bf.missing()


@pytest.mark.parametrize("name", LOADS)
def test_a_load_equals_that_of_the_local_explorer(opened, served, name):
    """F1: rows, errors, warnings and gaps are the same."""
    rows, messages, gaps = observe(LOADS[name], served)
    found, same_messages, same_gaps = observe(LOADS[name], opened)

    assert type(rows) is type(found)
    if isinstance(rows, str):
        assert rows == found
    elif name == "pandas":
        assert rows.equals(found)
    else:
        assert_frame_equal(rows, found)
        assert_frame_equal(gaps, same_gaps)
    assert messages == same_messages


def test_a_public_key_is_its_validator(opened):
    """Rows by public key are those by index, also for several parameters."""
    key = bf.load_validators([7], explorer=opened)["pubkey"].item()

    by_key = bf.load_income_history([key, 9], since=10, until=300, explorer=opened)

    assert_frame_equal(by_key, bf.load_income_history([7, 9], since=10, until=300, explorer=opened))


@pytest.mark.parametrize(
    "endpoint",
    [e for e in ENDPOINTS if e.parameters and all(p.selects_expected for p in e.all_parameters)],
    ids=lambda endpoint: endpoint.name,
)
def test_large_tables_need_no_requests(opened, endpoint):
    """F1: rows that numbers select are read from the files: no request is answered."""
    columns = [parameter.rows_column for parameter in endpoint.all_parameters]
    before, values = opened.requests, dict.fromkeys(endpoint.arguments)
    units = (1, 1) if columns and columns[-1] and columns[-1].unit == "day" else (-20, -10)
    values |= dict(zip(("since", "until"), units, strict=True)) if "since" in values else {}
    values |= {"validators": [0, 1]} if "validators" in values else {}
    values |= {"periods": [0, 1]} if "periods" in values else {}
    values |= {"slim": False} if "slim" in values else {}

    rows = opened.load(endpoint, values)

    assert rows.height or endpoint.name in {"proposals", "pool_validators"}
    assert before == opened.requests


def test_a_plan_states_no_requests(opened):
    """A load from files sends no request, so no limit of requests stops it."""
    plan = bf.plan(bf.load_income_history, range(500), since=0, explorer=opened)

    assert 0 == plan.requests
    assert (
        200
        == bf.load_balance_history(
            range(2), since=100, until=199, explorer=opened, max_requests=0
        ).height
    )


def test_loaders_use_it_until_it_is_closed(chain):
    """Like `bf.local`: the previous explorer is used again afterwards."""
    with bf.open(chain) as outer:
        with bf.open(chain.path, frame="pandas") as inner:
            assert "pandas" in type(bf.load_epochs()).__module__
        assert 1 == bf.load_epochs().height
        assert "open" in outer._repr_html_()

    assert str(chain.path) in repr(outer)
    with pytest.raises(UsageError, match="is closed"):
        bf.load_epochs(explorer=inner)


def test_a_folder_that_is_not_a_dataset(tmp_path):
    """The error names the folder."""
    with pytest.raises(DatasetError, match=str(tmp_path)):
        bf.open(tmp_path)


@pytest.mark.parametrize("kind", ["income", "days"])
def test_requests_do_not_read_the_ledger_again(opened, monkeypatch, kind):
    """A report of 10,000 validators has 12,000 requests, and reading the ledger takes 1 ms."""
    loads = {
        "income": lambda: bf.load_income_history([1, 2], since=250, until=251, explorer=opened),
        "days": lambda: bf.load_validator_stats(range(4), since=0, until=1, explorer=opened),
    }
    expected, read = loads[kind](), []
    real = ledger.get_meta
    monkeypatch.setattr(
        ledger, "get_meta", lambda *args, **more: read.append(1) or real(*args, **more)
    )

    assert_frame_equal(expected, loads[kind]())
    assert [] == read


def test_a_load_reads_only_the_files_of_its_epochs(tmp_path):
    """A file whose statistics exclude the epochs is not decoded: this one has no valid data."""
    grid = Grid("validator_index", "epoch", ("validator_index", "epoch"))
    dataset = small.create(tmp_path / "data", validators=small.validators(range(3)))
    for epochs in (range(50), range(50, 100)):
        rows = small.balances(small.cells(range(3), epochs))
        covered = {str(index): ((epochs[0], epochs[-1]),) for index in range(3)}
        with dataset.writing() as writer:
            writer.add_covered("balance_history", rows, grid, covered)
    first, _ = sorted(dataset.segments("balance_history"), key=lambda segment: segment.path)
    file = dataset.path / first.path
    with file.open("r+b") as damaged:
        damaged.seek(4)
        damaged.write(bytes(200))

    with bf.open(dataset):
        found = bf.load_balance_history([0, 2], since=50, until=99)

    assert 100 == found.height
