"""Excel: for small tables. Values that a spreadsheet would round are written as text."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.errors import DatasetError, UsageError
from beaconframes.exports.formats.cells import escape_names, from_cells, to_cells

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from beaconframes.exports.formats.cells import CellOptions

MAX_ROWS = 1_048_575
"""Rows of a sheet, without the header."""
MAX_TEXT = 32_767
MAX_COLUMNS = 16_384
EXACT_LIMIT = 10**15
"""Integers from this size on may lose digits in the floating-point numbers of a spreadsheet."""
CREATED = datetime(2000, 1, 1, tzinfo=UTC)


class ExcelWriter:
    """Write a workbook with one sheet.

    Times and wei are text. So are columns of integers that a spreadsheet would round.
    """

    def __init__(self, path: Path, options: CellOptions) -> None:
        try:
            import xlsxwriter  # type: ignore[import-untyped]  # noqa: F401
        except ModuleNotFoundError:
            raise UsageError(
                "Excel files need the package XlsxWriter", hint="pip install 'beaconframes[excel]'"
            ) from None
        self._path, self._options = path, options
        self._frames: list[pl.DataFrame] = []

    def add(self, rows: pl.DataFrame) -> None:
        """Append *rows*."""
        self._frames.append(rows)
        height = sum(frame.height for frame in self._frames)
        name_length = max(map(len, escape_names(rows.columns, self._options)), default=0)
        for maximum, message, needed in (
            (MAX_ROWS, "an Excel sheet has at most {:,} rows, and there are more", height),
            (MAX_COLUMNS, "an Excel sheet has at most {:,} columns, not {:,}", rows.width),
            (MAX_TEXT, "an Excel cell holds {:,} characters, and a name has {:,}", name_length),
        ):
            if needed > maximum:
                self._frames.clear()  # close() must not write them
                raise DatasetError(
                    message.format(maximum, needed),
                    hint="Choose CSV or Parquet, or export fewer rows and columns",
                )

    def close(self) -> None:
        """Write the workbook, with a constant date: the same rows make the same bytes."""
        import xlsxwriter

        if not self._frames:
            return
        rows = to_sheet(pl.concat(self._frames), self._options)
        options = {"strings_to_formulas": False, "strings_to_urls": False, "in_memory": True}
        with translate_errors(), xlsxwriter.Workbook(str(self._path), options) as book:
            book.set_properties({"created": CREATED, "author": "beaconframes"})
            sheet = book.add_worksheet("rows")
            for number, name in enumerate(rows.columns):
                sheet.write_string(0, number, name)
                write_column(sheet, number, rows[name])
            sheet.freeze_panes(1, 0)


@contextmanager
def translate_errors() -> Iterator[None]:
    """Turn errors of XlsxWriter, such as a full disk, into an OSError."""
    from xlsxwriter.exceptions import XlsxWriterException  # type: ignore[import-untyped]

    try:
        yield
    except XlsxWriterException as error:
        raise OSError(str(error)) from error


def to_sheet(rows: pl.DataFrame, options: CellOptions) -> pl.DataFrame:
    """Return *rows* with the types of a sheet; numbers that would lose digits become text."""
    long = pl.selectors.decimal() | pl.selectors.by_dtype(pl.Int128, pl.UInt128)
    rows = to_cells(rows, options).with_columns(long.cast(pl.String))
    small = pl.selectors.integer().is_between(-EXACT_LIMIT, EXACT_LIMIT, closed="none")
    large = [column.name for column in rows.select(small.all()) if not column.all()]
    rows = rows.with_columns(pl.selectors.by_name(large).cast(pl.String))
    lengths = rows.select(pl.selectors.string().str.len_chars().max())
    if any((length or 0) > MAX_TEXT for length in lengths.row(0)) if lengths.width else False:
        raise DatasetError(
            f"an Excel cell holds {MAX_TEXT:,} characters, and a text is longer",
            hint="Choose CSV or Parquet",
        )
    return rows


def write_column(sheet: Any, number: int, column: pl.Series) -> None:
    """Write one column below its name; null becomes an empty cell."""
    write = {pl.String: sheet.write_string, pl.Boolean: sheet.write_boolean}.get(
        type(column.dtype), sheet.write_number
    )
    for line, value in enumerate(column.to_list(), start=1):
        if value is None:
            continue
        if isinstance(value, float) and value - value != 0:
            sheet.write_string(line, number, str(value))
        elif isinstance(value, float):
            sheet.write_number(line, number, ExactFloat(value))
        else:
            write(line, number, value)


class ExactFloat(float):
    """A number that is written with all digits: XlsxWriter rounds to sixteen."""

    def __format__(self, spec: str) -> str:
        """Return the shortest text that reads back as this number."""
        short = super().__format__(spec)
        return short if float(short) == self else repr(self).upper()


def read(path: Path, schema: pl.Schema, options: CellOptions) -> pl.DataFrame:
    """Return the rows of a file that `ExcelWriter` wrote."""
    import fastexcel

    names = dict(zip(escape_names(schema, options), schema, strict=True))
    # As text, a number would lose digits.
    types: Any = {name: "float" if schema[names[name]].is_float() else "string" for name in names}
    sheet = fastexcel.read_excel(path).load_sheet(0, dtypes=types)
    return from_cells(pl.DataFrame(sheet).rename(names), schema, options)
