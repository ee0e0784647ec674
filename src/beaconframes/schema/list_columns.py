"""List columns: an object with lists becomes one row per item of the lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.schema.columns import BUILD_ERRORS
from beaconframes.schema.decode_checked import build_absence_error, build_cell_error
from beaconframes.schema.numbers import Position

if TYPE_CHECKING:
    from beaconframes.schema.columns import Column, TableSpec


def explode_lists(table: TableSpec, frame: pl.DataFrame, lists: list[Column]) -> pl.DataFrame:
    """Return one row per item of the *lists*, which have the same length, with its positions."""
    items = pl.col(lists[0].name).list.len()
    names = [column.name for column in table.columns if isinstance(column, Position)]
    frame = frame.with_columns(pl.int_ranges(items).alias(name) for name in names)
    return frame.explode(*(c.name for c in lists), *names, empty_as_null=False)


def build_lists(table: TableSpec, column: Column, values: list[Any], first_row: int) -> pl.Series:
    """Return a series of lists; raise SchemaError for an invalid one, or for a missing one."""
    if not column.may_be_null and None in values:
        raise build_absence_error(table, column, first_row + values.index(None))
    lists = [value or [] for value in values]
    if not can_build(column, [item for value in lists for item in value]):
        row = next(row for row, value in enumerate(lists) if not can_build(column, value))
        raise build_cell_error(table, column, column.first_path, lists[row], first_row + row)
    return pl.Series(column.name, lists, dtype=pl.List(column.dtype))


def can_build(column: Column, values: list[Any]) -> bool:
    """Return whether *column* can hold all *values*, none of them null."""
    try:
        return not column.build(values).null_count()
    except BUILD_ERRORS:
        return False
