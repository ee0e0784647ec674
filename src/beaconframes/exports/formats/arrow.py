"""Arrow IPC, also known as Feather: the fastest to read, the largest on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.dataset.segments import ROW_GROUP
from beaconframes.exports.formats.json_values import check, each

if TYPE_CHECKING:
    from pathlib import Path

    from beaconframes.exports.formats.cells import Cells

LACKING = (pl.Int128, pl.UInt128)
"""What no other reader has a type for, be it in Arrow files or in Parquet."""


class ArrowFile:
    """An Arrow IPC file that is being written, compressed with zstd."""

    def __init__(self, path: Path, _cells: Cells) -> None:
        self._path = path
        self._writer: Any = None

    def add(self, rows: pl.DataFrame) -> None:
        """Add *rows* after those that were added before."""
        import pyarrow as pa  # type: ignore[import-untyped]

        check(rows.schema, "Arrow", LACKING)
        table = rows.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
        if self._writer is None:
            options = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
            self._writer = pa.ipc.new_file(str(self._path), table.schema, options=options)
        self._writer.write_table(table, max_chunksize=ROW_GROUP)

    def close(self) -> None:
        """Write the footer."""
        if self._writer is not None:
            self._writer.close()


def read(path: Path, schema: pl.Schema) -> pl.DataFrame:
    """Return the rows of a file that `ArrowFile` wrote."""
    return each(pl.read_ipc(path), schema, pl.Expr.cast)
