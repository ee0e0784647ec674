"""The ledger: an SQLite file with the segments, the coverage and the metadata of a dataset.

Each operation opens its own connection, so a dataset can be used from any thread or process and
need not be closed. A commit holds the write lock from start to end: there is one writer at a time,
and unlisted files in the folder belong to no commit in progress.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from beaconframes.errors import DatasetError, UsageError
from beaconframes.sqlite_file import Database

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

NAME = "ledger.sqlite"
DRAFT = ".ledger-"
"""The start of the name of a ledger that is being created."""
FORMAT = 1
LAST_NUMBER = "_last_number"
COMMITS = "_commits"
"""The metadata with the number of commits that changed the ledger."""
PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600

_APPLICATION = 0x62666473  # "bfds": identifies a ledger among SQLite files
# SQLite has no checksums: it does not notice a changed number. So each table has an index of all
# its columns, and the integrity check of SQLite compares both.
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX meta_copy ON meta (value, key);
CREATE TABLE segments (
    number INTEGER PRIMARY KEY,
    table_name TEXT NOT NULL,
    path TEXT NOT NULL UNIQUE,
    rows INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    ranges TEXT NOT NULL
);
CREATE INDEX segments_of_table
    ON segments (table_name, number, path, rows, bytes, sha256, ranges);
CREATE TABLE coverage (
    table_name TEXT NOT NULL,
    subject TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (table_name, subject, first),
    CHECK (first <= last)
) WITHOUT ROWID;
CREATE INDEX coverage_copy ON coverage (last, first, subject, table_name);
"""


@dataclass(frozen=True)
class Segment:
    """One file of a table, as the ledger lists it.

    ``path`` is relative to the dataset, with forward slashes. ``ranges`` has the lowest and the
    highest value of the first two columns, and of the grid's columns, where these are integers or
    text.
    """

    table: str
    path: str
    rows: int
    bytes: int
    sha256: str
    ranges: Mapping[str, tuple[int | str, int | str]] = field(default_factory=dict)

    def may_contain(self, bounds: Mapping[str, tuple[int, int]]) -> bool:
        """Return whether the file may contain rows whose columns are within *bounds*."""
        for name, (low, high) in bounds.items():
            known = self._find_numbers(name)
            if known is not None and (known[1] < low or high < known[0]):
                return False
        return True

    def is_within(self, column: str, parts: Iterable[tuple[int, int]]) -> bool:
        """Return whether *column* is known to be inside one of *parts* in all rows."""
        known = self._find_numbers(column)
        return known is not None and any(
            low <= known[0] and known[1] <= high for low, high in parts
        )

    def _find_numbers(self, column: str) -> tuple[int, int] | None:
        """Return the range of a column of numbers, if it is known."""
        low, high = self.ranges.get(column, ("", ""))
        return (low, high) if isinstance(low, int) and isinstance(high, int) else None


def create(folder: Path, meta: Mapping[str, Any]) -> None:
    """Create the ledger of an empty dataset, atomically; FileExistsError if it exists."""
    draft = folder / f"{DRAFT}{secrets.token_hex(8)}.tmp"
    try:
        with Database(draft, name=f"the ledger of {folder}") as connection:
            # In WAL mode readers never wait for a writer. On a file system without shared memory
            # SQLite keeps its rollback journal, and readers wait for a moment.
            connection.execute("PRAGMA journal_mode = WAL")
            with connection.transaction():
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                set_meta(connection, meta)
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")
        if is_private(folder):
            draft.chmod(PRIVATE_FILE)
        try:
            # Of two processes that create it, one does.
            os.link(draft, folder / NAME)
        except FileExistsError:
            raise
        except OSError:  # The file system has no links.
            draft.replace(folder / NAME)
    finally:
        draft.unlink(missing_ok=True)


def exists(folder: Path) -> bool:
    """Return whether *folder* has a ledger; False if it cannot be read."""
    return os.path.isfile(folder / NAME)  # noqa: PTH113 - Path.is_file raises PermissionError


def check_format(folder: Path) -> None:
    """Raise DatasetError unless the folder has a ledger that this version can read."""
    if not folder.is_dir():
        reason = "is a file, not a dataset" if folder.exists() else "does not exist"
        raise DatasetError(f"{folder} {reason}", hint="Pass the folder of a dataset")
    if not (folder / NAME).is_file():
        raise DatasetError(
            f"{folder} is not a dataset: it has no {NAME}",
            hint="Pass the folder of a simulation, an export or a store",
        )
    with read_transaction(folder) as connection:
        ((application, version),) = connection.execute(
            "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version"
        )
        if application != _APPLICATION:
            raise DatasetError(
                f"{folder} is not a dataset: its {NAME} belongs to another program",
                hint="Pass the folder of a simulation, an export or a store",
            )
        if version != FORMAT:
            raise DatasetError(
                f"{folder} has format version {version}, this beaconframes reads version {FORMAT}",
                hint="Install a newer beaconframes, or create the dataset again",
            )
        ((others,),) = connection.execute(
            "SELECT count(*) FROM sqlite_schema WHERE type IN ('view', 'trigger')"
        )
        if others:
            # beaconframes creates none, and one from elsewhere would run with every query.
            raise DatasetError(
                f"the ledger of {folder} is damaged: it has views or triggers",
                hint="Restore it from a copy, or create the dataset again",
            )
        connection.execute("SELECT count(*) FROM segments")


def read_file_states(folder: Path) -> tuple[tuple[int, ...], ...]:
    """Return times and sizes of the ledger and of its write-ahead log, without opening them.

    Only if they differ, `read_version` can differ.
    """
    states = []
    path = os.fspath(folder / NAME)
    for name in (path, f"{path}-wal"):
        try:
            # Path.stat takes three times as long, and each request needs this.
            status = os.stat(name)  # noqa: PTH116
        except FileNotFoundError:
            continue
        # A reader creates an empty log, and removes it.
        if status.st_size:
            states.append((status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(states)


def read_version(folder: Path, name: str = COMMITS) -> tuple[int, int]:
    """Return a value that changes with each commit that counts in *name*, and with the file."""
    with read_transaction(folder) as connection:
        count = get_meta(connection, inner=True).get(name, 0)
    return count, (folder / NAME).stat().st_ino


def increase(connection: Database, name: str) -> None:
    """Increase the number in the metadata *name* of the format."""
    with connection.translate_errors():
        set_meta(connection, {name: get_meta(connection, inner=True).get(name, 0) + 1})


def is_private(folder: Path) -> bool:
    """Return whether only the owner may read *folder*, and so its files."""
    return stat.S_IMODE(folder.stat().st_mode) & 0o077 == 0


@contextmanager
def read_transaction(folder: Path) -> Iterator[Database]:
    """Open the ledger for reading; the block sees one consistent state."""
    # A reader of a write-ahead log needs write access to the files beside it.
    mode = "mode=rw"
    if not os.access(folder, os.W_OK):
        log = folder / f"{NAME}-wal"
        # A process that was killed has left its last commits there.
        mode = "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"
    with (
        _connect(folder, mode) as connection,
        connection.translate_errors(),
        connection.transaction("DEFERRED"),
    ):
        yield connection


@contextmanager
def write_transaction(folder: Path) -> Iterator[Database]:
    """Hold the write lock of the ledger; commit at the end of the block, or roll back."""
    if not os.access(folder, os.W_OK):
        raise DatasetError(f"{folder} cannot be written to", hint="Check its owner and permissions")
    with _connect(folder, "mode=rw") as connection:
        connection.execute("PRAGMA synchronous = FULL")
        with connection.transaction():
            yield connection
            if connection.change_count:
                increase(connection, COMMITS)


def get_meta(connection: Database, *, inner: bool = False) -> dict[str, Any]:
    """Return the metadata of the data, or with *inner* that of the format itself, by name."""
    with connection.translate_errors():
        rows = connection.execute("SELECT key, value FROM meta ORDER BY key")
        return {key: json.loads(value) for key, value in rows if key.startswith("_") == inner}


def set_meta(connection: Database, facts: Mapping[str, Any]) -> None:
    """Set some metadata; other entries stay unchanged."""
    try:
        rows = [(key, json.dumps(value, sort_keys=True)) for key, value in facts.items()]
    except (TypeError, ValueError) as error:
        raise UsageError(f"meta has a value that cannot be written as JSON: {error}") from error
    connection.execute_many("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)


def get_segments(
    connection: Database, table: str | None = None, *, limit: int = -1
) -> list[Segment]:
    """Return the segments of one table, or of all, in the order of writing; at most *limit*."""
    condition = "" if table is None else "WHERE table_name = :table"
    with connection.translate_errors():
        entries = connection.execute(
            "SELECT table_name, path, rows, bytes, sha256, ranges FROM segments"  # noqa: S608 - a constant
            f" {condition} ORDER BY number LIMIT :limit",
            {"table": table, "limit": limit},
        )
        segments = []
        for name, path, rows, size, sha256, text in entries:
            ranges = {column: tuple(ends) for column, ends in json.loads(text).items()}
            segments.append(Segment(name, path, rows, size, sha256, ranges))
        return segments


def add_segment(connection: Database, number: int, segment: Segment) -> None:
    """List a segment, which adds its rows to the dataset."""
    cells = {**vars(segment), "ranges": json.dumps(segment.ranges), "number": number}
    connection.execute(
        "INSERT INTO segments VALUES (:number, :table, :path, :rows, :bytes, :sha256, :ranges)",
        cells,
    )


def drop_segments(connection: Database, paths: Collection[str]) -> None:
    """Remove segments from the ledger, and with them their rows."""
    set_meta(connection, {LAST_NUMBER: next_number(connection) - 1})
    connection.execute_many("DELETE FROM segments WHERE path = ?", [(path,) for path in paths])


def next_number(connection: Database) -> int:
    """Return the number of the next segment; no number is used twice."""
    ((last,),) = connection.execute("SELECT max(number) FROM segments")
    dropped = get_meta(connection, inner=True).get(LAST_NUMBER, 0)
    return max(int(last or 0), int(dropped)) + 1


def _connect(folder: Path, mode: str) -> Database:
    return Database(folder / NAME, name=f"the ledger of {folder}", mode=mode)
