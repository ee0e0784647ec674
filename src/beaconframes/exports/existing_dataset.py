"""What is in the target already: a dataset to extend, an export to go on with, or nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.dataset import published
from beaconframes.errors import DatasetError, UsageError
from beaconframes.exports.journal import IncompatibleExport

if TYPE_CHECKING:
    from pathlib import Path

    from beaconframes.dataset import Segment
    from beaconframes.exports.formats import Cells, Format
    from beaconframes.exports.journal import ExportJournal
    from beaconframes.exports.partitions import Partitioning
    from beaconframes.exports.sources import Source

WHOSE = ("service", "simulated", "chain")


@dataclass(frozen=True)
class ExistingDataset:
    """The dataset that is there: what its manifest says, and the files that it names."""

    told: dict[str, Any] = field(default_factory=dict)
    segments: tuple[Segment, ...] = ()

    def files(self, table: str) -> list[Segment]:
        """Return the files of one table."""
        return [segment for segment in self.segments if segment.table == table]


def before(path: Path) -> ExistingDataset:
    """Return what is published in *path*; files that are not what they were are an error."""
    manifest = path / published.NAME
    if manifest.is_symlink() or not manifest.exists():
        return ExistingDataset()
    told = published.read_manifest(path)
    segments = published.list_segments(told, manifest)
    for segment in segments:
        if reason := published.find_damage(segment, path, thorough=True):
            raise DatasetError(
                f"{path / segment.path} {reason}",
                hint="Restore it from a copy, or export to another folder",
            )
    return ExistingDataset(told, tuple(segments))


def fit(
    there: ExistingDataset,
    work: ExportJournal,
    sources: list[Source],
    form: Format,
    divided: dict[str, Partitioning],
    cells: Cells,
) -> None:
    """Refuse what does not fit what is there, and write down what is to become of it."""
    others = others_of(there, sources)
    for source in sources:
        name = source.table.name
        new = wanted(source, form, divided[name], cells)
        whose = {fact: new[fact] for fact in WHOSE}
        if found := differences(known(whose_of(there), whose), known(whose, whose_of(there))):
            raise IncompatibleExport(
                f"{work.target} is of something else: {found}",
                hint="Choose another folder, or remove this one",
            )
        old = told_of(there, name)
        if others:
            # What this table does not say of itself, another one has said.
            old, new = known(old, whose), known(new, whose)
        if old and (found := differences(without_bounds(old), without_bounds(new))):
            raise IncompatibleExport(
                f"{work.target} has another {name}: {found}",
                hint="Give the same arguments as before, choose another folder, or remove this one",
            )
        if any(not fits(file, source) for file in there.files(name)):
            raise DatasetError(
                f"{work.target} says of {name} what its columns cannot hold",
                hint="Restore it from a copy, or export to another folder",
            )
        resume(there, work, source, divided[name])
    plan = {s.table.name: wanted(s, form, divided[s.table.name], cells) for s in sources}
    begun = work.plan
    if begun is not None and (found := differences(begun, plan)):
        raise IncompatibleExport(
            f"in {work.target} another export was begun: {found}",
            hint=f"Give the same arguments, choose another folder, or remove {work.path}",
        )
    if begun is None:
        work.begin(plan)


def fits(file: Segment, source: Source) -> bool:
    """Tell whether the ranges of a file are such as its columns can have."""
    schema = source.table.schema
    return all(
        name in schema
        and isinstance(value, int) == (schema[name].is_integer() or schema[name] == pl.Boolean)
        for name, pair in file.ranges.items()
        for value in pair
    )


def known(plan: dict[str, Any], whose: dict[str, Any]) -> dict[str, Any]:
    """Return a *plan* but for whose data it is, where that is not known, here or in *whose*."""
    return {
        name: value
        for name, value in plan.items()
        if name not in WHOSE or (value is not None and whose.get(name) is not None)
    }


def without_bounds(plan: dict[str, Any]) -> dict[str, Any]:
    """Return a plan without what may move with the chain; whoever resumes looks at that."""
    bounds = ("since", "until", "only")
    return {**plan, "request": {k: v for k, v in plan["request"].items() if k not in bounds}}


def resume(
    there: ExistingDataset, work: ExportJournal, source: Source, divided: Partitioning
) -> None:
    """Let *source* begin where what is there ends."""
    name = source.table.name
    source.journal = lambda gap: work.missing(name, gap)
    if source.resume is None:
        work.done.pop(name, None)
        return
    done = []
    begun_in = dict.fromkeys(p.rpartition("/")[0] for p, s in work.made.items() if s.table == name)
    # One was ended before the next was begun: what is not so lacks some of its rows.
    for number, begun in zip(dict.fromkeys(work.done.get(name, [])), begun_in, strict=False):
        try:
            folder = f"{name}/{divided.folder(number)}".rstrip("/")
        except UsageError:
            break
        files = [s for path, s in work.made.items() if path.rpartition("/")[0] == folder]
        if folder != begun or not all(fits(file, source) for file in files):
            break
        if any(published.find_damage(file, work.target, thorough=True) for file in files):
            break
        done.append(number)
    plan = (work.plan or {}).get(name, {})
    table = there.told.get("tables", {}).get(name, {})
    counts = source.resume(table, plan, done, work.gaps.get(name, []), divided)
    work.done[name] = done if counts else []


def wanted(source: Source, form: Format, divided: Partitioning, cells: Cells) -> dict[str, Any]:
    """Return what may not change from one export to the next."""
    return {
        "columns": {column.name: column.type for column in source.table.columns},
        "key": source.table.key,
        "format": form.name,
        "raw": cells.raw,
        "partitioned_by": divided.by or None,
        "partition_key": divided.key or None,
        "sorted_by": divided.order(source.table.key),
        "request": source.request,
        "service": source.facts.get("service"),
        "simulated": source.facts.get("simulated"),
        "chain": None if source.chain is None else source.chain.name,
    }


def told_of(there: ExistingDataset, name: str) -> dict[str, Any]:
    """Return the same of what a manifest says of a table."""
    table = there.told.get("tables", {}).get(name)
    if table is None:
        return {}
    return {
        "columns": {column["name"]: column["type"] for column in table["columns"]},
        "key": table["key"],
        "format": table["format"],
        "raw": table["raw"],
        "partitioned_by": table["partitioned_by"],
        "partition_key": table["partition_key"],
        "sorted_by": table.get("sorted_by"),
        "request": table["request"],
        **whose_of(there),
    }


def whose_of(there: ExistingDataset) -> dict[str, Any]:
    """Return whose data is there, of all tables together."""
    provenance = there.told.get("provenance", {})
    chain = provenance.get("chain")
    return {
        "service": provenance.get("service"),
        "simulated": provenance.get("simulated"),
        "chain": None if chain is None else chain["name"],
    }


def others_of(there: ExistingDataset, sources: list[Source]) -> dict[str, Any]:
    """Return the tables that are there and are not exported now."""
    named = {source.table.name for source in sources}
    return {n: t for n, t in there.told.get("tables", {}).items() if n not in named}


def differences(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> str:
    """Say in words where two plans differ; "" where they do not."""
    found = []
    for name in dict.fromkeys([*old, *new]):
        one, other = old.get(name), new.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            found.append(differences(one, other, f"{prefix}{name}."))
        elif one != other:
            found.append(f"{prefix}{name} was {short(one)}, now it is {short(other)}")
    return "; ".join(part for part in found if part)


def short(value: object) -> str:
    """Return a value in a few words."""
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def with_others(
    told: dict[str, Any], there: ExistingDataset, sources: list[Source]
) -> dict[str, Any]:
    """Return the manifest *told* with the tables that were there and are not exported now."""
    others = others_of(there, sources)
    if not others:
        return told
    merged = {**told, "tables": dict(sorted({**others, **told["tables"]}.items()))}
    merged["complete"] = not any(table["gaps"] for table in merged["tables"].values())
    routes = {t["endpoint"] for t in merged["tables"].values() if t["endpoint"]}
    new = {name: value for name, value in told["provenance"].items() if value is not None}
    merged["provenance"] = {
        **told["provenance"], **there.told["provenance"], **new, "endpoints": sorted(routes)
    }  # fmt: skip
    return {**merged, "checksum": published.checksum(merged)}
