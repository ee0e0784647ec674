"""Datasets of one chain become one: files are linked, overlaps compared, other chains refused."""

from __future__ import annotations

import os
import stat

import polars as pl
import pytest

from beaconframes.dataset import Dataset, Grid
from beaconframes.errors import DatasetError, UsageError

GRID = Grid("validator", "epoch", ("validator", "epoch"))
CHAIN = {"name": "mainnet"}


def make_rows(validators, first, last, *, amount=1):
    cells = [(v, e, amount * v + e) for v in validators for e in range(first, last + 1)]
    schema = {"validator": pl.Int64, "epoch": pl.Int64, "amount": pl.Int64}
    return pl.DataFrame(cells, schema=schema, orient="row")


def create(path, *parts, service="a node", private=False, **meta):
    """Return a dataset with one segment for each of *parts*: validators, first and last epoch."""
    facts = {"chain": CHAIN, "service": service, "latest_epoch": max(part[2] for part in parts)}
    dataset = Dataset.create(path, meta=facts | meta, private=private)
    for validators, first, last, *amount in parts:
        rows = make_rows(validators, first, last, amount=amount[0] if amount else 1)
        with dataset.writing() as writer:
            covered = {str(validator): ((first, last),) for validator in validators}
            writer.add_covered("income", rows, GRID, covered)
    return dataset


def read(dataset):
    return dataset.scan("income").collect().sort("validator", "epoch")


def list_inodes(*datasets):
    return sorted(
        (one.path / segment.path).stat().st_ino for one in datasets for segment in one.segments()
    )


def test_disjoint_parts_are_linked(tmp_path):
    """Coverage and rows are those of both; no file is written again."""
    one = create(tmp_path / "one", ((1, 2), 0, 9), ((3,), 5, 6))
    other = create(tmp_path / "other", ((1, 2), 10, 19), ((3,), 7, 7))
    merged = Dataset.merge([one.path, str(other.path)], tmp_path / "merged")

    assert {"1": ((0, 19),), "2": ((0, 19),), "3": ((5, 7),)} == merged.coverage("income")
    assert pl.concat([read(one), read(other)]).sort("validator", "epoch").equals(read(merged))
    assert list_inodes(one, other) == list_inodes(merged)
    assert (19, 19) == (other.meta["latest_epoch"], merged.meta["latest_epoch"])
    assert [] == merged.verify()
    assert {"one", "other", "merged"} == {path.name for path in tmp_path.iterdir()}
    # The dataset is like any other: more is added to it, and its sources stay.
    merged.compact()
    merged.prune("income", ["1"])
    assert [] == [*one.verify(), *other.verify()]
    assert 23 == read(merged).height


def test_other_disks_get_copies(tmp_path, monkeypatch):
    """Files that cannot be linked are copied."""

    def refuse(*_):
        raise OSError(18, "Invalid cross-device link")

    one, other = create(tmp_path / "one", ((1,), 0, 9)), create(tmp_path / "other", ((1,), 10, 12))
    monkeypatch.setattr(os, "link", refuse)
    merged = Dataset.merge([one.path, other.path], tmp_path / "merged")

    assert 13 == read(merged).height
    assert [] == merged.verify()
    assert not set(list_inodes(one, other)) & set(list_inodes(merged))
    assert {".parquet", ".sqlite"} == {p.suffix for p in merged.path.rglob("*") if p.is_file()}


def test_equal_rows_of_an_overlap_are_merged(tmp_path, caplog):
    """Rows that both have are there once; the log names the overlap; other files are linked."""
    one = create(tmp_path / "one", ((1, 2), 0, 9))
    other = create(tmp_path / "other", ((1,), 8, 12), ((2,), 10, 12))
    with caplog.at_level("INFO"):
        merged = Dataset.merge([one.path, other.path], tmp_path / "merged")

    assert make_rows((1, 2), 0, 12).equals(read(merged))
    assert {"1": ((0, 12),), "2": ((0, 12),)} == merged.coverage("income")
    assert 2 == len(set(list_inodes(one, other)) & set(list_inodes(merged)))
    assert "rows of income, epoch 8 to 9" in caplog.text


@pytest.mark.parametrize("change", ["amount", "absent"])
def test_different_rows_of_an_overlap_are_an_error(tmp_path, change):
    """The error names table and units; the target is not created."""
    one = create(tmp_path / "one", ((1,), 0, 9))
    other = create(tmp_path / "other", ((1,), 9, 12, 2 if change == "amount" else 1))
    if change == "absent":
        with other.writing() as writer:
            # An epoch without rows.
            writer.add_covered("income", make_rows((), 0, 0), GRID, {"1": ((8, 8),)})
    with pytest.raises(DatasetError, match=r"other rows of income, epoch [89] to 9 than"):
        Dataset.merge([one.path, other.path], tmp_path / "merged")
    assert {"one", "other"} == {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ({"chain": {"name": "hoodi"}}, "different chain"),
        ({"simulated": True}, "different simulated"),
        ({"validators": "all"}, "different validators"),
        ({"service": "another"}, "different service"),
        ({"first_unsettled_epoch": 11}, "change, since epoch 11. Index it again with until=10, "),
        ({"first_unsettled_epoch": 0}, "since epoch 0. Index it again once they are final"),
    ],
)
def test_other_chains_are_refused(tmp_path, meta, words):
    """The error names the difference; nothing is created."""
    one = create(tmp_path / "one", ((1,), 0, 9))
    other = create(tmp_path / "other", ((1,), 10, 12), **{"service": "a node", **meta})
    with pytest.raises(DatasetError, match=words):
        Dataset.merge([one.path, other.path], tmp_path / "merged")
    assert {"one", "other"} == {path.name for path in tmp_path.iterdir()}


def test_parts_of_an_index_may_be_of_several_nodes(tmp_path):
    """The remarks of both are in the merged index."""
    one = create(tmp_path / "one", ((1,), 0, 9), indexed=True, remarks={"x": [[0, 3]]})
    other = create(
        tmp_path / "other", ((1,), 10, 12), service="another node", indexed=True,
        remarks={"x": [[11, 12]], "y": [[10, 10]]},
    )  # fmt: skip
    merged = Dataset.merge([other.path, one.path], tmp_path / "merged")

    assert {"x": [[0, 3], [11, 12]], "y": [[10, 10]]} == merged.meta["remarks"]
    assert (12, "another node") == (merged.meta["latest_epoch"], merged.meta["service"])


def test_damaged_files_are_refused(tmp_path):
    """The error names the file."""
    one, other = create(tmp_path / "one", ((1,), 0, 9)), create(tmp_path / "other", ((1,), 10, 12))
    (path,) = other.path.glob("income/*.parquet")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DatasetError, match="does not have the content that was written"):
        Dataset.merge([one.path, other.path], tmp_path / "merged")
    assert {"one", "other"} == {path.name for path in tmp_path.iterdir()}


def test_other_folders_are_refused(tmp_path):
    """No folder, an existing target, a dataset without coverage, other columns."""
    one = create(tmp_path / "one", ((1,), 0, 9))
    plain = Dataset.create(tmp_path / "plain", meta=one.meta)
    plain.write("income", [make_rows((1,), 0, 9)])
    narrow = Dataset.create(tmp_path / "narrow", meta=one.meta)
    with narrow.writing() as writer:
        rows = make_rows((2,), 0, 9).drop("amount")
        writer.add_covered("income", rows, GRID, {"2": ((0, 9),)})

    with pytest.raises(UsageError, match="at least one folder"):
        Dataset.merge([], tmp_path / "merged")
    with pytest.raises(DatasetError, match="exists already"):
        Dataset.merge([one.path], one.path)
    with pytest.raises(DatasetError, match="no table with coverage"):
        Dataset.merge([one.path, plain.path], tmp_path / "merged")
    with pytest.raises(UsageError, match="do not fit table income: amount missing"):
        Dataset.merge([one.path, narrow.path], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_a_part_that_only_its_owner_may_read_stays_so(tmp_path):
    """One private part makes the merged dataset private."""
    one = create(tmp_path / "one", ((1,), 0, 9))
    other = create(tmp_path / "other", ((1,), 10, 12), private=True)
    merged = Dataset.merge([one.path, other.path], tmp_path / "merged")
    assert 0o700 == stat.S_IMODE(merged.path.stat().st_mode)
