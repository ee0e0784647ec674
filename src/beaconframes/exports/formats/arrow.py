"""Arrow IPC, also known as Feather: the fastest to read, the largest on disk."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.dataset.segments import ROW_GROUP
from beaconframes.errors import require_package
from beaconframes.exports.formats.json_values import check_types, convert_columns

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from beaconframes.exports.formats.cells import CellOptions

UNSUPPORTED_TYPES = (pl.Int128, pl.UInt128)
"""Types that other readers of Arrow and Parquet files do not support."""


def write(path: Path, frames: Iterable[pl.DataFrame], _options: CellOptions) -> None:
    """Write an Arrow IPC file, compressed with zstd."""
    require_package("pyarrow", "an Arrow file")
    import pyarrow as pa  # type: ignore[import-untyped]

    options = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
    with ExitStack() as opened:
        writer: Any = None
        for rows in frames:
            check_types(rows.schema, "Arrow", UNSUPPORTED_TYPES)
            table = rows.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
            if writer is None:
                writer = pa.ipc.new_file(str(path), table.schema, options=options)
                opened.enter_context(writer)
            writer.write_table(table, max_chunksize=ROW_GROUP)


def read(path: Path, schema: pl.Schema, _options: CellOptions) -> pl.DataFrame:
    """Return the rows of a file that `write` wrote."""
    return convert_columns(pl.scan_ipc(path, glob=False).collect(), schema, pl.Expr.cast)
