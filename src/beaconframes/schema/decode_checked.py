"""The slow decoder: parse each cell by itself, and report an invalid one in the error."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from beaconframes.errors import ProtocolError, SchemaError
from beaconframes.text import shorten

if TYPE_CHECKING:
    from beaconframes.schema.columns import Column, TableSpec

LONE_SURROGATE = re.compile(
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\[^u]|\\u[^dD]|\\u[dD][0-7])"
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)

ABSENT: Any = object()
"""Stands for a field that a record does not have; null is None."""

Cells = dict[str, list[Any]]
"""The values of each column, by its name."""


def decode_cells(table: TableSpec, page: bytes, first_row: int) -> tuple[Cells, int]:
    """Return the values of each column of *page*, each parsed by itself, and the row count."""
    records = parse_records(table, page)
    columns = [column for column in table.columns if column.wire_paths]
    cells: Cells = {column.name: [] for column in columns}
    for row, record in enumerate(records, first_row):
        if not isinstance(record, dict):
            raise SchemaError(f"{table.table_name} row {row} is {shorten(record)}, not an object")
        for column in columns:
            cells[column.name].append(decode_cell(table, column, record, row))
    return cells, len(records)


def decode_cell(table: TableSpec, column: Column, record: dict[str, Any], row: int) -> Any:
    """Return the parsed value of one cell; raise SchemaError for an invalid one."""
    is_absent = True
    for path in column.wire_paths:
        value = find_value(table, column, path, record, row)
        is_absent &= value is ABSENT
        if value is ABSENT or value is None:
            continue
        try:
            if not path.endswith("[]"):
                parsed = column.parse(value)
                return column.default if parsed is None else parsed
            if isinstance(value, list):
                return [column.parse(item) for item in value]
        except (ValueError, TypeError, OverflowError, OSError, msgspec.ValidationError):
            pass
        raise build_cell_error(table, column, path, value, row)
    return column.default if is_absent else None


def find_value(
    table: TableSpec, column: Column, path: str, record: dict[str, Any], row: int
) -> Any:
    """Return the value at *path* in *record*, ABSENT if there is none."""
    *parents, last = path.removesuffix("[]").split(".")
    part = record
    for step in parents:
        found = part.get(step)
        if found is None and column.default is None:
            # A default is valid only inside an existing object, so such an object is required.
            return ABSENT
        if not isinstance(found, dict):
            raise build_cell_error(table, column, step, found, row)
        part = found
    return part.get(last, ABSENT)


def parse_records(table: TableSpec, page: bytes) -> list[Any]:
    """Return the records of *page* as plain objects; a lone surrogate in a text becomes U+FFFD."""
    try:
        try:
            found = msgspec.json.decode(page)
        except msgspec.DecodeError:
            found = msgspec.json.decode(repair_surrogates(page))
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise ProtocolError(f"the records of {table.table_name} are not JSON ({error})") from None
    if isinstance(found, list):
        return found
    return [] if found is None else [found]


def repair_surrogates(body: bytes) -> bytes:
    """Return JSON with U+FFFD for each lone surrogate, which the parser rejects."""
    return LONE_SURROGATE.sub(lambda escape: escape[1] or rb"\ufffd", body)


def build_cell_error(
    table: TableSpec, column: Column, path: str, value: Any, row: int
) -> SchemaError:
    """Return the error for a value that its column cannot hold."""
    rounded = isinstance(value, float) and abs(value) > 2**53
    return SchemaError(
        f"{table.table_name} row {row}: {path.removesuffix('[]')} is {shorten(value)}, "
        f"which {column.name} ({column.dtype}) cannot hold"
        + (" exactly: the number was rounded before it was sent" if rounded else ""),
        hint="The API does not document such a value, so it was not converted",
    )


def build_absence_error(table: TableSpec, column: Column, row: int) -> SchemaError:
    """Return the error for a record that has no value for *column*."""
    path = (column.wire_paths or column.context_paths)[0].removesuffix("[]")
    return SchemaError(
        f"{table.table_name} row {row} has no {path}"
        + (", which is a key field" if column.key else ": it is left out, or null"),
        hint="The API documents this field for every record. Try again later, or report it",
    )
