"""Files that are whole or not there: written beside, made durable, and then given their name."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.dataset.segments import digest, sync
from beaconframes.errors import DatasetError
from beaconframes.exports.formats import FORMATS, Cells

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path


@contextmanager
def judged(path: Path, doing: str = "cannot be written", needs: int = 0) -> Iterator[None]:
    """Turn what the system raises into a DatasetError that names the file and the reason.

    The file *needs* up to so many bytes.
    """
    try:
        yield
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise DatasetError(
            f"{path} {doing}: {reason}{room(path, error, needs)}",
            hint="What was published before is unchanged; the same call goes on where it was",
        ) from error


def room(path: Path, error: BaseException, needs: int) -> str:
    """Say how much room there is, if that may be why a file could not be written.

    Polars does not always tell what the system has said.
    """
    told = getattr(error, "errno", None)
    if told not in (None, errno.ENOSPC, errno.EDQUOT):
        return ""
    for folder in path.absolute().parents:
        with suppress(OSError):
            free = f"{shutil.disk_usage(folder).free:,} bytes are free there"
            return f" ({free}, up to {needs:,} are needed)" if needs else f" ({free})"
    return ""


def write(rows: pl.DataFrame, draft: Path, form: str, *, raw: bool) -> None:
    """Write *rows* into a file."""
    with judged(draft, needs=int(rows.estimated_size())):
        file = FORMATS[form].write(draft, Cells(raw))
        try:
            file.add(rows)
        finally:
            file.close()


def settled(draft: Path) -> tuple[int, str]:
    """Make a written file durable, and return its bytes and its SHA-256."""
    with judged(draft):
        sync(draft)
        return draft.stat().st_size, digest(draft)


def put(draft: Path, path: Path) -> None:
    """Give a durable *draft* its name."""
    with judged(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.replace(path)


def put_text(text: str, draft: Path, path: Path) -> None:
    """Write *text* as a file, all of it or nothing; one that says just that is left alone."""
    data = text.encode()
    with judged(path):
        if same(path, text):
            return
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        sync(path.parent)


def same(path: Path, text: str) -> bool:
    """Tell whether a file says just this already."""
    if path.is_symlink() or not path.is_file():
        return False
    return path.read_bytes() == text.encode()


def clear(folder: Path, but: Collection[str]) -> None:
    """Remove all that is in *folder*, *but* what has one of those names."""
    for path in folder.iterdir():
        if path.name not in but:
            with judged(path, "cannot be removed"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def settle(folders: Iterable[Path]) -> None:
    """Make the names in *folders* durable."""
    for folder in sorted(set(folders)):
        with judged(folder):
            sync(folder)
