"""The ledger: an SQLite file that says which segments exist, what is covered and whose data it is.

A connection lives as long as one operation, so a dataset can be used from any thread or process
and has nothing to close. The write lock is held for a whole commit: there is one writer at a time,
and what it finds unnamed in the folder is nobody's work in progress.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from beaconframes.dataset.segments import PRIVATE_FILE, Segment, is_private
from beaconframes.errors import BeaconframesError, DatasetBusy, DatasetError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

NAME = "ledger.sqlite"
FORMAT = 1
LAST_NUMBER = "_last_number"

OF_DISKS = ("disk I/O", "unable to open", "readonly")
"""What SQLite says when it is not the fault of the file."""

_APPLICATION = 0x62666473  # "bfds": tells our ledger from any other SQLite file
_PATIENCE = 60.0  # seconds that a writer waits for another one
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE segments (
    number INTEGER PRIMARY KEY,
    table_name TEXT NOT NULL,
    path TEXT NOT NULL UNIQUE,
    rows INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    ranges TEXT NOT NULL
);
CREATE INDEX segments_of_table ON segments (table_name, number);
CREATE TABLE coverage (
    table_name TEXT NOT NULL,
    subject TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (table_name, subject, first),
    CHECK (first <= last)
) WITHOUT ROWID;
"""


def create(folder: Path, meta: Mapping[str, Any]) -> None:
    """Create the ledger of an empty dataset; it is whole, or it is not there."""
    draft = folder / f".ledger-{secrets.token_hex(8)}.tmp"
    try:
        with judged(folder), closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            # Readers then never wait for a writer. Where the file system has no shared memory,
            # SQLite stays with its rollback journal, and they wait for a moment.
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN")
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            set_meta(connection, meta)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
            connection.execute("COMMIT")
        if is_private(folder):
            draft.chmod(PRIVATE_FILE)
        draft.replace(folder / NAME)
    finally:
        draft.unlink(missing_ok=True)


def check(folder: Path) -> None:
    """Raise a DatasetError unless the folder has a ledger that this version can read."""
    if not folder.is_dir():
        what = "is a file, not a dataset" if folder.exists() else "does not exist"
        raise DatasetError(f"{folder} {what}", hint="A dataset is a folder with a ledger.sqlite")
    if not (folder / NAME).is_file():
        raise DatasetError(
            f"{folder} is not a dataset: it has no {NAME}",
            hint="Give the folder that a simulation, an export or a store was written to",
        )
    with reading(folder) as connection:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != _APPLICATION:
            raise DatasetError(f"{folder} is not a dataset: its {NAME} belongs to another program")
        if version != FORMAT:
            raise DatasetError(
                f"{folder} has format version {version}, this beaconframes knows {FORMAT}",
                hint="Install a newer beaconframes, or make the dataset anew",
            )
        (others,) = connection.execute(
            "SELECT count(*) FROM sqlite_schema WHERE type IN ('view', 'trigger')"
        ).fetchone()
        if others:
            # One of ours has none, and in another's they would run with every question.
            raise DatasetError(f"the ledger of {folder} is damaged: it has views or triggers")
        connection.execute("SELECT count(*) FROM segments").fetchone()


def is_sound(folder: Path) -> bool:
    """Tell whether the ledger holds together; reads all of it."""
    try:
        with reading(folder) as connection:
            get_segments(connection)
            return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    except DatasetBusy:
        return True
    except DatasetError:
        return False


@contextmanager
def reading(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open the ledger for one reading; everything read in the block is of one moment."""
    # A reader, too, joins the write-ahead log. Where nobody can write there is no log to join.
    mode = "mode=rw" if os.access(folder, os.W_OK) else "immutable=1"
    with judged(folder), closing(_connect(folder, mode)) as connection:
        connection.execute("BEGIN")
        yield connection
        connection.execute("COMMIT")


@contextmanager
def writing(folder: Path) -> Iterator[sqlite3.Connection]:
    """Hold the write lock of the ledger; commit at the end of the block, or not at all."""
    if not os.access(folder, os.W_OK):
        raise DatasetError(f"{folder} cannot be written to", hint="Check its owner and permissions")
    with judged(folder):
        connection = _connect(folder, "mode=rw")
    with closing(connection):
        with judged(folder):
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
        # What the block raises passes through: it is not the ledger's. Closing rolls back.
        yield connection
        with judged(folder):
            connection.execute("COMMIT")


def get_meta(connection: sqlite3.Connection, *, inner: bool = False) -> dict[str, Any]:
    """Return the facts about the data, by name; those about the dataset itself when *inner*."""
    rows = connection.execute("SELECT key, value FROM meta ORDER BY key")
    return {key: json.loads(value) for key, value in rows if key.startswith("_") == inner}


def set_meta(connection: sqlite3.Connection, facts: Mapping[str, Any]) -> None:
    """Set facts about the data; others stay as they are."""
    try:
        rows = [(key, json.dumps(value, sort_keys=True)) for key, value in facts.items()]
    except (TypeError, ValueError) as error:
        raise UsageError(f"meta holds what JSON cannot: {error}") from error
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)


def get_segments(connection: sqlite3.Connection, table: str | None = None) -> list[Segment]:
    """Return the segments of one table, or of all, in the order in which they were written."""
    found = connection.execute(
        "SELECT table_name, path, rows, bytes, sha256, ranges FROM segments"
        " WHERE ?1 IS NULL OR table_name = ?1 ORDER BY number",
        (table,),
    )
    return [
        Segment(table, path, rows, size, sha256, {n: tuple(r) for n, r in json.loads(text).items()})
        for table, path, rows, size, sha256, text in found
    ]


def add_segment(connection: sqlite3.Connection, number: int, segment: Segment) -> None:
    """Name a segment, so that it exists."""
    connection.execute(
        "INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            number,
            segment.table,
            segment.path,
            segment.rows,
            segment.bytes,
            segment.sha256,
            json.dumps(segment.ranges),
        ),
    )


def drop_segments(connection: sqlite3.Connection, paths: Iterable[str]) -> None:
    """Name segments no longer, so that they do not exist any more."""
    set_meta(connection, {LAST_NUMBER: next_number(connection) - 1})
    connection.executemany("DELETE FROM segments WHERE path = ?", [(path,) for path in paths])


def next_number(connection: sqlite3.Connection) -> int:
    """Return the number of the next segment; numbers are never used twice."""
    (last,) = connection.execute("SELECT max(number) FROM segments").fetchone()
    dropped = get_meta(connection, inner=True).get(LAST_NUMBER, 0)
    return max(int(last or 0), int(dropped)) + 1


def _connect(folder: Path, mode: str) -> sqlite3.Connection:
    address = f"file:{quote(str((folder / NAME).absolute()))}?{mode}"
    return sqlite3.connect(address, uri=True, timeout=_PATIENCE, isolation_level=None)


@contextmanager
def judged(folder: Path) -> Iterator[None]:
    """Turn what SQLite raises into a DatasetError that says what to do."""
    try:
        yield
    except BeaconframesError:
        raise
    except (sqlite3.Error, ValueError, TypeError, AttributeError, LookupError) as error:
        # What is damaged may be text that cannot be read, or a value of another type.
        text = str(error)
        if "locked" in text or "busy" in text:
            raise DatasetBusy(
                f"{folder} is being written to by another process",
                hint=f"It was waited for {_PATIENCE:.0f} seconds. Try again when it has finished",
            ) from error
        if isinstance(error, sqlite3.OperationalError) and "full" in text:
            raise DatasetBusy(f"{folder} cannot be written to: the disk is full") from error
        if isinstance(error, sqlite3.OperationalError) and any(word in text for word in OF_DISKS):
            raise DatasetBusy(
                f"the ledger of {folder} cannot be used: {text}",
                hint="See whether the disk is full, read-only or gone",
            ) from error
        raise DatasetError(
            f"the ledger of {folder} is damaged: {text}",
            hint="Restore it from a copy, or make the dataset anew",
        ) from error
