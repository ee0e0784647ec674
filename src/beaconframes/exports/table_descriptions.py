"""Descriptions of exported tables: columns, units, meanings, key."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.errors import UsageError
from beaconframes.exports.formats.json_values import iter_types
from beaconframes.text import type_name
from beaconframes.v1 import ENDPOINTS
from beaconframes.v2 import ENDPOINTS as ENDPOINTS_V2

if TYPE_CHECKING:
    from beaconframes.endpoint import Endpoint

UNITS = {"_gwei": "gwei", "_wei": "wei", "_eth": "ETH"}
MAX_SHOWN = 60
_UNSUPPORTED = (pl.Object, pl.Unknown, pl.BaseExtension)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])", re.IGNORECASE)


@dataclass(frozen=True)
class TableDescription:
    """A table as the metadata describes it; ``route`` is the endpoint that the rows are from.

    The manifest has ``columns`` as they are.
    """

    name: str
    title: str
    schema: pl.Schema
    columns: tuple[dict[str, Any], ...]
    route: str = ""

    @property
    def key(self) -> list[str]:
        """Return the columns that rows are sorted by."""
        return [column["name"] for column in self.columns if column["key"]]


def describe_endpoint(endpoint: Endpoint, name: str | None = None) -> TableDescription:
    """Return the description of the table of *endpoint*."""
    table = endpoint.table
    described = table.describe().rename({"column": "name"})
    columns = tuple(described.select("name", "type", "unit", "key", "meaning").to_dicts())
    title = " ".join(inspect.cleandoc(table.__doc__ or "").split())
    return TableDescription(
        name or get_table_name(endpoint), title, table.schema(), columns, route=endpoint.route
    )


def get_table_name(endpoint: Endpoint) -> str:
    """Return the name of the table of *endpoint*; those of V2 have a prefix."""
    return f"v2_{endpoint.name}" if endpoint in ENDPOINTS_V2 else endpoint.name


def describe_rows(schema: pl.Schema, name: str | None = None) -> TableDescription:
    """Return the description of rows with these columns.

    Rows with the columns of a loader have its description. The description of other rows has only
    names and types.
    """
    check_columns(schema)
    declared = (e for e in (*ENDPOINTS, *ENDPOINTS_V2) if not e.table.keeps_every_field)
    matching = [e for e in declared if e.table.schema() == schema]
    if matching:
        exact = next((e for e in matching if get_table_name(e) == name), matching[0])
        return describe_endpoint(exact, name)
    columns = tuple(describe_column(column, dtype) for column, dtype in schema.items())
    return TableDescription(name or "rows", "Rows of an analysis.", schema, columns)


def check_columns(schema: pl.Schema) -> None:
    """Raise a UsageError for columns without a name, or of types that no format supports."""
    for name, dtype in schema.items():
        if not name or "\0" in name:
            raise UsageError(
                f"{name!r} is not a valid column name", hint="Rename it, or leave it out"
            )
        unsupported = next(
            (t for t in iter_types(dtype) if isinstance(t, _UNSUPPORTED) or t == pl.Struct([])),
            None,
        )
        if unsupported is not None:
            raise UsageError(
                f"the column {name} contains {unsupported}, which no format supports",
                hint="Convert it to numbers, text, times or lists of these, or leave it out",
            )


def add_undeclared_columns(table: TableDescription, schema: pl.Schema) -> TableDescription:
    """Return *table* with all columns of *schema*, including those that it does not declare."""
    check_columns(schema)
    declared = {column["name"]: column for column in table.columns}
    columns = tuple(
        declared.get(name) or describe_column(name, dtype) for name, dtype in schema.items()
    )
    return replace(table, schema=schema, columns=columns)


def add_finality(table: TableDescription) -> TableDescription:
    """Return *table* with a column that marks final rows, if it has none."""
    if "finalized" in table.schema:
        return table
    meaning = "Whether the row was final when it was exported; other rows may still change."
    column = describe_column("finalized", pl.Boolean()) | {"meaning": meaning}
    schema = pl.Schema({**table.schema, "finalized": pl.Boolean()})
    return replace(table, schema=schema, columns=(*table.columns, column))


def describe_column(name: str, dtype: pl.DataType) -> dict[str, Any]:
    """Return the description of an undeclared column, from its name and its type."""
    unit = next((unit for ending, unit in UNITS.items() if name.endswith(ending)), "")
    return {"name": name, "type": type_name(dtype), "unit": unit, "key": False, "meaning": ""}


def check_name(name: object, argument: str = "table") -> str:
    """Return *name* if it is a valid name for a table or a dataset on every system."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or _RESERVED.fullmatch(name):
        raise UsageError(
            f"{argument}={str(name)[:MAX_SHOWN]!r} is not a valid name",
            hint="Use up to 64 lower-case letters, digits and underscores, starting with a letter",
        )
    return name
