"""The formats: every value is read back unchanged, by any reader."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from datetime import UTC, date, datetime
from datetime import time as of_day
from decimal import Decimal

import duckdb
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes.errors import DatasetError, UsageError
from beaconframes.exports.formats import FORMATS, CellOptions
from beaconframes.exports.formats.cells import escape_formulas

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


READABLE = [name for name, form in FORMATS.items() if form.read is not None]


def exported(tmp_path, form, rows=ROWS, **options):
    path = tmp_path / f"rows{FORMATS[form].extensions[0]}"
    bf.export(rows, path, **options)
    return path


@pytest.mark.parametrize("form", READABLE)
@pytest.mark.parametrize("raw", [False, True])
def test_reader_returns_every_cell(tmp_path, form, raw):
    """V03: numbers, nulls, empty texts, lists, times and formulas do not change.

    The path is no pattern; most readers of polars take a bracket in it for one.
    """
    path = exported(tmp_path / "my [staking] data", form, raw=raw)
    assert ROWS.equals(FORMATS[form].read(path, ROWS.schema, CellOptions(raw)))


@pytest.mark.parametrize("form", READABLE)
def test_rows_that_arrive_in_parts_are_all_written(tmp_path, form):
    """A file has the rows of every part, in their order, even if a part has none."""
    path = tmp_path / f"rows{FORMATS[form].extensions[0]}"
    FORMATS[form].write(path, [ROWS[:1], ROWS[:0], ROWS[1:2], ROWS[2:]], CellOptions())
    assert_frame_equal(ROWS, FORMATS[form].read(path, ROWS.schema, CellOptions()))


@pytest.mark.parametrize("form", FORMATS)
def test_same_rows_make_the_same_bytes(tmp_path, form):
    """No file contains a clock or a random number."""
    one = exported(tmp_path, form).read_bytes()
    assert one == exported(tmp_path / "again", form).read_bytes()


@pytest.mark.long
@pytest.mark.parametrize("form", READABLE)
def test_dataset_of_any_format_can_be_extended(tmp_path, form):
    """Published rows are read back exactly, so that only new rows are added."""
    bf.export(ROWS.head(2), tmp_path / "out", format=form)
    bf.export(ROWS, tmp_path / "out", format=form)
    made = bf.export(ROWS, tmp_path / "out", format=form)
    assert (3, 0, 2) == (made.rows, made.added, made.unchanged)


def test_polars_reads_each_format(tmp_path):
    """Polars reads hex, wei and times, with types if the format has them."""
    assert ROWS.equals(pl.read_parquet(exported(tmp_path, "parquet")))
    assert ROWS.equals(pl.read_ipc(exported(tmp_path, "arrow")))
    found = pl.read_csv(exported(tmp_path, "csv"), schema_overrides={"fee_wei": pl.Decimal(28, 0)})
    assert (GWEI, HEX) == (found["reward_gwei"].to_list(), found["root"].to_list())
    assert [None if w is None else Decimal(w) for w in WEI] == found["fee_wei"].to_list()
    found = pl.read_ndjson(exported(tmp_path, "jsonl"), infer_schema_length=None)
    assert [None if w is None else str(w) for w in WEI] == found["fee_wei"].to_list()
    assert (GWEI, HEX) == (found["reward_gwei"].to_list(), found["root"].to_list())


def test_pandas_reads_each_format(tmp_path):
    """Pandas reads hex, wei and times; wei of text formats as text, without loss."""
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
    """V03: DuckDB reads hex, wei and times from all formats."""
    duck = duckdb.connect()
    duck.execute("SET TimeZone = 'UTC'")
    # As microseconds: DuckDB needs another library to return times to Python.
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


def test_untyped_csv_reader_finds_every_digit(tmp_path):
    """Readers without types, such as those of R and Python, find all digits in the text."""
    with exported(tmp_path, "csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert ["9999999999999999999999999999", "", "-1"] == [row["fee_wei"] for row in found]
    assert ["9223372036854775807", "-5", "0"] == [row["reward_gwei"] for row in found]
    assert "2026-10-01T00:00:23.123456Z" == found[2]["time"]
    assert ["0x00ff", HEX[1], ""] == [row["root"] for row in found]


def test_excel_has_text_for_large_numbers(tmp_path):
    """Numbers in Excel are floating-point: wei and large integers are text, and no formula."""
    openpyxl = pytest.importorskip("openpyxl")
    sheet = openpyxl.load_workbook(exported(tmp_path, "xlsx"))["rows"]
    lines = [dict(zip(ROWS.columns, line, strict=True)) for line in sheet.values][1:]
    assert ["9999999999999999999999999999", None, "-1"] == [line["fee_wei"] for line in lines]
    assert ["9223372036854775807", "-5", "0"] == [line["reward_gwei"] for line in lines]
    assert [0.1, 1e300, None] == [line["rate"] for line in lines]
    assert "f" not in {cell.data_type for line in sheet.rows for cell in line}
    assert "'=1+1" == lines[0]["graffiti"]
    with pytest.raises(DatasetError, match="32,767 characters"):
        exported(tmp_path / "long", "xlsx", pl.DataFrame({"text": ["x" * 32_768]}))


def test_excel_has_numbers_for_ether_and_dates_for_days(tmp_path):
    """A spreadsheet adds up decimals of up to 15 digits, and groups by day; no digit is lost."""
    openpyxl = pytest.importorskip("openpyxl")
    texts = {
        "income_eth": ["0.004990819000000000", None, "-32.000000000000000001"],
        "value": ["6.21114619", "-32.00000000", "9999999.99999999"],
        "small_eth": ["0.000000000000000001", None, "0.000000000000000000"],
    }
    rows = pl.DataFrame(
        {"date": [date(2026, 10, 4), None, date(1900, 3, 1)]}
        | {name: pl.Series(values).cast(pl.Decimal(38, 18)) for name, values in texts.items()}
    )
    path = exported(tmp_path, "xlsx", rows)
    sheet = openpyxl.load_workbook(path)["rows"]
    head, *lines = sheet.values
    found = dict(zip(head, zip(*lines, strict=True), strict=True))
    days = [value and value.date() for value in found["date"]]
    assert [date(2026, 10, 4), None, date(1900, 3, 1)] == days
    assert ("0.004990819000000000", None, "-32.000000000000000001") == found["income_eth"]
    assert (6.21114619, -32, 9999999.99999999) == found["value"]
    assert (1e-18, None, 0) == found["small_eth"]
    assert all(sheet.column_dimensions[cell.column_letter].width > 10 for cell in sheet[1])


def test_excel_has_text_for_days_and_numbers_that_it_lacks(tmp_path):
    """Spreadsheets disagree about days before March 1900, and have no infinity."""
    openpyxl = pytest.importorskip("openpyxl")
    days = pl.Series([3_000_000, 0, None, -25_509]).cast(pl.Int32).cast(pl.Date)
    rows = pl.DataFrame({"day": days, "rate": [0.5, float("inf"), float("nan"), None]})
    path = exported(tmp_path, "xlsx", rows)
    sheet = openpyxl.load_workbook(path)["rows"]
    _, *lines = sheet.values
    assert ["+10183-09-21", "1970-01-01", None, "1900-02-28"] == [day for day, _ in lines]
    assert [0.5, "inf", "nan", None] == [rate for _, rate in lines]


def test_excel_is_for_one_file(tmp_path):
    """Nothing reads the rows of a workbook back exactly, so it is no format of a dataset."""
    with pytest.raises(UsageError, match="format='xlsx' is for one file"):
        bf.export(ROWS, tmp_path / "out", format="xlsx")
    assert [] == [*tmp_path.iterdir()]


def test_small_numbers_of_csv_have_no_exponent(tmp_path):
    """A price of 4.4 millionths is read as a number by people and by every program."""
    rows = pl.DataFrame({"rate": [4.407e-06, 5e-324, 1e22, -0.1, None], "n": range(5)})

    path = exported(tmp_path, "csv", rows)

    assert "0.000004407,0" == path.read_text().splitlines()[1]
    assert "e" not in path.read_text().removeprefix('"rate"')
    assert rows.equals(FORMATS["csv"].read(path, rows.schema, CellOptions()))


def test_parquet_in_parts_is_as_small_as_at_once(tmp_path):
    """Rows of a file that is written in parts are in pages as large as those of polars."""
    epochs = pl.int_range(130, eager=True)
    rows = pl.DataFrame({"validator_index": pl.int_range(1000, eager=True)}).join(
        pl.DataFrame({"epoch": epochs, "amount_gwei": 10_000 + epochs}), how="cross"
    )
    sizes = []
    for name, parts in (("at once", [rows]), ("in parts", [rows[:0], rows])):
        FORMATS["parquet"].write(tmp_path / name, parts, CellOptions())
        sizes.append((tmp_path / name).stat().st_size)

    assert sizes[1] < 1.15 * sizes[0], sizes


def test_formulas_are_escaped_in_text_only(tmp_path):
    """X03: text that a spreadsheet would run gets an apostrophe; numbers and other text do not."""
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
    # Spreadsheets do not open JSON and the binary formats, which do not escape text.
    assert rows.equals(pl.read_parquet(exported(tmp_path, "parquet", rows)))


@given(st.lists(st.text()))
@settings(max_examples=50, deadline=None)
def test_escaping_can_be_undone(texts):
    """X03: removing the first apostrophe of a cell restores its text."""
    rows = pl.DataFrame({"text": texts}, schema={"text": pl.String})
    safe = escape_formulas(rows, CellOptions())
    assert rows.equals(safe.with_columns(pl.col("text").str.strip_prefix("'")))
    starts = safe["text"].str.strip_chars_start(' "\n').str.slice(0, 1).to_list()
    assert not {"=", "+", "-", "@", "\t", "\r"} & set(starts)


INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
NANOSECONDS = [1_600_000_000_123_456_789, None, -5]
PER = {"ns": 1, "us": 1_000, "ms": 1_000_000}
MIDNIGHT = datetime(2026, 10, 1)  # noqa: DTZ001 - of no zone
ODD = {
    **{
        str(kind): pl.select(pl.concat_list(kind.min(), kind.max(), None).explode()).to_series()
        for kind in INTEGERS
    },
    **{
        f"times in {unit} of {zone}": pl.Series(
            [None if n is None else n // PER[unit] for n in NANOSECONDS]
        ).cast(pl.Datetime(unit, zone))
        for unit in PER
        for zone in (None, "UTC", "Europe/Berlin")
    },
    **{
        f"durations in {unit}": pl.Series([2**53 + 1, None, -86_400_000_001]).cast(
            pl.Duration(unit)
        )
        for unit in PER
    },
    "floats": pl.Series([0.1 + 0.2, None, -5e-324]),
    "small floats": pl.Series([0.1, None, -3e38], dtype=pl.Float32),
    "decimals": pl.Series(["1.50", None, "-0.01"]).cast(pl.Decimal(38, 2)),
    "dates": pl.Series([date(1, 1, 1), None, date(9999, 12, 31)]),
    "times of day": pl.Series([0, None, 86_399_999_999_999]).cast(pl.Time),
    "categories": pl.Series(["=1", None, ""], dtype=pl.Categorical),
    "choices": pl.Series(["'a", None, "@b"], dtype=pl.Enum(["@b", "'a"])),
    "bytes": pl.Series([b"\0\xff", None, b""]),
    "arrays": pl.Series([[1, -128], None, [3, None]], dtype=pl.Array(pl.Int8, 2)),
    "structs": pl.Series([{"a": 1, "b": MIDNIGHT}, None, {"a": None, "b": None}]),
    "decimals in structs": pl.Series([{"a": "1.5"}, None, {"a": None}]).cast(
        pl.Struct({"a": pl.Decimal(20, 1)})
    ),
    "texts in lists": pl.Series([["a,b", "c]", "", None, 'q"\n'], None, []]),
    "nulls in lists": pl.Series([[1, None, 2], None, [None]]),
    "decimals in lists": pl.Series([["1.50"], None, []]).cast(pl.List(pl.Decimal(30, 2))),
    "times in lists": pl.Series([[MIDNIGHT.replace(tzinfo=UTC)], None, [None]]),
    "structs in lists": pl.Series([[{"a": MIDNIGHT, "b": [b"x"]}, None], None, []]),
    "lists in lists": pl.Series([[[1], None, []], None, []]),
    "yes or no in lists": pl.Series([[True, None], None, []]),
    "days in lists": pl.Series([[date(2026, 10, 1)], None, []]),
    "times of day in lists": pl.Series([[of_day(1, 2, 3)], None, []]),
    "nothing in lists": pl.Series([[None], None, []], dtype=pl.List(pl.Null)),
    "nothing": pl.Series([None, None, None]),
    "lines": pl.Series(["\r\n", None, ""]),
    'a"b': pl.Series([1, None, 2]),
    "=a": pl.Series([1, None, 2]),
    "'a": pl.Series(["x", None, "y"]),
    "a\nb ": pl.Series(["x", None, "y"]),
}
LOST = {
    "arrow": [pl.Series([2**100]), pl.Series([[2**100]])],
    "parquet": [pl.Series([2**100]), pl.Series([2**100], dtype=pl.UInt128)],
    "jsonl": [
        pl.Series([0.5, float("nan")]),
        pl.Series([None, -float("inf")]),
        pl.Series([[], [float("nan")]]),
        pl.Series([None, {"a": [float("inf")]}]),
    ],
    "csv": [pl.Series([[], [float("nan")]])],
    "xlsx": [pl.Series([None, {"a": [float("inf")]}])],
}


@pytest.mark.parametrize("form", READABLE)
def test_every_type_is_read_back(tmp_path, form):
    """All types of polars are read back with their type and all digits."""
    rows = pl.DataFrame([values.alias(name) for name, values in ODD.items()])
    found = FORMATS[form].read(exported(tmp_path, form, rows), rows.schema, CellOptions())
    assert rows.schema == found.schema
    for name in ODD:
        assert rows[name].equals(found[name]), name


@pytest.mark.parametrize("form", LOST)
def test_unsupported_types_are_refused_by_column(tmp_path, form):
    """A type or a number that a format does not support: the error names the column."""
    for values in LOST[form]:
        rows = pl.DataFrame({"fine": ["x"] * len(values), "odd": values})
        with pytest.raises(UsageError, match="the column odd "):
            exported(tmp_path, form, rows)
    assert [] == [*tmp_path.iterdir()]
    if form == "csv":  # without lists, the values are text
        rows = pl.DataFrame({"odd": [float("nan"), -float("inf")]})
        found = FORMATS[form].read(exported(tmp_path, form, rows), rows.schema, CellOptions())
        assert rows.equals(found)


def test_lists_are_json_in_csv(tmp_path):
    """Lists, arrays and structs are valid JSON, whatever their values."""
    rows = pl.DataFrame({"l": [["a,b", 'c"'], [], None], "n": [[1, None, 2], [], None]})
    with exported(tmp_path, "csv", rows).open(newline="") as file:
        found = [{k: v and json.loads(v) for k, v in row.items()} for row in csv.DictReader(file)]
    assert [*rows.head(2).to_dicts(), {"l": "", "n": ""}] == found


def test_formulas_are_escaped_in_categories_and_names(tmp_path):
    """Categories and column names are text, which a spreadsheet could run."""
    frame = pd.DataFrame({"=1+1": pd.Categorical(["=2", "x"]), "'": ["-3", "y"]})
    with exported(tmp_path, "csv", frame).open(newline="") as file:
        assert [["'=1+1", "''"], ["'=2", "'-3"], ["x", "y"]] == [*csv.reader(file)]
    with exported(tmp_path / "raw", "csv", frame, raw=True).open(newline="") as file:
        assert [["=1+1", "'"], ["=2", "-3"], ["x", "y"]] == [*csv.reader(file)]
    openpyxl = pytest.importorskip("openpyxl")
    sheet = openpyxl.load_workbook(exported(tmp_path, "xlsx", frame))["rows"]
    assert [("'=1+1", "''"), ("'=2", "'-3"), ("x", "y")] == [*sheet.values]
    rows = pl.DataFrame({"=1+1": [1]})
    bf.export(rows, tmp_path / "out", format="csv")
    package = json.loads((tmp_path / "out/datapackage.json").read_text())
    assert "'=1+1" == package["resources"][0]["schema"]["fields"][0]["name"]
    assert "'=1+1" in (tmp_path / "out/croissant.json").read_text()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (pl.DataFrame({f"c{n}": [1] for n in range(16_385)}), "16,384 columns"),
        (pl.DataFrame({"x" * 32_768: [1]}), "and a name has 32,768"),
        (pl.select(n=pl.int_range(1_048_576)), "1,048,575 rows"),
    ],
)
def test_excel_limits_are_checked_before_writing(tmp_path, monkeypatch, rows, words):
    """More columns, longer names or more rows than Excel supports: no workbook is written."""
    monkeypatch.setattr("xlsxwriter.Workbook.__init__", None)
    with pytest.raises(DatasetError, match=words):
        exported(tmp_path, "xlsx", rows)


def test_missing_values_of_one_column_are_refused_in_csv(tmp_path):
    """They would be empty lines: pandas, R and Python skip these, and have fewer rows."""
    with pytest.raises(DatasetError, match="the column a has missing values"):
        exported(tmp_path, "csv", pl.DataFrame({"a": [1, None, 2]}))
    file = exported(tmp_path, "csv", pl.DataFrame({"a": ["x", ""]}))
    assert ["x", ""] == pd.read_csv(file, keep_default_na=False)["a"].to_list()


@pytest.mark.more
def test_full_disk_is_a_dataset_error_in_excel(tmp_path):
    """Errors of the library behind the format become a DatasetError."""
    program = (
        "import resource, sys, beaconframes as bf, polars as pl\n"
        "rows = pl.select(n=pl.int_range(100_000), text=pl.int_range(100_000).hash().cast(str))\n"
        "bf.export(rows.head(1), sys.argv[1] + '/first' + sys.argv[2])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))\n"
        "try: bf.export(rows, sys.argv[1] + '/rows' + sys.argv[2])\n"
        "except bf.errors.DatasetError as error: print(error.message)"
    )
    command = [sys.executable, "-c", program, str(tmp_path), ".xlsx"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "cannot be written" in done.stdout, done.stderr
    assert not [*tmp_path.glob("rows*")]
