"""The journal of an export, in a hidden working folder of the target.

The working folder contains the lock, drafts, and the journal, which gets a line for every file
before the file is renamed to its final name. So a killed export can be resumed, and its files can
be identified.
A finished export removes the folder.
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
from beaconframes.exports.atomic_files import (
    clear_folder,
    has_content,
    translate_errors,
    write_text,
)
from beaconframes.exports.lock import HOLDER, LOCK, hold_lock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

WORK_FOLDER = ".beaconframes"
JOURNAL = "journal.jsonl"
MAX_PARTITION = 2_900_000
"""The largest partition number: later days have no date."""
_DATA_FILE = re.compile(r"[a-z][a-z0-9_]*/([a-z_]+=[A-Za-z0-9_\-]+/)?[0-9]{5,9}\.[a-z]+")
"""The path of a data file: table, partition, number."""


class JournalFile(published.ManifestFile):
    """The line of a data file."""

    table: str

    @property
    def has_valid_path(self) -> bool:
        """Return whether an export of this table could have written the path."""
        return bool(_DATA_FILE.fullmatch(self.path)) and self.path.startswith(f"{self.table}/")


class JournalPlan(Struct):
    """The plan of a table."""

    request: dict[str, Any]


class JournalLine(Struct):
    """A line of the journal: one of its fields is set."""

    plan: dict[str, JournalPlan] | None = None
    document: tuple[str, str] | None = None
    done: tuple[str, Annotated[int, Meta(ge=-(2**31), le=MAX_PARTITION)]] | None = None
    gap: tuple[str, dict[str, Any]] | None = None
    file: JournalFile | None = None


class IncompatibleExport(DatasetError):
    """The dataset in the target has other arguments or other rows; it was not changed."""


class ExportJournal:
    """The state of a running or interrupted export, stored line by line."""

    def __init__(self, target: Path, folder: Path) -> None:
        """Read the journal in the working *folder*, if an interrupted export left one."""
        self.target, self.folder = target, folder
        self.plan: dict[str, Any] | None = None
        self.extends_dataset = False
        """Whether the target is a dataset already, so that its documents may be replaced."""
        self.published_paths: set[str] = set()
        """The files of the dataset in the target: they are never removed."""
        self.files: dict[str, Segment] = {}
        """The files in the journal, by path, finished or not."""
        self.finished: dict[str, list[int]] = {}
        """The partitions of each table that have all their files."""
        self.gaps: dict[str, list[dict[str, Any]]] = {}
        """The known gaps of each table."""
        self.documents: set[tuple[str, str]] = set()
        """The name and the SHA-256 of each document that was written, or about to be."""
        self._draft_count = 0
        self._read()

    def create_draft_path(self) -> Path:
        """Return the path for a new draft."""
        self._draft_count += 1
        return self.folder / f"draft-{self._draft_count:06d}"

    def get_scratch_folder(self, table: str) -> Path:
        """Return the folder for the sorted runs of a table."""
        return self.folder / f"runs-{table}"

    def add_plan(self, plan: dict[str, Any]) -> None:
        """Record the plan of this export."""
        self.plan = plan
        self._append({"plan": plan})

    def add_file(self, segment: Segment) -> None:
        """Record a file that is about to be renamed to its final name."""
        self.files[segment.path] = segment
        self._append({"file": asdict(segment)})

    def add_finished(self, table: str, number: int) -> None:
        """Record that a partition has all its files."""
        self._append({"done": [table, number]})

    def add_gap(self, table: str, gap: dict[str, Any]) -> None:
        """Record rows that are missing."""
        self._append({"gap": [table, gap]})

    def remove_all_files(self) -> None:
        """Remove the files of this export that are not part of the dataset in the target."""
        self.remove_files(self.files)
        self.files = {}

    def remove_files(self, paths: Iterable[str]) -> None:
        """Remove files of this export, if their content matches: the journal may be forged."""
        for path in set(paths) - self.published_paths:
            if published.find_damage(self.files[path], self.target, thorough=True) is None:
                with translate_errors(self.target / path, "cannot be removed"):
                    (self.target / path).unlink()

    def write_document(self, name: str, text: str) -> None:
        """Write a document; raise a DatasetError if another file has its name."""
        path = self.target / name
        if not self.extends_dataset and os.path.lexists(path) and not has_content(path, text):
            is_plain = path.is_file() and not path.is_symlink()
            if not is_plain or (name, digest(path)) not in self.documents:
                raise DatasetError(
                    f"{path} exists and is not a file of this export",
                    hint="Move it away, or export to another folder",
                )
        document = name, hashlib.sha256(text.encode()).hexdigest()
        if document not in self.documents:
            self.documents.add(document)
            self._append({"document": document})
        write_text(text, self.create_draft_path(), path)

    def remove_drafts(self) -> None:
        """Remove the drafts and runs of an interrupted export."""
        clear_folder(self.folder, keep=(LOCK, HOLDER, JOURNAL))

    def close(self) -> None:
        """Remove the working folder; the lock last, because then another export may start."""
        self.remove_drafts()
        with translate_errors(self.folder, "cannot be removed"):
            for name in (JOURNAL, HOLDER, LOCK):
                (self.folder / name).unlink(missing_ok=True)
            try:
                self.folder.rmdir()
            except OSError as error:
                # A waiting export has created its own lock there, or has already finished.
                if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
                    raise

    def _append(self, line: dict[str, Any]) -> None:
        path = self.folder / JOURNAL
        with translate_errors(path), path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def _read(self) -> None:
        path = self.folder / JOURNAL
        if not path.is_file():
            return
        data = path.read_bytes()
        valid = 0
        # The last line may be incomplete. Lines after an invalid one are not trusted.
        with suppress(ValueError, RecursionError):
            while line := data[valid : data.find(b"\n", valid) + 1]:
                values = json.loads(line)
                self._apply(values, convert(values, JournalLine))
                valid += len(line)
        if valid < len(data):
            with translate_errors(path), path.open("r+b") as file:
                file.truncate(valid)

    def _apply(self, values: dict[str, Any], line: JournalLine) -> None:
        """Apply a line of the journal; raise a ValueError if no export could have written it."""
        if line.plan is not None:
            self.plan = values["plan"]
        elif line.document is not None:
            self.documents.add(line.document)
        elif line.done is not None:
            table, number = line.done
            self.finished.setdefault(table, []).append(number)
        elif line.gap is not None:
            table, gap = line.gap
            self.gaps.setdefault(table, []).append(gap)
        elif line.file is not None and line.file.has_valid_path:
            ranges = {name: tuple(pair) for name, pair in line.file.ranges.items()}
            self.files[line.file.path] = Segment(**{**values["file"], "ranges": ranges})
        else:
            raise ValueError(values)


@contextmanager
def open_journal(
    target: Path, folder: Path, shown_target: object = None
) -> Iterator[ExportJournal]:
    """Hold the lock of *target*, and yield its journal; at the end, remove the working *folder*.

    Errors name *shown_target*, which defaults to the absolute path of *target*.

    Raises
    ------
    ExportLocked
        Another export to the target is running; the message names its host and process.
    """
    with translate_errors(folder, "cannot be created"):
        if folder.is_symlink():
            raise DatasetError(f"{folder} is a symbolic link", hint="Remove it")
        folder.mkdir(parents=True, exist_ok=True)
    for name in (LOCK, HOLDER, JOURNAL):
        # The export that holds the lock may remove the file at any moment.
        with translate_errors(folder / name, "cannot be read"), suppress(FileNotFoundError):
            if not stat.S_ISREG((folder / name).lstat().st_mode):
                raise DatasetError(f"{folder / name} is not a regular file", hint="Remove it")
    with hold_lock(folder, shown_target or target.absolute()):
        journal = ExportJournal(target, folder)
        journal.remove_drafts()
        try:
            yield journal
        except BaseException:
            if not journal.files:
                # No file exists that a later export could reuse.
                with suppress(DatasetError):
                    journal.close()
            raise
        journal.close()
