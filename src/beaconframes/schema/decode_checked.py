"""The slow way from JSON to columns: each cell for itself, and an error that names it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from beaconframes.errors import ProtocolError, SchemaError

if TYPE_CHECKING:
    from beaconframes.schema.column import Column
    from beaconframes.schema.table import Table

LONE_SURROGATE = re.compile(
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\[^u]|\\u[^dD]|\\u[dD][0-7])"
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)

Cells = dict[str, list[Any]]
"""The values of each column, by its name."""


def by_cell(table: type[Table], page: bytes, first_row: int) -> tuple[Cells, int]:
    """Return the values of each column of *page*, each parsed for itself, and how many rows."""
    found = read(table, page)
    records = found if isinstance(found, list) else [] if found is None else [found]
    columns = [column for column in table.columns if column.spellings]
    cells: Cells = {column.name: [] for column in columns}
    for row, record in enumerate(records, first_row):
        if not isinstance(record, dict):
            raise SchemaError(f"{table.table_name} row {row} is {short(record)}, not an object")
        for column in columns:
            cells[column.name].append(cell(table, column, record, row))
    return cells, len(records)


def cell(table: type[Table], column: Column, record: dict[str, Any], row: int) -> Any:
    """Return the parsed value of one cell, or name it in a SchemaError."""
    for path in column.spellings:
        value = at(table, column, path, record, row)
        if value is None:
            continue
        try:
            if not path.endswith("[]"):
                return column.parse(value)
            if isinstance(value, list):
                return [column.parse(item) for item in value]
        except (ValueError, TypeError, OverflowError, OSError, msgspec.ValidationError):
            pass
        raise unfit(table, column, path, value, row)
    return None


def at(table: type[Table], column: Column, path: str, record: dict[str, Any], row: int) -> Any:
    """Return what stands at *path* in *record*; None if nothing does."""
    *parents, last = path.removesuffix("[]").split(".")
    part = record
    for step in parents:
        found = part.get(step)
        if found is None and column.absent is None:
            # Fields that stand for 0 where they are left out say nothing without their object.
            return None
        if not isinstance(found, dict):
            raise unfit(table, column, step, found, row)
        part = found
    return part.get(last)


def read(table: type[Table], page: bytes) -> Any:
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
