"""Writing one table of a dataset: rows become files, and what is there already stays as it is."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.dataset import Segment
from beaconframes.dataset.segments import digest
from beaconframes.errors import DatasetError, UsageError
from beaconframes.publish.durable import judged, make, put, settled, write
from beaconframes.publish.sorting import Sorter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from beaconframes.publish.formats import Cells, Format
    from beaconframes.publish.partitions import Partition
    from beaconframes.publish.sources import Source
    from beaconframes.publish.work import Work

IN_FLIGHT = 3
"""Files that an executor may be writing: each has its rows in memory."""


@dataclass
class Part:
    """A partition while its files are written."""

    old: list[Segment]
    """The files that the manifest names."""
    new: list[Segment] = field(default_factory=list)
    seen: int = 0
    """How many of the pieces came that it now has."""
    matched: int = 0
    """How many rows came that it had before."""
    rows: pl.DataFrame | None = None
    """The rows that it had before, once they have to be looked at."""


@dataclass
class Layout:
    """Where and how a table is written."""

    work: Work
    form: Format
    cells: Cells
    partition: Partition
    executor: Any = None


class TableWriter:
    """Writes the rows of one source beside those files of the table that the manifest names."""

    def __init__(self, source: Source, layout: Layout, before: Iterable[Segment]) -> None:
        self.source, self.layout = source, layout
        self._table = source.table
        self._known = (self._table.schema.names(), self._table.schema.dtypes())
        self._folders: dict[str, Part] = {}
        for segment in before:
            self._part(segment.path.rpartition("/")[0]).old.append(segment)
        self._take_over({s.path for part in self._folders.values() for s in part.old})
        self._waiting: deque[tuple[Part, str, Path, Any, dict[str, Any]]] = deque()
        self._settling = ThreadPoolExecutor(1)

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
        with self._settling:
            return self._write_all()

    def _write_all(self) -> list[Segment]:
        writing: int | None = None
        for number, piece in self.sorted():
            if writing not in (None, number):
                self._collect(0)
                self.layout.work.finished(self._table.name, writing)
            writing = number
            folder = self._folder(number)
            self._write(self._part(folder), folder, piece)
            del piece  # before the next ones come into memory
        self._collect(0)
        if not any(part.old or part.new for part in self._folders.values()):
            folder = self._folder(None)
            self._write(self._part(folder), folder, pl.DataFrame(schema=self._table.schema))
            self._collect(0)
        for folder, part in self._folders.items():
            self._judge(folder, part)
        every = [s for part in self._folders.values() for s in (*part.old, *part.new)]
        return sorted(every, key=lambda segment: segment.path)

    def sorted(self) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield the rows of each file, with the number of its partition."""
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

    def _part(self, folder: str) -> Part:
        return self._folders.setdefault(folder, Part([]))

    def _recall(self, number: int) -> pl.DataFrame:
        """Return the rows of a partition that turned out not to be complete, and forget them."""
        self._collect(0)
        part = self._part(self._folder(number))
        had = sum(segment.rows for segment in part.old)
        if part.matched not in (0, had):
            raise UsageError(
                f"the rows of {self._table.name} come in no order, and were exported before",
                hint="Sort them by time, or export to another folder",
            )
        named = [*(part.old if part.matched else ()), *part.new]
        rows = [self._read(segment) for segment in named]
        part.new, part.seen, part.matched = [], 0, 0
        return pl.concat([pl.DataFrame(schema=self._table.schema), *rows])

    def _read(self, segment: Segment) -> pl.DataFrame:
        path = self.layout.work.target / segment.path
        with judged(path, "cannot be read"):
            return self.layout.form.read(path, self._table.schema, self.layout.cells)

    def _write(self, part: Part, folder: str, rows: pl.DataFrame) -> None:
        draft = self.layout.work.draft()
        facts = {
            "height": rows.height,
            "ranges": ranges(rows, self._table.key),
            "rows": rows if part.old and not self.source.grows else None,
        }
        form, raw = self.layout.form.name, self.layout.cells.raw
        if self.layout.executor is None:
            write(rows, draft, form, raw=raw)
            # While the disk is waited for, the next rows are read.
            made = self._settling.submit(settled, draft)
        else:
            made = self.layout.executor.submit(make, rows, draft, form, raw=raw)
        part.rows = part.rows if part.rows is not None or not part.old else rows.clear()
        self._waiting.append((part, folder, draft, made, facts))
        self._collect(IN_FLIGHT if self.layout.executor is not None else 1)

    def _collect(self, leave: int) -> None:
        """Give their names to files that are written, until no more than *leave* are waited for."""
        while len(self._waiting) > leave:
            part, folder, draft, made, facts = self._waiting.popleft()
            self._name(part, folder, draft, made.result(), facts)

    def _name(
        self,
        part: Part,
        folder: str,
        draft: Path,
        made: tuple[int, str],
        facts: dict[str, Any],
    ) -> None:
        rows, (size, sha256) = facts["height"], made
        place = part.seen
        part.seen += 1
        if not self.source.grows and place < len(part.old) and part.old[place].sha256 == sha256:
            part.matched += rows
            draft.unlink()
            return
        if part.old and not self.source.grows:
            fresh = self._fresh(part, facts["rows"])
            part.matched += rows - fresh.height
            if fresh.is_empty():
                draft.unlink()
                return
            if fresh.height < rows:
                form, raw = self.layout.form.name, self.layout.cells.raw
                rows, (size, sha256) = fresh.height, make(fresh, draft, form, raw=raw)
                facts = {"ranges": ranges(fresh, self._table.key)}
        number = len(part.old) + len(part.new)
        path = f"{folder}/{number:05d}{self.layout.form.endings[0]}"
        segment = Segment(self._table.name, path, rows, size, sha256, facts["ranges"])
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

    def _fresh(self, part: Part, rows: pl.DataFrame) -> pl.DataFrame:
        """Return those of *rows* that the partition did not have."""
        if part.rows is None or part.rows.is_empty():
            part.rows = pl.concat([self._read(segment) for segment in part.old])
        return rows.join(part.rows, on=rows.columns, how="anti", nulls_equal=True)

    def _judge(self, folder: str, part: Part) -> None:
        """Refuse rows that are others than those that were published before."""
        had = sum(segment.rows for segment in part.old)
        if part.seen and not self.source.grows and part.matched < had:
            olds = (part.old for part in self._folders.values())
            self.layout.work.undo(segment.path for old in olds for segment in old)
            raise DatasetError(
                f"{self.layout.work.target / folder} was published with {had:,} rows, and "
                f"{had - part.matched:,} of them are not among what is exported now",
                hint="What was published does not change: export to another folder",
            )


def ranges(rows: pl.DataFrame, key: list[str]) -> dict[str, tuple[int | str, int | str]]:
    """Return the least and the greatest value of each key column that can be compared."""
    found: dict[str, tuple[int | str, int | str]] = {}
    for name in key:
        low, high = rows[name].min(), rows[name].max()
        if isinstance(low, int | str) and isinstance(high, int | str):
            found[name] = (low, high)
    return found
