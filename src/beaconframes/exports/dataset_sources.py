"""Datasets at rest as sources: what was loaded, simulated or published before."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from beaconframes.calendar import Chain
from beaconframes.dataset import PublishedDataset
from beaconframes.dataset.segments import ROW_GROUP
from beaconframes.errors import DatasetError, UsageError
from beaconframes.exports.atomic_files import judged
from beaconframes.exports.sources import Source
from beaconframes.exports.table_descriptions import of_rows
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from beaconframes.dataset import Dataset, Segment

AT_ONCE = ROW_GROUP // 4
FACTS = ("service", "simulated", "finalized_epoch", "latest_epoch", "latest_slot")


def of_dataset(dataset: Dataset, table: str | None) -> list[Source]:
    """Return the tables of *dataset*, or the one called *table*."""
    names = list(dataset.tables())
    if table is not None and table not in names:
        raise UsageError(
            f"{dataset.path} has no table {table!r}", hint=f"It has: {', '.join(names) or 'none'}"
        )
    if not names:
        raise UsageError(f"{dataset.path} has no tables yet")
    meta = dataset.meta
    chain = chain_in(meta)
    facts: dict[str, Any] = {name: meta.get(name) for name in FACTS}
    if chain is not None and facts["finalized_epoch"] is not None:
        try:
            ends = chain.time_of("epoch", facts["finalized_epoch"] + 1)
        except (OverflowError, TypeError):
            raise DatasetError(
                f"{dataset.path} says that epoch {visible(facts['finalized_epoch'], 60)} is final",
                hint="Export a dataset that beaconframes wrote",
            ) from None
        facts["finalized_time"] = ends.isoformat()
    return [of_table(dataset, name, chain, facts) for name in ([table] if table else names)]


def of_table(dataset: Dataset, name: str, chain: Chain | None, facts: dict[str, Any]) -> Source:
    """Return the rows of one table."""
    segments = in_order(dataset.segments(name))
    schema = dataset.scan(name).collect_schema()

    def rows() -> Iterator[pl.DataFrame]:
        for segment in segments:
            lazy = dataset.read(segment)
            # A quarter of a row group: more work to unpack it, and a quarter of the memory.
            for start in range(0, segment.rows, AT_ONCE):
                with judged(dataset.path / segment.path, "cannot be read"):
                    rows = lazy.slice(start, AT_ONCE).collect()
                yield rows
                del rows  # before the next ones come into memory

    gaps = dataset.manifest["tables"][name]["gaps"] if isinstance(dataset, PublishedDataset) else []
    return Source(of_rows(schema, name), rows, chain, facts, gaps=[*gaps])


def in_order(segments: list[Segment]) -> list[Segment]:
    """Return *segments* in the order of time, as far as their ranges tell."""
    units = ("epoch", "slot", "block_slot", "day", "period")

    def start(segment: Segment) -> int:
        found = next((segment.ranges[unit][0] for unit in units if unit in segment.ranges), 0)
        return found if isinstance(found, int) else 0

    return sorted(segments, key=start)


def chain_in(meta: dict[str, Any]) -> Chain | None:
    """Return the chain that a dataset says it is of."""
    told = meta.get("chain")
    if not isinstance(told, dict):
        return None
    try:
        return Chain(**{**told, "genesis": datetime.fromisoformat(told["genesis"])})
    except (KeyError, TypeError, ValueError) as error:
        raise DatasetError(
            f"the dataset does not say which chain it is of ({visible(str(error), 100)})",
            hint="Export a dataset that beaconframes wrote",
        ) from None
