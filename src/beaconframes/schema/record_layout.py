"""The layout of a table's records: the typed objects that the JSON parser creates, built once.

These objects have no unknown and no duplicate fields. Records that do are checked here.
"""

from __future__ import annotations

import json
import logging
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from beaconframes.errors import ProtocolError, SchemaError
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beaconframes.schema.columns import Column, TableSpec

log = logging.getLogger("beaconframes")

UNREADABLE = (msgspec.MsgspecError, RecursionError, ValueError)


class Leaf(NamedTuple):
    """One spelling of one column: the attribute of the records that holds its values."""

    column: Column
    spelling: int
    attribute: str


class ObjectLayout:
    """One JSON object in a record: its columns, its inner objects, its msgspec type.

    A *strict* object has no unknown fields, except the calendar fields of a record.
    """

    def __init__(self, table: TableSpec, prefix: str = "", *, strict: bool) -> None:
        self.record: Any = None
        self.leaves: list[Leaf] = []
        self.inner: dict[str, ObjectLayout] = {}
        wire: dict[str, str] = {}
        fields: list[tuple[str, Any, Any]] = []

        for column in table.columns:
            for number, path in enumerate(column.wire_paths):
                if not path.startswith(prefix):
                    continue
                head, dot, _ = path[len(prefix) :].partition(".")
                if dot and head not in self.inner:
                    inner = self.inner[head] = ObjectLayout(
                        table, f"{prefix}{head}.", strict=strict
                    )
                    attribute = f"inner_{len(self.inner)}"
                    wire[attribute] = head
                    fields.append((attribute, *inner.as_field()))
                elif not dot:
                    attribute = f"{column.name}_{number}"
                    wire[attribute] = head.removesuffix("[]")
                    fields.append((attribute, *column_field(column, path)))
                    self.leaves.append(Leaf(column, number, attribute))
        calendar_fields = table.calendar_fields if prefix == "" else ()
        self.known_names = {*wire.values(), *(field.wire for field in calendar_fields)}
        self.record = msgspec.defstruct(
            f"Record_{table.table_name}",
            fields,
            rename=wire,
            gc=False,
            kw_only=True,
            forbid_unknown_fields=strict and not calendar_fields,
        )
        self.attributes = {head: attribute for attribute, head in wire.items()}

    def as_field(self) -> tuple[Any, ...]:
        """Return the type and the default of this object as a field of its parent."""
        # An object whose fields have defaults is required itself.
        required = any(leaf.column.default is not None for leaf in self.leaves)
        return (self.record,) if required else (self.record | None, None)


def column_field(column: Column, path: str) -> tuple[Any, Any]:
    """Return the type and the default of *column* at *path* in a record."""
    kind: Any = column.wire_type()
    if kind is msgspec.Raw:
        return kind, msgspec.Raw()
    if path.endswith("[]"):
        return list[kind] | None, None
    # Of several spellings, the last one has the default: the first with a value counts.
    if path == column.wire_paths[-1]:
        return kind | None, column.default
    # Null at another one is not an absent field; the checked decoder distinguishes them.
    return (kind | None if column.default is None else kind), None


@cache
def build_decoder(
    table: TableSpec, *, strict: bool
) -> tuple[ObjectLayout, msgspec.json.Decoder[Any]]:
    """Return the record layout of *table* and the decoder of its pages."""
    layout = ObjectLayout(table, strict=strict)
    record: Any = layout.record
    return layout, msgspec.json.Decoder(list[record] | record | None)


def check_unknown_fields(table: TableSpec, layout: ObjectLayout, page: bytes) -> None:
    """Log the unknown fields in all records of *page*.

    Raises
    ------
    SchemaError
        An object has unknown fields, and in no record has it one of the documented fields: the
        service may have renamed the field.
    """
    try:
        found = msgspec.json.decode(page)
    except UNREADABLE:
        # The decoder reports invalid JSON.
        return
    objects: dict[str, set[str]] = {}
    for record in found if isinstance(found, list) else [found]:
        collect_fields(layout, record, "", objects)
    unknown = set(find_unknown_fields(layout, "", objects))
    for path in sorted(unknown):
        missing = set(find_missing_fields(table, parent_of(path), objects))
        if missing:
            closest = get_close_matches(path, sorted(missing), n=3, cutoff=0)
            closest += [f"{len(missing) - 3} more"] if len(missing) > 3 else []
            raise SchemaError(
                f"{table.table_name}: no record has {', '.join(closest)}, but there is "
                f"{shorten(path)}, which is not documented",
                hint="The service may have renamed the field. Update beaconframes",
            )
    if unknown and not table.is_partial:
        warn_unknown_fields(table.table_name, tuple(sorted(shorten(path) for path in unknown)))


def collect_fields(
    layout: ObjectLayout, value: Any, path: str, objects: dict[str, set[str]]
) -> None:
    """Add the field names of the object *value* at *path*, and of its inner objects."""
    if not isinstance(value, dict):
        return
    objects.setdefault(path, set()).update(value)
    for name, inner in layout.inner.items():
        collect_fields(inner, value.get(name), f"{path}.{name}" if path else name, objects)


def find_unknown_fields(
    layout: ObjectLayout, path: str, objects: dict[str, set[str]]
) -> Iterator[str]:
    """Yield the paths in *objects* that belong to no column and do not follow from the calendar."""
    for name in objects.get(path, ()):
        inner_path = f"{path}.{name}" if path else name
        if name in layout.inner:
            yield from find_unknown_fields(layout.inner[name], inner_path, objects)
        elif name not in layout.known_names:
            yield inner_path


def find_missing_fields(
    table: TableSpec, parent: str, objects: dict[str, set[str]]
) -> Iterator[str]:
    """Yield the documented fields that the object at *parent* never has."""
    for column in table.columns:
        paths = [path.removesuffix("[]") for path in column.wire_paths]
        inside = [path for path in paths if parent_of(path) == parent]
        found = (p.rpartition(".")[2] in objects.get(parent_of(p), ()) for p in paths)
        if inside and not (column.optional or column.derived or any(found)):
            yield inside[0]


def parent_of(path: str) -> str:
    """Return the path of the object that has the field at *path*, ``""`` for the record."""
    return path.rpartition(".")[0]


def build_empty_error(table: TableSpec) -> SchemaError:
    """Return the error for a record without any field."""
    return SchemaError(
        f"{table.table_name} has a record without fields",
        hint="The service sent an empty object. Try again later, or report it",
    )


def refuse_duplicate_fields(table: TableSpec, record: bytes) -> None:
    """Raise ProtocolError if an object in *record* has a field twice."""

    def build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        for name in names:
            if names.count(name) > 1:
                raise ProtocolError(
                    f"a record of {table.table_name} has {shorten(name)} twice",
                    hint="Either value may be right. Try again later, or report it to the service",
                )
        return dict(pairs)

    json.loads(record.decode(errors="replace"), object_pairs_hook=build_object)


@cache
def warn_unknown_fields(table: str, fields: tuple[str, ...]) -> None:
    """Log the fields that have no column, once for each set of fields."""
    names = ", ".join(fields)
    log.warning(
        "%s: the service also sends %s, which is not documented and is dropped", table, names
    )
