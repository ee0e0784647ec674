"""The writer of one table of a dataset: new files beside the published ones."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.exports.atomic_files import sync_draft, translate_errors
from beaconframes.exports.journal import IncompatibleExport, StagedFile, StagedPartition
from beaconframes.exports.sorter import FileRows, Sorter, sort_source

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Future
    from pathlib import Path

    from beaconframes.dataset import Segment
    from beaconframes.exports.journal import ExportJournal
    from beaconframes.exports.manifest import ManifestTable

OCCURRENCE = "\0nth"
"""The column that numbers equal rows; no exported column may have this name."""


class TableWriter:
    """Write the rows of one table, beside its published files."""

    def __init__(
        self, table: ManifestTable, journal: ExportJournal, published: Iterable[Segment]
    ) -> None:
        self._table, self._source, self._journal = table, table.source, journal
        self._published: dict[str, list[Segment]] = {}
        for segment in published:
            folder = segment.path.rpartition("/")[0]
            self._published.setdefault(folder, []).append(segment)
        self._staged: dict[str, list[StagedFile | Segment]] = {
            self._get_folder(part.number): [*part.files]
            for part in self._journal.entries.partitions
        }
        """The files of each partition; in place of a file with published content, that one."""
        self._pending: tuple[int | None, Future[StagedFile]] | None = None
        self._finished = [*self._journal.entries.partitions]
        self._highest = self._finished[-1].number if self._finished else None
        """The last partition of which a file was written."""
        self._is_ordered = True
        """Whether partitions are finished one after the other."""

    def write(self) -> dict[str, StagedFile]:
        """Write all rows, and return the new files of the table by their final path."""
        # One file is written at a time, while the next rows are read.
        key, scratch = self._source.table.key, self._journal.folder / "runs"
        sorter = Sorter(self._table.partitioning, key, scratch, self._recall_partition)
        with ThreadPoolExecutor(1) as thread:
            for file_rows in sort_source(self._source, sorter):
                self._start_file(thread, file_rows.partition, file_rows)
            self._finish_file(None)
            if not self._staged and not self._published:
                self._start_file(thread, None, FileRows(0, [self._source.table.schema.to_frame()]))
                self._finish_file(None)
        new_files: dict[str, StagedFile] = {}
        extension = self._table.format.extensions[0]
        for folder, files in self._staged.items():
            published = self._published.get(folder, [])
            if published and not self._source.only_new_rows:
                staged = self._drop_published_rows(folder, files, published)
            else:
                staged = [file for file in files if isinstance(file, StagedFile)]
            for number, file in enumerate(staged, len(published)):
                new_files[f"{folder}/{number:05d}{extension}"] = file
        return new_files

    def _get_folder(self, number: int | None) -> str:
        inner = "" if number is None else self._table.partitioning.get_folder(number)
        return f"{self._table.name}/{inner}".rstrip("/")

    def _start_file(
        self, thread: ThreadPoolExecutor, number: int | None, file_rows: FileRows
    ) -> None:
        """Start to write a file in the *thread*."""
        is_next = self._pending is None or self._pending[0] != number
        if number is not None and is_next:
            if self._highest is not None and number <= self._highest:
                self._forget_finished()
            self._highest = number
        self._finish_file(number)
        draft = self._journal.create_draft_path(self._table.format.extensions[0])
        self._pending = number, thread.submit(write_file_rows, file_rows, draft, self._table)

    def _finish_file(self, next_number: int | None) -> None:
        """Wait for the file that is being written, if any; *next_number* follows its partition."""
        if self._pending is None:
            return
        number, future = self._pending
        self._pending = None
        file: StagedFile | Segment = future.result()
        folder = self._get_folder(number)
        files = self._staged.setdefault(folder, [])
        if not self._source.only_new_rows:
            for published in self._published.get(folder, [])[len(files) : len(files) + 1]:
                if published.sha256 == file.sha256:
                    self._get_path(file).unlink()
                    file = published
        files.append(file)
        if number is not None and next_number not in (None, number):
            self._add_finished(number, files)

    def _add_finished(self, number: int, files: list[StagedFile | Segment]) -> None:
        """Record that a partition has all its files, if a later export can continue after it."""
        if self._source.resume is None or not self._is_ordered:
            return
        staged = [file for file in files if isinstance(file, StagedFile)]
        self._finished.append(StagedPartition(self._table.name, number, staged))
        if not self._source.is_partial:
            self._journal.entries.partitions = [*self._finished]
            self._journal.entries.gaps = self._source.gaps
            self._journal.save()

    def _forget_finished(self) -> None:
        """Let a later export start again: partitions are not finished in their order."""
        self._is_ordered = False
        if self._journal.entries.partitions:
            self._journal.entries.partitions = []
            self._journal.save()

    def _recall_partition(self, number: int) -> pl.DataFrame:
        """Return the rows of a partition that was written before all were received; reset it."""
        self._finish_file(None)
        self._forget_finished()
        files = self._staged.pop(self._get_folder(number))
        rows = self._read_files(files)
        for file in files:
            if isinstance(file, StagedFile):
                self._get_path(file).unlink()
        return rows

    def _get_path(self, file: StagedFile | Segment) -> Path:
        if isinstance(file, StagedFile):
            return self._journal.folder / file.name
        return self._journal.target / file.path

    def _read_files(self, files: Iterable[StagedFile | Segment]) -> pl.DataFrame:
        schema, cells = self._source.table.schema, self._table.cells
        rows = [schema.to_frame()]
        for file in files:
            path = self._get_path(file)
            with translate_errors(path, "cannot be read"):
                rows.append(self._table.format.read(path, schema, cells))
        return pl.concat(rows)

    def _drop_published_rows(
        self, folder: str, files: list[StagedFile | Segment], published: list[Segment]
    ) -> list[StagedFile]:
        """Return *files* of a partition without the rows that are *published*."""
        new_files = []
        unmatched: pl.DataFrame | None = None
        for position, file in enumerate(files):
            if unmatched is None:
                if not isinstance(file, StagedFile):
                    continue
                unmatched = self._read_files(published[position:])
            rows = self._read_files([file])
            new_rows = subtract_rows(rows, unmatched)
            unmatched = subtract_rows(unmatched, rows)
            if isinstance(file, StagedFile) and new_rows.height == file.rows:
                new_files.append(file)
            elif not new_rows.is_empty():
                draft = self._journal.create_draft_path(self._table.format.extensions[0])
                file_rows = FileRows(0, [new_rows])
                new_files.append(write_file_rows(file_rows, draft, self._table))
        if unmatched is None:
            unmatched = self._read_files(published[len(files) :])
        if not unmatched.is_empty():
            raise IncompatibleExport(
                f"{self._journal.target / folder} has {sum(s.rows for s in published):,} published "
                f"rows, and {unmatched.height:,} of them are not among the rows to export",
                hint="Published rows do not change. Choose another folder, or remove this one",
            )
        return new_files


def write_file_rows(file_rows: FileRows, draft: Path, table: ManifestTable) -> StagedFile:
    """Write the rows of one file, sorted, into a durable draft."""
    rows = file_rows.take_rows()
    with translate_errors(draft, needed_bytes=int(rows.estimated_size())):
        file = table.format.write(draft, table.cells)
        try:
            file.add(rows)
        finally:
            file.close()
    height, ranges = rows.height, find_ranges(rows, table.source.table.key)
    del rows  # frees the memory while the disk syncs
    return StagedFile(draft.name, height, *sync_draft(draft), ranges)


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
