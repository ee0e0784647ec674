"""The existing dataset in the target of an export: compatibility, and the point to resume."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.dataset import published
from beaconframes.errors import DatasetError
from beaconframes.exports.work_folder import IncompatibleExport
from beaconframes.text import visible

if TYPE_CHECKING:
    from pathlib import Path

    from beaconframes.dataset import Segment
    from beaconframes.exports.manifest import ManifestTable

PLANNED = ("key", "format", "raw", "partitioned_by", "partition_key", "sorted_by", "request")
"""The properties of a table that later exports share."""
_HEAD = ("finalized_epoch", "finalized_time", "latest_epoch", "latest_slot")
ORIGIN = ("service", "simulated", "chain")
"""The origin of rows: the same for all tables of a dataset, and unknown for frames."""


@dataclass(frozen=True)
class ExistingDataset:
    """The manifest of the dataset in the target, and the files that it lists."""

    manifest: dict[str, Any] = field(default_factory=dict)
    segments: tuple[Segment, ...] = ()

    def list_files(self, table: str) -> list[Segment]:
        """Return the files of one table."""
        return [segment for segment in self.segments if segment.table == table]


def read_existing_dataset(path: Path) -> ExistingDataset:
    """Return the dataset in the folder *path*; raise a DatasetError if a file was changed."""
    manifest_path = path / published.NAME
    if manifest_path.is_symlink() or not manifest_path.exists():
        return ExistingDataset()
    manifest = published.read_manifest(path)
    segments = published.list_segments(manifest, manifest_path)
    for segment in segments:
        if reason := published.find_damage(segment, path, thorough=True):
            raise DatasetError(
                f"{path / segment.path} {reason}",
                hint="Restore it from a copy, or export to another folder",
            )
    return ExistingDataset(manifest, tuple(segments))


def extend_dataset(existing: ExistingDataset, tables: list[ManifestTable], target: Path) -> None:
    """Let all *tables* continue after the published rows.

    Raises IncompatibleExport if the dataset in *target* has other arguments.
    """
    is_simulated = extract_origin(existing)["simulated"]
    old_tables = existing.manifest.get("tables", {})
    is_only = old_tables.keys() <= {table.name for table in tables}
    for table in tables:
        if table.source.provenance.get("simulated") is None:
            # Frames lose the mark of simulated rows.
            table.source.provenance["simulated"] = is_simulated
        check_existing_table(existing, table, target, has_other_tables=not is_only)
        if table.source.extend is not None:
            table.source.extend(old_tables.get(table.name, {}), table.partitioning)


def check_existing_table(
    existing: ExistingDataset, table: ManifestTable, target: Path, *, has_other_tables: bool
) -> None:
    """Raise IncompatibleExport if rows of *table* do not fit to the dataset in *target*."""
    name = table.name
    old_origin, origin = extract_origin(existing), find_origin(table)
    known = [key for key in ORIGIN if None not in (old_origin[key], origin[key])]
    if differences := describe_differences(
        {key: old_origin[key] for key in known}, {key: origin[key] for key in known}
    ):
        raise IncompatibleExport(
            f"the dataset in {target} is from another source: {differences}",
            hint="Choose another folder, or remove this one",
        )
    if old_origin["simulated"] is None:
        # So did the frames of the existing rows.
        origin["simulated"] = None
    if name in existing.manifest.get("tables", {}):
        old_plan, plan = build_plan(existing.manifest["tables"][name]), build_plan(table.to_dict())
        if not has_other_tables:
            # Otherwise, a table of unknown origin takes over the origin of the other tables.
            old_plan, plan = old_plan | old_origin, plan | origin
        if differences := describe_differences(old_plan, plan):
            raise IncompatibleExport(
                f"{target} has a different table {name}: {differences}",
                hint="Give the same arguments as before, choose another folder, or remove this one",
            )
    if not all(has_valid_ranges(file, table) for file in existing.list_files(name)):
        raise DatasetError(
            f"the manifest in {target} has ranges that the columns of {name} cannot contain",
            hint="Restore it from a copy, or export to another folder",
        )


def has_valid_ranges(file: Segment, table: ManifestTable) -> bool:
    """Return whether the ranges of a file match the types of its columns."""
    schema = table.source.table.schema
    return all(
        name in schema
        and isinstance(value, int) == (schema[name].is_integer() or schema[name] == pl.Boolean)
        for name, pair in file.ranges.items()
        for value in pair
    )


def build_plan(table: dict[str, Any]) -> dict[str, Any]:
    """Return the properties of a *table* in a manifest that every later export must have.

    The bounds of a request move with the chain; `extend` checks them.
    """
    columns = {column["name"]: column["type"] for column in table["columns"]}
    bounds = ("since", "until", "only")
    request = {name: value for name, value in table["request"].items() if name not in bounds}
    plan = {"columns": columns} | {name: table.get(name) for name in PLANNED}
    return plan | {"request": request}


def find_origin(table: ManifestTable) -> dict[str, Any]:
    """Return the origin of the rows of *table*."""
    source = table.source
    origin = {name: source.provenance.get(name) for name in ORIGIN}
    return origin | {"chain": source.chain and source.chain.name}


def extract_origin(existing: ExistingDataset) -> dict[str, Any]:
    """Return the origin of the existing rows, of all tables together."""
    provenance = existing.manifest.get("provenance", {})
    chain = provenance.get("chain")
    return {
        "service": provenance.get("service"),
        "simulated": provenance.get("simulated"),
        "chain": None if chain is None else chain["name"],
    }


def describe_differences(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> str:
    """Return the differences of two plans as text; "" if they are equal."""
    differences = []
    for name in dict.fromkeys([*old, *new]):
        before, now = old.get(name), new.get(name)
        if isinstance(before, dict) and isinstance(now, dict):
            differences.append(describe_differences(before, now, f"{prefix}{name}."))
        elif before != now:
            texts = ("nothing" if value is None else visible(value, 80) for value in (before, now))
            differences.append(f"{prefix}{name} was {', now it is '.join(texts)}")
    return "; ".join(part for part in differences if part)


def merge_other_tables(manifest: dict[str, Any], existing: ExistingDataset) -> dict[str, Any]:
    """Return the *manifest* with the existing tables that this export does not write."""
    old_tables = existing.manifest.get("tables", {})
    if old_tables.keys() <= manifest["tables"].keys():
        return manifest
    tables = dict(sorted({**old_tables, **manifest["tables"]}.items()))
    known_values = {
        name: value for name, value in manifest["provenance"].items() if value is not None
    }
    old = existing.manifest["provenance"]
    # Rows after the finalized epoch of a dataset cannot be loaded from it.
    ends = [side.get("finalized_epoch") for side in (old, known_values)]
    is_later = ends[0] is not None and (ends[1] is None or ends[0] > ends[1])
    head = old if is_later else manifest["provenance"]
    merged = {
        **manifest,
        "tables": tables,
        "complete": not any(table["gaps"] for table in tables.values()),
        "provenance": {
            **manifest["provenance"],
            **old,
            **known_values,
            **{name: head.get(name) for name in _HEAD if name in old or name in known_values},
            "endpoints": sorted({t["endpoint"] for t in tables.values() if t["endpoint"]}),
        },
    }
    return {**merged, "checksum": published.checksum(merged)}
