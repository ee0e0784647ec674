"""Memory of the process: what the C library retains."""

from __future__ import annotations

import ctypes
from contextlib import suppress


def trim_heap() -> None:
    """Return freed memory to the system: glibc retains 150 MB of large arrays and responses."""
    with suppress(AttributeError, OSError, TypeError):  # other C libraries do not have it
        ctypes.CDLL(None).malloc_trim(0)
