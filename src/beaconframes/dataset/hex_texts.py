"""Random hex texts, a function of a key and a number."""

from __future__ import annotations

import sys
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORD: Final = 8  # bytes
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_MIXERS: Final = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
_DIGITS: Final = np.frombuffer(bytes(range(256)).hex().encode(), dtype=np.uint16)
"""The two hex digits of each byte."""


def draw_texts(key: str, size: int, numbers: pl.Series) -> pl.Series:
    """Return a text of *size* bytes for each of *numbers*, which are not null."""
    positions = numbers.to_numpy().astype(np.int64).view(np.uint64)
    return _format_hex(_draw_words(key, size // _WORD, positions))


def _draw_words(key: str, count: int, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return *count* random words for each of *numbers*: those of SplitMix64 at a position."""
    start = blake2b(key.encode(), digest_size=_WORD).digest()
    places = np.arange(1, count + 1, dtype=np.uint64)
    positions: NDArray[np.uint64] = numbers[:, None] * np.uint64(count) + places
    words = positions * _STEP + np.uint64(int.from_bytes(start, "little"))
    for shift, factor in _MIXERS:
        words = (words ^ (words >> shift)) * factor
    words ^= words >> np.uint64(31)
    return words


def _format_hex(words: NDArray[np.uint64]) -> pl.Series:
    """Return the bytes of each row of *words* as a hex text."""
    count, size = len(words), words.shape[1] * _WORD
    width = 2 + 2 * size
    digits = np.empty((count, width // 2), np.uint16)
    digits[:, 0] = int.from_bytes(b"0x", sys.byteorder)
    digits[:, 1:] = _DIGITS[words.astype("<u8").view(np.uint8).reshape(count, size)]
    return pl.Series(digits.view(f"S{width}").ravel(), dtype=pl.Binary).cast(pl.String)
