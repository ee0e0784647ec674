"""Sorting: rows in any order become the files of each partition, in memory that does not grow.

What is open waits in memory until its partition cannot get more rows: as long as rows come in the
order of partitions, that is when the next one begins. Rows that come out of order, or more of them
than memory shall hold, go to runs on disk, which are merged at the end. Either way the same rows
make the same files: a partition is cut into files by what is in it, not by how it came.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.dataset.maintenance import split_key_ranges
from beaconframes.dataset.segments import ROWS
from beaconframes.exports.atomic_files import judged
from beaconframes.exports.partitions import PART
from beaconframes.exports.row_order import bounds, in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from beaconframes.exports.partitions import Partitioning

RUN_ROW_GROUP = 16_384


@dataclass
class Piece:
    """The rows of one file of a partition: they are put in order where it is written."""

    part: int
    frames: list[pl.DataFrame]
    key: Sequence[str] | None = None
    """What they are still to be sorted by; None if they are in order."""

    def rows(self) -> pl.DataFrame:
        """Return the rows in order; afterwards the piece has none any more."""
        return self.frames.pop() if self.key is None else in_order(self.frames, self.key)


class Sorter:
    """Takes rows in any order and yields, partition by partition, pieces: one for a file.

    While rows come in the order of partitions, each is yielded when the next one begins. From the
    first row that does not, everything waits for the end, and *recall* gives back the rows of a
    partition that was yielded too early. *scratch* is a folder for runs, made when it is needed.
    """

    def __init__(
        self,
        partition: Partitioning,
        key: Sequence[str],
        scratch: Path,
        recall: Callable[[int], pl.DataFrame],
    ) -> None:
        self._number = partition.number.alias(PART)
        self._key = partition.order(key)
        self._scratch = scratch
        self._recall = recall
        self._ordered = True
        self._yielded: set[int] = set()
        self._waiting: list[tuple[pl.DataFrame, pl.Series]] = []
        self._rows = 0
        self._runs: list[Path] = []
        self._reached: int | None = None

    def add(self, rows: pl.DataFrame) -> Iterator[Piece]:
        """Take *rows*, and yield what is complete by that."""
        if rows.is_empty():
            return
        numbers = rows.select(self._number).to_series()
        low, high = bounds(numbers)
        if self._reached is not None and low < self._reached:
            self._ordered = False
            self._take_back(numbers)
        if self._ordered:
            if self._reached is not None and low > self._reached:
                yield from self._complete()
            if high > low:
                before, (rows, numbers) = _parted(rows, numbers, high)
                self._wait(*before)
                del before  # it must not stay in memory while it is written
                yield from self._complete()
        self._reached = high if self._reached is None else max(high, self._reached)
        self._wait(rows, numbers)

    def finish(self) -> Iterator[Piece]:
        """Yield what is left."""
        yield from self._complete()

    def _take_back(self, numbers: pl.Series) -> None:
        """Wait again with those partitions that were yielded already."""
        for part in self._yielded & set(numbers.unique()):
            self._yielded.discard(part)
            rows = self._recall(part)
            self._wait(rows, rows.select(self._number).to_series())

    def _wait(self, rows: pl.DataFrame, numbers: pl.Series) -> None:
        self._waiting.append((rows, numbers))
        self._rows += rows.height
        if self._rows > ROWS:
            self._spill()

    def _spill(self) -> None:
        """Write what waits as a sorted run."""
        run = self._scratch / f"run-{len(self._runs):06d}.parquet"
        rows = self._sorted()
        with judged(run, needs=int(rows.estimated_size())):
            self._scratch.mkdir(parents=True, exist_ok=True)
            rows.write_parquet(run, compression="lz4", row_group_size=RUN_ROW_GROUP)
        self._runs.append(run)

    def _sorted(self) -> pl.DataFrame:
        """Return what waits, sorted by partition and then by key, and wait with nothing."""
        waiting = [rows.hstack([numbers]) for rows, numbers in self._waiting]
        self._waiting, self._rows = [], 0
        return in_order(waiting, [PART, *self._key])

    def _waited(self) -> Iterator[Piece]:
        """Yield what waits, partition by partition, and wait with nothing."""
        first, last = bounds(pl.concat([numbers for _, numbers in self._waiting]))
        if first < last:
            yield from _by_part(self._sorted())
            return
        waiting = [rows for rows, _ in self._waiting]
        self._waiting, self._rows = [], 0
        yield Piece(first, waiting, self._key)

    def _complete(self) -> Iterator[Piece]:
        """Yield the files of all partitions that are waiting, which get no more rows."""
        if self._runs:
            if self._waiting:
                self._spill()
            pieces = self._merged()
        elif self._waiting:
            pieces = self._waited()
        else:
            return
        for piece in pieces:
            self._yielded.add(piece.part)
            yield piece

    def _merged(self) -> Iterator[Piece]:
        rows = pl.scan_parquet(self._runs, glob=False)
        sizes = rows.group_by(PART).len().sort(PART).collect()
        groups: list[list[int]] = []
        height = 0
        for part, size in sizes.iter_rows():
            if not groups or height + size > ROWS:
                groups.append([])
                height = 0
            groups[-1].append(part)
            height += size
        large = set(sizes.filter(pl.col("len") > ROWS)[PART])
        for group in groups:
            here = rows.filter(pl.col(PART).is_between(group[0], group[-1]))
            if group[0] in large and self._key:
                for some in _cut(here, self._key):
                    # Nothing here may keep its rows: memory holds the next ones beside them.
                    piece = Piece(group[0], [some.collect().drop(PART)], self._key)
                    if not piece.frames[0].is_empty():
                        yield piece
            else:
                yield from _by_part(in_order([here.collect()], [PART, *self._key]))
        for run in self._runs:
            run.unlink()
        self._runs = []


def _parted(
    rows: pl.DataFrame, numbers: pl.Series, high: int
) -> tuple[tuple[pl.DataFrame, pl.Series], tuple[pl.DataFrame, pl.Series]]:
    """Return the rows that have another number than *high*, and those that have it."""
    if numbers.is_sorted():
        # Nothing is copied.
        place = int(numbers.search_sorted(high))
        return (rows[:place], numbers[:place]), (rows[place:], numbers[place:])
    last = numbers == high
    return (rows.filter(~last), numbers.filter(~last)), (rows.filter(last), numbers.filter(last))


def _cut(rows: pl.LazyFrame, key: Sequence[str]) -> Iterator[pl.LazyFrame]:
    """Yield *rows* in the order of *key*, in parts of which each makes a full file."""
    lead = pl.col(key[0])
    for low, high in [*split_key_ranges(rows, key[0]), (None, None)]:
        part = rows.filter(lead.is_null() if low is None else lead.is_between(low, high))
        if low == high and len(key) > 1:
            yield from _cut(part, key[1:])  # one epoch may have more rows than a file
        else:
            yield part


def _by_part(rows: pl.DataFrame) -> Iterator[Piece]:
    """Yield the rows of each partition; they are sorted by it."""
    starts = rows.select(
        (pl.col(PART) != pl.col(PART).shift(1)).fill_null(value=True).arg_true()
    ).to_series()
    ends = [*starts[1:], rows.height]
    for start, end in zip(starts, ends, strict=True):
        some = rows.slice(start, end - start)
        yield Piece(some[PART][0], [some.drop(PART)])
