"""What a call whose rows are kept has lost: told from the store, without reading all of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.endpoint.cache_policy import CHAIN
from beaconframes.endpoint.cover import within
from beaconframes.fetch.gaps import MUST, NO_GAPS, gaps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from beaconframes.cache.read_through import ReadThrough
    from beaconframes.dataset import Grid
    from beaconframes.endpoint.cache_policy import CacheRange
    from beaconframes.endpoint.cover import Runs


def lost_of(kept: ReadThrough) -> pl.DataFrame:
    """Return what is lost of what *kept* wants, one row per gap."""
    if not kept.want.every or not kept.want.parts:
        return NO_GAPS
    rows = kept.select().rows
    want = lacking(kept, rows)
    if not want.subjects:
        return NO_GAPS
    table, grid = kept.endpoint.table, kept.grid
    columns = [*table.key(), grid.unit, "finalized", grid.subject]
    columns += [] if want.per_unit is None else [want.per_unit[0]]
    rows = rows.select([name for name in table.schema() if name in columns])
    if grid.subject is not None:
        numbers = [int(subject) for subject in want.subjects]
        rows = rows.filter(pl.col(grid.subject).is_in(numbers))
    return gaps(kept.endpoint, [kept.keeping.as_one(want)], rows.collect(), kept.chain_head)


def lacking(kept: ReadThrough, rows: pl.LazyFrame) -> CacheRange:
    """Return what is wanted of those subjects that have fewer rows than units: of most, nothing."""
    want, grid = kept.want, kept.grid
    if want.per_unit is not None:
        return want
    if grid.subject is None:
        there = rows.select(pl.col(grid.unit).n_unique()).collect().item()
        return replace(want, subjects=() if there >= want.units else CHAIN)
    if set(grid.key) != {grid.subject, grid.unit}:
        return want
    counts = rows.group_by(grid.subject).len().filter(pl.col("len") >= want.units).collect()
    full = set(counts[grid.subject].cast(pl.String))
    return replace(want, subjects=tuple(s for s in want.subjects if s not in full))


def runs_in(grid: Grid, lost: pl.DataFrame) -> Iterator[tuple[dict[str, Any], str, int, int]]:
    """Yield each row of *lost* with its subject, its first and its last unit."""
    for row in lost.iter_rows(named=True):
        subject = CHAIN[0] if grid.subject is None else str(row.get(grid.subject))
        if row.get(f"first_{grid.unit}") is not None:
            yield row, subject, row[f"first_{grid.unit}"], row[f"last_{grid.unit}"]
        elif row.get(grid.unit) is not None:
            yield row, subject, row[grid.unit], row[grid.unit]


def only(grid: Grid, lost: pl.DataFrame, missing: Mapping[str, Runs]) -> pl.DataFrame:
    """Return what of *lost* is also *missing* from the store."""
    found = []
    for row, subject, first, last in runs_in(grid, lost):
        for start, end in within(missing.get(subject, ()), first, last):
            by_run = f"first_{grid.unit}" in row
            cut = {f"first_{grid.unit}": start, f"last_{grid.unit}": end} if by_run else {}
            found.append({**row, **cut})
    return pl.DataFrame(found, schema=lost.schema) if found else lost.clear()


def not_kept(grid: Grid, missing: Mapping[str, Runs]) -> pl.DataFrame:
    """Return what is *missing* from the store as what is lost: nobody can be asked for it."""
    rows = [
        {
            **({} if grid.subject is None else {grid.subject: int(subject)}),
            f"first_{grid.unit}": first,
            f"last_{grid.unit}": last,
        }
        for subject, parts in missing.items()
        for first, last in parts
    ]
    return pl.DataFrame(rows).with_columns(pl.lit(value=False).alias(MUST))
