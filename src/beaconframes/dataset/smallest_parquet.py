"""Parquet files as small as possible, for datasets that are copied more often than written.

Each column gets the encoding that makes its first rows smallest; then a slow compression follows.
A file takes ten times as long to write as a usual segment, and as long to read.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa  # type: ignore[import-untyped]

_LEVEL: Final = 19
_TRIAL_LEVEL: Final = 9
_TRIAL_ROWS: Final = 131_072
_PAGE_BYTES: Final = 2**20
_DICTIONARY: Final = "DICTIONARY"
_NUMBER_ENCODINGS: Final = (_DICTIONARY, "PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT")
_TEXT_ENCODINGS: Final = (_DICTIONARY, "PLAIN", "DELTA_BYTE_ARRAY")
_OTHER_ENCODINGS: Final = (_DICTIONARY, "PLAIN")


def write(frame: pl.DataFrame, file: Path, *, row_group_size: int) -> None:
    """Write a frame to a file; the same rows and libraries give the same bytes."""
    rows = frame.to_arrow().combine_chunks()
    encodings = {
        name: _find_smallest(rows.select([name]).slice(0, _TRIAL_ROWS), _list_encodings(dtype))
        for name, dtype in frame.schema.items()
    }
    _write(rows, file, encodings, _LEVEL, row_group_size)


def _list_encodings(dtype: pl.DataType) -> tuple[str, ...]:
    if dtype.is_integer() or dtype.is_temporal():
        return _NUMBER_ENCODINGS
    return _TEXT_ENCODINGS if dtype == pl.String else _OTHER_ENCODINGS


def _find_smallest(column: pa.Table, encodings: tuple[str, ...]) -> str:
    """Return the encoding with which a table of one column is smallest."""

    def measure(encoding: str) -> int:
        file = io.BytesIO()
        _write(column, file, {column.column_names[0]: encoding}, _TRIAL_LEVEL, _TRIAL_ROWS)
        return len(file.getvalue())

    return min(encodings, key=measure)


def _write(
    rows: pa.Table,
    file: Path | io.BytesIO,
    encodings: dict[str, str],
    level: int,
    row_group_size: int,
) -> None:
    # Only this needs the module, which takes long to import.
    from pyarrow import parquet

    parquet.write_table(
        rows,
        file,
        compression="zstd",
        compression_level=level,
        row_group_size=row_group_size,
        data_page_size=_PAGE_BYTES,
        dictionary_pagesize_limit=_PAGE_BYTES,
        use_dictionary=[name for name, chosen in encodings.items() if chosen == _DICTIONARY],
        column_encoding={
            name: chosen
            for name, chosen in encodings.items()
            if chosen not in {_DICTIONARY, "PLAIN"}
        }
        or None,
        store_schema=False,
    )
