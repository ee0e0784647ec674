"""Columns of random hex, which a simulated dataset stores as numbers.

Hashes and signatures of a simulated chain are random: compression does not make them smaller. The
files store a number for each text, and the text is drawn from the seed and that number when it is
read. Equal numbers give equal texts, so the root of a block is the parent root of the next one.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping

META: Final = "_hex_columns"
"""The entry of the ledger's metadata: the seed, and label and size of each column by table."""
_WORD: Final = 8  # bytes
_STEP: Final = 0x9E3779B97F4A7C15
_MIXERS: Final = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


@dataclass(frozen=True)
class HexColumn:
    """A column of hex texts of *size* bytes, drawn from the *seed*, the *label* and a number.

    Columns with the same label have the same text for the same number. The size is a multiple of 8.
    """

    seed: int
    label: str
    size: int

    def draw(self, numbers: pl.Series) -> pl.Series:
        """Return the texts of *numbers*; null for null. The words are those of SplitMix64."""
        # Only simulated datasets need numpy, whose import takes time.
        import numpy as np

        known = numbers.drop_nulls().to_numpy().astype(np.int64).view(np.uint64)
        key = f"{self.label} {self.seed}".encode()
        start = np.uint64(int.from_bytes(blake2b(key, digest_size=_WORD).digest(), "little"))
        count = self.size // _WORD
        places = np.arange(1, count + 1, dtype=np.uint64)
        words = (known[:, None] * np.uint64(count) + places) * np.uint64(_STEP) + start
        for shift, factor in _MIXERS:
            words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
        words ^= words >> np.uint64(31)
        # Two hex digits are one number of 16 bits.
        pairs = np.frombuffer(bytes(range(256)).hex().encode(), dtype=np.uint16)
        digits = np.empty((len(known), 1 + self.size), np.uint16)
        digits[:, 0] = int.from_bytes(b"0x", sys.byteorder)
        digits[:, 1:] = pairs[words.astype("<u8").view(np.uint8).reshape(len(known), self.size)]
        cells = digits.view(f"S{2 + 2 * self.size}").ravel()
        texts = pl.Series(cells, dtype=pl.Binary).cast(pl.String)
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
