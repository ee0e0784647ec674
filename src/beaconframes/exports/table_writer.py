"""The writer of one table of a dataset: new files beside the published ones."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.dataset import Segment
from beaconframes.dataset.segments import digest
from beaconframes.errors import DatasetError, UsageError
from beaconframes.exports.atomic_files import rename_draft, sync_draft, translate_errors
from beaconframes.exports.journal import IncompatibleExport
from beaconframes.exports.sorter import FileRows, Sorter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from beaconframes.exports.formats import CellOptions, Format
    from beaconframes.exports.journal import ExportJournal
    from beaconframes.exports.partitions import Partitioning
    from beaconframes.exports.sources import TableSource

OCCURRENCE = "\0nth"
"""The column that numbers equal rows; no exported column may have this name."""


@dataclass
class PartitionState:
    """A partition while its files are written."""

    published: list[Segment]
    """The files in the manifest."""
    written: list[Segment] = field(default_factory=list)
    file_count: int = 0
    """The number of files whose rows were received so far."""
    matched_rows: int = 0
    """The number of published rows received so far."""
    unmatched: pl.DataFrame | None = None
    """The published rows not received so far; None while whole files match."""


@dataclass
class WriteOptions:
    """The journal, the format and the partitions of a table to write."""

    journal: ExportJournal
    format: Format
    cells: CellOptions
    partitioning: Partitioning


@dataclass(frozen=True)
class WrittenFile:
    """The size, the SHA-256 and the contents of a draft."""

    rows: int
    size: int
    sha256: str
    ranges: dict[str, tuple[int | str, int | str]]


def write_file_rows(
    file_rows: FileRows, draft: Path, options: WriteOptions, key: list[str]
) -> WrittenFile:
    """Write the rows of one file, sorted, into a durable draft."""
    rows = file_rows.take_rows()
    with translate_errors(draft, needed_bytes=int(rows.estimated_size())):
        file = options.format.write(draft, options.cells)
        try:
            file.add(rows)
        finally:
            file.close()
    height, ranges = rows.height, find_ranges(rows, key)
    del rows  # frees the memory while the disk syncs
    return WrittenFile(height, *sync_draft(draft), ranges)


class TableWriter:
    """Write the rows of one source, beside the published files of its table."""

    def __init__(
        self, source: TableSource, options: WriteOptions, published: Iterable[Segment]
    ) -> None:
        self.source, self.options = source, options
        self._journal = options.journal
        self._table = source.table
        self._columns = (self._table.schema.names(), self._table.schema.dtypes())
        self._partitions: dict[str, PartitionState] = {}
        for segment in published:
            self._get_partition(segment.path.rpartition("/")[0]).published.append(segment)
        self._add_resumed_files()
        self._pending: tuple[int | None, Path, Future[WrittenFile]] | None = None
        self._last_number: int | None = None

    def _add_resumed_files(self) -> None:
        """Add the finished files of an interrupted export, except those in the manifest."""
        in_manifest = {s.path for state in self._partitions.values() for s in state.published}
        for number in self._journal.finished.get(self._table.name, ()):
            folder = self._get_folder(number)
            for path, segment in self._journal.files.items():
                if path.rpartition("/")[0] == folder and path not in in_manifest:
                    self._get_partition(folder).written.append(segment)

    def write(self) -> list[Segment]:
        """Write all rows, and return the files of the table, published and new, by path."""
        # One file is written at a time, while the next rows are read.
        with ThreadPoolExecutor(1) as thread:
            for file_rows in self._sort_rows():
                self._start_file(thread, file_rows.partition, file_rows)
            self._finish_file()
            if not any(state.published or state.written for state in self._partitions.values()):
                self._start_file(thread, None, FileRows(0, [self._table.schema.to_frame()]))
                self._finish_file()
        for folder, state in self._partitions.items():
            self._check_published_rows(folder, state)
        files = [
            s for state in self._partitions.values() for s in (*state.published, *state.written)
        ]
        return sorted(files, key=lambda segment: segment.path)

    def _sort_rows(self) -> Iterator[FileRows]:
        """Yield the rows of each file."""
        scratch = self._journal.get_scratch_folder(self._table.name)
        partitioning = self.options.partitioning
        sorter = Sorter(partitioning, self._table.key, scratch, self._recall_partition)
        for rows in self.source.frames():
            self._check_columns(rows)
            yield from sorter.add(rows)
            del rows  # frees the memory before the next rows are read
        yield from sorter.finish()

    def _check_columns(self, rows: pl.DataFrame) -> None:
        if (rows.columns, rows.dtypes) != self._columns:
            raise UsageError(f"the frames of {self._table.name} have different columns")

    def _get_folder(self, number: int | None) -> str:
        inner = "" if number is None else self.options.partitioning.get_folder(number)
        return f"{self._table.name}/{inner}".rstrip("/")

    def _get_partition(self, folder: str) -> PartitionState:
        return self._partitions.setdefault(folder, PartitionState([]))

    def _recall_partition(self, number: int) -> pl.DataFrame:
        """Return the rows of a partition that was written before all were received; reset it."""
        self._finish_file()
        state = self._get_partition(self._get_folder(number))
        rows = self._read_files(state.written)
        if state.matched_rows:
            if state.unmatched is None:
                matched = self._read_files(state.published[: state.file_count])
            else:
                matched = subtract_rows(self._read_files(state.published), state.unmatched)
            rows = pl.concat([matched, rows])
        state.written, state.file_count, state.matched_rows, state.unmatched = [], 0, 0, None
        return rows

    def _read_files(self, files: Iterable[Segment]) -> pl.DataFrame:
        rows = [self._read_file(self._journal.target / segment.path) for segment in files]
        return pl.concat([self._table.schema.to_frame(), *rows])

    def _read_file(self, path: Path) -> pl.DataFrame:
        with translate_errors(path, "cannot be read"):
            return self.options.format.read(path, self._table.schema, self.options.cells)

    def _start_file(
        self, thread: ThreadPoolExecutor, number: int | None, file_rows: FileRows
    ) -> None:
        """Start to write a file in the *thread*."""
        self._finish_file()
        draft = self._journal.create_draft_path()
        key = self._table.key
        written = thread.submit(write_file_rows, file_rows, draft, self.options, key)
        self._pending = number, draft, written

    def _finish_file(self) -> None:
        """Wait for the file that is being written, if any, and rename it to its final name."""
        if self._pending is None:
            return
        number, draft, written = self._pending
        self._pending = None
        if self._last_number is not None and self._last_number != number:
            self._journal.add_finished(self._table.name, self._last_number)
        self._last_number = number
        self._add_draft(self._get_folder(number), draft, written.result())

    def _add_draft(self, folder: str, draft: Path, written: WrittenFile) -> None:
        """Remove the published rows from a draft, and rename it to its final name."""
        state = self._get_partition(folder)
        position = state.file_count
        state.file_count += 1
        if state.published and not self.source.only_new_rows:
            counterpart = state.published[position : position + 1]
            same_file = bool(counterpart) and counterpart[0].sha256 == written.sha256
            if state.unmatched is None and same_file:
                state.matched_rows += written.rows
                draft.unlink()
                return
            if state.unmatched is None:
                state.unmatched = self._read_files(state.published[position:])
            rows = self._read_file(draft)
            new_rows = subtract_rows(rows, state.unmatched)
            state.unmatched = subtract_rows(state.unmatched, rows)
            state.matched_rows += written.rows - new_rows.height
            if new_rows.is_empty():
                draft.unlink()
                return
            if new_rows.height < written.rows:
                file_rows = FileRows(0, [new_rows])
                written = write_file_rows(file_rows, draft, self.options, self._table.key)
        number = len(state.published) + len(state.written)
        path = f"{folder}/{number:05d}{self.options.format.extensions[0]}"
        contents = written.rows, written.size, written.sha256, written.ranges
        segment = Segment(self._table.name, path, *contents)
        self._rename_draft(draft, segment)
        state.written.append(segment)

    def _rename_draft(self, draft: Path, segment: Segment) -> None:
        """Rename a draft to its final name; raise a DatasetError if another file has that name."""
        target = self._journal.target
        path = target / segment.path
        with translate_errors(path):
            inside = [path, *path.parents][: len(path.relative_to(target).parts)]
            if any(step.is_symlink() for step in inside):
                raise DatasetError(
                    f"{path} is or contains a symbolic link, which may lead out of the dataset"
                )
            if path.exists():
                if path.is_file() and digest(path) == segment.sha256:
                    self._journal.add_file(segment)
                    draft.unlink()
                    return
                if segment.path not in self._journal.files:
                    raise DatasetError(
                        f"{path} exists and is not a file of this export",
                        hint="Move it away, or export to another folder",
                    )
        self._journal.add_file(segment)
        rename_draft(draft, path)

    def _check_published_rows(self, folder: str, state: PartitionState) -> None:
        """Raise IncompatibleExport if published rows are missing among the exported ones."""
        published = sum(segment.rows for segment in state.published)
        is_checked = state.file_count and not self.source.only_new_rows
        if is_checked and state.matched_rows < published:
            self._journal.remove_all_files()
            missing = published - state.matched_rows
            raise IncompatibleExport(
                f"{self._journal.target / folder} has {published:,} published rows, and "
                f"{missing:,} of them are not among the rows to export",
                hint="Published rows do not change. Choose another folder, or remove this one",
            )


def subtract_rows(rows: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Return *rows* without *others*: each row of *others* removes one equal row."""
    number = pl.int_range(pl.len()).over(rows.columns).alias(OCCURRENCE)
    numbered, removed = rows.with_columns(number), others.with_columns(number)
    left = numbered.join(
        removed, on=numbered.columns, how="anti", nulls_equal=True, maintain_order="left"
    )
    return left.drop(OCCURRENCE)


def find_ranges(rows: pl.DataFrame, key: list[str]) -> dict[str, tuple[int | str, int | str]]:
    """Return the minimum and the maximum of each key column of integers or text."""
    ranges: dict[str, tuple[int | str, int | str]] = {}
    for name in key:
        low, high = rows[name].min(), rows[name].max()
        if isinstance(low, int | str) and isinstance(high, int | str):
            ranges[name] = (low, high)
    return ranges
