"""Exports of frames, datasets and loaders: all rows, and nothing else."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes.dataset import Dataset
from beaconframes.errors import DatasetError, UsageError
from beaconframes.exports import row_order
from beaconframes.exports.manifest import check_license
from beaconframes.exports.row_order import sort_rows
from beaconframes.exports.targets import parse_target


def income(first=0, last=449, validators=3):
    """Rows of a loader, made by hand: one gwei more each epoch."""
    epochs = [e for _ in range(validators) for e in range(first, last + 1)]
    size = last - first + 1
    rows = {
        "validator_index": [v for v in range(validators) for _ in range(size)],
        "epoch": epochs,
        "time": [datetime.fromtimestamp(1606824023 + 384 * e, UTC) for e in epochs],
        "attestation_head_reward_gwei": [2**53 + 1 + e for e in epochs],
        "tx_fee_reward_wei": [Decimal(10**27 + e) for e in epochs],
    }
    schema = bf.describe("income_history")["column"]
    zeros = {name: [0] * len(epochs) for name in schema if name not in rows}
    frame = pl.DataFrame({name: (rows | zeros)[name] for name in schema}, strict=False)
    return frame.with_columns(
        pl.col("time").cast(pl.Datetime("us", "UTC")),
        pl.col("tx_fee_reward_wei").cast(pl.Decimal(28, 0)),
    )


def files(folder):
    """Return the bytes of every file of a folder, without the history, which contains the time."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "history.jsonl"
    }


def read(folder, table="income_history"):
    """Return the rows of a dataset, read as its README says."""
    found = pl.scan_parquet(folder / table / "**" / "*.parquet", hive_partitioning=False)
    return found.collect().sort("validator_index", "epoch")


def test_frame_is_divided_by_day(tmp_path):
    """A frame is divided by UTC day, and consecutive files are in the order of time."""
    rows = income().sort("epoch", "validator_index")
    made = bf.export(rows.sort("validator_index"), tmp_path / "out")
    assert (1350, True, 3) == (made.rows, made.complete, made.added)
    days = sorted(path.name for path in (tmp_path / "out/income_history").iterdir())
    assert ["date=2020-12-01", "date=2020-12-02", "date=2020-12-03"] == days
    paths = sorted((tmp_path / "out/income_history").rglob("*.parquet"))
    assert rows.equals(pl.read_parquet(paths, hive_partitioning=False))
    first = pl.read_parquet(paths[0], hive_partitioning=False)
    assert rows.filter(pl.col("time") < datetime(2020, 12, 2, tzinfo=UTC)).equals(first)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    table = manifest["tables"]["income_history"]
    assert ["epoch", "validator_index"] == table["sorted_by"]
    assert ["validator_index", "epoch"] == table["key"]


def test_midnight_is_in_the_day_that_it_starts(tmp_path):
    """A row of 00:00:00 UTC is in the folder of its own date; also before 1970."""
    midnight = datetime(2026, 10, 2, tzinfo=UTC)
    moments = [midnight - timedelta(microseconds=1), midnight, midnight + timedelta(microseconds=1)]
    first = datetime(1970, 1, 1, tzinfo=UTC)
    times = [*moments, first - timedelta(microseconds=1), first]
    bf.export(pl.DataFrame({"slot": range(5), "time": times}), tmp_path / "out", by="day")

    found = {
        path.parent.name: pl.read_parquet(path, hive_partitioning=False)["slot"].to_list()
        for path in (tmp_path / "out").rglob("*.parquet")
    }
    assert {
        "date=2026-10-01": [0],
        "date=2026-10-02": [1, 2],
        "date=1969-12-31": [3],
        "date=1970-01-01": [4],
    } == found


def test_files_by_validators_are_in_the_order_of_validators(tmp_path):
    """Divided by validators, the files have all epochs of one validator after the other."""
    rows = income()
    bf.export(rows.sample(fraction=1, shuffle=True, seed=2), tmp_path / "out", by="validators")
    paths = sorted((tmp_path / "out/income_history").rglob("*.parquet"))
    assert rows.equals(pl.read_parquet(paths, hive_partitioning=False))


def test_same_rows_make_the_same_bytes(tmp_path, monkeypatch):
    """K13: the order, the type and the chunks of the input do not change a byte."""
    rows = income()
    monkeypatch.setattr("beaconframes.exports.sources.BATCH_ROWS", 70)
    bf.export(rows, tmp_path / "frame")
    shuffled = rows.sample(fraction=1, shuffle=True, seed=1)
    bf.export(shuffled.lazy(), tmp_path / "lazy")
    bf.export(shuffled, tmp_path / "slices")
    bf.export(bf.to_pandas(rows), tmp_path / "pandas")
    expected = files(tmp_path / "frame")
    for other in ("lazy", "slices", "pandas"):
        assert expected == files(tmp_path / other), other


@pytest.mark.parametrize(("most", "limit"), [(200, 0), (200, 2**27), (1_000_000, 0)])
def test_late_rows_are_added_to_their_day(tmp_path, monkeypatch, most, limit):
    """Rows beyond the memory limit, and rows of earlier days, do not change a byte."""
    monkeypatch.setattr("beaconframes.exports.sorter.ROWS", most)
    for name in ("SPILL_BYTES", "PARTITION_BYTES"):
        monkeypatch.setattr(f"beaconframes.exports.sorter.{name}", limit)
    monkeypatch.setattr("beaconframes.dataset.segments.ROWS", most)
    rows = income()
    late = pl.concat([rows.sort("epoch"), income(0, 449, validators=4).tail(450).head(3)])
    all_rows = pl.concat([rows, income(0, 449, validators=4).tail(450).head(3)])
    bf.export(all_rows, tmp_path / "whole")
    monkeypatch.setattr("beaconframes.exports.sources.BATCH_ROWS", 50)
    bf.export(late, tmp_path / "late")
    assert files(tmp_path / "whole") == files(tmp_path / "late")


def test_rows_of_one_key_are_sorted_by_their_other_columns():
    """The bytes of a file do not depend on the order in which its rows arrive."""
    rows = pl.DataFrame({"epoch": [2, 1, 2, 1], "value": [7, 9, 5, 3]})
    for frames in ([rows], [rows.reverse()], [rows[:1], rows[1:]]):
        assert [3, 9, 5, 7] == sort_rows(frames, ["epoch"])["value"].to_list()


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_sort_rows_sorts_as_polars(data):
    """Numbers of any size and sign, nulls, text, ties and chunks: as polars sorts, in one chunk."""
    kinds = {
        pl.UInt8: st.integers(0, 3),
        pl.Int64: st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2),
        pl.UInt64: st.integers(0, 2**64 - 1) | st.integers(0, 2),
        pl.Int32: st.integers(-2, 2) | st.none(),
        pl.Int128: st.integers(-(2**100), 2**100) | st.integers(0, 1),
        pl.String: st.sampled_from(["a", "b", ""]),
    }
    types = data.draw(st.lists(st.sampled_from(list(kinds)), min_size=1, max_size=3))
    size = data.draw(st.integers(1, 12))
    columns = {
        f"k{n}": pl.Series(data.draw(st.lists(kinds[t], min_size=size, max_size=size)), dtype=t)
        for n, t in enumerate(types)
    }
    rows = pl.DataFrame(columns).with_row_index("was")
    key = [*columns]
    if data.draw(st.booleans()):
        rows = rows.sort(key, maintain_order=True)
    cut = data.draw(st.integers(0, size))

    found = sort_rows([rows[:cut], rows[cut:]], key)

    assert found.equals(rows.sort(key, nulls_last=True, maintain_order=True))


def test_sort_rows_sorts_negative_numbers_by_the_whole_key():
    """The first column decides, also where the second one has the bounds -1 and 0."""
    rows = pl.DataFrame({"first": [1, 0, 0], "second": [-1, 0, -1]})

    found = sort_rows([rows[:2]], ["first", "second"]), sort_rows([rows], ["first", "second"])

    assert [(0, 0), (1, -1)] == found[0].rows()
    assert [(0, -1), (0, 0), (1, -1)] == found[1].rows()


@pytest.mark.more
@pytest.mark.parametrize("by", ["day", "validators", pytest.param(None, marks=pytest.mark.more)])
def test_large_epoch_is_split_by_validators(tmp_path, monkeypatch, by):
    """No file exceeds the row limit, and the files stay in order.

    F3: runs on disk and rows in memory make the same files.
    """
    monkeypatch.setattr("beaconframes.exports.sorter.ROWS", 20)
    monkeypatch.setattr("beaconframes.dataset.segments.ROWS", 20)
    monkeypatch.setattr("beaconframes.exports.sources.BATCH_ROWS", 37)
    rows = income(0, 3, validators=50)
    shuffled = rows.sample(fraction=1, shuffle=True, seed=3)
    for number, (frame, limit) in enumerate([(rows, 0), (shuffled, 0), (rows, 2**27)]):
        for name in ("SPILL_BYTES", "PARTITION_BYTES"):
            monkeypatch.setattr(f"beaconframes.exports.sorter.{name}", limit)
        bf.export(frame, tmp_path / str(number), by=by)
    assert files(tmp_path / "0") == files(tmp_path / "1") == files(tmp_path / "2")
    paths = sorted((tmp_path / "0/income_history").rglob("*.parquet"))
    found = [pl.read_parquet(path, hive_partitioning=False) for path in paths]
    assert max(part.height for part in found) <= 20
    key = ["epoch", "validator_index"] if by == "day" else ["validator_index", "epoch"]
    assert rows.sort(key).equals(pl.concat(found))


def test_large_tables_are_divided_by_text(tmp_path, monkeypatch):
    """A text of the key may be the name of a column."""
    monkeypatch.setattr("beaconframes.exports.sorter.ROWS", 4)
    monkeypatch.setattr("beaconframes.dataset.segments.ROWS", 4)
    credentials = ["0x01", "pubkey", "credentials"]
    rows = pl.DataFrame(
        {
            "credentials": credentials * 3,
            "validator_index": range(9),
            "pubkey": [f"0x{n:096x}" for n in range(9)],
        }
    )
    made = bf.export(rows, tmp_path)
    assert (9, 3) == (made.rows, made.added)
    found = Dataset.open(tmp_path).scan("withdrawal_credentials").collect()
    assert rows.sort("credentials", "validator_index").equals(found)


def test_full_disk_error_states_free_and_needed_bytes(tmp_path, monkeypatch):
    """K06: the error states the file, the reason, the free bytes and the needed bytes."""

    def write(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    rows = income()
    monkeypatch.setattr("polars.DataFrame.write_parquet", write)
    with pytest.raises(DatasetError) as caught:
        bf.export(rows, tmp_path / "out")
    assert str(tmp_path / "out") in str(caught.value)
    assert re.search(
        r"No space left on device \([\d,]+ bytes are free there, up to [\d,]+ are needed\)",
        str(caught.value),
    )


@pytest.mark.more
def test_loader_is_exported_with_the_fewest_requests(tmp_path, explorer):
    """A loader with its arguments exports the rows that it loads."""
    expected = bf.load_income_history(range(101), since=10, until=209)
    before = explorer.requests
    made = bf.export(
        bf.load_income_history, tmp_path / "out", validators=range(101), since=10, until=209
    )
    # Two batches of validators by two windows of 100 epochs.
    assert 4 == explorer.requests - before
    assert expected.equals(read(tmp_path / "out"))
    assert (expected.height, 209) == (made.rows, made.until)


@pytest.mark.more
def test_partial_equals_its_arguments(tmp_path, explorer):
    """functools.partial and arguments by name make the same export."""
    bf.export(partial(bf.load_epochs, since=0, until=30), tmp_path / "a")
    bf.export(bf.load_epochs, tmp_path / "b", since=0, until=30)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert bf.load_epochs(since=0, until=30).equals(read_sorted(tmp_path / "b", "epochs", "epoch"))


@pytest.mark.parametrize("by", ["day", "validators", None])
@pytest.mark.parametrize("open_source", [bf.open, partial(bf.local, store=False)])
def test_rows_of_a_loader_are_sorted_once(tmp_path, chain, monkeypatch, open_source, by):
    """F2: a load without a store has the order of the files, so the export does not sort again."""
    is_sorted, seen = row_order._is_strictly_sorted, []
    monkeypatch.setattr(
        row_order, "_is_strictly_sorted", lambda key: seen.append(is_sorted(key)) or seen[-1]
    )
    arguments = {"validators": range(120), "since": 100, "until": 320}

    with open_source(chain):
        bf.export(bf.load_income_history, tmp_path / "out", by=by, **arguments)
        rows = bf.load_income_history(**arguments)

    assert {True} == set(seen)
    assert_frame_equal(rows, read(tmp_path / "out"))
    assert rows.equals(rows.sort("validator_index", "epoch"))


def read_sorted(folder, table, key):
    found = pl.scan_parquet(folder / table / "**" / "*.parquet", hive_partitioning=False)
    return found.collect().sort(key)


@pytest.mark.parametrize("size", [10**9, 10**30])
def test_too_large_ranges_are_refused_as_by_the_loader(tmp_path, explorer, size):
    """The check of the loader comes before the numbers are listed in the manifest."""
    with pytest.raises(UsageError, match="validators has more than 10,000,000 items"):
        bf.export(bf.load_validators, tmp_path / "out", validators=range(size))


def test_loader_without_time_makes_one_file(tmp_path, explorer):
    """A loader without a time range is loaded in one call, and not divided."""
    bf.export(bf.load_validators, tmp_path / "out", validators=range(20))
    found = pl.read_parquet(tmp_path / "out/validators/00000.parquet")
    assert bf.load_validators(range(20)).equals(found)


def test_dataset_is_exported_whole_or_by_table(tmp_path, chain):
    """All tables of a dataset are exported, or only the one called table=."""
    made = bf.export(chain, tmp_path / "out", table="epochs")
    assert {"epochs": 470} == made.tables
    assert chain.scan("epochs").collect().equals(read_sorted(tmp_path / "out", "epochs", "epoch"))
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert True is manifest["provenance"]["simulated"]
    assert chain.meta["finalized_epoch"] == manifest["provenance"]["finalized_epoch"]


def test_rows_per_day_are_not_divided_by_day(tmp_path, explorer):
    """Rows of days would make one file per row."""
    bf.export(bf.load_yield_index, tmp_path / "out", since=0)
    names = [path.name for path in (tmp_path / "out/yield_index").iterdir()]
    assert ["00000.parquet"] == names


def test_adjacent_gaps_are_merged(tmp_path):
    """The size of the requests does not change the gaps."""
    from beaconframes.exports.sources import create_frame_source

    source = create_frame_source(pl.DataFrame({"epoch": [1]}), None)
    source.unit_column = "epoch"
    runs = [(7, 100, 119), (12, 0, 4), (7, 0, 99), (7, 150, 160)]
    source.gaps += [{"validator_index": v, "first_epoch": a, "last_epoch": b} for v, a, b in runs]
    found = [tuple(gap.values()) for gap in source.merge_gaps()]
    assert [(7, 0, 119), (7, 150, 160), (12, 0, 4)] == found


def test_equal_gaps_are_merged():
    """Each chunk of requests reports a gap without epochs; it is listed once, before the others."""
    from beaconframes.exports.sources import create_frame_source

    source = create_frame_source(pl.DataFrame({"epoch": [1]}), None)
    source.unit_column = "epoch"
    unknown = {"pubkey": "0xab", "reason": "unknown validator"}
    runs = [{"first_epoch": first, "last_epoch": first + 4} for first in (0, 5)]
    source.gaps += [{**unknown, **runs[0]}, unknown, {**unknown, **runs[1]}, unknown]

    merged = {**unknown, "first_epoch": 0, "last_epoch": 9}
    assert [unknown, merged] == source.merge_gaps()


def test_by_divides_rows(tmp_path):
    """Rows are divided by sync committee period, by validators, or not at all."""
    rows = income(0, 300, validators=2)
    bf.export(rows, tmp_path / "period", by="period")
    names = sorted(path.name for path in (tmp_path / "period/income_history").iterdir())
    assert ["sync_period=00000", "sync_period=00001"] == names
    bf.export(rows, tmp_path / "validators", by="validators")
    names = [path.name for path in (tmp_path / "validators/income_history").iterdir()]
    assert ["validators_from_to=0000000-0000999"] == names
    bf.export(rows, tmp_path / "whole", by=None)
    assert rows.equals(pl.read_parquet(tmp_path / "whole/income_history/00000.parquet"))
    with pytest.raises(UsageError, match="by='week' is unknown"):
        bf.export(rows, tmp_path / "no", by="week")


@pytest.mark.parametrize("size", [0, 1, 131_072])
def test_few_rows_make_a_dataset(tmp_path, size):
    """K20: no rows, one row, and exactly one row group: a file with the whole schema."""
    rows = pl.DataFrame({"slot": range(size)}, schema={"slot": pl.Int64})
    bf.export(rows, tmp_path / "out")
    assert rows.equals(pl.read_parquet(tmp_path / "out/rows/00000.parquet"))


def test_single_file_has_nothing_beside_it(tmp_path):
    """A target with a file extension is that file, and nothing is left beside it."""
    rows = income()
    made = bf.export(rows.sort("epoch"), tmp_path / "deep/income.parquet")
    assert ["income.parquet"] == [path.name for path in (tmp_path / "deep").iterdir()]
    assert rows.equals(pl.read_parquet(tmp_path / "deep/income.parquet"))
    assert (1350, 1) == (made.rows, made.added)


def test_manifest_lists_every_file(tmp_path):
    """The manifest has the rows, the key ranges and the SHA-256 of every file."""
    bf.export(income(), tmp_path / "out", creators=["Ada"], license="CC-BY-4.0")
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    listed = {f["path"]: f for f in manifest["tables"]["income_history"]["files"]}
    on_disk = {n: b for n, b in files(tmp_path / "out").items() if n.endswith(".parquet")}
    assert set(on_disk) == set(listed)
    for name, data in on_disk.items():
        assert hashlib.sha256(data).hexdigest() == listed[name]["sha256"]
        assert len(data) == listed[name]["bytes"]
    assert [113, 225, 112] == [f["rows"] // 3 for f in listed.values()]
    first = listed["income_history/date=2020-12-01/00000.parquet"]
    assert {"validator_index": [0, 2], "epoch": [0, 112]} == first["ranges"]
    assert {"validator_index": [0, 2], "epoch": [0, 449]} == manifest["tables"]["income_history"][
        "ranges"
    ]
    assert "mainnet" == manifest["provenance"]["chain"]["name"]


@pytest.mark.parametrize(
    "target",
    ["../x", "a/../../b", "nul\0byte", "x" * 300, "CON", "con.parquet", ""],
)
def test_invalid_targets_are_refused(tmp_path, monkeypatch, target):
    """K15: paths with .., too long names, and names of devices."""
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    with pytest.raises(UsageError):
        bf.export(income(0, 1), target)
    assert [inside] == list(tmp_path.iterdir())
    assert [] == list(inside.iterdir())


@pytest.mark.parametrize("target", ["\ud800", "a/\udcff", "/".join(["a" * 150] * 40)])
def test_targets_that_no_system_accepts_are_refused(tmp_path, monkeypatch, target):
    """Text that is not UTF-8, and a path that is too long."""
    monkeypatch.chdir(tmp_path)
    for kind in (str, Path):
        with pytest.raises(UsageError, match=r"is not a path|cannot be used"):
            bf.export(income(0, 1), kind(target))
    assert [] == list(tmp_path.iterdir())


def test_tilde_is_the_home_folder(tmp_path, monkeypatch):
    """`~` is the home folder; `~name` of an unknown user is an ordinary name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for target in ("~/one", Path("~/two"), "~/three.csv"):
        made = bf.export(income(0, 1), target)
        assert tmp_path / "home" == made.path.parent
    assert Path("~unknown-user") == bf.export(income(0, 1), "~unknown-user").path
    assert {"home", "~unknown-user"} == {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("creators", value) for value in ([1], None, 5, ["\ud800"], "\ud800", [["Alice"]])),
        *(("url", value) for value in (Path("x"), "\ud800", b"x")),
        *(("license", value) for value in (object(), "\ud800")),
        *(("title", value) for value in (5, "\ud800")),
    ],
)
def test_metadata_must_be_text(tmp_path, name, value):
    """Other values are refused with the name of the argument, before anything is written."""
    with pytest.raises(UsageError, match=f"^{name}="):
        bf.export(income(0, 1), tmp_path / "out", **{name: value})
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["v.csv.gz", "pub.zip", "x.parq", "data.json", "a.b/rows.TXT"])
def test_unknown_endings_are_refused(tmp_path, name):
    """C8: the name looks like a file, so it must not become a folder."""
    with pytest.raises(UsageError, match=r"no known ending. A file ends in \.parquet, \.csv"):
        bf.export(income(0, 1), tmp_path / name)
    with pytest.raises(UsageError, match="no known ending"):
        bf.export(income(0, 1), f"file://{tmp_path}/{name}")
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["income-1.5", "2026.10.01", ".hidden", "pub.zip/"])
def test_folders_may_have_dots(tmp_path, name):
    """C8: versions, dates and hidden folders are no file endings; a slash makes any name a folder.

    An existing folder is one as well.
    """
    assert not parse_target(f"{tmp_path}/{name}", None).is_file
    (tmp_path / "old.zip").mkdir()
    assert not parse_target(tmp_path / "old.zip", None).is_file


def test_files_are_replaced_only_with_overwrite(tmp_path):
    """C8: as on the command line; a dataset is extended instead, so it refuses ``overwrite``."""
    path = tmp_path / "y.csv"
    bf.export(income(0, 1), path)
    before = path.read_bytes()
    with pytest.raises(DatasetError, match=r"y.csv already exists. Give overwrite=True"):
        bf.export(income(1, 2), path)
    assert before == path.read_bytes()
    assert 1 == bf.export(income(1, 2), path, overwrite=True).added
    assert before != path.read_bytes()
    with pytest.raises(UsageError, match=r"overwrite=True replaces a file, and .* is a folder"):
        bf.export(income(0, 1), tmp_path / "out", overwrite=True)


@pytest.mark.parametrize(
    ("given", "written"),
    [("cc-by-4.0", "CC-BY-4.0"), ("MIT OR ODbL-1.0", "MIT OR ODbL-1.0"),
     ("LicenseRef-Mine", "LicenseRef-Mine"), (None, None)],
)  # fmt: skip
def test_licenses_are_written_as_spdx_spells_them(given, written):
    """C8: an identifier, an expression, and a license outside the list."""
    assert written == check_license(given)


@pytest.mark.parametrize("text", ["CC BY 4", "CC-BY", "", "Creative Commons"])
def test_other_licenses_are_refused(tmp_path, text):
    """C8: a license that no tool recognizes is refused before anything is written."""
    with pytest.raises(UsageError, match=r'not an SPDX license expression. .*"CC-BY-4.0"'):
        bf.export(income(0, 1), tmp_path / "out", license=text)
    assert [] == list(tmp_path.iterdir())


def test_one_creator_may_be_a_str(tmp_path):
    """One creator may be given as a str or in a list."""
    for creators in ("Alice", ["Alice"], iter(("Alice",))):
        bf.export(income(0, 1), tmp_path / "out", creators=creators)
        manifest = json.loads((tmp_path / "out/manifest.json").read_text())
        assert ["Alice"] == manifest["creators"]


def test_export_into_a_store_is_refused(tmp_path, chain):
    """Readers of a store or a chain would find the exported rows among its own."""
    there = shutil.copytree(chain.path, tmp_path / "chain")
    before = sorted(there.rglob("*"))
    for source in (chain, Dataset.open(there), income(0, 1)):
        with pytest.raises(UsageError, match="contains a store or a simulated chain"):
            bf.export(source, there)
    assert before == sorted(there.rglob("*"))


def test_symbolic_links_are_refused(tmp_path):
    """K15: nothing is written through a symbolic link: target, table or partition."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "link").symlink_to(outside)
    with pytest.raises(UsageError, match="symbolic link"):
        bf.export(income(0, 1), tmp_path / "link")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/income_history").symlink_to(outside)
    with pytest.raises(DatasetError, match="symbolic link"):
        bf.export(income(0, 1), tmp_path / "out")
    assert [] == list(outside.iterdir())


@pytest.mark.parametrize("name", ["README.md", "manifest.json", "income_history/00000.parquet"])
def test_other_files_are_not_replaced(tmp_path, name):
    """K16: files in the target that the export did not write are an error, and do not change."""
    mine = tmp_path / "out" / name
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"mine")
    (tmp_path / "out/notes.txt").write_bytes(b"mine too")
    words = r"not a file of this export|is not the manifest|is damaged"
    with pytest.raises(DatasetError, match=words):
        bf.export(income(0, 1), tmp_path / "out", by=None)
    assert b"mine" == mine.read_bytes()
    mine.unlink()
    bf.export(income(0, 1), tmp_path / "out", by=None)
    assert b"mine too" == (tmp_path / "out/notes.txt").read_bytes()


class ReturnsNone:
    """A callable object that returns None."""

    def __call__(self):
        return None


def test_invalid_arguments_are_refused(tmp_path):
    """A misspelt argument, an unsupported kind of input, an unknown format."""
    with pytest.raises(UsageError, match="has no argument 'validator'"):
        bf.export(income(0, 1), tmp_path / "out", validator=[1])
    with pytest.raises(UsageError, match="unexpected keyword argument"):
        bf.export(pl.DataFrame, tmp_path / "out", nonsense=1)
    for function, words in ((print, "print"), (ReturnsNone(), "ReturnsNone")):
        with pytest.raises(UsageError, match=rf"{words}\(\) does not return a frame"):
            bf.export(function, tmp_path / "out")
    with pytest.raises(UsageError, match=r"ReturnsNone\(\) does not accept these arguments"):
        bf.export(ReturnsNone(), tmp_path / "out", nonsense=1)
    with pytest.raises(UsageError, match="int cannot be exported"):
        bf.export(7, tmp_path / "out")
    with pytest.raises(UsageError, match=r"has the extension of csv"):
        bf.export(income(0, 1), tmp_path / "out.csv", format="parquet")
    with pytest.raises(UsageError, match="format='shapefile' is unknown"):
        bf.export(income(0, 1), tmp_path / "out", format="shapefile")
    with pytest.raises(UsageError, match="is not a valid name"):
        bf.export(income(0, 1), tmp_path / "out", table="../etc")
    assert [] == list(tmp_path.iterdir())
