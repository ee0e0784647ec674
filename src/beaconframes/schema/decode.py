"""Decode pages of wire JSON into one frame: exact and typed.

Pages are parsed into typed records, which become a list of values per column, then a frame. The
strict layout of records refuses unknown fields: `FieldChecker` then checks the page, and the other
layout drops them. A value of another JSON type than the column's is invalid in a typed record. Its
page goes to `decode_checked`, which defines what a value means.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from itertools import islice, repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from beaconframes.schema.columns import BUILD_ERRORS
from beaconframes.schema.decode_checked import (
    Cells,
    build_absence_error,
    build_cell_error,
    decode_cells,
)
from beaconframes.schema.envelope_context import NO_CONTEXT, build_context_cells
from beaconframes.schema.numbers import DecimalPlaces, Position
from beaconframes.schema.record_layout import (
    UNREADABLE,
    build_decoder,
    build_empty_error,
    check_unknown_fields,
    refuse_duplicate_fields,
)
from beaconframes.schema.times import TimeOf

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from beaconframes.calendar import Chain
    from beaconframes.schema.columns import Column, TableSpec
    from beaconframes.schema.envelope_context import EnvelopeContext
    from beaconframes.schema.record_layout import Leaf, ObjectLayout

RECORDS_PER_FRAME = 10_000
"""Small enough for parsed records to stay in the processor cache until columns are built."""

SMALL_PAGE = 16 * 2**10
"""Bytes of a page whose fields are checked only if its number of colons is new."""
FIELD = re.compile(rb'"\s*:')
BETWEEN = re.compile(rb"\}\s*,\s*\{")
UNTYPED = object()
"""Stands for the records of a page with a value of another type, for the checked decoder."""
LAST_TIME = datetime(9999, 1, 1, tzinfo=UTC)


def decode(
    table: TableSpec, pages: Iterable[bytes], chain: Chain, contexts: Sequence[EnvelopeContext] = ()
) -> pl.DataFrame:
    """Return the rows of all *pages* in order of arrival; *contexts* has one item for each page."""
    layout, decoder = build_decoder(table, strict=True)
    frames: list[pl.DataFrame] = []
    records: list[Any] = []
    heights: list[int] = []
    remaining_contexts = iter(contexts or repeat(NO_CONTEXT))
    first_row = 0

    def add_frame(cells: Cells) -> None:
        """Build a frame of the pages since the last one."""
        nonlocal first_row
        if table.context_columns:
            cells |= build_context_cells(table, islice(remaining_contexts, len(heights)), heights)
        frames.append(build_frame(table, cells, first_row, chain))
        first_row += sum(heights)
        heights.clear()

    checker = FieldChecker(table, layout)
    for page in pages:
        checker.check(page)
        try:
            parsed = decoder.decode(page)
        except UNREADABLE:
            parsed = drop_unknown_fields(table, layout, page)
        if parsed is UNTYPED:
            add_frame(collect_cells(layout, records))
            records = []
            cells, height = decode_cells(table, page, first_row)
            heights.append(height)
            add_frame(cells)
            continue
        before = len(records)
        if isinstance(parsed, list):
            records += parsed
        elif parsed is not None:
            records.append(parsed)
        heights.append(len(records) - before)
        if len(records) >= RECORDS_PER_FRAME:
            add_frame(collect_cells(layout, records))
            records = []
    if heights or not frames:
        add_frame(collect_cells(layout, records))
    return pl.concat(frames) if len(frames) > 1 else frames[0]


def drop_unknown_fields(table: TableSpec, layout: ObjectLayout, page: bytes) -> Any:
    """Return the typed records of *page* without unknown fields, UNTYPED if there are none."""
    check_unknown_fields(table, layout, page)
    try:
        return build_decoder(table, strict=False)[1].decode(page)
    except UNREADABLE:
        return UNTYPED


def collect_cells(layout: ObjectLayout, records: list[Any]) -> Cells:
    """Return the values of each column; the first spelling that has a value counts."""
    cells: Cells = {}
    # Spellings of one column may be at different depths.
    for leaf, holders in sorted(find_holders(layout, records), key=lambda found: found[0].spelling):
        name, values = leaf.column.name, map(attrgetter(leaf.attribute), holders)
        if leaf.spelling == 0:
            cells[name] = list(values)
        elif None in cells[name]:
            cells[name] = [b if a is None else a for a, b in zip(cells[name], values, strict=True)]
    return cells


def find_holders(layout: ObjectLayout, records: list[Any]) -> Iterator[tuple[Leaf, list[Any]]]:
    """Yield every leaf with the objects that hold its values, one object per record."""
    for leaf in layout.leaves:
        yield leaf, records
    for head, inner in layout.inner.items():
        parents = list(map(attrgetter(layout.attributes[head]), records))
        if not all(parents):
            blank = inner.record()
            parents = [blank if parent is None else parent for parent in parents]
        yield from find_holders(inner, parents)


def build_frame(table: TableSpec, cells: Cells, first_row: int, chain: Chain) -> pl.DataFrame:
    """Return the frame of *cells* with derived columns, in the table's column order."""
    lists = table.list_columns
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
    for column in table.columns:
        if isinstance(column, TimeOf):
            check_calendar_range(table, column, frame, first_row, chain)
    return frame.select(complete_columns(table, frame.columns, chain))


def complete_columns(table: TableSpec, names: Collection[str], chain: Chain) -> list[pl.Expr]:
    """Return all columns of *table*; those without a name in *names* follow from others.

    The caller fills a column that is null.
    """
    columns = []
    for column in table.columns:
        if isinstance(column, TimeOf):
            start = chain.time_expr(column.by, pl.col(column.of) + column.offset)
            cells = pl.coalesce(column.name, start) if column.name in names else start
        elif column.name in names:
            cells = pl.col(column.name)
        elif isinstance(column, DecimalPlaces):
            cells = column.count()
        else:
            cells = pl.lit(None, column.dtype)
        columns.append(cells.alias(column.name))
    return columns


def check_calendar_range(
    table: TableSpec, column: TimeOf, frame: pl.DataFrame, first_row: int, chain: Chain
) -> None:
    """Raise SchemaError for a slot, epoch or day after the year 9998."""
    numbers = frame[column.of]
    last = chain.at(column.by, LAST_TIME)
    largest: Any = numbers.max()
    if largest is not None and largest > last:
        of = next(c for c in table.columns if c.name == column.of)
        row = (numbers > last).arg_true()[0]
        raise build_cell_error(table, of, of.first_path, numbers[row], first_row + row)


def build_series(table: TableSpec, column: Column, values: list[Any], first_row: int) -> pl.Series:
    """Return the series of one column; raise SchemaError for the first value it cannot hold."""
    try:
        series = column.build(values)
    except BUILD_ERRORS:
        for row, value in enumerate(values, first_row):
            try:
                column.build([value])
            except BUILD_ERRORS:
                raise build_cell_error(table, column, column.first_path, value, row) from None
        raise
    if series.null_count() and not column.may_be_null:
        return check_nulls(table, column, values, series, first_row)
    if series.null_count() and column.default is not None:
        # An empty text stands for the default, and JSON null for an unknown value.
        is_default = pl.Series([not is_json_null(value) for value in values])
        return series.set(series.is_null() & is_default, column.default)
    return series


def is_json_null(value: Any) -> bool:
    """Return whether a field has no value, or the value null."""
    return value is None or (isinstance(value, msgspec.Raw) and bytes(value) in {b"", b"null"})


def check_nulls(
    table: TableSpec, column: Column, values: list[Any], series: pl.Series, first_row: int
) -> pl.Series:
    """Return *series*; raise SchemaError where *values* has none, or one that is no value.

    Some values stand for null, such as the slot 0 of an attestation that no block has.
    """
    for row in series.is_null().arg_true():
        value = values[row]
        if is_json_null(value):
            raise build_absence_error(table, column, first_row + row)
        if value == "" and column.default is None:
            raise build_cell_error(table, column, column.first_path, value, first_row + row)
    return series if column.default is None else series.fill_null(column.default)


def explode_lists(table: TableSpec, frame: pl.DataFrame, lists: list[Column]) -> pl.DataFrame:
    """Return one row per item of the *lists*, which have the same length, with its positions."""
    items = pl.col(lists[0].name).list.len()
    names = [column.name for column in table.columns if isinstance(column, Position)]
    frame = frame.with_columns(pl.int_ranges(items).alias(name) for name in names)
    return frame.explode(*(c.name for c in lists), *names, empty_as_null=False)


def build_lists(table: TableSpec, column: Column, values: list[Any], first_row: int) -> pl.Series:
    """Return a series of lists; raise SchemaError for an invalid one, or for a missing one."""
    if not column.may_be_null and None in values:
        raise build_absence_error(table, column, first_row + values.index(None))
    lists = [value or [] for value in values]
    if not can_build(column, [item for value in lists for item in value]):
        row = next(row for row, value in enumerate(lists) if not can_build(column, value))
        raise build_cell_error(table, column, column.first_path, lists[row], first_row + row)
    return pl.Series(column.name, lists, dtype=pl.List(column.dtype))


def can_build(column: Column, values: list[Any]) -> bool:
    """Return whether *column* can hold all *values*, none of them null."""
    try:
        return not column.build(values).null_count()
    except BUILD_ERRORS:
        return False


class FieldChecker:
    """Checks the first record of each page: unknown fields, duplicate fields, no fields.

    A small page with the same number of colons as an earlier one is assumed to have the same
    fields: a load may have thousands of one-record pages. A later record with an unknown field
    fails in the strict decoder. Duplicate fields of later records are not found: to count the
    colons of a page takes a third of the time to decode it.
    """

    def __init__(self, table: TableSpec, layout: ObjectLayout) -> None:
        self._table = table
        self._layout = layout
        self._checked: set[int] = set()

    def check(self, page: bytes) -> None:
        """Log fields without a column; raise an error for renamed and for duplicate fields."""
        if len(page) < SMALL_PAGE:
            colons = page.count(b":")
            if colons in self._checked:
                return
            self._checked.add(colons)
        try:
            head = find_first_record(page)
            record = msgspec.json.decode(head)
            if count_fields(record) != len(FIELD.findall(head)):
                refuse_duplicate_fields(self._table, head)
        except UNREADABLE:
            # The decoder reports invalid JSON.
            return
        if record == {}:
            raise build_empty_error(self._table)
        if isinstance(record, dict) and record.keys() - self._layout.known_names:
            # The strict decoder finds unknown fields of inner objects.
            check_unknown_fields(self._table, self._layout, page)


def find_first_record(page: bytes) -> bytes:
    """Return the first record of *page* as raw JSON."""
    start = page.find(b"{")
    end = BETWEEN.search(page, start)
    if end is None:
        return page[start:].rstrip(b"] \t\r\n")
    head = page[start : end.start() + 1]
    if head.count(b"[") == head.count(b"]"):
        return head
    # The match was inside a list of the record.
    text = page[start : start + 200_000].decode(errors="replace")
    return text[: json.JSONDecoder().raw_decode(text)[1]].encode()


def count_fields(value: Any) -> int:
    """Return the number of fields in *value*, at every depth."""
    if isinstance(value, dict):
        return len(value) + sum(map(count_fields, value.values()))
    return sum(map(count_fields, value)) if isinstance(value, list) else 0
