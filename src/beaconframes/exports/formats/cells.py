"""Cells as text: what a spreadsheet would run, and values for which text has no type.

A spreadsheet takes a cell that begins with ``=``, ``+``, ``-`` or ``@`` for a formula and runs it,
also when that stands behind spaces or quotes. Anybody may write graffiti and names, so such text
gets an apostrophe in front, in CSV and Excel files, in columns of text and in names of columns.
Text that begins with an apostrophe gets one as well, so that it can be undone: one apostrophe off,
wherever one leads. ``raw=True`` leaves every text as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.exports.formats.json_values import each, finite, is_nested, plain, restored, wire

if TYPE_CHECKING:
    from collections.abc import Iterable

GUARD = "'"
_DANGEROUS = r"^(['=+\-@\t\r\n\x00\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]|[\s\"']*[=+\-@\t\r\x00])"
WORDS = (pl.String, pl.Categorical, pl.Enum)


@dataclass(frozen=True)
class Cells:
    """How cells become text: with *raw*, formulas of spreadsheets stay what they are."""

    raw: bool = False


def guarded(rows: pl.DataFrame, cells: Cells) -> pl.DataFrame:
    """Return *rows* with an apostrophe before every text that a spreadsheet would run."""
    words = pl.selectors.categorical() | pl.selectors.enum()
    rows = rows.with_columns(words.cast(pl.String))
    if cells.raw:
        return rows
    # An amount or an index is not text: its column has another type and stays as it is.
    text = pl.selectors.string()
    return rows.with_columns(
        pl.when(text.str.contains(_DANGEROUS)).then(GUARD + text).otherwise(text).name.keep()
    )


def unguarded(rows: pl.DataFrame, cells: Cells) -> pl.DataFrame:
    """Return *rows* as they were before `guarded`."""
    if cells.raw:
        return rows
    return rows.with_columns(pl.selectors.string().str.strip_prefix(GUARD))


def headers(names: Iterable[str], cells: Cells) -> list[str]:
    """Return what columns of these *names* are called where a spreadsheet may see it."""
    return guarded(pl.DataFrame({"": [*names]}, {"": pl.String}), cells).to_series().to_list()


def flat(rows: pl.DataFrame, cells: Cells) -> pl.DataFrame:
    """Return *rows*, guarded, with times as ISO 8601 text, bytes as hex and lists as JSON text."""
    finite(column for column in rows if is_nested(column.dtype))
    found = each(guarded(rows, cells), rows.schema, as_cell)
    found.columns = headers(rows.columns, cells)
    return found


def as_cell(cell: pl.Expr, kind: pl.DataType) -> pl.Expr:
    """Return *cell*, which is guarded, as a number, yes or no, or text."""
    if kind.is_numeric() or isinstance(kind, WORDS):
        return cell
    if not is_nested(kind):
        return plain(cell, kind)
    cell = plain(cell, kind)
    # Only structs become text: the list stands in one, after `{"_":`.
    text = pl.struct(cell.alias("_")).struct.json_encode().str.slice(5).str.head(-1)
    return pl.when(cell.is_not_null()).then(text)


def typed(rows: pl.DataFrame, schema: pl.Schema, cells: Cells) -> pl.DataFrame:
    """Return *rows* of nothing but text, as `flat` made them, with the types of *schema*."""

    def read(cell: pl.Expr, kind: pl.DataType) -> pl.Expr:
        if is_nested(kind):
            return restored(cell.str.json_decode(wire(kind)), kind)
        if kind == pl.Boolean:
            return cell == "true"
        if isinstance(kind, WORDS):
            return (cell if cells.raw else cell.str.strip_prefix(GUARD)).cast(kind)
        return restored(cell if wire(kind) == pl.String else cell.cast(wire(kind)), kind)

    return each(rows, schema, read)
