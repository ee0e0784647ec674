"""The writer of epochs: the tables of each in one commit, sorted by validator day by day."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from beaconframes.beacon_node.index.coverage import WHOLE_CHAIN, find_units
from beaconframes.beacon_node.index.task_runner import run_tasks
from beaconframes.beacon_node.tables import INDEXED_TABLES
from beaconframes.beacon_node.tables.balance_moves import UnexplainedChanges
from beaconframes.dataset.merging import FIRST_UNSETTLED, REMARKS
from beaconframes.intervals import merge_intervals

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from beaconframes.beacon_node.index.coverage import EpochTask
    from beaconframes.beacon_node.index.epoch_builder import EpochBuilder, EpochResult
    from beaconframes.beacon_node.index.task_runner import Executor
    from beaconframes.calendar import Chain
    from beaconframes.dataset import Dataset

GROUP = 15
"""Epochs in a row that are compacted together, before the day that they belong to."""


COMPACTED = tuple(
    name for name, indexed in INDEXED_TABLES.items()
    if indexed.by_validator and indexed.unit == "epoch" and indexed.table.key()[0] != "epoch"
)  # fmt: skip
"""The tables with rows of each validator in each epoch."""


def write_epochs(
    dataset: Dataset,
    builders: Sequence[EpochBuilder],
    tasks: Sequence[EpochTask],
    executor: Executor | None = None,
    *,
    settled: int,
) -> Generator[EpochTask]:
    """Write the tables of each task in one commit, and yield the task after it.

    An interrupted run leaves whole epochs only; a later one continues after them. Rows after the
    *settled* epoch may change: they are marked, and `ChainIndex.remove_unsettled` removes them.
    """
    chain = builders[0].reader.spec.chain
    with closing(run_tasks(builders, tasks, executor)) as results:
        for task, result in results:
            try:
                store_epoch(dataset, chain, task, result, settled)
                compact_before(dataset, chain, task.epoch + 1)
            except BaseException:
                for builder in builders:
                    builder.reader.cancel()
                raise
            yield task


def store_epoch(
    dataset: Dataset, chain: Chain, task: EpochTask, result: EpochResult, settled: int
) -> None:
    """Store the tables of one epoch in one commit, and remove them from *result*."""
    chosen = task.validators is not None
    with dataset.writing() as writer:
        if task.epoch > settled:
            # In the commit of the rows, because another process may remove an earlier mark.
            marked = writer.meta.get(FIRST_UNSETTLED)
            first_unsettled = settled + 1 if marked is None else min(marked, settled + 1)
            writer.set_meta({FIRST_UNSETTLED: first_unsettled})
        if result.remarks:
            remarks = dict(writer.meta.get(REMARKS, {}))
            for text in result.remarks:
                known = [(low, high) for low, high in remarks.get(text, ())]
                remarks[text] = merge_intervals([*known, (task.epoch, task.epoch)])
            writer.set_meta({REMARKS: remarks})
        for name in list(result.frames):
            # Freed one by one: those of all validators of mainnet have 350 MB.
            rows = result.frames.pop(name)
            indexed = INDEXED_TABLES[name]
            grid = indexed.grid(chosen=chosen)
            first, last = find_units(indexed.unit, task.epoch, chain)
            if name == UnexplainedChanges.table_name:
                # Later units compare the same changes again; equal rows are stored once.
                last = result.verified_until
                if last < first:
                    continue
            subjects = (
                [WHOLE_CHAIN] if grid.subject is None else [str(v) for v in task.validators or ()]
            )
            writer.add_covered(name, rows, grid, dict.fromkeys(subjects, ((first, last),)))
            # Rows that do not fill a file would retain the memory of all rows.
            del rows
            writer.flush()


def compact_before(dataset: Dataset, chain: Chain, epoch: int) -> None:
    """Compact the group of epochs, and the day, that end before *epoch*."""
    size = chain.epochs_per_day
    first = (epoch - 1) // size * size
    if (epoch - first) % GROUP == 0 or epoch == first + size:
        # First in groups: a read then does not have to look into each epoch of a day.
        start = first + (epoch - 1 - first) // GROUP * GROUP
        compact_epochs(dataset, start, epoch - 1, at_least=2)
    if epoch == first + size:
        compact_epochs(dataset, first, epoch - 1, at_least=2)


def compact_rest(dataset: Dataset, chain: Chain, epochs: range) -> None:
    """Compact the days of *epochs* that are not complete, or whose compaction was interrupted."""
    size = chain.epochs_per_day
    for day in range(epochs.start // size, (epochs.stop - 1) // size + 1):
        compact_epochs(dataset, day * size, (day + 1) * size - 1, at_least=GROUP)


def compact_epochs(dataset: Dataset, first: int, last: int, *, at_least: int) -> None:
    """Sort the rows of the largest tables by validator, from the *first* to the *last* epoch.

    Without it, one validator's rows would be in the files of each epoch. If they are in less than
    *at_least* files, these are left as they are.
    """
    for name in COMPACTED:
        inside = [
            segment
            for segment in dataset.segments(name)
            if segment.rows and segment.is_within("epoch", [(first, last)])
        ]
        if len({segment.ranges["epoch"] for segment in inside}) >= at_least:
            dataset.compact(name, first=first, last=last)
