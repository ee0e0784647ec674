"""A dataset that another process extends is served as it is now, without a restart."""

from __future__ import annotations

import httpx
import pytest

import beaconframes as bf
from beaconframes.dataset import Dataset, Grid
from beaconframes.server import Server, service

from ..support import small_dataset as small

GRID = Grid("validator_index", "epoch", ("validator_index", "epoch"))


def rows_of(epochs):
    """Return the balances of validators 1 to 12 in *epochs*, their grid and their coverage."""
    rows = small.balances(small.cells(range(1, 13), epochs))
    covered = {str(index): ((epochs[0], epochs[-1]),) for index in range(1, 13)}
    return rows, GRID, covered


def extend(path, epochs, last=9):
    """Add *epochs* as another process does, and move the head to the *last* one."""
    with Dataset.open(path).writing() as writer:
        writer.add_covered("balance_history", *rows_of(epochs))
        writer.set_meta(
            {"latest_epoch": last, "finalized_epoch": last, "latest_slot": last * 8 + 7}
        )


@pytest.fixture
def dataset(tmp_path):
    """A dataset with the epochs 0 to 9, which is its head."""
    created = small.create(tmp_path / "data", validators=small.validators(range(1, 13)))
    extend(created.path, range(10))
    return created


@pytest.fixture
def server(dataset):
    """The dataset, served."""
    with Server(dataset) as served:
        yield served


def load(server, **times):
    """Load balances with a new connection."""
    with bf.Explorer(server.url, store=False) as explorer:
        return bf.load_balance_history([1, 2], explorer=explorer, **times)


@pytest.mark.filterwarnings("error")
def test_new_epochs_are_served(server, dataset):
    """The head and the rows are those of the last commit; without one, nothing is read again."""
    before = load(server, since=0)
    version = server.service.views.version
    load(server, since=0)
    unchanged = server.service.views.version
    extend(dataset.path, range(10, 12), last=11)
    after = load(server, since=0)

    assert [2 * 10, 2 * 12] == [before.height, after.height]
    assert list(range(12)) == after.filter(validator_index=1)["epoch"].sort().to_list()
    assert (version, version + 1) == (unchanged, server.service.views.version)
    assert 11 == server.service.head.epoch
    banner = server.service.describe_head()
    assert banner.startswith("The latest epoch is epoch 11 (")
    assert banner.endswith("it moves as epochs are added to the dataset")


@pytest.mark.parametrize("connect", [bf.local, bf.open])
def test_a_local_explorer_has_the_new_head(dataset, connect):
    """The next load reads it; during a load, the head does not move."""
    with connect(dataset.path):
        before = bf.load_balance_history(1, since=-2)["epoch"].sort().to_list()
        extend(dataset.path, range(10, 12), last=11)
        after = bf.load_balance_history(1, since=-2)["epoch"].sort().to_list()

    assert ([8, 9], [10, 11]) == (before, after)


def test_rows_and_coverage_are_of_one_state(server, dataset, monkeypatch):
    """A commit between the two would make epochs look covered whose rows were not read."""
    extend(dataset.path, range(20, 30), last=29)
    commits = iter([range(10, 20)])
    find = service.find_uncovered

    def find_after_a_commit(*arguments):
        for epochs in commits:
            extend(dataset.path, epochs, last=29)
        return find(*arguments)

    monkeypatch.setattr(service, "find_uncovered", find_after_a_commit)
    address = f"{server.url}/api/v1/validator/1/balancehistory"
    response = httpx.get(address, params={"latest_epoch": 29, "limit": 30})

    assert "X-Beaconframes-Uncovered" not in response.headers
    assert list(range(30)) == sorted(row["epoch"] for row in response.json()["data"])


def test_pages_of_a_list_are_those_of_its_first_page(server, dataset):
    """V2: rows do not move between pages while the dataset grows."""
    address = f"{server.url}/api/v2/ethereum/validators"
    body = {"chain": "mainnet", "validator": {"validator_identifiers": list(range(1, 13))}}
    first = httpx.post(address, json=body).json()
    extend(dataset.path, range(10, 12), last=11)
    second = httpx.post(address, json=body | {"cursor": first["paging"]["next_cursor"]}).json()

    indices = [row["validator"]["index"] for page in (first, second) for row in page["data"]]
    assert list(range(1, 13)) == indices
    assert first["range"] == second["range"]
    assert first["range"] != httpx.post(address, json=body).json()["range"]
