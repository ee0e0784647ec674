"""The writer of one commit: it collects frames into segments, and lists them in the ledger."""

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


class _Buffer:
    """Rows of a table that do not fill a segment yet."""

    def __init__(self) -> None:
        self.frames: list[pl.DataFrame] = []
        self.rows = self.bytes = 0

    def add(self, frame: pl.DataFrame) -> None:
        self.frames.append(frame)
        self.rows += frame.height
        self.bytes += int(frame.estimated_size()) if frame.height else 0

    def take_all(self) -> pl.DataFrame:
        """Return the rows as one frame, and clear the buffer."""
        rows = pl.concat(self.frames)
        self.frames, self.rows, self.bytes = [], 0, 0
        return rows


class Writer:
    """Adds frames to a dataset in one commit; see ``Dataset.writing``."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self._folder = folder
        self.connection = connection
        self._schemas: dict[str, pl.Schema] = {}
        self._buffers: dict[str, _Buffer] = {}
        self._grids = coverage.decode_grids(ledger.get_meta(connection, inner=True))
        self._number = ledger.next_number(connection)

    def add(self, table: str, frame: pl.DataFrame) -> None:
        """Append rows to a table.

        The frame must have the columns of the table. The first frame of a new table defines them,
        and may be empty. Without coverage, rows are stored in the order of adding.
        """
        if not segments.is_table_name(table):
            raise UsageError(
                f"{table!r} is not a valid name of a table",
                hint="Use lower-case letters, digits and underscores, and start with a letter",
            )
        schema = self._schema(table, frame)
        if frame.schema != schema:
            raise UsageError(
                f"the rows do not fit table {table}: {_describe_difference(frame.schema, schema)}",
                hint="Give a frame with the columns of the table, in their order",
            )
        buffer = self._buffers.setdefault(table, _Buffer())
        buffer.add(frame)
        if buffer.rows >= segments.ROWS:
            rows = buffer.take_all()
            for start in range(0, rows.height - segments.ROWS + 1, segments.ROWS):
                self._write(table, rows.slice(start, segments.ROWS))
            buffer.add(rows.slice(rows.height - rows.height % segments.ROWS))
        elif buffer.bytes >= segments.BYTES:
            self._write(table, buffer.take_all())

    def add_covered(self, table: str, rows: pl.DataFrame, grid: Grid, complete: Covered) -> None:
        """Add rows together with the coverage *complete*.

        Rows outside *complete* are ignored, and so are rows that were covered before. So it is safe
        to add the same rows twice, also from several processes.
        """
        if self._grids.get(table) != grid:
            if table in self._grids:
                raise UsageError(
                    f"table {table} is covered by other columns: {self._grids[table]}",
                    hint="Use the same grid, or prune the table first",
                )
            self._grids[table] = grid
            ledger.set_meta(self.connection, coverage.encode_grids(self._grids))
        intervals = [part for parts in complete.values() for part in parts]
        if not intervals:
            return
        first, last = min(part[0] for part in intervals), max(part[1] for part in intervals)
        with ledger.translate_errors(self._folder):
            known = coverage.read(self.connection, table, complete, first, last)
            coverage.add(self.connection, table, complete)
        rows = coverage.filter_covered(rows, grid, complete)
        self.add(table, coverage.filter_covered(rows, grid, known, inside=False) if known else rows)

    def add_segment(self, table: str, rows: pl.DataFrame) -> None:
        """Add *rows*, if there are any, as one separate segment."""
        if not rows.is_empty():
            self._write(table, rows)

    def drop_table(self, table: str) -> None:
        """Forget the columns and the grid of a table whose segments were removed."""
        self._schemas.pop(table, None)
        self._grids.pop(table, None)
        ledger.set_meta(self.connection, coverage.encode_grids(self._grids))

    def has_table(self, table: str) -> bool:
        """Return whether the table exists, or will after this commit."""
        return table in self._schemas or bool(self._segments(table))

    def set_meta(self, facts: Mapping[str, Any]) -> None:
        """Set facts of ``meta`` in this commit."""
        ledger.set_meta(self.connection, facts)

    def flush(self) -> None:
        """Write the buffered rows; called at the end of ``Dataset.writing``."""
        for table, buffer in self._buffers.items():
            # An empty table stores its columns in an empty segment.
            if buffer.rows or not self._segments(table):
                self._write(table, buffer.take_all())

    def _schema(self, table: str, frame: pl.DataFrame) -> pl.Schema:
        if table not in self._schemas:
            listed = self._segments(table)
            schema = segments.read_schema(self._folder, listed) if listed else frame.schema
            if schema is None:
                raise DatasetError(
                    f"no segment of table {table} in {self._folder} can be read",
                    hint="Run verify()",
                )
            self._schemas[table] = schema
        return self._schemas[table]

    def _segments(self, table: str) -> list[segments.Segment]:
        return ledger.get_segments(self.connection, table)

    def _write(self, table: str, rows: pl.DataFrame) -> None:
        grid = self._grids.get(table)
        grid_columns = () if grid is None else tuple(filter(None, (grid.subject, grid.unit)))
        if grid is not None:
            rows = rows.sort(grid.key, nulls_last=True, maintain_order=True)
        try:
            segment = segments.write_segment(self._folder, table, self._number, rows, grid_columns)
        except (OSError, pl.exceptions.PolarsError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise DatasetError(
                f"table {table} cannot be written to {self._folder}: {reason}",
                hint="The dataset is unchanged",
            ) from error
        ledger.add_segment(self.connection, self._number, segment)
        self._number += 1


def _describe_difference(given: pl.Schema, wanted: pl.Schema) -> str:
    """Return in a few words how two schemas differ."""
    if missing := [name for name in wanted if name not in given]:
        return f"{', '.join(missing)} missing"
    if extra := [name for name in given if name not in wanted]:
        return f"{', '.join(extra)} not expected"
    changed = [f"{n} is {given[n]}, not {wanted[n]}" for n in wanted if given[n] != wanted[n]]
    return ", ".join(changed) or "the order of the columns differs"
