"""From wire JSON to a frame: exact, typed, one frame from many pages.

The fast way decodes whole pages into typed records and builds each column from one list. It
accepts only what needs no second look. Anything else goes the slow way, cell by cell through
``Column.parse``, which either understands the value or names the row, the field and the value.
"""

from __future__ import annotations

import json
import logging
import re
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import polars as pl

from beaconframes.errors import ProtocolError, SchemaError
from beaconframes.schema.numbers import Position
from beaconframes.schema.texts import Asked
from beaconframes.schema.times import TimeOf

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from beaconframes.calendar import Chain
    from beaconframes.schema.column import Column
    from beaconframes.schema.table import Table

log = logging.getLogger("beaconframes")

RECORDS_PER_FRAME = 100_000
LONE_SURROGATE = re.compile(
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\[^u]|\\u[^dD]|\\u[dD][0-7])"
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)

Cells = dict[str, list[Any]]


class Leaf(NamedTuple):
    """One spelling of one column: where its values stand in the records."""

    column: Column
    spelling: int
    attribute: str


class Node:
    """The part of a record that is one JSON object: its columns, its inner objects, its type."""

    def __init__(self, table: type[Table], prefix: str = "") -> None:
        self.record: Any = None
        self.leaves: list[Leaf] = []
        self.inner: dict[str, Node] = {}
        wire: dict[str, str] = {}
        fields: list[tuple[str, Any, Any]] = []

        for column in table.columns:
            for number, path in enumerate(column.spellings):
                if not path.startswith(prefix):
                    continue
                head, dot, _ = path[len(prefix) :].partition(".")
                if dot and head not in self.inner:
                    node = self.inner[head] = Node(table, f"{prefix}{head}.")
                    attribute = f"inner_{len(self.inner)}"
                    wire[attribute] = head
                    fields.append((attribute, node.record | None, None))
                elif not dot:
                    attribute = f"{column.name}_{number}"
                    wire[attribute] = head.removesuffix("[]")
                    fields.append((attribute, *declared(column, is_list=head.endswith("[]"))))
                    self.leaves.append(Leaf(column, number, attribute))
        self.names = set(wire.values())
        self.record = msgspec.defstruct(f"Record_{table.table_name}", fields, rename=wire, gc=False)
        self.attributes = {head: attribute for attribute, head in wire.items()}

    def cells(self, records: list[Any]) -> Iterator[tuple[Leaf, list[Any]]]:
        """Yield the values of every leaf, one for each of *records*."""
        for leaf in self.leaves:
            yield leaf, list(map(attrgetter(leaf.attribute), records))
        for head, node in self.inner.items():
            blank = node.record()
            parents = map(attrgetter(self.attributes[head]), records)
            yield from node.cells([blank if parent is None else parent for parent in parents])


def declared(column: Column, *, is_list: bool) -> tuple[Any, Any]:
    """Return the type and the default of *column* in a record."""
    kind: Any = column.sent_as
    if kind is msgspec.Raw:
        return kind, msgspec.Raw()
    if is_list:
        return list[kind] | None, None
    return kind | None, column.absent if isinstance(column.wire, str) else None


@cache
def layout(table: type[Table]) -> tuple[Node, msgspec.json.Decoder[Any]]:
    """Return the record layout of *table* and the decoder of its pages."""
    node = Node(table)
    record: Any = node.record
    return node, msgspec.json.Decoder(list[record] | record | None, strict=False)


def decode(table: type[Table], pages: Iterable[bytes], chain: Chain) -> pl.DataFrame:
    """Return the rows of all *pages* in order of arrival."""
    node, decoder = layout(table)  # type: ignore[arg-type]  # classes are hashable
    frames: list[pl.DataFrame] = []
    records: list[Any] = []
    first_row = 0

    for number, page in enumerate(pages):
        if number == 0:
            note_unknown_fields(table, node, page)
        try:
            found = decoder.decode(page)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            frames.append(assemble(table, by_record(node, records), first_row, chain))
            first_row += len(records)
            records = []
            cells, height = by_cell(table, page, first_row)
            frames.append(assemble(table, cells, first_row, chain))
            first_row += height
            continue
        if isinstance(found, list):
            records += found
        elif found is not None:
            records.append(found)
        if len(records) >= RECORDS_PER_FRAME:
            frames.append(assemble(table, by_record(node, records), first_row, chain))
            first_row += len(records)
            records = []
    frames.append(assemble(table, by_record(node, records), first_row, chain))
    return pl.concat(frames) if len(frames) > 1 else frames[0]


def by_record(node: Node, records: list[Any]) -> Cells:
    """Return the values of each column from typed *records*, the first spelling that has one."""
    cells: Cells = {}
    for leaf, values in node.cells(records):
        name = leaf.column.name
        if leaf.spelling == 0:
            cells[name] = values
        elif None in cells[name]:
            cells[name] = [b if a is None else a for a, b in zip(cells[name], values, strict=True)]
    return cells


def by_cell(table: type[Table], page: bytes, first_row: int) -> tuple[Cells, int]:
    """Return the values of each column of *page*, each parsed for itself, and how many rows."""
    found = read_untyped(table, page)
    records = found if isinstance(found, list) else [] if found is None else [found]
    cells: Cells = {column.name: [] for column in table.columns if column.spellings}
    for row, record in enumerate(records, first_row):
        if not isinstance(record, dict):
            raise SchemaError(f"{table.table_name} row {row} is {short(record)}, not an object")
        for column in table.columns:
            if column.spellings:
                cells[column.name].append(cell(table, column, record, row))
    return cells, len(records)


def cell(table: type[Table], column: Column, record: dict[str, Any], row: int) -> Any:
    """Return the parsed value of one cell, or name it in a SchemaError."""
    for path in column.spellings:
        value: Any = record
        for step in path.removesuffix("[]").split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if value is None:
            continue
        try:
            if path.endswith("[]"):
                return [column.parse(item) for item in value]
            return column.parse(value)
        except (ValueError, TypeError, OverflowError, msgspec.ValidationError):
            raise unfit(table, column, path, value, row) from None
    return None


def read_untyped(table: type[Table], page: bytes) -> Any:
    """Return *page* as plain objects; a lone surrogate in a text becomes U+FFFD."""
    try:
        try:
            return msgspec.json.decode(page)
        except msgspec.DecodeError:
            return msgspec.json.decode(mend_surrogates(page))
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise ProtocolError(f"the records of {table.table_name} are not JSON ({error})") from None


def mend_surrogates(body: bytes) -> bytes:
    """Return JSON with half a surrogate pair as U+FFFD: the parser takes it for the text's end."""
    return LONE_SURROGATE.sub(lambda escape: escape[1] or rb"\ufffd", body)


def assemble(table: type[Table], cells: Cells, first_row: int, chain: Chain) -> pl.DataFrame:
    """Return the frame of *cells*, with derived columns, in the table's order."""
    lists = [c for c in table.columns if any(path.endswith("[]") for path in c.spellings)]
    series = [
        pl.Series(column.name, [c or [] for c in cells[column.name]], dtype=pl.List(column.dtype))
        if column in lists
        else build(table, column, cells[column.name], first_row)
        for column in table.columns
        if column.name in cells
    ]
    frame = pl.DataFrame(series)
    if lists:
        positions = [c.name for c in table.columns if isinstance(c, Position)]
        listed = pl.col(lists[0].name)
        frame = frame.with_columns(pl.int_ranges(listed.list.len()).alias(p) for p in positions)
        frame = frame.explode(*(c.name for c in lists), *positions, empty_as_null=False)
    more = []
    for column in table.columns:
        if isinstance(column, TimeOf):
            start = chain.time_expr(column.by, pl.col(column.of) + column.later).alias(column.name)
            more.append(pl.coalesce(column.name, start) if column.name in cells else start)
        elif isinstance(column, Asked):
            more.append(pl.lit(None, column.dtype).alias(column.name))
    return frame.with_columns(more).select(table.schema().names())


def build(table: type[Table], column: Column, values: list[Any], first_row: int) -> pl.Series:
    """Return the series of one column, or name the first value that it cannot hold."""
    try:
        series = column.build(values)
    except (TypeError, OverflowError, ValueError, pl.exceptions.PolarsError):
        for row, value in enumerate(values, first_row):
            try:
                column.build([value])
            except (TypeError, OverflowError, ValueError, pl.exceptions.PolarsError):
                raise unfit(table, column, column.spellings[0], value, row) from None
        raise
    if column.key and series.null_count() and not getattr(column, "none", None):
        row = first_row + series.is_null().arg_true()[0]
        raise SchemaError(
            f"{table.table_name} row {row} has no {column.spellings[0]}, which says what it is of",
            hint="The service left out or emptied a field that the API promises",
        )
    return series


def unfit(table: type[Table], column: Column, path: str, value: Any, row: int) -> SchemaError:
    """Return the error that names a value its column cannot hold."""
    lost = isinstance(value, float) and abs(value) > 2**53
    return SchemaError(
        f"{table.table_name} row {row}: {path.removesuffix('[]')} is {short(value)}, "
        f"which {column.name} ({column.dtype}) cannot hold"
        + (" exactly: its last digits are already lost" if lost else ""),
        hint="The service sent something that the API does not promise; nothing was guessed",
    )


def short(value: Any) -> str:
    """Return *value* for a message, cut and without control characters."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


@cache
def warn_once(table: str, fields: tuple[str, ...]) -> None:
    """Log, once for each set of fields, that the service sends more than the table knows."""
    names = ", ".join(fields)
    log.warning("%s: the service also sends %s, for which there is no column", table, names)


def note_unknown_fields(table: type[Table], node: Node, page: bytes) -> None:
    """Look at the first record of *page* for fields that no column takes."""
    start = page.find(b"{")
    try:
        head = page[start : start + 200_000].decode(errors="replace")
        record, _ = json.JSONDecoder().raw_decode(head)
    except (ValueError, RecursionError):
        return
    unknown = set(record) - node.names - {field.wire for field in table.implied}
    if unknown:
        warn_once(table.table_name, tuple(sorted(short(name) for name in unknown)))
