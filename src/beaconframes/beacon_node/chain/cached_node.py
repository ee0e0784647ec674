"""A node whose answers are requested once, and cached, for any number of threads."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from beaconframes.consensus.spec import FAR_FUTURE_EPOCH
from beaconframes.errors import BeaconframesError, ConnectionFailed
from beaconframes.load_context import change_load

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from beaconframes.beacon_node.client.api import BeaconApi
    from beaconframes.beacon_node.execution.api import ExecutionApi
    from beaconframes.consensus.spec import Spec

T = TypeVar("T")

CACHED_EPOCHS = 5
"""Epochs whose blocks, duties and other small objects are cached: neighbors share them."""
CACHED_STATES = 4
"""States that are cached.

A thread needs up to three states; a second thread on the next epoch needs one more. Sizes here
are for two threads; `CachedNode.reserve` adds one epoch per further thread.
"""
CONCURRENT_REQUESTS = 8
"""Requests for the slots of an epoch that are sent at the same time."""


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


class CachedNode:
    """A node up to one head: what it can answer, caches, threads, and the end of its requests."""

    def __init__(
        self,
        api: BeaconApi,
        spec: Spec,
        *,
        head_slot: int,
        has_states: bool,
        oldest: Mapping[str, int] | None = None,
        execution: ExecutionApi | None = None,
    ) -> None:
        """Read from *api* up to *head_slot*.

        With *has_states*, duties are computed from states instead of being requested. *oldest* has
        the first epoch of each ability of the node, by the names of `ABILITIES`; by default, it has
        all of them since genesis. An *execution* node has the fees of the blocks.
        """
        self._oldest = oldest
        self.execution = execution
        self.api, self.spec, self.has_states = api, spec, has_states
        self.head_slot = head_slot
        slots = spec.slots_per_epoch
        self._blocks = RequestCache(CACHED_EPOCHS * slots)
        self._states = RequestCache(CACHED_STATES)
        self._more_epochs = 0
        self.last_epoch: int | None = None
        """The last epoch that is read; its state is needed again after it."""
        self._objects: dict[str, RequestCache] = {}
        self._reading: Counter[int] = Counter()
        """The epochs that threads read now."""
        self._reading_lock = threading.Lock()
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(CONCURRENT_REQUESTS, thread_name_prefix="beacon-node")

    def has_state(self, epoch: int) -> bool:
        """Return whether duties of an epoch are computed from its state."""
        return self.has_states and self._has("ssz", epoch)

    def has_committees(self, epoch: int) -> bool:
        """Return whether the node has the attestation committees of an epoch."""
        return self.has_state(epoch) or self._has("duties", epoch)

    def has_proposers(self, epoch: int) -> bool:
        """Return whether the node has the proposer duties of an epoch."""
        return self.has_state(epoch) or self._has("proposers", epoch)

    def _has(self, ability: str, epoch: int) -> bool:
        return self._oldest is None or epoch >= self._oldest.get(ability, FAR_FUTURE_EPOCH)

    @property
    def head_epoch(self) -> int:
        """Return the epoch of the head."""
        return self.spec.epoch_of(self.head_slot)

    @property
    def last_complete_epoch(self) -> int:
        """Return the last epoch whose slots are all at or before the head."""
        return (self.head_slot + 1) // self.spec.slots_per_epoch - 1

    def close(self) -> None:
        """End the requests that are under way, and return when their threads have ended.

        Later requests fail.
        """
        self._stop.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def cancel(self) -> None:
        """End the requests as `close` does, and close the connections that wait for responses."""
        self.close()
        self.api.close()
        if self.execution is not None:
            self.execution.close()

    def run(self, function: Callable[[], T]) -> T:
        """Return the result of *function*, whose requests end when this reader is closed."""
        with change_load(stop=self._stop):
            return function()

    def check_closed(self) -> None:
        """Raise ConnectionFailed if the reader was closed."""
        if self._stop.is_set():
            raise ConnectionFailed("the load was stopped before this request")

    def forget_from(self, epoch: int) -> None:
        """Drop cached blocks, states and derived values from *epoch* on: they may change."""
        self._blocks.forget_from(self.spec.first_slot_of(epoch))
        for cache in (self._states, *self._objects.values()):
            cache.forget_from(epoch)

    def cached(
        self, kind: str, number: int, compute: Callable[[], T], *, size: int = CACHED_EPOCHS
    ) -> T:
        """Return the object of a *kind* and an epoch or period, computed once.

        Of each kind, the last *size* objects are cached.
        """
        self.check_closed()
        cache = self._objects.setdefault(kind, RequestCache(size))
        cache.more = self._more_epochs
        return cache.get(number, compute)

    def reserve(self, threads: int) -> None:
        """Enlarge the caches for *threads* threads that read consecutive epochs."""
        self._more_epochs = self._states.more = max(threads - 2, 0)
        self._blocks.more = self._more_epochs * self.spec.slots_per_epoch

    def slots_of(self, epoch: int) -> range:
        """Return the slots of an epoch."""
        size = self.spec.slots_per_epoch
        return range(epoch * size, (epoch + 1) * size)

    def request_all(self, request: Callable[[int], T], slots: Sequence[int]) -> dict[int, T]:
        """Return the answers of *request* by slot; several are sent at the same time."""
        futures: list[Future[T]] = [
            self._pool.submit(copy_context().run, self.run, partial(request, slot))
            for slot in slots
        ]
        return {slot: future.result() for slot, future in zip(slots, futures, strict=True)}

    def release(self, kind: str, number: int) -> None:
        """Free the object of a *kind* and an epoch, which following epochs do not need."""
        if kind in self._objects:
            self._objects[kind].remove(number)

    @contextmanager
    def reading(self, epoch: int) -> Iterator[None]:
        """Note that a thread needs the states of an *epoch* and of its neighbors."""
        with self._reading_lock:
            self._reading[epoch] += 1
        try:
            yield
        finally:
            with self._reading_lock:
                self._reading -= Counter([epoch])

    def release_states(self, epoch: int) -> None:
        """Free the state of *epoch* and the one before, unless a thread reads an earlier epoch.

        A state of mainnet has more than 200 MB, so that few of them should be in memory.
        """
        with self._reading_lock:
            if min(self._reading, default=epoch) < epoch:
                return
        for number in (epoch - 1, epoch):
            if number != self.last_epoch:
                self._states.remove(number)
