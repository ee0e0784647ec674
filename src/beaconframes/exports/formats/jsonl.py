"""JSON Lines: one object per row. Amounts in wei are text, as JSON has no number for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.exports.formats.json_values import each, finite, plain, restored, wire

if TYPE_CHECKING:
    from pathlib import Path

    from beaconframes.exports.formats.cells import Cells


class JsonLinesFile:
    """A file of JSON objects that is being written, one in each line."""

    def __init__(self, path: Path, _cells: Cells) -> None:
        self._file = path.open("wb")

    def add(self, rows: pl.DataFrame) -> None:
        """Add *rows* after those that were added before."""
        finite(rows)
        each(rows, rows.schema, plain).write_ndjson(self._file)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read(path: Path, schema: pl.Schema) -> pl.DataFrame:
    """Return the rows of a file that `JsonLinesFile` wrote."""
    if path.stat().st_size == 0:
        return pl.DataFrame(schema=schema)
    wired = {name: wire(kind) for name, kind in schema.items()}
    return each(pl.read_ndjson(path, schema=wired), schema, restored)
