"""Parquet: the usual format of a dataset. Files state whether their rows are simulated."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.dataset.segments import ROW_GROUP
from beaconframes.exports.formats.arrow import UNSUPPORTED_TYPES
from beaconframes.exports.formats.json_values import check_types

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from beaconframes.exports.formats.cells import CellOptions

_SIMULATED = {"simulated": "true"}
ZSTD_LEVEL = 1
"""A higher level takes longer and makes files of such rows no smaller."""


def write(path: Path, frames: Iterable[pl.DataFrame], options: CellOptions) -> None:
    """Write a Parquet file: zstd, statistics, row groups of 131,072 rows."""
    metadata = _SIMULATED if options.is_simulated else {}
    parts = map(_check_types, frames)
    first, second = next(parts), next(parts, None)
    if second is not None and find_spec("pyarrow") is None:
        # Only pyarrow writes a file in parts: without it, memory holds them all.
        first, second = pl.concat([first, second, *parts]), None
    if second is None:
        # One chunk: page boundaries, and with them every byte, must not depend on the chunks
        # in which rows arrived.
        first.rechunk().write_parquet(
            path,
            compression="zstd",
            compression_level=ZSTD_LEVEL,
            statistics=True,
            row_group_size=ROW_GROUP,
            metadata=metadata,
        )
        return
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    schema = first.head(0).to_arrow(compat_level=pl.CompatLevel.oldest()).schema
    with pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=ZSTD_LEVEL,
        # By default, pages have 20,000 rows, and files of income are 1.6 times as large.
        max_rows_per_page=ROW_GROUP,
    ) as writer:
        writer.add_key_value_metadata(metadata)
        for rows in chain([first, second], parts):
            table = rows.to_arrow(compat_level=pl.CompatLevel.oldest())
            writer.write_table(table, row_group_size=ROW_GROUP)


def _check_types(rows: pl.DataFrame) -> pl.DataFrame:
    check_types(rows.schema, "Parquet", UNSUPPORTED_TYPES)
    return rows


def states_simulation(path: Path) -> bool:
    """Return whether a file states that its rows are simulated."""
    return _SIMULATED.items() <= pl.read_parquet_metadata(path).items()


def read(path: Path, schema: pl.Schema, _options: CellOptions) -> pl.DataFrame:
    """Return the rows of a file; its columns must be those of *schema*."""
    return pl.scan_parquet(path, schema=schema, hive_partitioning=False, glob=False).collect()
