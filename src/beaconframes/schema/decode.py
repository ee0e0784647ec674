"""From wire JSON to a frame: exact, typed, one frame from many pages."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from beaconframes.errors import SchemaError
from beaconframes.schema.decode_checked import Cells, by_cell, unfit
from beaconframes.schema.decode_fast import FieldChecker, by_record, layout
from beaconframes.schema.envelope_context import NOTHING, around_records
from beaconframes.schema.numbers import Position
from beaconframes.schema.times import TimeOf

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from beaconframes.calendar import Chain
    from beaconframes.schema.column import Column
    from beaconframes.schema.envelope_context import EnvelopeContext
    from beaconframes.schema.table import Table

log = logging.getLogger("beaconframes")

RECORDS_PER_FRAME = 10_000
"""Few enough that what was parsed is still in the processor's cache when it becomes columns."""

CANNOT_HOLD = (TypeError, OverflowError, ValueError, pl.exceptions.PolarsError)
LAST_YEAR = datetime(9999, 1, 1, tzinfo=UTC)


def decode(
    table: type[Table], pages: Iterable[bytes], chain: Chain, around: Sequence[EnvelopeContext] = ()
) -> pl.DataFrame:
    """Return the rows of all *pages* in order of arrival."""
    node, decoder = layout(table)  # type: ignore[arg-type]  # classes are hashable
    frames: list[pl.DataFrame] = []
    records: list[Any] = []
    heights: list[int] = []
    stands_around = iter(around or repeat(NOTHING))
    first_row = 0

    def add(cells: Cells) -> None:
        """Make a frame of the pages since the last one."""
        nonlocal first_row
        cells |= around_records(table, islice(stands_around, len(heights)), heights)
        frames.append(assemble(table, cells, first_row, chain))
        first_row += sum(heights)
        heights.clear()

    scrutiny = FieldChecker(table, node)
    for page in pages:
        scrutiny.of(page)
        try:
            found = decoder.decode(page)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            add(by_record(node, records))
            records = []
            cells, height = by_cell(table, page, first_row)
            heights.append(height)
            add(cells)
            continue
        before = len(records)
        if isinstance(found, list):
            records += found
        elif found is not None:
            records.append(found)
        heights.append(len(records) - before)
        if len(records) >= RECORDS_PER_FRAME:
            add(by_record(node, records))
            records = []
    add(by_record(node, records))
    return pl.concat(frames) if len(frames) > 1 else frames[0]


def assemble(table: type[Table], cells: Cells, first_row: int, chain: Chain) -> pl.DataFrame:
    """Return the frame of *cells*, with derived columns, in the table's order."""
    lists = [c for c in table.columns if any(path.endswith("[]") for path in c.spellings)]
    series = [
        lists_of(table, column, cells[column.name], first_row)
        if column in lists
        else build(table, column, cells[column.name], first_row)
        for column in table.columns
        if column.name in cells
    ]
    frame = pl.DataFrame(series)
    if lists:
        places = [c for c in table.columns if isinstance(c, Position)]
        positions = [c.name for c in places]
        listed = pl.col(lists[0].name)
        for place in places:
            note_displaced(table, lists[0], place, frame[lists[0].name].list.len())
        frame = frame.with_columns(pl.int_ranges(listed.list.len()).alias(p) for p in positions)
        frame = frame.explode(*(c.name for c in lists), *positions, empty_as_null=False)
    more = []
    for column in table.columns:
        if isinstance(column, TimeOf):
            refuse_endless(table, column, frame, first_row, chain)
            start = chain.time_expr(column.by, pl.col(column.of) + column.later).alias(column.name)
            more.append(pl.coalesce(column.name, start) if column.name in cells else start)
        elif column.name not in cells and not isinstance(column, Position):
            # Whoever asks for the rows fills it in later.
            more.append(pl.lit(None, column.dtype).alias(column.name))
    return frame.with_columns(more).select(table.schema().names())


def note_displaced(table: type[Table], column: Column, place: Position, items: pl.Series) -> None:
    """Log a list with more or fewer *items* than there are places."""
    for number in items:
        if place.of not in (None, number):
            log.warning(
                "%s: a list of %s has %d entries, where there are %d: the %s of each is unsure",
                *(table.table_name, column.name, number, place.of, place.name),
            )


def lists_of(table: type[Table], column: Column, values: list[Any], first_row: int) -> pl.Series:
    """Return a series of lists, none of them null, or name the first that the column refuses."""
    lists = [value or [] for value in values]
    if not fits(column, [item for value in lists for item in value]):
        row = next(row for row, value in enumerate(lists) if not fits(column, value))
        raise unfit(table, column, column.spellings[0], lists[row], first_row + row)
    return pl.Series(column.name, lists, dtype=pl.List(column.dtype))


def fits(column: Column, values: list[Any]) -> bool:
    """Tell whether *column* can hold all *values*, and each is something."""
    try:
        return not column.build(values).null_count()
    except CANNOT_HOLD:
        return False


def refuse_endless(
    table: type[Table], column: TimeOf, frame: pl.DataFrame, first_row: int, chain: Chain
) -> None:
    """Raise SchemaError for a slot, epoch or day that no calendar reaches."""
    numbers = frame[column.of]
    beyond = (numbers > chain.at(column.by, LAST_YEAR)).arg_true()
    if not beyond.is_empty():
        of = next(c for c in table.columns if c.name == column.of)
        raise unfit(table, of, of.spellings[0], numbers[beyond[0]], first_row + beyond[0])


def build(table: type[Table], column: Column, values: list[Any], first_row: int) -> pl.Series:
    """Return the series of one column, or name the first value that it cannot hold."""
    try:
        series = column.build(values)
    except CANNOT_HOLD:
        for row, value in enumerate(values, first_row):
            try:
                column.build([value])
            except CANNOT_HOLD:
                raise unfit(table, column, column.spellings[0], value, row) from None
        raise
    may_be_null = column.nullable or getattr(column, "none", None)
    if column.key and series.null_count() and not may_be_null:
        row = first_row + series.is_null().arg_true()[0]
        raise SchemaError(
            f"{table.table_name} row {row} has no {column.spellings[0]}, which says what it is of",
            hint="The service left out or emptied a field that the API promises",
        )
    return series
