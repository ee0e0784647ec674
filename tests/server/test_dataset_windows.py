"""A dataset is not a service: its old epochs load, unless the windows of the service apply."""

from __future__ import annotations

import httpx
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes import errors
from beaconframes.server import Server

from ..support import small_dataset as small


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """A chain of 160 epochs with the duties of 16 validators."""
    return small.create(
        tmp_path_factory.mktemp("small") / "data",
        attestations=small.duties(),
        validators=small.validators(),
        latest_state=latest_state(),
    )


def latest_state():
    """Return the head as the table of the latest state."""
    from beaconframes.v1.latest_state import LatestState

    values = {"current_slot": 1279, "current_epoch": 159, "current_finalized_epoch": 157}
    return small.fit(LatestState, pl.DataFrame([values]))


@pytest.mark.parametrize("wire", ["spec", "public"])
@pytest.mark.filterwarnings("error")
def test_attestations_of_a_dataset_load_from_epoch_0(dataset, wire):
    """Row 6: 16 validators by 160 epochs, in requests of 100 epochs, without a warning."""
    with bf.local(dataset, wire=wire) as local:
        found = bf.load_attestations(range(16), since=0)

    assert_frame_equal(small.duties().drop("committee_index"), found.drop("committee_index"))
    assert local.requests == 2
    assert bf.missing().is_empty()


def test_the_default_is_the_last_100_epochs_with_and_without_windows(dataset):
    """A loader without since returns as much of a dataset as of the service."""
    with bf.local(dataset):
        of_dataset = bf.load_attestations([1])
    with bf.local(dataset, limits="service"):
        of_service = bf.load_attestations([1])

    assert list(range(60, 160)) == of_dataset["epoch"].to_list()
    assert_frame_equal(of_dataset, of_service)


def test_the_windows_of_the_service_apply_with_its_limits(dataset):
    """Row 6: limits="service" refuses the epochs that the service has dropped."""
    with (
        bf.local(dataset, limits="service"),
        pytest.raises(errors.UsageError, match="has only the last 100 epochs, 60 to 159"),
    ):
        bf.load_attestations(range(16), since=0)


@pytest.mark.filterwarnings("error")
def test_another_process_learns_from_the_server_whether_it_has_windows(dataset):
    """Row 6: a client that connects by address loads from epoch 0; with limits it may not."""
    with Server(dataset) as server, bf.Explorer(server.url) as client:
        found = bf.load_attestations([3], since=0, until=2, explorer=client)
    with (
        Server(dataset, limits="service") as server,
        bf.Explorer(server.url) as client,
        pytest.raises(errors.UsageError, match="no longer available"),
    ):
        bf.load_attestations([3], since=0, until=2, explorer=client)

    assert [0, 1, 2] == found["epoch"].to_list()


@pytest.mark.parametrize("wire", ["spec", "public"])
def test_other_clients_receive_the_same_as_from_the_service_unless_they_name_old_epochs(
    dataset, wire
):
    """Row 6: no response has more than 100 epochs."""
    path = "/api/v1/validator/1/attestations"

    def get(client, **epochs):
        answer = client.get(path, params=epochs)
        if answer.status_code != 200:
            return answer.status_code
        epochs = [row["epoch"] for row in answer.json()["data"]]
        return min(epochs), max(epochs), len(epochs)

    with Server(dataset, wire=wire) as server, httpx.Client(base_url=server.url) as client:
        assert (60, 159, 100) == get(client)
        assert (10, 20, 11) == get(client, startEpoch=10, endEpoch=20)
        assert 400 == get(client, endEpoch=50)
        assert 400 == get(client, startEpoch=0)
        assert 400 == get(client, startEpoch=150, endEpoch=160)


@pytest.mark.filterwarnings("error")
def test_old_duties_of_a_simulation_are_drawn(chain):
    """A simulation stores the duties of 100 epochs; those before agree with its missed duties."""
    oldest = chain.scan("attestations").select(pl.min("epoch")).collect().item()
    first, last = oldest - 2, oldest + 1
    with bf.local(chain):
        found = bf.load_attestations(range(20), since=first, until=last)

    cells = small.cells(range(20), range(first, last + 1))
    missed = chain.scan("missed_attestation_events").select("validator_index", "epoch").collect()
    assert_frame_equal(cells, found.select("validator_index", "epoch"))
    expected = cells.join(missed, on=["validator_index", "epoch"], how="semi")
    is_missed = found.filter(pl.col("status") == "missed").select("validator_index", "epoch")
    assert_frame_equal(expected, is_missed, check_row_order=False)
    stored = chain.scan("attestations").filter(
        pl.col("validator_index") < 20, pl.col("epoch").is_between(first, last)
    )
    stored = stored.sort("validator_index", "epoch").collect()
    assert_frame_equal(stored, found.filter(pl.col("epoch") >= oldest))
