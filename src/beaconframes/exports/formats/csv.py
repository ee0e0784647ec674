"""CSV: for spreadsheets, R and everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.exports.formats.cells import flat, headers, typed

if TYPE_CHECKING:
    from pathlib import Path

    from beaconframes.exports.formats.cells import Cells


class CsvFile:
    """A CSV file that is being written: UTF-8, a line of names, every text in quotes.

    So a missing value (nothing) is told from an empty text (``""``). Times are ISO 8601 in UTC,
    lists and structs JSON, bytes hex, and a duration is a whole number of its unit.
    """

    def __init__(self, path: Path, cells: Cells) -> None:
        self._file = path.open("wb")
        self._cells = cells
        self._begun = False

    def add(self, rows: pl.DataFrame) -> None:
        """Add *rows* after those that were added before."""
        flat(rows, self._cells).write_csv(
            self._file, include_header=not self._begun, quote_style="non_numeric", null_value=""
        )
        self._begun = True

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read(path: Path, schema: pl.Schema, cells: Cells) -> pl.DataFrame:
    """Return the rows of a file that `CsvFile` wrote."""
    text = pl.read_csv(path, infer_schema=False)
    # Polars leaves quotes in names doubled.
    called = (name.replace('"', '""') for name in headers(schema, cells))
    names = dict(zip(called, schema, strict=True))
    return typed(text.rename(names, strict=False), schema, cells)
