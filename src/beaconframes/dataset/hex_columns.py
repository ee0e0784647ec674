"""Columns of random hex, which a simulated dataset stores as numbers.

Hashes and signatures of a simulated chain are random: compression does not make them smaller. The
files store a number for each text, and the text is drawn from the seed and that number when it is
read. Equal numbers give equal texts, so the root of a block is the parent root of the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping

META: Final = "_hex_columns"
"""The entry of the ledger's metadata: the seed, and label and size of each column by table."""


@dataclass(frozen=True)
class HexColumn:
    """A column of hex texts of *size* bytes, drawn from the *seed*, the *label* and a number.

    Columns with the same label have the same text for the same number. The size is a multiple of 8.
    """

    seed: int
    label: str
    size: int

    def draw(self, numbers: pl.Series) -> pl.Series:
        """Return the texts of *numbers*; null for null."""
        # Only simulated datasets need numpy, whose import takes time.
        from beaconframes.dataset.hex_texts import draw_texts

        texts = draw_texts(f"{self.label} {self.seed}", self.size, numbers.drop_nulls())
        if len(texts) == len(numbers):
            return texts
        positions = numbers.is_not_null().cum_sum() - 1
        return texts.gather(positions.set(numbers.is_null(), None)).rename(numbers.name)


def parse(stated: Mapping[str, Any]) -> dict[str, dict[str, HexColumn]]:
    """Return the *stated* hex columns, by table and name."""
    return {
        table: {name: HexColumn(stated["seed"], *column) for name, column in columns.items()}
        for table, columns in stated["tables"].items()
    }


def decode(rows: pl.LazyFrame, columns: Mapping[str, HexColumn]) -> pl.LazyFrame:
    """Return *rows* with the texts of the hex *columns* instead of their numbers."""
    return rows.with_columns(
        pl.col(name).map_batches(column.draw, return_dtype=pl.String, is_elementwise=True)
        for name, column in columns.items()
    )
