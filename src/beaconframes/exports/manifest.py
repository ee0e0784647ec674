"""The manifest: the files of a dataset, and the origin of its rows.

It is written last and defines the dataset: a file that it does not list is not part of it. It
contains no time of the export and no path of this machine, so that the same rows have the same
manifest. The time of each export is in ``history.jsonl``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from beaconframes.dataset.published import FORMAT, FORMAT_VERSION, checksum
from beaconframes.endpoint.chain_metadata import describe_chain
from beaconframes.errors import UsageError
from beaconframes.exports.targets import is_text
from beaconframes.text import visible

if TYPE_CHECKING:
    from beaconframes.dataset import Segment
    from beaconframes.exports.formats import CellOptions, Format
    from beaconframes.exports.partitions import Partitioning
    from beaconframes.exports.sources import TableSource


@dataclass
class ManifestTable:
    """One table of a manifest: its source, how it is written, and its files."""

    source: TableSource
    format: Format
    cells: CellOptions
    partitioning: Partitioning
    files: list[Segment] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return the name of the table."""
        return self.source.table.name

    @property
    def gaps(self) -> list[dict[str, Any]]:
        """Return the missing rows."""
        return self.source.merge_gaps()

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return sum(segment.rows for segment in self.files)

    @property
    def ranges(self) -> dict[str, list[int | str]]:
        """Return the minimum and the maximum of each key column."""
        ranges = [segment.ranges for segment in self.files]
        names = dict.fromkeys(name for file_ranges in ranges for name in file_ranges)
        return {
            name: [
                min(file_ranges[name][0] for file_ranges in ranges if name in file_ranges),
                max(file_ranges[name][1] for file_ranges in ranges if name in file_ranges),
            ]
            for name in names
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of the manifest."""
        table = self.source.table
        return {
            "title": table.title,
            "rows": self.rows,
            "key": table.key,
            "ranges": self.ranges,
            "format": self.format.name,
            "raw": self.cells.raw,
            "partitioned_by": self.partitioning.by or None,
            "partition_key": self.partitioning.key or None,
            "sorted_by": self.partitioning.get_sort_key(table.key),
            "columns": [*table.columns],
            "endpoint": table.route or None,
            "request": self.source.request,
            "gaps": self.gaps,
            "files": [
                {
                    "path": s.path,
                    "rows": s.rows,
                    "bytes": s.bytes,
                    "sha256": s.sha256,
                    "ranges": {name: list(pair) for name, pair in s.ranges.items()},
                }
                for s in self.files
            ],
        }


def check_text(argument: str, value: object) -> str | None:
    """Return *value* if it is text or None; raise a UsageError that names the *argument*."""
    if value is not None and not is_text(value):
        raise UsageError(f"{argument}={visible(repr(value), 60)} is not text", hint="Give a str")
    return value


def check_license(value: object) -> str | None:
    """Return an SPDX license expression in its official spelling; refuse any other text."""
    text = check_text("license", value)
    if text is None:
        return None
    try:
        return canonicalize_license_expression(text)
    except InvalidLicenseExpression:
        raise UsageError(
            f"license={visible(repr(text), 60)} is not an SPDX license expression",
            hint='Give an identifier of https://spdx.org/licenses, such as "CC-BY-4.0" or '
            '"CC0-1.0"; for any other license "LicenseRef-" and a name',
        ) from None


def check_creators(creators: object) -> list[str]:
    """Return the names of the creators, from one name or several."""
    values = [creators] if isinstance(creators, str) else creators
    names = [*values] if isinstance(values, Iterable) else [None]
    texts = [name for name in names if is_text(name)]
    if len(texts) < len(names):
        raise UsageError(
            f"creators={visible(repr(creators), 60)} is not a list of names",
            hint="Give a list of str",
        )
    return texts


def build_manifest(info: dict[str, Any], tables: list[ManifestTable]) -> dict[str, Any]:
    """Return the manifest of a dataset with these *tables*, from *info* such as its title."""
    by_name = sorted(tables, key=lambda table: table.name)
    routes = {table.source.table.route for table in tables}
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        **info,
        "complete": not any(table.gaps for table in tables),
        "provenance": {
            **collect_provenance([table.source for table in tables]),
            "endpoints": sorted(route for route in routes if route),
            "software": f"beaconframes {version('beaconframes')}",
        },
        "tables": {table.name: table.to_dict() for table in by_name},
    }
    return {**manifest, "checksum": checksum(manifest)}


def to_json_text(value: dict[str, Any]) -> str:
    """Return *value* as the text of a JSON file."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def collect_provenance(sources: list[TableSource]) -> dict[str, Any]:
    """Return the provenance of the rows of all *sources*, which must be the same."""
    provenance: dict[str, Any] = {
        "service": None,
        "simulated": None,
        "chain": None,
        "finalized_epoch": None,
        "finalized_time": None,
    }
    for source in sources:
        known_values = {
            name: value for name, value in source.provenance.items() if value is not None
        }
        provenance.update(known_values)
        if source.chain is not None and provenance["chain"] is None:
            provenance["chain"] = describe_chain(source.chain)
    return provenance
