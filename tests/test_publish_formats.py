"""The formats: every cell comes back as it was, whoever reads the file."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from decimal import Decimal

import duckdb
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import beaconframes as bf
from beaconframes.errors import DatasetError
from beaconframes.publish.formats import FORMATS, Cells
from beaconframes.publish.formats.cells import guarded, unguarded

WEI = [10**28 - 1, None, -1]
GWEI = [2**63 - 1, -5, 0]
TIMES = [
    datetime(2026, 10, 1, 0, 0, 23, tzinfo=UTC),
    None,
    datetime(2026, 10, 1, 0, 0, 23, 123456, tzinfo=UTC),
]
HEX = ["0x00ff", "0x" + "0" * 64, None]
ROWS = pl.DataFrame(
    {
        "validator_index": [1, None, 2**53 + 1],
        "reward_gwei": GWEI,
        "fee_wei": WEI,
        "time": TIMES,
        "root": HEX,
        "graffiti": ["=1+1", "'quoted", ""],
        "name": [' "-cmd', 'a,b\n"q"', "\t=x☃"],
        "slashed": [True, None, False],
        "rate": [0.1, 1e300, None],
        "validators": [[1, 2], [], None],
    },
    schema={
        "validator_index": pl.Int64,
        "reward_gwei": pl.Int64,
        "fee_wei": pl.Decimal(28, 0),
        "time": pl.Datetime("us", "UTC"),
        "root": pl.String,
        "graffiti": pl.String,
        "name": pl.String,
        "slashed": pl.Boolean,
        "rate": pl.Float64,
        "validators": pl.List(pl.Int64),
    },
)
FORMULAS = ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", " =1", '"=1', "'=1", "\uff1d1", "\x00=1", "-"]
HARMLESS = ["", "0x12", "a=b", "1-2", "☃", "a@b"]


def exported(tmp_path, form, rows=ROWS, **options):
    path = tmp_path / f"rows{FORMATS[form].endings[0]}"
    bf.export(rows, path, **options)
    return path


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("raw", [False, True])
def test_our_reader_gives_back_every_cell(tmp_path, form, raw):
    """Numbers, nulls, empty texts, lists, times and formulas: all as they were."""
    path = exported(tmp_path, form, raw=raw)
    assert ROWS.equals(FORMATS[form].read(path, ROWS.schema, Cells(raw)))


@pytest.mark.parametrize("form", [name for name in FORMATS if name != "duckdb"])
def test_the_same_rows_are_the_same_bytes(tmp_path, form):
    """No file has a clock or a random number in it."""
    one = exported(tmp_path, form).read_bytes()
    assert one == exported(tmp_path / "again", form).read_bytes()


@pytest.mark.long
@pytest.mark.parametrize("form", FORMATS)
def test_a_folder_of_any_format_can_be_extended(tmp_path, form):
    """What is there is read back exactly, so that only new rows are added."""
    bf.export(ROWS.head(2), tmp_path / "out", format=form)
    bf.export(ROWS, tmp_path / "out", format=form)
    made = bf.export(ROWS, tmp_path / "out", format=form)
    assert (3, 0, 2) == (made.rows, made.added, made.kept)


def test_polars_reads_each_format(tmp_path):
    """Polars finds hex, wei and times, with types where the format has them."""
    assert ROWS.equals(pl.read_parquet(exported(tmp_path, "parquet")))
    assert ROWS.equals(pl.read_ipc(exported(tmp_path, "arrow")))
    found = pl.read_csv(exported(tmp_path, "csv"), schema_overrides={"fee_wei": pl.Decimal(28, 0)})
    assert (GWEI, HEX) == (found["reward_gwei"].to_list(), found["root"].to_list())
    assert [None if w is None else Decimal(w) for w in WEI] == found["fee_wei"].to_list()
    found = pl.read_ndjson(exported(tmp_path, "jsonl"), infer_schema_length=None)
    assert [None if w is None else str(w) for w in WEI] == found["fee_wei"].to_list()
    assert (GWEI, HEX) == (found["reward_gwei"].to_list(), found["root"].to_list())


def test_pandas_reads_each_format(tmp_path):
    """Pandas finds hex, wei and times; wei of text formats as text, which loses nothing."""
    found = pd.read_parquet(exported(tmp_path, "parquet"), dtype_backend="pyarrow")
    assert WEI == [None if pd.isna(w) else int(w) for w in found["fee_wei"]]
    assert GWEI == found["reward_gwei"].to_list()
    found = pd.read_feather(exported(tmp_path, "arrow"), dtype_backend="pyarrow")
    assert WEI == [None if pd.isna(w) else int(w) for w in found["fee_wei"]]
    found = pd.read_csv(
        exported(tmp_path, "csv"),
        dtype={"fee_wei": "string", "root": "string"},
        parse_dates=["time"],
        date_format="ISO8601",
    )
    assert WEI == [None if pd.isna(w) else int(w) for w in found["fee_wei"]]
    assert GWEI == found["reward_gwei"].to_list()
    assert TIMES == [None if pd.isna(t) else t.to_pydatetime() for t in found["time"]]
    assert HEX == [None if pd.isna(t) else t for t in found["root"]]
    found = pd.read_json(exported(tmp_path, "jsonl"), lines=True, dtype={"fee_wei": "string"})
    assert WEI == [None if pd.isna(w) else int(w) for w in found["fee_wei"]]


def test_duckdb_reads_each_format(tmp_path):
    """DuckDB finds hex, wei and times in files of other formats and in its own."""
    duck = duckdb.connect()
    duck.execute("SET TimeZone = 'UTC'")
    # As microseconds: what DuckDB gives Python for an instant needs another library.
    query = "SELECT reward_gwei, CAST(fee_wei AS DECIMAL(28, 0)), epoch_us(time), root FROM"
    expected = [
        (g, None if w is None else Decimal(w), None if t is None else int(t.timestamp() * 1e6), h)
        for g, w, t, h in zip(GWEI, WEI, TIMES, HEX, strict=True)
    ]
    expected[2] = (*expected[2][:2], expected[0][2] + 123_456, expected[2][3])
    parquet, table = exported(tmp_path, "parquet"), exported(tmp_path, "csv")
    lines = exported(tmp_path, "jsonl")
    assert expected == duck.execute(f"{query} read_parquet('{parquet}')").fetchall()
    kinds = "types={'fee_wei': 'DECIMAL(28, 0)', 'time': 'TIMESTAMPTZ', 'root': 'VARCHAR'}"
    assert expected == duck.execute(f"{query} read_csv('{table}', {kinds})").fetchall()
    kinds = (
        "columns={reward_gwei: 'BIGINT', fee_wei: 'VARCHAR', time: 'TIMESTAMPTZ', root: 'VARCHAR'}"
    )
    assert expected == duck.execute(f"{query} read_json('{lines}', {kinds})").fetchall()
    with duckdb.connect(str(exported(tmp_path, "duckdb")), read_only=True) as own:
        assert expected == own.execute(f"{query} rows").fetchall()


def test_a_plain_reader_of_csv_finds_every_digit(tmp_path):
    """What knows no types, as R's and Python's own readers, finds the digits in the text."""
    with exported(tmp_path, "csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert ["9999999999999999999999999999", "", "-1"] == [row["fee_wei"] for row in found]
    assert ["9223372036854775807", "-5", "0"] == [row["reward_gwei"] for row in found]
    assert "2026-10-01T00:00:23.123456Z" == found[2]["time"]
    assert ["0x00ff", HEX[1], ""] == [row["root"] for row in found]


def test_a_workbook_holds_text_where_numbers_would_lose_digits(tmp_path):
    """Excel's numbers are floating-point: wei and long integers are text in it, and no formula."""
    openpyxl = pytest.importorskip("openpyxl")
    sheet = openpyxl.load_workbook(exported(tmp_path, "xlsx"))["rows"]
    lines = [dict(zip(ROWS.columns, line, strict=True)) for line in sheet.values][1:]
    assert ["9999999999999999999999999999", None, "-1"] == [line["fee_wei"] for line in lines]
    assert ["9223372036854775807", "-5", "0"] == [line["reward_gwei"] for line in lines]
    assert [0.1, 1e300, None] == [line["rate"] for line in lines]
    assert "f" not in {cell.data_type for line in sheet.rows for cell in line}
    assert "'=1+1" == lines[0]["graffiti"]
    with pytest.raises(DatasetError, match="32,767 characters"):
        exported(tmp_path, "xlsx", pl.DataFrame({"text": ["x" * 32_768]}))


def test_formulas_are_made_harmless_in_text_alone(tmp_path):
    """A text that a spreadsheet would run gets an apostrophe; numbers and harmless text do not."""
    rows = pl.DataFrame({"text": FORMULAS + HARMLESS, "n": range(-1, len(FORMULAS + HARMLESS) - 1)})
    path = exported(tmp_path, "csv", rows)
    with path.open(newline="") as file:
        found = list(csv.DictReader(file))
    assert [f"'{text}" for text in FORMULAS] == [row["text"] for row in found[: len(FORMULAS)]]
    assert HARMLESS == [row["text"] for row in found[len(FORMULAS) :]]
    assert "-1" == found[0]["n"]
    raw = exported(tmp_path / "raw", "csv", rows, raw=True)
    with raw.open(newline="") as file:
        assert FORMULAS + HARMLESS == [row["text"] for row in csv.DictReader(file)]
    # JSON and the binary formats are not opened by spreadsheets: they keep every text as it is.
    assert rows.equals(pl.read_parquet(exported(tmp_path, "parquet", rows)))


@given(st.lists(st.text()))
@settings(max_examples=50, deadline=None)
def test_guarding_can_be_undone(texts):
    """Whatever a text is, what stands before it is taken off again and nothing else."""
    rows = pl.DataFrame({"text": texts}, schema={"text": pl.String})
    safe = guarded(rows, Cells())
    assert rows.equals(unguarded(safe, Cells()))
    starts = safe["text"].str.strip_chars_start(' "\n').str.slice(0, 1).to_list()
    assert not {"=", "+", "-", "@", "\t", "\r"} & set(starts)
