"""``bf.export``: rows of any kind into a dataset that others can use, or into one file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes.dataset import published
from beaconframes.dataset.segments import sync
from beaconframes.errors import DatasetError
from beaconframes.publish import documents, extending
from beaconframes.publish.choosing import sources_of
from beaconframes.publish.durable import judged, put, settle
from beaconframes.publish.formats import Cells
from beaconframes.publish.manifest import About, Table, facts_of, manifest, text
from beaconframes.publish.partitions import WHOLE, Partition, partition, usual
from beaconframes.publish.result import Export
from beaconframes.publish.sorting import Sorter
from beaconframes.publish.tables import checked_name
from beaconframes.publish.targets import target_of
from beaconframes.publish.work import NAME, working
from beaconframes.publish.writing import Layout, TableWriter

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from pathlib import Path

    from beaconframes.client import Explorer
    from beaconframes.publish.formats import Format
    from beaconframes.publish.sources import Source
    from beaconframes.publish.targets import Target

USUAL = "usual"


def export(
    what: Any,
    target: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 - what every library calls it
    by: str | None = USUAL,
    table: str | None = None,
    name: str | None = None,
    title: str | None = None,
    creators: Sequence[str] = (),
    license: str | None = None,  # noqa: A002 - what it is called in every metadata format
    url: str | None = None,
    raw: bool = False,
    executor: Any = None,
    explorer: Explorer | None = None,
    **arguments: Any,
) -> Export:
    """Export rows as a dataset that a paper can cite, or as one file.

    ::

        bf.export(income, "income/")                    # a frame, into a folder: a dataset
        bf.export(income, "income.csv")                 # ... or into one file
        bf.export(bf.load_income_history, "income/", validators=range(1000), since="2026-10-01")
        bf.export(bf.store(), "everything/")            # all that was ever loaded

    A loader takes its arguments by name, beside those of the export. It never has to fit into
    memory: what is loaded is written, day by day. When the call is cut short, the same call goes on
    where it was, and the dataset is the same to the byte. Later, the same call adds what has become
    final since, and touches nothing that was published. It ends at the epoch that was final when it
    began.

    A dataset is a folder: a folder of data files per table, ``manifest.json`` (every file with its
    SHA-256, where the rows are from, what is missing), ``datapackage.json``, ``croissant.json``,
    ``CITATION.cff`` and a README. Readers never see half of one, and two exports of the same rows
    are equal to the byte.

    Parameters
    ----------
    what
        A frame (polars, pandas, lazy or not), an iterable of polars frames, a loader, a
        `Dataset` or a `Store`.
    target
        A folder; or a file, if its name ends like one: ``.parquet``, ``.csv``, ``.jsonl``,
        ``.arrow``, ``.duckdb``, ``.xlsx``.
    format
        ``"parquet"``, ``"csv"``, ``"jsonl"``, ``"arrow"``, ``"duckdb"`` or ``"xlsx"``; left out, as
        the file's name says, or Parquet.
    by
        How a folder is divided: by UTC ``"day"``, by sync ``"period"``, by ranges of 1,000
        ``"validators"``, or None. Left out: by day, if rows have a time.
    table
        What the table is called; left out, what the loader of such rows calls it. Of a dataset: the
        only table to export.
    name, title, creators, license, url
        What the metadata says: the dataset's name, its title, who made it, under which license
        (such as ``"CC-BY-4.0"``), and where it is published.
    raw
        Whether CSV and Excel keep text that a spreadsheet would run as a formula. Otherwise such
        text, in columns of text alone, gets an apostrophe in front.
    executor
        Any executor of `concurrent.futures`, or a Dask ``Client``: it sorts out the writing. What
        is asked of the service stays in one place, with one pace.
    explorer
        The explorer that a loader asks; left out, the one of ``bf.connect`` or ``bf.local``.

    Returns
    -------
    Export
        ``complete`` is False when rows did not come; ``gaps`` names them. The same call asks for
        them again.

    Raises
    ------
    UsageError
        The target or an argument cannot work.
    DatasetError
        What is there is of another dataset, is damaged or is being written by somebody else; or
        the disk is full.
    """
    goal = target_of(target, format)
    sources = sources_of(what, table=table, explorer=explorer, arguments=arguments)
    cells = Cells(raw=raw)
    if goal.single:
        return to_file(sources, goal, cells)
    about = About(
        checked_name(name or named_after(sources), "name"),
        title or (sources[0].table.grain if len(sources) == 1 else "Tables of a chain"),
        tuple(creators),
        license,
        url,
    )
    return to_folder(sources, goal, cells, about, by, executor)


def named_after(sources: list[Source]) -> str:
    """Return a name for a dataset: it does not depend on the folder that it lies in."""
    return sources[0].table.name if len(sources) == 1 else "dataset"


def to_file(sources: list[Source], goal: Target, cells: Cells) -> Export:
    """Write the rows of one table into one file."""
    if len(sources) > 1:
        raise DatasetError(
            f"{goal.path} cannot hold {len(sources)} tables", hint="Give a folder, or table=..."
        )
    with judged(goal.path.parent, "cannot be made"):
        goal.path.parent.mkdir(parents=True, exist_ok=True)
    with working(goal.path.parent, goal.path.with_name(f".{goal.path.name}{NAME}")) as work:
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


def pieces(source: Source, scratch: Path) -> Any:
    """Yield all rows of *source*, sorted; the last piece may be one without rows."""
    sorter = Sorter(WHOLE, source.table.key, scratch, lambda _: source.table.schema.to_frame())
    empty = True
    for rows in source.frames():
        for _, piece in sorter.add(rows):
            empty = False
            yield piece
    for _, piece in sorter.finish():
        empty = False
        yield piece
    if empty:
        yield source.table.schema.to_frame()


def to_folder(
    sources: list[Source],
    goal: Target,
    cells: Cells,
    about: About,
    by: str | None,
    executor: Any,
) -> Export:
    """Write all tables into a folder, and then what makes it a dataset."""
    with judged(goal.path, "cannot be made"):
        goal.path.mkdir(parents=True, exist_ok=True)
    with working(goal.path, goal.path / NAME) as work:
        before = extending.before(goal.path)
        work.extends = bool(before.told)
        divided = {s.table.name: division(s, goal.form, by) for s in sources}
        extending.fit(before, work, sources, goal.form, divided, cells)
        tables = []
        for source in sources:
            layout = Layout(work, goal.form, cells, divided[source.table.name], executor)
            writer = TableWriter(source, layout, before.files(source.table.name))
            files = writer.write()
            tables.append(
                Table(
                    source.table, goal.form, layout.partition, files, cells.raw, source.request,
                    source.missing(),
                )
            )  # fmt: skip
        named = {segment.path: segment for table in tables for segment in table.files}
        told = manifest(about, facts_of(sources), tables)
        told = extending.with_others(told, before, sources)
        old = {segment.path for segment in before.segments}
        settle({goal.path / path for path in named} and folders(goal.path, named.keys() - old))
        for file, content in documents.of(told).items():
            work.describe(file, content)
        work.describe(published.NAME, text(told))
        for path in work.made.keys() - named.keys() - old:
            (goal.path / path).unlink(missing_ok=True)
        documents.remember(
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


def division(source: Source, form: Format, by: str | None) -> Partition:
    """Return how the files of *source* are divided."""
    if form.whole:
        return WHOLE
    chosen = usual(source.table.schema) if by == USUAL else by
    return partition(chosen, source.table.schema, source.chain)


def folders(root: Path, paths: Any) -> set[Path]:
    """Return the folders whose names changed: those of the files, and all above them."""
    found = {root}
    for path in paths:
        parents = (root / path).parents
        found |= {p for p in parents if p.is_relative_to(root)}
    return found


def until_of(sources: list[Source]) -> int | None:
    """Return up to where something was asked for."""
    return next((s.request["until"] for s in sources if s.request.get("until") is not None), None)
