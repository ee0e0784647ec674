"""The writers of an export: one file, or a folder that becomes a dataset with its manifest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from beaconframes.dataset import published
from beaconframes.dataset.segments import sync
from beaconframes.errors import DatasetError
from beaconframes.exports.atomic_files import rename_draft, sync_folders, translate_errors
from beaconframes.exports.existing_dataset import (
    extend_dataset,
    merge_other_tables,
    read_existing_dataset,
)
from beaconframes.exports.manifest import ManifestTable, build_manifest, to_json_text
from beaconframes.exports.metadata import DOCUMENTS, append_history
from beaconframes.exports.partitions import UNPARTITIONED, choose_default, create_partitioning
from beaconframes.exports.result import Export
from beaconframes.exports.sorter import sort_source
from beaconframes.exports.table_writer import TableWriter
from beaconframes.exports.work_folder import WORK_FOLDER, open_work_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from beaconframes.dataset import Segment
    from beaconframes.exports.formats import CellOptions
    from beaconframes.exports.partitions import Partitioning
    from beaconframes.exports.sources import TableSource
    from beaconframes.exports.targets import Target

DEFAULT = "usual"
"""The default of ``by=``: it depends on the columns."""


def write_file(sources: list[TableSource], target: Target, cells: CellOptions) -> Export:
    """Write the rows of one table into one file."""
    path = target.path
    if len(sources) > 1:
        raise DatasetError(
            f"{path} is a file, and there are {len(sources)} tables",
            hint="Give a folder, or table=...",
        )
    with translate_errors(path.parent, "cannot be created"):
        path.parent.mkdir(parents=True, exist_ok=True)
    (source,) = sources
    work_folder = path.with_name(f".{path.name}{WORK_FOLDER}")
    with open_work_folder(path.parent, work_folder, path.absolute()) as work:
        draft, heights = work.create_draft_path(path.suffix), []

        def read_sorted() -> Iterator[pl.DataFrame]:
            for _, rows in sort_source(source, UNPARTITIONED, work.folder / "runs"):
                heights.append(rows.height)
                yield rows
                del rows  # frees the memory before the next rows are read
            if not heights:
                yield source.table.schema.to_frame()

        with translate_errors(path):
            target.format.write(draft, read_sorted(), mark_cells(cells, source))
            sync(draft)
        rename_draft(draft, path)
        sync_folders([path.parent])
        size = path.stat().st_size
    gaps = tuple(source.merge_gaps())
    return Export(path, {source.table.name: sum(heights)}, size, added=1, gaps=gaps)


def write_dataset(
    sources: list[TableSource],
    target: Target,
    cells: CellOptions,
    info: dict[str, Any],
    by: str | None,
) -> Export:
    """Write all tables into a folder, then the documents, and last the manifest."""
    folder = target.path
    with translate_errors(folder, "cannot be created"):
        folder.mkdir(parents=True, exist_ok=True)
    with open_work_folder(folder, folder / WORK_FOLDER) as work:
        existing = read_existing_dataset(folder)
        work.withdraw_files({segment.path for segment in existing.segments})
        tables = [
            ManifestTable(s, target.format, mark_cells(cells, s), choose_partitioning(s, by))
            for s in sources
        ]
        extend_dataset(existing, tables, folder)
        drafts: dict[str, Segment] = {}
        for table in tables:
            published_files = existing.list_files(table.name)
            new_files = TableWriter(table, work, published_files).write()
            drafts |= new_files
            files = [replace(draft, path=path) for path, draft in new_files.items()]
            table.files = sorted(published_files + files, key=lambda segment: segment.path)
        manifest = build_manifest(info, tables)
        manifest = merge_other_tables(manifest, existing)
        documents = {name: build(manifest) for name, build in DOCUMENTS.items()}
        documents[published.NAME] = to_json_text(manifest)
        work.publish(drafts, documents, replace=bool(existing.manifest))
        if existing.manifest != manifest:
            append_history(folder, manifest, added=len(drafts))
    segments = [segment for table in tables for segment in table.files]
    return Export(
        folder,
        {table.name: table.rows for table in tables},
        sum(segment.bytes for segment in segments),
        added=len(drafts),
        unchanged=len(segments) - len(drafts),
        gaps=tuple(gap for table in tables for gap in table.gaps),
    )


def mark_cells(cells: CellOptions, source: TableSource) -> CellOptions:
    """Return the options of *cells*, with whether the rows of *source* are simulated."""
    return replace(cells, is_simulated=bool(source.provenance.get("simulated")))


def choose_partitioning(source: TableSource, by: str | None) -> Partitioning:
    """Return how the files of *source* are divided."""
    chosen = choose_default(source.table.schema) if by == DEFAULT else by
    return create_partitioning(chosen, source.table.schema, source.chain)
