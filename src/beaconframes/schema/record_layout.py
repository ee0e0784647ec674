"""The layout of a table's records: the typed objects that the JSON parser creates, built once."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from beaconframes.schema.columns import Column, TableSpec


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
        """Return the type and the default of this object as a field of its parent."""
        # An object whose fields have defaults is required itself.
        required = any(leaf.column.default is not None for leaf in self.leaves)
        return (self.record,) if required else (self.record | None, None)


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
