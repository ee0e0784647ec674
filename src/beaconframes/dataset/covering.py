"""What a dataset with coverage can do besides: tell it, select by it, and look after itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from beaconframes.dataset import coverage as covering
from beaconframes.dataset import ledger, maintenance
from beaconframes.errors import DatasetError, UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from beaconframes.dataset.coverage import Covered, Grid
    from beaconframes.dataset.segments import Segment
    from beaconframes.dataset.writing import Writer

Schema: TypeAlias = "Mapping[str, pl.DataType | type[pl.DataType]]"


@dataclass(frozen=True)
class Damage:
    """A segment that is not what was written, and why."""

    table: str
    path: str
    reason: str


@dataclass(frozen=True)
class Selection:
    """Rows of a table; how many there are, where the ledger tells; whether they are in order.

    ``ordered`` says that they certainly come sorted by the key of their grid.
    """

    rows: pl.LazyFrame
    height: int | None
    ordered: bool


class Covering(ABC):
    """The half of a `Dataset` that knows which keys are complete."""

    path: Path
    _sound: dict[str, tuple[int, ...]]

    @abstractmethod
    def writing(self) -> AbstractContextManager[Writer]:
        """Open a commit."""

    @abstractmethod
    def verify(self) -> list[Damage]:
        """Return the damaged segments."""

    def grids(self) -> dict[str, Grid]:
        """Return the columns by which each table is covered that has coverage."""
        with ledger.reading(self.path) as connection:
            return covering.get_grids(ledger.get_meta(connection, inner=True))

    def coverage(
        self,
        table: str,
        subjects: Iterable[str] | None = None,
        *,
        first: int = 0,
        last: int = covering.FARTHEST,
    ) -> Covered:
        """Return which units of a table are complete, as runs of each subject that has any.

        Rows that are of nobody in particular have the subject ``""``.
        """
        with ledger.reading(self.path) as connection:
            return covering.get(connection, table, subjects, first, last)

    def select(
        self,
        table: str,
        subjects: Collection[str] | None,
        parts: Sequence[tuple[int, int]],
        *,
        schema: Schema,
    ) -> pl.LazyFrame:
        """Return the rows of some *subjects* (None: of all) in *parts*, runs of units.

        A table without coverage has no rows. What was changed on disk since it was written is
        never read: it is a DatasetError, and `mend` makes the dataset sound again. Segments come
        in the order of their keys; after `compact` so do the rows.
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
        """Return the rows as `select` does, with what the ledger alone knows of them."""
        with ledger.reading(self.path) as connection:
            grid = covering.get_grids(ledger.get_meta(connection, inner=True)).get(table)
            named = ledger.get_segments(connection, table)
        if grid is None or not named or not parts:
            return Selection(pl.LazyFrame(schema=schema), 0, ordered=True)
        within = {grid.unit: (parts[0][0], parts[-1][1])}
        numbers = [int(subject) for subject in subjects or () if subject.isdecimal()]
        if grid.subject is not None and subjects and len(numbers) == len(subjects):
            within[grid.subject] = (min(numbers), max(numbers))
        chosen = [segment for segment in named if segment.rows and segment.may_have(within)]
        for segment in chosen:
            self._check(segment)
        if not chosen:
            return Selection(pl.LazyFrame(schema=schema), 0, ordered=True)
        chosen.sort(key=lambda segment: maintenance.beginning(segment, grid))
        rows = pl.scan_parquet([self.path / segment.path for segment in chosen], glob=False)
        ordered = maintenance.apart(chosen, grid)
        if all(segment.is_within(grid.unit, parts) for segment in chosen) and (
            grid.subject is None
            or subjects is None
            or all(segment.is_within(grid.subject, joined(numbers)) for segment in chosen)
        ):
            return Selection(rows, sum(segment.rows for segment in chosen), ordered)
        here = covering.inside(
            grid, list(subjects) if subjects is not None else None, parts, rows.collect_schema()
        )
        return Selection(rows.filter(here), None, ordered)

    @property
    def forgotten(self) -> str:
        """Return a mark that is another one after something was forgotten, by whomever."""
        with ledger.reading(self.path) as connection:
            mark = ledger.get_meta(connection, inner=True).get(maintenance.FORGOTTEN, "")
        return f"{mark} {(self.path / ledger.NAME).stat().st_ino}"

    def compact(self, table: str | None = None) -> None:
        """Write a table that has coverage anew, or all of them: sorted by key, in large segments.

        Memory holds one segment at a time. What is being read stays readable for an hour.
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
        last: int = covering.FARTHEST,
    ) -> None:
        """Forget the rows of a table, or those of some subjects and units, and their coverage."""
        grid = self.grids().get(table)
        if grid is None:
            raise UsageError(
                f"{self.path} has no coverage of a table {table!r}",
                hint=f"It has: {', '.join(self.grids()) or 'none'}",
            )
        with self.writing() as writer:
            maintenance.prune(self.path, writer, table, grid, subjects, first, last)

    def mend(self) -> list[Damage]:
        """Forget what damaged segments had, so that it can be brought again; return them."""
        damaged = self.verify()
        grids = self.grids()
        for table in dict.fromkeys(damage.table for damage in damaged):
            if table in grids:
                with self.writing() as writer:
                    maintenance.mend(self.path, writer, table, grids[table])
        return damaged

    def _check(self, segment: Segment) -> None:
        """Raise a DatasetError unless the segment is what was written; read it once to know."""
        reason = segment.damage(self.path, thorough=False)
        if reason is None:
            status = (self.path / segment.path).stat()
            now = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
            if self._sound.get(segment.path) == now:
                return
            reason = segment.damage(self.path, thorough=True)
            self._sound[segment.path] = now
        if reason is not None:
            self._sound.pop(segment.path, None)
            raise DatasetError(
                f"table {segment.table} of {self.path} is damaged: {segment.path} {reason}",
                hint="Run mend(): it forgets what was damaged, and the rest stays",
            )


def joined(numbers: Collection[int]) -> list[tuple[int, int]]:
    """Return *numbers* as runs."""
    # The format stands alone: what asks the service has its own, and does not lend it.
    found: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found
