"""Targets: where an export goes, and in which format."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeGuard

from beaconframes.dataset import ledger
from beaconframes.errors import UsageError
from beaconframes.exports.formats import Format, by_ending, get_format
from beaconframes.text import visible

LONGEST = 200
"""Bytes of a name: every file system takes 255, and drafts have longer ones."""
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)


@dataclass(frozen=True)
class Target:
    """A folder, or a file if ``single``, and the format of what is in it."""

    path: Path
    form: Format
    single: bool

    def at(self, path: Path) -> Target:
        """Return the same at another place."""
        return replace(self, path=path)


def target_of(target: object, form: str | None) -> Target:
    """Return what *target* means: a name that ends like a format's files is one file."""
    if not isinstance(target, str | os.PathLike):
        raise UsageError(f"target={target!r} is no path", hint="Give a folder, or a file")
    text = os.fspath(target)
    path = checked(text)
    ending = None if text.endswith(("/", os.sep)) or path.is_dir() else by_ending(path.name)
    wanted = None if form is None else get_format(form)
    if ending is not None and wanted is not None and ending is not wanted:
        raise UsageError(
            f"{visible(path.name)} is called like a file of {ending.name}, not of {wanted.name}",
            hint=f"Call it {path.stem}{wanted.endings[0]}, or leave format= out",
        )
    chosen = wanted or ending or get_format("parquet")
    if path.exists() and path.is_dir() != (ending is None):
        what = "is a file" if ending is None else "is a folder"
        raise UsageError(f"{visible(text)} {what}", hint="Choose another target")
    if ending is None and (path / ledger.NAME).exists():
        raise UsageError(
            f"{visible(text)} is a store or a simulated chain, and has files of its own",
            hint="Choose another target",
        )
    return Target(path, chosen, single=ending is not None)


def checked(text: object) -> Path:
    """Return *text* as a path that every system understands and that leads nowhere else."""
    if not is_text(text) or not text or "\0" in text:
        raise UsageError(f"target={visible(str(text), 60)!r} is no path", hint="Give a folder")
    path = Path(text)
    # Of somebody who has no home here it is a name like any other.
    with suppress(RuntimeError):
        path = path.expanduser()
    for step in path.parts:
        if step == "..":
            raise UsageError(
                f"target={visible(text, 60)} leads upwards",
                hint="Give the folder itself: Path(...).resolve()",
            )
        if len(os.fsencode(step)) > LONGEST:
            raise UsageError(f"a name of {len(step)} characters is too long for some systems")
        if _DEVICE.fullmatch(step):
            raise UsageError(f"{step} is the name of a device on some systems")
    try:
        # What cannot even be looked at cannot be written to.
        linked = path.is_symlink()
        path.is_dir()
    except OSError as error:
        raise UsageError(
            f"target={visible(text, 60)} cannot be used: {error.strerror}",
            hint="Choose another target",
        ) from None
    if linked:
        raise UsageError(
            f"{visible(text)} is a symbolic link", hint="Give the folder that it leads to"
        )
    return path


def is_text(value: object) -> TypeGuard[str]:
    """Tell whether a value is a text that can be written into a file."""
    if not isinstance(value, str):
        return False
    with suppress(UnicodeEncodeError):
        value.encode()
        return True
    return False
