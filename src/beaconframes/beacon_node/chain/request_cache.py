"""The cache of a chain reader: values by key, each computed once for all threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future
from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar

from beaconframes.errors import BeaconframesError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T")


class RequestCache:
    """Values by key, computed once, also if several threads need one at the same time."""

    def __init__(self, size: int) -> None:
        """Cache the *size* values that were used last."""
        self._size = size
        self.more = 0
        """Values that are cached besides, for more threads."""
        self._values: OrderedDict[Hashable, Future[Any]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the value of *key*; an error is raised in each thread that waits, and not cached.

        Each thread raises an object of its own: callers add their epoch to the message.
        """
        with self._lock:
            future = self._values.get(key)
            is_new = future is None
            if future is None:
                future = self._values[key] = Future()
            self._values.move_to_end(key)
            while len(self._values) > self._size + self.more:
                self._values.popitem(last=False)
        if is_new:
            try:
                future.set_result(compute())
            except BaseException as error:  # noqa: BLE001 - raised below
                self.remove(key)
                future.set_exception(error)
        try:
            value: T = future.result()
        except BeaconframesError as error:
            raise copy(error).with_traceback(error.__traceback__) from error.__cause__
        return value

    def forget_from(self, first: int) -> None:
        """Forget the values whose keys are numbers from *first* on."""
        with self._lock:
            for key in [key for key in self._values if isinstance(key, int) and key >= first]:
                del self._values[key]

    def remove(self, key: Hashable) -> None:
        """Free the value of *key*; it would be computed again."""
        with self._lock:
            self._values.pop(key, None)
