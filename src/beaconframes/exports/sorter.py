"""External sorting: rows in any order become the sorted files of each partition, in bounded memory.

A partition waits in memory until it is complete. If rows arrive in the order of partitions, it is
complete when the next one starts. Rows that exceed the memory limit, also out of order, are written
to disk as sorted runs and merged at the end. Both ways make the same files: a partition is split
into files by its content, not by the order of arrival.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.dataset.maintenance import split_key_ranges
from beaconframes.dataset.segments import ROWS
from beaconframes.exports.atomic_files import translate_errors
from beaconframes.exports.partitions import PARTITION_COLUMN
from beaconframes.exports.row_order import find_bounds, sort_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from beaconframes.exports.partitions import Partitioning

RUN_ROW_GROUP = 16_384

SPILL_BYTES = 128 * 2**20
"""Bytes of buffered rows from which they are written to disk as a run, if they fill a file."""


@dataclass
class FileRows:
    """The rows of one file of a partition; they are sorted when the file is written."""

    partition: int
    frames: list[pl.DataFrame]
    key: Sequence[str] | None = None
    """The columns to sort by; None if the rows are sorted already."""

    def take_rows(self) -> pl.DataFrame:
        """Return the sorted rows, and remove them from this object."""
        return self.frames.pop() if self.key is None else sort_rows(self.frames, self.key)


class Sorter:
    """Accept rows in any order, and yield the rows of one file after the other, by partition.

    While rows arrive in the order of partitions, each partition is yielded when the next one
    starts. After the first row out of order, all rows are yielded at the end; *recall* returns the
    rows of a partition that was already yielded. Runs are written into the folder *scratch*.
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
        self._scratch = scratch
        self._recall = recall
        self._is_ordered = True
        self._yielded: set[int] = set()
        self._buffer: list[tuple[pl.DataFrame, pl.Series]] = []
        self._buffered_rows = self._buffered_bytes = 0
        self._runs: list[Path] = []
        self._highest: int | None = None

    def add(self, rows: pl.DataFrame) -> Iterator[FileRows]:
        """Add *rows*, and yield the files of the partitions that are now complete."""
        if rows.is_empty():
            return
        numbers = rows.select(self._number).to_series()
        low, high = find_bounds(numbers)
        if self._highest is not None and low < self._highest:
            self._is_ordered = False
            self._recall_partitions(numbers)
        if self._is_ordered:
            if self._highest is not None and low > self._highest:
                yield from self._flush()
            if high > low:
                complete, (rows, numbers) = _split_off_last(rows, numbers, high)
                self._add_to_buffer(*complete)
                del complete  # frees the memory while the file is written
                yield from self._flush()
        self._highest = high if self._highest is None else max(high, self._highest)
        self._add_to_buffer(rows, numbers)

    def finish(self) -> Iterator[FileRows]:
        """Yield the files of all remaining partitions."""
        yield from self._flush()

    def _recall_partitions(self, numbers: pl.Series) -> None:
        """Buffer again the partitions of these *numbers* that were already yielded."""
        for number in self._yielded & set(numbers.unique()):
            self._yielded.discard(number)
            rows = self._recall(number)
            self._add_to_buffer(rows, rows.select(self._number).to_series())

    def _add_to_buffer(self, rows: pl.DataFrame, numbers: pl.Series) -> None:
        self._buffer.append((rows, numbers))
        self._buffered_rows += rows.height
        self._buffered_bytes += int(rows.estimated_size())
        if self._buffered_rows > ROWS and self._buffered_bytes > SPILL_BYTES:
            self._write_run()

    def _write_run(self) -> None:
        """Write the buffer as a sorted run."""
        run = self._scratch / f"run-{len(self._runs):06d}.parquet"
        rows = self._take_sorted_buffer()
        with translate_errors(run, needed_bytes=int(rows.estimated_size())):
            self._scratch.mkdir(parents=True, exist_ok=True)
            rows.write_parquet(run, compression="lz4", row_group_size=RUN_ROW_GROUP)
        self._runs.append(run)

    def _take_sorted_buffer(self) -> pl.DataFrame:
        """Return the buffer, sorted by partition and then by key, and empty it."""
        frames = [rows.hstack([numbers]) for rows, numbers in self._buffer]
        self._empty_buffer()
        return sort_rows(frames, [PARTITION_COLUMN, *self._key])

    def _take_buffer(self) -> Iterator[FileRows]:
        """Yield the files of the buffer, partition by partition, and empty it."""
        first, last = find_bounds(pl.concat([numbers for _, numbers in self._buffer]))
        if first < last:
            for part in _split_by_partition(self._take_sorted_buffer()):
                yield from self._split_into_files(part)
            return
        frames = [rows for rows, _ in self._buffer]
        self._empty_buffer()
        yield from self._split_into_files(FileRows(first, frames, self._key))

    def _empty_buffer(self) -> None:
        self._buffer = []
        self._buffered_rows = self._buffered_bytes = 0

    def _split_into_files(self, part: FileRows) -> Iterator[FileRows]:
        """Yield the rows of a partition in files of limited size."""
        if not self._key or sum(frame.height for frame in part.frames) <= ROWS:
            yield part
            return
        rows = pl.concat(part.frames).lazy()
        part.frames.clear()
        yield from self._read_files(part.partition, rows)

    def _read_files(self, partition: int, rows: pl.LazyFrame) -> Iterator[FileRows]:
        """Yield *rows* of a large partition in the order of the key, file by file."""
        for lazy in _split_by_key(rows, self._key):
            # No variable here may reference the rows: the next rows need the memory.
            file = FileRows(partition, [lazy.collect()], self._key)
            if not file.frames[0].is_empty():
                yield file

    def _flush(self) -> Iterator[FileRows]:
        """Yield the files of all buffered partitions, which get no more rows."""
        if self._runs:
            if self._buffer:
                self._write_run()
            files = self._merge_runs()
        elif self._buffer:
            files = self._take_buffer()
        else:
            return
        for file in files:
            self._yielded.add(file.partition)
            yield file

    def _merge_runs(self) -> Iterator[FileRows]:
        rows = pl.scan_parquet(self._runs, glob=False)
        sizes = rows.group_by(PARTITION_COLUMN).len().sort(PARTITION_COLUMN).collect()
        groups: list[list[int]] = []
        height = 0
        for number, size in sizes.iter_rows():
            if not groups or height + size > ROWS:
                groups.append([])
                height = 0
            groups[-1].append(number)
            height += size
        large = set(sizes.filter(pl.col("len") > ROWS)[PARTITION_COLUMN])
        for group in groups:
            part = rows.filter(pl.col(PARTITION_COLUMN).is_between(group[0], group[-1]))
            if group[0] in large and self._key:
                yield from self._read_files(group[0], part.drop(PARTITION_COLUMN))
            else:
                yield from _split_by_partition(
                    sort_rows([part.collect()], [PARTITION_COLUMN, *self._key])
                )
        for run in self._runs:
            run.unlink()
        self._runs = []


def _split_off_last(
    rows: pl.DataFrame, numbers: pl.Series, last: int
) -> tuple[tuple[pl.DataFrame, pl.Series], tuple[pl.DataFrame, pl.Series]]:
    """Return the rows of earlier partitions, and those of the partition *last*."""
    if numbers.is_sorted():
        # Slices copy nothing.
        start = int(numbers.search_sorted(last))
        return (rows[:start], numbers[:start]), (rows[start:], numbers[start:])
    mask = numbers == last
    return (rows.filter(~mask), numbers.filter(~mask)), (rows.filter(mask), numbers.filter(mask))


def _split_by_key(rows: pl.LazyFrame, key: Sequence[str]) -> Iterator[pl.LazyFrame]:
    """Yield *rows* in the order of *key*, in parts that fill a file each."""
    lead = pl.col(key[0])
    for low, high in [*split_key_ranges(rows, key[0]), (None, None)]:
        part = rows.filter(lead.is_null() if low is None else lead.is_between(low, high))
        if low == high and len(key) > 1:
            yield from _split_by_key(part, key[1:])  # one epoch may have more rows than a file
        else:
            yield part


def _split_by_partition(rows: pl.DataFrame) -> Iterator[FileRows]:
    """Yield the rows of each partition; *rows* are sorted by partition."""
    number = pl.col(PARTITION_COLUMN)
    starts = rows.select((number != number.shift(1)).fill_null(value=True).arg_true()).to_series()
    ends = [*starts[1:], rows.height]
    for start, end in zip(starts, ends, strict=True):
        part = rows.slice(start, end - start)
        yield FileRows(part[PARTITION_COLUMN][0], [part.drop(PARTITION_COLUMN)])
