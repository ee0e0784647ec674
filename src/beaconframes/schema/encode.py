"""Encode a frame as wire JSON, which the local explorer sends."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from beaconframes.schema.numbers import Position
from beaconframes.schema.texts import Json

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from beaconframes.calendar import Chain
    from beaconframes.schema.columns import CalendarField, Column, TableSpec

Tree = dict[str, Any]


def encode_records(
    table: TableSpec,
    frame: pl.DataFrame,
    chain: Chain,
    without: Collection[str] = (),
    *,
    public: bool = False,
) -> list[bytes]:
    """Return *frame* as the JSON texts of its records, *without* some fields.

    With *public* as the public service sends them: in its spelling, and without the fields whose
    value is the default 0.
    """
    frame = add_calendar_fields(table, group_lists(table, frame), chain)
    # One query for all of it: each further query takes longer than the work on a few rows.
    tree = build_tree(table, frozenset(without), public=public)
    filled = frozenset(name for name, node in tree.items() if has_values(frame, node))
    records = write_json(frame, build_record(table, frozenset(without), filled, public=public))
    paths = find_json_paths(table, public=public)
    return [insert_json(record, paths) for record in records] if paths else records


def write_json(frame: pl.DataFrame, record: pl.Expr) -> list[bytes]:
    """Return the JSON text *record* of each row of *frame*."""
    return frame.select(record.cast(pl.Binary)).to_series().to_list()


@cache
def build_record(
    table: TableSpec, without: frozenset[str], filled: frozenset[str], *, public: bool
) -> pl.Expr:
    """Return the expression of a record's JSON text; the objects *filled* are never null."""
    tree = build_tree(table, without, public=public)
    paths = choose_paths(table, public=public)
    if public and (zeros := {last_name(path): c for c, path in paths.items() if c.default == 0}):
        return build_sparse_json(tree, zeros)
    fields = (
        build_object(node, is_filled=name in {*table.filled_objects, *filled}).alias(name)
        for name, node in tree.items()
    )
    return pl.struct(fields).struct.json_encode()


@cache
def build_tree(table: TableSpec, without: frozenset[str], *, public: bool) -> Tree:
    """Return the expression of each field of a record; an object is a tree itself."""
    tree: Tree = {}
    paths = {
        column: path.removesuffix("[]")
        for column, path in choose_paths(table, public=public).items()
        if column.wire_paths[0] not in without
    }
    # The lists of a record are its last fields.
    for column in sorted(paths, key=table.list_columns.__contains__):
        insert_expression(tree, paths[column], column.encode())
    for field in table.calendar_fields:
        if field.wire not in without:
            insert_expression(tree, field.wire, pl.col(field.wire))
    return tree


def has_values(frame: pl.DataFrame, node: Tree | pl.Expr) -> bool:
    """Return whether an object has a field that is null in no row of *frame*."""
    if isinstance(node, pl.Expr):
        return False
    fields = (field for field in node.values() if isinstance(field, pl.Expr))
    columns = (name for field in fields for name in field.meta.root_names())
    return any(not frame[name].null_count() for name in columns)


@cache
def find_json_paths(table: TableSpec, *, public: bool) -> list[list[str]]:
    """Return the path of each column that holds JSON as text, split at its dots."""
    paths = choose_paths(table, public=public).items()
    return [path.split(".") for column, path in paths if isinstance(column, Json)]


def choose_paths(table: TableSpec, *, public: bool) -> dict[Column, str]:
    """Return the path of each column that is on the wire."""
    which = table.public_spelling if public else 0
    return {column: column.wire_paths[which] for column in table.columns if column.wire_paths}


def build_sparse_json(node: Tree, zeros: Mapping[str, Column]) -> pl.Expr:
    """Return the JSON text of an object; fields in *zeros* are left out if they are 0."""
    parts = []
    for name, field in node.items():
        if not isinstance(field, pl.Expr):
            parts.append(pl.format(f'"{name}":{{}}', build_sparse_json(field, zeros)))
        elif name in zeros:
            mark = '"' if getattr(zeros[name], "text", False) else ""
            text = pl.format(f'"{name}":{mark}{{}}{mark}', field)
            parts.append(pl.when(pl.col(zeros[name].name) != 0).then(text))
    if whole := [f.alias(n) for n, f in node.items() if isinstance(f, pl.Expr) and n not in zeros]:
        text = pl.struct(whole).struct.json_encode()
        parts.append(text.str.strip_prefix("{").str.strip_suffix("}"))
    return pl.format("{{{}}}", pl.concat_str(parts, separator=",", ignore_nulls=True))


def insert_json(text: bytes, paths: list[list[str]]) -> bytes:
    """Return a record with the JSON texts at *paths* inserted as JSON instead of as strings."""
    record = msgspec.json.decode(text)
    for *parents, last in paths:
        part = record
        for step in parents:
            part = part.get(step) or {}
        if part.get(last) is not None:
            part[last] = msgspec.Raw(part[last].encode())
    return msgspec.json.encode(record)


def last_name(path: str) -> str:
    """Return the last name of a dotted *path*."""
    return path.rpartition(".")[2]


def insert_expression(tree: Tree, path: str, expr: pl.Expr) -> None:
    """Insert *expr* into *tree* at a dotted *path*."""
    *parents, last = path.split(".")
    for step in parents:
        tree = tree.setdefault(step, {})
    tree[last] = expr


def build_object(node: Tree | pl.Expr, *, is_filled: bool = False) -> pl.Expr:
    """Return the expression of a field, or of an object.

    An object without any value is null, unless it *is_filled*.
    """
    if isinstance(node, pl.Expr):
        return node
    inner = pl.struct(build_object(field).alias(name) for name, field in node.items())
    if is_filled:
        return inner
    has_value = pl.any_horizontal(pl.col(name).is_not_null() for name in inner.meta.root_names())
    return pl.when(has_value).then(inner)


def group_lists(table: TableSpec, frame: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each group of rows that is one record with lists on the wire."""
    if not table.list_columns:
        return frame
    positions = [column.name for column in table.columns if isinstance(column, Position)]
    plain = [c.name for c in table.columns if c.wire_paths and c not in table.list_columns]
    return (
        frame.sort(positions, maintain_order=True)
        .group_by([name for name in plain if name not in positions], maintain_order=True)
        .agg(column.name for column in table.list_columns)
    )


def add_calendar_fields(table: TableSpec, frame: pl.DataFrame, chain: Chain) -> pl.DataFrame:
    """Return *frame* with the calendar fields, unless it has them.

    They are computed once for each distinct number.
    """
    missing = [field for field in table.calendar_fields if field.wire not in frame.columns]
    for of in {field.of for field in missing}:
        fields = [
            build_calendar_field(field, chain).alias(field.wire)
            for field in missing
            if field.of == of
        ]
        numbers = frame.select(pl.col(of).unique())
        if numbers.height == frame.height:
            frame = frame.with_columns(fields)
        else:
            numbers = numbers.with_columns(fields)
            frame = frame.join(numbers, on=of, how="left", maintain_order="left")
    return frame


def compact(table: TableSpec, frame: pl.DataFrame, chain: Chain) -> pl.DataFrame:
    """Return what `encode_records` needs of *frame*: fewer columns in smaller types.

    The calendar fields are among them, so each answer does without computing them.
    """
    frame = add_calendar_fields(table, frame, chain)
    fields = [field.wire for field in table.calendar_fields]
    columns = [c for c in table.columns if c.wire_paths or isinstance(c, Position)]
    # The text of an integer does not depend on its type, that of another value may.
    plain = {*fields, *(c.name for c in columns if c.encode().meta.is_column())}
    frame = frame[[*(c.name for c in columns), *fields]]
    integers = [s for s in frame.get_columns() if s.name in plain and s.dtype.is_integer()]
    texts = [s for s in frame.get_columns() if s.name in fields and s.dtype == pl.String]
    return frame.with_columns(
        *(series.shrink_dtype() for series in integers),
        *(series.cast(pl.Enum(series.unique().drop_nulls())) for series in texts),
    )


def build_calendar_field(field: CalendarField, chain: Chain) -> pl.Expr:
    """Return the expression of a field that follows from the calendar."""
    number = pl.col(field.of) // (chain.epochs_per_week if field.unit == "week" else 1)
    if field.part == "number":
        return number
    when = chain.time_expr(field.unit, number + (1 if field.part == "end" else 0))
    return when.dt.strftime("%Y-%m-%dT%H:%M:%SZ")
