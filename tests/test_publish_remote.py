"""Exports into object stores, against a store in memory."""

from __future__ import annotations

import json
import os
import re

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.dataset import Dataset
from beaconframes.errors import DatasetError, UsageError
from beaconframes.publish import work
from beaconframes.publish.remote import remote_of

obstore = pytest.importorskip("obstore")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """What waits to be sent waits in a folder of the test."""
    monkeypatch.setattr("platformdirs.user_cache_path", lambda _name: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def store():
    """An object store of this test."""
    from obstore.store import MemoryStore

    return MemoryStore()


def objects(store):
    """Every object with its bytes, but not the history, which tells the time."""
    names = [entry["path"] for page in obstore.list(store) for entry in page]
    return {
        name: bytes(obstore.get(store, name).bytes())
        for name in sorted(names)
        if name != "history.jsonl"
    }


def rows(last):
    return pl.DataFrame({"n": range(last)})


def test_the_objects_are_the_files(tmp_path, store, cache):
    """An object store gets what a folder gets, and nothing is left on this machine."""
    bf.export(rows(10), tmp_path / "out")
    made = bf.export(rows(10), store)
    on_disk = {
        str(path.relative_to(tmp_path / "out")): path.read_bytes()
        for path in (tmp_path / "out").rglob("*")
        if path.is_file() and path.name != "history.jsonl"
    }
    assert on_disk == objects(store)
    assert (10, "MemoryStore") == (made.rows, str(made.path))
    assert [] == [path for path in cache.rglob("*") if path.is_file()]


def test_a_dataset_there_is_extended(store):
    """What was put there stays; what is new is added to it."""
    bf.export(rows(10), store)
    before = objects(store)
    made = bf.export(rows(12), store)
    after = objects(store)
    data = {name: content for name, content in before.items() if name.endswith(".parquet")}
    assert data == {name: after[name] for name in data}
    assert (12, 1, 1) == (made.rows, made.added, made.kept)
    with pytest.raises(DatasetError, match="2 of them are not among"):
        bf.export(rows(10), store)
    assert after == objects(store)


def test_a_folder_is_a_store_too(tmp_path):
    """One that cannot compare what it replaces is extended as well."""
    (tmp_path / "bucket").mkdir()
    for last in (10, 12, 12):
        made = bf.export(rows(last), f"file://{tmp_path}/bucket/")
    assert (12, 0, 2) == (made.rows, made.added, made.kept)
    assert [] == Dataset.open(tmp_path / "bucket").verify()


def test_two_exports_do_not_mix(store, monkeypatch, tmp_path):
    """Who comes second finds another manifest than the one that it added to."""
    from beaconframes.publish import remote

    bf.export(rows(10), store)
    real = remote.send

    def late(*arguments):
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(remote, "send", real)
            elsewhere.setattr("platformdirs.user_cache_path", lambda _name: tmp_path / "other")
            bf.export(rows(11), store)
        real(*arguments)

    monkeypatch.setattr(remote, "send", late)
    with pytest.raises(DatasetError, match=r"in the way|somebody else meanwhile"):
        bf.export(rows(12), store)
    told = json.loads(objects(store)["manifest.json"])
    assert 11 == told["tables"]["rows"]["rows"]


def test_an_export_that_was_cut_short_is_sent_on(store, monkeypatch):
    """Until the manifest is there nothing is published; the same call ends what was begun."""
    from beaconframes.publish import remote

    real = remote._put

    def cut(place, path, name):
        if name == "CITATION.cff":
            raise KeyboardInterrupt
        real(place, path, name)

    with monkeypatch.context() as patch:
        patch.setattr(remote, "_put", cut)
        with pytest.raises(KeyboardInterrupt):
            bf.export(rows(10), store)
    assert "manifest.json" not in objects(store)
    bf.export(rows(10), store)
    assert "manifest.json" in objects(store)


@pytest.mark.parametrize("name", ["", "rows.csv"])
def test_what_the_next_one_makes_here_is_not_removed(tmp_path, cache, monkeypatch, name):
    """Another export to the same address may begin the moment in which this one lets go."""
    (tmp_path / "bucket").mkdir()
    real, came = os.unlink, []

    def then_somebody_comes(path, **more):
        real(path, **more)
        if not came and os.fspath(path).endswith(f"{place.name}/{work.NAME}/{work.LOCK}"):
            came.append(work.working(place, place / work.NAME))
            came[0].__enter__()
            (place / "dataset").mkdir()

    address = f"file://{tmp_path}/bucket/{name}"
    place = remote_of(address, {}).staging
    monkeypatch.setattr(os, "unlink", then_somebody_comes)
    bf.export(rows(10), address)
    with pytest.raises(DatasetError, match=f"^{re.escape(address.rstrip('/'))} is being exported"):
        bf.export(rows(10), address)
    assert {"dataset", work.NAME} == {path.name for path in place.iterdir()}
    came[0].__exit__(None, None, None)
    monkeypatch.undo()
    monkeypatch.setattr("platformdirs.user_cache_path", lambda _name: cache)
    bf.export(rows(10), address)
    assert not place.exists()


def test_objects_of_others_are_left_alone(store):
    """An object that is in the way is not replaced."""
    obstore.put(store, "README.md", b"mine")
    with pytest.raises(DatasetError, match=r"README.md is in the way"):
        bf.export(rows(10), store)
    assert b"mine" == objects(store)["README.md"]


def test_an_address_is_opened(tmp_path):
    """An address is a store or a file in one; one that cannot be is a UsageError."""
    (tmp_path / "bucket").mkdir()
    bf.export(rows(3), f"file://{tmp_path}/bucket/rows.csv")
    assert rows(3).equals(pl.read_csv(tmp_path / "bucket/rows.csv"))
    for address in ("nowhere://bucket/x", "s3://bucket/../x", "s3://bucket/x\0"):
        with pytest.raises(UsageError):
            bf.export(rows(3), address)


def test_what_fails_there_is_an_error_of_ours():
    """A store that refuses is a DatasetError, which tells no key."""
    secret = "S3CR3T" * 5
    with pytest.raises(DatasetError) as raised:
        bf.export(
            rows(3),
            "s3://bucket/rows",
            storage_options={
                "endpoint": "http://127.0.0.1:9",
                "region": "us-east-1",
                "access_key_id": "key",
                "secret_access_key": secret,
                "client_options": {"allow_http": True},
                "retry_config": {"max_retries": 0},
            },
        )
    assert secret not in str(raised.value)
    assert "cannot be used" in str(raised.value)
