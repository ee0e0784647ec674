"""JSON Lines: one object per row. Amounts in wei are text, as JSON has no number for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.exports.formats.json_values import (
    check_finite,
    convert_columns,
    from_json,
    json_type,
    to_json,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from beaconframes.exports.formats.cells import CellOptions


def write(path: Path, frames: Iterable[pl.DataFrame], _options: CellOptions) -> None:
    """Write a file of JSON objects, one per line."""
    with path.open("wb") as file:
        for rows in frames:
            check_finite(rows)
            convert_columns(rows, rows.schema, to_json).write_ndjson(file)


def read(path: Path, schema: pl.Schema, _options: CellOptions) -> pl.DataFrame:
    """Return the rows of a file that `write` wrote."""
    if path.stat().st_size == 0:
        return pl.DataFrame(schema=schema)
    types = {name: json_type(dtype) for name, dtype in schema.items()}
    with path.open("rb") as file:  # this reader takes a path with a bracket for a pattern
        return convert_columns(pl.read_ndjson(file, schema=types), schema, from_json)
