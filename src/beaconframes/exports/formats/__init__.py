"""The formats: one writer each, and how to read back exactly what it wrote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from beaconframes.errors import UsageError
from beaconframes.exports.formats import arrow, csv, duckdb, excel, jsonl, parquet
from beaconframes.exports.formats.cells import Cells

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import polars as pl


class Open(Protocol):
    """A file that is being written."""

    def add(self, rows: pl.DataFrame) -> None:
        """Add *rows* after those that were added before."""

    def close(self) -> None:
        """End the file."""


@dataclass(frozen=True)
class Format:
    """A format: its name, the endings of its files (the first is what is written), its writer.

    ``whole`` says that a table is one file, which is not divided into partitions.
    """

    name: str
    endings: tuple[str, ...]
    media_type: str
    write: Callable[[Path, Cells], Open]
    read: Callable[[Path, pl.Schema, Cells], pl.DataFrame]
    whole: bool = False


FORMATS = {
    found.name: found
    for found in (
        Format(
            "parquet",
            (".parquet", ".pq"),
            "application/vnd.apache.parquet",
            parquet.ParquetFile,
            lambda path, schema, _: parquet.read(path, schema),
        ),
        Format("csv", (".csv",), "text/csv", csv.CsvFile, csv.read),
        Format(
            "jsonl",
            (".jsonl", ".ndjson"),
            "application/jsonl",
            jsonl.JsonLinesFile,
            lambda path, schema, _: jsonl.read(path, schema),
        ),
        Format(
            "arrow",
            (".arrow", ".feather", ".ipc"),
            "application/vnd.apache.arrow.file",
            arrow.ArrowFile,
            lambda path, schema, _: arrow.read(path, schema),
        ),
        Format(
            "duckdb",
            (".duckdb",),
            "application/vnd.duckdb.file",
            duckdb.DuckFile,
            lambda path, schema, _: duckdb.read(path, schema),
            whole=True,
        ),
        Format(
            "xlsx",
            (".xlsx",),
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            excel.ExcelFile,
            excel.read,
            whole=True,
        ),
    )
}


def get_format(name: object) -> Format:
    """Return the format of that name."""
    found = FORMATS.get(name) if isinstance(name, str) else None
    if found is None:
        raise UsageError(
            f"format={name!r} is not known", hint=f"Choose one of {', '.join(FORMATS)}"
        )
    return found


def by_ending(name: str) -> Format | None:
    """Return the format whose files are called like *name*; None if it is no file's name."""
    for found in FORMATS.values():
        if name.lower().endswith(found.endings):
            return found
    return None


__all__ = ["FORMATS", "Cells", "Format", "Open", "by_ending", "get_format"]
