"""Cells as text: what a spreadsheet would run, and values for which text has no type.

A spreadsheet takes a cell that begins with ``=``, ``+``, ``-`` or ``@`` for a formula and runs it,
also when that stands behind spaces or quotes. Anybody may write graffiti and names, so such text
gets an apostrophe in front, in CSV and Excel files, in columns of text alone. Text that begins with
an apostrophe gets one as well, so that it can be undone: one apostrophe off, wherever one leads.
``raw=True`` leaves every text as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

GUARD = "'"
_DANGEROUS = r"^(['=+\-@\t\r\n\x00\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]|[\s\"']*[=+\-@\t\r\x00])"
TIME = "%Y-%m-%dT%H:%M:%S%.6fZ"


@dataclass(frozen=True)
class Cells:
    """How cells become text: with *raw*, formulas of spreadsheets stay what they are."""

    raw: bool = False


def guarded(rows: pl.DataFrame, cells: Cells) -> pl.DataFrame:
    """Return *rows* with an apostrophe before every text that a spreadsheet would run."""
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


def flat(rows: pl.DataFrame) -> pl.DataFrame:
    """Return *rows* with lists as JSON text, and times as ISO 8601 text in UTC."""
    return rows.with_columns(
        *(
            (
                pl.when(pl.col(name).is_null())
                .then(None)
                .otherwise(
                    "[" + pl.col(name).list.eval(pl.element().cast(pl.String)).list.join(",") + "]"
                )
                .alias(name)
            )
            for name, kind in rows.schema.items()
            if isinstance(kind, pl.List)
        ),
        pl.selectors.datetime(time_zone="UTC").dt.strftime(TIME),
    )


def typed(rows: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    """Return *rows* of nothing but text with the types of *schema*."""
    cells = []
    for name, kind in schema.items():
        cell = pl.col(name)
        if isinstance(kind, pl.List):
            inner = cell.str.strip_chars("[]").str.split(",")
            cell = pl.when(cell == "[]").then(pl.lit([], dtype=pl.List(pl.String))).otherwise(inner)
            cells.append(cell.cast(kind))
        elif isinstance(kind, pl.Datetime):
            read = cell.str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_unit="us", time_zone="UTC")
            cells.append(read)
        elif kind == pl.Boolean:
            cells.append(cell == "true")
        elif kind == pl.String:
            cells.append(cell)
        else:
            cells.append(cell.cast(kind))
    return rows.select(cell.alias(name) for name, cell in zip(schema, cells, strict=True))
