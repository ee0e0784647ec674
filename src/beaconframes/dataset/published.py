"""A published dataset, read: the same folder of tables, named by a manifest instead of a ledger.

The manifest is text that anybody can read and check. It never changes in place, so what it names
can be trusted as far as it can be verified: by size when it is opened, by SHA-256 with ``verify``.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError, convert

from beaconframes.dataset.segments import Segment
from beaconframes.errors import DatasetError
from beaconframes.text import visible

if TYPE_CHECKING:
    from pathlib import Path

NAME = "manifest.json"
FORMAT = "beaconframes-export"
FORMAT_VERSION = 1
LARGEST = 2**28
"""Bytes of a manifest that are read: a million files are less."""

_STEP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_=.\-]{0,119}")

Count = Annotated[int, Meta(ge=0, le=2**62)]
Positive = Annotated[int, Meta(ge=1, le=2**62)]
Ranges = dict[str, tuple[int | str | bool, int | str | bool]]
TableName = Annotated[str, Meta(pattern="^[a-z][a-z0-9_]{0,63}$")]


class File(Struct):
    """What a manifest says of a file."""

    path: str
    rows: Count
    bytes: Count
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    ranges: Ranges


class Named(Struct):
    """What a manifest says of a column."""

    name: str
    type: str
    unit: str
    key: bool
    meaning: str


class Table(Struct):
    """What a manifest says of a table, as far as reading it, or adding to it, depends on it."""

    title: str
    rows: Count
    columns: list[Named]
    key: list[str]
    ranges: Ranges
    format: Literal["parquet", "csv", "jsonl", "arrow", "duckdb", "xlsx"]
    raw: bool
    partitioned_by: str | None
    partition_key: str | None
    endpoint: str | None
    request: dict[str, Any]
    gaps: list[dict[str, Any]]
    files: list[File]
    sorted_by: list[str] | None = None


class Chain(Struct):
    """What a manifest says of the chain."""

    name: str
    genesis: str
    seconds_per_slot: Positive
    slots_per_epoch: Positive


class Provenance(Struct):
    """What a manifest says of where its rows are from."""

    chain: Chain | None = None
    finalized_epoch: int | None = None
    finalized_time: str | None = None
    latest_epoch: int | None = None
    latest_slot: int | None = None


class Manifest(Struct):
    """The shape of a manifest: whatever else is in it, this is."""

    tables: dict[TableName, Table]
    provenance: Provenance


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
    try:
        found = convert(told, Manifest)
    except ValidationError as error:
        raise _damaged(path, visible(str(error), 200)) from error
    for name, table in found.tables.items():
        if column := mixed([table.ranges, *(file.ranges for file in table.files)]):
            raise _damaged(path, f"{name} has ranges of {visible(column, 60)} that do not compare")
    return told


def mixed(every: list[Ranges]) -> str | None:
    """Return the first column that has a text in one range and a number in another, if any."""
    texts: dict[str, bool] = {}
    for ranges in every:
        for column, pair in ranges.items():
            for value in pair:
                if texts.setdefault(column, isinstance(value, str)) != isinstance(value, str):
                    return column
    return None


def segments(told: dict[str, Any], path: Path, table: str | None = None) -> list[Segment]:
    """Return the files that a manifest names, of one table or of all; they lie beside it."""
    found: dict[str, Segment] = {}
    for name, described in told["tables"].items():
        if table not in (None, name):
            continue
        for file in described["files"]:
            where = file["path"]
            if not safe(where) or not where.startswith(f"{name}/"):
                raise DatasetError(
                    f"{path} names {visible(where, 60)!r}, which is no file of its own"
                )
            if where in found:
                raise _damaged(path, f"it names {where} twice")
            ranges = {key: tuple(pair) for key, pair in file["ranges"].items()}
            found[where] = Segment(name, where, file["rows"], file["bytes"], file["sha256"], ranges)
    return list(found.values())


def damage(segment: Segment, folder: Path, *, thorough: bool) -> str | None:
    """Say what is wrong with a file, if anything; *thorough* reads all of it."""
    return segment.damage(folder, thorough=thorough, named=safe)


def safe(path: object) -> bool:
    """Tell whether a path leads to a file inside the dataset, and nowhere else."""
    return isinstance(path, str) and all(_STEP.fullmatch(step) for step in path.split("/"))


def _damaged(path: Path, why: str) -> DatasetError:
    return DatasetError(
        f"{path} is damaged: {why}", hint="Restore it from a copy, or export the dataset anew"
    )
