"""The local store: the dataset with the final rows of one service. Its errors stop no load.

A service that fails may return an empty list instead of an error, or a list without some rows. So
units without rows are only noted, and requested again by the next load. If they have none in that
response either, some time later, the rows do not exist.
"""

from __future__ import annotations

import logging
import time
import warnings
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.cache.store_folder import StoreFolder
from beaconframes.dataset import Dataset, Selection, coverage, ledger
from beaconframes.dataset.coverage import RowsRemoved
from beaconframes.errors import DatasetError, StoreUnavailable, find_caller_level
from beaconframes.intervals import clip_intervals, merge_intervals, subtract_intervals

if TYPE_CHECKING:
    from collections.abc import Collection

    from beaconframes.dataset import Covered, Grid
    from beaconframes.intervals import Intervals
    from beaconframes.sqlite_file import Database

log = logging.getLogger("beaconframes.store")

MAX_SMALL_SEGMENTS = 16
"""Compact a table that has more segments than this."""
CONFIRMATION_SECONDS = 600
"""Seconds between two responses that together show that rows do not exist."""

CREATE_EMPTY = """
CREATE TABLE IF NOT EXISTS empty_responses (
    table_name TEXT NOT NULL,
    subject TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    noted_at INTEGER NOT NULL,
    PRIMARY KEY (table_name, subject, first)
) WITHOUT ROWID
"""


class LocalStore(StoreFolder):
    """The stored rows of one service and chain, and which of their units are complete."""

    @property
    def finalized(self) -> int:
        """Return the last epoch that is known to be final; -1 if none is."""
        return self._finalized if self.dataset else -1

    def coverage(self, table: str, subjects: Collection[str], intervals: Intervals) -> Covered:
        """Return the complete units of *subjects* in *intervals*."""
        if not intervals:
            return {}
        first, last = intervals[0][0], intervals[-1][1]
        return self._try(Dataset.coverage, table, subjects, first=first, last=last) or {}

    def unconfirmed(self, table: str, subjects: Collection[str], intervals: Intervals) -> Covered:
        """Return the units of *subjects* in *intervals* that had no rows in one response."""
        return self._try(read_empty, table, subjects, intervals) or {}

    def read(
        self, table: str, subjects: Collection[str], intervals: Intervals, schema: pl.Schema
    ) -> pl.DataFrame:
        """Return the rows of *subjects* in *intervals*; none if they are damaged.

        Damaged rows have been removed, so they are requested again.
        """
        try:
            return self.select(table, subjects, intervals, schema).rows.collect()
        except DatasetError:
            return schema.to_frame()

    def select(
        self,
        table: str,
        subjects: Collection[str] | None,
        intervals: Intervals,
        schema: pl.Schema,
        complete: Covered | None = None,
    ) -> Selection:
        """Return the rows of *subjects* in *intervals*, sorted as they were written.

        Raises
        ------
        DatasetError
            A segment is damaged, or units in *complete* were removed. The next call reports these
            rows as missing: damaged segments have been removed with their coverage.
        """
        dataset = self.dataset
        if dataset is None:
            if complete:
                raise RowsRemoved(f"{self.path} was removed while it was read")
            return Selection(pl.LazyFrame(schema=schema), 0, ordered=True)
        try:
            return dataset.selection(table, subjects, intervals, schema=schema, complete=complete)
        except RowsRemoved:
            raise
        except DatasetError:
            self.mend()
            raise

    def mend(self) -> None:
        """Remove damaged segments and their coverage; warn of what is requested again."""
        listed = {segment.path: segment for segment in self._try(Dataset.segments) or ()}
        for damage in self._try(Dataset.mend) or ():
            ranges = listed[damage.path].ranges.items() if damage.path in listed else ()
            rows = ", ".join(f"{name} {low} to {high}" for name, (low, high) in ranges)
            warnings.warn(
                StoreUnavailable(
                    f"{self.path / damage.path} {damage.reason}: it was removed from the store, "
                    f"and rows of {damage.table} are requested again ({rows})"
                ),
                stacklevel=find_caller_level(),
            )

    def put(
        self,
        table: str,
        rows: pl.DataFrame,
        grid: Grid,
        complete: Covered,
        finalized: int,
        *,
        empty: Covered | None = None,
    ) -> bool:
        """Store *rows* and the *complete* units; return whether that succeeded.

        Units in *empty* had no rows in this response; they are complete if an earlier one had none.
        """

        def commit(dataset: Dataset) -> bool:
            with dataset.writing() as writer:
                writer.add_covered(table, rows, grid, complete)
                if empty:
                    confirmed = confirm_empty(writer.connection, table, empty)
                    writer.add_covered(table, rows, grid, confirmed)
                # Another process may have written a later one, or removed the folder.
                if finalized > (ledger.get_meta(writer.connection).get("finalized_epoch") or -1):
                    facts = dict.fromkeys(("finalized_epoch", "latest_epoch"), finalized)
                    writer.set_meta(facts | {"latest_slot": self._chain.last_slot_of(finalized)})
            self._finalized = max(self._finalized, finalized)
            return True

        self._create()
        is_stored = self._try(commit) is True
        if is_stored:
            self._check_size()
        return is_stored

    def prune_units(self, table: str, units: Covered) -> None:
        """Remove *units*, so that the next load requests them again."""
        self._try(Dataset.prune_units, table, units)

    def newest(self, table: str, unit: str) -> int:
        """Return the last unit with rows in a table; -1 if there are none."""
        segments = self._try(Dataset.segments, table) or []
        return max((int(s.ranges[unit][1]) for s in segments if unit in s.ranges), default=-1)

    def drop_outdated(self, table: str, schema: pl.Schema) -> None:
        """Remove a table that another version of this library stored with other columns.

        Nothing can be added to a table without a readable segment, so it is repaired.
        """
        known = self._try(Dataset.stored_schema, table)
        if known is None:
            if self._try(Dataset.segments, table):
                self.mend()
        elif known != schema:
            log.warning("table %s was stored with other columns; it is fetched again", table)
            self._try(Dataset.prune, table)

    def compact_small(self, table: str) -> None:
        """Compact a table that has many small segments."""
        if len(self._try(Dataset.segments, table) or ()) > MAX_SMALL_SEGMENTS:
            self._try(Dataset.compact, table)


def confirm_empty(connection: Database, table: str, empty: Covered) -> Covered:
    """Note the units *empty* of a table; return those that an earlier response had no rows of."""
    connection.execute(CREATE_EMPTY)
    now = int(time.time())
    confirmed: Covered = {}
    for subject, intervals in empty.items():
        noted = connection.execute(
            "SELECT first, last, noted_at FROM empty_responses"
            " WHERE table_name = ? AND subject = ? AND first <= ? AND last >= ?",
            (table, subject, intervals[-1][1], intervals[0][0]),
        )
        # A time in the future means that the clock was set back.
        old = [part[:2] for part in noted if not 0 <= now - part[2] < CONFIRMATION_SECONDS]
        seen_twice = merge_intervals(
            part for ends in intervals for part in clip_intervals(old, *ends)
        )
        if seen_twice:
            confirmed[subject] = seen_twice
        new = subtract_intervals(intervals, merge_intervals(part[:2] for part in noted))
        entries = [(*part, now) for part in new]
        for start, end, at in noted:
            entries += [(*part, at) for part in subtract_intervals([(start, end)], seen_twice)]
        connection.execute_many(
            "DELETE FROM empty_responses WHERE table_name = ? AND subject = ? AND first = ?",
            [(table, subject, part[0]) for part in noted],
        )
        connection.execute_many(
            "INSERT INTO empty_responses VALUES (?, ?, ?, ?, ?)",
            [(table, subject, *entry) for entry in entries],
        )
    return confirmed


def read_empty(
    dataset: Dataset, table: str, subjects: Collection[str], intervals: Intervals
) -> Covered:
    """Return the noted units of *subjects* in *intervals*."""
    first, last, name = intervals[0][0], intervals[-1][1], "empty_responses"
    with ledger.read_transaction(dataset.path) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", [name]):
            return {}
        return coverage.read(connection, table, subjects, first, last, relation=name)
