"""The writer of one table of a dataset: new files beside the published ones."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.dataset import Segment
from beaconframes.dataset.segments import digest, find_ranges, sync
from beaconframes.exports.atomic_files import translate_errors
from beaconframes.exports.sorter import OutOfOrder, sort_source
from beaconframes.exports.work_folder import IncompatibleExport
from beaconframes.load_context import change_load

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from beaconframes.exports.manifest import ManifestTable
    from beaconframes.exports.work_folder import WorkFolder

OCCURRENCE = "\0nth"
"""The column that numbers equal rows; no exported column may have this name."""


class TableWriter:
    """Write the rows of one table, beside its published files."""

    def __init__(
        self, table: ManifestTable, work: WorkFolder, published: Iterable[Segment]
    ) -> None:
        self._table, self._source, self._work = table, table.source, work
        self._extension = table.format.extensions[0]
        self._published: dict[str, list[Segment]] = {}
        for segment in published:
            folder = segment.path.rpartition("/")[0]
            self._published.setdefault(folder, []).append(segment)
        self._drafts: dict[str, list[Segment]] = {}
        """The written files of each partition, by its folder."""

    def write(self) -> dict[str, Segment]:
        """Write all rows that are not published, and return the drafts by their final path."""
        try:
            self._write_drafts()
        except OutOfOrder:
            for draft in chain(*self._drafts.values()):
                (self._work.folder / draft.path).unlink()
            self._drafts.clear()
            self._source.is_ordered = False
            self._write_drafts()
        if not self._drafts and not self._published:
            self._drafts[self._table.name] = [self._write_draft(self._read_files([]))]
        new_files: dict[str, Segment] = {}
        for folder in self._drafts:
            first = len(self._published.get(folder, []))
            for number, draft in enumerate(self._list_new_drafts(folder), first):
                new_files[f"{folder}/{number:05d}{self._extension}"] = draft
        return new_files

    def _write_drafts(self) -> None:
        runs = self._work.folder / "runs"
        partitioning = self._table.partitioning
        # Loads in the order of the files are sorted once.
        with change_load(sort_first=partitioning.lead):
            for partition, rows in sort_source(self._source, partitioning, runs):
                draft = self._write_draft(rows)
                self._drafts.setdefault(self._get_folder(partition), []).append(draft)
                del rows  # frees the memory before the next rows are read

    def _get_folder(self, partition: int) -> str:
        name, partitioning = self._table.name, self._table.partitioning
        if not partitioning.key:
            return name
        return f"{name}/{partitioning.key}={partitioning.get_label(partition)}"

    def _write_draft(self, rows: pl.DataFrame) -> Segment:
        """Write the sorted rows of one file."""
        path = self._work.create_draft_path(self._extension)
        with translate_errors(path, needed_bytes=int(rows.estimated_size())):
            self._table.format.write(path, [rows], self._table.cells)
            sync(path)
            size, sha256 = path.stat().st_size, digest(path)
        ranges = find_ranges(rows, self._source.table.key)
        return Segment(self._table.name, path.name, rows.height, size, sha256, ranges)

    def _read_files(self, paths: Iterable[Path]) -> pl.DataFrame:
        schema, cells, read = self._source.table.schema, self._table.cells, self._table.format.read
        assert read is not None  # else the target is one file
        frames = [schema.to_frame()]
        for path in paths:
            with translate_errors(path, "cannot be read"):
                frames.append(read(path, schema, cells))
        return pl.concat(frames)

    def _list_new_drafts(self, folder: str) -> list[Segment]:
        """Return the drafts of a partition without the rows that are published."""
        published, matched = self._published.get(folder, []), 0
        if not published or self._source.only_new_rows:
            return self._drafts[folder]
        new_drafts: list[Segment] = []
        for draft in self._drafts[folder]:
            if any(segment.sha256 == draft.sha256 for segment in published):
                # An unchanged file has no other rows, so none have to be read.
                matched += draft.rows
                continue
            rows = self._read_files([self._work.folder / draft.path])
            # Other files have no equal row.
            bounds = {
                name: (low, high)
                for name, (low, high) in draft.ranges.items()
                if isinstance(low, int) and isinstance(high, int) and not rows[name].has_nulls()
            }
            same_keys = [segment for segment in published if segment.may_contain(bounds)]
            paths = (self._work.target / segment.path for segment in same_keys)
            new_rows = subtract_rows(rows, self._read_files(paths))
            matched += rows.height - new_rows.height
            if new_rows.height == rows.height:
                new_drafts.append(draft)
            elif not new_rows.is_empty():
                new_drafts.append(self._write_draft(new_rows))
        height = sum(segment.rows for segment in published)
        if matched < height:
            raise IncompatibleExport(
                f"{self._work.target / folder} has {height:,} published rows, and "
                f"{height - matched:,} of them are not among the rows to export",
                hint="Published rows do not change. Choose another folder, or remove this one",
            )
        return new_drafts


def subtract_rows(rows: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Return *rows* without *others*: each row of *others* removes one equal row."""
    number = pl.int_range(pl.len()).over(rows.columns).alias(OCCURRENCE)
    numbered, removed = rows.with_columns(number), others.with_columns(number)
    left = numbered.join(
        removed, on=numbered.columns, how="anti", nulls_equal=True, maintain_order="left"
    )
    return left.drop(OCCURRENCE)
