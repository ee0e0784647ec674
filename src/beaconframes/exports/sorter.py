"""External sorting: rows in any order become the sorted files of each partition, in bounded memory.

Rows wait in memory until their partition is complete. Rows that exceed the memory limit are written
to disk as sorted runs, and merged then. Both ways make the same files: a partition is split into
files by its content, not by the order of arrival. Only rows without a key keep that order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.dataset.maintenance import split_key_ranges
from beaconframes.dataset.segments import ROWS, RowBuffer
from beaconframes.errors import UsageError
from beaconframes.exports.atomic_files import translate_errors
from beaconframes.exports.partitions import PARTITION_COLUMN
from beaconframes.exports.row_order import sort_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from beaconframes.exports.partitions import Partitioning
    from beaconframes.exports.sources import TableSource

RUN_ROW_GROUP = 16_384

SPILL_BYTES = 128 * 2**20
"""Bytes of buffered rows from which they are written to disk as a run, if they fill a file."""
PARTITION_BYTES = 384 * 2**20
"""The same for rows of partitions: a day of 10,000 validators is sorted in memory."""


class OutOfOrder(Exception):
    """Rows of a partition whose files were yielded already."""


class Sorter:
    """Accept rows, and yield each file: the number of its partition, and its rows.

    The files of a source in the order of partitions are yielded when the next partition starts, and
    those of others at the end. Runs are written into the folder *scratch*.

    Raises
    ------
    OutOfOrder
        The source is declared to be in order, and is not.
    """

    def __init__(self, source: TableSource, partitioning: Partitioning, scratch: Path) -> None:
        self._number = partitioning.number.alias(PARTITION_COLUMN)
        self._key = partitioning.get_sort_key(source.table.key)
        self._is_ordered = source.is_ordered
        self._limit = PARTITION_BYTES if partitioning.key else SPILL_BYTES
        self._scratch = scratch
        self._buffer = RowBuffer()
        self._runs: list[Path] = []
        self._last: int | None = None
        """The largest partition of the rows so far."""

    def add(self, rows: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
        """Add *rows*, and yield the files of the partitions that are now complete."""
        rows = rows.with_columns(self._number)
        if self._is_ordered and rows.height:
            first: Any = rows[PARTITION_COLUMN].min()
            last: Any = rows[PARTITION_COLUMN].max()
            if self._last is not None and first < self._last:
                raise OutOfOrder
            if self._last is None or last > self._last:
                is_last = rows[PARTITION_COLUMN] == last
                self._add_to_buffer(rows.filter(~is_last))
                yield from self.finish()
                rows = rows.filter(is_last)
                self._last = last
        self._add_to_buffer(rows)

    def _add_to_buffer(self, rows: pl.DataFrame) -> None:
        self._buffer.add(rows)
        if self._buffer.rows > ROWS and self._buffer.bytes > self._limit:
            self._write_run()

    def _write_run(self) -> None:
        """Write the buffer as a run, sorted by partition and then by key, and empty it."""
        run = self._scratch / f"run-{len(self._runs):06d}.parquet"
        rows = self._sort(self._buffer.take_all())
        with translate_errors(run, needed_bytes=int(rows.estimated_size())):
            self._scratch.mkdir(parents=True, exist_ok=True)
            rows.write_parquet(run, compression="lz4", row_group_size=RUN_ROW_GROUP)
        self._runs.append(run)

    def _sort(self, frames: list[pl.DataFrame]) -> pl.DataFrame:
        """Return rows sorted by partition and key, and empty the list; without a key, in order."""
        if self._key:
            return sort_rows(frames, [PARTITION_COLUMN, *self._key])
        rows = pl.concat(frames)
        frames.clear()
        return rows.sort(PARTITION_COLUMN, maintain_order=True)

    def finish(self) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield the files of all buffered partitions, which get no more rows."""
        if self._runs and self._buffer.frames:
            self._write_run()
        if self._runs:
            yield from self._split_into_files(pl.scan_parquet(self._runs, glob=False))
        elif self._buffer.frames:
            yield from self._split_into_files(pl.concat(self._buffer.take_all()).lazy())
        for run in self._runs:
            run.unlink()
        self._runs = []

    def _split_into_files(self, rows: pl.LazyFrame) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield the files of *rows*; small partitions are read together."""
        number = pl.col(PARTITION_COLUMN)
        sizes = rows.group_by(PARTITION_COLUMN).len().sort(PARTITION_COLUMN).collect()
        groups: list[list[int]] = []
        height = 0
        for partition, size in sizes.iter_rows():
            if not groups or height + size > ROWS:
                groups.append([])
                height = 0
            groups[-1].append(partition)
            height += size
        large = set(sizes.filter(pl.col("len") > ROWS)[PARTITION_COLUMN])
        for first, *others in groups:
            part = rows
            if len(groups) > 1:
                part = rows.filter(number.is_between(first, others[-1] if others else first))
            if others or (self._runs and not self._key):
                yield from _split_by_partition(self._sort([part.collect()]))
                continue
            part = part.drop(PARTITION_COLUMN)
            files = _split_by_key(part, self._key) if self._key and first in large else [part]
            for lazy in files:
                # No variable here may reference the rows: the next rows need the memory.
                frames = [lazy.collect()]
                if not frames[0].is_empty():
                    yield first, sort_rows(frames, self._key)


def sort_source(
    source: TableSource, partitioning: Partitioning, scratch: Path
) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield the rows of *source*, file by file: the number of the partition, and the rows.

    Sorted runs are written into the folder *scratch*.
    """
    columns = (source.table.schema.names(), source.table.schema.dtypes())
    sorter = Sorter(source, partitioning, scratch)
    for rows in source.frames():
        if (rows.columns, rows.dtypes) != columns:
            raise UsageError(f"the frames of {source.table.name} have different columns")
        yield from sorter.add(rows)
        del rows  # frees the memory before the next rows are read
    yield from sorter.finish()


def _split_by_key(rows: pl.LazyFrame, key: Sequence[str]) -> Iterator[pl.LazyFrame]:
    """Yield *rows* in the order of *key*, in parts that fill a file each."""
    lead = pl.col(key[0])
    for low, high in [*split_key_ranges(rows, key[0]), (None, None)]:
        part = rows.filter(
            lead.is_null() if low is None else lead.is_between(pl.lit(low), pl.lit(high))
        )
        if low == high and len(key) > 1:
            yield from _split_by_key(part, key[1:])  # one epoch may have more rows than a file
        else:
            yield part


def _split_by_partition(rows: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield the rows of each partition; *rows* are sorted by partition."""
    number = pl.col(PARTITION_COLUMN)
    starts = rows.select((number != number.shift(1)).fill_null(value=True).arg_true()).to_series()
    ends = [*starts[1:], rows.height]
    for start, end in zip(starts, ends, strict=True):
        part = rows.slice(start, end - start)
        yield part[PARTITION_COLUMN][0], part.drop(PARTITION_COLUMN)
