"""Segments: Parquet files that are written once and never changed, and the writer of a commit."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.dataset import coverage, ledger, parquet_footer
from beaconframes.dataset.ledger import PRIVATE_FILE, PRIVATE_FOLDER, Segment, is_private
from beaconframes.errors import DatasetError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from beaconframes.dataset.coverage import Covered, Grid
    from beaconframes.sqlite_file import Database

ROW_GROUP = 131_072
WIDE_ROW_GROUP = 2_048  # for rows that are mostly text: reading a few of them decompresses little
WIDE = 8  # rows with more text columns than this are wide
ROWS = 2 * ROW_GROUP  # rows of a full segment, which a writer holds in memory
BYTES = 2**26  # memory of a full segment: with wide rows it has fewer rows

TABLE = re.compile(r"[a-z][a-z0-9_]{0,63}")
PATH = re.compile(r"[a-z][a-z0-9_]{0,63}/[0-9]{6,}-[0-9a-f]{12}\.parquet")

_LEADING = 2  # first columns whose range the ledger stores


class RowBuffer:
    """Rows that do not fill a file yet."""

    def __init__(self) -> None:
        self.frames: list[pl.DataFrame] = []
        self.rows = self.bytes = 0

    def add(self, frame: pl.DataFrame) -> None:
        """Add a frame."""
        self.frames.append(frame)
        self.rows += frame.height
        self.bytes += int(frame.estimated_size()) if frame.height else 0

    def take_all(self) -> list[pl.DataFrame]:
        """Return the frames, and clear the buffer."""
        frames = self.frames
        self.frames, self.rows, self.bytes = [], 0, 0
        return frames


class Writer:
    """Adds frames to a dataset in one commit; see ``Dataset.writing``."""

    def __init__(self, folder: Path, connection: Database) -> None:
        self.folder = folder
        self.connection = connection
        self._schemas: dict[str, pl.Schema] = {}
        self._buffers: dict[str, RowBuffer] = {}
        with connection.translate_errors():
            self.grids = coverage.decode_grids(ledger.get_meta(connection, inner=True))
            """The columns of subject and unit of each table with coverage."""
            self._number = ledger.next_number(connection)
        self.written: list[Segment] = []
        """The segments of this commit so far."""

    def add(self, table: str, frame: pl.DataFrame) -> None:
        """Append rows to a table.

        The frame must have the columns of the table. The first frame of a new table defines them,
        and may be empty. Without coverage, rows are stored in the order of adding.
        """
        if not is_table_name(table):
            raise UsageError(
                f"{table!r} is not a valid name of a table",
                hint="Use lower-case letters, digits and underscores, and start with a letter",
            )
        schema = self._schema(table, frame)
        if frame.schema != schema:
            raise UsageError(
                f"the rows do not fit table {table}: {_describe_difference(frame.schema, schema)}",
                hint="Pass a frame with the columns of the table, in their order",
            )
        buffer = self._buffers.setdefault(table, RowBuffer())
        buffer.add(frame)
        if buffer.rows >= ROWS:
            rows = pl.concat(buffer.take_all())
            for start in range(0, rows.height - ROWS + 1, ROWS):
                self._write(table, rows.slice(start, ROWS))
            buffer.add(rows.slice(rows.height - rows.height % ROWS))
        elif buffer.bytes >= BYTES:
            self._write(table, pl.concat(buffer.take_all()))

    def add_covered(self, table: str, rows: pl.DataFrame, grid: Grid, complete: Covered) -> None:
        """Add rows together with the coverage *complete*.

        Rows outside *complete* are ignored, and so are rows that were covered before. So it is safe
        to add the same rows twice, also from several processes.
        """
        if self.grids.get(table) != grid:
            if table in self.grids:
                raise UsageError(
                    f"table {table} is covered by other columns: {self.grids[table]}",
                    hint="Use the same grid, or prune the table first",
                )
            self.grids[table] = grid
            ledger.set_meta(self.connection, coverage.encode_grids(self.grids))
        if any(complete.values()):
            new = coverage.add(self.connection, table, complete)
            self.add(table, coverage.filter_covered(rows, grid, new))

    def add_segment(self, table: str, rows: pl.DataFrame) -> None:
        """Add *rows*, if there are any, as one separate segment."""
        if not rows.is_empty():
            self._write(table, rows)

    def add_file(self, segment: Segment, file: Path) -> None:
        """Add a segment of another dataset: its *file* is linked, or copied to another disk."""
        folder = self.folder / segment.table
        name = f"{self._number:06d}-{segment.sha256[:12]}.parquet"
        try:
            create_table_folder(self.folder, segment.table)
            try:
                os.link(file, folder / name)
            except OSError:
                draft = folder / f".{self._number:06d}.tmp"
                shutil.copyfile(file, draft)
                sync(draft)
                draft.replace(folder / name)
            sync(folder)
        except OSError as error:
            raise DatasetError(
                f"{file} cannot be added to {self.folder}: {error.strerror}",
                hint="The dataset is unchanged",
            ) from error
        self._list(replace(segment, path=f"{segment.table}/{name}"))

    def segments(self, table: str | None = None, *, limit: int = -1) -> list[Segment]:
        """Return the segments of one table, or of all, as this commit has them so far."""
        return ledger.get_segments(self.connection, table, limit=limit)

    def drop_table(self, table: str) -> None:
        """Remove the columns and the grid of a table whose segments were removed."""
        self._schemas.pop(table, None)
        self.grids.pop(table, None)
        ledger.set_meta(self.connection, coverage.encode_grids(self.grids))

    def has_table(self, table: str) -> bool:
        """Return whether the table exists, or will exist after this commit."""
        return table in self._schemas or bool(self.segments(table, limit=1))

    @property
    def meta(self) -> dict[str, Any]:
        """Return the metadata as this commit has it so far."""
        return ledger.get_meta(self.connection)

    def set_meta(self, facts: Mapping[str, Any]) -> None:
        """Set entries of ``meta`` in this commit."""
        ledger.set_meta(self.connection, facts)

    def flush(self) -> None:
        """Write the buffered rows; called at the end of ``Dataset.writing``."""
        for table, buffer in self._buffers.items():
            # An empty table stores its columns in an empty segment.
            if buffer.rows or not self.segments(table, limit=1):
                self._write(table, pl.concat(buffer.take_all()))
        self._buffers.clear()

    def _schema(self, table: str, frame: pl.DataFrame) -> pl.Schema:
        if table not in self._schemas:
            listed = self.segments(table, limit=1)
            schema = read_schema(self.folder, listed) if listed else frame.schema
            if schema is None:  # The first segment is damaged.
                schema = read_schema(self.folder, self.segments(table))
            if schema is None:
                raise DatasetError(
                    f"no segment of table {table} in {self.folder} can be read",
                    hint="Run verify() to list the damaged segments",
                )
            self._schemas[table] = schema
        return self._schemas[table]

    def _write(self, table: str, rows: pl.DataFrame) -> None:
        grid = self.grids.get(table)
        grid_columns: list[str] = []
        if grid is not None:
            grid_columns = [name for name in (grid.subject, grid.unit) if name is not None]
            leading = rows[grid.key[0]]
            # A sort of millions of sorted rows would take longer than writing them.
            if not (leading > leading.shift(1)).slice(1).all(ignore_nulls=False):
                rows = rows.sort(grid.key, nulls_last=True, maintain_order=True)
        try:
            segment = write_segment(self.folder, table, self._number, rows, grid_columns)
        except (OSError, pl.exceptions.PolarsError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise DatasetError(
                f"table {table} cannot be written to {self.folder}: {reason}",
                hint="The dataset is unchanged",
            ) from error
        self._list(segment)

    def _list(self, segment: Segment) -> None:
        ledger.add_segment(self.connection, self._number, segment)
        self.written.append(segment)
        self._number += 1


def find_damage(
    segment: Segment,
    folder: Path,
    *,
    thorough: bool,
    is_valid: Callable[[str], object] = PATH.fullmatch,
) -> str | None:
    """Return what is wrong with a segment, None if nothing is; *thorough* reads all of its file."""
    if not is_valid(segment.path):
        return "is not a valid path of a segment"
    if any((folder / above).is_symlink() for above in PurePosixPath(segment.path).parents[:-1]):
        return "is behind a symbolic link"
    try:
        status = (folder / segment.path).lstat()
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if not stat.S_ISREG(status.st_mode):
        return "is not a regular file"
    if status.st_size != segment.bytes:
        return f"has {status.st_size:,} bytes instead of {segment.bytes:,}"
    if thorough:
        try:
            if digest(folder / segment.path) != segment.sha256:
                return "does not have the content that was written"
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        return parquet_footer.find_invalid_claim(folder / segment.path, segment.rows)
    return None


def is_table_name(name: object) -> bool:
    """Return whether *name* is valid for a table: lower-case words joined by underscores."""
    return isinstance(name, str) and TABLE.fullmatch(name) is not None


def write_segment(
    folder: Path,
    table: str,
    number: int,
    frame: pl.DataFrame,
    range_columns: Iterable[str] = (),
) -> Segment:
    """Write a frame as a segment and make it durable; the caller lists it in the ledger.

    The ranges are those of *range_columns*, and of the first two columns.
    """
    table_folder = create_table_folder(folder, table)
    draft = table_folder / f".{number:06d}.tmp"
    texts = sum(dtype == pl.String for dtype in frame.schema.values())
    # One chunk, so that the bytes of the file do not depend on the division into frames.
    frame.rechunk().write_parquet(
        draft,
        compression="zstd",
        compression_level=1,  # higher: four times slower, and random hex gets no smaller
        statistics=True,
        row_group_size=WIDE_ROW_GROUP if texts > WIDE else ROW_GROUP,
    )
    if is_private(folder):
        draft.chmod(PRIVATE_FILE)
    sync(draft)
    sha256 = digest(draft)
    path = f"{table}/{number:06d}-{sha256[:12]}.parquet"
    draft.replace(folder / path)
    sync(table_folder)
    size = (folder / path).stat().st_size
    ranges = find_ranges(frame, [*frame.columns[:_LEADING], *range_columns])
    return Segment(table, path, frame.height, size, sha256, ranges)


def create_table_folder(folder: Path, table: str) -> Path:
    """Return the folder of a table, which is created if it is missing."""
    table_folder = folder / table
    if not table_folder.is_dir():
        table_folder.mkdir(mode=PRIVATE_FOLDER if is_private(folder) else 0o777)
        sync(folder)
    return table_folder


def read_schema(folder: Path, segments: Iterable[Segment]) -> pl.Schema | None:
    """Return the schema of the first readable one of *segments*, None if there is none."""
    for segment in segments:
        if not (folder / segment.path).is_file():
            continue  # a pipe has no end
        try:
            # `read_parquet_schema` takes a path with a bracket for a pattern.
            return pl.scan_parquet(folder / segment.path, glob=False).collect_schema()
        except (OSError, pl.exceptions.PolarsError):
            # Its damage is reported when its rows are read.
            continue
    return None


def sync(path: Path) -> None:
    """Write a file or a folder to the disk with fsync."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except PermissionError:
        return  # some systems cannot open folders, and need no fsync for them
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def find_ranges(
    frame: pl.DataFrame, names: Iterable[str]
) -> dict[str, tuple[int | str, int | str]]:
    """Return the minimum and the maximum of the columns *names* of integers, truths or text."""
    ranges: dict[str, tuple[int | str, int | str]] = {}
    for name in dict.fromkeys(names):
        dtype = frame.schema[name]
        if dtype.is_integer() or dtype in (pl.Boolean, pl.String):
            low, high = frame[name].min(), frame[name].max()
            if isinstance(low, int | str) and isinstance(high, int | str):
                ranges[name] = low, high
    return ranges


def _describe_difference(given: pl.Schema, expected: pl.Schema) -> str:
    """Return the difference of two schemas as text."""
    if missing := [name for name in expected if name not in given]:
        return f"{', '.join(missing)} missing"
    if extra := [name for name in given if name not in expected]:
        return f"{', '.join(extra)} not expected"
    changed = [f"{n} is {given[n]}, not {expected[n]}" for n in expected if given[n] != expected[n]]
    return ", ".join(changed) or "the order of the columns differs"
