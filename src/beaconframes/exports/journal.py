"""The journal of an export, in a hidden working folder of the target.

The working folder contains the lock, the files of the export until they are published, and the
journal. The journal is replaced for each finished partition, and once before the files get their
final names. So a killed export can be resumed, and its files can be identified.
A finished export removes the folder.
"""

from __future__ import annotations

import errno
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
from beaconframes.exports.metadata import DOCUMENTS

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
    """The files that are about to get their final names, by path; the manifest is the last."""


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
        draft = self.folder / f"{JOURNAL}.new"
        write_text(json.encode(self.entries).decode(), draft)
        rename_draft(draft, self.folder / JOURNAL)
        sync_folders([self.folder])

    def withdraw_files(self, published_paths: set[str]) -> None:
        """Move the files of an interrupted export back, unless they are published by now.

        Only files with the listed content are moved: the journal may be forged.
        """
        publishing, self.entries.publishing = self.entries.publishing, {}
        for name, file in publishing.items():
            # The documents of a published dataset are replaced, so they may stay.
            is_ours = _DATA_FILE.fullmatch(name) or (name in DOCUMENTS and not published_paths)
            if not is_ours or name in published_paths:
                continue
            if published.find_damage(file.at(name), self.target, thorough=True) is None:
                rename_draft(self.target / name, self.folder / file.name)
        manifest = publishing.get(published.NAME)
        path = self.target / published.NAME
        if manifest and published_paths and digest(path) == manifest.sha256:
            # The interrupted export had only to remove this folder.
            self.entries = JournalEntries()

    def publish(
        self, files: dict[str, StagedFile], documents: dict[str, str], *, replace: bool
    ) -> None:
        """Give *files* their final names by path, then write *documents* by name, in order.

        With *replace* the target is a dataset already, whose documents are replaced. Otherwise, a
        DatasetError is raised if another file has a name, and nothing is changed.
        """
        staged: dict[str, StagedFile] = {}
        for name, text in documents.items():
            if not has_content(self.target / name, text):
                draft = self.create_draft_path()
                write_text(text, draft)
                size = draft.stat().st_size
                staged[name] = StagedFile(draft.name, 0, size, digest(draft), {})
        for name, file in files.items() if replace else (files | staged).items():
            self._check_path(self.target / name, file.sha256)
        self.entries.publishing = files | staged
        self.save()
        for name, file in files.items():
            rename_draft(self.folder / file.name, self.target / name)
        parents = {parent for name in files for parent in (self.target / name).parents}
        sync_folders(parent for parent in parents if parent.is_relative_to(self.target))
        for name, file in staged.items():
            rename_draft(self.folder / file.name, self.target / name)
            sync_folders([self.target])

    def _check_path(self, path: Path, sha256: str) -> None:
        """Raise a DatasetError if a file with this SHA-256 cannot get its final *path*."""
        with translate_errors(path):
            inside = [path, *path.parents][: len(path.relative_to(self.target).parts)]
            if any(step.is_symlink() for step in inside):
                raise DatasetError(
                    f"{path} is or contains a symbolic link, which may lead out of the dataset"
                )
            if path.exists() and not (path.is_file() and digest(path) == sha256):
                raise DatasetError(
                    f"{path} exists and is not a file of this export",
                    hint="Move it away, or export to another folder",
                )

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
