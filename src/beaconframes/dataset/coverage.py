"""Coverage: which units of each subject are complete in a table, and the selection of its rows.

A subject, such as a validator, is text; rows of the whole chain have the subject ``""``. A unit is
an epoch, a slot or a day. All rows of a covered unit are in the segments; a covered unit may have
none. Rows are added together with their coverage, and only for units that were not covered before,
so no row is stored twice.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from beaconframes.dataset import ledger
from beaconframes.errors import DatasetError
from beaconframes.intervals import intervals_of, merge_intervals, subtract_intervals

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from beaconframes.dataset.ledger import Segment
    from beaconframes.intervals import Interval, Intervals
    from beaconframes.sqlite_file import Database

Covered: TypeAlias = "dict[str, Intervals]"
"""The covered intervals of each subject."""

Schema: TypeAlias = "Mapping[str, pl.DataType | type[pl.DataType]]"

WHOLE_CHAIN = ""
"""The subject of rows of the whole chain."""

MAX_UNIT = 2**63 - 1
GRIDS = "_grids"
PRUNE_MARK = "_removals"
"""The metadata with the number of commits that removed rows."""


class RowsRemoved(DatasetError):
    """Another process has removed rows since their coverage was read."""


@dataclass(frozen=True)
class Grid:
    """The columns of subject and unit of a table with coverage, and its sort key."""

    subject: str | None
    unit: str
    key: tuple[str, ...]


@dataclass(frozen=True)
class Selection:
    """Selected rows of a table; ``height`` is their number, None if the ledger does not state it.

    ``ordered`` is true if the rows are known to be sorted by the key of their grid.
    """

    rows: pl.LazyFrame
    height: int | None
    ordered: bool


class CoveredTables(ABC):
    """The part of a `Dataset` that depends on coverage."""

    path: Path

    @abstractmethod
    def _check_segment(self, segment: Segment) -> None:
        """Raise DatasetError for a damaged segment."""

    def grids(self) -> dict[str, Grid]:
        """Return the columns of subject and unit of each table with coverage."""
        with ledger.read_transaction(self.path) as connection:
            return decode_grids(ledger.get_meta(connection, inner=True))

    def coverage(
        self,
        table: str,
        subjects: Iterable[str] | None = None,
        *,
        first: int = 0,
        last: int = MAX_UNIT,
    ) -> Covered:
        """Return the complete units of a table, as intervals of each subject that has any.

        Rows of the whole chain have the subject ``""``.
        """
        with ledger.read_transaction(self.path) as connection:
            return read(connection, table, subjects, first, last)

    def select(
        self,
        table: str,
        subjects: Collection[str] | None,
        parts: Sequence[tuple[int, int]],
        *,
        schema: Schema,
    ) -> pl.LazyFrame:
        """Return the rows of some *subjects* (None: of all) in *parts*, intervals of units.

        A table without coverage has no rows. A segment that was changed on disk raises
        DatasetError; `mend` repairs the dataset. Segments are sorted by key; after
        `compact` all rows are.
        """
        return self.selection(table, subjects, parts, schema=schema).rows

    def selection(
        self,
        table: str,
        subjects: Collection[str] | None,
        parts: Sequence[tuple[int, int]],
        *,
        schema: Schema,
        complete: Covered | None = None,
    ) -> Selection:
        """Return the rows of `select`, with their number and order if these are known.

        Raises
        ------
        RowsRemoved
            Some units in *complete* are not covered any more.
        DatasetError
            A segment is damaged.
        """
        with ledger.read_transaction(self.path) as connection:
            grid = decode_grids(ledger.get_meta(connection, inner=True)).get(table)
            segments = ledger.get_segments(connection, table)
            if complete and subtract(complete, read(connection, table, complete)):
                raise RowsRemoved(
                    f"rows of table {table} were removed from {self.path} while they were read",
                    hint="Try again when other processes have finished",
                )
        if grid is None or not segments or not parts:
            return Selection(pl.LazyFrame(schema=schema), 0, ordered=True)
        bounds = find_bounds(grid, subjects, parts)
        chosen = [segment for segment in segments if segment.rows and segment.may_contain(bounds)]
        for segment in chosen:
            self._check_segment(segment)
        if not chosen:
            return Selection(pl.LazyFrame(schema=schema), 0, ordered=True)
        chosen.sort(key=lambda segment: sort_key(segment, grid))
        rows = pl.scan_parquet([self.path / segment.path for segment in chosen], glob=False)
        ordered = all(precedes(one, following, grid) for one, following in pairwise(chosen))
        requested = intervals_of(parse_numbers(subjects))
        if all(segment.is_within(grid.unit, parts) for segment in chosen) and (
            grid.subject is None
            or subjects is None
            or all(segment.is_within(grid.subject, requested) for segment in chosen)
        ):
            return Selection(rows, sum(segment.rows for segment in chosen), ordered)
        names = list(subjects) if subjects is not None else None
        selected = build_filter(grid, names, parts, rows.collect_schema())
        return Selection(rows.filter(selected), None, ordered)

    @property
    def prune_mark(self) -> tuple[int, int]:
        """Return a value that changes whenever a process removes rows, or replaces the ledger."""
        return ledger.read_version(self.path, PRUNE_MARK)


def read(
    connection: Database,
    table: str,
    subjects: Iterable[str] | None = None,
    first: int = 0,
    last: int = MAX_UNIT,
    *,
    whole: bool = False,
    relation: str = "coverage",
) -> Covered:
    """Return the coverage from *first* to *last*, of *subjects* (None: of all).

    Intervals end there, unless they are *whole*. Another *relation* of the ledger has intervals in
    the same columns.
    """
    subject_filter = (
        "" if subjects is None else "AND subject IN (SELECT value FROM json_each(:subjects))"
    )
    ends = "first, last" if whole else "max(first, :first), min(last, :last)"
    rows = connection.execute(
        f"SELECT subject, {ends} FROM {relation}"  # noqa: S608 - constants
        f" WHERE table_name = :table AND first <= :last AND last >= :first {subject_filter}"
        " ORDER BY subject, first",
        {
            "table": table,
            "first": first,
            "last": last,
            "subjects": None if subjects is None else json.dumps(list(subjects)),
        },
    )
    return by_subject(rows)


def by_subject(intervals: Iterable[tuple[str, int, int]]) -> Covered:
    """Return *intervals*, each with its subject, merged by subject."""
    found: dict[str, list[Interval]] = {}
    for subject, first, last in intervals:
        found.setdefault(subject, []).append((first, last))
    return {subject: merge_intervals(parts) for subject, parts in found.items()}


def unite(one: Covered, other: Covered) -> Covered:
    """Return the units of both."""
    return one | {
        subject: merge_intervals((*one.get(subject, ()), *parts))
        for subject, parts in other.items()
    }


def subtract(units: Covered, removed: Covered) -> Covered:
    """Return *units* without the *removed* ones."""
    rest = {
        subject: subtract_intervals(parts, removed.get(subject, ()))
        for subject, parts in units.items()
    }
    return {subject: parts for subject, parts in rest.items() if parts}


def add(connection: Database, table: str, complete: Covered) -> Covered:
    """Add the units *complete*, and return those that were not covered before."""
    return subtract(complete, change(connection, table, complete, unite))


def remove(connection: Database, table: str, units: Covered) -> None:
    """Remove *units*."""
    change(connection, table, units, subtract)


def change(
    connection: Database,
    table: str,
    units: Covered,
    combine: Callable[[Covered, Covered], Covered],
) -> Covered:
    """Replace and return the stored intervals around *units*: *combine* makes new ones of both."""
    ends = [end for parts in units.values() for part in parts for end in part]
    if not ends:
        return {}
    stored = read(connection, table, units, min(ends) - 1, max(ends) + 1, whole=True)
    before, after = (
        {(table, subject, *part) for subject, parts in covered.items() for part in parts}
        for covered in (stored, combine(stored, units))
    )
    connection.execute_many(
        "DELETE FROM coverage WHERE table_name = ? AND subject = ? AND first = ? AND last = ?",
        before - after,
    )
    connection.execute_many("INSERT INTO coverage VALUES (?, ?, ?, ?)", sorted(after - before))
    return stored


def decode_grids(meta: dict[str, Any]) -> dict[str, Grid]:
    """Return the grid of each table with coverage, from the ledger's *meta*."""
    return {
        table: Grid(fields["subject"], fields["unit"], tuple(fields["key"]))
        for table, fields in meta.get(GRIDS, {}).items()
    }


def encode_grids(grids: dict[str, Grid]) -> dict[str, Any]:
    """Return *grids* as entries of the ledger's meta."""
    return {GRIDS: {table: asdict(grid) for table, grid in grids.items()}}


def filter_covered(
    rows: pl.DataFrame, grid: Grid, covered: Covered, *, inside: bool = True
) -> pl.DataFrame:
    """Return the *rows* that are covered, or with ``inside=False`` the others."""
    if rows.is_empty():
        return rows
    intervals = [(subject, *part) for subject, parts in covered.items() for part in parts]
    if grid.subject is None and covered.keys() <= {WHOLE_CHAIN}:
        # Without a query, because an index stores many small frames.
        mask = pl.Series([False]).new_from_index(0, rows.height)
        for _, first, last in intervals:
            mask |= rows[grid.unit].is_between(first, last).fill_null(value=False)
        return rows.filter(mask if inside else ~mask)
    schema = {"subject": pl.String, "first": pl.Int64, "last": pl.Int64}
    starts = pl.DataFrame(intervals, schema=schema, orient="row").sort("first")
    cells = rows.select(
        row=pl.int_range(pl.len()),
        unit=pl.col(grid.unit).cast(pl.Int64),
        subject=subject_expr(grid),
    )
    joined = cells.sort("unit").join_asof(
        starts, left_on="unit", right_on="first", by="subject", check_sortedness=False
    )
    is_covered = (pl.col("unit") <= pl.col("last")).fill_null(value=False)
    selected = joined.filter(is_covered if inside else ~is_covered)
    return rows if selected.height == rows.height else rows[selected["row"].sort()]


def find_covered(rows: pl.DataFrame, grid: Grid) -> Covered:
    """Return the units of *rows* as intervals, by subject."""
    cells = rows.select(subject=subject_expr(grid), unit=pl.col(grid.unit).cast(pl.Int64))
    cells = cells.drop_nulls().unique().sort("subject", "unit")
    intervals = (
        cells.with_columns(interval=pl.col("unit") - pl.int_range(pl.len()))
        .group_by("subject", "interval", maintain_order=True)
        .agg(first=pl.col("unit").min(), last=pl.col("unit").max())
    )
    return by_subject(intervals.select("subject", "first", "last").iter_rows())


def subject_expr(grid: Grid) -> pl.Expr:
    """Return the expression of each row's subject."""
    if grid.subject is None:
        return pl.lit(WHOLE_CHAIN)
    return pl.col(grid.subject).cast(pl.String)


def parse_numbers(subjects: Collection[str] | None) -> list[int]:
    """Return the *subjects* that are numbers."""
    return list(map(int, filter(str.isdecimal, subjects or ())))


def find_bounds(
    grid: Grid, subjects: Collection[str] | None, parts: Sequence[Interval]
) -> dict[str, Interval]:
    """Return the bounds of the units in *parts*, and of *subjects* if all of them are numbers."""
    bounds = {grid.unit: (parts[0][0], parts[-1][1])}
    numbers = parse_numbers(subjects)
    if grid.subject is not None and subjects and len(numbers) == len(subjects):
        bounds[grid.subject] = (min(numbers), max(numbers))
    return bounds


def find_bounds_of_units(grid: Grid, units: Covered) -> dict[str, Interval]:
    """Return the bounds of *units* by subject."""
    parts = merge_intervals(part for intervals in units.values() for part in intervals)
    return find_bounds(grid, units, parts)


def build_filter(
    grid: Grid, subjects: Sequence[str] | None, parts: Sequence[tuple[int, int]], schema: pl.Schema
) -> pl.Expr:
    """Return the expression of the rows of *subjects* (None: of all) in any of *parts*."""
    in_time = pl.any_horizontal([pl.col(grid.unit).is_between(a, b) for a, b in parts])
    if grid.subject is None or subjects is None:
        return in_time
    cast_subjects = pl.Series(subjects, dtype=pl.String).cast(schema[grid.subject], strict=False)
    return pl.col(grid.subject).is_in(cast_subjects.drop_nulls().implode()) & in_time


def sort_key(segment: Segment, grid: Grid) -> tuple[Any, ...]:
    """Return the lowest key of a segment, by which segments are sorted."""
    return tuple(segment.ranges[name][0] for name in grid.key if name in segment.ranges)


def precedes(one: Segment, following: Segment, grid: Grid) -> bool:
    """Return whether the first column of the key is known to be lower in all rows of *one*."""
    low, high = (segment.ranges.get(grid.key[0]) for segment in (one, following))
    return low is not None and high is not None and low[1] < high[0]  # type: ignore[operator]
