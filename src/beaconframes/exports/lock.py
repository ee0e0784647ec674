"""The lock of a workshop: one export at a time, whose process and machine others are told."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from beaconframes.errors import DatasetBusy, DatasetError
from beaconframes.exports.atomic_files import judged
from beaconframes.http.shared_rate_limit import is_alive
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCK, HOLDER = "lock", "holder.json"
NAMELESS = 0.5
"""Seconds in which whoever has just taken the lock writes down who it is."""


class ExportLocked(DatasetBusy):
    """Another export holds the lock; nothing was begun yet."""


@contextmanager
def held(folder: Path, called: object) -> Iterator[None]:
    """Hold the lock of a workshop *folder*, and leave word of who does.

    Raises
    ------
    ExportLocked
        Somebody else holds it; the message says what is exported to as it is *called*.
    """
    lock = locked(folder, called)
    try:
        with judged(folder / HOLDER):
            (folder / HOLDER).write_text(json.dumps({"pid": os.getpid(), "host": host()}))
        yield
    finally:
        lock.close()


def locked(folder: Path, called: object) -> sqlite3.Connection:
    """Take the lock: the system lets go of it when the process ends, however it ends.

    SQLite locks as fcntl does; what flock has locked stays so while a worker lives that the killed
    process had forked.
    """
    patience = time.monotonic() + NAMELESS
    while True:
        path = folder / LOCK
        with judged(path):
            folder.mkdir(parents=True, exist_ok=True)
            # At its end whoever had the lock removes the folder, at any moment of this.
            with suppress(FileNotFoundError):
                path.touch()
        with suppress(FileNotFoundError):
            before = path.stat().st_ino
            try:
                connection = sqlite3.connect(path, timeout=0, isolation_level=None)
            except sqlite3.OperationalError:
                if time.monotonic() > patience:
                    raise no_lock(path) from None
                continue
            try:
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError:
                connection.close()
                # Whoever ends removes its name first: looked for again, it might be gone.
                holder = holder_in(folder)
                if may_live(holder) or time.monotonic() > patience:
                    raise taken(folder, called, holder) from None
                time.sleep(0.01)
                continue
            except sqlite3.DatabaseError:
                connection.close()
                raise no_lock(path) from None
            # Whoever had it before removes it at the end: then this is the lock of nobody.
            with suppress(FileNotFoundError):
                if path.stat().st_ino == before:
                    refuse_elsewhere(folder, called, connection)
                    return connection
            connection.close()


def no_lock(path: Path) -> DatasetError:
    """Return the error that a file cannot be locked, whatever it is."""
    return DatasetError(f"{path} is no lock of an export", hint="Remove it")


def refuse_elsewhere(folder: Path, called: object, connection: sqlite3.Connection) -> None:
    """Raise if another machine may hold the lock: not every shared folder shares locks."""
    holder = holder_in(folder)
    if holder and holder.get("host") != host():
        connection.close()
        raise taken(folder, called, holder)


def may_live(holder: dict[str, Any]) -> bool:
    """Tell whether a *holder* may have the lock; one that died has left its name behind."""
    if holder.get("host") != host():
        return bool(holder)
    process = holder.get("pid")
    return isinstance(process, int) and is_alive(process)


def taken(folder: Path, called: object, holder: dict[str, Any]) -> ExportLocked:
    """Return the error that names who holds the lock."""
    who = f"process {holder.get('pid')} on {holder.get('host')}" if holder else "another process"
    return ExportLocked(
        f"{called} is being exported to by {visible(who)}",
        hint=f"Wait until it has finished. If it is gone for good, remove {folder / HOLDER}",
    )


def holder_in(folder: Path) -> dict[str, Any]:
    """Return who last left word, {} if nobody has."""
    with suppress(OSError, ValueError, RecursionError):
        found = json.loads((folder / HOLDER).read_text())
        if isinstance(found, dict):
            return found
    return {}


def host() -> str:
    """Return what this machine is called."""
    return socket.gethostname()
