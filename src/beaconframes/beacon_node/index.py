"""The index: a dataset with the tables of a node's chain, written epoch by epoch."""

from __future__ import annotations

import itertools
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from beaconframes.beacon_node.epoch import EpochResult, build_epoch
from beaconframes.beacon_node.income_tables import UnexplainedChanges
from beaconframes.beacon_node.index_coverage import (
    INDEXED_TABLES,
    WHOLE_CHAIN,
    find_tasks,
)
from beaconframes.endpoint.chain_metadata import describe_chain
from beaconframes.errors import DatasetError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from beaconframes.beacon_node.epoch import EpochInputs
    from beaconframes.beacon_node.index_coverage import EpochTask
    from beaconframes.calendar import Chain
    from beaconframes.dataset import Dataset, Writer

WORKERS = 4
"""Epochs that are read at the same time."""
PENDING_PER_WORKER = 2
"""Epochs that are submitted ahead of the one that is stored next."""


class Submits(Protocol):
    """An executor: a thread pool, a Dask client, or any object with such a ``submit``."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """Run the function elsewhere; the result has a method ``result``."""


@dataclass
class IndexProgress:
    """What an index run has done so far."""

    epochs: int = 0
    rows: int = 0
    unexplained: list[int] = field(default_factory=list)
    """Epochs with a change of balance that is not explained."""


def store_epoch(
    dataset: Dataset,
    chain: Chain,
    task: EpochTask,
    result: EpochResult,
    *,
    is_final: bool,
) -> None:
    """Store the tables of one epoch in one commit.

    Rows of an epoch that is not final are stored without coverage replaced by the next run.
    """
    chosen = task.validators is not None
    with dataset.writing() as writer:
        for name, rows in result.frames.items():
            indexed = INDEXED_TABLES[name]
            grid = indexed.grid(chosen=chosen)
            first, last = indexed.units_of(task.epoch, chain)
            if name == UnexplainedChanges.table_name:
                last = max(last, result.verified_until)
            subjects = (
                [WHOLE_CHAIN] if grid.subject is None else [str(v) for v in task.validators or ()]
            )
            writer.add_covered(name, rows, grid, {one: ((first, last),) for one in subjects})


def run_tasks(
    inputs: EpochInputs, tasks: Sequence[EpochTask], executor: Submits | None = None
) -> Iterator[tuple[EpochTask, EpochResult]]:
    """Yield the result of each task in order, while later ones are under way."""
    own = ThreadPoolExecutor(WORKERS, thread_name_prefix="index") if executor is None else None
    pool = own if own is not None else executor
    assert pool is not None
    pending: deque[tuple[EpochTask, Any]] = deque()
    remaining = iter(tasks)
    try:
        while True:
            for task in itertools.islice(remaining, WORKERS * PENDING_PER_WORKER - len(pending)):
                pending.append((task, pool.submit(build_epoch, inputs, task)))
            if not pending:
                return
            task, future = pending.popleft()
            yield task, future.result()
    finally:
        for _, future in pending:
            future.cancel()
        if own is not None:
            own.shutdown(wait=True, cancel_futures=True)
