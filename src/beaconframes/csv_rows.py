"""Rows of CSV files that users write: texts of named columns, each with its line."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.errors import DatasetError, UsageError
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LINE = "line"
"""The column with the number of the line."""
_SHOWN = 60


def read_csv_rows(path: Path, columns: Sequence[str], hint: str) -> pl.DataFrame:
    """Return *columns* of a CSV file as texts without surrounding spaces, and the `LINE` of each.

    Errors name the file and the line. *hint* states which columns the file needs.
    """
    if not path.is_file():
        raise DatasetError(f"the file {path} does not exist", hint="Check its name.")
    rows: list[tuple[int, *tuple[str, ...]]] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = [name.strip() for name in next(filter(None, reader), [])]
            places = _find_columns(path, header, columns, hint)
            for row in filter(None, reader):
                if len(row) != len(header):
                    raise UsageError(
                        f"line {reader.line_num} of {path} has {len(row)} values, and the header "
                        f"has {len(header)}",
                        hint="Separate values by commas, and write decimals with a point.",
                    )
                rows.append((reader.line_num, *(row[place].strip() for place in places)))
    except (csv.Error, UnicodeDecodeError) as error:
        raise DatasetError(f"{path} is not a CSV file in UTF-8: {error}", hint=hint) from None
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}") from None
    if not rows:
        raise UsageError(f"{path} has no rows", hint=hint)
    schema = {LINE: pl.Int64, **dict.fromkeys(columns, pl.String)}
    return pl.DataFrame(rows, schema, orient="row")


def _find_columns(
    path: Path, header: Sequence[str], columns: Sequence[str], hint: str
) -> list[int]:
    """Return the place of each column in the header."""
    missing = [name for name in columns if name not in header]
    if missing and len(header) == 1 and ";" in header[0]:
        raise UsageError(
            f"the columns of {path} are separated by semicolons",
            hint="Separate them by commas, and write decimals with a point.",
        )
    if missing:
        names = visible(", ".join(header)) or "none"
        raise UsageError(f"{path} has no column {missing[0]}; its columns are {names}", hint=hint)
    return [header.index(name) for name in columns]


def check_rows(path: Path, rows: pl.DataFrame, valid: pl.Expr, column: str, hint: str) -> None:
    """Raise a `UsageError` that names the first line of *rows* where *valid* is not true."""
    wrong = rows.filter(~valid.fill_null(value=False))
    if wrong.height:
        line, text = wrong.select(LINE, column).row(0)
        raise UsageError(
            f"line {line} of {path}: {visible(repr(text), _SHOWN)} is not a valid {column}",
            hint=hint,
        )
