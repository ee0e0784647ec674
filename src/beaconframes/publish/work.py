"""The workshop: a hidden folder in the target, for one export at a time.

It holds the lock, the drafts, and the journal: a line for every file before it gets its name. So an
export that was killed goes on where it was, and knows which files are its own. When an export is
finished nothing of it is left.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import sqlite3
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from beaconframes.client.together import is_alive
from beaconframes.dataset import Segment
from beaconframes.errors import DatasetBusy, DatasetError
from beaconframes.publish.durable import clear, judged, put_text, same
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

NAME = ".beaconframes"
LOCK, HOLDER, JOURNAL = "lock", "holder.json", "journal.jsonl"
NAMELESS = 0.5
"""Seconds in which whoever has just taken the lock writes down who it is."""
ANEW = "force_new=True makes a new dataset beside it"


class Misfit(DatasetError):
    """What is there was made with other arguments; nothing was begun yet."""


class Taken(DatasetBusy):
    """Another export holds the lock; nothing was begun yet."""


class Work:
    """What is known of an export that is under way."""

    def __init__(self, target: Path, path: Path) -> None:
        self.target, self.path = target, path
        self.plan: dict[str, Any] | None = None
        self.extends = False
        """Whether the target is a dataset already, so that its documents are ours."""
        self.made: dict[str, Segment] = {}
        """Every file that the journal names, by its path, whether or not it was finished."""
        self.done: dict[str, list[int]] = {}
        """The partitions of each table that have all their files."""
        self.gaps: dict[str, list[dict[str, Any]]] = {}
        """What is known not to have come, of each table."""
        self.documents: set[str] = set()
        """The documents that were about to get their name."""
        self._drafts = 0
        self._read()

    def draft(self) -> Path:
        """Return where a new draft can be written."""
        self._drafts += 1
        return self.path / f"draft-{self._drafts:06d}"

    def scratch(self, table: str) -> Path:
        """Return a folder for what waits to be sorted."""
        return self.path / f"runs-{table}"

    def begin(self, plan: dict[str, Any]) -> None:
        """Write down what this export is to become."""
        self.plan = plan
        self._append({"plan": plan})

    def note(self, segment: Segment) -> None:
        """Write down that a file is about to get its name."""
        self.made[segment.path] = segment
        self._append({"file": asdict(segment)})

    def undo(self, published: Iterable[str]) -> None:
        """Remove every file of this export but those that are *published*."""
        for path in self.made.keys() - set(published):
            (self.target / path).unlink(missing_ok=True)
        self.made = {}

    def finished(self, table: str, number: int) -> None:
        """Write down that a partition has all its files."""
        self._append({"done": [table, number]})

    def missing(self, table: str, gap: dict[str, Any]) -> None:
        """Write down what did not come."""
        self._append({"gap": [table, gap]})

    def describe(self, name: str, text: str) -> None:
        """Write a document, unless somebody else's file has its name."""
        path = self.target / name
        ours = self.extends or name in self.documents
        if not ours and os.path.lexists(path) and not same(path, text):
            raise DatasetError(
                f"{path} is in the way: it is not a file of this export",
                hint="Move it away, or export to another folder",
            )
        if name not in self.documents:
            self.documents.add(name)
            self._append({"document": name})
        put_text(text, self.draft(), path)

    def sweep(self) -> None:
        """Remove the drafts of an export that was killed."""
        clear(self.path, but=(LOCK, HOLDER, JOURNAL))

    def close(self) -> None:
        """Remove the workshop, its lock last: from then on it may be somebody else's."""
        self.sweep()
        with judged(self.path, "cannot be removed"):
            for name in (JOURNAL, HOLDER, LOCK):
                (self.path / name).unlink(missing_ok=True)
            try:
                self.path.rmdir()
            except OSError as error:
                # Whoever waited for the lock has made its own, or has been and gone.
                if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
                    raise

    def _append(self, line: dict[str, Any]) -> None:
        with judged(self.path / JOURNAL), (self.path / JOURNAL).open("a") as file:
            file.write(json.dumps(line) + "\n")

    def _read(self) -> None:
        journal = self.path / JOURNAL
        if not journal.is_file():
            return
        whole = journal.read_bytes()
        for line in whole.splitlines(keepends=True):
            # The last line may be torn, and then its file has no name yet.
            with suppress(ValueError, TypeError, KeyError):
                told = json.loads(line)
                if "plan" in told:
                    self.plan = told["plan"]
                elif "document" in told:
                    self.documents.add(told["document"])
                elif "done" in told:
                    table, number = told["done"]
                    self.done.setdefault(table, []).append(number)
                elif "gap" in told:
                    table, gap = told["gap"]
                    self.gaps.setdefault(table, []).append(gap)
                else:
                    ranges = {n: tuple(r) for n, r in told["file"]["ranges"].items()}
                    segment = Segment(**{**told["file"], "ranges": ranges})
                    self.made[segment.path] = segment
        if whole and not whole.endswith(b"\n"):
            with judged(journal), journal.open("a") as file:
                file.write("\n")


@contextmanager
def working(target: Path, folder: Path, called: object = None) -> Iterator[Work]:
    """Hold the lock of *target* for one export; at its end the workshop *folder* is gone.

    An error names what is exported to as it is *called*; usually that is *target*.

    Raises
    ------
    Taken
        Another export is under way there; the message says on which machine and in which process.
    """
    with judged(folder, "cannot be made"):
        if folder.is_symlink():
            raise DatasetError(f"{folder} is a symbolic link", hint="Remove it")
        folder.mkdir(parents=True, exist_ok=True)
    lock = _locked(folder, called or target.absolute())
    try:
        with judged(folder / HOLDER):
            (folder / HOLDER).write_text(json.dumps({"pid": os.getpid(), "host": _host()}))
        work = Work(target, folder)
        work.sweep()
        try:
            yield work
        except BaseException:
            if not work.made:
                # Nothing was begun that could be gone on with.
                with suppress(DatasetError):
                    work.close()
            raise
        work.close()
    finally:
        lock.close()


def _locked(folder: Path, called: object) -> sqlite3.Connection:
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
                    raise
                continue
            try:
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError:
                connection.close()
                if _alive(_holder(folder)) or time.monotonic() > patience:
                    raise _taken(folder, called) from None
                time.sleep(0.01)
                continue
            # Whoever had it before removes it at the end: then this is the lock of nobody.
            if path.exists() and path.stat().st_ino == before:
                _refuse_elsewhere(folder, called, connection)
                return connection
            connection.close()


def _refuse_elsewhere(folder: Path, called: object, connection: sqlite3.Connection) -> None:
    """Raise if another machine may hold the lock: not every shared folder shares locks."""
    holder = _holder(folder)
    if holder and holder.get("host") != _host():
        connection.close()
        raise _taken(folder, called)


def _alive(holder: dict[str, Any]) -> bool:
    """Tell whether a *holder* may have the lock; one that died has left its name behind."""
    if holder.get("host") != _host():
        return bool(holder)
    process = holder.get("pid")
    return isinstance(process, int) and is_alive(process)


def _taken(folder: Path, called: object) -> Taken:
    holder = _holder(folder)
    who = f"process {holder.get('pid')} on {holder.get('host')}" if holder else "another process"
    return Taken(
        f"{called} is being exported to by {visible(who)}",
        hint=f"Wait until it has finished. If it is gone for good, remove {folder / HOLDER}",
    )


def _holder(folder: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        found = json.loads((folder / HOLDER).read_text())
        if isinstance(found, dict):
            return found
    return {}


def _host() -> str:
    return socket.gethostname()
