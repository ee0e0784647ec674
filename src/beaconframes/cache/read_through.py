"""The read-through cache: stored rows are read, missing ones fetched, final ones stored.

A row is requested again, unless the ledger states that its unit (validator and epoch, slot or day)
is complete. That is so once

- the unit is final (`finality`) and a response had it (`ReadThrough.put`);
- its rows cannot exist, or two responses, ten minutes apart, had none (`ReadThrough.put_absent`,
  `local_store.confirm_empty`).

It is no longer so once its rows are pruned or damaged, were stored with other columns
(`ReadThrough.start`), or show a hole that cannot be (`ReadThrough.prune_stored_holes`). A load
whose stored rows are removed while it reads them starts again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from beaconframes.active_periods import FAR, NOT_IN_DATASET, NOT_STORED, REASON, UNKNOWN
from beaconframes.cache.finality import StoredLoad
from beaconframes.cache.pubkey_index import resolve_pubkeys
from beaconframes.dataset import Grid, Selection, coverage
from beaconframes.dataset.coverage import by_subject, filter_covered, find_covered
from beaconframes.endpoint.cache_policy import CHAIN_SUBJECTS, CachePolicy
from beaconframes.fetch.completeness import (
    IMPOSSIBLE,
    NO_GAPS,
    Requirement,
    drop_duplicates,
    drop_received,
    drop_unrequested,
    find_missing,
)
from beaconframes.fetch.dataset_gaps import find_uncovered_units
from beaconframes.fetch.gap_reasons import Gaps, build_gaps, build_interval_gaps
from beaconframes.fetch.pipeline import LoadResult, collect
from beaconframes.intervals import clip_intervals, intervals_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from beaconframes.cache.local_store import LocalStore
    from beaconframes.dataset import Covered
    from beaconframes.endpoint import Call, Endpoint
    from beaconframes.endpoint.cache_policy import CacheRange
    from beaconframes.fetch.source import Connection, FetchedRows
    from beaconframes.intervals import Interval, Intervals


@dataclass
class ReadThrough(StoredLoad):
    """The rows of one load: stored rows, and fetched rows that cannot be stored."""

    table: str
    requested: CacheRange
    values: Mapping[str, Any]
    unknown_pubkeys: tuple[str, ...] = ()
    """The requested public keys that belong to no validator."""
    missing: dict[str, Intervals] = field(default_factory=dict)
    """The requested units that were not stored when the load started, by subject."""
    unstored: list[pl.DataFrame] = field(default_factory=list)
    """Fetched rows that are not in the store, mostly because they are not final."""
    of_other_calls: list[pl.DataFrame] = field(default_factory=list)
    """Fetched rows that other calls request: the responses to these may leave them out."""
    is_lazy: bool = False
    """Whether the rows are read later, from a LazyFrame."""
    _finalized: int = -1
    _stored: Covered = field(default_factory=dict)
    """The requested units that are in the store as far as this load knows, by subject."""
    _selection: Selection | None = None
    """The stored rows, if they are all rows: selected once, and read once."""

    @property
    def grid(self) -> Grid:
        """Return the columns of subject and unit that coverage refers to."""
        policy = self.policy
        key = tuple(self.endpoint.table.key())
        return Grid(policy.subject_column, policy.unit_column, key)

    def start(self) -> None:
        """Find the units that are not stored; drop the rows fetched so far."""
        self.store.drop_outdated(self.table, self.endpoint.table.schema())
        self.unstored, self.of_other_calls = [], []
        self._selection = None
        self.missing = self.find_unstored()

    def find_unstored(self) -> dict[str, Intervals]:
        """Return the requested units that are not in the store, by subject."""
        requested = self.requested
        self._stored = self.read_coverage()
        wanted = dict.fromkeys(requested.subjects, requested.intervals)
        missing = coverage.subtract(wanted, self._stored)
        if missing and self.connection.offline:
            # No second response can confirm the first one.
            empty = self.store.unconfirmed(self.table, requested.subjects, requested.intervals)
            missing = coverage.subtract(missing, empty)
        return missing

    def read_coverage(self) -> Covered:
        """Return the requested units that are in the store now."""
        return self.store.coverage(self.table, self.requested.subjects, self.requested.intervals)

    def missing_arguments(self) -> list[Mapping[str, Any]]:
        """Return the loader arguments that fetch what is not stored."""
        if not self.missing or self.connection.offline:
            return []
        last = max(intervals[-1][1] for intervals in self.missing.values())
        self._finalized = self.last_final_epoch(last)
        return list(self.policy.fetch_arguments(self.missing, self.values, self.chain_head))

    def refetch_arguments(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments of the load with *arguments* instead, without shared filters."""
        return self.policy.unfiltered(self.values, arguments)

    def put(self, fetched: FetchedRows) -> None:
        """Store the final rows of *fetched*, and hold the others in memory."""
        rows = drop_unrequested(self.endpoint, fetched.calls, fetched.rows)
        if rows.height < fetched.rows.height:
            self.of_other_calls.append(drop_received(list(self.grid.key), fetched.rows, rows))
        rows = drop_duplicates(self.endpoint, rows)
        last = self.policy.final_until(self.chain_head, self._finalized)
        is_final = pl.all_horizontal(pl.col(self.grid.unit) <= last, *self.endpoint.final_rows)
        is_final = is_final.fill_null(value=False)
        final = rows.filter(is_final)
        empty: Covered = {}
        if self.requested.required:
            complete = find_covered(self.whole_units(final), self.grid)
        else:
            if self.policy.unit_name == "slot":
                last = min(last, find_last_slot(fetched.ranges))
            old = self.policy.absent_until(self.chain_head, self._finalized)
            old = old if self.policy.unit_name else last
            complete, empty = split_by_rows(fetched, self.grid, last, old, rows)
            if fetched.uncovered:
                uncovered = find_uncovered_units(self.policy, fetched.uncovered)
                of_chain = dict.fromkeys(complete | empty, uncovered.get(CHAIN_SUBJECTS[0], ()))
                uncovered = coverage.unite(uncovered, of_chain)
                complete = coverage.subtract(complete, uncovered)
                empty = coverage.subtract(empty, uncovered)
        if not complete and not empty:
            self.unstored.append(rows)
        elif self.store.put(self.table, final, self.grid, complete, self._finalized, empty=empty):
            self._stored = coverage.unite(self._stored, complete)
            self.unstored.append(rows.filter(~is_final))
            self.unstored.append(filter_covered(final, self.grid, complete, inside=False))
        else:
            covered = self.read_coverage()
            self.unstored.append(filter_covered(rows, self.grid, covered, inside=False))
        self.unstored = [frame for frame in self.unstored if not frame.is_empty()]

    def whole_units(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of units that have all their parts, such as the slots of an epoch."""
        if self.requested.parts is None:
            return rows
        part, part_count = self.requested.parts
        return rows.filter(pl.col(part).n_unique().over(self.grid.unit) >= part_count)

    def select(self) -> Selection:
        """Return the requested rows so far: stored rows in key order, then the others.

        Raises
        ------
        DatasetError
            Stored rows were removed since the start of the load, or are damaged.
        """
        schema = self.endpoint.table.schema()
        subjects = None if self.requested.subjects == CHAIN_SUBJECTS else self.requested.subjects
        if self._selection is not None:
            return self._selection
        stored = self.store.select(
            self.table, subjects, self.requested.intervals, schema, self._stored
        )
        if not self.unstored:
            return stored
        rows = pl.concat([stored.rows, *(frame.lazy() for frame in self.unstored)])
        return Selection(rows, None, ordered=False)

    def keys(self) -> pl.DataFrame:
        """Return the keys of all rows so far."""
        return self.select().rows.select(self.endpoint.table.key()).collect()

    def requirement(self, calls: Sequence[Call]) -> Requirement:  # noqa: ARG002 - part of RowStore
        """Return the rows that must exist."""
        return Requirement.of(self.policy.expected_rows(self.requested).items())

    def find_missing(self, calls: Sequence[Call]) -> pl.DataFrame:
        """Return the requested rows that are missing, one row per gap."""
        if self.connection.offline and self.missing:
            return build_interval_gaps(self.grid.subject, self.grid.unit, self.missing, NOT_STORED)
        requested = self.requested
        if not requested.required or not requested.intervals:
            return NO_GAPS
        selection = self.select()
        has_all_rows = self.has_all_rows(selection)
        if not (has_all_rows or self.missing or self.is_lazy):
            frame = collect(self.endpoint, selection.rows, is_sorted=selection.ordered)
            selection = Selection(frame.lazy(), frame.height, ordered=True)
        if not self.missing:
            self._selection = selection
        if has_all_rows:
            return NO_GAPS
        table, grid = self.endpoint.table, self.grid
        columns = {*table.key(), grid.unit, grid.subject, requested.parts and requested.parts[0]}
        columns |= {column.name for column in table.columns if column.final_when}
        rows = selection.rows.select([name for name in table.schema() if name in columns])
        return find_missing(self.endpoint, self.requirement(calls), rows.collect(), self.chain_head)

    def prune_stored_holes(self, missing: pl.DataFrame) -> None:
        """Remove stored absence that cannot be, such as a hole between two rows.

        Then the load is no longer consistent, so it restarts and requests the holes.
        """
        impossible = gap_intervals(self.grid, missing.filter(IMPOSSIBLE))
        holes = coverage.subtract(by_subject(ends for _, ends in impossible), self.missing)
        if holes and not self.connection.offline:
            self.store.prune_units(self.table, holes)
            self._selection = None

    def has_all_rows(self, stored: Selection) -> bool:
        """Return whether the number of *stored* rows alone shows that none is missing."""
        requested, grid = self.requested, self.grid
        has_unique_units = requested.parts is None and set(grid.key) <= {grid.subject, grid.unit}
        return has_unique_units and stored.height == len(requested.subjects) * requested.unit_count

    def only_requested(self, missing: pl.DataFrame) -> pl.DataFrame:
        """Return the part of *missing* that was not stored when the load started."""
        unit, parts = self.grid.unit, []
        for gap, (subject, first, last) in gap_intervals(self.grid, missing):
            for start, end in clip_intervals(self.missing.get(subject, ()), first, last):
                is_interval = f"first_{unit}" in gap
                ends = {f"first_{unit}": start, f"last_{unit}": end} if is_interval else {}
                parts.append({**gap, **ends})
        return pl.DataFrame(parts, schema=missing.schema)

    def put_absent(self, gaps: Gaps) -> None:
        """Store that the rows of *gaps* do not exist, where that is certain.

        Rows outside of the active period of a validator never exist. All other rows are absent
        only if another load confirms it, and if there are rows of the load: a service that omits
        all rows may omit any. A service that has the rows of one subject up to a unit has those of
        all. Later rows may not be available yet, unless they are old enough.
        """
        policy, grid = self.policy, self.grid
        final = policy.final_until(self.chain_head, self._finalized)
        if self.endpoint.lifetime is not None:
            self.put_empty(gaps.inactive, final, is_certain=True)
            unknown = gaps.missing.filter(pl.col(REASON) == UNKNOWN)
            if not unknown.is_empty() and not self.keys().is_empty():
                schema, epochs = self.endpoint.table.schema(), ((0, FAR),)
                stored = self.store.select(self.table, self.requested.subjects, epochs, schema)
                has_rows = stored.rows.select(grid.subject).unique().collect()
                self.put_empty(unknown.join(has_rows, on=grid.subject, how="anti"), final)
            return
        # A dataset without a row says nothing about the chain.
        missing = gaps.missing.filter(pl.col(REASON) != NOT_IN_DATASET)
        if self.endpoint.is_contiguous or missing.is_empty() or self.keys().is_empty():
            # Every unit of a contiguous table has rows.
            return
        self.put_empty(missing, self.present_until(final, *self.unstored))

    def present_until(self, final: int, *frames: pl.DataFrame) -> int:
        """Return the last unit up to *final* whose rows the service has: later ones may follow.

        It has the rows up to the newest one, of any subject, that is stored or in *frames*; and
        those that are old enough.
        """
        if not self.policy.unit_name:
            return -1
        newest: list[Any] = [frame[self.grid.unit].max() for frame in frames]
        known = [self.store.newest(self.table, self.grid.unit), *newest]
        last: int = max(number for number in known if number is not None)
        until = self.policy.absent_until(self.chain_head, self._finalized)
        return max(until, min(final, last))

    def put_empty(self, gaps: pl.DataFrame, until: int, *, is_certain: bool = False) -> None:
        """Store that the units of *gaps* up to *until* have no rows.

        Unless that is certain, it is only noted, until another load confirms it.
        """
        absent = by_subject(
            (subject, first, min(last, until))
            for _, (subject, first, last) in gap_intervals(self.grid, self.only_requested(gaps))
            if first <= until
        )
        if absent:
            complete, empty = (absent, {}) if is_certain else ({}, absent)
            rows = self.endpoint.table.empty()
            self.store.put(self.table, rows, self.grid, complete, self._finalized, empty=empty)

    def add_rows_of_other_calls(self) -> None:
        """Add the rows of units that no other response is known to have."""
        if not self.of_other_calls:
            return
        rows = filter_covered(pl.concat(self.of_other_calls), self.grid, self.missing)
        rows = filter_covered(rows, self.grid, self.read_coverage(), inside=False)
        if not rows.is_empty():
            self.unstored.append(rows)

    def result(self, gaps: Gaps, required: Requirement, warnings: list[Warning]) -> LoadResult:
        """Return the rows of the load."""
        if not gaps.missing.is_empty():
            self.prune_stored_holes(gaps.missing)
        if self.missing and not self.connection.offline:
            self.store.compact_small(self.table)
        if self.unknown_pubkeys:
            unknown = build_gaps(pl.DataFrame({"pubkey": self.unknown_pubkeys}), UNKNOWN)
            gaps = gaps._replace(missing=pl.concat([unknown, gaps.missing], how="diagonal"))
            required = self.requirement(())
            if required.subjects is not None:
                required.subjects.pubkeys.update(self.unknown_pubkeys)
        self.add_rows_of_other_calls()
        selection = self.select()
        return LoadResult(selection.rows, gaps, required, warnings, is_sorted=selection.ordered)


def open_rows(
    connection: Connection,
    store: LocalStore,
    endpoint: Endpoint,
    values: Mapping[str, Any],
    *,
    is_lazy: bool = False,
    resolve: Callable[[Connection, LocalStore, Sequence[str]], dict[str, int]] = resolve_pubkeys,
) -> ReadThrough | None:
    """Return the rows of one load in the *store*; None if they cannot be stored.

    Stored rows have no public keys: *resolve* finds the index of each key in *values*.
    """
    policy = CachePolicy.of(endpoint)
    if policy is None:
        return None
    chain_head = connection.chain_head_of(endpoint)
    table = policy.table_name(values, chain_head)
    requested = None if table is None else policy.cache_range(values, chain_head)
    if table is None or requested is None:
        return None
    unknown: tuple[str, ...] = ()
    if requested.pubkeys:
        indices = resolve(connection, store, requested.pubkeys)
        unknown = tuple(key for key in requested.pubkeys if key not in indices)
        subjects = dict.fromkeys([*requested.subjects, *map(str, indices.values())])
        requested = replace(requested, subjects=tuple(subjects), pubkeys=())
    return ReadThrough(
        connection, store, policy, table, requested, values, unknown, is_lazy=is_lazy
    )


def gap_intervals(
    grid: Grid, missing: pl.DataFrame
) -> Iterator[tuple[dict[str, Any], tuple[str, int, int]]]:
    """Yield each gap in *missing* with its subject, its first and its last unit."""
    for gap in missing.iter_rows(named=True):
        subject = CHAIN_SUBJECTS[0] if grid.subject is None else str(gap.get(grid.subject))
        if gap.get(f"first_{grid.unit}") is not None:
            yield gap, (subject, gap[f"first_{grid.unit}"], gap[f"last_{grid.unit}"])
        elif gap.get(grid.unit) is not None:
            yield gap, (subject, gap[grid.unit], gap[grid.unit])


def split_by_rows(
    fetched: FetchedRows, grid: Grid, last: int, old: int, rows: pl.DataFrame
) -> tuple[Covered, Covered]:
    """Return the final units that the calls requested, those up to *last*, by subject.

    The first ones are of calls with any of the *rows*, up to the newest row of the call or the unit
    *old*: the service has what they request, so their other units have no rows. The second ones are
    later, or of calls without any row. A call with an empty page counts as one without: its other
    pages do not show what is missing from that page, and another window may have rows of its units.
    """
    present = find_covered(rows, grid)
    empty = {id(call) for call in fetched.empty}
    with_rows: list[tuple[str, int, int]] = []
    without_rows: list[tuple[str, int, int]] = []
    for call in fetched.calls:
        subjects, units = find_requested_units(call, grid)
        newest = max(
            (
                end
                for subject in subjects
                for interval in units
                for _, end in clip_intervals(present.get(subject, ()), *interval)
            ),
            default=None,
        )
        # Of replicas that answer one load, each has rows up to an epoch of its own.
        complete = -1 if newest is None or id(call) in empty else min(last, max(old, newest))
        for subject in subjects:
            with_rows += [(subject, *part) for part in clip_intervals(units, 0, complete)]
            rest = clip_intervals(units, complete + 1, last)
            without_rows += [(subject, *part) for part in rest]
    return by_subject(with_rows), by_subject(without_rows)


def find_last_slot(ranges: Iterable[bytes]) -> int:
    """Return the last slot that all responses cover, as their *ranges* state; FAR without one."""
    ends = []
    for text in ranges:
        stated = msgspec.json.decode(text)
        slots = stated.get("slot") if isinstance(stated, dict) else None
        end = slots.get("end") if isinstance(slots, dict) else None
        # Nothing else checks this part of a response.
        if type(end) is int:
            ends.append(end)
    return min(ends, default=FAR)


def find_requested_units(call: Call, grid: Grid) -> tuple[list[str], list[Interval]]:
    """Return the subjects and the units that *call* requests."""
    subjects: list[str] = [] if grid.subject else list(CHAIN_SUBJECTS)
    units: list[Interval] = []
    for expected in call.expected:
        units += intervals_of(expected.values.get(grid.unit, ()))
        if grid.subject is not None:
            subjects += map(str, expected.values.get(grid.subject, ()))
    return subjects, units
