"""Hex text, and hashes of the seed."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from beaconframes.consensus.registry import Bools


def split_hex(text: str, width: int) -> list[str]:
    """Split hex digits into texts of *width* digits each."""
    return ["0x" + text[start : start + width] for start in range(0, len(text), width)]


def hash_text(seed: int, label: str, size: int = 32) -> str:
    """Return up to 64 bytes of hex that depend on *label* and the seed only."""
    return "0x" + hashlib.blake2b(f"{label} {seed}".encode(), digest_size=size).hexdigest()


def null_unless(condition: Bools, values: Any) -> pl.Series:
    """Return *values*, or one value for all rows, null where the condition is false."""
    cells = pl.lit(values) if isinstance(values, int | str) else pl.Series(values)
    return pl.select(pl.when(pl.Series(condition)).then(cells)).to_series()


def hash_bytes(seed: int, label: str, size: int) -> str:
    """Return *size* bytes of hex that depend on *label* and the seed only."""
    longest = hashlib.blake2b.MAX_DIGEST_SIZE
    text = "".join(
        hashlib.blake2b(
            f"{label} {seed} {start}".encode(), digest_size=min(longest, size - start)
        ).hexdigest()
        for start in range(0, size, longest)
    )
    return "0x" + text


def hash_number(seed: int, label: str, below: int) -> int:
    """Return a number from 0 to *below* that depends on *label* and the seed only."""
    return int(hash_bytes(seed, label, 16), 16) % below
