"""Maintenance of tables with coverage: compaction, pruning, removal of damaged segments.

No file is changed in place: new segments are written, and one transaction replaces the old ones in
the ledger. Another process may still read the old files, so they stay for an hour.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.dataset import coverage, ledger, segments
from beaconframes.dataset.coverage import (
    MAX_UNIT,
    PRUNE_MARK,
    CoveredTables,
    precedes,
    sort_key,
)
from beaconframes.errors import DatasetError, UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from beaconframes.dataset.coverage import Covered, Grid
    from beaconframes.dataset.ledger import Segment
    from beaconframes.dataset.segments import Writer
    from beaconframes.sqlite_file import Database

SEGMENTS_PER_READ = 2
"""New segments that `compact` writes per read of the old segments."""

SMALL_SEGMENT = 16_384
"""Rows below which `extend_tables` writes a segment again, together with new rows."""

RETIRED = "_retired"
RETIREMENT_SECONDS = 3_600.0
"""Seconds until a file that the ledger no longer lists is deleted."""


@dataclass(frozen=True)
class Damage:
    """A damaged segment, and the reason."""

    table: str
    path: str
    reason: str


class MaintainedTables(CoveredTables):
    """The part of a `Dataset` that compacts, prunes and repairs tables with coverage."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[Writer]:
        """Open a commit."""

    @abstractmethod
    def verify(self) -> list[Damage]:
        """Return the damaged segments."""

    def compact(self, table: str | None = None, *, first: int = 0, last: int = MAX_UNIT) -> None:
        """Rewrite one table with coverage, or all of them, in large segments sorted by key.

        Of the segments, those are rewritten whose units are all from *first* to *last*. Memory
        holds two segments at a time. The old files stay readable for an hour.
        """
        for name in self.grids():
            if table in (None, name):
                with self.writing() as writer:
                    compact_segments(writer, name, first, last)

    def replace_tables(
        self,
        tables: Mapping[str, pl.DataFrame],
        facts: Mapping[str, Any] | None = None,
        *,
        keep: Mapping[str, str] | None = None,
    ) -> None:
        """Replace all rows of some *tables*, and entries of ``meta``, in one commit.

        Of a table in *keep*, rows with other values of a column stay.
        """
        with self.writing() as writer:
            for name, new in tables.items():
                listed = writer.segments(name)
                rows, key = new, (keep or {}).get(name)
                if key is not None and listed:
                    old = scan_segments(self.path, listed)
                    others = old.join(new.lazy(), on=key, how="anti").collect()
                    rows = pl.concat([new, others]).sort(key)
                retire_segments(writer.connection, listed)
                writer.drop_table(name)
                writer.add(name, rows)
            writer.set_meta(facts or {})

    def extend_tables(
        self,
        starts: Mapping[str, tuple[str, int]],
        rows: Iterable[tuple[str, pl.DataFrame]],
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """Replace the end of some tables by other *rows*, and entries of ``meta``, in one commit.

        *starts* has a column and its first number that is replaced, for each table; *rows* are
        frames of these tables. Small segments become one, so that many short ends are not as many
        files.
        """
        with self.writing() as writer:
            for name, (column, first) in starts.items():
                for segment in writer.segments(name):
                    is_cut = segment.may_contain({column: (first, MAX_UNIT)})
                    if is_cut or segment.rows < SMALL_SEGMENT:
                        rest = scan_segments(self.path, [segment]).filter(pl.col(column) < first)
                        retire_segments(writer.connection, [segment])
                        writer.add(name, rest.collect())
            for name, frame in rows:
                writer.add(name, frame)
            writer.set_meta(facts or {})

    def prune(
        self,
        table: str,
        subjects: Collection[str] | None = None,
        *,
        first: int = 0,
        last: int = MAX_UNIT,
    ) -> None:
        """Remove the rows of a table, or of some subjects and units, and their coverage."""
        if table not in self.grids():
            raise UsageError(
                f"{self.path} has no coverage of a table {table!r}",
                hint=f"It has: {', '.join(self.grids()) or 'none'}",
            )
        with self.writing() as writer:
            remove_rows(writer, table, subjects, first, last)

    def prune_units(self, table: str, units: Covered) -> None:
        """Remove the rows of some *units* of a table with coverage, and their coverage."""
        if units and table in self.grids():
            with self.writing() as writer:
                remove_units(writer, table, units)

    def prune_oldest(self, *, to: int | None = None, before: float | None = None) -> None:
        """Remove the segments that were written first, and the coverage of their rows.

        At most *to* bytes of segments stay, and none that was written *before* this Unix time.
        """
        with self.writing() as writer:
            while (oldest := find_excess(writer, to, before)) is not None:
                if segments.find_damage(oldest, self.path, thorough=True):
                    remove_damaged(writer, oldest.table)
                else:
                    rows = pl.read_parquet(self.path / oldest.path, glob=False)
                    units = coverage.find_covered(rows, writer.grids[oldest.table])
                    remove_units(writer, oldest.table, units)

    def mend(self) -> list[Damage]:
        """Remove damaged segments and their coverage, so that they can be loaded again.

        Returns the damaged segments.
        """
        damaged = self.verify()
        for table in self.grids().keys() & {damage.table for damage in damaged}:
            with self.writing() as writer:
                remove_damaged(writer, table)
        return damaged


def find_excess(writer: Writer, to: int | None, before: float | None) -> Segment | None:
    """Return the first segment of `prune_oldest` that does not stay; None if all stay."""
    listed = writer.segments()
    is_too_large = to is not None and sum(segment.bytes for segment in listed) > to
    for segment in listed:
        if segment.rows and segment.table in writer.grids:
            # The rows of a damaged segment are requested again anyway.
            written_at = 0.0
            with suppress(OSError):
                written_at = (writer.folder / segment.path).lstat().st_mtime
            if is_too_large or (before is not None and written_at < before):
                return segment
    return None


def retire_segments(connection: Database, retiring: Collection[Segment]) -> None:
    """Remove segments from the ledger; their files are deleted an hour later."""
    ledger.drop_segments(connection, [segment.path for segment in retiring])
    retired = ledger.get_meta(connection, inner=True).get(RETIRED, {})
    now = time.time()
    ledger.set_meta(connection, {RETIRED: retired | {segment.path: now for segment in retiring}})


def delete_unlisted(folder: Path, connection: Database) -> None:
    """Delete drafts and segments of unfinished commits, and segments retired an hour ago."""
    retired = ledger.get_meta(connection, inner=True).get(RETIRED, {})
    now = time.time()
    # A time in the future means that the clock was set back: delete the file now.
    recent = {path: at for path, at in retired.items() if 0 <= now - at < RETIREMENT_SECONDS}
    if recent != retired:
        ledger.set_meta(connection, {RETIRED: recent})
    kept = {segment.path for segment in ledger.get_segments(connection)}.union(recent)
    for home in folder.iterdir():
        if home.is_symlink() or not home.is_dir() or not segments.is_table_name(home.name):
            continue
        for file in home.iterdir():
            path = f"{home.name}/{file.name}"
            draft = file.name.startswith(".") and file.name.endswith(".tmp")
            if draft or (segments.PATH.fullmatch(path) and path not in kept):
                file.unlink(missing_ok=True)


def compact_segments(writer: Writer, table: str, first: int, last: int) -> None:
    """Rewrite segments of *table* as large sorted ones, from the first small or overlapping one.

    Only segments take part whose units are all from *first* to *last*.
    """
    grid = writer.grids[table]
    ordered = [s for s in writer.segments(table) if s.rows]
    if (first, last) != (0, MAX_UNIT):
        ordered = [s for s in ordered if s.is_within(grid.unit, [(first, last)])]
    ordered.sort(key=lambda segment: sort_key(segment, grid))
    rewritten = ordered[count_compacted(ordered, grid) :]
    if len(rewritten) <= 1:
        return
    rows = scan_segments(writer.folder, rewritten)
    retire_segments(writer.connection, rewritten)
    lead = pl.col(grid.key[0])
    parts = split_key_ranges(rows, grid.key[0])
    for start in range(0, len(parts), SEGMENTS_PER_READ):
        batch = parts[start : start + SEGMENTS_PER_READ]
        low, high = batch[0][0], batch[-1][1]
        frame = rows.filter(lead.is_between(pl.lit(low), pl.lit(high))).collect()
        for lowest, highest in batch:
            inside = lead.is_between(pl.lit(lowest), pl.lit(highest))
            writer.add_segment(table, frame.filter(inside))
    writer.add_segment(table, rows.filter(lead.is_null()).collect())


def count_compacted(ordered: list[Segment], grid: Grid) -> int:
    """Return how many segments at the start are large and do not overlap the next one."""
    for number, (one, following) in enumerate(pairwise(ordered)):
        if one.rows < segments.ROWS // 2 or not precedes(one, following, grid):
            return number
    return len(ordered)


def split_key_ranges(rows: pl.LazyFrame, key: str) -> list[tuple[Any, Any]]:
    """Return ranges of *key* that each fill a segment."""
    grouped = rows.select(pl.col(key).drop_nulls()).group_by(key).len().sort(key)
    counts = grouped.collect(engine="streaming")
    found: list[list[Any]] = []
    height = 0
    for value, count in counts.iter_rows():
        if not found or height + count > segments.ROWS:
            found.append([value, value])
            height = 0
        found[-1][1] = value
        height += count
    return [(low, high) for low, high in found]


def scan_segments(folder: Path, chosen: list[Segment]) -> pl.LazyFrame:
    """Return the rows of *chosen* segments; raise DatasetError for the first damaged one."""
    for segment in chosen:
        if reason := segments.find_damage(segment, folder, thorough=True):
            raise DatasetError(
                f"{folder / segment.path} {reason}",
                hint="Run mend() to remove the damaged rows",
            )
    return pl.scan_parquet([folder / segment.path for segment in chosen], glob=False)


def remove_rows(
    writer: Writer, table: str, subjects: Collection[str] | None, first: int, last: int
) -> None:
    """Remove rows and coverage of *subjects* (None: of all) in the units *first* to *last*.

    A table of the whole chain has no rows of any subject.
    """
    units = coverage.read(writer.connection, table, subjects, first, last)
    if subjects is None and first <= 0 and last >= MAX_UNIT:
        retire_segments(writer.connection, writer.segments(table))
    remove_units(writer, table, units)
    if subjects is None and first <= 0 and last >= MAX_UNIT:
        writer.drop_table(table)


def remove_units(writer: Writer, table: str, units: Covered) -> None:
    """Remove the rows and the coverage of *units*."""
    if not units:
        return
    for segment in writer.segments(table):
        rest = read_other_rows(writer.folder, segment, writer.grids[table], units)
        if rest is not None:
            retire_segments(writer.connection, [segment])
            writer.add_segment(table, rest)
    coverage.remove(writer.connection, table, units)
    ledger.increase(writer.connection, PRUNE_MARK)


def read_other_rows(
    folder: Path, segment: Segment, grid: Grid, units: Covered
) -> pl.DataFrame | None:
    """Return the rows of *segment* that are not in *units*; None if it has no row in them."""
    if not (units and segment.rows):
        return None
    if not segment.may_contain(coverage.find_bounds_of_units(grid, units)):
        return None
    rows = scan_segments(folder, [segment]).collect()
    rest = coverage.filter_covered(rows, grid, units, inside=False)
    return rest if rest.height < segment.rows else None


def remove_damaged(writer: Writer, table: str) -> None:
    """Remove damaged segments, and the coverage of all rows that they may have contained."""
    grid, listed = writer.grids[table], writer.segments(table)
    damaged = [one for one in listed if segments.find_damage(one, writer.folder, thorough=True)]
    retire_segments(writer.connection, damaged)
    for segment in damaged:
        if not segment.rows:
            continue
        low, high = segment.ranges.get(grid.unit, (0, MAX_UNIT))
        subjects = None
        if grid.subject is not None and grid.subject in segment.ranges:
            least, greatest = segment.ranges[grid.subject]
            covered = coverage.read(writer.connection, table)
            subjects = [s for s in covered if least <= type(least)(s) <= greatest]  # type: ignore[operator]
        remove_rows(writer, table, subjects, int(low), int(high))
