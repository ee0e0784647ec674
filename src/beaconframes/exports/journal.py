"""The workshop: a hidden folder in the target, for one export at a time.

It holds the lock, the drafts, and the journal: a line for every file before it gets its name. So an
export that was killed goes on where it was, and knows which files are its own. When an export is
finished nothing of it is left.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, convert

from beaconframes.dataset import Segment, published
from beaconframes.dataset.segments import digest
from beaconframes.errors import DatasetError
from beaconframes.exports.atomic_files import clear, judged, put_text, same
from beaconframes.exports.lock import HOLDER, LOCK, held

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

NAME = ".beaconframes"
JOURNAL = "journal.jsonl"
LAST_PART = 2_900_000
"""The largest number of a partition: later days have no date."""
_FILE = re.compile(r"[a-z][a-z0-9_]*/([a-z_]+=[A-Za-z0-9_\-]+/)?[0-9]{5,9}\.[a-z]+")
"""What a file of an export is called: its table, its partition, its number."""


class JournalFile(published.ManifestFile):
    """What the journal says of a file."""

    table: str

    @property
    def is_ours(self) -> bool:
        """Tell whether an export of that table calls its files so."""
        return bool(_FILE.fullmatch(self.path)) and self.path.startswith(f"{self.table}/")


class JournalPlan(Struct):
    """What the journal says of a table."""

    request: dict[str, Any]


class JournalLine(Struct):
    """The shape of a line of the journal: one of these."""

    plan: dict[str, JournalPlan] | None = None
    document: tuple[str, str] | None = None
    done: tuple[str, Annotated[int, Meta(ge=-(2**31), le=LAST_PART)]] | None = None
    gap: tuple[str, dict[str, Any]] | None = None
    file: JournalFile | None = None


class IncompatibleExport(DatasetError):
    """The dataset in the target has other arguments or other rows; it was not changed."""


class ExportJournal:
    """What is known of an export that is under way."""

    def __init__(self, target: Path, path: Path) -> None:
        self.target, self.path = target, path
        self.plan: dict[str, Any] | None = None
        self.extends = False
        """Whether the target is a dataset already, so that its documents are ours."""
        self.named: set[str] = set()
        """The files of the dataset that is there, by their paths: they stay."""
        self.made: dict[str, Segment] = {}
        """Every file that the journal names, by its path, whether or not it was finished."""
        self.done: dict[str, list[int]] = {}
        """The partitions of each table that have all their files."""
        self.gaps: dict[str, list[dict[str, Any]]] = {}
        """What is known not to have come, of each table."""
        self.documents: set[tuple[str, str]] = set()
        """The documents that were about to get their name, with the SHA-256 of each."""
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

    def undo(self) -> None:
        """Remove every file of this export that is no part of the dataset that is there."""
        self.remove(self.made)
        self.made = {}

    def remove(self, paths: Iterable[str]) -> None:
        """Remove files of this export, each if it is what was written: the journal may lie."""
        for path in set(paths) - self.named:
            if published.find_damage(self.made[path], self.target, thorough=True) is None:
                with judged(self.target / path, "cannot be removed"):
                    (self.target / path).unlink()

    def finished(self, table: str, number: int) -> None:
        """Write down that a partition has all its files."""
        self._append({"done": [table, number]})

    def missing(self, table: str, gap: dict[str, Any]) -> None:
        """Write down what did not come."""
        self._append({"gap": [table, gap]})

    def describe(self, name: str, text: str) -> None:
        """Write a document, unless somebody else's file has its name."""
        path = self.target / name
        if not self.extends and os.path.lexists(path) and not same(path, text):
            plain = path.is_file() and not path.is_symlink()
            if not plain or (name, digest(path)) not in self.documents:
                raise DatasetError(
                    f"{path} is in the way: it is not a file of this export",
                    hint="Move it away, or export to another folder",
                )
        document = name, hashlib.sha256(text.encode()).hexdigest()
        if document not in self.documents:
            self.documents.add(document)
            self._append({"document": document})
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
        good = 0
        # The last line may be torn; nothing is believed that comes after one which is not ours.
        with suppress(ValueError, RecursionError):
            while line := whole[good : whole.find(b"\n", good) + 1]:
                told = json.loads(line)
                self._take(told, convert(told, JournalLine))
                good += len(line)
        if good < len(whole):
            with judged(journal), journal.open("r+b") as file:
                file.truncate(good)

    def _take(self, told: dict[str, Any], line: JournalLine) -> None:
        """Remember what a line of the journal says; a ValueError if no export says it."""
        if line.plan is not None:
            self.plan = told["plan"]
        elif line.document is not None:
            self.documents.add(line.document)
        elif line.done is not None:
            table, number = line.done
            self.done.setdefault(table, []).append(number)
        elif line.gap is not None:
            name, gap = line.gap
            self.gaps.setdefault(name, []).append(gap)
        elif line.file is not None and line.file.is_ours:
            ranges = {n: tuple(pair) for n, pair in line.file.ranges.items()}
            self.made[line.file.path] = Segment(**{**told["file"], "ranges": ranges})
        else:
            raise ValueError(told)


@contextmanager
def working(target: Path, folder: Path, called: object = None) -> Iterator[ExportJournal]:
    """Hold the lock of *target* for one export; at its end the workshop *folder* is gone.

    An error names what is exported to as it is *called*; usually that is *target*.

    Raises
    ------
    ExportLocked
        Another export is under way there; the message says on which machine and in which process.
    """
    with judged(folder, "cannot be made"):
        if folder.is_symlink():
            raise DatasetError(f"{folder} is a symbolic link", hint="Remove it")
        folder.mkdir(parents=True, exist_ok=True)
    for name in (LOCK, HOLDER, JOURNAL):
        # Whoever is at work there may remove it at any moment.
        with judged(folder / name, "cannot be read"), suppress(FileNotFoundError):
            if not stat.S_ISREG((folder / name).lstat().st_mode):
                raise DatasetError(f"{folder / name} is not a plain file", hint="Remove it")
    with held(folder, called or target.absolute()):
        work = ExportJournal(target, folder)
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
