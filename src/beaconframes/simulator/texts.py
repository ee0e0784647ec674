"""Hex texts: random ones in bulk, and digests that stand for something."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    import numpy as np

    from beaconframes.simulator.preset import Bools


def hexes(rng: np.random.Generator, count: int, size: int) -> list[str]:
    """Return *count* random texts of *size* bytes each."""
    return cut(rng.bytes(count * size).hex(), 2 * size)


def cut(text: str, width: int) -> list[str]:
    """Cut hex digits into texts of the same *width*."""
    return ["0x" + text[start : start + width] for start in range(0, len(text), width)]


def digest(seed: int, what: str) -> str:
    """Return 32 bytes that stand for something of the chain with this seed."""
    return "0x" + hashlib.blake2b(f"{what} {seed}".encode(), digest_size=32).hexdigest()


def where(condition: Bools, values: list[Any]) -> pl.Series:
    """Return the values where the condition holds, and null elsewhere."""
    return pl.Series([v if c else None for v, c in zip(values, condition.tolist(), strict=True)])
