"""Parquet: the usual format of a dataset. Files state whether their rows are simulated."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.dataset.segments import ROW_GROUP
from beaconframes.exports.formats.arrow import UNSUPPORTED_TYPES
from beaconframes.exports.formats.json_values import check_types

if TYPE_CHECKING:
    from pathlib import Path

    from beaconframes.exports.formats.cells import CellOptions

_SIMULATED = {"simulated": "true"}
ZSTD_LEVEL = 1
"""A higher level takes longer and makes files of such rows no smaller."""


class ParquetWriter:
    """Write a Parquet file: zstd, statistics, row groups of 131,072 rows."""

    def __init__(self, path: Path, options: CellOptions) -> None:
        self._path = path
        self._metadata = _SIMULATED if options.is_simulated else {}
        self._first: pl.DataFrame | None = None
        self._writer: Any = None

    def add(self, rows: pl.DataFrame) -> None:
        """Append *rows*."""
        check_types(rows.schema, "Parquet", UNSUPPORTED_TYPES)
        if self._first is None and self._writer is None:
            self._first = rows
            return
        if self._writer is None and find_spec("pyarrow") is None:
            # Only pyarrow writes a file in parts: without it, memory holds them all.
            assert self._first is not None
            self._first = pl.concat([self._first, rows])
            return
        if self._writer is None:
            import pyarrow.parquet as pq  # type: ignore[import-untyped]

            table = self._first.to_arrow(compat_level=pl.CompatLevel.oldest())  # type: ignore[union-attr]
            self._writer = pq.ParquetWriter(
                self._path,
                table.schema,
                compression="zstd",
                compression_level=ZSTD_LEVEL,
                # By default, pages have 20,000 rows, and files of income are 1.6 times as large.
                max_rows_per_page=ROW_GROUP,
            )
            self._writer.add_key_value_metadata(self._metadata)
            self._writer.write_table(table, row_group_size=ROW_GROUP)
            self._first = None
        table = rows.to_arrow(compat_level=pl.CompatLevel.oldest())
        self._writer.write_table(table, row_group_size=ROW_GROUP)

    def close(self) -> None:
        """Write the remaining rows and the footer."""
        if self._writer is not None:
            self._writer.close()
        elif self._first is not None:
            # One chunk: page boundaries, and with them every byte, must not depend on the chunks
            # in which rows arrived.
            self._first.rechunk().write_parquet(
                self._path,
                compression="zstd",
                compression_level=ZSTD_LEVEL,
                statistics=True,
                row_group_size=ROW_GROUP,
                metadata=self._metadata,
            )


def states_simulation(path: Path) -> bool:
    """Return whether a file states that its rows are simulated."""
    return _SIMULATED.items() <= pl.read_parquet_metadata(path).items()


def read(path: Path, schema: pl.Schema, _options: CellOptions) -> pl.DataFrame:
    """Return the rows of a file; its columns must be those of *schema*."""
    return pl.scan_parquet(path, schema=schema, hive_partitioning=False, glob=False).collect()
