"""The fast decoder: parse whole pages into typed records, then collect one list per column.

A value of another JSON type than the column's is invalid here. Its page goes to `decode_checked`,
which defines what a value means.
"""

from __future__ import annotations

import json
import logging
import re
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from beaconframes.errors import ProtocolError
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beaconframes.schema.columns import Column, TableSpec
    from beaconframes.schema.decode_checked import Cells

log = logging.getLogger("beaconframes")


class Leaf(NamedTuple):
    """One spelling of one column: the attribute of the records that holds its values."""

    column: Column
    spelling: int
    attribute: str


class Node:
    """One JSON object in a record: its columns, its inner objects, its msgspec type."""

    def __init__(self, table: TableSpec, prefix: str = "") -> None:
        self.record: Any = None
        self.leaves: list[Leaf] = []
        self.inner: dict[str, Node] = {}
        wire: dict[str, str] = {}
        fields: list[tuple[str, Any, Any]] = []

        for column in table.columns:
            for number, path in enumerate(column.wire_paths):
                if not path.startswith(prefix):
                    continue
                head, dot, _ = path[len(prefix) :].partition(".")
                if dot and head not in self.inner:
                    node = self.inner[head] = Node(table, f"{prefix}{head}.")
                    attribute = f"inner_{len(self.inner)}"
                    wire[attribute] = head
                    fields.append((attribute, *node.as_field()))
                elif not dot:
                    attribute = f"{column.name}_{number}"
                    wire[attribute] = head.removesuffix("[]")
                    fields.append((attribute, *column_field(column, is_list=head.endswith("[]"))))
                    self.leaves.append(Leaf(column, number, attribute))
        self.names = set(wire.values())
        self.record = msgspec.defstruct(
            f"Record_{table.table_name}", fields, rename=wire, gc=False, kw_only=True
        )
        self.attributes = {head: attribute for attribute, head in wire.items()}

    def as_field(self) -> tuple[Any, ...]:
        """Return the type and the default of the object in a record."""
        # Where fields have defaults the object itself is required.
        required = any(leaf.column.default is not None for leaf in self.leaves)
        return (self.record,) if required else (self.record | None, None)

    def find_unknown_fields(self, record: Any, prefix: str = "") -> Iterator[str]:
        """Yield the paths in *record*, as plain JSON, that belong to no column."""
        if not isinstance(record, dict):
            return
        for name, value in record.items():
            if name not in self.names:
                yield prefix + name
            elif name in self.inner:
                yield from self.inner[name].find_unknown_fields(value, f"{prefix}{name}.")

    def find_holders(self, records: list[Any]) -> Iterator[tuple[Leaf, list[Any]]]:
        """Yield every leaf with the objects that hold its values, one for each of *records*."""
        for leaf in self.leaves:
            yield leaf, records
        for head, node in self.inner.items():
            parents = list(map(attrgetter(self.attributes[head]), records))
            if not all(parents):
                blank = node.record()
                parents = [blank if parent is None else parent for parent in parents]
            yield from node.find_holders(parents)


def column_field(column: Column, *, is_list: bool) -> tuple[Any, Any]:
    """Return the type and the default of *column* in a record."""
    kind: Any = column.wire_type()
    if kind is msgspec.Raw:
        return kind, msgspec.Raw()
    if is_list:
        return list[kind] | None, None
    return kind | None, column.default if isinstance(column.wire, str) else None


@cache
def build_decoder(table: TableSpec) -> tuple[Node, msgspec.json.Decoder[Any]]:
    """Return the record layout of *table* and the decoder of its pages."""
    node = Node(table)
    record: Any = node.record
    return node, msgspec.json.Decoder(list[record] | record | None)


def collect_cells(node: Node, records: list[Any]) -> Cells:
    """Return the values of each column from typed *records*, the first spelling that has one."""
    cells: Cells = {}
    for leaf, holders in node.find_holders(records):
        name, values = leaf.column.name, map(attrgetter(leaf.attribute), holders)
        if leaf.spelling == 0:
            cells[name] = list(values)
        elif None in cells[name]:
            cells[name] = [b if a is None else a for a, b in zip(cells[name], values, strict=True)]
    return cells


class FieldChecker:
    """Checks the first record of each page for fields that the decoder would drop silently.

    These are unknown fields and duplicate fields. A small page with the same number of colons as an
    earlier one is assumed to have the same fields: a load may have thousands of one-record pages.
    """

    def __init__(self, table: TableSpec, node: Node) -> None:
        self._table = table
        self._node = node
        self._calendar_fields = {field.wire for field in table.calendar_fields}
        self._checked: set[int] = set()

    def check(self, page: bytes) -> None:
        """Log fields without a column; raise ProtocolError for a duplicate field."""
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
        except (msgspec.MsgspecError, RecursionError, ValueError):
            # The decoder reports invalid JSON.
            return
        unknown = set(self._node.find_unknown_fields(record)) - self._calendar_fields
        if unknown:
            names = tuple(sorted(shorten(name) for name in unknown))
            warn_unknown_fields(self._table.table_name, names)


def find_first_record(page: bytes) -> bytes:
    """Return the first record of *page*, as it is written."""
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


SMALL_PAGE = 16 * 2**10
FIELD = re.compile(rb'"\s*:')
BETWEEN = re.compile(rb"\}\s*,\s*\{")


def count_fields(value: Any) -> int:
    """Return the number of fields in *value*, at every depth."""
    if isinstance(value, dict):
        return len(value) + sum(map(count_fields, value.values()))
    return sum(map(count_fields, value)) if isinstance(value, list) else 0


def refuse_duplicate_fields(table: TableSpec, record: bytes) -> None:
    """Raise ProtocolError if an object in *record* has a field twice."""

    def build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        for name in names:
            if names.count(name) > 1:
                raise ProtocolError(
                    f"a record of {table.table_name} has {shorten(name)} twice",
                    hint="Either value could be the right one; nothing was guessed",
                )
        return dict(pairs)

    json.loads(record.decode(errors="replace"), object_pairs_hook=build_object)


@cache
def warn_unknown_fields(table: str, fields: tuple[str, ...]) -> None:
    """Log the fields that have no column, once for each set of fields."""
    names = ", ".join(fields)
    log.warning("%s: the service also sends %s, for which there is no column", table, names)
