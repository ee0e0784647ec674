"""Exports as datasets: opened, verified and served."""

from __future__ import annotations

import json

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.dataset import Dataset, published
from beaconframes.errors import DatasetError, MissingRows


@pytest.mark.more
def test_export_of_a_loader_is_served(tmp_path, explorer):
    """A loader returns the same rows from the export as from the service."""
    expected = bf.load_income_history(range(30), since=0, until=449)
    bf.export(bf.load_income_history, tmp_path / "out", validators=range(30), since=0, until=449)
    with bf.local(tmp_path / "out") as local:
        assert expected.equals(bf.load_income_history(range(30), since=0, until=449))
        assert expected.equals(bf.load_income_history(range(30), since=-450))
        assert 449 == local.service.head.finalized_epoch


@pytest.mark.more
def test_export_of_a_simulation_is_served(tmp_path, chain, explorer):
    """An exported simulation answers every loader as the simulation does."""
    calls = (
        lambda: bf.load_validators(range(50)),
        lambda: bf.load_epochs(since=100, until=110),
        lambda: bf.load_sync_committees([0, 1]),
        lambda: bf.load_yield_index(since=0),
        lambda: bf.load_graffiti_wall(since=0),
        lambda: bf.load_slot_attestations(range(1000, 1010)),
        lambda: bf.v2.load_validators(bf.v2.validators(range(10))),
    )
    expected = [call() for call in calls]
    bf.export(chain, tmp_path / "out")
    with bf.local(tmp_path / "out"):
        found = [call() for call in calls]
    for one, other in zip(expected, found, strict=True):
        assert one.equals(other)


def test_export_of_an_export_is_equal(tmp_path, chain):
    """A published dataset can be exported again, from its files alone."""
    bf.export(chain, tmp_path / "out", table="epochs")
    opened = Dataset.open(tmp_path / "out")
    bf.export(opened, tmp_path / "again")
    one, other = Dataset.open(tmp_path / "out"), Dataset.open(tmp_path / "again")
    assert one.scan("epochs").collect().equals(other.scan("epochs").collect())
    assert [s.sha256 for s in one.segments()] == [s.sha256 for s in other.segments()]
    assert one.meta == other.meta


def test_damage_is_found_and_writing_is_refused(tmp_path):
    """A check names a changed file; published datasets are read-only."""
    bf.export(pl.DataFrame({"epoch": range(10)}), tmp_path / "out")
    opened = Dataset.open(tmp_path / "out")
    assert [] == opened.verify()
    path = tmp_path / "out/rows/00000.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert ["does not have the content that was written"] == [d.reason for d in opened.verify()]
    path.unlink()
    with pytest.raises(DatasetError, match="is missing"):
        opened.scan("rows")
    with pytest.raises(DatasetError, match="is read-only"):
        opened.write("rows", [])
    with pytest.raises(DatasetError, match="has no table 'other'"):
        opened.scan("other")


def test_only_parquet_is_opened(tmp_path):
    """For an export in another format, the error says what to do instead."""
    bf.export(pl.DataFrame({"epoch": range(10)}), tmp_path / "out", format="csv")
    with pytest.raises(DatasetError, match="only Parquet can be opened"):
        Dataset.open(tmp_path / "out").scan("rows")


def test_gaps_stay_gaps_in_an_export_of_an_export(tmp_path, explorer):
    """An export of an export does not fill the gaps."""
    unknown = f"0x{'ab' * 48}"
    arguments = {"validators": [1, unknown], "since": 0, "until": 5}
    first = bf.export(bf.load_income_history, tmp_path / "one", **arguments)
    assert 1 == len(first.gaps)
    for _ in range(2):
        made = bf.export(Dataset.open(tmp_path / "one"), tmp_path / "two")
        assert (first.gaps, False) == (made.gaps, made.complete)
        assert not json.loads((tmp_path / "two/manifest.json").read_text())["complete"]


@pytest.mark.parametrize(("since", "until"), [(100, 200), (200, 200)])
def test_an_export_has_no_rows_outside_of_its_request(tmp_path, explorer, since, until):
    """No withdrawals are not the same as withdrawals that were never requested."""
    own = {"validators": [*range(20), 25], "since": since, "until": until}
    bf.export(bf.load_validator_withdrawals, tmp_path / "out", **own)
    bf.export(bf.load_epochs, tmp_path / "out", since=0, until=400)
    expected = bf.load_validator_withdrawals(**own)
    wanted = [
        {"validators": [25, 30], "since": since, "until": until},
        {"validators": [1], "since": since, "until": until + 1},
        {"validators": [1], "since": since - 1, "until": until},
    ]

    with bf.local(tmp_path / "out"):
        assert expected.equals(bf.load_validator_withdrawals(**own, strict=True))
        for arguments in wanted:
            with pytest.raises(MissingRows, match="not in the dataset"):
                bf.load_validator_withdrawals(**arguments, strict=True)


def test_epochs_outside_of_active_periods_are_not_missing_in_an_export(tmp_path, explorer):
    """Its table of validators is not exported; its gaps are all that it does not have."""
    validators = bf.load_validators(range(1010))
    activated = pl.col("activation_epoch").is_between(150, 250)
    late, pending, other = (
        validators.filter(chosen)["validator_index"].head(1).item()
        for chosen in (activated, pl.col("activation_epoch").is_null(), ~activated)
    )
    own = {"validators": [late, pending], "since": 100, "until": 300}
    made = bf.export(bf.load_income_history, tmp_path / "out", **own)
    expected = bf.load_income_history(**own)

    assert (True, True) == (made.complete, 0 < expected.height < 201)
    with bf.local(tmp_path / "out"):
        assert expected.equals(bf.load_income_history(**own, strict=True))
        with pytest.raises(MissingRows, match="not in the dataset"):
            bf.load_income_history(**{**own, "since": 99}, strict=True)
    with bf.open(tmp_path / "out"):
        assert expected.equals(bf.load_income_history(**own, strict=True))
        for wanted in ({"since": 99}, {"validators": [late, other]}):
            with pytest.raises(MissingRows, match="not in the dataset"):
                bf.load_income_history(**{**own, **wanted}, strict=True)
    path = tmp_path / "out/manifest.json"
    manifest = json.loads(path.read_text())
    gap = {"validator_index": pending, "reason": "unknown to the service"}
    manifest["tables"]["income_history"]["gaps"] = [gap]
    path.write_text(json.dumps(manifest | {"checksum": published.checksum(manifest)}))
    with bf.open(tmp_path / "out"), pytest.raises(MissingRows, match="not in the dataset"):
        bf.load_income_history(**own, strict=True)


def test_an_unknown_public_key_is_missing_in_an_export(tmp_path, explorer):
    """It states no epochs, so that the request of the export says nothing about it."""
    few = {"since": 100, "until": 110}
    bf.export(bf.load_income_history, tmp_path / "out", validators=[1], **few)
    bf.export(bf.load_validators, tmp_path / "out", validators=[1])

    with bf.open(tmp_path / "out"), pytest.raises(MissingRows, match="0xabab"):
        bf.load_income_history([1, f"0x{'ab' * 48}"], strict=True, **few)


def test_an_export_whose_validators_are_abbreviated_may_lack_any(tmp_path, explorer):
    """The manifest has their number and a hash alone; tables of the chain have none."""
    own = {"validators": range(0, 200, 2), "since": 200, "until": 201}
    bf.export(bf.load_income_history, tmp_path / "out", **own)
    bf.export(bf.load_epochs, tmp_path / "out", since=200, until=201)
    request = json.loads((tmp_path / "out/manifest.json").read_text())["tables"]["income_history"]
    assert "100 of them, sha256 " in request["request"]["validators"]

    with bf.open(tmp_path / "out"):
        assert 2 == bf.load_epochs(since=200, until=201, strict=True).height
        with pytest.raises(MissingRows, match="not in the dataset"):
            bf.load_income_history([1, 2], since=200, until=201, strict=True)


@pytest.mark.parametrize(
    "request_",
    [
        {"only": "250-300,200-249"},
        {"only": f"{'9' * 5000}-{'9' * 5000}"},
        {"only": "9-3"},
        {"since": 400},
        {"since": None, "validators": [1]},
    ],
)
def test_a_request_that_states_nothing_leaves_out_nothing(tmp_path, explorer, request_):
    """A manifest from elsewhere may have any values."""
    wanted = {"validators": range(10), "since": 200, "until": 300}
    bf.export(bf.load_validator_withdrawals, tmp_path / "out", **wanted)
    path = tmp_path / "out/manifest.json"
    manifest = json.loads(path.read_text())
    manifest["tables"]["validator_withdrawals"]["request"] |= request_
    path.write_text(json.dumps(manifest | {"checksum": published.checksum(manifest)}))

    with bf.local(tmp_path / "out"):
        assert 0 < bf.load_validator_withdrawals(**wanted, strict=True).height


def test_listed_slots_of_an_export_are_loaded(tmp_path, explorer):
    """Also in the middle of an epoch; slots between them were not requested."""
    listed = [3200, 3202, 3209]
    bf.export(bf.load_slot_withdrawals, tmp_path / "out", slots=listed)
    expected = bf.load_slot_withdrawals(listed)

    with bf.local(tmp_path / "out") as local:
        assert 100 == local.service.head.finalized_epoch
        assert expected.equals(bf.load_slot_withdrawals(listed, strict=True))
        for slot in (3201, 3210):
            with pytest.raises(MissingRows, match="not in the dataset"):
                bf.load_slot_withdrawals([slot], strict=True)


def test_an_export_of_committees_ends_at_the_finalized_epoch(tmp_path, explorer):
    """A committee is known before its period, which ends later."""
    bf.export(bf.load_sync_committees, tmp_path / "out", periods=[0, 1, 2])
    expected = bf.load_sync_committees([0, 1, 2])

    with bf.local(tmp_path / "out") as local:
        assert explorer.service.head.finalized_epoch == local.service.head.finalized_epoch
        assert expected.equals(bf.load_sync_committees([0, 1, 2], strict=True))


def test_a_table_that_ends_earlier_does_not_hide_the_rows_of_others(tmp_path, explorer):
    """A dataset ends at the last finalized epoch of its tables."""
    bf.export(bf.load_income_history, tmp_path / "out", validators=[1], since=300, until=400)
    bf.export(bf.load_epochs, tmp_path / "out", since=290, until=310)

    bf.export(bf.load_epochs, tmp_path / "first", since=0, until=0)
    bf.export(pl.DataFrame({"a": [1]}), tmp_path / "first", table="other")

    with bf.local(tmp_path / "first") as local:
        assert 0 == local.service.head.finalized_epoch
    with bf.local(tmp_path / "out") as local:
        assert 400 == local.service.head.finalized_epoch
        assert 101 == bf.load_income_history([1], since=300).height


def test_a_dataset_is_complete_if_all_its_tables_are(tmp_path, explorer):
    """The manifest takes `complete` from every table: the exported one, and those beside it."""
    some = {"since": 0, "until": 1, "by": None}
    calls = [
        (bf.load_income_history, {"validators": [1, 5000]}, False),
        (bf.load_balance_history, {"validators": [1]}, True),
    ]
    for loader, validators, is_complete in calls:
        made = bf.export(loader, tmp_path / "one", **validators, **some)
        assert is_complete == made.complete
    bf.export(Dataset.open(tmp_path / "one"), tmp_path / "two")

    for folder in ("one", "two"):
        manifest = json.loads((tmp_path / folder / "manifest.json").read_text())
        gaps = {name: bool(table["gaps"]) for name, table in manifest["tables"].items()}
        assert {"income_history": True, "balance_history": False} == gaps
        assert manifest["complete"] is False
