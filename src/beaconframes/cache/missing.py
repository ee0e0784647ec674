"""Missing rows of a load with a store: conversion between frames of gaps and intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.endpoint.cache_policy import CHAIN_SUBJECTS
from beaconframes.intervals import clip_intervals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from beaconframes.dataset import Grid
    from beaconframes.endpoint.cache_policy import CacheRange
    from beaconframes.intervals import Intervals


def incomplete_subjects(requested: CacheRange, grid: Grid, rows: pl.LazyFrame) -> tuple[str, ...]:
    """Return the subjects that may be incomplete: those with fewer rows than units."""
    if requested.parts is not None:
        return requested.subjects
    if grid.subject is None:
        count = rows.select(pl.col(grid.unit).n_unique()).collect().item()
        return () if count >= requested.unit_count else CHAIN_SUBJECTS
    if set(grid.key) != {grid.subject, grid.unit}:
        return requested.subjects
    is_complete = pl.col("len") >= requested.unit_count
    counts = rows.group_by(grid.subject).len().filter(is_complete).collect()
    complete = set(counts[grid.subject].cast(pl.String))
    return tuple(subject for subject in requested.subjects if subject not in complete)


def gap_intervals(
    grid: Grid, missing: pl.DataFrame
) -> Iterator[tuple[dict[str, Any], str, int, int]]:
    """Yield each gap in *missing* with its subject, its first and its last unit."""
    for gap in missing.iter_rows(named=True):
        subject = CHAIN_SUBJECTS[0] if grid.subject is None else str(gap.get(grid.subject))
        if gap.get(f"first_{grid.unit}") is not None:
            yield gap, subject, gap[f"first_{grid.unit}"], gap[f"last_{grid.unit}"]
        elif gap.get(grid.unit) is not None:
            yield gap, subject, gap[grid.unit], gap[grid.unit]


def clip_gaps(
    grid: Grid, missing: pl.DataFrame, intervals: Mapping[str, Intervals]
) -> pl.DataFrame:
    """Return the gaps in *missing*, clipped to the intervals of their subject."""
    parts = []
    for gap, subject, first, last in gap_intervals(grid, missing):
        for start, end in clip_intervals(intervals.get(subject, ()), first, last):
            by_interval = f"first_{grid.unit}" in gap
            cut = {f"first_{grid.unit}": start, f"last_{grid.unit}": end} if by_interval else {}
            parts.append({**gap, **cut})
    return pl.DataFrame(parts, schema=missing.schema) if parts else missing.clear()
