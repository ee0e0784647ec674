"""The manifest: which files a dataset has, and where its rows are from.

It is written last, so that a dataset is what its manifest says: a file that it does not name is
no part of it. It holds nothing that changes from one export of the same rows to the next, no clock
and no address of this machine; when an export was made stands in ``history.jsonl``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from beaconframes.dataset.published import FORMAT, FORMAT_VERSION, checksum
from beaconframes.errors import UsageError
from beaconframes.exports.targets import is_text
from beaconframes.text import visible

if TYPE_CHECKING:
    from beaconframes.dataset import Segment
    from beaconframes.exports.formats import Format
    from beaconframes.exports.partitions import Partitioning
    from beaconframes.exports.sources import Source
    from beaconframes.exports.table_descriptions import TableDescription


@dataclass
class ManifestTable:
    """One table of a manifest."""

    described: TableDescription
    form: Format
    partition: Partitioning
    files: list[Segment]
    raw: bool = False
    request: dict[str, Any] = field(default_factory=dict)
    gaps: list[dict[str, Any]] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Return how many rows it has."""
        return sum(segment.rows for segment in self.files)

    @property
    def ranges(self) -> dict[str, list[int | str]]:
        """Return the least and the greatest value of each key column."""
        every = [s.ranges for s in self.files]
        names = dict.fromkeys(name for found in every for name in found)
        return {
            name: [
                min(found[name][0] for found in every if name in found),
                max(found[name][1] for found in every if name in found),
            ]
            for name in names
        }

    def told(self) -> dict[str, Any]:
        """Return it as the manifest has it."""
        table = self.described
        return {
            "title": table.grain,
            "rows": self.rows,
            "key": table.key,
            "ranges": self.ranges,
            "format": self.form.name,
            "raw": self.raw,
            "partitioned_by": self.partition.by or None,
            "partition_key": self.partition.key or None,
            "sorted_by": self.partition.order(table.key),
            "columns": [
                {"name": c.name, "type": c.type, "unit": c.unit, "key": c.key, "meaning": c.meaning}
                for c in table.columns
            ],
            "endpoint": table.route or None,
            "request": self.request,
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


@dataclass(frozen=True)
class DatasetInfo:
    """What the makers of a dataset say of it."""

    name: str
    title: str
    creators: tuple[str, ...] = ()
    license: str | None = None
    url: str | None = None


def said(what: str, text: object) -> str | None:
    """Return a *text* as it can be written down; a UsageError names *what* cannot be."""
    if text is not None and not is_text(text):
        raise UsageError(f"{what}={visible(repr(text), 60)} is no text", hint="Give a text")
    return text


def authors(creators: object) -> tuple[str, ...]:
    """Return who made a dataset: a name, or several."""
    every = [creators] if isinstance(creators, str) else creators
    named = [*every] if isinstance(every, Iterable) else [None]
    texts = tuple(name for name in named if is_text(name))
    if len(texts) < len(named):
        raise UsageError(
            f"creators={visible(repr(creators), 60)} are no names", hint="Give a list of texts"
        )
    return texts


def manifest(
    about: DatasetInfo, facts: dict[str, Any], tables: list[ManifestTable]
) -> dict[str, Any]:
    """Return the manifest of a dataset with these *tables*, that is from where *facts* say."""
    told: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "name": about.name,
        "title": about.title,
        "creators": list(about.creators),
        "license": about.license,
        "url": about.url,
        "complete": not any(table.gaps for table in tables),
        "provenance": {
            **facts,
            "endpoints": sorted({t.described.route for t in tables if t.described.route}),
            "software": f"beaconframes {version('beaconframes')}",
        },
        "tables": {
            t.described.name: t.told() for t in sorted(tables, key=lambda t: t.described.name)
        },
    }
    return {**told, "checksum": checksum(told)}


def text(told: dict[str, Any]) -> str:
    """Return *told* as the text of a file."""
    return json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def facts_of(sources: list[Source]) -> dict[str, Any]:
    """Return where the rows of all *sources* are from; they agree on it."""
    facts: dict[str, Any] = {
        "service": None,
        "simulated": None,
        "chain": None,
        "finalized_epoch": None,
        "finalized_time": None,
    }
    for source in sources:
        facts.update({name: value for name, value in source.facts.items() if value is not None})
        if source.chain is not None and facts["chain"] is None:
            facts["chain"] = chain_facts(source.chain)
    return facts


def chain_facts(chain: Any) -> dict[str, Any]:
    """Return a chain as a dataset has it."""
    from beaconframes.cache.local_store import chain_facts as told

    return told(chain)
