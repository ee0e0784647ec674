"""CSV: for spreadsheets, R and most other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.errors import DatasetError
from beaconframes.exports.formats.cells import escape_names, from_cells, to_cells

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from beaconframes.exports.formats.cells import CellOptions


def write(path: Path, frames: Iterable[pl.DataFrame], options: CellOptions) -> None:
    """Write a CSV file: UTF-8, a header line, all text in quotes.

    The quotes distinguish an empty text (``""``) from a missing value (nothing). Times are ISO 8601
    in UTC, lists and structs JSON, bytes hex, and a duration is a whole number of its unit. No
    number has an exponent.
    """
    with path.open("wb") as file:
        for number, rows in enumerate(frames):
            if rows.width == 1 and rows.to_series().null_count():
                raise DatasetError(
                    f"the column {rows.columns[0]} has missing values: without another column, "
                    "they are empty lines, which readers skip",
                    hint="Add a column, or choose Parquet",
                )
            to_cells(rows, options).write_csv(
                file,
                include_header=number == 0,
                quote_style="non_numeric",
                null_value="",
                float_scientific=False,
            )


def read(path: Path, schema: pl.Schema, options: CellOptions) -> pl.DataFrame:
    """Return the rows of a file that `write` wrote."""
    text = pl.read_csv(path, infer_schema=False, glob=False)
    # Polars does not unescape doubled quotes in column names.
    headers = (name.replace('"', '""') for name in escape_names(schema, options))
    names = dict(zip(headers, schema, strict=True))
    return from_cells(text.rename(names, strict=False), schema, options)
