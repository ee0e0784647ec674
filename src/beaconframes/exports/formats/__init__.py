"""The formats of exported files, with their writers and the readers that return the same rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from beaconframes.errors import UsageError
from beaconframes.exports.formats import arrow, csv, excel, jsonl, parquet
from beaconframes.exports.formats.cells import CellOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    import polars as pl


@dataclass(frozen=True)
class Format:
    """A file format: its name, its file extensions (the first one is written), writer and reader.

    The writer takes the rows of a file in one frame or several.

    Without a reader, a format is for files that people open, and not for datasets.
    """

    name: str
    extensions: tuple[str, ...]
    media_type: str
    write: Callable[[Path, Iterable[pl.DataFrame], CellOptions], None]
    read: Callable[[Path, pl.Schema, CellOptions], pl.DataFrame] | None = None


FORMATS = {
    file_format.name: file_format
    for file_format in (
        Format(
            "parquet",
            (".parquet", ".pq"),
            "application/vnd.apache.parquet",
            parquet.write,
            parquet.read,
        ),
        Format("csv", (".csv",), "text/csv", csv.write, csv.read),
        Format("jsonl", (".jsonl", ".ndjson"), "application/jsonl", jsonl.write, jsonl.read),
        Format(
            "arrow",
            (".arrow", ".feather", ".ipc"),
            "application/vnd.apache.arrow.file",
            arrow.write,
            arrow.read,
        ),
        Format(
            "xlsx",
            (".xlsx",),
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            excel.write,
        ),
    )
}


def get_format(name: object) -> Format:
    """Return the format called *name*."""
    file_format = FORMATS.get(name) if isinstance(name, str) else None
    if file_format is None:
        raise UsageError(f"format={name!r} is unknown", hint=f"Choose one of {', '.join(FORMATS)}")
    return file_format


def find_format(name: str) -> Format | None:
    """Return the format that belongs to the extension of a file *name*; None if there is none."""
    for file_format in FORMATS.values():
        if name.lower().endswith(file_format.extensions):
            return file_format
    return None


def require_format(name: str, *, is_read: bool = False) -> Format:
    """Return the format of the file *name*; if it *is_read*, one with a reader."""
    accepted = [each for each in FORMATS.values() if each.read or not is_read]
    file_format = find_format(name)
    if file_format is None or file_format not in accepted:
        raise UsageError(
            f"{name} does not end with the suffix of a format",
            hint=f"Suffixes: {', '.join(each.extensions[0] for each in accepted)}",
        )
    return file_format


__all__ = ["FORMATS", "CellOptions", "Format", "find_format", "get_format", "require_format"]
