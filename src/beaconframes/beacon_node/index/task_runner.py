"""The index: a dataset with the tables of a node's chain, written epoch by epoch."""

from __future__ import annotations

import logging
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import replace
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from beaconframes.beacon_node.index.coverage import EpochTask
    from beaconframes.beacon_node.index.epoch_builder import EpochBuilder, EpochResult

log = logging.getLogger("beaconframes.index")

WORKERS = 2
"""Epochs that are read at the same time, without an executor of the caller."""
EPOCHS_PER_RUN = 4
"""Epochs in a row that another process or another node builds: neighbors share states and blocks.

More would need more memory: an epoch of all validators of mainnet has 350 MB of rows.
"""


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
def open_executor(executor: Executor | None, workers: int) -> Iterator[Callable[..., Any]]:
    """Return the function that submits tasks: to *executor*, or to threads of this process."""
    if executor is not None:
        yield executor.submit
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="index") as threads:

        def submit(function: Callable[..., Any], /, *arguments: Any) -> Any:
            # The context has the timeouts of the load.
            return threads.submit(copy_context().run, function, *arguments)

        yield submit
