"""The lock of an export: one export per target, with the process and the host of its holder."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from beaconframes.errors import DatasetBusy, DatasetError
from beaconframes.exports.atomic_files import translate_errors
from beaconframes.http.shared_rate_limit import is_alive
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCK, HOLDER = "lock", "holder.json"
HOLDER_TIMEOUT = 0.5
"""Seconds in which a process that has just taken the lock writes its process number."""


class ExportLocked(DatasetBusy):
    """Another export holds the lock; this one has not started."""


@contextmanager
def hold_lock(folder: Path, target: object) -> Iterator[None]:
    """Hold the lock in the working *folder*, and record the process that holds it.

    Raises
    ------
    ExportLocked
        Another process holds it; the message names the process and the *target*.
    """
    connection = acquire_lock(folder, target)
    try:
        with translate_errors(folder / HOLDER):
            holder = {"pid": os.getpid(), "host": get_hostname()}
            (folder / HOLDER).write_text(json.dumps(holder))
        yield
    finally:
        connection.close()


def acquire_lock(folder: Path, target: object) -> sqlite3.Connection:
    """Return a connection that holds the lock; the system releases it when the process ends.

    SQLite locks with fcntl. A lock of flock would outlive a killed process for as long as one of
    its forked children runs.
    """
    deadline = time.monotonic() + HOLDER_TIMEOUT
    while True:
        path = folder / LOCK
        with translate_errors(path):
            folder.mkdir(parents=True, exist_ok=True)
            # SQLite creates the file: to close it here would drop the locks of this process. The
            # previous holder may remove the folder at any moment.
            with suppress(sqlite3.OperationalError):
                sqlite3.connect(path).close()
        with suppress(FileNotFoundError):
            inode = path.stat().st_ino
            try:
                connection = sqlite3.connect(path, timeout=0, isolation_level=None)
            except sqlite3.OperationalError:
                if time.monotonic() > deadline:
                    raise build_invalid_lock_error(path) from None
                continue
            try:
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError:
                connection.close()
                # Read the holder once: a process that ends removes this file before the lock.
                holder = read_holder(folder)
                if may_hold_lock(holder) or time.monotonic() > deadline:
                    raise build_locked_error(folder, target, holder) from None
                time.sleep(0.01)
                continue
            except sqlite3.DatabaseError:
                connection.close()
                raise build_invalid_lock_error(path) from None
            # The previous holder removes the file at its end; a removed file locks nothing.
            with suppress(FileNotFoundError):
                if path.stat().st_ino == inode:
                    check_host(folder, target, connection)
                    return connection
            connection.close()


def build_invalid_lock_error(path: Path) -> DatasetError:
    """Return the error for a file that cannot be locked."""
    return DatasetError(f"{path} is not the lock file of an export", hint="Remove it")


def check_host(folder: Path, target: object, connection: sqlite3.Connection) -> None:
    """Raise ExportLocked if another host may hold the lock: network folders may not share locks."""
    holder = read_holder(folder)
    if holder and holder.get("host") != get_hostname():
        connection.close()
        raise build_locked_error(folder, target, holder)


def may_hold_lock(holder: dict[str, Any]) -> bool:
    """Return whether a *holder* may hold the lock: a killed process is still recorded."""
    if holder.get("host") != get_hostname():
        return bool(holder)
    process = holder.get("pid")
    return isinstance(process, int) and is_alive(process)


def build_locked_error(folder: Path, target: object, holder: dict[str, Any]) -> ExportLocked:
    """Return the error that names the *holder* of the lock."""
    name = f"process {holder.get('pid')} on {holder.get('host')}" if holder else "another process"
    return ExportLocked(
        f"another export to {target} is running: {visible(name)}",
        hint=f"Wait until it has finished. If it no longer exists, remove {folder / HOLDER}",
    )


def read_holder(folder: Path) -> dict[str, Any]:
    """Return the last recorded process and its host; {} if there is none."""
    with suppress(OSError, ValueError, RecursionError):
        holder = json.loads((folder / HOLDER).read_text())
        if isinstance(holder, dict):
            return holder
    return {}


def get_hostname() -> str:
    """Return the name of this machine."""
    return socket.gethostname()
