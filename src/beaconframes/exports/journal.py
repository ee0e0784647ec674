"""The journal of an export, in a hidden working folder of the target.

The working folder contains the lock, the files of the export until they are published, and the
journal. The journal is replaced for each finished partition, and once before the files get their
final names. So a killed export can be resumed, and its files can be identified.
A finished export removes the folder.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, MsgspecError, Struct, field, json

from beaconframes.dataset import Segment, published
from beaconframes.dataset.segments import digest
from beaconframes.errors import DatasetError
from beaconframes.exports.atomic_files import (
    clear_folder,
    has_content,
    rename_draft,
    sync_folders,
    translate_errors,
    write_text,
)
from beaconframes.exports.lock import HOLDER, LOCK, hold_lock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WORK_FOLDER = ".beaconframes"
JOURNAL = "journal.json"
FIRST_DAY, LAST_DAY = -719_162, 2_900_000
"""The bounds of partition numbers: other days have no date."""
_DATA_FILE = re.compile(r"[a-z][a-z0-9_]*/([a-z_]+=[A-Za-z0-9_\-]+/)?[0-9]{5,9}\.[a-z]+")
"""The path of a data file: table, partition, number."""


class StagedFile(Struct, frozen=True):
    """A durable file in the working folder."""

    name: Annotated[str, Meta(pattern=r"^draft-[0-9]{6,}\.[a-z]+$")]
    rows: published.Count
    bytes: published.Count
    sha256: str
    ranges: published.Ranges

    def at(self, path: str) -> Segment:
        """Return the file as a dataset lists it under its final *path*."""
        table = path.partition("/")[0]
        return Segment(table, path, self.rows, self.bytes, self.sha256, self.ranges)


class StagedPartition(Struct):
    """A partition of a table with all its files."""

    table: str
    number: Annotated[int, Meta(ge=FIRST_DAY, le=LAST_DAY)]
    files: Annotated[list[StagedFile], Meta(min_length=1)]


class JournalEntries(Struct):
    """What the journal contains."""

    plan: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The plan of each table that can be resumed."""
    partitions: list[StagedPartition] = field(default_factory=list)
    """The finished partitions, in the order of writing."""
    gaps: list[dict[str, Any]] = field(default_factory=list)
    """The gaps that were known when the last partition was finished."""
    publishing: dict[str, StagedFile] = field(default_factory=dict)
    """The files that are about to get their final names, by path."""
    documents: list[tuple[str, str]] = field(default_factory=list)
    """The name and the SHA-256 of each document that was written, or is about to be."""


class IncompatibleExport(DatasetError):
    """The dataset in the target has other arguments or other rows; it was not changed."""


class ExportJournal:
    """The state of a running or interrupted export."""

    def __init__(self, target: Path, folder: Path) -> None:
        """Read the journal in the working *folder*, if an interrupted export left one."""
        self.target, self.folder = target, folder
        self.entries = self._read()
        self._has_files = bool(self.entries.partitions or self.entries.publishing)
        """Whether this export or the interrupted one wrote a file."""
        self._draft_count = 0

    @property
    def is_kept(self) -> bool:
        """Whether a later export needs the working folder."""
        return self._has_files and (self.folder / JOURNAL).exists()

    def create_draft_path(self, extension: str = ".tmp") -> Path:
        """Return the path for a new draft."""
        self._has_files = True
        while True:
            self._draft_count += 1
            path = self.folder / f"draft-{self._draft_count:06d}{extension}"
            if not path.exists():
                return path

    def save(self) -> None:
        """Replace the journal by the present entries."""
        text = json.encode(self.entries).decode()
        write_text(text, self.folder / f"{JOURNAL}.new", self.folder / JOURNAL)

    def withdraw_files(self, published_paths: set[str]) -> None:
        """Move the files of an interrupted export back, unless they are published by now.

        Only files with the listed content are moved: the journal may be forged.
        """
        entries = self.entries
        for path, file in entries.publishing.items():
            if path in published_paths or not _DATA_FILE.fullmatch(path):
                continue
            if published.find_damage(file.at(path), self.target, thorough=True) is None:
                rename_draft(self.target / path, self.folder / file.name)
        entries.publishing = {}
        manifest = self.target / published.NAME
        if published_paths and (published.NAME, digest(manifest)) in entries.documents:
            # The interrupted export had only to remove this folder.
            self.entries = JournalEntries()

    def publish(
        self, files: dict[str, StagedFile], documents: dict[str, str], *, replace: bool
    ) -> None:
        """Give *files* their final names by path, then write *documents* by name, in order.

        With *replace* the target is a dataset already, whose documents are replaced. Otherwise, a
        DatasetError is raised if another file has a name, and nothing is changed.
        """
        for path, file in files.items():
            self._check_path(self.target / path, file.sha256)
        for name, text in documents.items():
            self._check_document(name, text, replace=replace)
        hashes = {name: hashlib.sha256(text.encode()) for name, text in documents.items()}
        self.entries.documents += [(name, sha256.hexdigest()) for name, sha256 in hashes.items()]
        self.entries.publishing = files
        self.save()
        for path, file in files.items():
            rename_draft(self.folder / file.name, self.target / path)
        changed = {self.target}
        for path in files:
            parents = (self.target / path).parents
            changed |= {parent for parent in parents if parent.is_relative_to(self.target)}
        sync_folders(changed)
        for name, text in documents.items():
            write_text(text, self.create_draft_path(), self.target / name)

    def _check_path(self, path: Path, sha256: str) -> None:
        """Raise a DatasetError if a file with this SHA-256 cannot get its final *path*."""
        with translate_errors(path):
            inside = [path, *path.parents][: len(path.relative_to(self.target).parts)]
            if any(step.is_symlink() for step in inside):
                raise DatasetError(
                    f"{path} is or contains a symbolic link, which may lead out of the dataset"
                )
            if path.exists() and not (path.is_file() and digest(path) == sha256):
                raise build_foreign_file_error(path)

    def _check_document(self, name: str, text: str, *, replace: bool) -> None:
        """Raise a DatasetError if another file has the name of a document."""
        path = self.target / name
        with translate_errors(path):
            if replace or not os.path.lexists(path) or has_content(path, text):
                return
            is_plain = path.is_file() and not path.is_symlink()
            if not is_plain or (name, digest(path)) not in self.entries.documents:
                raise build_foreign_file_error(path)

    def remove_drafts(self) -> None:
        """Remove everything except the lock and what the journal lists."""
        listed = [file.name for part in self.entries.partitions for file in part.files]
        listed += [file.name for file in self.entries.publishing.values()]
        clear_folder(self.folder, keep={LOCK, HOLDER, JOURNAL, *listed})

    def close(self) -> None:
        """Remove the working folder; the lock last, because then another export may start."""
        with translate_errors(self.folder, "cannot be removed"):
            # Without the journal no draft is used again, so it goes first.
            (self.folder / JOURNAL).unlink(missing_ok=True)
            clear_folder(self.folder, keep=(LOCK, HOLDER))
            for name in (HOLDER, LOCK):
                (self.folder / name).unlink(missing_ok=True)
            try:
                self.folder.rmdir()
            except OSError as error:
                # A waiting export has created its own lock there, or has already finished.
                if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
                    raise

    def _read(self) -> JournalEntries:
        """Return the entries; none if no export could have written them."""
        path = self.folder / JOURNAL
        with translate_errors(path, "cannot be read"):
            data = path.read_bytes() if path.is_file() else b""
        with suppress(MsgspecError, RecursionError):
            entries = json.decode(data, type=JournalEntries)
            if all(isinstance(plan.get("request"), dict) for plan in entries.plan.values()):
                return entries
        return JournalEntries()


def build_foreign_file_error(path: Path) -> DatasetError:
    """Return the error for a file that is in the way."""
    return DatasetError(
        f"{path} exists and is not a file of this export",
        hint="Move it away, or export to another folder",
    )


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
            if not journal.is_kept:
                # No file exists that a later export could reuse.
                with suppress(DatasetError):
                    journal.close()
            raise
        journal.close()
