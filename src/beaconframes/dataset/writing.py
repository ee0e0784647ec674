"""A commit under way: frames are collected into segments, and all of them are named at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.dataset import coverage, ledger, segments
from beaconframes.errors import DatasetError, UsageError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from pathlib import Path

    from beaconframes.dataset.coverage import Covered, Grid


class _Waiting:
    """Rows of a table that do not fill a segment yet."""

    def __init__(self) -> None:
        self.frames: list[pl.DataFrame] = []
        self.rows = self.bytes = 0

    def add(self, frame: pl.DataFrame) -> None:
        self.frames.append(frame)
        self.rows += frame.height
        self.bytes += int(frame.estimated_size()) if frame.height else 0

    def take(self) -> pl.DataFrame:
        """Return the rows as one frame, and wait for new ones."""
        rows = pl.concat(self.frames)
        self.frames, self.rows, self.bytes = [], 0, 0
        return rows


class Writer:
    """Take frames in for one commit; see ``Dataset.writing``."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self._folder = folder
        self.connection = connection
        self._schemas: dict[str, pl.Schema] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._grids = coverage.get_grids(ledger.get_meta(connection, inner=True))
        self._number = ledger.next_number(connection)

    def add(self, table: str, frame: pl.DataFrame) -> None:
        """Add rows to a table, after those that it has.

        The frame has the columns of the table; the first frame of a new table decides what these
        are, and may have no rows. Rows are stored in the order in which they come.
        """
        if not segments.is_table(table):
            raise UsageError(
                f"{table!r} is no name for a table",
                hint="Names are lower-case letters, digits and underscores, a letter first",
            )
        schema = self._schema(table, frame)
        if frame.schema != schema:
            raise UsageError(
                f"the rows do not fit table {table}: {_difference(frame.schema, schema)}",
                hint="Give a frame with the columns of the table, in their order",
            )
        waiting = self._waiting.setdefault(table, _Waiting())
        waiting.add(frame)
        if waiting.rows >= segments.ROWS:
            rows = waiting.take()
            for start in range(0, rows.height - segments.ROWS + 1, segments.ROWS):
                self._write(table, rows.slice(start, segments.ROWS))
            waiting.add(rows.slice(rows.height - rows.height % segments.ROWS))
        elif waiting.bytes >= segments.BYTES:
            self._write(table, waiting.take())

    def keep(self, table: str, rows: pl.DataFrame, grid: Grid, complete: Covered) -> None:
        """Add rows together with the fact that what they are of is *complete*.

        Of *rows* those count whose subject and unit are complete by that, and were not before: it
        does no harm to bring something twice, also when another process has just brought it.
        """
        if self._grids.get(table) != grid:
            if table in self._grids:
                raise UsageError(f"table {table} is covered by other columns than these")
            self._grids[table] = grid
            ledger.set_meta(self.connection, coverage.told(self._grids))
        runs = [run for parts in complete.values() for run in parts]
        if not runs:
            return
        first, last = min(run[0] for run in runs), max(run[1] for run in runs)
        with ledger.judged(self._folder):
            known = coverage.get(self.connection, table, complete, first, last)
            coverage.add(self.connection, table, complete)
        here = coverage.held(rows, grid, complete)
        self.add(table, here if not known else coverage.held(here, grid, known, inside=False))

    def add_segment(self, table: str, rows: pl.DataFrame) -> None:
        """Add *rows*, if there are any, as one segment of their own."""
        if not rows.is_empty():
            self._write(table, rows)

    def forget(self, table: str) -> None:
        """Let the table have no columns any more, as if it had never been."""
        self._schemas.pop(table, None)
        self._grids.pop(table, None)
        ledger.set_meta(self.connection, coverage.told(self._grids))

    def has(self, table: str) -> bool:
        """Tell whether the table exists, or will when this commit ends."""
        return table in self._schemas or bool(self._known(table))

    def describe(self, facts: Mapping[str, Any]) -> None:
        """Set facts of ``meta`` together with the rows of this commit."""
        ledger.set_meta(self.connection, facts)

    def finish(self) -> None:
        """Write what is still waiting. Called at the end of ``Dataset.writing``."""
        for table, waiting in self._waiting.items():
            # A table without rows keeps its columns in a segment without rows.
            if waiting.rows or not self._known(table):
                self._write(table, waiting.take())

    def _schema(self, table: str, frame: pl.DataFrame) -> pl.Schema:
        if table not in self._schemas:
            known = self._known(table)
            schema = segments.schema_of(self._folder, known) if known else frame.schema
            if schema is None:
                raise DatasetError(
                    f"nothing of table {table} in {self._folder} can be read", hint="Run verify()"
                )
            self._schemas[table] = schema
        return self._schemas[table]

    def _known(self, table: str) -> list[segments.Segment]:
        return ledger.get_segments(self.connection, table)

    def _write(self, table: str, rows: pl.DataFrame) -> None:
        grid = self._grids.get(table)
        ranged = () if grid is None else tuple(filter(None, (grid.subject, grid.unit)))
        if grid is not None:
            rows = rows.sort(grid.key, nulls_last=True, maintain_order=True)
        try:
            segment = segments.write(self._folder, table, self._number, rows, ranged)
        except (OSError, pl.exceptions.PolarsError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise DatasetError(
                f"table {table} cannot be written to {self._folder}: {reason}",
                hint="What was there before is unchanged",
            ) from error
        ledger.add_segment(self.connection, self._number, segment)
        self._number += 1


def _difference(given: pl.Schema, wanted: pl.Schema) -> str:
    """Say in a few words how two schemas differ."""
    if missing := [name for name in wanted if name not in given]:
        return f"{', '.join(missing)} missing"
    if extra := [name for name in given if name not in wanted]:
        return f"{', '.join(extra)} not known"
    changed = [f"{n} is {given[n]}, not {wanted[n]}" for n in wanted if given[n] != wanted[n]]
    return ", ".join(changed) or "the order of the columns differs"
