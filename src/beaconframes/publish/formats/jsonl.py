"""JSON Lines: one object per row. Amounts in wei are text, as JSON has no number for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.publish.formats.cells import TIME

if TYPE_CHECKING:
    from pathlib import Path

    from beaconframes.publish.formats.cells import Cells


class JsonLinesFile:
    """A file of JSON objects that is being written, one in each line."""

    def __init__(self, path: Path, _cells: Cells) -> None:
        self._file = path.open("wb")

    def add(self, rows: pl.DataFrame) -> None:
        """Add *rows* after those that were added before."""
        rows.with_columns(
            pl.selectors.decimal().cast(pl.String),
            pl.selectors.datetime(time_zone="UTC").dt.strftime(TIME),
        ).write_ndjson(self._file)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read(path: Path, schema: pl.Schema) -> pl.DataFrame:
    """Return the rows of a file that `JsonLinesFile` wrote."""
    as_text = {
        name: pl.String() if isinstance(kind, pl.Decimal | pl.Datetime) else kind
        for name, kind in schema.items()
    }
    if path.stat().st_size == 0:
        return pl.DataFrame(schema=schema)
    return pl.read_ndjson(path, schema=as_text).with_columns(
        pl.col(name).str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_unit="us", time_zone="UTC")
        if isinstance(kind, pl.Datetime)
        else pl.col(name).cast(kind)
        for name, kind in schema.items()
        if as_text[name] != kind
    )
