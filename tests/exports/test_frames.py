"""Frames of any kind: the exported rows equal the given ones, or the error names the column."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from matplotlib import pyplot as plt

import beaconframes as bf
from beaconframes.calendar import HOODI, MAINNET
from beaconframes.cli.chart_input import read_file
from beaconframes.errors import DatasetError, UsageError
from beaconframes.exports.formats import parquet
from beaconframes.exports.formats.cells import CellOptions
from beaconframes.exports.partitions import UNPARTITIONED
from beaconframes.exports.row_order import sort_rows
from beaconframes.exports.sorter import sort_source
from beaconframes.exports.sources import create_frame_source

from .test_export import files, income

REWARD = "attestation_head_reward_gwei"
NOT_A_COLUMN = {
    "objects": (pl.DataFrame({"epoch": [0], "odd": [object()]}), "column odd contains Object"),
    "no name": (pl.DataFrame({"epoch": [0], "": [1]}), "'' is not a valid column name"),
    "a name with an end": (pl.DataFrame({"a\0b": [1]}), "is not a valid column name"),
    "periods": (
        pd.DataFrame({"odd": pd.period_range("2026", periods=2, freq="D")}),
        "column odd contains",
    ),
    "twice": (pd.DataFrame([[1, 2]], columns=["odd", "odd"]), "are named 'odd'"),
    "twice in Arrow": (pa.table([[1], [2]], names=["odd", "odd"]), "are named 'odd'"),
    "complex numbers": (pd.DataFrame({"epoch": [0], "odd": [1j]}), "column odd cannot be read"),
    "long numbers": (
        pd.DataFrame({"odd": np.array([1], dtype=np.longdouble)}),
        "column odd cannot be read",
    ),
    "long decimals": (
        pa.table({"odd": pa.array([1], pa.decimal256(60, 0))}),
        "column odd cannot be read",
    ),
    "intervals": (
        pa.table({"odd": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}),
        "column odd cannot be read",
    ),
    "runs": (
        pa.table({"odd": pa.RunEndEncodedArray.from_arrays([2, 4], [1, 2])}),
        "column odd cannot be read",
    ),
    "index and column": (
        pd.DataFrame({"epoch": [0]}, index=pd.Index([1], name="epoch")),
        "'epoch' is the name of a column and of the index",
    ),
}


@pytest.mark.parametrize("kind", NOT_A_COLUMN)
def test_unsupported_columns_are_refused_by_name(tmp_path, kind):
    """Objects, types that polars does not have, empty and duplicate names: one clear error."""
    frame, words = NOT_A_COLUMN[kind]
    with pytest.raises(UsageError, match=words):
        bf.export(frame, tmp_path / "out.parquet")


def test_types_of_another_engine_are_refused(tmp_path):
    """A DuckDB relation that polars cannot represent: one clear error."""
    with (
        duckdb.connect() as base,
        pytest.raises(UsageError, match="the frame cannot be read"),
    ):
        bf.export(base.sql("SELECT INTERVAL 1 DAY AS odd"), tmp_path / "out.parquet")


def test_pandas_types_are_restored_exactly():
    """Pandas makes floats of integers; only whole numbers become integers again."""
    rows = income(0, 3)
    frame = bf.to_pandas(rows)
    frame[REWARD] = [None, *range(1, rows.height)]
    whole = next(iter(create_frame_source(frame, None).frames()))
    assert rows.schema == whole.schema
    assert [None, *range(1, rows.height)] == whole[REWARD].to_list()
    frame.loc[1, REWARD] = 3.75
    source = create_frame_source(frame, None)
    assert ("rows", pl.Float64) == (source.table.name, source.table.schema[REWARD])
    assert [None, 3.75, 2.0] == next(iter(source.frames()))[REWARD].head(3).to_list()


def test_pandas_times_keep_nanoseconds(tmp_path):
    """Times without nanoseconds become microseconds; others stay nanoseconds."""
    times = {"exact": "2026-10-01T00:00:00.000001Z", "fine": "2026-10-01T00:00:00.000000001Z"}
    frame = pd.DataFrame({name: pd.to_datetime([t]).as_unit("ns") for name, t in times.items()})
    bf.export(frame, tmp_path / "out.parquet")
    found = pl.read_parquet(tmp_path / "out.parquet")
    assert [pl.Datetime("us", "UTC"), pl.Datetime("ns", "UTC")] == found.dtypes
    assert frame["fine"][0].value == found["fine"].to_physical()[0]


def test_days_of_pandas_are_exported_as_days(tmp_path):
    """Step 12, 7: pandas has no type for days; other times without a zone stay times."""
    days = pl.DataFrame({"date": [date(2026, 10, 1), None], "n": [1, 2]})
    times = pl.DataFrame({"at": [datetime(2026, 10, 1), datetime(2026, 10, 1, 1)]})  # noqa: DTZ001
    bf.export(bf.to_pandas(days), tmp_path / "days.csv")
    bf.export(bf.to_pandas(times), tmp_path / "times.parquet")
    assert "2026-10-01,1" in (tmp_path / "days.csv").read_text().replace('"', "")
    assert times.equals(pl.read_parquet(tmp_path / "times.parquet"))


def test_named_pandas_index_is_exported():
    """A named index becomes a column; an index that only counts rows does not."""
    # Importing Dask takes a second, which every test process would spend at its start.
    import dask.dataframe as dd

    rows = income(0, 3)
    frame = bf.to_pandas(rows)
    indexed = create_frame_source(frame.set_index(["validator_index", "epoch"]), None)
    assert rows.equals(next(iter(indexed.frames())))
    few = pd.DataFrame({"value": [0]}, index=pd.Index([1], name="slot"))
    lazy = create_frame_source(dd.from_pandas(few, npartitions=1), None)
    assert ["slot", "value"] == lazy.table.schema.names()
    assert rows.equals(next(iter(create_frame_source(frame, None).frames())))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (pl.scan_parquet("nowhere.parquet"), "No such file"),
        (pl.LazyFrame({"epoch": [0]}).select("slot"), 'unable to find column "slot"'),
        (
            pl.LazyFrame({"epoch": ["x"], "time": [MAINNET.genesis]}).cast({"epoch": pl.Int64}),
            "conversion from `str`",
        ),
    ],
)
def test_failing_lazy_frame_is_a_dataset_error(tmp_path, rows, words):
    """Missing files, missing columns, failing casts: the error quotes polars."""
    with pytest.raises(DatasetError, match=f"the rows cannot be read: {words}"):
        bf.export(rows, tmp_path / "out")


def test_chain_is_detected_in_any_order():
    """Slots or epochs with the times of their starts determine the chain, in any order of rows."""
    slots = [100, 5, 31]
    for chain in (MAINNET, HOODI):
        rows = pl.DataFrame(
            {
                "epoch": [slot // 32 for slot in slots],
                "slot": slots,
                "time": [chain.time_of("slot", slot) for slot in slots],
            }
        )
        epochs = rows.select("epoch", time=chain.time_expr("epoch", pl.col("epoch")))
        for given in (rows, rows.reverse(), epochs, epochs.reverse()):
            sources = (
                create_frame_source(given, None),
                create_frame_source(given.lazy(), None),
            )
            assert [chain] * 2 == [source.chain for source in sources]


@pytest.mark.parametrize(
    "epoch",
    [[1.5], [-1], ["x"], [None], [2**64 - 1], [[1]]],
)
def test_invalid_epochs_have_no_chain(tmp_path, epoch):
    """Invalid epochs are exported unchanged, without a chain."""
    rows = pl.DataFrame({"epoch": epoch, "time": [datetime(2020, 12, 1, 12, tzinfo=UTC)]})
    assert bf.export(rows, tmp_path / "out").complete
    assert create_frame_source(rows, None).chain is None


@pytest.mark.parametrize("most", [50, 1_000_000])
def test_rows_with_equal_keys_have_one_order(tmp_path, monkeypatch, most):
    """Rows that differ outside of the key make the same bytes in any order, also with runs."""
    monkeypatch.setattr("beaconframes.exports.sorter.ROWS", most)
    for name in ("SPILL_BYTES", "PARTITION_BYTES"):
        monkeypatch.setattr(f"beaconframes.exports.sorter.{name}", 0)
    monkeypatch.setattr("beaconframes.dataset.segments.ROWS", most)
    monkeypatch.setattr("beaconframes.exports.sources.BATCH_ROWS", 40)
    rows = income(0, 99)
    twice = pl.concat(
        [rows, rows.with_columns(pl.lit(1, pl.Int64).alias(REWARD)).head(150), rows.head(20)]
    )
    made = set()
    for number, given in enumerate((twice, twice.reverse(), twice.sort(REWARD, "epoch"))):
        bf.export(given, tmp_path / f"{number}.parquet")
        made.add((tmp_path / f"{number}.parquet").read_bytes())
        bf.export(given, tmp_path / f"{number}")
    assert 1 == len(made)
    assert files(tmp_path / "0") == files(tmp_path / "1") == files(tmp_path / "2")


@pytest.mark.parametrize(("most", "spill"), [(20, 0), (70, 2**30)])
def test_rows_without_a_key_keep_their_order(tmp_path, monkeypatch, most, spill):
    """Also rows that memory does not hold, and days that are sorted together."""
    monkeypatch.setattr("beaconframes.exports.sorter.ROWS", most)
    for name in ("SPILL_BYTES", "PARTITION_BYTES"):
        monkeypatch.setattr(f"beaconframes.exports.sorter.{name}", spill)
    monkeypatch.setattr("beaconframes.exports.sources.BATCH_ROWS", 15)
    days = [datetime(2026, 10, 1 + n // 30, tzinfo=UTC) for n in range(90)]
    ranks = [97 * n % 90 for n in range(90)]
    frame = pl.DataFrame({"rank": ranks, "label": ["x"] * 90, "time": days})

    bf.export(frame, tmp_path / "one.parquet")
    bf.export(frame, tmp_path / "days", by="day")

    assert frame.equals(pl.read_parquet(tmp_path / "one.parquet"))
    (table,) = bf.Dataset.open(tmp_path / "days").tables()
    found = bf.Dataset.open(tmp_path / "days").scan(table).collect()
    assert ranks == found["rank"].to_list()


def test_rows_with_a_null_key_are_in_the_last_file(tmp_path, monkeypatch):
    """A partition of several files has all its rows, those with a null key last."""
    monkeypatch.setattr("beaconframes.exports.sorter.ROWS", 8)
    monkeypatch.setattr("beaconframes.dataset.segments.ROWS", 8)
    rows = pl.DataFrame({"epoch": [*range(20), None, None], "value": range(22)})
    source = create_frame_source(rows.reverse(), None)
    source.table = replace(source.table, columns=({"name": "epoch", "key": True},))

    found = sort_source(source, UNPARTITIONED, tmp_path)

    assert [8, 8, 4, 2] == [len(file := rows) for _, rows in found]
    assert [20, 21] == file["value"].to_list()


@pytest.mark.parametrize("late", [None, 3, 30, 300])
def test_late_row_of_a_partition_changes_no_byte(tmp_path, monkeypatch, late):
    """A partition with files may get more rows: then all rows are read once more."""
    monkeypatch.setattr("beaconframes.exports.sorter.ROWS", 20)
    monkeypatch.setattr("beaconframes.dataset.segments.ROWS", 20)
    monkeypatch.setattr("beaconframes.exports.sources.BATCH_ROWS", 24)
    rows = income(200, 459)
    epochs = rows.sort("epoch", "validator_index", descending=[False, True])
    new = rows.head(1).with_columns(epoch=pl.lit(late, pl.Int64))

    bf.export(pl.concat([rows, new]), tmp_path / "whole")
    bf.export(pl.concat([epochs, new]), tmp_path / "late")

    assert files(tmp_path / "whole") == files(tmp_path / "late")
    assert (
        rows.height + 1
        == bf.Dataset.open(tmp_path / "late").scan("income_history").collect().height
    )


def test_rows_with_equal_text_keys_have_one_order(tmp_path):
    """The same holds for keys of text, and for list columns outside of the key."""
    rows = pl.DataFrame({"name": ["b", None, "a", "b"], "list": [[2], [1], None, [1]]})
    expected = [("a", None), ("b", [1]), ("b", [2]), (None, [1])]
    for given in (rows, rows.reverse()):
        assert expected == sort_rows([given], ["name"]).rows()


def test_column_names_do_not_clash_with_internal_ones(tmp_path, monkeypatch):
    """Users' columns do not clash with the columns that sorting adds."""
    monkeypatch.setattr("beaconframes.exports.sources.BATCH_ROWS", 1)
    rows = pl.DataFrame({"epoch": [225, 0, 450, 1], "_part": range(4)}).with_columns(
        time=MAINNET.time_expr("epoch", pl.col("epoch"))
    )
    bf.export(rows, tmp_path / "out")
    found = pl.read_parquet([*(tmp_path / "out").rglob("*.parquet")], hive_partitioning=False)
    assert rows.sort("epoch").equals(found.sort("epoch"))


def test_column_named_like_the_partition_key_stays(tmp_path):
    """Readers of Hive folders find a column `date` of the rows unchanged."""
    rows = pl.DataFrame({"epoch": [0, 225], "date": ["x", "y"], "Sync_Period": [7, 8]})
    rows = rows.with_columns(time=MAINNET.time_expr("epoch", pl.col("epoch")))
    for by, key in (("day", "partition_date"), ("period", "partition_sync_period")):
        folder = tmp_path / by
        bf.export(rows, folder, by=by)
        manifest = json.loads((folder / "manifest.json").read_text())
        assert key == manifest["tables"]["rows"]["partition_key"]
        found = pl.read_parquet(folder / "rows", hive_partitioning=True)
        assert rows.equals(found.sort("epoch").select(rows.columns))
        table = pq.read_table(folder / "rows")
        assert {*rows.columns, key} == {*table.column_names}
        assert ["x", "y"] == sorted(table["date"].to_pylist())
        assert 0 == bf.export(rows, folder, by=by).added


def test_times_outside_the_calendar_are_refused(tmp_path):
    """Days before the year 1 or after 9999 have no folder name; a single file needs none."""
    for microseconds in (2**58, -(2**57)):
        time = pl.Series([0, microseconds], dtype=pl.Int64).cast(pl.Datetime("us", "UTC"))
        rows = pl.DataFrame({"epoch": [0, 1], "time": time})
        with pytest.raises(UsageError, match="a year outside 1 to 9999"):
            bf.export(rows, tmp_path / "out")
        bf.export(rows, tmp_path / f"{microseconds}.parquet")


@pytest.mark.parametrize(
    ("indices", "kind", "folders"),
    [
        (
            [2**64 - 1, 999],
            pl.UInt64,
            ["0000000-0000999", f"{2**64 // 1000}000-{2**64 // 1000}999"],
        ),
        ([1, 255], pl.UInt8, ["0000000-0000999"]),
        ([1.0, float("nan")], pl.Float64, ["0000000-0000999", "__HIVE_DEFAULT_PARTITION__"]),
    ],
)
def test_validators_of_any_integer_type_divide_rows(tmp_path, indices, kind, folders):
    """Unsigned integers beyond the signed range have a folder, too."""
    rows = pl.DataFrame({"validator_index": pl.Series(indices, dtype=kind)})
    bf.export(rows, tmp_path / "out", by="validators")
    found = sorted(path.name.partition("=")[2] for path in (tmp_path / "out/rows").iterdir())
    assert folders == found


def test_text_does_not_divide_rows(tmp_path):
    """Public keys, and epochs as text, cannot be divided into ranges."""
    rows = pl.DataFrame({"epoch": ["x"], "validator": ["0xab"]})
    for by in ("validators", "period"):
        with pytest.raises(UsageError, match="needs a column that the rows do not have"):
            bf.export(rows, tmp_path / "out", by=by)


@pytest.mark.more
def test_full_disk_during_sorting_is_a_dataset_error(tmp_path):
    """The memory limit is exceeded, rows are out of order, and the disk is full."""
    program = (
        "import resource, sys, beaconframes as bf, polars as pl\n"
        "from beaconframes.exports import sorter\n"
        "from beaconframes.calendar import MAINNET\n"
        "from beaconframes.v1.income_history import IncomeHistory as Income\n"
        "rows = pl.select(validator_index=pl.int_range(400_000), epoch=0)\n"
        "rows = rows.with_columns(time=MAINNET.time_expr('epoch', pl.col('epoch')))\n"
        "zeros = {n: pl.lit(0).cast(k) for n, k in Income.schema().items() if n not in rows}\n"
        "rows = rows.with_columns(**zeros).select(Income.schema().names()).reverse()\n"
        "sorter.PARTITION_BYTES = 0\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "try: bf.export(rows, sys.argv[1])\n"
        "except bf.errors.DatasetError as error: print(error.message)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "run-000000.parquet cannot be written" in done.stdout, done.stderr


def test_published_rows_with_a_null_are_recognized(tmp_path):
    """A null equals a null: an export that grows writes each row once."""
    first = pl.DataFrame({"epoch": [1, 2, None], "value": [None, 5, 7]})
    more = pl.DataFrame({"epoch": [3], "value": [None]}, schema=first.schema)
    bf.export(first, tmp_path / "out")

    made = bf.export(pl.concat([first, more]), tmp_path / "out")

    files = sorted((tmp_path / "out").rglob("*.parquet"))
    written = pl.concat([pl.read_parquet(file).select("epoch", "value") for file in files])
    assert 4 == made.rows
    assert sorted(map(str, [*first.rows(), *more.rows()])) == sorted(map(str, written.rows()))


def test_exports_of_marked_frames_state_that_their_rows_are_simulated(explorer, tmp_path):
    """P9: the command line restores the mark, which is not invented."""
    rows = bf.load_income_history(range(2), since=-3)
    rows.attrs = {"simulated": True}
    unmarked = rows.filter(pl.col("epoch") > 0)
    file, other, folder = tmp_path / "a.parquet", tmp_path / "b.parquet", tmp_path / "income"

    bf.export(rows, file)
    bf.export(unmarked, other)
    bf.export(unmarked.filter(pl.col("validator_index") == 0), folder)
    bf.export(rows, folder)
    bf.export(unmarked, folder)
    parts = [unmarked.head(2), unmarked.tail(1)]
    parquet.write(tmp_path / "parts.parquet", parts, CellOptions(is_simulated=True))

    paths = (file, other, tmp_path / "parts.parquet")
    texts = [pq.read_metadata(path).metadata.get(b"simulated") for path in paths]
    assert [b"true", None, b"true"] == texts
    assert rows.equals(pl.read_parquet(file))
    read = [read_file(path, "income-history") for path in paths]
    assert [True, False, True] == [
        "simulated data" in describe(bf.plot.income(one)) for one in read
    ]
    assert json.loads((folder / "manifest.json").read_text())["provenance"]["simulated"] is True


def test_rows_of_an_opened_export_are_marked(tmp_path):
    """P9: the manifest of an export of a loader says that its chain is simulated."""
    chosen = {"since": "2026-10-05", "until": "2026-10-05"}
    with bf.open():
        bf.export(bf.load_income_history, tmp_path / "out", validators=range(2), **chosen)
    with bf.open(tmp_path / "out"):
        opened = bf.load_income_history(range(2), **chosen)

    assert "simulated data" in describe(bf.plot.income(opened))


def describe(ax):
    plt.close(ax.figure)
    return bf.plot.alt_text(ax)
