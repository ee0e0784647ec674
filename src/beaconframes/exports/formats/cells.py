"""Cells as text: escaped formulas, and values that have no type in a text file.

A spreadsheet runs a cell that starts with ``=``, ``+``, ``-`` or ``@`` as a formula, also behind
spaces or quotes. Graffiti and names may contain any text. CSV and Excel files therefore get an
apostrophe before such text, in text columns and in column names. Text that starts with an
apostrophe gets one more, so that removing the first apostrophe always restores the text.
``raw=True`` leaves all text unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.exports.formats.json_values import (
    check_finite,
    convert_columns,
    from_json,
    is_nested,
    json_type,
    to_json,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

APOSTROPHE = "'"
_FORMULA = r"^(['=+\-@\t\r\n\x00\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]|[\s\"']*[=+\-@\t\r\x00])"
TEXT_COLUMNS = (pl.String, pl.Categorical, pl.Enum)


@dataclass(frozen=True)
class CellOptions:
    """The conversion of cells to text: with *raw*, formulas of spreadsheets are not escaped."""

    raw: bool = False
    is_simulated: bool = False
    """Whether the rows are simulated, which formats with a place for it state."""


def escape_formulas(rows: pl.DataFrame, options: CellOptions) -> pl.DataFrame:
    """Return *rows* with an apostrophe before every text that a spreadsheet would run."""
    categories = pl.selectors.categorical() | pl.selectors.enum()
    rows = rows.with_columns(categories.cast(pl.String))
    if options.raw:
        return rows
    # Amounts and indices are not text: their columns have other types and do not change.
    text = pl.selectors.string()
    escaped = pl.when(text.str.contains(_FORMULA)).then(APOSTROPHE + text).otherwise(text)
    return rows.with_columns(escaped.name.keep())


def escape_names(names: Iterable[str], options: CellOptions) -> list[str]:
    """Return column *names* as they are written into a file for spreadsheets."""
    frame = pl.DataFrame({"": [*names]}, {"": pl.String})
    return escape_formulas(frame, options).to_series().to_list()


def to_cells(rows: pl.DataFrame, options: CellOptions) -> pl.DataFrame:
    """Return *rows* escaped, with times as ISO 8601 text, bytes as hex and lists as JSON text."""
    check_finite(column for column in rows if is_nested(column.dtype))
    cells = convert_columns(escape_formulas(rows, options), rows.schema, to_cell)
    cells.columns = escape_names(rows.columns, options)
    return cells


def to_cell(cell: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Return *cell*, already escaped, as a number, a boolean or text."""
    if dtype.is_numeric() or isinstance(dtype, TEXT_COLUMNS):
        return cell
    if not is_nested(dtype):
        return to_json(cell, dtype)
    cell = to_json(cell, dtype)
    # Polars encodes only structs as JSON: the list is wrapped in one, `{"_":...}`, and cut out.
    text = pl.struct(cell.alias("_")).struct.json_encode().str.slice(5).str.head(-1)
    return pl.when(cell.is_not_null()).then(text)


def from_cells(rows: pl.DataFrame, schema: pl.Schema, options: CellOptions) -> pl.DataFrame:
    """Return *rows* of text, as `to_cells` made them, with the types of *schema*."""

    def read(cell: pl.Expr, dtype: pl.DataType) -> pl.Expr:
        if is_nested(dtype):
            return from_json(cell.str.json_decode(json_type(dtype)), dtype)
        if dtype == pl.Boolean:
            return cell == "true"
        if isinstance(dtype, TEXT_COLUMNS):
            return (cell if options.raw else cell.str.strip_prefix(APOSTROPHE)).cast(dtype)
        text = json_type(dtype) == pl.String
        return from_json(cell if text else cell.cast(json_type(dtype)), dtype)

    return convert_columns(rows, schema, read)
