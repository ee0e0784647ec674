"""Arrow IPC, also known as Feather: the fastest to read, the largest on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.dataset.segments import ROW_GROUP
from beaconframes.errors import require_package
from beaconframes.exports.formats.json_values import check_types, convert_columns

if TYPE_CHECKING:
    from pathlib import Path

    from beaconframes.exports.formats.cells import CellOptions

UNSUPPORTED_TYPES = (pl.Int128, pl.UInt128)
"""Types that other readers of Arrow and Parquet files do not support."""


class ArrowWriter:
    """Write an Arrow IPC file, compressed with zstd."""

    def __init__(self, path: Path, _options: CellOptions) -> None:
        require_package("pyarrow", "an Arrow file")
        self._path = path
        self._writer: Any = None

    def add(self, rows: pl.DataFrame) -> None:
        """Append *rows*."""
        import pyarrow as pa  # type: ignore[import-untyped]

        check_types(rows.schema, "Arrow", UNSUPPORTED_TYPES)
        table = rows.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
        if self._writer is None:
            options = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
            self._writer = pa.ipc.new_file(str(self._path), table.schema, options=options)
        self._writer.write_table(table, max_chunksize=ROW_GROUP)

    def close(self) -> None:
        """Write the footer."""
        if self._writer is not None:
            self._writer.close()


def read(path: Path, schema: pl.Schema, _options: CellOptions) -> pl.DataFrame:
    """Return the rows of a file that `ArrowWriter` wrote."""
    return convert_columns(pl.scan_ipc(path, glob=False).collect(), schema, pl.Expr.cast)
