"""CSV: for spreadsheets, R and most other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.errors import DatasetError
from beaconframes.exports.formats.cells import escape_names, from_cells, to_cells

if TYPE_CHECKING:
    from pathlib import Path

    from beaconframes.exports.formats.cells import CellOptions


class CsvWriter:
    """Write a CSV file: UTF-8, a header line, all text in quotes.

    The quotes distinguish an empty text (``""``) from a missing value (nothing). Times are ISO 8601
    in UTC, lists and structs JSON, bytes hex, and a duration is a whole number of its unit. No
    number has an exponent.
    """

    def __init__(self, path: Path, options: CellOptions) -> None:
        self._file = path.open("wb")
        self._options = options
        self._has_header = False

    def add(self, rows: pl.DataFrame) -> None:
        """Append *rows*."""
        if rows.width == 1 and rows.to_series().null_count():
            raise DatasetError(
                f"the column {rows.columns[0]} has missing values: without another column, they "
                "are empty lines, which readers skip",
                hint="Add a column, or choose Parquet",
            )
        to_cells(rows, self._options).write_csv(
            self._file,
            include_header=not self._has_header,
            quote_style="non_numeric",
            null_value="",
            float_scientific=False,
        )
        self._has_header = True

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read(path: Path, schema: pl.Schema, options: CellOptions) -> pl.DataFrame:
    """Return the rows of a file that `CsvWriter` wrote."""
    text = pl.read_csv(path, infer_schema=False, glob=False)
    # Polars does not unescape doubled quotes in column names.
    headers = (name.replace('"', '""') for name in escape_names(schema, options))
    names = dict(zip(headers, schema, strict=True))
    return from_cells(text.rename(names, strict=False), schema, options)
