"""What a table is: its columns, their units and meanings, its key."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.errors import UsageError
from beaconframes.exports.formats.json_values import kinds
from beaconframes.text import type_name
from beaconframes.v1 import ENDPOINTS
from beaconframes.v2 import ENDPOINTS as ENDPOINTS_V2

if TYPE_CHECKING:
    from beaconframes.endpoint import Endpoint

UNITS = {"_gwei": "gwei", "_wei": "wei", "_eth": "ETH"}
TITLE = 60
_STRANGE = (pl.Object, pl.Unknown, pl.BaseExtension)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])", re.IGNORECASE)


@dataclass(frozen=True)
class ColumnDescription:
    """One column, for those who read the dataset."""

    name: str
    type: str
    unit: str
    key: bool
    meaning: str


@dataclass(frozen=True)
class TableDescription:
    """A table, for those who read the dataset; ``route`` is where its rows were asked for."""

    name: str
    grain: str
    schema: pl.Schema
    columns: tuple[ColumnDescription, ...]
    route: str = ""

    @property
    def key(self) -> list[str]:
        """Return the columns that rows are sorted by."""
        return [column.name for column in self.columns if column.key]


def of_endpoint(endpoint: Endpoint, name: str | None = None) -> TableDescription:
    """Return what the rows of *endpoint* are."""
    table = endpoint.table
    columns = tuple(
        ColumnDescription(row["column"], row["type"], row["unit"], row["key"], row["meaning"])
        for row in table.describe().iter_rows(named=True)
    )
    grain = " ".join(inspect.cleandoc(table.__doc__ or "").split())
    return TableDescription(
        name or table_name(endpoint), grain, table.schema(), columns, route=endpoint.route
    )


def table_name(endpoint: Endpoint) -> str:
    """Return what the table of *endpoint* is called where both generations lie side by side."""
    return f"v2_{endpoint.name}" if endpoint in ENDPOINTS_V2 else endpoint.name


def of_rows(schema: pl.Schema, name: str | None = None) -> TableDescription:
    """Return what rows with these columns are: those of a loader, if it has the same columns.

    Of any other columns only that is known which their names and types say.
    """
    check(schema)
    every = (e for e in (*ENDPOINTS, *ENDPOINTS_V2) if not e.table.keeps_every_field)
    same = [e for e in every if e.table.schema() == schema]
    if same:
        exact = next((e for e in same if table_name(e) == name), same[0])
        return of_endpoint(exact, name)
    columns = tuple(undeclared(column, kind) for column, kind in schema.items())
    return TableDescription(name or "rows", "Rows of an analysis.", schema, columns)


def check(schema: pl.Schema) -> None:
    """Refuse columns that no format can hold: without a name, or of Python's own objects."""
    for name, kind in schema.items():
        if not name or "\0" in name:
            raise UsageError(
                f"a column is called {name!r}, which is no name", hint="Rename it, or leave it out"
            )
        strange = next(
            (k for k in kinds(kind) if isinstance(k, _STRANGE) or k == pl.Struct([])), None
        )
        if strange is not None:
            raise UsageError(
                f"the column {name} holds {strange}, which no format can hold",
                hint="Make numbers, text, times or lists of these of it, or leave it out",
            )


def with_fields(table: TableDescription, schema: pl.Schema) -> TableDescription:
    """Return *table* with every column that came, also those that it does not declare."""
    check(schema)
    declared = {column.name: column for column in table.columns}
    columns = tuple(declared.get(name) or undeclared(name, kind) for name, kind in schema.items())
    return replace(table, schema=schema, columns=columns)


def undeclared(name: str, kind: pl.DataType) -> ColumnDescription:
    """Return what a name and a type say of a column."""
    unit = next((unit for end, unit in UNITS.items() if name.endswith(end)), "")
    return ColumnDescription(name, type_name(kind), unit, key=False, meaning="")


def checked_name(name: object, what: str = "table") -> str:
    """Return *name* if a table or dataset may be called so, on every system."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or _RESERVED.fullmatch(name):
        raise UsageError(
            f"{what}={str(name)[:TITLE]!r} is no name",
            hint="Names are up to 64 lower-case letters, digits and underscores, a letter first",
        )
    return name
