"""The tables of a dataset that have coverage: select rows by it, compact, prune and repair."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import polars as pl

from beaconframes.dataset import coverage, ledger, maintenance
from beaconframes.dataset.coverage import MAX_UNIT
from beaconframes.errors import DatasetError, UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from beaconframes.dataset.coverage import Covered, Grid
    from beaconframes.dataset.segments import Segment
    from beaconframes.dataset.writer import Writer

Schema: TypeAlias = "Mapping[str, pl.DataType | type[pl.DataType]]"


@dataclass(frozen=True)
class Damage:
    """A segment that differs from what was written, and why."""

    table: str
    path: str
    reason: str


@dataclass(frozen=True)
class Selection:
    """Selected rows of a table, with their number where the ledger states it.

    ``ordered`` is true if the rows are certainly sorted by the key of their grid.
    """

    rows: pl.LazyFrame
    height: int | None
    ordered: bool


class CoveredTables(ABC):
    """The part of a `Dataset` that depends on coverage."""

    path: Path
    _verified: dict[str, tuple[int, ...]]
    _damage_hint: ClassVar = "Run mend(): it removes the damaged rows and leaves the others"

    @abstractmethod
    def writing(self) -> AbstractContextManager[Writer]:
        """Open a commit."""

    @abstractmethod
    def verify(self) -> list[Damage]:
        """Return the damaged segments."""

    def grids(self) -> dict[str, Grid]:
        """Return the columns of subject and unit of each table with coverage."""
        with ledger.read_transaction(self.path) as connection:
            return coverage.decode_grids(ledger.get_meta(connection, inner=True))

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
            return coverage.read(connection, table, subjects, first, last)

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
        DatasetError; `mend` repairs the dataset. Segments come in the order of their keys; after
        `compact` so do the rows.
        """
        return self.selection(table, subjects, parts, schema=schema).rows

    def selection(
        self,
        table: str,
        subjects: Collection[str] | None,
        parts: Sequence[tuple[int, int]],
        *,
        schema: Schema,
    ) -> Selection:
        """Return the rows of `select`, with their number and order if the ledger states them."""
        with ledger.read_transaction(self.path) as connection:
            grid = coverage.decode_grids(ledger.get_meta(connection, inner=True)).get(table)
            segments = ledger.get_segments(connection, table)
        if grid is None or not segments or not parts:
            return Selection(pl.LazyFrame(schema=schema), 0, ordered=True)
        bounds = {grid.unit: (parts[0][0], parts[-1][1])}
        numbers = [int(subject) for subject in subjects or () if subject.isdecimal()]
        if grid.subject is not None and subjects and len(numbers) == len(subjects):
            bounds[grid.subject] = (min(numbers), max(numbers))
        chosen = [segment for segment in segments if segment.rows and segment.may_contain(bounds)]
        for segment in chosen:
            self._check_segment(segment)
        if not chosen:
            return Selection(pl.LazyFrame(schema=schema), 0, ordered=True)
        chosen.sort(key=lambda segment: maintenance.sort_key(segment, grid))
        rows = pl.scan_parquet([self.path / segment.path for segment in chosen], glob=False)
        ordered = maintenance.are_disjoint(chosen, grid)
        if all(segment.is_within(grid.unit, parts) for segment in chosen) and (
            grid.subject is None
            or subjects is None
            or all(segment.is_within(grid.subject, find_intervals(numbers)) for segment in chosen)
        ):
            return Selection(rows, sum(segment.rows for segment in chosen), ordered)
        names = list(subjects) if subjects is not None else None
        selected = coverage.build_filter(grid, names, parts, rows.collect_schema())
        return Selection(rows.filter(selected), None, ordered)

    @property
    def prune_mark(self) -> str:
        """Return a text that changes when any process prunes rows."""
        with ledger.read_transaction(self.path) as connection:
            mark = ledger.get_meta(connection, inner=True).get(maintenance.PRUNE_MARK, "")
        return f"{mark} {(self.path / ledger.NAME).stat().st_ino}"

    def compact(self, table: str | None = None) -> None:
        """Rewrite one table with coverage, or all of them, in large segments sorted by key.

        Memory holds two segments at a time. The old files stay readable for an hour.
        """
        for name, grid in self.grids().items():
            if table in (None, name):
                with self.writing() as writer:
                    maintenance.compact(self.path, writer, name, grid)

    def prune(
        self,
        table: str,
        subjects: Collection[str] | None = None,
        *,
        first: int = 0,
        last: int = MAX_UNIT,
    ) -> None:
        """Remove the rows of a table, or of some subjects and units, and their coverage."""
        grid = self.grids().get(table)
        if grid is None:
            raise UsageError(
                f"{self.path} has no coverage of a table {table!r}",
                hint=f"It has: {', '.join(self.grids()) or 'none'}",
            )
        with self.writing() as writer:
            maintenance.prune(self.path, writer, table, grid, subjects, first, last)

    def mend(self) -> list[Damage]:
        """Remove damaged segments and their coverage, so that they can be loaded again.

        Returns the damaged segments.
        """
        damaged = self.verify()
        grids = self.grids()
        for table in dict.fromkeys(damage.table for damage in damaged):
            if table in grids:
                with self.writing() as writer:
                    maintenance.prune_damaged(self.path, writer, table, grids[table])
        return damaged

    def _check_segment(self, segment: Segment) -> None:
        """Raise DatasetError for a damaged segment; read a file only when it has changed."""
        reason = self._find_damage(segment, thorough=False)
        if reason is None:
            status = (self.path / segment.path).stat()
            now = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
            if self._verified.get(segment.path) == now:
                return
            reason = self._find_damaged_content(segment)
            self._verified[segment.path] = now
        if reason is not None:
            self._verified.pop(segment.path, None)
            raise self._damage_error(segment, reason, self._damage_hint)

    def _find_damage(self, segment: Segment, *, thorough: bool) -> str | None:
        return segment.find_damage(self.path, thorough=thorough)

    def _find_damaged_content(self, segment: Segment) -> str | None:
        return self._find_damage(segment, thorough=True)

    def _damage_error(self, segment: Segment, reason: str, hint: str) -> DatasetError:
        return DatasetError(
            f"table {segment.table} of {self.path} is damaged: {segment.path} {reason}", hint=hint
        )


def find_intervals(numbers: Collection[int]) -> list[tuple[int, int]]:
    """Return *numbers* as intervals, first and last number."""
    # Endpoints have a similar function, but the format depends on no other package.
    found: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found
