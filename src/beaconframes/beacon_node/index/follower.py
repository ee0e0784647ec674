"""`follow`: an index that grows with its chain."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.beacon_node.index.arguments import (
    find_epochs,
    open_connection,
    resolve_validators,
)
from beaconframes.beacon_node.index.head_events import HeadEvents
from beaconframes.beacon_node.index.indexing import Indexer
from beaconframes.beacon_node.index.verdicts import COVERAGE
from beaconframes.errors import BadRequest, IntegrityError, NotFound, ResponseError, ServiceError
from beaconframes.time_range import resolve_bound

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable

    from beaconframes.beacon_node.connection import ChainStatus, NodeConnection
    from beaconframes.beacon_node.index.indexing import IndexProgress
    from beaconframes.beacon_node.index.task_runner import Executor
    from beaconframes.beacon_node.node import Node
    from beaconframes.calendar import Chain
    from beaconframes.time_range import Moment

log = logging.getLogger("beaconframes.index")

PAUSE = 9
"""The tables that follow from others may take a tenth of the time."""
MAX_INVALID = 10
"""Invalid or missing responses in a row: a damaged one, or a restart of the node, causes few."""
PRUNED_HINT = "To leave out what the node has pruned, follow from the last final epoch: since=-1"
STOP_INTERVAL = 1.0
"""Seconds: how often a waiting call checks whether it should stop."""


def follow(
    node: str | Node | NodeConnection,
    folder: str | os.PathLike[str],
    *,
    execution: str | None = None,
    validators: int | str | Iterable[int | str] | None = None,
    since: Moment | None = None,
    tables: Collection[str] | None = None,
    executor: Executor | None = None,
    on_epoch: Callable[[IndexProgress], None] | None = None,
    stop: threading.Event | None = None,
) -> pl.DataFrame:
    """Write the chain of a node into a dataset, and add each epoch as it becomes final.

    ::

        bf.follow("http://localhost:5052", "mychain", validators=[1, 2, 3], since="30d")

    First it does what `index` does. Then it waits for new final epochs, until Ctrl-C or until
    *stop* is set. Epochs that may still be reorganized are never stored. Blocks that are orphaned
    in the meantime are stored too, with the status ``orphaned``; a node does not have those of
    earlier times. Failed requests are repeated. The call ends after ten invalid responses in a
    row, or if the node says ten times in a row that it does not have an epoch.
    Another process can serve the dataset at the same time: `local` and ``beaconframes serve`` show
    each new epoch. In a large dataset they show it later, because tables that follow from others
    take long to write.

    Parameters
    ----------
    node, folder, execution, validators, tables, executor, on_epoch
        As in `index`.
    since
        First epoch; see `index`. ``since=-1`` starts with the last final epoch. If the first epoch
        is not final yet, the call waits for it.
    stop
        Ends the call after the epoch in progress, once it is set.

    Returns
    -------
    polars.DataFrame
        One row per indexed epoch; see `index`.
    """
    with ExitStack() as stack:
        connection = open_connection(node, execution, stack)
        # No traceback of a later error holds their credentials.
        del node, execution
        chosen = resolve_validators(connection, validators)
        follower = Follower(
            connection,
            lambda status: Indexer(connection, status, Path(folder), chosen, tables),
            since=since,
            executor=executor,
            on_epoch=on_epoch,
            stop=threading.Event() if stop is None else stop,
        )
        stack.callback(follower.close)
        return follower.run()


class Follower:
    """Extends an index by each epoch as it becomes final."""

    def __init__(
        self,
        connection: NodeConnection,
        open_indexer: Callable[[ChainStatus], Indexer],
        *,
        since: Moment | None,
        executor: Executor | None,
        on_epoch: Callable[[IndexProgress], None] | None,
        stop: threading.Event,
    ) -> None:
        self.connection, self.since = connection, since
        self._open_indexer = open_indexer
        self._indexer: Indexer | None = None
        self._executor, self._on_epoch, self._stop = executor, on_epoch, stop
        self._news = threading.Event()
        """Set when the node reports a new finalized checkpoint."""
        self._next_epoch: int | None = None
        """The first epoch that is not stored; None if no epoch was requested yet."""
        self._coverage: Callable[[], pl.DataFrame] | None = None
        self._is_head_behind = False
        """Whether epochs are stored that readers do not see yet."""
        self._head_due = 0.0
        self._invalid_count = 0
        """Invalid and missing responses since the last success."""
        self._events = HeadEvents(connection.api, on_finalized=self._news.set)

    def run(self) -> pl.DataFrame:
        """Add epochs until Ctrl-C or until the call is stopped; return the coverage."""
        with self._events:
            try:
                while not self._stop.is_set():
                    is_added = self.add_epochs()
                    self._note_orphans()
                    self.wait(is_added=is_added)
                if self._is_head_behind and self._indexer is not None:
                    self._write_head(self._indexer)
            except KeyboardInterrupt:
                log.info("following ends: interrupted")
        return pl.DataFrame(schema=COVERAGE) if self._coverage is None else self._coverage()

    def close(self) -> None:
        """End the threads that read blocks."""
        if self._indexer is not None:
            self._indexer.reader.close()
            self._indexer = None

    def add_epochs(self) -> bool:
        """Add the epochs that have become final; return False if a request failed."""
        self._news.clear()
        try:
            status = self.connection.read_status()
            if status.settled_epoch >= (self._next_epoch or 0):
                self._write(status)
            if self._is_head_behind and time.monotonic() >= self._head_due:
                self._write_head(self._open(status))
        except (ServiceError, ResponseError) as error:
            # The reader has cancelled its requests.
            self.close()
            is_missing = isinstance(error, NotFound | BadRequest)
            if isinstance(error, ServiceError) and not (error.retryable or is_missing):
                raise
            # A fork that this version does not support is never valid.
            is_invalid = isinstance(error, ResponseError) and not isinstance(error, IntegrityError)
            self._invalid_count += is_invalid or is_missing
            if self._invalid_count >= MAX_INVALID:
                if is_missing:
                    error.hint = f"{error.hint}. {PRUNED_HINT}" if error.hint else PRUNED_HINT
                raise
            log.warning("%s; retrying in one slot", error)
            return False
        self._invalid_count = 0
        return True

    def _write(self, status: ChainStatus) -> None:
        if self._next_epoch is None:
            self._next_epoch = self._find_start(status)
            if self._next_epoch > status.settled_epoch:
                log.warning("epoch %d is not final yet: waiting for it", self._next_epoch)
                return
        indexer = self._open(status)
        epochs = range(self._next_epoch, status.settled_epoch + 1)
        self._is_head_behind = True
        indexer.write(
            status, epochs, executor=self._executor, on_epoch=self._on_epoch, stop=self._stop
        )
        if self._stop.is_set():
            # Some of the epochs may be left out; a later call needs their orphaned blocks.
            return
        # The state after the last final epoch may belong to a fork that the chain leaves.
        indexer.reader.forget_from(status.finalized_epoch)
        self._next_epoch = epochs.stop
        self._events.forget(self.connection.spec.first_slot_of(self._next_epoch))

    def _find_start(self, status: ChainStatus) -> int:
        """Return the first epoch to store, which may not be final yet."""
        chain, last = self.connection.chain, status.settled_epoch
        head_time = chain.time_of("slot", status.head_slot)
        if self.since is not None:
            first = resolve_bound(
                "since", self.since, "epoch", chain, lambda: last, lambda: head_time
            )
            if max(first, self.connection.first_epoch) > last:
                return max(first, self.connection.first_epoch)
        return find_epochs([self.connection], status, self.since, "finalized").start

    def _open(self, status: ChainStatus) -> Indexer:
        """Return the index, with a reader up to the head."""
        if self._indexer is None:
            self._indexer = self._open_indexer(status)
            self._indexer.reader.orphans = self._events.blocks
            self._coverage = self._indexer.chain_index.coverage
            self._events.request(self._indexer.chain_index.possible_orphans)
        self._indexer.reader.head_slot = status.head_slot
        return self._indexer

    def _write_head(self, indexer: Indexer) -> None:
        """Show new epochs to readers; in a large index, this takes longer than an epoch."""
        started = time.monotonic()
        indexer.write_head()
        self._is_head_behind = False
        now = time.monotonic()
        self._head_due = now + (now - started) * PAUSE

    def _note_orphans(self) -> None:
        """Note blocks that may be orphaned, for a later call: the stream has each of them once."""
        if self._indexer is not None:
            slots = {root: block.slot for root, block in list(self._events.blocks.items())}
            slots |= self._events.wanted
            self._indexer.chain_index.note_possible_orphans(slots)

    def wait(self, *, is_added: bool) -> None:
        """Wait for the next finalized checkpoint, at most until the next epoch begins."""
        chain = self.connection.chain
        seconds = seconds_to_poll(chain, time.time()) if is_added else chain.seconds_per_slot
        end = time.monotonic() + seconds
        if self._is_head_behind and is_added:
            end = min(end, self._head_due)
        while not self._stop.is_set() and (left := end - time.monotonic()) > 0:
            if self._news.wait(min(left, STOP_INTERVAL)):
                return


def seconds_to_poll(chain: Chain, now: float) -> float:
    """Return the seconds until the second slot of the next epoch.

    A node finalizes epochs when it processes the first block of an epoch.
    """
    epoch = float(chain.slots_per_epoch * chain.seconds_per_slot)
    passed = (now - chain.genesis.timestamp() - chain.seconds_per_slot) % epoch
    return epoch - passed
