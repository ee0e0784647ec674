"""Sources of rows in datasets: stores, simulated chains and earlier exports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beaconframes.dataset import PublishedDataset
from beaconframes.dataset.segments import ROW_GROUP
from beaconframes.endpoint import chain_metadata
from beaconframes.errors import DatasetError, UsageError
from beaconframes.exports.atomic_files import translate_errors
from beaconframes.exports.sources import TableSource
from beaconframes.exports.table_descriptions import describe_rows
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from beaconframes.calendar import Chain
    from beaconframes.dataset import Dataset, Segment

CHUNK_ROWS = ROW_GROUP // 4
"""A quarter of a row group: it needs a quarter of the memory, but more time to decompress."""
PROVENANCE = (
    "service",
    "simulated",
    "seed",
    "first_epoch",
    "finalized_epoch",
    "latest_epoch",
    "latest_slot",
)


def create_dataset_sources(dataset: Dataset, table: str | None) -> list[TableSource]:
    """Return a source for each table of *dataset*, or for the one called *table*."""
    names = list(dataset.tables())
    if table is not None and table not in names:
        raise UsageError(
            f"{dataset.path} has no table {table!r}", hint=f"It has: {', '.join(names) or 'none'}"
        )
    if not names:
        raise UsageError(f"{dataset.path} has no tables yet", hint="Load or simulate rows first")
    meta = dataset.meta
    chain = parse_chain(meta)
    provenance: dict[str, Any] = {name: meta.get(name) for name in PROVENANCE}
    if chain is not None and provenance["finalized_epoch"] is not None:
        try:
            end = chain.time_of("epoch", provenance["finalized_epoch"] + 1)
        except (OverflowError, TypeError):
            epoch = visible(provenance["finalized_epoch"], 60)
            raise DatasetError(
                f"{dataset.path} has an invalid finalized epoch: {epoch}",
                hint="Export a dataset that beaconframes wrote",
            ) from None
        provenance["finalized_time"] = end.isoformat()
    chosen = [table] if table else names
    return [create_table_source(dataset, name, chain, provenance) for name in chosen]


def create_table_source(
    dataset: Dataset, name: str, chain: Chain | None, provenance: dict[str, Any]
) -> TableSource:
    """Return a source for one table."""
    segments = sort_segments(dataset.segments(name))
    schema = dataset.scan(name).collect_schema()

    def read_chunks() -> Iterator[pl.DataFrame]:
        for segment in segments:
            lazy = dataset.read(segment)
            for start in range(0, segment.rows, CHUNK_ROWS):
                with translate_errors(dataset.path / segment.path, "cannot be read"):
                    rows = lazy.slice(start, CHUNK_ROWS).collect()
                yield rows
                del rows  # frees the memory before the next chunk is read

    gaps = dataset.manifest["tables"][name]["gaps"] if isinstance(dataset, PublishedDataset) else []
    return TableSource(describe_rows(schema, name), read_chunks, chain, provenance, gaps=[*gaps])


def sort_segments(segments: list[Segment]) -> list[Segment]:
    """Return *segments* in the order of time, where their ranges contain a time unit."""
    units = ("epoch", "slot", "block_slot", "day", "period")

    def find_start(segment: Segment) -> int:
        start = next((segment.ranges[unit][0] for unit in units if unit in segment.ranges), 0)
        return start if isinstance(start, int) else 0

    return sorted(segments, key=find_start)


def parse_chain(meta: dict[str, Any]) -> Chain | None:
    """Return the chain in the metadata of a dataset; None if there is none."""
    values = meta.get("chain")
    if not isinstance(values, dict):
        return None
    try:
        return chain_metadata.parse_chain(values)
    except (KeyError, TypeError, ValueError) as error:
        raise DatasetError(
            f"the dataset has an invalid chain ({visible(str(error), 100)})",
            hint="Export a dataset that beaconframes wrote",
        ) from None
