"""Exports to object stores, with a store in memory."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.dataset import Dataset
from beaconframes.errors import DatasetError, UsageError
from beaconframes.exports import work_folder
from beaconframes.exports.remote_target import parse_remote_target

obstore = pytest.importorskip("obstore")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The staging folder is a folder of the test."""
    monkeypatch.setattr("platformdirs.user_cache_path", lambda _name: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def store():
    """An object store of this test."""
    from obstore.store import MemoryStore

    return MemoryStore()


def objects(store):
    """Return the bytes of every object, without the history, which contains the time."""
    names = [entry["path"] for page in obstore.list(store) for entry in page]
    return {
        name: bytes(obstore.get(store, name).bytes())
        for name in sorted(names)
        if name != "history.jsonl"
    }


def rows(last):
    return pl.DataFrame({"n": range(last)})


def test_objects_equal_the_files(tmp_path, store, cache):
    """An object store gets the files of a folder, and nothing is left on this machine."""
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


def test_a_deleted_history_is_not_needed(store):
    """The same export again adds no entry, so there is no history to upload; a new one has it."""
    bf.export(rows(10), store)
    obstore.delete(store, "history.jsonl")

    assert 0 == bf.export(rows(10), store).added
    bf.export(rows(12), store)
    assert 1 == len(bytes(obstore.get(store, "history.jsonl").bytes()).splitlines())


def test_remote_dataset_is_extended(store):
    """Published objects stay; new objects are added."""
    bf.export(rows(10), store)
    before = objects(store)
    made = bf.export(rows(12), store)
    after = objects(store)
    data = {name: content for name, content in before.items() if name.endswith(".parquet")}
    assert data == {name: after[name] for name in data}
    assert (12, 1, 1) == (made.rows, made.added, made.unchanged)
    with pytest.raises(DatasetError, match="2 of them are not among"):
        bf.export(rows(10), store)
    assert after == objects(store)


def test_store_without_conditional_writes_is_extended(tmp_path):
    """A local folder as a store cannot compare versions."""
    (tmp_path / "bucket").mkdir()
    for last in (10, 12, 12):
        made = bf.export(rows(last), f"file://{tmp_path}/bucket/")
    assert (12, 0, 2) == (made.rows, made.added, made.unchanged)
    assert [] == Dataset.open(tmp_path / "bucket").verify()


def test_second_of_two_exports_is_refused(store, monkeypatch, tmp_path):
    """The manifest is not the one that the second export extended."""
    from beaconframes.exports import object_store

    bf.export(rows(10), store)
    real = object_store.upload_dataset

    def late(*arguments):
        with monkeypatch.context() as patch:
            patch.setattr(object_store, "upload_dataset", real)
            patch.setattr("platformdirs.user_cache_path", lambda _name: tmp_path / "other")
            bf.export(rows(11), store)
        real(*arguments)

    monkeypatch.setattr(object_store, "upload_dataset", late)
    with pytest.raises(
        DatasetError, match=r"not a file of this export|has finished during this one"
    ):
        bf.export(rows(12), store)
    manifest = json.loads(objects(store)["manifest.json"])
    assert 11 == manifest["tables"]["rows"]["rows"]


def test_interrupted_upload_is_resumed(store, monkeypatch):
    """Without its manifest no dataset is published; the same call resumes the upload."""
    from beaconframes.exports import object_store

    real = object_store._upload_file

    def cut(place, path, name):
        if name == "CITATION.cff":
            raise KeyboardInterrupt
        real(place, path, name)

    with monkeypatch.context() as patch:
        patch.setattr(object_store, "_upload_file", cut)
        with pytest.raises(KeyboardInterrupt):
            bf.export(rows(10), store)
    assert "manifest.json" not in objects(store)
    bf.export(rows(10), store)
    assert "manifest.json" in objects(store)


def test_object_of_the_same_size_and_other_content_is_refused(store, monkeypatch):
    """A resumed upload compares the content: a size does not identify a file."""
    with monkeypatch.context() as patch:
        fail_after_data(patch)
        with pytest.raises(DatasetError):
            bf.export(rows(10), store)
    ((name, content),) = [(n, c) for n, c in objects(store).items() if n.endswith(".parquet")]
    obstore.put(store, name, bytes(len(content)))

    with pytest.raises(DatasetError, match=f"{name} exists and is not a file of this export"):
        bf.export(rows(10), store)

    obstore.put(store, name, content)
    assert 10 == bf.export(rows(10), store).rows


@pytest.mark.parametrize("name", ["", "rows.csv"])
def test_staging_folder_of_the_next_export_is_not_removed(tmp_path, cache, monkeypatch, name):
    """Another export to the same address may start as soon as the lock is released.

    C8: a file that exists is replaced only with ``overwrite=True``.
    """
    (tmp_path / "bucket").mkdir()
    real, started = os.unlink, []

    def unlink(path, **more):
        real(path, **more)
        lock = f"{place.name}/{work_folder.WORK_FOLDER}/{work_folder.LOCK}"
        if not started and os.fspath(path).endswith(lock):
            started.append(work_folder.open_work_folder(place, place / work_folder.WORK_FOLDER))
            started[0].__enter__()
            (place / "dataset").mkdir()

    address = f"file://{tmp_path}/bucket/{name}"
    place = parse_remote_target(address, {}).staging_folder
    monkeypatch.setattr(os, "unlink", unlink)
    bf.export(rows(10), address)
    words = f"^another export to {re.escape(address.rstrip('/'))} is running"
    with pytest.raises(DatasetError, match=words):
        bf.export(rows(10), address)
    assert {"dataset", work_folder.WORK_FOLDER} == {path.name for path in place.iterdir()}
    started[0].__exit__(None, None, None)
    monkeypatch.undo()
    monkeypatch.setattr("platformdirs.user_cache_path", lambda _name: cache)
    if name:
        with pytest.raises(DatasetError, match=r"rows.csv already exists. Give overwrite=True"):
            bf.export(rows(10), address)
    bf.export(rows(10), address, overwrite=bool(name))
    assert not place.exists()


def test_other_objects_are_not_replaced(store):
    """An object that is not a file of this export is not replaced."""
    obstore.put(store, "README.md", b"mine")
    with pytest.raises(DatasetError, match=r"README.md exists and is not a file of this export"):
        bf.export(rows(10), store)
    assert b"mine" == objects(store)["README.md"]


def test_published_object_that_was_changed_is_not_extended(store):
    """The manifest has the checksum of each file: the same size is not enough."""
    bf.export(rows(10), store)
    content = objects(store)["rows/00000.parquet"]
    obstore.put(store, "rows/00000.parquet", content[:100] + b"?" + content[101:])
    before = objects(store)
    with pytest.raises(DatasetError, match=r"00000\.parquet"):
        bf.export(rows(12), store)
    assert before == objects(store)


def fail_after_data(monkeypatch, first="CITATION.cff"):
    """Allow only uploads of data files, and of the documents before the *first* that fails."""
    from beaconframes.exports import object_store

    real = object_store._upload_file

    def put(place, path, name):
        if name == first:
            raise OSError(5, "fails")
        real(place, path, name)

    monkeypatch.setattr(object_store, "_upload_file", put)


@pytest.mark.parametrize("other", [rows(9), pl.DataFrame({"m": [1]}), pl.DataFrame({"n": [7]})])
@pytest.mark.parametrize("there", [False, True])
def test_staged_frame_does_not_restrict_the_next_export(store, tmp_path, monkeypatch, other, there):
    """A frame that was not uploaded need not match the next export."""
    if there:
        bf.export(rows(5), store)
    with monkeypatch.context() as patch:
        fail_after_data(patch)
        with pytest.raises(DatasetError, match="cannot be used"):
            bf.export(rows(10), store)
    if not there:
        for name in objects(store):
            obstore.delete(store, name)
    made = bf.export(rows(10) if there else other, store)
    assert made.rows == (10 if there else other.height)


def test_call_after_a_failed_upload_requests_no_stored_rows(store, running, tmp_path, monkeypatch):
    """The same call uploads the rows of the local store; another call loads its own."""
    known = {"chain": running.service.chain, "head": running.service.head}
    wanted = {"validators": range(3), "since": 0, "until": 20}
    with bf.Explorer(running.url, store=tmp_path / "store", **known) as client:
        wanted["explorer"] = client
        for _ in range(2):
            with monkeypatch.context() as patch:
                fail_after_data(patch)
                with pytest.raises(DatasetError, match="cannot be used"):
                    bf.export(bf.load_income_history, store, **wanted)
            running.service.requests, before = 0, running.service.requests
        assert 0 == before
        for name in objects(store):
            obstore.delete(store, name)
        made = bf.export(bf.load_income_history, store, **{**wanted, "until": 10})
        assert 33 == made.rows
        with pytest.raises(
            DatasetError, match=r"^MemoryStore has a different table income_history"
        ):
            bf.export(bf.load_income_history, store, **{**wanted, "validators": range(4)})
        assert "dataset/" not in str(raised_by(store, **{**wanted, "until": 5}))


def test_documents_of_several_failed_uploads_are_replaced(store, monkeypatch):
    """Each upload may have replaced some documents only."""
    for last, first in ((10, "dictionary.csv"), (11, "croissant.json"), (12, "CITATION.cff")):
        with monkeypatch.context() as patch:
            fail_after_data(patch, first)
            with pytest.raises(DatasetError, match="cannot be used"):
                bf.export(rows(last), store)
    assert 13 == bf.export(rows(13), store).rows


def test_call_killed_before_its_upload_does_not_restrict_the_next_one(store, explorer, monkeypatch):
    """The staged dataset is complete, but was never published."""
    from beaconframes.exports import dataset_writer

    def cut(*_, **__):
        raise KeyboardInterrupt

    wanted = {"since": 0, "until": 10}
    with monkeypatch.context() as patch:
        patch.setattr(dataset_writer, "append_history", cut)
        with pytest.raises(KeyboardInterrupt):
            bf.export(bf.load_income_history, store, validators=[1], **wanted)
    assert 22 == bf.export(bf.load_income_history, store, validators=[2, 3], **wanted).rows


def test_a_document_that_was_changed_after_a_failed_upload_is_not_replaced(
    store, explorer, monkeypatch
):
    """It is not the one that was uploaded."""
    wanted = {"validators": range(3), "since": 0, "until": 20}
    with monkeypatch.context() as patch:
        fail_after_data(patch, "croissant.json")
        with pytest.raises(DatasetError, match="cannot be used"):
            bf.export(bf.load_income_history, store, **wanted)
    obstore.put(store, "README.md", b"mine")

    with pytest.raises(DatasetError, match=r"README\.md exists and is not a file of this export"):
        bf.export(bf.load_income_history, store, **wanted)
    assert b"mine" == objects(store)["README.md"]


def test_rows_that_became_final_after_a_failed_upload_are_added(store, running, monkeypatch):
    """Documents of the failed upload are replaced; nothing else has their content."""
    known, head = {"url": running.url, "chain": running.service.chain}, running.service.head
    wanted = {"validators": range(3), "since": 440}
    early = replace(head, finalized_epoch=head.finalized_epoch - 5)
    with monkeypatch.context() as patch, bf.Explorer(head=early, **known) as client:
        fail_after_data(patch, "croissant.json")
        with pytest.raises(DatasetError, match="cannot be used"):
            bf.export(bf.load_income_history, store, explorer=client, **wanted)
    with bf.Explorer(head=head, **known) as client:
        made = bf.export(bf.load_income_history, store, explorer=client, **wanted)
        again = bf.export(bf.load_income_history, store, explorer=client, **wanted)

    assert (True, head.finalized_epoch) == (made.complete, made.until)
    assert (made.rows, 0) == (again.rows, again.added)


def raised_by(store, **wanted):
    with pytest.raises(DatasetError) as raised:
        bf.export(bf.load_income_history, store, **wanted)
    return raised.value


def test_errors_name_the_address(tmp_path):
    """Errors name the address, not the staging folder."""
    (tmp_path / "bucket").mkdir()
    address = f"file://{tmp_path}/bucket"
    bf.export(rows(3), address)
    with pytest.raises(DatasetError, match=f"^{re.escape(address)}/rows has 3 published rows"):
        bf.export(rows(2), address)


@pytest.mark.parametrize(
    "options",
    [
        {"allow_http": True},
        {"aws_allow_http": "true"},
        {"client_options": {"allow_http": True}},
        {"allow_http": "1", "client_options": {"timeout": "5s"}, "pool_max_idle_per_host": 5},
    ],
)
def test_client_options_are_accepted_in_every_place(options):
    """They reach the HTTP client; only the connection fails."""
    there = {"endpoint": "http://127.0.0.1:9", "region": "us-east-1", "skip_signature": True}
    options = {**there, "retry_config": {"max_retries": 0}, **options}
    with pytest.raises(DatasetError, match="cannot be used"):
        bf.export(rows(3), "s3://bucket/rows", storage_options=options)


@pytest.mark.parametrize(
    ("address", "options", "words"),
    [
        ("s3://bucket/x", {"randomize": True}, "not a valid target|cannot be opened"),
        ("s3://bucket/x", {"region": None}, "not a valid target"),
        ("s3://bucket/x", {"client_options": 5}, "must be mappings"),
        ("s3://bucket/x", "region", "must be mappings"),
        ("s3://", None, "has no bucket"),
        ("az://", None, "has no bucket"),
        ("s3:///x", None, "not a valid target"),
        ("memory:///x", None, "cannot be opened again"),
    ],
)
def test_invalid_addresses_and_options_are_refused(tmp_path, monkeypatch, address, options, words):
    """No file or object is created."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(UsageError, match=words):
        bf.export(rows(3), address, storage_options=options)
    assert [] == list((tmp_path / "here").iterdir())


def test_folder_named_like_the_manifest_is_refused(tmp_path):
    """The error does not blame another export."""
    (tmp_path / "bucket/manifest.json").mkdir(parents=True)
    with pytest.raises(DatasetError, match=r"manifest\.json is a folder"):
        bf.export(rows(3), f"file://{tmp_path}/bucket")


def test_address_is_a_folder_or_a_file(tmp_path):
    """Invalid addresses are a UsageError."""
    (tmp_path / "bucket").mkdir()
    bf.export(rows(3), f"file://{tmp_path}/bucket/rows.csv")
    assert rows(3).equals(pl.read_csv(tmp_path / "bucket/rows.csv"))
    for address in ("nowhere://bucket/x", "s3://bucket/../x", "s3://bucket/x\0"):
        with pytest.raises(UsageError):
            bf.export(rows(3), address)


def test_errors_of_the_store_show_no_key():
    """A request that the store refuses is a DatasetError without the key."""
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
