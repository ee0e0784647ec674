"""Sizes of the benchmarks: those of the figures, or small ones for a test that runs each once."""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")

SMALL = "BENCHMARK_SMALL"
"""The environment variable that chooses small sizes; processes of a benchmark inherit it."""


def choose(size: T, small: T) -> T:
    """Return *size*, or *small* if `SMALL` is set."""
    return small if os.environ.get(SMALL) else size
