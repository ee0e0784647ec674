"""A table that a dataset does not have is an error that names it and says what to do."""

from __future__ import annotations

import pytest

import beaconframes as bf
from beaconframes import errors
from beaconframes.cli.exit_codes import exit_code_of
from beaconframes.dataset import Dataset
from beaconframes.endpoint.absent_table import AbsentTable
from beaconframes.server import Server

from ..support import small_dataset as small


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """A dataset with attestation duties only."""
    path = tmp_path_factory.mktemp("absent") / "data"
    return small.create(path, attestations=small.duties(small.cells(epochs=range(155, 160))))


@pytest.fixture(scope="module", params=["spec", "public"])
def local(request, dataset):
    """That dataset, served on either wire."""
    with bf.local(dataset, wire=request.param) as local:
        yield local


LOADERS = {
    "latest_state": bf.load_latest_state,
    "validator_stats": lambda **to: bf.load_validator_stats([1, 2], **to),
    "performance": lambda **to: bf.load_performance([1, 2], **to),
    "income_history": lambda **to: bf.load_income_history([1], since=3, **to),
    "epochs": bf.load_epochs,
    "blocks": lambda **to: bf.load_slots([3], **to),
    "slot_withdrawals": lambda **to: bf.load_slot_withdrawals([3], **to),
    "validators": lambda **to: bf.load_attestations(["0x" + "0" * 96], **to),
}
"""By table: a loader that needs it. The last one has a public key, which only validators have."""


@pytest.mark.parametrize("table", LOADERS)
def test_v1_names_the_absent_table(local, table):
    """Row 6: neither a bad request nor rows that did not come back."""
    with pytest.raises(errors.TableNotInDataset, match=f"this dataset has no {table}") as caught:
        LOADERS[table](explorer=local)

    assert table == caught.value.table
    assert f"beaconframes index ... --tables {table}`" in caught.value.hint
    assert isinstance(caught.value, errors.NotServed)
    assert 7 == exit_code_of(caught.value)


def test_v2_names_the_absent_table(local):
    """Row 6: V2 derives its answers from the tables of V1, and names the one that it needs."""
    with pytest.raises(errors.TableNotInDataset, match="this dataset has no validators"):
        bf.v2.load_rewards([1], since=3, until=3, explorer=local)
    with pytest.raises(errors.TableNotInDataset, match="this dataset has no latest_state"):
        bf.v2.load_state(explorer=local)


def test_an_absent_table_costs_one_request(local):
    """Neither a retry nor the path of another wire is tried."""
    before = local.requests
    with pytest.raises(errors.TableNotInDataset):
        bf.load_yield_index(since=0, until=0, explorer=local)

    assert 1 == local.requests - before


@pytest.mark.filterwarnings("error")
def test_a_dataset_without_a_latest_state_loads_over_the_network(dataset):
    """Row 6: the chain and its head do not need the tables of the latest state and of blocks."""
    with Server(dataset) as server, bf.Explorer(server.url) as client:
        found = bf.load_attestations([1, 2], since=-5, explorer=client)
        head = client.chain_head_v2.latest("epoch", finalized=True)
        chain = client.chain

    assert [155, 156, 157, 158, 159] * 2 == found["epoch"].to_list()
    assert small.CHAIN == chain
    assert 157 == head


def test_missing_rows_without_validators_are_missing_and_not_unknown(local):
    """Without the table of validators, no validator is called unknown."""
    with pytest.warns(bf.MissingRows, match=r"not returned by the service \(16\)"):
        bf.load_attestations([15, 16], since=158, explorer=local)


def test_an_export_is_exported_again(tmp_path, dataset):
    """The hint depends on what kind of dataset is served."""
    bf.export(dataset, tmp_path / "export")
    with (
        bf.local(Dataset.open(tmp_path / "export")),
        pytest.raises(errors.TableNotInDataset) as caught,
    ):
        bf.load_performance([1])

    assert "Export it again with the table performance" in caught.value.hint


@pytest.mark.parametrize(
    "header", ["", "x", "x y", "a b c", "A export", "../x export", "x export "]
)
def test_an_invalid_header_names_no_table(header):
    """The client shows no text of the service as its own."""
    assert AbsentTable.parse(header) is None


@pytest.mark.parametrize("kind", ["dataset", "export", "simulation", "partial"])
def test_a_header_names_the_table_and_the_kind(kind):
    """The header is read as it was written."""
    absent = AbsentTable("slot_income", kind)

    assert absent == AbsentTable.parse(absent.encode())
