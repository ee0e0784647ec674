"""SQLite files: how each of them is opened, locked, checked and set aside.

The ledger of a dataset, the shared rate limit and the lock of an export are SQLite files. No other
module opens one, and no exception of SQLite leaves this one: each becomes a `DatasetError`.

Only SQLite opens such a file. If a process closes any other descriptor of it, the system drops all
locks that the process has on it. SQLite locks with fcntl: a lock of flock would outlive a killed
process for as long as one of its forked children runs.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from beaconframes.errors import BeaconframesError, DatasetBusy, DatasetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Self

LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
DISK_FAILED = {
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}
DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class LockedFile(DatasetBusy):
    """Another process has locked the file for longer than this one waits."""


class DamagedFile(DatasetError):
    """SQLite cannot read the file."""


class Database:
    """An open SQLite file; every error names it. Without a path the database is in memory."""

    def __init__(
        self, path: Path | None, *, name: str = "", mode: str = "mode=rwc", timeout: float = 60.0
    ) -> None:
        """Open the file, whose *name* is for errors; wait *timeout* seconds for each lock."""
        self.path = Path() if path is None else path
        self.timeout = timeout
        self._name = name or str(path)
        address = f"file:{quote(str(self.path.absolute()))}?{mode}"
        with self.translate_errors():
            self._connection = sqlite3.connect(
                ":memory:" if path is None else address,
                uri=path is not None,
                timeout=timeout,
                isolation_level=None,
                check_same_thread=False,
            )

    @property
    def folder(self) -> Path:
        """Return the folder of the file."""
        return self.path.parent

    @property
    def change_count(self) -> int:
        """Return how many rows this connection has inserted, changed or deleted."""
        return self._connection.total_changes

    def execute(
        self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()
    ) -> list[tuple[Any, ...]]:
        """Execute a statement, and return all of its rows."""
        with self.translate_errors():
            return self._connection.execute(statement, values).fetchall()

    def execute_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Execute a statement once for each of *rows*."""
        with self.translate_errors():
            self._connection.executemany(statement, rows)

    @contextmanager
    def transaction(self, kind: str = "IMMEDIATE") -> Iterator[None]:
        """Commit what the block changes, or nothing after an exception, which passes unchanged."""
        self.execute(f"BEGIN {kind}")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            with suppress(DatasetError):
                self.execute("ROLLBACK")
            raise

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Raise a DatasetError for errors of SQLite, and for values that cannot be parsed."""
        try:
            yield
        except BeaconframesError:
            raise
        except (sqlite3.Error, ValueError, TypeError, AttributeError, LookupError) as error:
            # A damaged file may hold unreadable text, or values of another type.
            raise self._translate(error) from error

    def _translate(self, error: Exception) -> DatasetError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in LOCKED:
            return LockedFile(
                f"{self.folder} is being written to by another process",
                hint=f"Gave up after {self.timeout:.0f} seconds. Try again when it has finished",
            )
        if code == sqlite3.SQLITE_FULL:
            return DatasetBusy(f"{self.folder} cannot be written to: the disk is full")
        if code in DISK_FAILED:
            return DatasetBusy(
                f"{self._name} cannot be used: {error}",
                hint="Check whether the disk is full, read-only or disconnected",
            )
        kind = DamagedFile if code in DAMAGED else DatasetError
        return kind(
            f"{self._name} is damaged: {error}",
            hint="Restore it from a copy, or create the dataset again",
        )

    def is_sound(self) -> bool:
        """Return whether SQLite finds no damage in the file; reads all of it."""
        try:
            return self.execute("PRAGMA integrity_check") == [("ok",)]
        except DamagedFile:
            return False

    def close(self) -> None:
        """Close the file, which releases its locks."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def lock_file(path: Path, *, timeout: float = 0.0) -> Database:
    """Return a database that holds the exclusive lock of a file until it is closed.

    The file is created if it is missing. The system releases the lock when the process ends.
    """
    database = Database(path, timeout=timeout)
    try:
        database.execute("BEGIN EXCLUSIVE")
    except BaseException:
        database.close()
        raise
    return database


def set_aside(path: Path, *, timeout: float) -> Path | None:
    """Rename a damaged file and return its new name; None if it is not damaged (any more).

    Of several processes that notice the damage, one renames the file.
    """
    with closing(lock_file(path.with_name(f"{path.name}.lock"), timeout=timeout)):
        if not path.exists():
            return None
        with Database(path, timeout=timeout) as database:
            if database.is_sound():
                return None
        moved = path.with_name(f"{path.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
        # The file itself last: until then, no process begins a new one beside the old journal.
        for suffix in ("-journal", "-wal", "-shm", ""):
            with suppress(FileNotFoundError):
                path.with_name(f"{path.name}{suffix}").replace(f"{moved}{suffix}")
        return moved
