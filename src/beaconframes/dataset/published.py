"""A published dataset, read: the same folder of tables, named by a manifest instead of a ledger.

The manifest is text that anybody can read and check. It never changes in place, so what it names
can be trusted as far as it can be verified: by size when it is opened, by SHA-256 with ``verify``.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

from beaconframes.dataset.segments import Segment
from beaconframes.errors import DatasetError

if TYPE_CHECKING:
    from pathlib import Path

NAME = "manifest.json"
FORMAT = "beaconframes-export"
FORMAT_VERSION = 1
LARGEST = 2**28
"""Bytes of a manifest that are read: a million files are less."""

_STEP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_=.\-]{0,119}")


def checksum(told: dict[str, Any]) -> str:
    """Return the SHA-256 of what a manifest says, whatever its layout."""
    said = {name: value for name, value in told.items() if name != "checksum"}
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def read(folder: Path) -> dict[str, Any]:
    """Return the manifest of a folder; a DatasetError says why it cannot be trusted."""
    path = folder / NAME
    try:
        if path.stat().st_size > LARGEST:
            raise DatasetError(f"{path} is too large for a manifest")
        told = json.loads(path.read_bytes())
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise DatasetError(f"{path} is not the manifest of a dataset of beaconframes")
    if told.get("format_version") != FORMAT_VERSION:
        raise DatasetError(
            f"{folder} has format version {told.get('format_version')}, this beaconframes knows "
            f"{FORMAT_VERSION}",
            hint="Install a newer beaconframes, or make the dataset anew",
        )
    if told.get("checksum") != checksum(told):
        raise _damaged(path, "it was edited: its checksum is another one")
    return told


def segments(told: dict[str, Any], path: Path, table: str | None = None) -> list[Segment]:
    """Return the files that a manifest names, of one table or of all; they lie beside it."""
    found = []
    try:
        for name, described in told["tables"].items():
            if table not in (None, name):
                continue
            for file in described["files"]:
                if not safe(file["path"]):
                    raise DatasetError(
                        f"{path} names {file['path']!r}, which is no file of its own"
                    )
                ranges = {key: tuple(pair) for key, pair in file["ranges"].items()}
                found.append(
                    Segment(name, file["path"], file["rows"], file["bytes"], file["sha256"], ranges)
                )
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged(path, f"{error} is not there") from error
    return found


def damage(segment: Segment, folder: Path, *, thorough: bool) -> str | None:
    """Say what is wrong with a file, if anything; *thorough* reads all of it."""
    for parent in (folder / segment.path).parents:
        if parent == folder:
            break
        if parent.is_symlink():
            return "lies behind a symbolic link"
    return segment.damage(folder, thorough=thorough, named=safe)


def safe(path: object) -> bool:
    """Tell whether a path leads to a file inside the dataset, and nowhere else."""
    return isinstance(path, str) and all(_STEP.fullmatch(step) for step in path.split("/"))


def _damaged(path: Path, why: str) -> DatasetError:
    return DatasetError(
        f"{path} is damaged: {why}", hint="Restore it from a copy, or export the dataset anew"
    )
