"""The manifest of a published dataset, which lists its files instead of a ledger.

The manifest is JSON, so any tool can read it and check the files. Opening a dataset checks their
sizes, ``verify`` their SHA-256.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

import polars as pl
from msgspec import Meta, Struct, ValidationError, convert

from beaconframes.dataset import segments
from beaconframes.dataset.ledger import Segment
from beaconframes.errors import DatasetError
from beaconframes.text import type_name, visible

if TYPE_CHECKING:
    from pathlib import Path

NAME = "manifest.json"
FORMAT = "beaconframes-export"
FORMAT_VERSION = 1
MAX_MANIFEST_BYTES = 2**28
"""A manifest of a million files is smaller."""

_PATH_STEP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_=.\-]{0,119}")

Count = Annotated[int, Meta(ge=0, le=2**62)]
Positive = Annotated[int, Meta(ge=1, le=2**62)]
Ranges = dict[str, tuple[int | str | bool, int | str | bool]]
TableName = Annotated[str, Meta(pattern="^[a-z][a-z0-9_]{0,63}$")]


class ManifestFile(Struct):
    """A file in a manifest."""

    path: str
    rows: Count
    bytes: Count
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    ranges: Ranges


class ManifestColumn(Struct):
    """A column in a manifest."""

    name: str
    type: str
    unit: str
    key: bool
    meaning: str


class ManifestTable(Struct):
    """A table in a manifest: the fields that reading and extending need."""

    title: str
    rows: Count
    columns: list[ManifestColumn]
    key: list[str]
    ranges: Ranges
    format: Literal["parquet", "csv", "jsonl", "arrow"]
    raw: bool
    partitioned_by: str | None
    partition_key: str | None
    endpoint: str | None
    request: dict[str, Any]
    gaps: list[dict[str, Any]]
    files: list[ManifestFile]
    sorted_by: list[str] | None = None


class ManifestChain(Struct):
    """The chain in a manifest."""

    name: str
    genesis: str
    seconds_per_slot: Positive
    slots_per_epoch: Positive


class Provenance(Struct):
    """The origin of the rows in a manifest."""

    chain: ManifestChain | None = None
    finalized_epoch: int | None = None
    finalized_time: str | None = None
    latest_epoch: int | None = None
    latest_slot: int | None = None


class Manifest(Struct):
    """The required fields of a manifest; it has others too."""

    tables: dict[TableName, ManifestTable]
    provenance: Provenance


def checksum(manifest: dict[str, Any]) -> str:
    """Return the SHA-256 of a manifest's content, which does not depend on its layout."""
    content = {name: value for name, value in manifest.items() if name != "checksum"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a folder; raise DatasetError for an invalid one."""
    path = folder / NAME
    try:
        if path.stat().st_size > MAX_MANIFEST_BYTES:
            raise DatasetError(f"{path} is larger than {MAX_MANIFEST_BYTES:,} bytes")
        manifest = json.loads(path.read_bytes())
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise _damage_error(path, str(error)) from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise DatasetError(f"{path} is not the manifest of a beaconframes dataset")
    if manifest.get("format_version") != FORMAT_VERSION:
        raise DatasetError(
            f"{folder} has format version {manifest.get('format_version')}, "
            f"this beaconframes reads version {FORMAT_VERSION}",
            hint="Install a newer beaconframes, or export the dataset again",
        )
    if manifest.get("checksum") != checksum(manifest):
        raise _damage_error(path, "it was edited: its checksum does not match its content")
    try:
        checked = convert(manifest, Manifest)
    except ValidationError as error:
        raise _damage_error(path, visible(str(error), 200)) from error
    for name, table in checked.tables.items():
        if column := find_mixed_types([table.ranges, *(file.ranges for file in table.files)]):
            raise _damage_error(
                path, f"the ranges of {name}.{visible(column, 60)} mix text and numbers"
            )
    return manifest


def find_mixed_types(every: list[Ranges]) -> str | None:
    """Return the first column with texts and numbers in its ranges, None if there is none."""
    texts: dict[str, bool] = {}
    for ranges in every:
        for column, pair in ranges.items():
            for value in pair:
                if texts.setdefault(column, isinstance(value, str)) != isinstance(value, str):
                    return column
    return None


def list_segments(manifest: dict[str, Any], path: Path) -> list[Segment]:
    """Return the files that the manifest at *path* lists."""
    found: dict[str, Segment] = {}
    for name, table_entry in manifest["tables"].items():
        for file in table_entry["files"]:
            where = file["path"]
            if not is_safe_path(where) or not where.startswith(f"{name}/"):
                raise DatasetError(
                    f"{path} lists {visible(where, 60)!r}, which is outside of its dataset"
                )
            form = table_entry["format"]
            # Only files that are called Parquet are checked as such before they are read.
            if not where.endswith(f".{form}"):
                raise _damage_error(path, f"it lists {where}, which is no {form} file")
            if where in found:
                raise _damage_error(path, f"it lists {where} twice")
            ranges = {key: tuple(pair) for key, pair in file["ranges"].items()}
            found[where] = Segment(name, where, file["rows"], file["bytes"], file["sha256"], ranges)
    return list(found.values())


def find_last_epoch(manifest: dict[str, Any], slots_per_epoch: int) -> int | None:
    """Return the last epoch in the key ranges of all tables, None if there is none."""
    found: list[int] = []
    for table in manifest["tables"].values():
        ends = {name: last for name, (_, last) in table["ranges"].items()}
        units = (("epoch", 1), ("slot", slots_per_epoch), ("block_slot", slots_per_epoch))
        found += [ends[name] // size for name, size in units if isinstance(ends.get(name), int)]
    return max(found, default=None)


def find_damage(segment: Segment, folder: Path, *, thorough: bool) -> str | None:
    """Return the damage of a file, None if it has none; *thorough* reads the whole file."""
    return segments.find_damage(segment, folder, thorough=thorough, is_valid=is_safe_path)


def find_column_difference(manifest: dict[str, Any], segment: Segment, folder: Path) -> str | None:
    """Return the first difference of the columns to the manifest as text, None without one."""
    columns = manifest["tables"][segment.table]["columns"]
    expected = {column["name"]: column["type"] for column in columns}
    try:
        # `read_parquet_schema` takes a path with a bracket for a pattern.
        schema = pl.scan_parquet(folder / segment.path, glob=False).collect_schema()
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        return f"cannot be read: {visible(str(error).splitlines()[0], 100)}"
    actual = {name: type_name(dtype) for name, dtype in schema.items()}
    if actual == expected:
        return None
    name = next((n for n in [*expected, *actual] if expected.get(n) != actual.get(n)), "")
    return f"has {actual.get(name, 'no column')} where {name} is {expected.get(name, 'nothing')}"


def is_safe_path(path: object) -> bool:
    """Return whether a path stays inside the dataset: plain names, no ``..``, not absolute."""
    return isinstance(path, str) and all(_PATH_STEP.fullmatch(step) for step in path.split("/"))


def _damage_error(path: Path, reason: str) -> DatasetError:
    return DatasetError(
        f"{path} is damaged: {reason}", hint="Restore it from a copy, or export the dataset again"
    )
