"""Excel: for small tables. Values that a spreadsheet would round are written as text."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.errors import DatasetError, require_package
from beaconframes.exports.atomic_files import errors_as_os_error
from beaconframes.exports.formats.cells import escape_names, to_cells

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from beaconframes.exports.formats.cells import CellOptions

MAX_ROWS = 1_048_575
"""Rows of a sheet, without the header."""
MAX_TEXT = 32_767
MAX_COLUMNS = 16_384
EXACT_LIMIT = 10**15
"""Integers from this size on may lose digits in the floating-point numbers of a spreadsheet."""
EXACT_DIGITS = 15
"""Decimals with up to this number of digits are exact in a spreadsheet."""
CREATED = datetime(2000, 1, 1, tzinfo=UTC)
FIRST_DAY = date(1900, 3, 1)
"""Spreadsheets disagree about the number of earlier days."""
WIDTHS = (10, 40)
"""The narrowest and the widest column, in characters."""


def write(path: Path, frames: Iterable[pl.DataFrame], options: CellOptions) -> None:
    """Write a workbook with one sheet, and a constant date: the same rows make the same bytes.

    Days are dates. Times and wei are text. So are columns of integers and decimals that a
    spreadsheet would round.
    """
    require_package("xlsxwriter", "an Excel file", "'beaconframes[excel]'")
    import xlsxwriter  # type: ignore[import-untyped]
    from xlsxwriter.exceptions import XlsxWriterException  # type: ignore[import-untyped]

    sheet_rows = to_sheet(concat(frames, options), options)
    narrowest, widest = WIDTHS
    settings = {
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "in_memory": True,
        "default_date_format": "yyyy-mm-dd",
    }
    book = xlsxwriter.Workbook(str(path), settings)
    with errors_as_os_error(XlsxWriterException), book:
        book.set_properties({"created": CREATED, "author": "beaconframes"})
        sheet = book.add_worksheet("rows")
        for number, name in enumerate(sheet_rows.columns):
            sheet.set_column(number, number, min(max(len(name) + 1, narrowest), widest))
            sheet.write_string(0, number, name)
            sheet.write_column(1, number, map(to_value, sheet_rows[name]))
        sheet.freeze_panes(1, 0)


def concat(frames: Iterable[pl.DataFrame], options: CellOptions) -> pl.DataFrame:
    """Return the rows of all *frames*; raise a DatasetError if they do not fit into a sheet."""
    parts: list[pl.DataFrame] = []
    for rows in frames:
        parts.append(rows)
        height = sum(part.height for part in parts)
        name_length = max(map(len, escape_names(rows.columns, options)), default=0)
        for maximum, message, needed in (
            (MAX_ROWS, "an Excel sheet has at most {:,} rows, and there are more", height),
            (MAX_COLUMNS, "an Excel sheet has at most {:,} columns, not {:,}", rows.width),
            (MAX_TEXT, "an Excel cell holds {:,} characters, and a name has {:,}", name_length),
        ):
            if needed > maximum:
                raise DatasetError(
                    message.format(maximum, needed),
                    hint="Choose CSV or Parquet, or export fewer rows and columns",
                )
    return pl.concat(parts)


def to_sheet(rows: pl.DataFrame, options: CellOptions) -> pl.DataFrame:
    """Return *rows* with the types of a sheet; numbers that would lose digits become text."""
    names = escape_names(rows.columns, options)
    days = [
        column.alias(name)
        for name, column in zip(names, rows, strict=True)
        if column.dtype == pl.Date and column.is_between(FIRST_DAY, date.max).all()
    ]
    long = pl.selectors.decimal() | pl.selectors.by_dtype(pl.Int128, pl.UInt128)
    rows = to_cells(rows, options)
    exact = [column.name for column in rows.select(pl.selectors.decimal()) if is_exact(column)]
    rows = rows.with_columns(long.cast(pl.String))
    # Parsed from text, which rounds correctly.
    rows = rows.with_columns(pl.selectors.by_name(exact).cast(pl.Float64))
    small = pl.selectors.integer().is_between(-EXACT_LIMIT, EXACT_LIMIT, closed="none")
    large = [column.name for column in rows.select(small.all()) if not column.all()]
    rows = rows.with_columns(pl.selectors.by_name(large).cast(pl.String))
    lengths = rows.select(pl.selectors.string().str.len_chars().max())
    if lengths.width and any((length or 0) > MAX_TEXT for length in lengths.row(0)):
        raise DatasetError(
            f"an Excel cell holds {MAX_TEXT:,} characters, and a text is longer",
            hint="Choose CSV or Parquet",
        )
    return rows.with_columns(days)


def to_value(cell: Any) -> Any:
    """Return a cell as a sheet has it: a number that is not finite is text."""
    return str(cell) if isinstance(cell, float) and not math.isfinite(cell) else cell


def is_exact(column: pl.Series) -> bool:
    """Return whether a spreadsheet has all digits of these decimals; wei are always text."""
    assert isinstance(column.dtype, pl.Decimal)
    digits = column.cast(pl.String).str.replace(".", "", literal=True).str.strip_chars("-0")
    return column.dtype.scale > 0 and (digits.str.len_chars() <= EXACT_DIGITS).all()
