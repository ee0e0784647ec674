"""Conversion of values to JSON values (numbers, text, lists, objects), and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.errors import UsageError
from beaconframes.text import type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

HEX_PREFIX = "0x"
TEXT_TYPES = (pl.Decimal, pl.Int128, pl.UInt128, pl.Binary, pl.Categorical, pl.Enum)
"""Types without a JSON number that every reader accepts. Times are text too."""
TIME_FORMAT = "%H:%M:%S%.9f"


def is_nested(dtype: pl.DataType) -> bool:
    """Return whether values of a type contain other values."""
    return isinstance(dtype, pl.List | pl.Array | pl.Struct)


def json_type(dtype: pl.DataType) -> pl.DataType:
    """Return the type of the values to which `to_json` converts values of *dtype*."""
    if isinstance(dtype, pl.List | pl.Array):
        return pl.List(json_type(element_type(dtype)))
    if isinstance(dtype, pl.Struct):
        return pl.Struct([pl.Field(name, json_type(field)) for name, field in iter_fields(dtype)])
    if isinstance(dtype, pl.Duration):
        return pl.Int64()
    if dtype.is_temporal() or isinstance(dtype, TEXT_TYPES):
        return pl.String()
    if dtype.is_float():
        return pl.Float64()
    # The JSON Lines reader of polars has no smaller integers.
    return pl.Int64() if dtype in (pl.Int8, pl.Int16, pl.UInt8, pl.UInt16) else dtype


def to_json(cell: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Return *cell*, of type *dtype*, as a JSON value.

    Times become ISO 8601 text, in UTC if they have a time zone. Bytes become hex. A duration
    becomes a whole number of its unit.
    """
    if isinstance(dtype, pl.List | pl.Array):
        values = cell.arr.to_list() if isinstance(dtype, pl.Array) else cell
        return values.list.eval(to_json(pl.element(), element_type(dtype)))
    if isinstance(dtype, pl.Struct):
        return convert_struct(cell, dtype, to_json)
    if isinstance(dtype, pl.Datetime):
        utc = cell.dt.convert_time_zone("UTC") if dtype.time_zone else cell
        return utc.dt.strftime(get_datetime_format(dtype))
    if isinstance(dtype, pl.Time):
        return cell.dt.strftime(TIME_FORMAT)
    if isinstance(dtype, pl.Binary):
        return pl.lit(HEX_PREFIX) + cell.bin.encode("hex")
    # A number keeps its own type here, for the shortest text; only readers use a larger type.
    return (
        cell
        if json_type(dtype).is_numeric() and dtype.is_numeric()
        else cell.cast(json_type(dtype))
    )


def from_json(cell: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Return *cell*, the result of `to_json`, with its original type *dtype*."""
    if isinstance(dtype, pl.List | pl.Array):
        values = cell.list.eval(from_json(pl.element(), element_type(dtype)))
        return values.list.to_array(dtype.size) if isinstance(dtype, pl.Array) else values
    if isinstance(dtype, pl.Struct):
        return convert_struct(cell, dtype, from_json)
    if isinstance(dtype, pl.Datetime):
        # A time with a time zone was written in UTC.
        zone = "UTC" if dtype.time_zone else None
        form = get_datetime_format(dtype, "%.f")
        time = cell.str.to_datetime(form, time_unit=dtype.time_unit, time_zone=zone)
        return time.dt.convert_time_zone(dtype.time_zone) if dtype.time_zone else time
    if isinstance(dtype, pl.Date):
        return cell.str.to_date("%Y-%m-%d")
    if isinstance(dtype, pl.Time):
        return cell.str.to_time("%H:%M:%S%.f")
    if isinstance(dtype, pl.Binary):
        return cell.str.strip_prefix(HEX_PREFIX).str.decode("hex")
    return cell.cast(dtype)


def get_datetime_format(dtype: pl.Datetime, fraction: str = "") -> str:
    """Return the text format for times of the type *dtype*."""
    fraction = fraction or ("%.9f" if dtype.time_unit == "ns" else "%.6f")
    return f"%Y-%m-%dT%H:%M:%S{fraction}{'Z' if dtype.time_zone else ''}"


def convert_struct(
    cell: pl.Expr, dtype: pl.Struct, convert: Callable[[pl.Expr, pl.DataType], pl.Expr]
) -> pl.Expr:
    """Convert every field of a struct; a null struct stays null."""
    values = [
        convert(cell.struct.field(name), field).alias(name) for name, field in iter_fields(dtype)
    ]
    return pl.when(cell.is_not_null()).then(pl.struct(values))


def convert_columns(
    rows: pl.DataFrame, schema: pl.Schema, convert: Callable[[pl.Expr, pl.DataType], pl.Expr]
) -> pl.DataFrame:
    """Return the columns of *schema*, each after *convert* with its type in *schema*.

    Raises ColumnNotFoundError if *rows* has no such column.
    """
    # Columns are addressed by position: in an expression, a name such as ``*`` means all of them.
    return pl.DataFrame([rows.get_column(name) for name in schema]).select(
        convert(pl.nth(position), dtype).alias(name)
        for position, (name, dtype) in enumerate(schema.items())
    )


def check_finite(columns: Iterable[pl.Series]) -> None:
    """Raise a UsageError if a column contains NaN or an infinity, which JSON does not have."""
    for column in columns:
        for numbers in iter_floats(pl.nth(0), column.dtype):
            invalid = column.to_frame().select(numbers.filter(~numbers.is_finite()).first()).item()
            if invalid is not None:
                raise UsageError(
                    f"the column {column.name} contains {invalid}, which JSON cannot represent",
                    hint="Choose Parquet, or replace it by null: frame.fill_nan(None)",
                )


def iter_floats(cell: pl.Expr, dtype: pl.DataType) -> Iterator[pl.Expr]:
    """Yield an expression for each floating-point part of a column."""
    if isinstance(dtype, pl.List | pl.Array):
        yield from iter_floats(cell.explode(), element_type(dtype))
    elif isinstance(dtype, pl.Struct):
        for name, field in iter_fields(dtype):
            yield from iter_floats(cell.struct.field(name), field)
    elif dtype.is_float():
        yield cell


def element_type(dtype: pl.List | pl.Array) -> pl.DataType:
    """Return the type of the elements of a list."""
    inner = dtype.inner
    return inner if isinstance(inner, pl.DataType) else inner()


def iter_fields(dtype: pl.Struct) -> Iterator[tuple[str, pl.DataType]]:
    """Yield the name and the type of every field of a struct."""
    for field in dtype.fields:
        inner = field.dtype
        yield field.name, inner if isinstance(inner, pl.DataType) else inner()


def iter_types(dtype: pl.DataType) -> Iterator[pl.DataType]:
    """Yield a type and all types nested in it."""
    yield dtype
    if isinstance(dtype, pl.List | pl.Array):
        yield from iter_types(element_type(dtype))
    elif isinstance(dtype, pl.Struct):
        for _, field in iter_fields(dtype):
            yield from iter_types(field)


def check_types(schema: pl.Schema, form: str, unsupported: tuple[type[pl.DataType], ...]) -> None:
    """Raise a UsageError if a column has a type that the format called *form* does not support."""
    for name, dtype in schema.items():
        if any(isinstance(inner, unsupported) for inner in iter_types(dtype)):
            raise UsageError(
                f"the column {name} has the type {type_name(dtype)}, which {form} does not support",
                hint="Cast it to another type, or choose JSON Lines, which supports it",
            )
