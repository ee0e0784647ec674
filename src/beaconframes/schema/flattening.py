"""Records whose shape nobody has published: every field a column, typed by what it holds.

A column's type follows from all of its values together and from its name, never from the first
page alone: a list of the same records gives the same columns whatever its pages are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.errors import SchemaError
from beaconframes.schema.decode import assemble
from beaconframes.schema.decode_checked import cell, read, short
from beaconframes.schema.envelope_context import NOTHING, around_records
from beaconframes.schema.numbers import EXACT_IN_A_FLOAT, Count, Epoch, Flag, Fraction, Number, Wei
from beaconframes.schema.texts import Hex, Json, Text
from beaconframes.schema.times import UnixTime

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from beaconframes.calendar import Chain
    from beaconframes.schema.column import Column
    from beaconframes.schema.decode_checked import Cells
    from beaconframes.schema.envelope_context import EnvelopeContext
    from beaconframes.schema.table import Table

AMOUNT = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
BYTES = re.compile(r"0[xX]([0-9a-fA-F]{2})*", re.ASCII)
NUMBERED = re.compile(r"(^|_)(slot|epoch|index|count|timestamp)$")
"""Names of what is no amount, also when it is written as text."""
LARGEST = 2**63 - 1
CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def flatten(
    table: type[Table], pages: Iterable[bytes], chain: Chain, around: Sequence[EnvelopeContext] = ()
) -> pl.DataFrame:
    """Return the rows of all *pages*: the columns of *table*, then one for every other field."""
    records: list[dict[str, Any]] = []
    heights = []
    for page in pages:
        found = read(table, page)
        some = found if isinstance(found, list) else [] if found is None else [found]
        heights.append(len(some))
        records += [item if isinstance(item, dict) else {"value": item} for item in some]
    cells: Cells = around_records(table, around or [NOTHING] * len(heights), heights)
    known = [column for column in table.columns if column.spellings]
    for column in known:
        cells[column.name] = [
            cell(table, column, record, row) for row, record in enumerate(records)
        ]
    frame = assemble(table, cells, 0, chain)
    taken = {path for column in known for path in column.spellings}
    names = set(frame.columns)
    more = []
    for path, values in fields(records).items():
        if path not in taken:
            series = column_of(table, path, values)
            free = (name for name in (series.name, path, f"answer.{path}") if name not in names)
            series = series.alias(next(free))
            names.add(series.name)
            more.append(series)
    return pl.DataFrame([*frame.get_columns(), *more])


def fields(records: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return every field by its dotted path, a value for each of *records*, in order of names.

    An object that is empty in one record and not in another adds nothing; one that always is
    stays a field.
    """
    flat = [dict(leaves(record)) for record in records]
    paths = sorted({path for record in flat for path in record})
    inner = {path for path in paths if any(other.startswith(f"{path}.") for other in paths)}
    found = {path: [record.get(path) for record in flat] for path in paths}
    return {
        path: values
        for path, values in found.items()
        if path not in inner or any(value not in (None, {}) for value in values)
    }


def leaves(record: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of everything in *record* that is no object."""
    for name, value in record.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def column_of(table: type[Table], path: str, values: list[Any]) -> pl.Series:
    """Return the values at *path* as a series, named and typed by what they are."""
    name = CAPITAL.sub("_", path.replace(".", "_")).lower()
    name = name.replace("validator_public_key", "pubkey").replace("public_key", "pubkey")
    column = kind(name, [value for value in values if value is not None])
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
            f"{short(max(values, key=lambda value: len(str(value))))}",
            hint="The shape of this answer is not published; nothing was guessed",
        ) from None


def kind(name: str, values: list[Any]) -> Column:
    """Return the column that holds all of *values*, by the building blocks of the API."""
    doc = "Not described by anybody."
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return Flag(doc)
    if kinds == {str} and NUMBERED.search(name) and all(map(AMOUNT.fullmatch, values)):
        kinds, values = {int}, [int(value) for value in values]
    if kinds == {int}:
        if name.endswith("timestamp"):
            return UnixTime(doc)
        if name.endswith("_wei") or max(map(abs, values)) > LARGEST:
            return Wei(doc)
        return Epoch(doc) if name.endswith("epoch") else Count(doc)
    if kinds in ({float}, {int, float}):
        if any(value == int(value) and abs(value) >= EXACT_IN_A_FLOAT for value in values):
            # An amount: whichever of its digits are lost already, it refuses.
            return Wei(doc)
        return Number(doc) if max(map(abs, values)) > 1 else Fraction(doc)
    if kinds == {str}:
        if all(AMOUNT.fullmatch(value) for value in values):
            return Wei(doc, text=True)
        return Hex(doc) if all(BYTES.fullmatch(value) for value in values) else Text(doc)
    return Json(doc) if kinds else Text(doc)
