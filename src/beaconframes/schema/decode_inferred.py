"""Decode records without a documented shape: every field becomes a column of an inferred type.

A column's type follows from its name and from all of its values together. It does not depend on
how a list of records is split into pages.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.errors import SchemaError
from beaconframes.schema.decode import build_frame
from beaconframes.schema.decode_checked import decode_cell, parse_records
from beaconframes.schema.envelope_context import NO_CONTEXT, build_context_cells
from beaconframes.schema.numbers import MAX_EXACT_FLOAT, Count, Epoch, Flag, Fraction, Number, Wei
from beaconframes.schema.record_layout import build_empty_error
from beaconframes.schema.texts import Hex, Json, Text
from beaconframes.schema.times import UnixTime
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from beaconframes.calendar import Chain
    from beaconframes.schema.columns import Column, TableSpec
    from beaconframes.schema.decode_checked import Cells
    from beaconframes.schema.envelope_context import EnvelopeContext

AMOUNT = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
BYTES = re.compile(r"0[xX]([0-9a-fA-F]{2})*", re.ASCII)
NOT_AN_AMOUNT = re.compile(r"(^|_)(slot|epoch|index|count|timestamp)$")
"""Names of numbers that are not amounts, even if they are written as text."""
MAX_INT64 = 2**63 - 1
NEVER = 2**64 - 1
"""The number of an epoch in the far future, also where the name of the field is not "epoch"."""
CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def decode_inferred(
    table: TableSpec, pages: Iterable[bytes], chain: Chain, contexts: Sequence[EnvelopeContext] = ()
) -> pl.DataFrame:
    """Return the rows of all *pages*: the columns of *table*, then one for every other field."""
    items: list[Any] = []
    heights = []
    for page in pages:
        parsed = parse_records(table, page)
        heights.append(len(parsed))
        items += parsed
    has_objects = any(isinstance(item, dict) for item in items)
    for row, item in enumerate(items):
        is_value = not (has_objects or item is None or isinstance(item, list))
        if not (is_value or isinstance(item, dict)):
            raise SchemaError(f"{table.table_name} row {row} is {shorten(item)}, not an object")
    records = [item if isinstance(item, dict) else {"value": item} for item in items]
    if {} in records:
        raise build_empty_error(table)
    contexts = contexts or [NO_CONTEXT] * len(heights)
    cells: Cells = build_context_cells(table, contexts, heights)
    wire_columns = [column for column in table.columns if column.wire_paths]
    for column in wire_columns:
        cells[column.name] = [
            decode_cell(table, column, record, row) for row, record in enumerate(records)
        ]
    frame = build_frame(table, cells, 0, chain)
    known_paths = {path for column in wire_columns for path in column.wire_paths}
    names = set(frame.columns)
    added_columns = []
    for path, values in collect_fields(records).items():
        if path not in known_paths:
            series = build_inferred_series(table, path, values)
            free = (name for name in (series.name, path, f"answer.{path}") if name not in names)
            series = series.alias(next(free))
            names.add(series.name)
            added_columns.append(series)
    return pl.DataFrame([*frame.get_columns(), *added_columns])


def collect_fields(records: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return every field by its dotted path, a value for each of *records*, in order of names.

    A field that is an object in some records counts only where its value is not empty.
    """
    flat = [dict(find_leaves(record)) for record in records]
    paths = sorted({path for record in flat for path in record})
    objects = {path for path in paths if any(other.startswith(f"{path}.") for other in paths)}
    values_by_path = {path: [record.get(path) for record in flat] for path in paths}
    return {
        path: values
        for path, values in values_by_path.items()
        if path not in objects or any(value not in (None, {}) for value in values)
    }


def find_leaves(record: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of every field in *record* that is not a filled object."""
    for name, value in record.items():
        if isinstance(value, dict) and value:
            yield from find_leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def build_inferred_series(table: TableSpec, path: str, values: list[Any]) -> pl.Series:
    """Return the values at *path* as a series with an inferred name and type."""
    name = CAPITAL.sub("_", path.replace(".", "_")).lower()
    name = name.replace("validator_public_key", "pubkey").replace("public_key", "pubkey")
    column = infer_column(name, [value for value in values if value is not None])
    if isinstance(column, Wei) and not name.endswith("_wei"):
        name += "_wei"
    elif isinstance(column, UnixTime):
        name = re.sub("timestamp$", "time", name)
    column.name = name
    try:
        return column.build([column.parse(value) for value in values])
    except (ValueError, TypeError, OverflowError, pl.exceptions.PolarsError):
        raise SchemaError(
            f"{table.table_name}: {path} has a value that {column.dtype} cannot hold, such as "
            f"{shorten(max(values, key=lambda value: len(str(value))))}",
            hint="The fields of this response are not documented, so no value was changed to fit",
        ) from None


def infer_column(name: str, values: list[Any]) -> Column:
    """Return a column that holds all of *values*, by the conventions of the API."""
    doc = "Not documented."
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return Flag(doc)
    if kinds == {str} and NOT_AN_AMOUNT.search(name) and all(map(AMOUNT.fullmatch, values)):
        kinds, values = {int}, [int(value) for value in values]
    if kinds == {int}:
        if name.endswith("timestamp"):
            return UnixTime(doc)
        large = {value for value in values if abs(value) > MAX_INT64}
        if not name.endswith("_wei") and (name.endswith("epoch") or large == {NEVER}):
            return Epoch(doc)
        return Wei(doc) if large or name.endswith("_wei") else Count(doc)
    if kinds in ({float}, {int, float}):
        if any(value == int(value) and abs(value) >= MAX_EXACT_FLOAT for value in values):
            # An amount. Its parser refuses a float, which has lost digits at this size.
            return Wei(doc)
        return Number(doc) if max(map(abs, values)) > 1 else Fraction(doc)
    if kinds == {str}:
        if all(AMOUNT.fullmatch(value) for value in values):
            return Wei(doc, text=True)
        return Hex(doc) if all(BYTES.fullmatch(value) for value in values) else Text(doc)
    return Json(doc) if kinds else Text(doc)
