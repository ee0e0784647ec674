"""Local targets of an export: a folder or a file, and the file format."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeGuard

from beaconframes.dataset import ledger
from beaconframes.errors import DatasetError, UsageError
from beaconframes.exports.formats import FORMATS, Format, find_format, get_format
from beaconframes.text import visible

MAX_NAME_BYTES = 200
"""File systems allow 255 bytes, and the names of drafts are longer than the final ones."""
_FILE_ENDING = re.compile(r"\.[a-z][a-z0-9]{0,7}", re.IGNORECASE)
"""Such as ``.gz``; a folder may have a dot in its name, as in ``income-1.5``."""
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)


@dataclass(frozen=True)
class Target:
    """A folder, or one file if ``is_file``, and the format of the data files."""

    path: Path
    format: Format
    is_file: bool

    def at(self, path: Path) -> Target:
        """Return the same target at another path."""
        return replace(self, path=path)


def parse_target(target: object, format_name: str | None) -> Target:
    """Return *target* as a folder or a file; a name with a known extension is a file."""
    if not isinstance(target, str | os.PathLike):
        raise UsageError(f"target={target!r} is not a path", hint="Give a folder or a file")
    text = os.fspath(target)
    path = check_path(text)
    is_folder = text.endswith(("/", os.sep)) or path.is_dir()
    by_extension = None if is_folder else find_file_format(path.name)
    requested = None if format_name is None else get_format(format_name)
    if by_extension is not None and requested is not None and by_extension is not requested:
        raise UsageError(
            f"{visible(path.name)} has the extension of {by_extension.name}, and "
            f"format={requested.name!r}",
            hint=f"Call it {path.stem}{requested.extensions[0]}, or leave format= out",
        )
    chosen = requested or by_extension or get_format("parquet")
    if path.exists() and path.is_dir() != (by_extension is None):
        kind = "is a file" if by_extension is None else "is a folder"
        raise UsageError(f"{visible(text)} {kind}", hint="Choose another target")
    if by_extension is None and chosen.read is None:
        raise UsageError(
            f"format={chosen.name!r} is for one file, and {visible(text)} is a folder",
            hint=f"Give a file that ends in {chosen.extensions[0]}, or choose another format",
        )
    if by_extension is None and (path / ledger.NAME).exists():
        raise UsageError(
            f"{visible(text)} contains a store or a simulated chain", hint="Choose another folder"
        )
    return Target(path, chosen, is_file=by_extension is not None)


def find_file_format(name: str) -> Format | None:
    """Return the format of a file *name*, None for the name of a folder; refuse other endings."""
    file_format = find_format(name)
    if file_format is None and _FILE_ENDING.fullmatch(Path(name).suffix):
        endings = ", ".join(form.extensions[0] for form in FORMATS.values())
        raise UsageError(
            f"{visible(name)} has no known ending",
            hint=f"A file ends in {endings}; the name of a folder ends in /",
        )
    return file_format


def check_overwrite(target: Target, *, overwrite: bool) -> None:
    """Refuse to replace a file without *overwrite*; a dataset is never replaced."""
    if overwrite and not target.is_file:
        raise UsageError(
            f"overwrite=True replaces a file, and {visible(str(target.path))} is a folder",
            hint="Leave overwrite out to add to the dataset, or choose another folder",
        )
    if target.is_file and target.path.exists() and not overwrite:
        raise DatasetError(
            f"{visible(str(target.path))} already exists", hint="Give overwrite=True to replace it"
        )


def check_path(text: object) -> Path:
    """Return *text* as a path that is valid on every system; raise a UsageError otherwise.

    Symbolic links and ``..`` are refused: they would write outside the named folder.
    """
    if not is_text(text) or not text or "\0" in text:
        raise UsageError(f"target={visible(str(text), 60)!r} is not a path", hint="Give a folder")
    path = Path(text)
    # For a user without a home folder here, `~name` is an ordinary file name.
    with suppress(RuntimeError):
        path = path.expanduser()
    for step in path.parts:
        if step == "..":
            raise UsageError(
                f"target={visible(text, 60)} contains '..'",
                hint="Give the folder itself: Path(...).resolve()",
            )
        if len(os.fsencode(step)) > MAX_NAME_BYTES:
            raise UsageError(f"a file name of {len(step)} characters is too long for some systems")
        if _DEVICE.fullmatch(step):
            raise UsageError(f"{step} is the name of a device on some systems")
    try:
        # A path that cannot be examined cannot be written to either.
        is_link = path.is_symlink()
        path.is_dir()
    except OSError as error:
        raise UsageError(
            f"target={visible(text, 60)} cannot be used: {error.strerror}",
            hint="Choose another target",
        ) from None
    if is_link:
        raise UsageError(
            f"{visible(text)} is a symbolic link", hint="Give the folder that it points to"
        )
    return path


def is_text(value: object) -> TypeGuard[str]:
    """Return whether a value is text that can be written as UTF-8."""
    if not isinstance(value, str):
        return False
    with suppress(UnicodeEncodeError):
        value.encode()
        return True
    return False
