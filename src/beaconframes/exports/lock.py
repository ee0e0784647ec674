"""The lock of an export: one export per target, with the process and the host of its holder."""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from beaconframes.errors import DatasetBusy, DatasetError
from beaconframes.exports.atomic_files import translate_errors
from beaconframes.http.shared_rate_limit import is_alive
from beaconframes.sqlite_file import DamagedFile, Database, LockedFile, lock_file
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
    lock = acquire_lock(folder, target)
    try:
        with translate_errors(folder / HOLDER):
            holder = {"pid": os.getpid(), "host": socket.gethostname()}
            (folder / HOLDER).write_text(json.dumps(holder))
        yield
    finally:
        lock.close()


def acquire_lock(folder: Path, target: object) -> Database:
    """Return the lock file, locked; the system releases the lock when the process ends.

    A refused disk is an error only after `HOLDER_TIMEOUT`: the previous holder may remove the
    folder at any moment.
    """
    deadline = time.monotonic() + HOLDER_TIMEOUT
    path = folder / LOCK
    while True:
        with translate_errors(path):
            folder.mkdir(parents=True, exist_ok=True)
        inode = read_inode(path)
        try:
            lock = lock_file(path)
        except LockedFile:
            # Read the holder once: a process that ends removes this file before the lock.
            holder = read_holder(folder)
            if may_hold_lock(holder) or time.monotonic() > deadline:
                raise build_locked_error(folder, target, holder) from None
            time.sleep(0.01)
            continue
        except DamagedFile:
            message = f"{path} is not the lock file of an export"
            raise DatasetError(message, hint="Remove it") from None
        except DatasetBusy:
            if time.monotonic() > deadline:
                raise
            continue
        # A removed file locks nothing. A file that was just created may have been removed already.
        if inode is not None and read_inode(path) == inode:
            check_host(folder, target, lock)
            return lock
        lock.close()


def read_inode(path: Path) -> int | None:
    """Return the number of a file; None if it is missing."""
    with suppress(FileNotFoundError):
        return path.stat().st_ino
    return None


def check_host(folder: Path, target: object, lock: Database) -> None:
    """Raise ExportLocked if another host may hold the lock: network folders may not share locks."""
    holder = read_holder(folder)
    if holder and holder.get("host") != socket.gethostname():
        lock.close()
        raise build_locked_error(folder, target, holder)


def may_hold_lock(holder: dict[str, Any]) -> bool:
    """Return whether a *holder* may hold the lock: a killed process is still recorded."""
    if holder.get("host") != socket.gethostname():
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
