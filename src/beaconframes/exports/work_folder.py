"""The working folder of an export, hidden in its target: the lock, the drafts and their names.

Files are drafts until all are written. Their names are recorded before the first file gets its
own, so that the files of a killed export can be identified. A finished export removes the folder.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from msgspec import MsgspecError
from msgspec.json import decode

from beaconframes.dataset.segments import digest
from beaconframes.errors import DatasetError
from beaconframes.exports.atomic_files import (
    clear_folder,
    rename_draft,
    sync_folders,
    translate_errors,
    write_text,
)
from beaconframes.exports.lock import HOLDER, LOCK, hold_lock
from beaconframes.exports.metadata import DOCUMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from beaconframes.dataset import Segment

WORK_FOLDER = ".beaconframes"
PUBLISHING = "publishing.json"
_DATA_FILE = re.compile(r"[a-z][a-z0-9_]*/([a-z_]+=[A-Za-z0-9_\-]+/)?[0-9]{5,9}\.[a-z]+")
"""The path of a data file: table, partition, number."""


class IncompatibleExport(DatasetError):
    """The dataset in the target has other arguments or other rows; it was not changed."""


class WorkFolder:
    """The working *folder* of an export to *target*."""

    def __init__(self, target: Path, folder: Path) -> None:
        """Remove the drafts of an interrupted export."""
        self.target, self.folder = target, folder
        self._draft_count = 0
        clear_folder(folder, keep=(LOCK, HOLDER, PUBLISHING))

    def create_draft_path(self, extension: str = ".tmp") -> Path:
        """Return the path for a new draft."""
        self._draft_count += 1
        return self.folder / f"draft-{self._draft_count:06d}{extension}"

    def withdraw_files(self, published_paths: set[str]) -> None:
        """Remove the files of a killed export from their final paths, unless they are published.

        Only files with the recorded content are removed: the record may be forged.
        """
        record = self.folder / PUBLISHING
        with translate_errors(record, "cannot be read"):
            data = record.read_bytes() if record.is_file() else b""
        recorded: dict[str, str] = {}
        with suppress(MsgspecError, UnicodeDecodeError, RecursionError):
            recorded = decode(data, type=dict[str, str])
        for name, sha256 in recorded.items():
            # The documents of a published dataset are replaced, so they may stay.
            is_ours = _DATA_FILE.fullmatch(name) or (name in DOCUMENTS and not published_paths)
            path = self.target / name
            if is_ours and name not in published_paths:
                with translate_errors(path, "cannot be removed"):
                    if has_digest(path, self.target, sha256):
                        path.unlink()
                self._remove_empty_folders(path)
        with translate_errors(record, "cannot be removed"):
            record.unlink(missing_ok=True)

    def _remove_empty_folders(self, path: Path) -> None:
        """Remove the folders of a withdrawn file from the dataset, if they have no other one."""
        if not is_behind_link(path, self.target):
            for folder in list(path.parents)[: len(path.relative_to(self.target).parts) - 1]:
                with suppress(OSError):
                    folder.rmdir()

    def publish(
        self, files: Mapping[str, Segment], documents: Mapping[str, str], *, replace: bool
    ) -> None:
        """Give the drafts *files* their final paths, then write *documents* by name, in order.

        The path of a draft is its name in the working folder.

        With *replace* the target is a dataset already, whose documents are replaced. Otherwise, a
        DatasetError is raised if another file has a name, and nothing is changed.
        """
        drafts: dict[str, Path] = {}
        recorded = {name: draft.sha256 for name, draft in files.items()}
        for name, text in documents.items():
            sha256 = hashlib.sha256(text.encode()).hexdigest()
            if not has_digest(self.target / name, self.target, sha256):
                drafts[name] = self.create_draft_path()
                write_text(text, drafts[name])
                recorded[name] = sha256
        for name in files if replace else recorded:
            self._check_path(self.target / name, recorded[name])
        record = self.create_draft_path()
        write_text(json.dumps(recorded), record)
        rename_draft(record, self.folder / PUBLISHING)
        sync_folders([self.folder])
        for name, file in files.items():
            rename_draft(self.folder / file.path, self.target / name)
        parents = {parent for name in files for parent in (self.target / name).parents}
        sync_folders(parent for parent in parents if parent.is_relative_to(self.target))
        for name, draft in drafts.items():
            rename_draft(draft, self.target / name)
            sync_folders([self.target])

    def _check_path(self, path: Path, sha256: str) -> None:
        """Raise a DatasetError if a file with this SHA-256 cannot get its final *path*."""
        with translate_errors(path):
            if is_behind_link(path, self.target):
                raise DatasetError(
                    f"{path} is or contains a symbolic link, which may lead out of the dataset"
                )
            if path.exists() and not has_digest(path, self.target, sha256):
                raise DatasetError(
                    f"{path} exists and is not a file of this export",
                    hint="Move it away, or export to another folder",
                )

    def close(self) -> None:
        """Remove the working folder; the lock last, because then another export may start."""
        with translate_errors(self.folder, "cannot be removed"):
            clear_folder(self.folder, keep=(LOCK, HOLDER))
            for name in (HOLDER, LOCK):
                (self.folder / name).unlink(missing_ok=True)
            try:
                self.folder.rmdir()
            except OSError as error:
                # A waiting export has created its own lock there, or has already finished.
                if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
                    raise


def is_behind_link(path: Path, folder: Path) -> bool:
    """Return whether *path*, or a folder above it within *folder*, is a symbolic link."""
    steps = [path, *path.parents][: len(path.relative_to(folder).parts)]
    return any(step.is_symlink() for step in steps)


def has_digest(path: Path, folder: Path, sha256: str) -> bool:
    """Return whether *path* in *folder* is a regular file with this SHA-256."""
    return not is_behind_link(path, folder) and path.is_file() and digest(path) == sha256


@contextmanager
def open_work_folder(
    target: Path, folder: Path, shown_target: object = None
) -> Iterator[WorkFolder]:
    """Hold the lock of *target*, and yield its working *folder*; at the end, remove it.

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
    for name in (LOCK, HOLDER, PUBLISHING):
        # The export that holds the lock may remove the file at any moment.
        with translate_errors(folder / name, "cannot be read"), suppress(FileNotFoundError):
            if not stat.S_ISREG((folder / name).lstat().st_mode):
                raise DatasetError(f"{folder / name} is not a regular file", hint="Remove it")
    with hold_lock(folder, shown_target or target.absolute()):
        work = WorkFolder(target, folder)
        try:
            yield work
        except BaseException:
            # With a record, the next export has files to withdraw.
            if not (folder / PUBLISHING).exists():
                with suppress(DatasetError):
                    work.close()
            raise
        work.close()
