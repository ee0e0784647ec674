"""The fast way from JSON to columns: whole pages into typed records, one list for each column.

It takes only what needs no second look: a value of another JSON type than the column's sends the
page the slow way (``cells``), which is the definition of what a value means.
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
from beaconframes.schema.decode_checked import Cells, short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beaconframes.schema.column import Column
    from beaconframes.schema.table import Table

log = logging.getLogger("beaconframes")


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
                    fields.append((attribute, *node.as_field()))
                elif not dot:
                    attribute = f"{column.name}_{number}"
                    wire[attribute] = head.removesuffix("[]")
                    fields.append((attribute, *declared(column, is_list=head.endswith("[]"))))
                    self.leaves.append(Leaf(column, number, attribute))
        self.names = set(wire.values())
        self.record = msgspec.defstruct(
            f"Record_{table.table_name}", fields, rename=wire, gc=False, kw_only=True
        )
        self.attributes = {head: attribute for attribute, head in wire.items()}

    def as_field(self) -> tuple[Any, ...]:
        """Return the type and the default of the object in a record."""
        # Fields that may be left out of an object say nothing where the object is left out.
        whole = any(leaf.column.absent is not None for leaf in self.leaves)
        return (self.record,) if whole else (self.record | None, None)

    def unknown(self, record: Any, prefix: str = "") -> Iterator[str]:
        """Yield the paths in *record*, as plain JSON, that belong to no column."""
        if not isinstance(record, dict):
            return
        for name, value in record.items():
            if name not in self.names:
                yield prefix + name
            elif name in self.inner:
                yield from self.inner[name].unknown(value, f"{prefix}{name}.")

    def holders(self, records: list[Any]) -> Iterator[tuple[Leaf, list[Any]]]:
        """Yield every leaf with what holds its values: one object for each of *records*."""
        for leaf in self.leaves:
            yield leaf, records
        for head, node in self.inner.items():
            parents = list(map(attrgetter(self.attributes[head]), records))
            if not all(parents):
                blank = node.record()
                parents = [blank if parent is None else parent for parent in parents]
            yield from node.holders(parents)


def declared(column: Column, *, is_list: bool) -> tuple[Any, Any]:
    """Return the type and the default of *column* in a record."""
    kind: Any = column.wire_type()
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
    return node, msgspec.json.Decoder(list[record] | record | None)


def by_record(node: Node, records: list[Any]) -> Cells:
    """Return the values of each column from typed *records*, the first spelling that has one."""
    cells: Cells = {}
    for leaf, holders in node.holders(records):
        name, values = leaf.column.name, map(attrgetter(leaf.attribute), holders)
        if leaf.spelling == 0:
            cells[name] = list(values)
        elif None in cells[name]:
            cells[name] = [b if a is None else a for a, b in zip(cells[name], values, strict=True)]
    return cells


class FieldChecker:
    """Looks at the first record of every page: at what is decoded without being noticed.

    A page that has as many colons as one that was looked at is taken to be made like it: there are
    thousands with a record each.
    """

    def __init__(self, table: type[Table], node: Node) -> None:
        self._table = table
        self._node = node
        self._known = {field.wire for field in table.implied}
        self._seen: set[int] = set()

    def of(self, page: bytes) -> None:
        """Note fields that no column takes; raise ProtocolError for a field that is there twice."""
        if len(page) < SMALL:
            colons = page.count(b":")
            if colons in self._seen:
                return
            self._seen.add(colons)
        try:
            head = first_record(page)
            record = msgspec.json.decode(head)
            if fields(record) != len(FIELD.findall(head)):
                refuse_twins(self._table, head)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            # Whoever decodes the page says what is wrong with it.
            return
        unknown = set(self._node.unknown(record)) - self._known
        if unknown:
            warn_once(self._table.table_name, tuple(sorted(short(name) for name in unknown)))


def first_record(page: bytes) -> bytes:
    """Return the first record of *page*, as it is written."""
    start = page.find(b"{")
    end = BETWEEN.search(page, start)
    if end is None:
        return page[start:].rstrip(b"] \t\r\n")
    head = page[start : end.start() + 1]
    if head.count(b"[") == head.count(b"]"):
        return head
    # That was between two parts of a record.
    text = page[start : start + 200_000].decode(errors="replace")
    return text[: json.JSONDecoder().raw_decode(text)[1]].encode()


SMALL = 16 * 2**10
FIELD = re.compile(rb'"\s*:')
BETWEEN = re.compile(rb"\}\s*,\s*\{")


def fields(value: Any) -> int:
    """Return how many fields *value* and all that is in it have."""
    if isinstance(value, dict):
        return len(value) + sum(map(fields, value.values()))
    return sum(map(fields, value)) if isinstance(value, list) else 0


def refuse_twins(table: type[Table], record: bytes) -> None:
    """Raise ProtocolError if an object in *record* has a field twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        for name in names:
            if names.count(name) > 1:
                raise ProtocolError(
                    f"a record of {table.table_name} has {short(name)} twice",
                    hint="Nobody can tell which of the two counts; nothing was guessed",
                )
        return dict(pairs)

    json.loads(record.decode(errors="replace"), object_pairs_hook=once)


@cache
def warn_once(table: str, fields: tuple[str, ...]) -> None:
    """Log, once for each set of fields, that the service sends more than the table knows."""
    names = ", ".join(fields)
    log.warning("%s: the service also sends %s, for which there is no column", table, names)
