"""Records with a value for every field that each record must have."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl

from beaconframes.schema import DecimalText, Ether, Flag, Fraction, Hex, Indices, Json, Text, Wei


def required_columns(table):
    """Return the columns whose field no record may leave out."""
    return [
        column
        for column in table.columns
        if column.wire_paths and not column.may_be_null and column.default is None
    ]


def neutral(column):
    """Return a valid wire value of *column*, such as 0."""
    if column.wire_paths[0].endswith("[]") or isinstance(column, Indices):
        return []
    if isinstance(column, Json):
        return {}
    if isinstance(column, Hex) and column.size:
        return "0x" + "00" * column.size
    for kind, value in (
        (Flag, False),
        (Fraction, 0.0),
        (Hex, "0x00"),
        (DecimalText, "0"),
        (Ether, "0"),
    ):
        if isinstance(column, kind):
            return value
    return "" if isinstance(column, Text) else 0


def find(record, path):
    """Return the value at *path* in *record*, and whether there is one."""
    part = record
    for step in path.removesuffix("[]").split("."):
        if not isinstance(part, dict) or step not in part:
            return None, False
        part = part[step]
    return part, True


def whole(table, record):
    """Return *record* with neutral values for required fields and amounts that it does not have."""
    full = dict(record)
    for column in table.columns:
        # Amounts are null only in an index of a node without an execution node.
        is_amount = isinstance(column, Wei) and column.nullable
        if not column.wire_paths or (column.may_be_null and not is_amount):
            continue
        if any(find(full, path)[1] for path in column.wire_paths):
            continue
        *parents, last = column.wire_paths[0].removesuffix("[]").split(".")
        part = full
        for step in parents:
            if isinstance(part.setdefault(step, {}), dict):
                part[step] = part = dict(part[step])
            else:
                break
        else:
            if column.default is None:
                part[last] = neutral(column)
    return full


def whole_frame(table, rows):
    """Return the frame of *rows*, with 0 or an empty text in the required cells they leave out."""
    frame = pl.from_dicts(rows, schema=table.schema())
    return frame.with_columns(
        pl.col(c.name).fill_null(pl.lit(zero(c)).cast(c.dtype)) for c in required_columns(table)
    )


def zero(column):
    """Return the neutral cell of *column*."""
    if column.dtype.is_temporal():
        return datetime(2020, 12, 2, tzinfo=UTC)
    return 0 if column.dtype.is_numeric() else neutral(column)
