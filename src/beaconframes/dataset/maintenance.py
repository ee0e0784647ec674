"""Maintenance of tables with coverage: compaction, pruning, removal of damaged segments.

No file is changed in place: new segments are written, and one transaction replaces the old ones in
the ledger. Another process may still read the old files, so they stay for an hour.
"""

from __future__ import annotations

import secrets
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.dataset import coverage, ledger, segments
from beaconframes.errors import DatasetError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from beaconframes.dataset.coverage import Grid
    from beaconframes.dataset.segments import Segment
    from beaconframes.dataset.writer import Writer

SEGMENTS_PER_READ = 2
"""Segments that `compact` builds from one read of the old ones."""

PRUNE_MARK = "_forgotten"
RETIRED = "_retired"
RETIRED_FOR = 3_600.0
"""Seconds until a file that the ledger no longer lists is deleted."""


def sort_key(segment: Segment, grid: Grid) -> tuple[Any, ...]:
    """Return the lowest key of a segment, by which segments are sorted."""
    return tuple(segment.ranges[name][0] for name in grid.key if name in segment.ranges)


def are_disjoint(ordered: Sequence[Segment], grid: Grid) -> bool:
    """Return whether the key ranges of segments, in order, certainly do not overlap."""
    ranges = [segment.ranges.get(grid.key[0]) for segment in ordered]
    if len(ordered) == 1:
        return True
    return all(
        one is not None and following is not None and one[1] < following[0]  # type: ignore[operator]
        for one, following in pairwise(ranges)
    )


def list_retired_files(connection: sqlite3.Connection) -> set[str]:
    """Return the retired files that another process may still read."""
    retired = ledger.get_meta(connection, inner=True).get(RETIRED, {})
    now = time.time()
    # A time in the future means that the clock was set back: delete the file now.
    recent = {path: at for path, at in retired.items() if 0 <= now - at < RETIRED_FOR}
    if recent != retired:
        ledger.set_meta(connection, {RETIRED: recent})
    return set(recent)


def retire_segments(connection: sqlite3.Connection, retiring: Collection[Segment]) -> None:
    """Remove segments from the ledger; their files are deleted an hour later."""
    ledger.drop_segments(connection, [segment.path for segment in retiring])
    retired = ledger.get_meta(connection, inner=True).get(RETIRED, {})
    now = time.time()
    ledger.set_meta(connection, {RETIRED: retired | {segment.path: now for segment in retiring}})


def compact(folder: Path, writer: Writer, table: str, grid: Grid) -> None:
    """Rewrite *table* in large segments sorted by key, from the first one that is not."""
    ordered = [s for s in ledger.get_segments(writer.connection, table) if s.rows]
    ordered.sort(key=lambda segment: sort_key(segment, grid))
    rewritten = ordered[count_compacted(ordered, grid) :]
    if len(rewritten) <= 1:
        return
    rows = scan_segments(folder, rewritten)
    retire_segments(writer.connection, rewritten)
    parts = split_key_ranges(rows, grid.key[0])
    for start in range(0, len(parts), SEGMENTS_PER_READ):
        some = parts[start : start + SEGMENTS_PER_READ]
        low, high = some[0][0], some[-1][1]
        frame = rows.filter(pl.col(grid.key[0]).is_between(low, high)).collect()
        for first, last in some:
            inside = pl.col(grid.key[0]).is_between(first, last)
            writer.add_segment(table, frame.filter(inside))
    writer.add_segment(table, rows.filter(pl.col(grid.key[0]).is_null()).collect())


def count_compacted(ordered: list[Segment], grid: Grid) -> int:
    """Return how many of the first segments are large and do not overlap the next one."""
    for number, (one, following) in enumerate(pairwise(ordered)):
        lowest = following.ranges.get(grid.key[0])
        highest = one.ranges.get(grid.key[0])
        disjoint = lowest and highest and highest[1] < lowest[0]  # type: ignore[operator]
        if one.rows < segments.ROWS // 2 or not disjoint:
            return number
    return len(ordered)


def split_key_ranges(rows: pl.LazyFrame, key: str) -> list[tuple[Any, Any]]:
    """Return ranges of *key* that each fill a segment."""
    counts = rows.select(pl.col(key).drop_nulls()).group_by(key).len().sort(key).collect()
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
        if reason := segment.find_damage(folder, thorough=True):
            raise DatasetError(
                f"{folder / segment.path} {reason}",
                hint="Run mend(): it removes the damaged rows and leaves the others",
            )
    return pl.scan_parquet([folder / segment.path for segment in chosen], glob=False)


def prune(
    folder: Path,
    writer: Writer,
    table: str,
    grid: Grid,
    subjects: Collection[str] | None,
    first: int,
    last: int,
) -> None:
    """Remove the rows of some *subjects* (None: of all), *first* to *last*, and their coverage."""
    listed = ledger.get_segments(writer.connection, table)
    if subjects is None and first <= 0 and last >= coverage.MAX_UNIT:
        retire_segments(writer.connection, listed)
        writer.drop_table(table)
    else:
        touched = [s for s in listed if s.rows and s.may_contain({grid.unit: (first, last)})]
        for segment in touched:
            rows = scan_segments(folder, [segment])
            names = None if subjects is None else list(subjects)
            pruned = coverage.build_filter(grid, names, [(first, last)], rows.collect_schema())
            rest = rows.filter(~pruned.fill_null(value=False)).collect()
            if rest.height < segment.rows:
                retire_segments(writer.connection, [segment])
                writer.add_segment(table, rest)
    coverage.remove(writer.connection, table, subjects, first, last)
    ledger.set_meta(writer.connection, {PRUNE_MARK: secrets.token_hex(8)})


def prune_damaged(folder: Path, writer: Writer, table: str, grid: Grid) -> None:
    """Remove damaged segments, and the coverage of every row that they may have held."""
    listed = ledger.get_segments(writer.connection, table)
    damaged = [segment for segment in listed if segment.find_damage(folder, thorough=True)]
    retire_segments(writer.connection, damaged)
    for segment in damaged:
        if not segment.rows:
            continue
        low, high = segment.ranges.get(grid.unit, (0, coverage.MAX_UNIT))
        subjects = None
        if grid.subject is not None and grid.subject in segment.ranges:
            least, greatest = segment.ranges[grid.subject]
            covered = coverage.read(writer.connection, table)
            subjects = [s for s in covered if least <= type(least)(s) <= greatest]  # type: ignore[operator]
        prune(folder, writer, table, grid, subjects, int(low), int(high))
