"""Merging: the segments of several datasets of one chain, listed by one ledger.

Segments are not written again: their files are linked, or copied to another disk. Only rows of
units that an earlier dataset has, too, are left out, after a comparison.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.dataset import coverage, ledger, segments
from beaconframes.dataset.maintenance import read_other_rows, scan_segments
from beaconframes.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from beaconframes.dataset.coverage import Covered, Grid
    from beaconframes.dataset.ledger import Segment
    from beaconframes.dataset.segments import Writer

log = logging.getLogger("beaconframes.store")

SAME = ("chain", "simulated", "indexed", "genesis_validators_root", "validators", "execution")
"""The metadata in which merged datasets agree; those of a service agree in ``service``, too."""
REMARKS = "remarks"
FIRST_UNSETTLED = "first_unsettled_epoch"
"""The metadata of an index: intervals of epochs by remark, and the first epoch that may change."""


def merge_meta(metas: Mapping[Path, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the metadata of merged datasets: those of the one with the latest epoch.

    Raises
    ------
    DatasetError
        The datasets are of different chains, or one has rows that may still change.
    """
    (first, expected), *_ = metas.items()
    for folder, meta in metas.items():
        names = SAME if meta.get("indexed") else (*SAME, "service")
        if differing := [name for name in names if meta.get(name) != expected.get(name)]:
            raise DatasetError(
                f"{folder} and {first} have a different {differing[0]}",
                hint="Merge datasets of one chain, of one source, and of the same validators",
            )
        if (first_unsettled := meta.get(FIRST_UNSETTLED)) is not None:
            until = f"with until={first_unsettled - 1}, or " if first_unsettled else ""
            raise DatasetError(
                f"{folder} has rows that may still change, since epoch {first_unsettled:,}",
                hint=f"Index it again {until}once they are final",
            )
    latest = max(metas.values(), key=lambda meta: int(meta.get("latest_epoch") or 0))
    remarks: dict[str, list[Any]] = {}
    for meta in metas.values():
        for text, parts in meta.get(REMARKS, {}).items():
            known = remarks.setdefault(text, [])
            known += [part for part in parts if part not in known]
    facts = {name: value for name, value in latest.items() if name != "format_version"}
    return facts | ({REMARKS: {text: sorted(remarks[text]) for text in remarks}} if remarks else {})


def add_tables(writer: Writer, folder: Path) -> None:
    """Add the tables with coverage of the dataset in *folder*.

    Raises
    ------
    DatasetError
        A segment is damaged, or has other rows of a unit that was added before.
    """
    with ledger.read_transaction(folder) as connection:
        grids = coverage.decode_grids(ledger.get_meta(connection, inner=True))
        listed = {table: ledger.get_segments(connection, table) for table in grids}
        covered = {table: coverage.read(connection, table) for table in grids}
    for table, grid in grids.items():
        schema = segments.read_schema(folder, listed[table])
        if schema is not None:
            writer.add(table, pl.DataFrame(schema=schema))
        before = writer.segments(table)
        writer.add_covered(table, pl.DataFrame(schema=schema), grid, {})
        new = coverage.add(writer.connection, table, covered[table])
        overlap = coverage.subtract(covered[table], new)
        if overlap:
            stored = read_units(writer.folder, before, grid, overlap)
            first, last = coverage.find_bounds_of_units(grid, overlap)[grid.unit]
            name = f"{table}, {grid.unit} {first} to {last}"
            if not stored.equals(read_units(folder, listed[table], grid, overlap)):
                raise DatasetError(
                    f"{folder} has other rows of {name} than the datasets before it",
                    hint="Prune the wrong ones, or request them again",
                )
            log.info("%s has rows of %s that an earlier dataset has, too", folder, name)
        for segment in listed[table]:
            if segment.rows:
                add_segment(writer, folder, segment, overlap)


def add_segment(writer: Writer, folder: Path, segment: Segment, overlap: Covered) -> None:
    """Add a segment: its file, unless some of its rows are in *overlap*; then its other rows."""
    rest = read_other_rows(folder, segment, writer.grids[segment.table], overlap)
    if rest is not None:
        writer.add_segment(segment.table, rest)
        return
    if reason := segments.find_damage(segment, folder, thorough=True):
        raise DatasetError(f"{folder / segment.path} {reason}", hint="Run mend() on the dataset")
    writer.add_file(segment, folder / segment.path)


def read_units(folder: Path, listed: Iterable[Segment], grid: Grid, units: Covered) -> pl.DataFrame:
    """Return the rows of *units* in segments, sorted by key."""
    bounds = coverage.find_bounds_of_units(grid, units)
    chosen = [segment for segment in listed if segment.rows and segment.may_contain(bounds)]
    if not chosen:
        return pl.DataFrame()
    rows = coverage.filter_covered(scan_segments(folder, chosen).collect(), grid, units)
    return rows.sort(grid.key) if rows.height else pl.DataFrame()
