"""Keeping: what is in the store is not asked for, and what is final goes into it as it comes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.cache import finality
from beaconframes.cache.missing import lost_of, not_kept, only, runs_in
from beaconframes.dataset import Grid, Selection
from beaconframes.dataset.coverage import filter_covered, find_covered
from beaconframes.endpoint.cache_policy import CHAIN, CachePolicy
from beaconframes.endpoint.cover import minus, runs, within
from beaconframes.errors import DatasetError, ResponseError, ServiceError, UsageError
from beaconframes.fetch.completeness import checked, new_in
from beaconframes.fetch.gaps import MUST, NO_GAPS
from beaconframes.fetch.refetch import again
from beaconframes.fetch.result import LoadResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from beaconframes.cache.local_store import LocalStore
    from beaconframes.client.explorer import Explorer
    from beaconframes.dataset import Covered
    from beaconframes.endpoint import Call, ChainHead, Endpoint
    from beaconframes.endpoint.cache_policy import CacheRange
    from beaconframes.endpoint.cover import Runs
    from beaconframes.fetch.api_source import FetchedRows


PATIENCE = 5
"""How often a load begins anew because of what was forgotten meanwhile."""


@dataclass
class ReadThrough:
    """One call of a loader whose rows can be kept: what it wants, has and lacks."""

    explorer: Explorer
    local_store: LocalStore
    keeping: CachePolicy
    table: str
    want: CacheRange
    values: Mapping[str, Any]
    loose: list[pl.DataFrame] = field(default_factory=list)
    """Rows that came and are not in the store: mostly because they may still change."""
    notices: list[Warning] = field(default_factory=list)
    heard: bool = False
    """Whether the service had any row of what it was asked for."""

    @property
    def endpoint(self) -> Endpoint:
        """Return the endpoint that is asked."""
        return self.keeping.endpoint

    @property
    def chain_head(self) -> ChainHead:
        """Return what is known of the end of the chain."""
        return self.explorer.chain_head_of(self.endpoint)

    @property
    def grid(self) -> Grid:
        """Return the columns by which the table is covered."""
        keeping = self.keeping
        return Grid(keeping.subject_column, keeping.unit_column, tuple(self.endpoint.table.key()))

    def missing(self) -> dict[str, Runs]:
        """Return what is not in the store, as runs of each subject."""
        if not self.want.parts:
            return {}
        covered = self.local_store.coverage(self.table, self.want.subjects, self.want.parts)
        lacking = ((s, minus(self.want.parts, covered.get(s, ()))) for s in self.want.subjects)
        return {subject: parts for subject, parts in lacking if parts}

    def load(self) -> LoadResult:
        """Return the rows, asking for those that are not in the store, and what is lost of them."""
        self.local_store.fit(self.table, self.endpoint.table.schema())
        for _ in range(PATIENCE):
            before = self.local_store.forgotten
            try:
                found = self.once()
            except DatasetError as error:
                damage = error
            else:
                after = self.local_store.forgotten
                # A dataset that was made meanwhile has forgotten nothing yet.
                made = before[1] == "" and after[1].startswith(" ")
                if after == before or (made and after[0] == before[0]):
                    return found
                damage = DatasetError(f"{self.local_store.path} is pruned while it is read")
            # What was damaged has been forgotten by now, and what somebody else has forgotten in
            # the meantime was counted on: it is asked for like anything else.
            self.loose, self.notices = [], []
        raise damage

    def once(self) -> LoadResult:
        """Return the rows and what is lost, or raise DatasetError for damage in the store."""
        missing = self.missing()
        there = self.select()
        if not missing and self.is_whole(there):
            lost = NO_GAPS
        elif not missing:
            lost = lost_of(self)
        elif self.explorer.offline:
            lost = not_kept(self.grid, missing)
        else:
            lost = self.bring(missing)
            self.local_store.tidy(self.table)
        found = self.select()
        rows = self.keeping.narrow(found.rows, self.values, self.chain_head)
        return LoadResult(rows, lost, self.notices, ordered=found.ordered)

    def is_whole(self, there: Selection) -> bool:
        """Tell whether what is *there* is all that is wanted, by the number of rows alone."""
        want, grid = self.want, self.grid
        one_each = want.every and want.per_unit is None and set(grid.key) <= {
            grid.subject, grid.unit
        }  # fmt: skip
        return one_each and there.height == len(want.subjects) * want.units

    def select(self) -> Selection:
        """Return what of the wanted is there: what is kept by its key, and then the rest."""
        schema = self.endpoint.table.schema()
        subjects = None if self.want.subjects == CHAIN else self.want.subjects
        kept = self.local_store.select(self.table, subjects, self.want.parts, schema)
        if not self.loose:
            return kept
        rows = pl.concat([kept.rows, *(frame.lazy() for frame in self.loose)])
        return Selection(rows, None, ordered=False)

    def bring(self, missing: dict[str, Runs]) -> pl.DataFrame:
        """Ask for what is *missing*, and once more for what did not come; return what is lost."""
        finalized = finality.finalized(self, max(parts[-1][1] for parts in missing.values()))
        calls: list[Call] = []
        denied: list[Call] = []
        asked = self.keeping.asking(missing, self.values, self.chain_head)
        for came in self.explorer.asking.pieces(self.endpoint, asked, self.chain_head):
            calls += came.calls
            denied += came.denied
            self.heard |= not came.rows.is_empty()
            self.keep(came, finalized)
        lost = lost_of(self)
        for more in again(self.endpoint, calls, denied, only(self.grid, lost, missing)):
            if more and not self.once_more(more, finalized):
                break
            lost = lost_of(self) if more else lost
        self.keep_absences(only(self.grid, lost, missing), finalized)
        return lost

    def once_more(self, asked: list[dict[str, Any]], finalized: int) -> bool:
        """Ask again for what did not come; return whether anything new did."""
        every = [{**self.values, **self.keeping.neutral, **one} for one in asked]
        new = False
        try:
            for came in self.explorer.asking.pieces(self.endpoint, every, self.chain_head):
                there = self.select().rows.select(self.endpoint.table.key()).collect()
                rows = new_in(there.columns, came.rows, there)
                new |= not rows.is_empty()
                self.heard |= new
                self.keep(came._replace(rows=rows), finalized)
        except (UsageError, ServiceError, ResponseError):
            # What came before is worth more; what is still lost is named.
            return False
        return new

    def keep(self, came: FetchedRows, finalized: int) -> None:
        """Keep what is final of what *came*, and hold on to the rest."""
        self.notices += came.notices
        rows = checked(self.endpoint, came.calls, came.rows)
        last = self.keeping.final_until(self.chain_head, finalized)
        is_final = pl.all_horizontal(pl.col(self.grid.unit) <= last, *self.keeping.settled)
        final = rows.filter(is_final.fill_null(value=False))
        if self.want.every:
            complete = find_covered(self.whole(final), self.grid)
        else:
            complete = asked_for(came.calls, self.grid, last)
        if not complete:
            self.loose.append(rows)
        elif self.local_store.keep(self.table, final, self.grid, complete, finalized):
            self.loose.append(rows.filter(~is_final.fill_null(value=False)))
            self.loose.append(filter_covered(final, self.grid, complete, inside=False))
        else:
            covered = self.local_store.coverage(self.table, self.want.subjects, self.want.parts)
            self.loose.append(filter_covered(rows, self.grid, covered, inside=False))
        self.loose = [frame for frame in self.loose if not frame.is_empty()]

    def whole(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of those units that have all their parts, such as slots of an epoch."""
        if self.want.per_unit is None:
            return rows
        part, parts = self.want.per_unit
        return rows.filter(pl.col(part).n_unique().over(self.grid.unit) >= parts)

    def keep_absences(self, lost: pl.DataFrame, finalized: int) -> None:
        """Keep that there is nothing where there never will be, so that nobody asks again.

        Where the service has rows of anybody, it has them of everybody. Of what is newer it may
        not have told yet, unless it is old enough.
        """
        if lost[MUST].any() or not self.heard:
            # A service that leaves out what must be there, or everything, may leave out anything.
            return
        settled = self.keeping.absent_until(self.chain_head, finalized)
        if self.keeping.unit_name:
            unit = self.grid.unit
            loose: list[Any] = [frame[unit].max() for frame in self.loose]
            newest = max(self.local_store.newest(self.table, unit), *loose, -1)
            until = self.keeping.final_until(self.chain_head, finalized)
            settled = max(settled, min(until, newest))
        absent: Covered = {}
        for row, subject, first, last in runs_in(self.grid, lost):
            if not row[MUST] and first <= settled:
                absent[subject] = (*absent.get(subject, ()), (first, min(last, settled)))
        if absent:
            self.local_store.keep(
                self.table, self.endpoint.table.empty(), self.grid, absent, finalized
            )


def asked_for(calls: Iterable[Call], grid: Grid, last: int) -> Covered:
    """Return what *calls* asked for, as far as it is final: up to *last*."""
    found: dict[str, list[tuple[int, int]]] = {}
    for call in calls:
        units: list[tuple[int, int]] = []
        subjects: list[str] = [] if grid.subject else list(CHAIN)
        for wanted in call.wanted:
            for name, values in wanted.values.items():
                if name == grid.unit:
                    units += runs(values)
                elif name == grid.subject:
                    subjects += map(str, values)
        for subject in subjects:
            found.setdefault(subject, []).extend(within(units, 0, last))
    return {subject: tuple(parts) for subject, parts in found.items() if parts}
