"""The index: a dataset with the tables of a node's chain, written epoch by epoch."""

from __future__ import annotations

import logging
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from contextvars import copy_context
from dataclasses import replace
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from beaconframes.beacon_node.amounts.states import VERIFIED_LATER
from beaconframes.beacon_node.index.coverage import INDEXED_TABLES, WHOLE_CHAIN
from beaconframes.beacon_node.index.epoch import OPTIMISTIC
from beaconframes.beacon_node.tables.income_tables import UnexplainedChanges
from beaconframes.endpoint.intervals import merge_intervals, numbers_of, subtract_intervals
from beaconframes.errors import UnverifiedRows

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Sequence

    from beaconframes.beacon_node.index.coverage import EpochTask
    from beaconframes.beacon_node.index.epoch import EpochResult
    from beaconframes.beacon_node.index.epoch_builder import EpochBuilder
    from beaconframes.calendar import Chain
    from beaconframes.dataset import Dataset
    from beaconframes.endpoint.intervals import Intervals

log = logging.getLogger("beaconframes.index")

WORKERS = 2
"""Epochs that are read at the same time, without an executor of the caller."""
GROUP = 15
"""Epochs in a row that are compacted together, before the day that they belong to."""
COMPACTED = tuple(
    name for name, indexed in INDEXED_TABLES.items()
    if indexed.by_validator and indexed.unit == "epoch" and indexed.table.key()[0] != "epoch"
)  # fmt: skip
"""The tables with rows of each validator in each epoch."""
EPOCHS_PER_RUN = 4
"""Epochs in a row that another process or another node builds: neighbors share states and blocks.

More would need more memory: an epoch of all validators of mainnet has 350 MB of rows.
"""

COVERAGE = {
    "epoch": pl.Int64(),
    "time": pl.Datetime("us", "UTC"),
    "status": pl.String(),
    "unexplained_count": pl.Int64(),
    "unexplained_gwei": pl.Int64(),
    "remark": pl.String(),
}
"""The columns of the coverage of an index."""

EXPLAINED, UNEXPLAINED, UNVERIFIED = "explained", "unexplained", "unverified"
FIRST_UNSETTLED = "first_unsettled_epoch"
"""The metadata with the first epoch whose rows may change; `remove_unsettled` removes them."""


REMARKS = "remarks"
"""The metadata with the epochs of each remark, as intervals."""


class Executor(Protocol):
    """A thread pool, a process pool, a Dask client, or any object with such a ``submit``."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """Run the function elsewhere; what is returned has a method ``result``."""


def run_tasks(
    builders: Sequence[EpochBuilder],
    tasks: Sequence[EpochTask],
    executor: Executor | None = None,
) -> Generator[tuple[EpochTask, EpochResult]]:
    """Yield the result of each task in order, while the next ones are under way.

    Runs of epochs are spread over the *builders*, one for each node. After an error or Ctrl-C, the
    tasks that are under way are ended. A caller that takes no more results lets them finish.
    """
    is_shared = len(builders) == 1 and isinstance(executor, ThreadPoolExecutor | None)
    size = 1 if is_shared else EPOCHS_PER_RUN
    workers = WORKERS * len(builders) if executor is None else count_workers(executor)
    if is_shared:
        builders[0].reader.reserve(workers)
    pending: deque[tuple[EpochBuilder, Sequence[EpochTask], Any]] = deque()
    remaining = zip(
        cycle(builders), [tasks[start : start + size] for start in range(0, len(tasks), size)]
    )
    is_first = True
    with open_executor(executor, workers) as submit:
        ask = Witnesses(submit)
        try:
            while True:
                # One more than there are workers, so that none waits for the disk. The first state
                # shows whether memory has room for more than one epoch at a time.
                is_alone = is_shared and (is_first or builders[0].reader.has_large_states)
                most = 1 if is_alone else workers + 1
                for build, run in islice(remaining, most - len(pending)):
                    pending.append((build, run, submit(build, run)))
                if not pending:
                    return
                build, run, future = pending.popleft()
                results = future.result()
                del future
                is_first = False
                witnesses = [builder for builder in builders if builder is not build]
                for task in run:
                    yield task, ask(build, task, results.pop(0), witnesses)
        except GeneratorExit:
            raise
        except BaseException:
            for builder in builders:
                builder.reader.cancel()
            raise
        finally:
            for _, _, future in pending:
                future.cancel()


class Witnesses:
    """Asks other nodes for an epoch that balances do not confirm."""

    def __init__(self, submit: Callable[..., Any]) -> None:
        self._submit = submit
        self._refuted: set[EpochBuilder] = set()
        """The builders of nodes with a refuted answer, whose later balances may be wrong, too."""

    def __call__(
        self,
        build: EpochBuilder,
        task: EpochTask,
        result: EpochResult,
        witnesses: Sequence[EpochBuilder],
    ) -> EpochResult:
        """Return the result of the first witness that its balances confirm, or else *result*.

        *witnesses* are the builders of the other nodes. The remark names a node that is refuted.
        """
        if result.is_explained and build not in self._refuted:
            return result
        for witness in witnesses:
            other: EpochResult = self._submit(witness, [task]).result()[0]
            if not other.is_explained:
                continue
            if result.is_explained:
                return other
            self._refuted.add(build)
            remark = f"the balances refute {build.reader.api.url}, and confirm another node"
            log.warning("epoch %d: %s: %s", task.epoch, remark, witness.reader.api.url)
            return replace(other, remarks=(*other.remarks, remark))
        return result


def count_workers(executor: Executor) -> int:
    """Return the number of workers of a pool or of a Dask client; a guess for other executors."""
    if hasattr(executor, "ncores"):
        return sum(executor.ncores().values()) or WORKERS
    return int(getattr(executor, "_max_workers", WORKERS))


@contextmanager
def open_executor(
    executor: Executor | None, workers: int = WORKERS
) -> Iterator[Callable[..., Any]]:
    """Return the function that submits tasks: to *executor*, or to threads of this process."""
    if executor is not None:
        yield executor.submit
        return
    with open_threads(workers) as threads:

        def submit(function: Callable[..., Any], /, *arguments: Any) -> Any:
            # The context has the timeouts of the load.
            return threads.submit(copy_context().run, function, *arguments)

        yield submit


@contextmanager
def open_threads(workers: int | None = None) -> Iterator[ThreadPoolExecutor]:
    """Return a pool of threads; at the end, tasks that have not started are cancelled."""
    threads = ThreadPoolExecutor(workers or WORKERS, thread_name_prefix="index")
    try:
        yield threads
    finally:
        threads.shutdown(wait=True, cancel_futures=True)


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
    *settled* epoch are marked as unsettled.
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
            first, last = indexed.units_of(task.epoch, chain)
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


def build_optimistic_warning(epochs: Intervals) -> UnverifiedRows:
    """Return the warning that the execution node has not verified *epochs*, or else the head."""
    listed = ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in epochs)
    return UnverifiedRows(
        "the execution node of the beacon node has not verified the blocks of "
        + (f"epochs {listed}" if epochs else "the head")
        + ": the rows may still change",
        hint="Load again when print(node) says synchronized; the coverage lists the epochs",
    )


def find_unexplained(
    dataset: Dataset, epochs: Collection[int] | None, validators: Collection[int] | None
) -> pl.DataFrame:
    """Return the unexplained changes that contain income of *epochs*, by default of all.

    They are those of some *validators*, by default of all.
    """
    name, epoch = UnexplainedChanges.table_name, pl.col("epoch")
    rows = dataset.scan(name, schema=UnexplainedChanges.schema())
    if epochs is not None:
        later = {each + after for each in epochs for after in range(VERIFIED_LATER + 1)}
        rows = rows.filter(epoch.is_in(sorted(later)))
    if validators is not None:
        rows = rows.filter(pl.col("validator_index").is_in(sorted(validators)))
    return rows.sort("epoch", "validator_index").collect()


def compute_coverage(dataset: Dataset, chain: Chain) -> pl.DataFrame:
    """Return the indexed epochs, one row per epoch: status, and what is not explained.

    The income of an epoch is ``explained`` if every change of balance that contains it is: those of
    its own blocks, and those of its attestations, which follow two epochs later.
    """
    income = dataset.coverage("income_history")
    compared = dataset.coverage(UnexplainedChanges.table_name)
    rows = (
        dataset.scan(UnexplainedChanges.table_name, schema=UnexplainedChanges.schema())
        .group_by("epoch")
        .agg(unexplained_count=pl.len(), unexplained_gwei=pl.col("unexplained_gwei").abs().sum())
        .cast({"unexplained_count": pl.Int64, "unexplained_gwei": pl.Int64})
    )
    # The change of an epoch concerns the income of this epoch and of the ones before it.
    differing = pl.concat(
        rows.with_columns(pl.col("epoch") - before) for before in range(VERIFIED_LATER + 1)
    )
    # Nearly all validators have the same intervals.
    pairs = {(parts, compared.get(subject, ())) for subject, parts in income.items()}
    unverified = merge_intervals(
        interval
        for parts, known in pairs
        for interval in subtract_intervals(
            parts,
            [(low, high - VERIFIED_LATER) for low, high in known if low <= high - VERIFIED_LATER],
        )
    )
    epochs = merge_intervals(interval for parts, _ in pairs for interval in parts)
    counts = pl.col("unexplained_count", "unexplained_gwei")
    remarks = [
        (epoch, text)
        for text, parts in sorted(dataset.meta.get(REMARKS, {}).items())
        for epoch in numbers_of(parts)
    ]
    remarked = (
        pl.LazyFrame(remarks, schema={"epoch": pl.Int64, "remark": pl.String}, orient="row")
        .group_by("epoch")
        .agg(pl.col("remark").str.join("; "))
    )
    return (
        pl.LazyFrame({"epoch": numbers_of(epochs)}, schema={"epoch": pl.Int64})
        .join(differing.group_by("epoch").agg(counts.sum()), on="epoch", how="left")
        .join(
            pl.LazyFrame(
                {"epoch": numbers_of(unverified), "is_unverified": True},
                schema={"epoch": pl.Int64, "is_unverified": pl.Boolean},
            ),
            on="epoch",
            how="left",
        )
        .join(remarked, on="epoch", how="left")
        .sort("epoch")
        .select(
            "epoch",
            time=chain.time_expr("epoch", pl.col("epoch")),
            status=pl.when(pl.col("unexplained_count").is_not_null())
            .then(pl.lit(UNEXPLAINED))
            .when(
                pl.col("is_unverified").is_not_null()
                | pl.col("remark").str.contains(OPTIMISTIC, literal=True)
            )
            .then(pl.lit(UNVERIFIED))
            .otherwise(pl.lit(EXPLAINED)),
            unexplained_count=pl.col("unexplained_count").fill_null(0),
            unexplained_gwei=pl.col("unexplained_gwei").fill_null(0),
            remark="remark",
        )
        .collect()
    )
