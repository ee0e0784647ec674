"""Memory of the process: what the C library retains."""

from __future__ import annotations

import ctypes
from contextlib import suppress

MAX_ARENAS = -8
"""``M_ARENA_MAX`` of glibc: how many heaps the threads of a process have."""


def trim_heap() -> None:
    """Return freed memory to the system: glibc retains 150 MB of large arrays and responses."""
    with suppress(AttributeError, OSError, TypeError):  # other C libraries do not have it
        ctypes.CDLL(None).malloc_trim(0)


def share_heap() -> None:
    """Let all threads allocate from one heap: glibc gives each its own, with freed memory of it.

    This is for a process of our own. Threads that exist keep their heaps.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(MAX_ARENAS, 1)
