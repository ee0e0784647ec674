"""List columns: an object with lists becomes one row per item of the lists."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.schema.columns import BUILD_ERRORS
from beaconframes.schema.decode_checked import build_cell_error
from beaconframes.schema.numbers import Position

if TYPE_CHECKING:
    from beaconframes.schema.columns import Column, TableSpec

log = logging.getLogger("beaconframes")


def explode_lists(table: TableSpec, frame: pl.DataFrame, lists: list[Column]) -> pl.DataFrame:
    """Return one row per item of the *lists*, which have the same length, with its positions."""
    items = pl.col(lists[0].name).list.len()
    positions = [c for c in table.columns if isinstance(c, Position)]
    for position in positions:
        warn_list_length(table, lists[0], position, frame.select(items).to_series())
    names = [position.name for position in positions]
    frame = frame.with_columns(pl.int_ranges(items).alias(name) for name in names)
    return frame.explode(*(c.name for c in lists), *names, empty_as_null=False)


def warn_list_length(
    table: TableSpec, column: Column, position: Position, lengths: pl.Series
) -> None:
    """Log each list with another length than the *position* column declares."""
    for length in lengths:
        if position.of not in (None, length):
            log.warning(
                "%s: a list of %s has %d items instead of %d: the %s of each item may be wrong",
                *(table.table_name, column.name, length, position.of, position.name),
            )


def build_lists(table: TableSpec, column: Column, values: list[Any], first_row: int) -> pl.Series:
    """Return a series of lists, null as the empty list; raise SchemaError for an invalid one."""
    lists = [value or [] for value in values]
    if not can_build(column, [item for value in lists for item in value]):
        row = next(row for row, value in enumerate(lists) if not can_build(column, value))
        raise build_cell_error(table, column, column.wire_paths[0], lists[row], first_row + row)
    return pl.Series(column.name, lists, dtype=pl.List(column.dtype))


def can_build(column: Column, values: list[Any]) -> bool:
    """Return whether *column* can hold all *values*, none of them null."""
    try:
        return not column.build(values).null_count()
    except BUILD_ERRORS:
        return False
