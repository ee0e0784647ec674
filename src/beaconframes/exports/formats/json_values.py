"""Values as JSON has them: numbers, text, and lists and objects of these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.errors import UsageError
from beaconframes.text import type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

HEX = "0x"
TEXT = (pl.Decimal, pl.Int128, pl.UInt128, pl.Binary, pl.Categorical, pl.Enum)
"""What JSON has no numbers for, or none that every reader takes; times are text too."""
OF_DAY = "%H:%M:%S%.9f"


def is_nested(kind: pl.DataType) -> bool:
    """Tell whether values of that type hold others."""
    return isinstance(kind, pl.List | pl.Array | pl.Struct)


def wire(kind: pl.DataType) -> pl.DataType:
    """Return the type that values of *kind* have once `plain` made them plain."""
    if isinstance(kind, pl.List | pl.Array):
        return pl.List(wire(inner(kind)))
    if isinstance(kind, pl.Struct):
        return pl.Struct([pl.Field(name, wire(field)) for name, field in fields(kind)])
    if isinstance(kind, pl.Duration):
        return pl.Int64()
    if kind.is_temporal() or isinstance(kind, TEXT):
        return pl.String()
    if kind.is_float():
        return pl.Float64()
    # The reader of JSON lines knows no smaller ones.
    return pl.Int64() if kind in (pl.Int8, pl.Int16, pl.UInt8, pl.UInt16) else kind


def plain(cell: pl.Expr, kind: pl.DataType) -> pl.Expr:
    """Return *cell*, of that type, as something that JSON has.

    Times are ISO 8601, in UTC if they are of a zone, bytes are hex; a duration is a whole number of
    its unit.
    """
    if isinstance(kind, pl.List | pl.Array):
        some = cell.arr.to_list() if isinstance(kind, pl.Array) else cell
        return some.list.eval(plain(pl.element(), inner(kind)))
    if isinstance(kind, pl.Struct):
        return in_struct(cell, kind, plain)
    if isinstance(kind, pl.Datetime):
        utc = cell.dt.convert_time_zone("UTC") if kind.time_zone else cell
        return utc.dt.strftime(iso(kind))
    if isinstance(kind, pl.Time):
        return cell.dt.strftime(OF_DAY)
    if isinstance(kind, pl.Binary):
        return pl.lit(HEX) + cell.bin.encode("hex")
    # Numbers are written as short as they are, and read as what is large enough.
    return cell if wire(kind).is_numeric() and kind.is_numeric() else cell.cast(wire(kind))


def restored(cell: pl.Expr, kind: pl.DataType) -> pl.Expr:
    """Return *cell*, which `plain` made plain, as the *kind* that it was."""
    if isinstance(kind, pl.List | pl.Array):
        some = cell.list.eval(restored(pl.element(), inner(kind)))
        return some.list.to_array(kind.size) if isinstance(kind, pl.Array) else some
    if isinstance(kind, pl.Struct):
        return in_struct(cell, kind, restored)
    if isinstance(kind, pl.Datetime):
        # Of a zone, it is UTC that was written.
        zone = "UTC" if kind.time_zone else None
        read = cell.str.to_datetime(iso(kind, "%.f"), time_unit=kind.time_unit, time_zone=zone)
        return read.dt.convert_time_zone(kind.time_zone) if kind.time_zone else read
    if isinstance(kind, pl.Date):
        return cell.str.to_date("%Y-%m-%d")
    if isinstance(kind, pl.Time):
        return cell.str.to_time("%H:%M:%S%.f")
    if isinstance(kind, pl.Binary):
        return cell.str.strip_prefix(HEX).str.decode("hex")
    return cell.cast(kind)


def iso(kind: pl.Datetime, fraction: str = "") -> str:
    """Return how times of that type are written."""
    fraction = fraction or ("%.9f" if kind.time_unit == "ns" else "%.6f")
    return f"%Y-%m-%dT%H:%M:%S{fraction}{'Z' if kind.time_zone else ''}"


def in_struct(
    cell: pl.Expr, kind: pl.Struct, change: Callable[[pl.Expr, pl.DataType], pl.Expr]
) -> pl.Expr:
    """Apply *change* to every field; a struct that is missing is not one of missing fields."""
    each = [change(cell.struct.field(name), field).alias(name) for name, field in fields(kind)]
    return pl.when(cell.is_not_null()).then(pl.struct(each))


def each(
    rows: pl.DataFrame, schema: pl.Schema, change: Callable[[pl.Expr, pl.DataType], pl.Expr]
) -> pl.DataFrame:
    """Return the columns of *schema*, each with what *change* makes of it and its type there.

    A column that is not there raises ColumnNotFoundError.
    """
    # By its place: in an expression a name such as ``*`` would mean all of them.
    return pl.DataFrame([rows.get_column(name) for name in schema]).select(
        change(pl.nth(place), kind).alias(name) for place, (name, kind) in enumerate(schema.items())
    )


def finite(columns: Iterable[pl.Series]) -> None:
    """Refuse numbers for which JSON has no word."""
    for column in columns:
        for leaf in numbers(pl.nth(0), column.dtype):
            odd = column.to_frame().select(leaf.filter(~leaf.is_finite()).first()).item()
            if odd is not None:
                raise UsageError(
                    f"the column {column.name} holds {odd}, and JSON has no such number",
                    hint="Choose Parquet, or make it null: frame.fill_nan(None)",
                )


def numbers(cell: pl.Expr, kind: pl.DataType) -> Iterator[pl.Expr]:
    """Yield all floating-point numbers that a column is or holds."""
    if isinstance(kind, pl.List | pl.Array):
        yield from numbers(cell.explode(), inner(kind))
    elif isinstance(kind, pl.Struct):
        for name, field in fields(kind):
            yield from numbers(cell.struct.field(name), field)
    elif kind.is_float():
        yield cell


def inner(kind: pl.List | pl.Array) -> pl.DataType:
    """Return the type of what is in a list."""
    found = kind.inner
    return found if isinstance(found, pl.DataType) else found()


def fields(kind: pl.Struct) -> Iterator[tuple[str, pl.DataType]]:
    """Yield the name and the type of every field of a struct."""
    for field in kind.fields:
        found = field.dtype
        yield field.name, found if isinstance(found, pl.DataType) else found()


def kinds(kind: pl.DataType) -> Iterator[pl.DataType]:
    """Yield a type and all types of what is inside of it."""
    yield kind
    if isinstance(kind, pl.List | pl.Array):
        yield from kinds(inner(kind))
    elif isinstance(kind, pl.Struct):
        for _, field in fields(kind):
            yield from kinds(field)


def check(schema: pl.Schema, form: str, lacking: tuple[type[pl.DataType], ...]) -> None:
    """Refuse columns of the types that a format is *lacking*."""
    for name, kind in schema.items():
        if any(isinstance(found, lacking) for found in kinds(kind)):
            raise UsageError(
                f"the column {name} is of type {type_name(kind)}, which {form} cannot hold",
                hint="Cast it to another type, or choose JSON Lines, which can",
            )
