"""The memory of a local explorer: what its requests share, within one limit in bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

CACHE_BYTES = 64_000_000
"""Default size of all cached rows, indices and records."""


class MemoryCache:
    """Values by key; the least recently used are evicted. All caches of an explorer share it."""

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self.max_bytes = max_bytes
        self.size = 0
        """Bytes of all values."""
        self._entries: OrderedDict[Hashable, tuple[int, Any]] = OrderedDict()
        self._lock = threading.Lock()
        self._compute_lock = threading.RLock()

    def find(self, key: Hashable) -> tuple[int, Any] | None:
        """Return size and value of *key*, or None if it is not cached."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key]

    def put(self, key: Hashable, size: int, value: Any) -> None:
        """Cache a *value*, and evict the oldest ones; one that exceeds the limit is not cached."""
        if size > self.max_bytes:
            return
        with self._lock:
            self.size += size - self._entries.pop(key, (0, None))[0]
            self._entries[key] = size, value
            while self.size > self.max_bytes:
                self.size -= self._entries.popitem(last=False)[1][0]

    def get_or_compute(self, key: Hashable, compute: Callable[[], tuple[int, Any]]) -> Any:
        """Return the value of *key*; *compute* returns size and value if it is not cached."""
        if (entry := self.find(key)) is None:
            # Simultaneous requests for the same value wait for the first.
            with self._compute_lock:
                if (entry := self.find(key)) is None:
                    entry = compute()
                    self.put(key, *entry)
        return entry[1]
