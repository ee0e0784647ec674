"""Excel: for small tables, to look at. What a spreadsheet cannot hold exactly is text there."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.errors import DatasetError, UsageError
from beaconframes.exports.formats.cells import flat, headers, typed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from beaconframes.exports.formats.cells import Cells

MOST_ROWS = 1_048_575
"""Rows of a sheet, less the line of names."""
LONGEST_TEXT = 32_767
MOST_COLUMNS = 16_384
EXACT = 10**15
"""From here on a spreadsheet, whose numbers are floating-point, may lose digits."""
WHEN = datetime(2000, 1, 1, tzinfo=UTC)


class ExcelFile:
    """A workbook of one sheet that is being written.

    Times and wei are text, and so is a column of integers that do not fit a spreadsheet's numbers.
    """

    def __init__(self, path: Path, cells: Cells) -> None:
        try:
            import xlsxwriter  # type: ignore[import-untyped]  # noqa: F401
        except ModuleNotFoundError:
            raise UsageError(
                "Excel files need XlsxWriter", hint="pip install 'beaconframes[excel]'"
            ) from None
        self._path, self._cells = path, cells
        self._frames: list[pl.DataFrame] = []

    def add(self, rows: pl.DataFrame) -> None:
        """Add *rows* after those that were added before."""
        self._frames.append(rows)
        heights = sum(frame.height for frame in self._frames)
        long = max(map(len, headers(rows.columns, self._cells)), default=0)
        for most, what, needed in (
            (MOST_ROWS, "a sheet of Excel has {:,} rows, and these are more", heights),
            (MOST_COLUMNS, "a sheet of Excel has {:,} columns, and these are more", rows.width),
            (LONGEST_TEXT, "a cell of Excel holds {:,} characters, and a name is longer", long),
        ):
            if needed > most:
                self._frames.clear()  # what is refused is not written when the file is closed
                raise DatasetError(what.format(most), hint="Choose CSV or Parquet, or less of it")

    def close(self) -> None:
        """Write the workbook: the same rows make the same bytes, so it has no clock."""
        import xlsxwriter

        if not self._frames:
            return
        rows = shown(pl.concat(self._frames), self._cells)
        options = {"strings_to_formulas": False, "strings_to_urls": False, "in_memory": True}
        with told(), xlsxwriter.Workbook(str(self._path), options) as book:
            book.set_properties({"created": WHEN, "author": "beaconframes"})
            sheet = book.add_worksheet("rows")
            for place, name in enumerate(rows.columns):
                sheet.write_string(0, place, name)
                write_column(sheet, place, rows[name])
            sheet.freeze_panes(1, 0)


@contextmanager
def told() -> Iterator[None]:
    """Turn what the writer of workbooks says of the disk into an error of the system."""
    from xlsxwriter.exceptions import XlsxWriterException  # type: ignore[import-untyped]

    try:
        yield
    except XlsxWriterException as error:
        raise OSError(str(error)) from error


def shown(rows: pl.DataFrame, cells: Cells) -> pl.DataFrame:
    """Return *rows* as a sheet can hold them without losing a digit."""
    long = pl.selectors.decimal() | pl.selectors.by_dtype(pl.Int128, pl.UInt128)
    rows = flat(rows, cells).with_columns(long.cast(pl.String))
    small = pl.selectors.integer().is_between(-EXACT, EXACT, closed="none")
    large = [column.name for column in rows.select(small.all()) if not column.all()]
    rows = rows.with_columns(pl.selectors.by_name(large).cast(pl.String))
    lengths = rows.select(pl.selectors.string().str.len_chars().max())
    if any((length or 0) > LONGEST_TEXT for length in lengths.row(0)) if lengths.width else False:
        raise DatasetError(
            f"a cell of Excel holds {LONGEST_TEXT:,} characters, and a text is longer",
            hint="Choose CSV or Parquet",
        )
    return rows


def write_column(sheet: Any, place: int, column: pl.Series) -> None:
    """Write one column below its name; what is missing is an empty cell."""
    write = {pl.String: sheet.write_string, pl.Boolean: sheet.write_boolean}.get(
        type(column.dtype), sheet.write_number
    )
    for line, value in enumerate(column.to_list(), start=1):
        if value is None:
            continue
        if isinstance(value, float) and value - value != 0:
            sheet.write_string(line, place, str(value))
        elif isinstance(value, float):
            sheet.write_number(line, place, Exact(value))
        else:
            write(line, place, value)


class Exact(float):
    """A number that is written with all of its digits: the writer leaves out the seventeenth."""

    def __format__(self, spec: str) -> str:
        """Return the fewest digits that are this number and no other."""
        short = super().__format__(spec)
        return short if float(short) == self else repr(self).upper()


def read(path: Path, schema: pl.Schema, cells: Cells) -> pl.DataFrame:
    """Return the rows of a file that `ExcelFile` wrote."""
    import fastexcel

    names = dict(zip(headers(schema, cells), schema, strict=True))
    # Text of a number has fewer digits than the number.
    kinds: Any = {name: "float" if schema[names[name]].is_float() else "string" for name in names}
    sheet = fastexcel.read_excel(path).load_sheet(0, dtypes=kinds)
    return typed(pl.DataFrame(sheet).rename(names), schema, cells)
