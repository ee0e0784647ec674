"""Checks of received rows: rows that were not requested, duplicates, missing rows."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.endpoint import ExpectedRows, Finality, Role
from beaconframes.errors import IntegrityError
from beaconframes.intervals import intervals_of, merge_intervals

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from beaconframes.endpoint import Call, ChainHead, Endpoint, Parameter
    from beaconframes.intervals import Interval

log = logging.getLogger("beaconframes.fetch")

IMPOSSIBLE = "impossible"
"""The column that marks a gap whose rows must exist: it lies between final rows."""

PUBKEYS_WITHOUT_ROWS = "public_keys_without_rows"
CHAIN_COLUMN = "chain"
"""The column of the subject of rows without a subject, such as epochs."""

NO_GAPS = pl.DataFrame(schema={IMPOSSIBLE: pl.Boolean})


@dataclass
class RequiredRows:
    """The rows that calls must return for one parameter; ``batch_size`` is that of a request."""

    parameter: Parameter
    values: dict[str, set[Any]] = field(default_factory=dict)
    pubkeys: set[str] = field(default_factory=set)
    parts: tuple[str, int] | None = None
    batch_size: int = 1

    def add(self, expected: ExpectedRows) -> None:
        """Add the rows *expected* of one request."""
        for name, values in expected.values.items():
            self.values.setdefault(name, set()).update(values)
        self.pubkeys.update(expected.pubkeys)
        self.parts = expected.parts
        size = sum(map(len, expected.values.values())) + len(expected.pubkeys)
        self.batch_size = max(self.batch_size, size)


@dataclass
class Requirement:
    """The subjects of a load, and the interval of units in which each must have rows."""

    subjects: RequiredRows | None = None
    units: RequiredRows | None = None

    @classmethod
    def of_calls(cls, endpoint: Endpoint, calls: Iterable[Call]) -> Requirement:
        """Return the requirement of *calls*."""
        expected = [
            (parameter, rows)
            for call in calls
            for parameter, batch in zip(endpoint.all_parameters, call.batches, strict=True)
            for rows in batch.expected
        ]
        return cls.of(expected)

    @classmethod
    def of(cls, expected: Iterable[tuple[Parameter, ExpectedRows]]) -> Requirement:
        """Return the requirement of rows *expected* by parameter; the first of each role counts."""
        by_parameter: dict[int, RequiredRows] = {}
        seen: dict[int, ExpectedRows] = {}
        for parameter, rows in expected:
            if rows.required and id(rows) not in seen:
                seen[id(rows)] = rows
                by_parameter.setdefault(id(parameter), RequiredRows(parameter)).add(rows)
        requirement = cls()
        for required in by_parameter.values():
            is_range = required.parameter.role is Role.RANGE
            if is_range and requirement.units is None:
                requirement.units = required
            elif not is_range and requirement.subjects is None:
                requirement.subjects = required
        return requirement


def find_missing(
    endpoint: Endpoint, required: Requirement, rows: pl.DataFrame, chain_head: ChainHead
) -> pl.DataFrame:
    """Return the required rows that are not in *rows*, one row per gap."""
    subjects, units = required.subjects, required.units
    gaps = [NO_GAPS]
    if subjects is not None:
        for name, values in subjects.values.items():
            subject_values = series_of(rows.schema, name, values)
            if subjects.pubkeys:
                # A validator that was not requested by index was requested by public key.
                subject_values = pl.concat([subject_values, rows[name].drop_nulls()]).unique()
            if not subject_values.is_empty():
                gaps.append(find_missing_by_subject(endpoint, rows, subject_values.sort(), units))
        if (key_count := count_keys_without_rows(subjects, rows)) > 0:
            gaps.append(pl.DataFrame({PUBKEYS_WITHOUT_ROWS: [key_count], IMPOSSIBLE: [False]}))
    elif units is not None:
        ((unit, numbers),) = units.values.items()
        chain_rows = rows.with_columns(pl.lit(0).alias(CHAIN_COLUMN))
        chain = pl.Series(CHAIN_COLUMN, [0], pl.Int32)
        missing = find_gaps(endpoint, chain_rows, chain, unit, min(numbers), max(numbers))
        is_of_chain = not endpoint.parameters_of(Role.SUBJECT)
        if is_of_chain and endpoint.is_contiguous and endpoint.finality is Finality.AT_FINALITY:
            # Every final epoch has rows, also at the ends of the interval. Only the service knows
            # the validators of a set, such as an address: all of them may be inactive there.
            missing = missing.with_columns(pl.lit(value=True).alias(IMPOSSIBLE))
        gaps.append(missing.drop(CHAIN_COLUMN))
        if units.parts is not None:
            gaps.append(find_missing_parts(rows, unit, *units.parts, chain_head))
    return pl.concat(gaps, how="diagonal")


def find_missing_by_subject(
    endpoint: Endpoint, rows: pl.DataFrame, subject_values: pl.Series, units: RequiredRows | None
) -> pl.DataFrame:
    """Return the subjects without rows, or the gaps of each subject in the interval of *units*."""
    if units is not None:
        ((unit, numbers),) = units.values.items()
        return find_gaps(endpoint, rows, subject_values, unit, min(numbers), max(numbers))
    missing = find_subjects_without_rows(endpoint, rows, subject_values)
    ranges = endpoint.parameters_of(Role.RANGE)
    column = ranges[0].rows_column if ranges else None
    if not endpoint.is_contiguous or column is None or rows.is_empty():
        return missing
    # Without a requested range its ends are unknown, so only gaps between rows count.
    present = rows[column.name]
    low: Any = present.min()
    high: Any = present.max()
    inside = find_gaps(endpoint, rows, subject_values, column.name, low, high).filter(IMPOSSIBLE)
    return pl.concat([missing, inside], how="diagonal")


def find_subjects_without_rows(
    endpoint: Endpoint, rows: pl.DataFrame, subject_values: pl.Series
) -> pl.DataFrame:
    """Return the subjects without rows; one between two final rows is marked as impossible."""
    name = subject_values.name
    missing = subject_values.to_frame().join(rows, on=name, how="anti", maintain_order="left")
    if not endpoint.is_contiguous or not subject_values.dtype.is_integer():
        # Block roots and public keys have no neighbors.
        return missing.with_columns(pl.lit(value=False).alias(IMPOSSIBLE))
    final = rows.filter(*endpoint.final_rows) if endpoint.final_rows else rows
    between = pl.col(name).is_between(final[name].min(), final[name].max())
    return missing.with_columns(between.fill_null(value=False).alias(IMPOSSIBLE))


def find_gaps(
    endpoint: Endpoint,
    rows: pl.DataFrame,
    subject_values: pl.Series,
    unit: str,
    low: int,
    high: int,
) -> pl.DataFrame:
    """Return the intervals from *low* to *high* in which a subject has no rows."""
    ends = subject_values.to_frame().with_columns(
        pl.lit(low, pl.Int64).alias("low"), pl.lit(high, pl.Int64).alias("high")
    )
    missing = find_intervals_without_rows(rows, ends, subject_values.name, unit)
    if endpoint.is_contiguous:
        return missing
    return missing.with_columns(pl.lit(value=False).alias(IMPOSSIBLE))


def find_missing_parts(
    rows: pl.DataFrame, name: str, part: str, part_count: int, chain_head: ChainHead
) -> pl.DataFrame:
    """Return the missing parts of units that have ended, such as the slots of an epoch."""
    incomplete = rows.group_by(name).agg(pl.col(part).n_unique().alias("received_parts"))
    incomplete = incomplete.filter(pl.col("received_parts") < part_count).sort(name).select(name)
    if incomplete.is_empty():
        return NO_GAPS
    # The current epoch still grows.
    incomplete = incomplete.filter(pl.col(name) < chain_head.latest("epoch"))
    first = pl.col(name) * part_count
    ends = incomplete.with_columns(first.alias("low"), (first + part_count - 1).alias("high"))
    missing = find_intervals_without_rows(rows, ends, name, part)
    unit_range = [pl.col(name).alias(f"first_{name}"), pl.col(name).alias(f"last_{name}")]
    is_final = pl.col(name) <= last_final_epoch(chain_head)
    return missing.select(*unit_range, pl.exclude(name, IMPOSSIBLE), is_final.alias(IMPOSSIBLE))


def find_intervals_without_rows(
    rows: pl.DataFrame, ends: pl.DataFrame, name: str, unit: str
) -> pl.DataFrame:
    """Return the intervals of *unit* without a row, for each value of *name*, within its *ends*.

    An interval between two rows is marked as impossible.
    """
    first, last = pl.col(f"first_{unit}"), pl.col(f"last_{unit}")
    start, end = pl.col("start"), pl.col("end")
    present = rows.lazy().filter(pl.col(unit).is_not_null())
    if not rows[name].null_count() and rows[name].is_sorted():
        # Then groups need no hash table.
        present = present.set_sorted(name)
    spans = (
        present.group_by(name)
        .agg(start=pl.min(unit), end=pl.max(unit), count=pl.n_unique(unit))
        .collect()
        .join(ends, on=name)
    )
    # Most subjects have every unit from their first to their last, so one interval holds them all.
    is_whole = pl.col("count") == end - start + 1
    covered = spans.filter(is_whole, start <= pl.col("low"), end >= pl.col("high"))
    spans, ends = (frame.join(covered, on=name, how="anti") for frame in (spans, ends))
    others = present.join(spans.filter(~is_whole).lazy(), on=name, how="semi")
    intervals = [
        spans.filter(is_whole).select(name, "start", "end"),
        others.select(name, start=unit, end=unit).collect(),
        # One unit beyond either end counts as present, so that each gap lies between two intervals.
        ends.select(name, start=pl.col("low") - 1, end=pl.col("low") - 1),
        ends.select(name, start=pl.col("high") + 1, end=pl.col("high") + 1),
    ]
    previous_end = end.cum_max().shift(1).over(name)
    return (
        pl.concat(intervals)
        .sort(name, "start")
        .select(name, (previous_end + 1).alias(f"first_{unit}"), (start - 1).alias(f"last_{unit}"))
        .filter(first <= last)
        .join(ends, on=name, maintain_order="left")
        .with_columns(((first > pl.col("low")) & (last < pl.col("high"))).alias(IMPOSSIBLE))
        .drop("low", "high")
    )


def last_final_epoch(chain_head: ChainHead) -> int:
    """Return the last finalized epoch that has ended: at genesis, epoch 0 is final but runs."""
    return min(chain_head.latest("epoch", finalized=True), chain_head.latest("epoch") - 1)


def allow_unfinalized(missing: pl.DataFrame, chain_head: ChainHead) -> pl.DataFrame:
    """Return *missing* without the mark on gaps that are not final yet: their rows may follow."""
    if "last_epoch" not in missing.columns:
        return missing
    last, impossible = pl.col("last_epoch"), pl.col(IMPOSSIBLE)
    if missing.filter(impossible, last.is_not_null()).is_empty():
        return missing
    is_final = last.is_null() | (last <= last_final_epoch(chain_head))
    return missing.with_columns(impossible & is_final)


def count_keys_without_rows(subjects: RequiredRows, rows: pl.DataFrame) -> int:
    """Return how many requested public keys have no rows; rows hold the index, not the key.

    The service silently drops unknown keys. A validator that is requested by key and by index
    counts as a key without rows, because its rows do not show by which it was requested.
    """
    if not subjects.pubkeys:
        return 0
    ((name, indices),) = subjects.values.items()
    by_key = ~pl.col(name).is_in(series_of(rows.schema, name, indices).implode())
    return len(subjects.pubkeys) - rows.filter(by_key)[name].n_unique()


def series_of(schema: pl.Schema, name: str, values: Iterable[Any]) -> pl.Series:
    """Return *values* as a series of the type that the column has in *schema*."""
    return pl.Series(name, list(values), dtype=schema[name])


def drop_unrequested(endpoint: Endpoint, calls: list[Call], rows: pl.DataFrame) -> pl.DataFrame:
    """Return the *rows* that *calls* requested.

    For some parameters the service always returns more rows: those are dropped. For all other
    parameters an unrequested row raises IntegrityError.
    """
    trimmed = {
        name
        for call in calls
        for expected in call.expected
        if expected.trim
        for name in expected.values
    }
    for selections in expected_by_columns(calls):
        is_requested = is_expected(rows.schema, selections).fill_null(value=False)
        name = next(iter(selections[0].values))
        if name in trimmed:
            rows = rows.filter(is_requested)
            continue
        unrequested = rows.filter(~is_requested)
        if not unrequested.is_empty():
            raise IntegrityError(
                f"the service returned {unrequested.height} rows that were not requested, the "
                f"first with {name} {unrequested[name][0]}",
                endpoint=endpoint.route,
                hint="Try again later. The response was discarded, nothing was stored",
            )
    return rows


def drop_duplicates(endpoint: Endpoint, rows: pl.DataFrame, first: str = "") -> pl.DataFrame:
    """Return *rows* as `Table.arrange` sorts them; log how many were received more than once."""
    unique = endpoint.table.arrange(rows, first)
    if unique.height < rows.height:
        # If a list changes while it is read by offset, rows are repeated or left out.
        shifted = endpoint.pagination is not None and endpoint.pagination.may_shift
        log.log(
            logging.WARNING if shifted else logging.INFO,
            "%s: %d rows were received more than once; each is used once%s",
            endpoint.route,
            rows.height - unique.height,
            ", and others may be missing: the list changed while it was read" if shifted else "",
        )
    return unique


def expected_by_columns(calls: list[Call]) -> list[list[ExpectedRows]]:
    """Return the rows that *calls* may return, one list for each set of columns.

    A set of columns counts only if every call selects by it: the other calls may return any row.
    """
    by_columns: dict[tuple[str, ...], list[ExpectedRows]] = {}
    counts: dict[tuple[str, ...], int] = {}
    seen: set[int] = set()
    for call in calls:
        for expected in call.expected:
            if expected.pubkeys:
                continue
            columns = tuple(expected.values)
            counts[columns] = counts.get(columns, 0) + 1
            if id(expected) not in seen:
                seen.add(id(expected))
                by_columns.setdefault(columns, []).append(expected)
    return [rows for columns, rows in by_columns.items() if counts[columns] == len(calls)]


def is_expected(schema: pl.Schema, selections: Sequence[ExpectedRows]) -> pl.Expr:
    """Return the expression whether a row is one of *selections*, which have the same columns.

    *schema* has the types of these columns. Ranges are not expanded. A null is in no selection, and
    stays null: polars skips files by their statistics only without `fill_null`.
    """
    conditions: list[pl.Expr] = []
    for name in selections[0].values:
        values: list[Any] = []
        intervals: list[Interval] = []
        for expected in selections:
            requested = expected.values[name]
            if isinstance(requested, range):
                intervals += intervals_of(requested)
            else:
                values += requested
        conditions += [pl.col(name).is_between(*ends) for ends in merge_intervals(intervals)]
        if values or not conditions:
            conditions.append(pl.col(name).is_in(series_of(schema, name, values).implode()))
    return reduce(or_, conditions)


def drop_received(key: list[str], rows: pl.DataFrame, received: pl.DataFrame) -> pl.DataFrame:
    """Return the *rows* whose key is not in *received*.

    A row that is not final may differ between two responses: the first response counts.
    """
    # Some tables without a documented shape have no key.
    return rows.join(received, on=key, how="anti", nulls_equal=True) if key else rows
