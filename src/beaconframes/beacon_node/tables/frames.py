"""Frames with the exact schemas of the tables that the loaders return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.schema import TimeOf

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from beaconframes.calendar import Chain
    from beaconframes.schema import Table


def build_frame(table: type[Table], columns: Mapping[str, Any], chain: Chain) -> pl.DataFrame:
    """Return rows of *table*, sorted by its key; omitted columns are null.

    *columns* has values by column name: a list of values as the API writes them (the far future
    becomes null, addresses become lower-case), or an array or a series of the column's own values.
    Omitted times are derived from *chain*.
    """
    if unknown := columns.keys() - table.schema().keys():
        raise KeyError(f"{table.table_name} has no column {min(unknown)}")
    if columns and not any(map(len, columns.values())):
        # Most epochs of small chains have no rows of most tables.
        return table.empty()
    given = [(column, columns[column.name]) for column in table.columns if column.name in columns]
    frame = pl.DataFrame(
        [
            column.build(values)
            if isinstance(values, list)
            else pl.Series(column.name, values).cast(column.dtype)
            for column, values in given
        ]
    )
    times = [
        chain.time_expr(column.by, pl.col(column.of) + column.offset).alias(column.name)
        for column in table.columns
        if isinstance(column, TimeOf) and column.name not in columns
    ]
    frame = frame.with_columns(times)
    rows = frame.select(
        (pl.col(name) if name in frame.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in table.schema().items()
    )
    return table.arrange(rows)


def build_rows(table: type[Table], rows: Sequence[Mapping[str, Any]], chain: Chain) -> pl.DataFrame:
    """Return *rows* of *table* by `build_frame`, from their values by column name.

    What a row does not have is null; what is no column is left out.
    """
    given = set[str]().union(*rows)
    names = [name for name in table.schema() if name in given]
    columns = {name: [row.get(name) for row in rows] for name in names}
    return build_frame(table, columns, chain) if rows else table.empty()
