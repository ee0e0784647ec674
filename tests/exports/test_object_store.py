"""Exports to object stores, with a store in memory."""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
from dataclasses import replace

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.dataset import Dataset
from beaconframes.errors import DatasetError, UsageError
from beaconframes.exports.metadata import DOCUMENTS

from .test_export import income

obstore = pytest.importorskip("obstore")


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Return the folder of temporary folders."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


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


def test_objects_equal_the_files(tmp_path, store, temporary):
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
    assert [] == [*temporary.iterdir()]


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


@pytest.mark.parametrize("has_create", [True, False])
def test_store_without_conditional_writes_is_extended(tmp_path, monkeypatch, has_create):
    """A local folder cannot compare versions; S3 with conditional_put="disabled" has no create."""
    real = obstore.put

    def put(store, name, data, *, mode="overwrite"):
        if mode == "create" and not has_create:
            raise NotImplementedError
        real(store, name, data, mode=mode)

    monkeypatch.setattr(obstore, "put", put)
    (tmp_path / "bucket").mkdir()
    for last in (10, 12, 12):
        made = bf.export(rows(last), f"file://{tmp_path}/bucket/")
    assert (12, 0, 2) == (made.rows, made.added, made.unchanged)
    assert [] == Dataset.open(tmp_path / "bucket").verify()


def overtake(monkeypatch, store, frame):
    """Let another export publish *frame* before the upload of the next one."""
    from beaconframes.exports import object_store

    real = object_store.upload_dataset

    def late(*arguments):
        with monkeypatch.context() as patch:
            patch.setattr(object_store, "upload_dataset", real)
            bf.export(frame, store)
        real(*arguments)

    monkeypatch.setattr(object_store, "upload_dataset", late)


def test_second_of_two_exports_is_refused(store, monkeypatch):
    """The manifest is not the one that the second export extended."""
    bf.export(rows(10), store)
    overtake(monkeypatch, store, rows(11))
    with pytest.raises(
        DatasetError, match=r"not a file of this export|has finished during this one"
    ):
        bf.export(rows(12), store)
    manifest = json.loads(objects(store)["manifest.json"])
    assert 11 == manifest["tables"]["rows"]["rows"]


def test_objects_of_a_refused_export_are_removed(store, monkeypatch):
    """Its next call may have more rows in the same file."""
    bf.export(rows(10), store)
    with monkeypatch.context() as patch:
        overtake(patch, store, rows(11))
        with pytest.raises(DatasetError, match="has finished during this one"):
            bf.export(rows(5), store, table="others")
    assert 6 == bf.export(rows(6), store, table="others").rows


DAYS = [f"income_history/date=2020-12-0{n}/00000.parquet" for n in (1, 2, 3)]


def fail_at(monkeypatch, first, error):
    """Let the upload of one file fail."""
    from beaconframes.exports import object_store

    real = object_store._upload_file

    def upload(remote, folder, name, mode):
        if name.endswith(first):
            raise error
        real(remote, folder, name, mode)

    monkeypatch.setattr(object_store, "_upload_file", upload)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(5, "fails")])
@pytest.mark.parametrize("first", [*DAYS, "CITATION.cff", "history.jsonl"])
def test_interrupted_upload_is_repeated(store, monkeypatch, error, first):
    """Without all its data no dataset is published, and no object is left; then as if at once."""
    with monkeypatch.context() as patch:
        fail_at(patch, first, error)
        with pytest.raises((KeyboardInterrupt, DatasetError)):
            bf.export(income(0, 400), store)
    assert (first not in DAYS) == bool(objects(store)) == ("manifest.json" in objects(store))

    made = bf.export(income(), store)

    assert (1350, True) == (made.rows, made.complete)
    manifest = json.loads(objects(store)["manifest.json"])
    listed = {file["path"] for file in manifest["tables"]["income_history"]["files"]}
    assert listed == {name for name in objects(store) if name.endswith(".parquet")}
    assert {*DOCUMENTS, "manifest.json"} < objects(store).keys()
    assert manifest["checksum"] in objects(store)["CITATION.cff"].decode()


def test_failed_upload_leaves_what_another_export_has_published(store, monkeypatch):
    """Both exports have the same files: the second one uses those that the first one uploaded."""
    from beaconframes.exports import object_store

    real = object_store._upload_file

    def upload(remote, folder, name, mode):
        if name == DAYS[2]:
            with monkeypatch.context() as patch:
                patch.setattr(object_store, "_upload_file", real)
                bf.export(income(), store)
            raise KeyboardInterrupt
        real(remote, folder, name, mode)

    monkeypatch.setattr(object_store, "_upload_file", upload)
    with pytest.raises(KeyboardInterrupt):
        bf.export(income(), store)
    assert objects(store).keys() >= {*DAYS}


def test_object_of_the_same_size_and_other_content_is_not_replaced(store):
    """A data file that an upload left is used; a size does not identify it."""
    bf.export(rows(10), store)
    name = "rows/00000.parquet"
    content = objects(store)[name]
    for left in objects(store).keys() - {name}:
        obstore.delete(store, left)
    obstore.put(store, name, bytes(len(content)))

    with pytest.raises(DatasetError, match=f"{name} exists and is not a file of this export"):
        bf.export(rows(10), store)
    assert {name: bytes(len(content))} == objects(store)

    obstore.put(store, name, content)
    assert 10 == bf.export(rows(10), store).rows


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
    with pytest.raises(DatasetError, match=r"^MemoryStore/rows/00000\.parquet"):
        bf.export(rows(12), store)
    assert before == objects(store)


def test_failed_upload_does_not_restrict_the_next_export(store, monkeypatch):
    """A frame that was not published need not match the next one."""
    with monkeypatch.context() as patch:
        fail_at(patch, DAYS[2], OSError(5, "fails"))
        with pytest.raises(DatasetError, match="cannot be used"):
            bf.export(income(), store)
    assert 9 == bf.export(rows(9), store).rows


def test_call_after_a_failed_upload_requests_no_stored_rows(store, running, tmp_path, monkeypatch):
    """The same call uploads the rows of the local store; another call loads its own."""
    known = {"chain": running.service.chain, "head": running.service.head}
    wanted = {"validators": range(3), "since": 0, "until": 20}
    with bf.Explorer(running.url, store=tmp_path / "store", **known) as client:
        wanted["explorer"] = client
        for _ in range(2):
            with monkeypatch.context() as patch:
                fail_at(patch, ".parquet", OSError(5, "fails"))
                with pytest.raises(DatasetError, match="cannot be used"):
                    bf.export(bf.load_income_history, store, **wanted)
            running.service.requests, before = 0, running.service.requests
        assert 0 == before
        made = bf.export(bf.load_income_history, store, **{**wanted, "until": 10})
        assert 33 == made.rows
        with pytest.raises(
            DatasetError, match=r"^MemoryStore has a different table income_history"
        ):
            bf.export(bf.load_income_history, store, **{**wanted, "validators": range(4)})
        with pytest.raises(DatasetError) as raised:
            bf.export(bf.load_income_history, store, **{**wanted, "until": 5})
        assert "beaconframes-" not in str(raised.value)


def test_rows_that_became_final_after_a_failed_upload_are_added(store, running, monkeypatch):
    """The day of the failed upload has more rows."""
    known, head = {"url": running.url, "chain": running.service.chain}, running.service.head
    wanted = {"validators": range(3), "since": 440}
    early = replace(head, finalized_epoch=head.finalized_epoch - 5)
    with monkeypatch.context() as patch, bf.Explorer(head=early, **known) as client:
        fail_at(patch, ".parquet", OSError(5, "fails"))
        with pytest.raises(DatasetError, match="cannot be used"):
            bf.export(bf.load_income_history, store, explorer=client, **wanted)
    with bf.Explorer(head=head, **known) as client:
        made = bf.export(bf.load_income_history, store, explorer=client, **wanted)
        again = bf.export(bf.load_income_history, store, explorer=client, **wanted)

    assert (True, head.finalized_epoch) == (made.complete, made.until)
    assert (made.rows, 0) == (again.rows, again.added)


def test_errors_name_the_address(tmp_path):
    """Errors name the address, not the staging folder."""
    (tmp_path / "bucket").mkdir()
    address = f"file://{tmp_path}/bucket"
    bf.export(rows(3), address)
    with pytest.raises(DatasetError, match=f"^{re.escape(address)}/rows has 3 published rows"):
        bf.export(rows(2), address)


def test_a_full_disk_names_the_temporary_folder(store, temporary, monkeypatch):
    """The object store has space."""

    def fill(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("beaconframes.exports.table_writer.sync", fill)
    with pytest.raises(DatasetError, match=f"^{re.escape(str(temporary))}/.*No space left"):
        bf.export(rows(3), store)


@pytest.mark.parametrize(
    ("address", "options", "words"),
    [
        ("s3://bucket/x", {"randomize": True}, "cannot be opened"),
        ("s3://bucket/x", {"region": None}, "cannot be opened"),
        ("s3://bucket/x", {"client_options": 5}, "cannot be opened"),
        ("s3://bucket/x", "region", "cannot be opened"),
        ("s3://", None, "has no bucket"),
        ("az://", None, "has no bucket"),
        ("s3:///x", None, "cannot be opened"),
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
