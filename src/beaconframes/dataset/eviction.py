"""Eviction: the least recently used segments are removed until a dataset fits into a limit.

The time of use of a segment is the modification time of its file. A reader that needs files later
sets it to a time in the future: until then they stay.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from beaconframes.dataset import coverage, ledger, maintenance, segments

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from beaconframes.dataset.coverage import PruneMark
    from beaconframes.dataset.ledger import LedgerConnection
    from beaconframes.dataset.segments import Writer

RESERVED_SECONDS = 3_600
"""Longest time for which a reader keeps files that it needs later."""


class Shrinkage(NamedTuple):
    """The result of an eviction: whether the limit holds, and the prune marks around it."""

    fits: bool
    mark_before: PruneMark | None = None
    mark_after: PruneMark | None = None


def evict(writer: Writer, limit: int, used_since: int) -> tuple[set[str], bool]:
    """Remove segments until the files have at most *limit* bytes.

    Segments used since the time *used_since* stay. Returns the files to delete after the commit,
    and whether the limit holds.
    """
    folder = writer.folder
    grids = coverage.decode_grids(ledger.get_meta(writer.connection, inner=True))
    deleted = release_retired(folder, writer.connection)
    while count_bytes(folder, deleted) > limit:
        unused = [
            (at, segment.path, segment)
            for segment in ledger.get_segments(writer.connection)
            if segment.rows and segment.table in grids
            if (at := time_of_use(folder, segment.path)) < used_since
        ]
        if not unused:
            return deleted, False
        _, _, oldest = min(unused)
        grid = grids[oldest.table]
        if segments.find_damage(oldest, folder, thorough=True):
            maintenance.remove_damaged(writer, oldest.table, grid)
        else:
            units = coverage.find_covered(pl.read_parquet(folder / oldest.path), grid)
            maintenance.remove_units(writer, oldest.table, grid, units)
        deleted |= release_retired(folder, writer.connection)
    return deleted, True


def release_retired(folder: Path, connection: LedgerConnection) -> set[str]:
    """Remove retired files from the ledger, except reserved ones, and return them."""
    retired = ledger.get_meta(connection, inner=True).get(maintenance.RETIRED, {})
    now = time.time_ns()
    released = {path for path in retired if time_of_use(folder, path) <= now}
    if released:
        rest = {path: at for path, at in retired.items() if path not in released}
        ledger.set_meta(connection, {maintenance.RETIRED: rest})
    return released


def count_bytes(folder: Path, without: Collection[str] = ()) -> int:
    """Return the size of the files of a dataset, *without* some of them.

    The log of the ledger does not count: it exists only while the ledger is open.
    """
    size = 0
    for path in folder.rglob("*"):
        # Another process may delete a file meanwhile.
        with suppress(FileNotFoundError):
            is_log = path.name.startswith(f"{ledger.NAME}-")
            if path.is_file() and not is_log and str(path.relative_to(folder)) not in without:
                size += path.lstat().st_size
    return size


def time_of_use(folder: Path, path: str) -> int:
    """Return the time at which a file was used, in nanoseconds; 0 if it is missing."""
    with suppress(OSError):
        at = (folder / path).lstat().st_mtime_ns
        # A later time means that the clock was set back.
        return at if at <= time.time_ns() + RESERVED_SECONDS * 10**9 else 0
    return 0
