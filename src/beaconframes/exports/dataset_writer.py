"""Making: rows become one file, or a folder that is a dataset once its manifest is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes.dataset import published
from beaconframes.dataset.segments import sync
from beaconframes.errors import DatasetError
from beaconframes.exports import existing_dataset, metadata
from beaconframes.exports.atomic_files import judged, put, settle
from beaconframes.exports.journal import NAME, working
from beaconframes.exports.manifest import ManifestTable, facts_of, manifest, text
from beaconframes.exports.partitions import WHOLE, Partitioning, partition, usual
from beaconframes.exports.result import Export
from beaconframes.exports.sorter import Sorter
from beaconframes.exports.table_writer import TableWriter, WriteOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import polars as pl

    from beaconframes.exports.formats import Cells, Format
    from beaconframes.exports.manifest import DatasetInfo
    from beaconframes.exports.sources import Source
    from beaconframes.exports.targets import Target

USUAL = "usual"


def to_file(sources: list[Source], goal: Target, cells: Cells) -> Export:
    """Write the rows of one table into one file."""
    if len(sources) > 1:
        raise DatasetError(
            f"{goal.path} cannot hold {len(sources)} tables", hint="Give a folder, or table=..."
        )
    with judged(goal.path.parent, "cannot be made"):
        goal.path.parent.mkdir(parents=True, exist_ok=True)
    workshop = goal.path.with_name(f".{goal.path.name}{NAME}")
    with working(goal.path.parent, workshop, goal.path.absolute()) as work:
        draft = work.path / goal.path.name
        sizes: dict[str, int] = {}
        with judged(goal.path):
            file = goal.form.write(draft, cells)
            try:
                for source in sources:
                    sizes[source.table.name] = 0
                    for piece in pieces(source, work.scratch(source.table.name)):
                        file.add(piece)
                        sizes[source.table.name] += piece.height
            finally:
                file.close()
            sync(draft)
        put(draft, goal.path)
        settle([goal.path.parent])
        size = goal.path.stat().st_size
    gaps = tuple(gap for source in sources for gap in source.missing())
    return Export(goal.path, sizes, size, added=1, gaps=gaps, until=until_of(sources))


def pieces(source: Source, scratch: Path) -> Iterator[pl.DataFrame]:
    """Yield all rows of *source*, sorted; the last piece may be one without rows."""
    sorter = Sorter(WHOLE, source.table.key, scratch, lambda _: source.table.schema.to_frame())
    empty = True
    for rows in source.frames():
        for piece in sorter.add(rows):
            empty = False
            yield piece.rows()
    for piece in sorter.finish():
        empty = False
        yield piece.rows()
    if empty:
        yield source.table.schema.to_frame()


def to_folder(
    sources: list[Source],
    goal: Target,
    cells: Cells,
    about: DatasetInfo,
    by: str | None,
) -> Export:
    """Write all tables into a folder, and then what makes it a dataset."""
    with judged(goal.path, "cannot be made"):
        goal.path.mkdir(parents=True, exist_ok=True)
    with working(goal.path, goal.path / NAME) as work:
        before = existing_dataset.before(goal.path)
        work.extends = bool(before.told)
        work.named = {segment.path for segment in before.segments}
        divided = {s.table.name: division(s, goal.form, by) for s in sources}
        existing_dataset.fit(before, work, sources, goal.form, divided, cells)
        tables = []
        for source in sources:
            layout = WriteOptions(work, goal.form, cells, divided[source.table.name])
            writer = TableWriter(source, layout, before.files(source.table.name))
            files = writer.write()
            tables.append(
                ManifestTable(
                    source.table, goal.form, layout.partition, files, cells.raw, source.request,
                    source.missing(),
                )
            )  # fmt: skip
        named = {segment.path: segment for table in tables for segment in table.files}
        told = manifest(about, facts_of(sources), tables)
        told = existing_dataset.with_others(told, before, sources)
        old = work.named
        settle({goal.path / path for path in named} and folders(goal.path, named.keys() - old))
        for file, content in metadata.of(told).items():
            work.describe(file, content)
        work.describe(published.NAME, text(told))
        work.remove(work.made.keys() - named.keys())
        metadata.remember(
            goal.path, told, added=len(named.keys() - old), changed=before.told != told
        )
    return Export(
        goal.path,
        {table.described.name: table.rows for table in tables},
        sum(segment.bytes for segment in named.values()),
        added=len(named.keys() - old),
        kept=len(named.keys() & old),
        gaps=tuple(gap for table in tables for gap in table.gaps),
        until=until_of(sources),
    )


def division(source: Source, form: Format, by: str | None) -> Partitioning:
    """Return how the files of *source* are divided."""
    if form.whole:
        return WHOLE
    chosen = usual(source.table.schema) if by == USUAL else by
    return partition(chosen, source.table.schema, source.chain)


def folders(root: Path, paths: Iterable[str]) -> set[Path]:
    """Return the folders whose names changed: those of the files, and all above them."""
    found = {root}
    for path in paths:
        parents = (root / path).parents
        found |= {p for p in parents if p.is_relative_to(root)}
    return found


def until_of(sources: list[Source]) -> int | None:
    """Return up to where something was asked for."""
    return next((s.request["until"] for s in sources if s.request.get("until") is not None), None)
