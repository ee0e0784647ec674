"""External sorting: rows in any order become the sorted files of each partition, in bounded memory.

A partition waits in memory until it is complete. If rows arrive in the order of partitions, it is
complete when the next one starts. The full files of a large one are written before, if its rows
arrive in the order of its first key. Rows that exceed the memory limit, also out of order, are
written to disk as sorted runs and merged at the end. All ways make the same files: a partition is
split into files by its content, not by the order of arrival. Only rows without a key keep that
order.
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
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from beaconframes.exports.partitions import Partitioning
    from beaconframes.exports.sources import TableSource

RUN_ROW_GROUP = 16_384

SPILL_BYTES = 128 * 2**20
"""Bytes of buffered rows from which they are written to disk as a run, if they fill a file."""


class Sorter:
    """Accept rows in any order, and yield each file: the number of its partition, and its rows.

    While rows arrive in the order of partitions, each partition is yielded when the next one
    starts, and its full files when rows of a larger first key follow. After the first row out of
    order, all rows are yielded at the end; *recall* returns the rows of a partition that was
    already yielded. Runs are written into the folder *scratch*.
    """

    def __init__(
        self,
        partitioning: Partitioning,
        key: Sequence[str],
        scratch: Path,
        recall: Callable[[int], pl.DataFrame],
    ) -> None:
        self._number = partitioning.number.alias(PARTITION_COLUMN)
        self._key = partitioning.get_sort_key(key)
        self._lead = partitioning.lead if partitioning.lead in key else ""
        self._scratch = scratch
        self._recall = recall
        self._is_ordered = True
        self._yielded: set[int] = set()
        self._buffer = RowBuffer()
        self._runs: list[Path] = []
        self._highest: int | None = None
        self._yielded_lead: Any = None
        """The largest lead of the files that were yielded before their partition is complete."""

    def add(self, rows: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
        """Add *rows*, and yield the files of the partitions that are now complete."""
        if rows.is_empty():
            return
        rows = rows.with_columns(self._number)
        low: Any = rows[PARTITION_COLUMN].min()
        high: Any = rows[PARTITION_COLUMN].max()
        is_late = low == self._highest and self._belongs_to_yielded_files(rows)
        if self._highest is not None and (low < self._highest or is_late):
            self._is_ordered = False
            for number in self._yielded & set(rows[PARTITION_COLUMN].unique()):
                self._yielded.discard(number)
                self._add_to_buffer(self._recall(number).with_columns(self._number))
        if self._is_ordered:
            if self._highest is not None and low > self._highest:
                yield from self.finish()
            if high > low:
                is_last = rows[PARTITION_COLUMN] == high
                self._add_to_buffer(rows.filter(~is_last))
                rows = rows.filter(is_last)
                yield from self.finish()
            elif low == self._highest:
                yield from self._finish_files(rows)
        self._highest = high if self._highest is None else max(high, self._highest)
        self._add_to_buffer(rows)

    def _belongs_to_yielded_files(self, rows: pl.DataFrame) -> bool:
        """Return whether some *rows* of the last partition belong to files that were yielded."""
        if self._yielded_lead is None:
            return False
        lead = rows[self._lead]
        lowest: Any = lead.min()
        return lead.has_nulls() or lowest <= self._yielded_lead

    def _finish_files(self, following: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield the full files of a partition whose next rows, *following*, have a larger lead."""
        if not self._lead or self._runs or self._buffer.rows <= ROWS:
            return
        lead, *leads = (frame[self._lead] for frame in (following, *self._buffer.frames))
        lowest: Any = lead.min()
        if lead.has_nulls() or any(one.has_nulls() or one.max() >= lowest for one in leads):
            return
        rows = pl.concat(self._buffer.frames)
        *full, (start, _) = split_key_ranges(rows.lazy(), self._lead)
        if full:
            self._buffer.take_all()
            self._yielded_lead = full[-1][1]
            self._add_to_buffer(rows.filter(pl.col(self._lead) >= start))
            rows = rows.filter(pl.col(self._lead) < start)
            yield from self._split_into_files(rows.lazy())

    def _add_to_buffer(self, rows: pl.DataFrame) -> None:
        self._buffer.add(rows)
        if self._buffer.rows > ROWS and self._buffer.bytes > SPILL_BYTES:
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
        self._yielded_lead = None
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
        self._yielded |= set(sizes[PARTITION_COLUMN])
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


def sort_source(source: TableSource, sorter: Sorter) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield the rows of *source*, file by file."""
    columns = (source.table.schema.names(), source.table.schema.dtypes())
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
