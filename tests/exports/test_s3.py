"""Exports into an object store that speaks S3, on this machine.

It needs ``moto_server``, on the path or where MOTO_SERVER says: ``pip install 'moto[server]'``, in
an environment of its own, since it holds back libraries that the project is tested with.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import urllib.request

import polars as pl
import pytest

import beaconframes as bf
from beaconframes.errors import DatasetError

pytestmark = pytest.mark.more
obstore = pytest.importorskip("obstore")
SERVER = os.environ.get("MOTO_SERVER") or shutil.which("moto_server")
if SERVER is None:
    pytest.skip("moto_server is not there", allow_module_level=True)


@pytest.fixture(scope="module")
def endpoint():
    """The address of an empty object store."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen(
        [SERVER, "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield await_server(f"http://127.0.0.1:{port}")
        finally:
            process.terminate()


def await_server(address):
    """Return the *address* once a server responds there."""
    for _ in range(1_800):
        try:
            with urllib.request.urlopen(f"{address}/moto-api/", timeout=1):
                return address
        except OSError:
            time.sleep(0.1)
    pytest.fail("moto_server does not answer")


@pytest.fixture
def bucket(endpoint, tmp_path, monkeypatch, request):
    """A bucket of this test, and its storage options."""
    monkeypatch.setattr("platformdirs.user_cache_path", lambda _name: tmp_path / "cache")
    name = f"bucket-{abs(hash(request.node.name))}"
    made = urllib.request.Request(f"{endpoint}/{name}", method="PUT")
    with urllib.request.urlopen(made):
        options = {
            "endpoint": endpoint, "region": "us-east-1", "access_key_id": "key",
            "secret_access_key": "S3CR3T" * 5, "client_options": {"allow_http": True},
            "retry_config": {"max_retries": 0},
        }  # fmt: skip
        return f"s3://{name}", options


def rows(last):
    return pl.DataFrame({"n": range(last)})


def objects(address, options):
    """Return the bytes of every object, without the history, which contains the time."""
    store = obstore.store.from_url(address, **options)
    names = [entry["path"] for page in obstore.list(store) for entry in page]
    found = {name: bytes(obstore.get(store, name).bytes()) for name in names}
    return {n: data for n, data in found.items() if not n.endswith("history.jsonl")}


def read(address, options):
    """Return the rows that polars reads there, as the README of the dataset says."""
    keys = ("region", "access_key_id", "secret_access_key")
    opened = {f"aws_{name}": options[name] for name in keys}
    opened |= {"aws_endpoint_url": options["endpoint"], "aws_allow_http": "true"}
    return pl.scan_parquet(f"{address}/rows/*.parquet", storage_options=opened).collect()


def test_dataset_is_uploaded_and_extended(bucket, tmp_path):
    """The objects are the files; new rows are added; polars reads them in place."""
    address, options = bucket
    for last in (10, 12):
        made = bf.export(rows(last), f"{address}/rows", storage_options=options)
        bf.export(rows(last), tmp_path / "out")
        assert (f"{address}/rows", last) == (made.path, made.rows)
        on_disk = {
            str(path.relative_to(tmp_path / "out")): path.read_bytes()
            for path in (tmp_path / "out").rglob("*")
            if path.is_file() and path.name != "history.jsonl"
        }
        assert on_disk == objects(f"{address}/rows", options)
        assert rows(last).equals(read(f"{address}/rows", options).sort("n"))
    assert (1, 1) == (made.added, made.unchanged)


def test_changed_manifest_is_not_replaced(bucket, monkeypatch):
    """The store refuses the second of two exports that extend the same manifest."""
    from beaconframes.exports import object_store

    address, options = bucket
    bf.export(rows(10), f"{address}/rows", storage_options=options)
    real = object_store.upload_dataset

    def late(*arguments):
        with monkeypatch.context() as patch:
            patch.setattr(object_store, "upload_dataset", real)
            bf.export(rows(11), f"{address}/rows", storage_options=options)
        real(*arguments)

    monkeypatch.setattr(object_store, "upload_dataset", late)
    with pytest.raises(
        DatasetError, match=r"not a file of this export|has finished during this one"
    ):
        bf.export(rows(12), f"{address}/rows", storage_options=options)
    assert rows(11).equals(read(f"{address}/rows", options).sort("n"))


def test_interrupted_upload_is_resumed(bucket, monkeypatch):
    """Without its manifest no dataset is published; the same call resumes the upload."""
    from beaconframes.exports import object_store

    address, options = bucket
    real = object_store._upload_file

    def cut(*arguments):
        if arguments[2].endswith(".parquet"):
            raise KeyboardInterrupt
        real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(object_store, "_upload_file", cut)
        with pytest.raises(KeyboardInterrupt):
            bf.export(rows(10), f"{address}/rows", storage_options=options)
    assert "manifest.json" not in objects(f"{address}/rows", options)
    bf.export(rows(10), f"{address}/rows", storage_options=options)
    assert "manifest.json" in objects(f"{address}/rows", options)
    assert rows(10).equals(read(f"{address}/rows", options))


def test_other_columns_are_refused(bucket):
    """An export that does not match the dataset at the address leaves it unchanged."""
    address, options = bucket
    other = pl.DataFrame({"text": ["x"]})
    bf.export(rows(10), f"{address}/rows", storage_options=options)
    with pytest.raises(DatasetError, match="has a different table rows"):
        bf.export(other, f"{address}/rows", storage_options=options)
    assert rows(10).equals(read(f"{address}/rows", options))


def test_single_file_is_one_object(bucket):
    """A missing bucket is an error that shows no key."""
    address, options = bucket
    bf.export(rows(3), f"{address}/some/rows.csv", storage_options=options)
    assert {"some/rows.csv": b'"n"\n0\n1\n2\n'} == objects(address, options)
    with pytest.raises(DatasetError, match="cannot be used") as raised:
        bf.export(rows(3), "s3://no-such-bucket/rows", storage_options=options)
    assert options["secret_access_key"] not in str(raised.value)
