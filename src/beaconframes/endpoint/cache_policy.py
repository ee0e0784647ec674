"""The cache policy of an endpoint: stored rows, their keys, and the arguments for missing ones.

Rows are stored by subject and unit: a validator and its epochs, or the chain and its slots. So the
rows of one call serve every other call that requests some of the same, whatever its batches and
windows. Filters that are ``shared`` are left out of the request and applied after the load. Any
other filter has a table of its own for each value, or its rows are not stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from beaconframes.endpoint.declaration import Finality
from beaconframes.endpoint.parameter import Batch, ExpectedRows, Role
from beaconframes.endpoint.request import Envelope
from beaconframes.intervals import (
    Rectangle,
    count_numbers,
    cover_missing,
    intervals_of,
    merge_intervals,
    numbers_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.endpoint.declaration import Endpoint
    from beaconframes.endpoint.parameter import Parameter
    from beaconframes.intervals import Intervals

CHAIN_SUBJECTS = ("",)
"""The only subject of rows that belong to the chain as a whole."""

UNLIMITED = 2**62
DAYS_UNTIL_ABSENT = {Finality.AT_FINALITY: 1, Finality.WHEN_PUBLISHED: 2}
"""Days after which a final unit without a row stays without one."""


@dataclass(frozen=True)
class CacheRange:
    """The rows of one call: subjects, as text, and intervals of units.

    ``pubkeys`` are subjects whose index is not known yet. ``required`` says that each subject must
    have a row in each unit; ``parts`` is as in `ExpectedRows`.
    """

    subjects: tuple[str, ...]
    intervals: Intervals
    pubkeys: tuple[str, ...] = ()
    required: bool = True
    parts: tuple[str, int] | None = None

    @property
    def unit_count(self) -> int:
        """Return the number of units of each subject."""
        return count_numbers(self.intervals)


@dataclass(frozen=True)
class CachePolicy:
    """The way in which the rows of an endpoint are stored.

    ``unit`` is the parameter of epochs, slots or days: a range, or numbers listed one by one.
    ``unit_name`` is epoch, slot, day or period, and empty for other numbers. ``subject`` is the
    parameter of validators, if rows are of validators.
    """

    endpoint: Endpoint
    unit: Parameter
    unit_column: str
    unit_name: str
    subject: Parameter | None
    subject_column: str | None
    filters: tuple[Parameter, ...]

    @classmethod
    @cache
    def of(cls, endpoint: Endpoint) -> CachePolicy | None:
        """Return the policy of *endpoint*; None if its rows are not stored."""
        if endpoint.finality is Finality.NEVER or endpoint.table.keeps_every_field:
            return None
        units = endpoint.parameters_of(Role.RANGE, Role.UNITS)
        subjects = endpoint.parameters_of(Role.SUBJECT)
        if len(units) != 1 or len(subjects) > 1:
            return None
        if units[0].role is Role.UNITS and subjects:
            return None
        subject = subjects[0] if subjects else None
        column = units[0].rows_column
        subject_column = None if subject is None else subject.rows_column
        if column is None or (subject is not None and subject_column is None):
            return None
        if not column.unit and not endpoint.final_rows:
            # Execution block numbers have no calendar: only the rows state whether they are final.
            return None
        return cls(
            endpoint,
            units[0],
            column.name,
            column.unit,
            subject,
            None if subject_column is None else subject_column.name,
            endpoint.parameters_of(Role.FILTER),
        )

    @property
    def is_listed(self) -> bool:
        """Return whether units are listed one by one instead of as a range."""
        return self.unit.role is Role.UNITS

    @property
    def window(self) -> int:
        """Return how many consecutive units one request covers."""
        return self.unit.window or UNLIMITED

    def table_name(self, values: Mapping[str, Any], chain_head: ChainHead) -> str | None:
        """Return the table that has the rows of *values*; None if they are not stored."""
        name = self.endpoint.name
        if self.endpoint.envelope is Envelope.V2:
            name = f"v2_{name}"
        fields: dict[str, Any] = {}
        for parameter in self.filters:
            if parameter.filter_storage == "shared":
                continue
            batches = parameter.batches(values, chain_head)
            if len(batches) != 1:
                return None
            if parameter.filter_storage == "none" and batches != [Batch()]:
                # The members of a set may change, and may depend on the key.
                return None
            fields |= batches[0].fields
        if not fields:
            return name
        digest = blake2b(msgspec.json.encode(fields, order="sorted"), digest_size=4).hexdigest()
        return f"{name}_{'_'.join(sorted(fields)).lower()}_{digest}"

    def cache_range(self, values: Mapping[str, Any], chain_head: ChainHead) -> CacheRange | None:
        """Return the rows that *values* request; None if they are not known beforehand."""
        units = self.unit.requested_units(values, chain_head)
        if units is None:
            return None
        expected = list(units)
        subjects: list[str] = list(CHAIN_SUBJECTS)
        pubkeys: list[str] = []
        if self.subject is not None:
            subjects = []
            for batch in self.subject.batches(values, chain_head):
                if len(batch.expected) != 1:
                    return None
                (rows,) = batch.expected
                expected.append(rows)
                for name, items in rows.values.items():
                    column = subjects if name == self.subject_column else pubkeys
                    column.extend(map(str, items))
                pubkeys += rows.pubkeys
            if pubkeys and not self.subject.resolves_pubkeys:
                return None
        intervals = self.intervals(units)
        if intervals is None or (intervals and intervals[0][0] < 0):
            return None
        parts = next((rows.parts for rows in expected if rows.parts is not None), None)
        required = all(rows.required for rows in expected)
        return CacheRange(
            tuple(dict.fromkeys(subjects)), intervals, tuple(pubkeys), required, parts
        )

    def intervals(self, units: list[ExpectedRows]) -> Intervals | None:
        """Return the intervals of *units*; None if they are also selected by another column."""
        if any(
            items
            for rows in units
            for name, items in rows.values.items()
            if name != self.unit_column
        ):
            return None
        values = [rows.values.get(self.unit_column, ()) for rows in units]
        return merge_intervals(interval for numbers in values for interval in intervals_of(numbers))

    def fetch_arguments(
        self, missing: Mapping[str, Intervals], values: Mapping[str, Any], chain_head: ChainHead
    ) -> list[dict[str, Any]]:
        """Return the arguments that fetch the *missing* rows with the fewest requests."""
        if self.is_listed:
            (arg,) = self.unit.arguments()
            numbers = numbers_of(missing.get(CHAIN_SUBJECTS[0], ()))
            return [self.unfiltered(values, {arg: list(numbers)})] if numbers else []
        if self.subject is None and self.window == 1:
            # The plan of a range has a request for each unit, as that of single units.
            ranges = missing.get(CHAIN_SUBJECTS[0], ())
            rectangles = [Rectangle(CHAIN_SUBJECTS, first, last) for first, last in ranges]
        else:
            batch_limit = 1 if self.subject is None else self.subject.batch_limit(chain_head)
            rectangles = cover_missing(missing, batch_limit=batch_limit, window=self.window)
        fetched = []
        for rectangle in rectangles:
            arguments: dict[str, Any] = {"since": rectangle.first, "until": rectangle.last}
            if self.subject is not None:
                arguments[self.subject.arguments()[0]] = [int(item) for item in rectangle.subjects]
            fetched.append(self.unfiltered(values, arguments))
        return fetched

    def unfiltered(self, values: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return *values* updated by *arguments*, without shared filters."""
        shared = (p for p in self.filters if p.filter_storage == "shared")
        return {**values, **{p.arguments()[0]: p.unfiltered for p in shared}, **arguments}

    def final_until(self, chain_head: ChainHead, finalized: int) -> int:
        """Return the last final unit when *finalized* is the last finalized epoch."""
        chain = chain_head.chain
        if finalized < 0:
            return -1
        if self.unit_name == "slot":
            return chain.last_slot_of(finalized)
        if self.unit_name == "day":
            return chain.at("day", chain.time_of("epoch", finalized + 1)) - 1
        if self.unit_name == "period":
            # A committee is fixed one period before it starts.
            return finalized // chain.epochs_per_sync_period + 1
        return finalized if self.unit_name == "epoch" else UNLIMITED

    def absent_until(self, chain_head: ChainHead, finalized: int) -> int:
        """Return the last unit whose absence is final if it has no row by now."""
        if not self.unit_name:
            return -1
        days = DAYS_UNTIL_ABSENT[self.endpoint.finality]
        return self.final_until(chain_head, finalized - days * chain_head.chain.epochs_per_day)

    def expected_rows(self, wanted: CacheRange) -> dict[Parameter, ExpectedRows]:
        """Return the rows expected for *wanted*, by parameter."""
        units = numbers_of(wanted.intervals)
        expected = {
            self.unit: ExpectedRows({self.unit_column: units}, wanted.required, parts=wanted.parts)
        }
        if self.subject is not None:
            assert self.subject_column is not None
            subjects = [int(subject) for subject in wanted.subjects]
            expected[self.subject] = ExpectedRows({self.subject_column: subjects}, wanted.required)
        return expected
