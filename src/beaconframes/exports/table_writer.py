"""Writing one table of a dataset: rows become files, and what is there already stays as it is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.dataset import Segment
from beaconframes.dataset.segments import digest
from beaconframes.errors import DatasetError, UsageError
from beaconframes.exports.atomic_files import judged, put, settled, write
from beaconframes.exports.journal import IncompatibleExport
from beaconframes.exports.sorter import Piece, Sorter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from beaconframes.exports.formats import Cells, Format
    from beaconframes.exports.journal import ExportJournal
    from beaconframes.exports.partitions import Partitioning
    from beaconframes.exports.sources import Source

NTH = "\0nth"
"""The column that tells rows apart which are alike; no column of a frame may be called so."""


@dataclass
class PartitionState:
    """A partition while its files are written."""

    old: list[Segment]
    """The files that the manifest names."""
    new: list[Segment] = field(default_factory=list)
    seen: int = 0
    """How many of the pieces came that it now has."""
    matched: int = 0
    """How many rows came that it had before."""
    left: pl.DataFrame | None = None
    """The rows that it had before and that did not come yet, once they have to be looked at."""


@dataclass
class WriteOptions:
    """Where and how a table is written."""

    work: ExportJournal
    form: Format
    cells: Cells
    partition: Partitioning


@dataclass(frozen=True)
class WrittenFile:
    """What is known of a file that is written."""

    rows: int
    size: int
    sha256: str
    ranges: dict[str, tuple[int | str, int | str]]


def make(piece: Piece, draft: Path, form: str, *, raw: bool, ranged: list[str]) -> WrittenFile:
    """Write the rows of *piece*, in order, into a durable file."""
    rows = piece.rows()
    write(rows, draft, form, raw=raw)
    height, found = rows.height, ranges(rows, ranged)
    del rows  # while the disk is waited for
    return WrittenFile(height, *settled(draft), found)


class TableWriter:
    """Writes the rows of one source beside those files of the table that the manifest names."""

    def __init__(self, source: Source, layout: WriteOptions, before: Iterable[Segment]) -> None:
        self.source, self.layout = source, layout
        self._table = source.table
        self._known = (self._table.schema.names(), self._table.schema.dtypes())
        self._folders: dict[str, PartitionState] = {}
        for segment in before:
            self._part(segment.path.rpartition("/")[0]).old.append(segment)
        self._take_over({s.path for part in self._folders.values() for s in part.old})
        self._waiting: tuple[int | None, Path, Future[WrittenFile]] | None = None
        self._named: int | None = None

    def _take_over(self, named: set[str]) -> None:
        """Take what a killed export had done, but for what the manifest has *named* already."""
        work = self.layout.work
        for number in work.done.get(self._table.name, ()):
            folder = self._folder(number)
            for path, segment in work.made.items():
                if path.rpartition("/")[0] == folder and path not in named:
                    self._part(folder).new.append(segment)

    def write(self) -> list[Segment]:
        """Write all rows, and return the files of the table, old and new, by path."""
        # One file is written at a time, while the next rows are read.
        with ThreadPoolExecutor(1) as thread:
            for piece in self.pieces():
                self._write(thread, piece.part, piece)
            self._collect()
            if not any(part.old or part.new for part in self._folders.values()):
                self._write(thread, None, Piece(0, [self._table.schema.to_frame()]))
                self._collect()
        for folder, part in self._folders.items():
            self._judge(folder, part)
        every = [s for part in self._folders.values() for s in (*part.old, *part.new)]
        return sorted(every, key=lambda segment: segment.path)

    def pieces(self) -> Iterator[Piece]:
        """Yield the rows of each file."""
        scratch = self.layout.work.scratch(self._table.name)
        sorter = Sorter(self.layout.partition, self._table.key, scratch, self._recall)
        for rows in self.source.frames():
            yield from sorter.add(self._fitting(rows))
            del rows  # before the next ones come into memory
        yield from sorter.finish()

    def _fitting(self, rows: pl.DataFrame) -> pl.DataFrame:
        if (rows.columns, rows.dtypes) != self._known:
            raise UsageError(f"the rows of {self._table.name} do not all have the same columns")
        return rows

    def _folder(self, number: int | None) -> str:
        inner = "" if number is None else self.layout.partition.folder(number)
        return f"{self._table.name}/{inner}".rstrip("/")

    def _part(self, folder: str) -> PartitionState:
        return self._folders.setdefault(folder, PartitionState([]))

    def _recall(self, number: int) -> pl.DataFrame:
        """Return the rows of a partition that turned out not to be complete, and forget them."""
        self._collect()
        part = self._part(self._folder(number))
        rows = self._rows(part.new)
        if part.matched:
            came = self._rows(part.old if part.left is not None else part.old[: part.seen])
            rows = pl.concat([came if part.left is None else without(came, part.left), rows])
        part.new, part.seen, part.matched, part.left = [], 0, 0, None
        return rows

    def _rows(self, files: Iterable[Segment]) -> pl.DataFrame:
        """Return the rows of some files."""
        target = self.layout.work.target
        rows = [self._read(target / segment.path) for segment in files]
        return pl.concat([self._table.schema.to_frame(), *rows])

    def _read(self, path: Path) -> pl.DataFrame:
        with judged(path, "cannot be read"):
            return self.layout.form.read(path, self._table.schema, self.layout.cells)

    def _write(self, thread: ThreadPoolExecutor, number: int | None, piece: Piece) -> None:
        self._collect()
        draft = self.layout.work.draft()
        form, raw = self.layout.form.name, self.layout.cells.raw
        ranged = self._table.key
        made = thread.submit(make, piece, draft, form, raw=raw, ranged=ranged)
        self._waiting = number, draft, made

    def _collect(self) -> None:
        """Wait for the file that is being written, if there is one, and give it its name."""
        if self._waiting is None:
            return
        number, draft, made = self._waiting
        self._waiting = None
        if self._named not in (None, number):
            self.layout.work.finished(self._table.name, self._named)
        self._named = number
        self._name(self._folder(number), draft, made.result())

    def _name(self, folder: str, draft: Path, made: WrittenFile) -> None:
        part = self._part(folder)
        place = part.seen
        part.seen += 1
        if part.old and not self.source.grows:
            there = part.old[place].sha256 if place < len(part.old) else ""
            if part.left is None and there == made.sha256:
                part.matched += made.rows
                draft.unlink()
                return
            if part.left is None:
                part.left = self._rows(part.old[place:])
            rows = self._read(draft)
            fresh, part.left = without(rows, part.left), without(part.left, rows)
            part.matched += made.rows - fresh.height
            if fresh.is_empty():
                draft.unlink()
                return
            if fresh.height < made.rows:
                form, raw = self.layout.form.name, self.layout.cells.raw
                made = make(Piece(0, [fresh]), draft, form, raw=raw, ranged=self._table.key)
        number = len(part.old) + len(part.new)
        path = f"{folder}/{number:05d}{self.layout.form.endings[0]}"
        facts = made.rows, made.size, made.sha256, made.ranges
        segment = Segment(self._table.name, path, *facts)
        self._put(draft, segment)
        part.new.append(segment)

    def _put(self, draft: Path, segment: Segment) -> None:
        """Give a draft its name, unless somebody else's file has it."""
        work = self.layout.work
        path = work.target / segment.path
        with judged(path):
            inside = [path, *path.parents][: len(path.relative_to(work.target).parts)]
            if any(step.is_symlink() for step in inside):
                raise DatasetError(f"{path} leads out of the dataset: it is a symbolic link")
            if path.exists():
                if path.is_file() and digest(path) == segment.sha256:
                    work.note(segment)
                    draft.unlink()
                    return
                if segment.path not in work.made:
                    raise DatasetError(
                        f"{path} is in the way: it is not a file of this export",
                        hint="Move it away, or export to another folder",
                    )
        work.note(segment)
        put(draft, path)

    def _judge(self, folder: str, part: PartitionState) -> None:
        """Refuse rows that are others than those that were published before."""
        had = sum(segment.rows for segment in part.old)
        if part.seen and not self.source.grows and part.matched < had:
            self.layout.work.undo()
            raise IncompatibleExport(
                f"{self.layout.work.target / folder} was published with {had:,} rows, and "
                f"{had - part.matched:,} of them are not among what is exported now",
                hint="Published rows do not change. Choose another folder, or remove this one",
            )


def without(rows: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Return *rows* but for *others*: one that is there twice takes two of them to go."""
    nth = pl.int_range(pl.len()).over(rows.columns).alias(NTH)
    numbered, beside = rows.with_columns(nth), others.with_columns(nth)
    on = numbered.columns
    return numbered.join(beside, on=on, how="anti", nulls_equal=True, maintain_order="left").drop(
        NTH
    )


def ranges(rows: pl.DataFrame, key: list[str]) -> dict[str, tuple[int | str, int | str]]:
    """Return the least and the greatest value of each key column that can be compared."""
    found: dict[str, tuple[int | str, int | str]] = {}
    for name in key:
        low, high = rows[name].min(), rows[name].max()
        if isinstance(low, int | str) and isinstance(high, int | str):
            found[name] = (low, high)
    return found
