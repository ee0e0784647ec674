"""Atomic files: written as a draft, made durable, and then renamed."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.dataset.segments import sync
from beaconframes.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path


@contextmanager
def translate_errors(
    path: Path, failure: str = "cannot be written", needed_bytes: int = 0
) -> Iterator[None]:
    """Turn errors of the system and of polars into a DatasetError with the path and the reason.

    *failure* completes the message after the path; a file needs up to *needed_bytes*.
    """
    try:
        yield
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise DatasetError(
            f"{path} {failure}: {reason}{describe_free_space(path, error, needed_bytes)}",
            hint="The published files are unchanged. Run the same call again to resume",
        ) from error


@contextmanager
def errors_as_os_error(kind: type[Exception]) -> Iterator[None]:
    """Turn errors of a *kind* that a library raises, such as for a full disk, into an OSError."""
    try:
        yield
    except kind as error:
        raise OSError(str(error)) from error


def describe_free_space(path: Path, error: BaseException, needed_bytes: int) -> str:
    """Return a note on the free disk space if that may be the reason of an *error*, "" otherwise.

    Polars does not always pass on the error number of the system.
    """
    number = getattr(error, "errno", None)
    if number not in (None, errno.ENOSPC, errno.EDQUOT):
        return ""
    for folder in path.absolute().parents:
        with suppress(OSError):
            free = f"{shutil.disk_usage(folder).free:,} bytes are free there"
            return f" ({free}, up to {needed_bytes:,} are needed)" if needed_bytes else f" ({free})"
    return ""


def rename_draft(draft: Path, path: Path) -> None:
    """Rename a durable *draft* to its final *path*."""
    with translate_errors(path):
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True)
        draft.replace(path)


def write_text(text: str, path: Path) -> None:
    """Write *text* to a file, and make it durable."""
    with translate_errors(path), path.open("wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def clear_folder(folder: Path, keep: Collection[str]) -> None:
    """Remove everything in *folder* except the names in *keep*."""
    for path in folder.iterdir():
        if path.name not in keep:
            with translate_errors(path, "cannot be removed"):
                is_folder = path.is_dir() and not path.is_symlink()
                shutil.rmtree(path) if is_folder else path.unlink()


def sync_folders(folders: Iterable[Path]) -> None:
    """Make the file names in *folders* durable."""
    for folder in sorted(set(folders)):
        with translate_errors(folder):
            sync(folder)
