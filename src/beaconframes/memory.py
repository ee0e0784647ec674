"""Memory of the process: what the C library retains."""

from __future__ import annotations

import ctypes
from contextlib import suppress

MAX_ARENAS, MMAP_THRESHOLD = -8, -3
"""``M_ARENA_MAX`` of glibc: how many heaps the threads of a process have; ``M_MMAP_THRESHOLD``."""

LARGE_ARRAY = 2**24
"""Bytes: a column of integers of two million validators."""


def trim_heap() -> None:
    """Return freed memory to the system: glibc retains 150 MB of large arrays and responses."""
    with suppress(AttributeError, OSError, TypeError):  # other C libraries do not have it
        ctypes.CDLL(None).malloc_trim(0)


def map_large_arrays() -> None:
    """Return each large array to the system when it is freed.

    glibc does so at first, and then keeps arrays of any size that was freed once, up to 32 MB.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE_ARRAY)


def share_heap() -> None:
    """Let all threads allocate from one heap: glibc gives each its own, with freed memory of it.

    This is for a process of our own. Threads that exist keep their heaps.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(MAX_ARENAS, 1)
