"""Decode pages of wire JSON into one frame: exact and typed."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from beaconframes.errors import SchemaError
from beaconframes.schema.decode_checked import Cells, build_cell_error, decode_cells
from beaconframes.schema.decode_fast import FieldChecker, build_decoder, collect_cells
from beaconframes.schema.envelope_context import NO_CONTEXT, build_context_cells
from beaconframes.schema.numbers import Position
from beaconframes.schema.times import TimeOf

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from beaconframes.calendar import Chain
    from beaconframes.schema.columns import Column, TableSpec
    from beaconframes.schema.envelope_context import EnvelopeContext

log = logging.getLogger("beaconframes")

RECORDS_PER_FRAME = 10_000
"""Small enough that parsed records are still in the processor's cache when columns are built."""

BUILD_ERRORS = (TypeError, OverflowError, ValueError, pl.exceptions.PolarsError)
LAST_TIME = datetime(9999, 1, 1, tzinfo=UTC)


def decode(
    table: TableSpec, pages: Iterable[bytes], chain: Chain, contexts: Sequence[EnvelopeContext] = ()
) -> pl.DataFrame:
    """Return the rows of all *pages* in order of arrival; *contexts* has one item for each page."""
    node, decoder = build_decoder(table)
    frames: list[pl.DataFrame] = []
    records: list[Any] = []
    heights: list[int] = []
    remaining_contexts = iter(contexts or repeat(NO_CONTEXT))
    first_row = 0

    def add_frame(cells: Cells) -> None:
        """Build a frame of the pages since the last one."""
        nonlocal first_row
        cells |= build_context_cells(table, islice(remaining_contexts, len(heights)), heights)
        frames.append(build_frame(table, cells, first_row, chain))
        first_row += sum(heights)
        heights.clear()

    checker = FieldChecker(table, node)
    for page in pages:
        checker.check(page)
        try:
            found = decoder.decode(page)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            add_frame(collect_cells(node, records))
            records = []
            cells, height = decode_cells(table, page, first_row)
            heights.append(height)
            add_frame(cells)
            continue
        before = len(records)
        if isinstance(found, list):
            records += found
        elif found is not None:
            records.append(found)
        heights.append(len(records) - before)
        if len(records) >= RECORDS_PER_FRAME:
            add_frame(collect_cells(node, records))
            records = []
    add_frame(collect_cells(node, records))
    return pl.concat(frames) if len(frames) > 1 else frames[0]


def build_frame(table: TableSpec, cells: Cells, first_row: int, chain: Chain) -> pl.DataFrame:
    """Return the frame of *cells* with derived columns, in the table's column order."""
    lists = [c for c in table.columns if any(path.endswith("[]") for path in c.wire_paths)]
    series = [
        build_lists(table, column, cells[column.name], first_row)
        if column in lists
        else build_series(table, column, cells[column.name], first_row)
        for column in table.columns
        if column.name in cells
    ]
    frame = pl.DataFrame(series)
    if lists:
        frame = explode_lists(table, frame, lists)
    more = []
    for column in table.columns:
        if isinstance(column, TimeOf):
            check_calendar_range(table, column, frame, first_row, chain)
            number = pl.col(column.of) + column.offset
            start = chain.time_expr(column.by, number).alias(column.name)
            more.append(pl.coalesce(column.name, start) if column.name in cells else start)
        elif column.name not in cells and not isinstance(column, Position):
            # The caller fills it in.
            more.append(pl.lit(None, column.dtype).alias(column.name))
    return frame.with_columns(more).select([column.name for column in table.columns])


def explode_lists(table: TableSpec, frame: pl.DataFrame, lists: list[Column]) -> pl.DataFrame:
    """Return one row per item of the *lists*, which have the same length, with its positions."""
    items = pl.col(lists[0].name).list.len()
    positions = [c for c in table.columns if isinstance(c, Position)]
    for position in positions:
        warn_list_length(table, lists[0], position, frame.select(items).to_series())
    names = [position.name for position in positions]
    frame = frame.with_columns(pl.int_ranges(items).alias(name) for name in names)
    return frame.explode(*(c.name for c in lists), *names, empty_as_null=False)


def warn_list_length(
    table: TableSpec, column: Column, position: Position, lengths: pl.Series
) -> None:
    """Log each list with another length than the *position* column declares."""
    for length in lengths:
        if position.of not in (None, length):
            log.warning(
                "%s: a list of %s has %d items instead of %d: the %s of each item may be wrong",
                *(table.table_name, column.name, length, position.of, position.name),
            )


def build_lists(table: TableSpec, column: Column, values: list[Any], first_row: int) -> pl.Series:
    """Return a series of lists, null as the empty list; raise SchemaError for an invalid one."""
    lists = [value or [] for value in values]
    if not can_build(column, [item for value in lists for item in value]):
        row = next(row for row, value in enumerate(lists) if not can_build(column, value))
        raise build_cell_error(table, column, column.wire_paths[0], lists[row], first_row + row)
    return pl.Series(column.name, lists, dtype=pl.List(column.dtype))


def can_build(column: Column, values: list[Any]) -> bool:
    """Return whether *column* can hold all *values*, none of them null."""
    try:
        return not column.build(values).null_count()
    except BUILD_ERRORS:
        return False


def check_calendar_range(
    table: TableSpec, column: TimeOf, frame: pl.DataFrame, first_row: int, chain: Chain
) -> None:
    """Raise SchemaError for a slot, epoch or day after the year 9998."""
    numbers = frame[column.of]
    beyond = (numbers > chain.at(column.by, LAST_TIME)).arg_true()
    if not beyond.is_empty():
        of = next(c for c in table.columns if c.name == column.of)
        row = beyond[0]
        raise build_cell_error(table, of, of.wire_paths[0], numbers[row], first_row + row)


def build_series(table: TableSpec, column: Column, values: list[Any], first_row: int) -> pl.Series:
    """Return the series of one column; raise SchemaError for the first value it cannot hold."""
    try:
        series = column.build(values)
    except BUILD_ERRORS:
        for row, value in enumerate(values, first_row):
            try:
                column.build([value])
            except BUILD_ERRORS:
                raise build_cell_error(table, column, column.wire_paths[0], value, row) from None
        raise
    may_be_null = column.nullable or getattr(column, "none", None)
    if column.key and series.null_count() and not may_be_null:
        row = first_row + series.is_null().arg_true()[0]
        raise SchemaError(
            f"{table.table_name} row {row} has no {column.wire_paths[0]}, which is a key field",
            hint="The service omitted or emptied a field that the API documents",
        )
    return series
