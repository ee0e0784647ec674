"""Coverage: which keys of a table are complete, for each subject as runs of units.

A subject is whatever rows are of (a validator), by its text; "" where rows are of the chain. A
unit is what time is counted in: an epoch, a slot, a day. Covered means that every row there is for
it is in the segments, also when that is none. Because rows come in together with their coverage,
and only those that were not covered yet, no row is ever there twice.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

Covered: TypeAlias = "dict[str, tuple[tuple[int, int], ...]]"
"""The covered runs of each subject, first and last unit, in order and apart from one another."""

EVERYTHING = ""
"""The subject of rows that are of the chain as a whole."""

FARTHEST = 2**63 - 1
GRIDS = "_grids"


@dataclass(frozen=True)
class Grid:
    """The columns by which a table is covered: subject and unit; and the key it is sorted by."""

    subject: str | None
    unit: str
    key: tuple[str, ...]


def get(
    connection: sqlite3.Connection,
    table: str,
    subjects: Iterable[str] | None = None,
    first: int = 0,
    last: int = FARTHEST,
) -> Covered:
    """Return what is covered between *first* and *last*, of some subjects or of all."""
    named = "" if subjects is None else "AND subject IN (SELECT value FROM json_each(?4))"
    rows = connection.execute(
        "SELECT subject, max(first, ?2), min(last, ?3) FROM coverage"  # noqa: S608 - words of ours
        f" WHERE table_name = ?1 AND first <= ?3 AND last >= ?2 {named} ORDER BY subject, first",
        (table, first, last, *([] if subjects is None else [json.dumps(list(subjects))])),
    )
    found: dict[str, list[tuple[int, int]]] = {}
    for subject, start, end in rows:
        found.setdefault(subject, []).append((start, end))
    return {subject: tuple(parts) for subject, parts in found.items()}


def add(connection: sqlite3.Connection, table: str, complete: Covered) -> None:
    """Cover the runs of each subject in *complete*; what adjoins becomes one."""
    for subject, first, last in ((s, *run) for s, parts in complete.items() for run in parts):
        # Runs are apart, so those that touch begin in between, or are the one before.
        before, after = connection.execute(
            "SELECT min(first), max(last) FROM coverage WHERE table_name = ?1 AND subject = ?2"
            " AND first <= ?4 + 1 AND last >= ?3 - 1 AND first >= coalesce((SELECT max(first)"
            " FROM coverage WHERE table_name = ?1 AND subject = ?2 AND first <= ?3), 0)",
            (table, subject, first, last),
        ).fetchone()
        low = first if before is None else min(first, before)
        high = last if after is None else max(last, after)
        connection.execute(
            "DELETE FROM coverage WHERE table_name = ? AND subject = ? AND first BETWEEN ? AND ?",
            (table, subject, low, high),
        )
        connection.execute("INSERT INTO coverage VALUES (?, ?, ?, ?)", (table, subject, low, high))


def remove(
    connection: sqlite3.Connection,
    table: str,
    subjects: Iterable[str] | None,
    first: int,
    last: int,
) -> None:
    """Take the units from *first* to *last* out of what is covered, for some subjects or all."""
    for subject in list(get(connection, table, subjects, first, last)):
        touched = connection.execute(
            "SELECT first, last FROM coverage WHERE table_name = ? AND subject = ?"
            " AND first <= ? AND last >= ?",
            (table, subject, last, first),
        ).fetchall()
        connection.executemany(
            "DELETE FROM coverage WHERE table_name = ? AND subject = ? AND first = ?",
            [(table, subject, start) for start, _ in touched],
        )
        rest = [(start, first - 1) for start, _ in touched if start < first]
        rest += [(last + 1, end) for _, end in touched if end > last]
        connection.executemany(
            "INSERT INTO coverage VALUES (?, ?, ?, ?)",
            [(table, subject, *part) for part in rest],
        )


def get_grids(meta: dict[str, Any]) -> dict[str, Grid]:
    """Return the grid of each table that has coverage."""
    return {
        table: Grid(told["subject"], told["unit"], tuple(told["key"]))
        for table, told in meta.get(GRIDS, {}).items()
    }


def told(grids: dict[str, Grid]) -> dict[str, Any]:
    """Return *grids* as the ledger keeps them."""
    return {GRIDS: {table: asdict(grid) for table, grid in grids.items()}}


def held(rows: pl.DataFrame, grid: Grid, covered: Covered, *, inside: bool = True) -> pl.DataFrame:
    """Return the *rows* that are covered; those that are not with ``inside=False``."""
    runs = [(subject, *run) for subject, parts in covered.items() for run in parts]
    schema = {"subject": pl.String, "first": pl.Int64, "last": pl.Int64}
    known = pl.DataFrame(runs, schema=schema, orient="row").sort("first")
    place = rows.select(
        place=pl.int_range(pl.len()),
        unit=pl.col(grid.unit).cast(pl.Int64),
        subject=subject_of(grid),
    )
    beside = place.sort("unit").join_asof(
        known, left_on="unit", right_on="first", by="subject", check_sortedness=False
    )
    here = (pl.col("unit") <= pl.col("last")).fill_null(value=False)
    found = beside.filter(here if inside else ~here)
    return rows if found.height == rows.height else rows[found["place"].sort()]


def cells(rows: pl.DataFrame, grid: Grid) -> Covered:
    """Return the subjects and units that *rows* are of, as runs."""
    there = rows.select(subject=subject_of(grid), unit=pl.col(grid.unit).cast(pl.Int64))
    there = there.drop_nulls().unique().sort("subject", "unit")
    runs = (
        there.with_columns(run=pl.col("unit") - pl.int_range(pl.len()))
        .group_by("subject", "run", maintain_order=True)
        .agg(first=pl.col("unit").min(), last=pl.col("unit").max())
    )
    found: dict[str, list[tuple[int, int]]] = {}
    for subject, first, last in runs.select("subject", "first", "last").iter_rows():
        found.setdefault(subject, []).append((first, last))
    return {subject: tuple(parts) for subject, parts in found.items()}


def subject_of(grid: Grid) -> pl.Expr:
    """Return the subject of each row as coverage has it."""
    if grid.subject is None:
        return pl.lit(EVERYTHING)
    return pl.col(grid.subject).cast(pl.String)


def inside(
    grid: Grid, subjects: Sequence[str] | None, parts: Sequence[tuple[int, int]], schema: pl.Schema
) -> pl.Expr:
    """Return which rows are of one of *subjects* (None: of any) and in one of *parts*."""
    in_time = pl.any_horizontal([pl.col(grid.unit).is_between(a, b) for a, b in parts])
    if grid.subject is None or subjects is None:
        return in_time
    named = pl.Series(subjects, dtype=pl.String).cast(schema[grid.subject], strict=False)
    return pl.col(grid.subject).is_in(named.drop_nulls().implode()) & in_time
