"""Tending a dataset: larger segments, fewer rows, and what to do about damage.

Nothing is changed in place here either: what is to be otherwise is written anew, and the names are
exchanged in one transaction. Files that lost their name may still be read by somebody, so they
stay for an hour.
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
    from beaconframes.dataset.writing import Writer

AT_ONCE = 2
"""Segments that are made in one reading of what there was."""

FORGOTTEN = "_forgotten"
RETIRED = "_retired"
STILL_READ = 3_600.0
"""Seconds for which a file without a name stays, since somebody may be reading it."""


def beginning(segment: Segment, grid: Grid) -> tuple[Any, ...]:
    """Return what to sort segments by so that rows come in the order of their keys."""
    return tuple(segment.ranges[name][0] for name in grid.key if name in segment.ranges)


def apart(named: Sequence[Segment], grid: Grid) -> bool:
    """Tell whether segments in the order of their beginnings are certainly sorted as a whole."""
    ranges = [segment.ranges.get(grid.key[0]) for segment in named]
    if len(named) == 1:
        return True
    return all(
        one is not None and following is not None and one[1] < following[0]  # type: ignore[operator]
        for one, following in pairwise(ranges)
    )


def still_read(connection: sqlite3.Connection) -> set[str]:
    """Return the files that lost their name a short while ago."""
    retired = ledger.get_meta(connection, inner=True).get(RETIRED, {})
    now = time.time()
    # A clock that was set back makes nothing stay for longer.
    recent = {path: at for path, at in retired.items() if 0 <= now - at < STILL_READ}
    if recent != retired:
        ledger.set_meta(connection, {RETIRED: recent})
    return set(recent)


def retire(connection: sqlite3.Connection, gone: Collection[Segment]) -> None:
    """Let segments have no name any more; their files go when nobody can be reading them."""
    ledger.drop_segments(connection, [segment.path for segment in gone])
    retired = ledger.get_meta(connection, inner=True).get(RETIRED, {})
    now = time.time()
    ledger.set_meta(connection, {RETIRED: retired | {segment.path: now for segment in gone}})


def compact(folder: Path, writer: Writer, table: str, grid: Grid) -> None:
    """Write *table* anew, sorted by key in large segments, as far as it is not that already."""
    named = [s for s in ledger.get_segments(writer.connection, table) if s.rows]
    named.sort(key=lambda segment: beginning(segment, grid))
    todo = named[settled(named, grid) :]
    if len(todo) <= 1:
        return
    rows = scan(folder, todo)
    retire(writer.connection, todo)
    parts = cuts(rows, grid.key[0])
    for start in range(0, len(parts), AT_ONCE):
        some = parts[start : start + AT_ONCE]
        low, high = some[0][0], some[-1][1]
        here = pl.col(grid.key[0]).is_between(low, high)
        several = rows.filter(here).collect()
        for first, last in some:
            inside = pl.col(grid.key[0]).is_between(first, last)
            writer.add_segment(table, several.filter(inside))
    writer.add_segment(table, rows.filter(pl.col(grid.key[0]).is_null()).collect())


def settled(named: list[Segment], grid: Grid) -> int:
    """Return how many segments from the first on are large and apart from all others."""
    for number, (one, following) in enumerate(pairwise(named)):
        lowest = following.ranges.get(grid.key[0])
        highest = one.ranges.get(grid.key[0])
        apart = lowest and highest and highest[1] < lowest[0]  # type: ignore[operator]
        if one.rows < segments.ROWS // 2 or not apart:
            return number
    return len(named)


def cuts(rows: pl.LazyFrame, key: str) -> list[tuple[Any, Any]]:
    """Return ranges of *key* that each make a full segment."""
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


def scan(folder: Path, named: list[Segment]) -> pl.LazyFrame:
    """Return the rows of *named* segments, or raise a DatasetError about the first damaged one."""
    for segment in named:
        if reason := segment.damage(folder, thorough=True):
            raise DatasetError(
                f"{folder / segment.path} {reason}",
                hint="Run mend(): it forgets what was damaged, and the rest stays",
            )
    return pl.scan_parquet([folder / segment.path for segment in named], glob=False)


def prune(
    folder: Path,
    writer: Writer,
    table: str,
    grid: Grid,
    subjects: Collection[str] | None,
    first: int,
    last: int,
) -> None:
    """Forget the rows of some *subjects* (None: of all), *first* to *last*, and their coverage."""
    named = ledger.get_segments(writer.connection, table)
    if subjects is None and first <= 0 and last >= coverage.FARTHEST:
        retire(writer.connection, named)
        writer.forget(table)
    else:
        touched = [s for s in named if s.rows and s.may_have({grid.unit: (first, last)})]
        for segment in touched:
            rows = scan(folder, [segment])
            names = None if subjects is None else list(subjects)
            gone = coverage.inside(grid, names, [(first, last)], rows.collect_schema())
            left = rows.filter(~gone.fill_null(value=False)).collect()
            if left.height < segment.rows:
                retire(writer.connection, [segment])
                writer.add_segment(table, left)
    coverage.remove(writer.connection, table, subjects, first, last)
    ledger.set_meta(writer.connection, {FORGOTTEN: secrets.token_hex(8)})


def mend(folder: Path, writer: Writer, table: str, grid: Grid) -> None:
    """Forget all that a damaged segment may have had rows of; the rest of the table stays."""
    named = ledger.get_segments(writer.connection, table)
    damaged = [segment for segment in named if segment.damage(folder, thorough=True)]
    retire(writer.connection, damaged)
    for segment in damaged:
        if not segment.rows:
            continue
        low, high = segment.ranges.get(grid.unit, (0, coverage.FARTHEST))
        subjects = None
        if grid.subject is not None and grid.subject in segment.ranges:
            least, greatest = segment.ranges[grid.subject]
            covered = coverage.get(writer.connection, table)
            subjects = [s for s in covered if least <= type(least)(s) <= greatest]  # type: ignore[operator]
        prune(folder, writer, table, grid, subjects, int(low), int(high))
