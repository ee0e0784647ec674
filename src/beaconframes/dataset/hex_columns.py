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

import numpy as np
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

META: Final = "_hex_columns"
"""The entry of the ledger's metadata: the seed, and label and size of each column by table."""

_WORD: Final = 8  # bytes
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_MIXERS: Final = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
_DIGITS: Final = np.frombuffer(bytes(range(256)).hex().encode(), dtype=np.uint16)
"""The two hex digits of each byte."""


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
        present = numbers.drop_nulls().to_numpy().astype(np.int64).view(np.uint64)
        texts = pl.Series(numbers.name, _format_hex(self._draw_words(present)), pl.String)
        if len(texts) == len(numbers):
            return texts
        positions = numbers.is_not_null().cum_sum() - 1
        return texts.gather(positions.set(numbers.is_null(), None)).rename(numbers.name)

    def _draw_words(self, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return random words, a row for each of *numbers*: those of SplitMix64 at a position."""
        key = blake2b(f"{self.label} {self.seed}".encode(), digest_size=_WORD).digest()
        count = self.size // _WORD
        places = np.arange(1, count + 1, dtype=np.uint64)
        positions: NDArray[np.uint64] = numbers[:, None] * np.uint64(count) + places
        words = positions * _STEP + np.uint64(int.from_bytes(key, "little"))
        for shift, factor in _MIXERS:
            words = (words ^ (words >> shift)) * factor
        words ^= words >> np.uint64(31)
        return words


def parse(stated: Mapping[str, Any]) -> dict[str, dict[str, HexColumn]]:
    """Return the *stated* hex columns, by table and name."""
    return {
        table: {name: HexColumn(stated["seed"], *column) for name, column in columns.items()}
        for table, columns in stated["tables"].items()
    }


def decode(rows: pl.LazyFrame, columns: Mapping[str, HexColumn]) -> pl.LazyFrame:
    """Return *rows* with the texts of the hex *columns* instead of their numbers."""
    if not columns:
        return rows
    return rows.with_columns(
        pl.col(name).map_batches(column.draw, return_dtype=pl.String, is_elementwise=True)
        for name, column in columns.items()
    )


def _format_hex(words: NDArray[np.uint64]) -> pa.LargeStringArray:
    """Return the bytes of each row of *words* as a hex text."""
    count, size = len(words), words.shape[1] * _WORD
    width = 2 + 2 * size
    digits = np.empty((count, width // 2), np.uint16)
    digits[:, 0] = int.from_bytes(b"0x", sys.byteorder)
    digits[:, 1:] = _DIGITS[words.astype("<u8").view(np.uint8).reshape(count, size)]
    offsets = np.arange(count + 1, dtype=np.int64) * width
    return pa.LargeStringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(digits))
