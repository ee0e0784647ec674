"""From a frame to wire JSON: what the local explorer sends."""

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
    from beaconframes.schema.column import Column
    from beaconframes.schema.table import Implied, Table

Tree = dict[str, Any]


RECORD = "record"
"""The one column of records that are JSON texts already."""


def spell(
    table: type[Table],
    frame: pl.DataFrame,
    chain: Chain,
    without: Collection[str] = (),
    *,
    public: bool = False,
) -> pl.DataFrame:
    """Return *frame* as records *without* some fields, in the order of its rows.

    With *public* as the public service has them: in its spelling, and what is 0 by default is
    left out.
    """
    left_out = frozenset(without)
    fields = expressions(table, left_out, public=public)  # type: ignore[arg-type]  # hashable
    frame = with_implied(table, frame, chain)
    rows = frame.select(fields.values())
    lists = [name for name in fields if name.endswith("[]")]
    return gather(table, frame, rows, lists) if lists else rows


def write(table: type[Table], records: pl.DataFrame, *, public: bool = False) -> bytes:
    """Return *records* as JSON, one after the other, with commas between them."""
    if records.columns != [RECORD]:
        # A text for each record, and these joined, takes half of what writing a frame does.
        records = records.select(pl.struct(pl.all()).struct.json_encode().alias(RECORD))
    joined: bytes = records[RECORD].str.join(",").cast(pl.Binary).item()
    texts = json_texts(table, public=public)  # type: ignore[arg-type]  # hashable
    return splice(joined, texts) if texts else joined


@cache
def expressions(
    table: type[Table], without: frozenset[str], *, public: bool
) -> Mapping[str, pl.Expr]:
    """Return the expression of each field of a record, or the one that is the whole record."""
    tree: Tree = {}
    spelled = {
        column: path
        for column, path in spellings(table, public=public).items()
        if column.spellings[0] not in without
    }
    for column, path in spelled.items():
        place(tree, path, column.encode())
    for field in table.implied:
        if field.wire not in without:
            place(tree, field.wire, pl.col(field.wire))
    if public and (zeros := {leaf(path): c for c, path in spelled.items() if c.absent == 0}):
        return {RECORD: sparse(tree, zeros).alias(RECORD)}
    return {name: branch(node).alias(name) for name, node in tree.items()}


@cache
def json_texts(table: type[Table], *, public: bool) -> list[list[str]]:
    """Return the path of each column that holds JSON as text, step by step."""
    paths = spellings(table, public=public).items()
    return [path.split(".") for column, path in paths if isinstance(column, Json)]


def spellings(table: type[Table], *, public: bool) -> dict[Column, str]:
    """Return the path of each column that is on the wire."""
    which = table.public_spelling if public else 0
    return {column: column.spellings[which] for column in table.columns if column.spellings}


def sparse(node: Tree, zeros: Mapping[str, Column]) -> pl.Expr:
    """Return the JSON text of an object without those of its fields *zeros* that are 0."""
    parts = []
    for name, field in node.items():
        if not isinstance(field, pl.Expr):
            parts.append(pl.format(f'"{name}":{{}}', sparse(field, zeros)))
        elif name in zeros:
            mark = '"' if getattr(zeros[name], "text", False) else ""
            told = pl.format(f'"{name}":{mark}{{}}{mark}', field)
            parts.append(pl.when(pl.col(zeros[name].name) != 0).then(told))
    if whole := [f.alias(n) for n, f in node.items() if isinstance(f, pl.Expr) and n not in zeros]:
        text = pl.struct(whole).struct.json_encode()
        parts.append(text.str.strip_prefix("{").str.strip_suffix("}"))
    return pl.format("{{{}}}", pl.concat_str(parts, separator=",", ignore_nulls=True))


def splice(joined: bytes, paths: list[list[str]]) -> bytes:
    """Return records with the JSON texts at *paths* written as JSON and no longer as text."""
    records = msgspec.json.decode(b"[%b]" % joined)
    for record in records:
        for *parents, last in paths:
            part = record
            for step in parents:
                part = part.get(step) or {}
            if part.get(last) is not None:
                part[last] = msgspec.Raw(part[last].encode())
    return msgspec.json.encode(records)[1:-1]


def leaf(path: str) -> str:
    """Return the last name of a dotted *path*."""
    return path.rpartition(".")[2]


def place(tree: Tree, path: str, expr: pl.Expr) -> None:
    """Hang *expr* into *tree* at a dotted *path*."""
    *parents, last = path.split(".")
    for step in parents:
        tree = tree.setdefault(step, {})
    tree[last] = expr


def branch(node: Tree | pl.Expr) -> pl.Expr:
    """Return the expression of a field, or of an object, which is null when all in it is."""
    if isinstance(node, pl.Expr):
        return node
    inner = pl.struct(branch(field).alias(name) for name, field in node.items())
    known = pl.any_horizontal(pl.col(name).is_not_null() for name in inner.meta.root_names())
    return pl.when(known).then(inner)


def gather(
    table: type[Table], frame: pl.DataFrame, rows: pl.DataFrame, lists: list[str]
) -> pl.DataFrame:
    """Return one record for each group of rows that was one list on the wire."""
    positions = [column.name for column in table.columns if isinstance(column, Position)]
    rows = rows.with_columns(frame[p] for p in positions).sort(positions, maintain_order=True)
    plain = [name for name in rows.columns if name not in lists and name not in positions]
    return (
        rows.group_by(plain, maintain_order=True)
        .agg(lists)
        .rename({name: name.removesuffix("[]") for name in lists})
    )


def with_implied(table: type[Table], frame: pl.DataFrame, chain: Chain) -> pl.DataFrame:
    """Return *frame* with the fields that follow from the calendar, each worked out once."""
    for of in {field.of for field in table.implied}:
        numbers = frame.select(pl.col(of).unique()).with_columns(
            implied(field, chain).alias(field.wire) for field in table.implied if field.of == of
        )
        frame = frame.join(numbers, on=of, how="left", maintain_order="left")
    return frame


def implied(field: Implied, chain: Chain) -> pl.Expr:
    """Return the expression of a field that follows from the calendar."""
    number = pl.col(field.of) // (chain.epochs_per_week if field.unit == "week" else 1)
    if field.part == "number":
        return number
    when = chain.time_expr(field.unit, number + (1 if field.part == "end" else 0))
    return when.dt.strftime("%Y-%m-%dT%H:%M:%SZ")
