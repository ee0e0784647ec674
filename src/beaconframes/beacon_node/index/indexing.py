"""`index`: the chain of a node as a dataset, with progress, a report and continuation."""

from __future__ import annotations

import logging
import warnings
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from beaconframes.beacon_node.chain.reader import MANY_VALIDATORS
from beaconframes.beacon_node.client.validator_rows import read_validators
from beaconframes.beacon_node.index.arguments import (
    choose_part,
    choose_tables,
    find_epochs,
    has_deposits,
    open_connections,
    read_common_status,
    resolve_validators,
)
from beaconframes.beacon_node.index.chain_index import ChainIndex
from beaconframes.beacon_node.index.epoch_builder import EpochBuilder, build_address
from beaconframes.beacon_node.index.epoch_writer import compact_rest, write_epochs
from beaconframes.beacon_node.index.execution_tables import write_deposits
from beaconframes.beacon_node.index.verdicts import build_optimistic_warning
from beaconframes.beacon_node.tables import LARGE_TABLES
from beaconframes.beacon_node.tables.state import read_state_validators
from beaconframes.endpoint import Head
from beaconframes.errors import BeaconframesError, find_caller_level
from beaconframes.intervals import clip_intervals
from beaconframes.progress import show_epochs

if TYPE_CHECKING:
    import os
    import threading
    from collections.abc import Callable, Collection, Iterable, Sequence
    from typing import Self

    from beaconframes.beacon_node.chain.reader import ChainReader
    from beaconframes.beacon_node.connection import ChainStatus, NodeConnection
    from beaconframes.beacon_node.index.task_runner import Executor
    from beaconframes.beacon_node.node import Node
    from beaconframes.consensus.state import BeaconState
    from beaconframes.time_range import Moment

log = logging.getLogger("beaconframes.index")


CONTINUE_HINT = "The epochs before it are stored; the same call continues after them"


class IndexProgress(NamedTuple):
    """An epoch that was stored, and how many are."""

    epoch: int
    done: int
    """Epochs that this call has stored."""
    total: int
    """Epochs that this call stores."""


def index(
    node: str | Node | NodeConnection | Sequence[str],
    folder: str | os.PathLike[str],
    *,
    execution: str | None = None,
    validators: int | str | Iterable[int | str] | None = None,
    since: Moment | None = None,
    until: Moment = "finalized",
    part: str | None = None,
    tables: Collection[str] | None = None,
    executor: Executor | None = None,
    on_epoch: Callable[[IndexProgress], None] | None = None,
    stop: threading.Event | None = None,
) -> pl.DataFrame:
    """Write the chain of a beacon node into a dataset. One row per indexed epoch.

    ::

        coverage = bf.index("http://localhost:5052", "mychain", since="30d")
        bf.plot.index_coverage(coverage)
        with bf.open("mychain"):
            bf.load_income_history(range(10))

    The balances of each epoch are compared with its income, deposits and withdrawals. Then all
    tables of the epoch are stored in one commit. The same call resumes an interrupted one, or adds
    newly final epochs; stored epochs are not requested again. `follow` waits for new epochs.

    Parameters
    ----------
    node
        The address of the node, or a `bf.node`. Several addresses of nodes of one chain share
        the epochs.
    folder
        The folder of the dataset: new, empty, or of an earlier call.
    execution
        The address of the execution node beside a *node* that is given by its address.
    validators
        One or many indices or public keys, as loaders take them. All must exist at the head of the
        node. Default: all validators of the chain.
    since, until
        First and last epoch, inclusive: an epoch, a negative number counting back from the last
        final epoch, a date, a datetime or an age such as ``"30d"``. Default: from the oldest epoch
        that the node can answer to the last final one.
    part
        ``"3/8"`` is the third of eight equal parts of these epochs, for machines that index one
        each; `Dataset.merge` joins them. Both bounds must be epochs or dates.
    tables
        Names of tables, or ``"all"`` for all that the node has. Default: all, but on chains with
        more than 500,000 validators without ``slot_attestations``, which is three quarters of the
        dataset, unless the dataset has it already. Income and balances are always indexed.
    executor
        Where epochs are computed: any object with ``submit``, such as a thread pool, a process
        pool or a Dask client. Default: two threads for each node. Threads of one node read one
        epoch at a time on chains with more than 500,000 validators, because of memory. The dataset
        is the same with any number of workers. Other processes open the address of the node
        themselves, once each. Credentials are not sent to them: they read these from
        ``BEACONFRAMES_NODE`` and ``BEACONFRAMES_EXECUTION`` in their own environment.
    on_epoch
        Called after each epoch with the number of this epoch, of finished epochs and of all:
        ``epoch, done, total``.
    stop
        Ends the call after the epoch in progress, once it is set.

    Returns
    -------
    polars.DataFrame
        ``epoch``, ``time``, ``status``, ``unexplained_count`` and ``unexplained_gwei``, for all
        epochs of the dataset. The status is ``explained`` if all changes of balance that contain
        income of the epoch are explained to the gwei, ``unexplained`` if one is not, and
        ``unverified`` if the balances that follow are not final yet. The other columns are the
        number of unexplained changes and the sum of their amounts without sign. One change
        contains income of up to three epochs, and counts for each of them. ``remark`` names a node
        whose answer the balances refuted, and epochs whose blocks the execution node had not
        verified; these are ``unverified``. Otherwise it is null.

    Raises
    ------
    UsageError
        An argument is not valid, the node does not know a validator, or the dataset has others.
    DatasetError
        The folder has another dataset, or the index of another chain.
    NotServed
        The node has no source of income: neither states, nor rewards, nor all blocks.
    ConnectionFailed
        No node answers at the address.
    """
    with ExitStack() as stack:
        connection, *others = open_connections(node, execution, stack)
        # No traceback of a later error holds their credentials.
        del node, execution
        status = read_common_status([connection, *others])
        chosen = resolve_validators(connection, validators)
        epochs = find_epochs([connection, *others], status, since, until)
        if part is not None:
            epochs = choose_part(epochs, part, since, until)
        indexer = stack.enter_context(
            Indexer(connection, status, Path(folder), chosen, tables, others=others)
        )
        indexer.write(status, epochs, executor=executor, on_epoch=on_epoch, stop=stop)
        compact_rest(indexer.chain_index.dataset, connection.chain, epochs)
        indexer.write_head()
        return indexer.chain_index.coverage()


class Indexer:
    """Extends the index in a folder by epochs of a node's chain."""

    def __init__(
        self,
        connection: NodeConnection,
        status: ChainStatus,
        folder: Path,
        validators: Collection[int] | None,
        tables: Collection[str] | None,
        *,
        others: Sequence[NodeConnection] = (),
    ) -> None:
        """Open the index, or create it; *others* are more nodes of the same chain."""
        self.connection, self.validators = connection, validators
        self.tables = choose_tables(connection, tables)
        self.has_deposits = has_deposits(connection, tables)
        self.nodes = []
        for each in (connection, *others):
            choose_tables(each, self.tables)
            reader = each.open_reader(status, validators)
            self.nodes.append((each, reader, each.open_amounts(reader, validators)))
        self.reader = self.nodes[0][1]
        self.chain_index = ChainIndex.open(
            folder,
            connection.spec,
            source=connection.url,
            validators=validators,
            has_execution=connection.execution is not None,
        )
        if tables is None and connection.capabilities.has_many_validators:
            stored = self.chain_index.dataset.grids()
            left_out = [name for name in LARGE_TABLES if name in {*self.tables} - {*stored}]
            if left_out:
                self.tables = tuple(name for name in self.tables if name not in left_out)
                log.warning(
                    "%s is left out, as the chain has more than %s validators: "
                    'tables="all" includes it',
                    ", ".join(left_out), f"{MANY_VALIDATORS:,}",
                )  # fmt: skip
                self.chain_index.note_left_out(left_out)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for _, reader, _ in self.nodes:
            reader.close()

    def write(
        self,
        status: ChainStatus,
        epochs: range,
        *,
        executor: Executor | None = None,
        on_epoch: Callable[[IndexProgress], None] | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        """Write those of *epochs* that are not stored; `write_head` shows them to readers.

        Once *stop* is set, the epochs after the one in progress are left out.
        """
        # The tables of the head need the state of the last epoch.
        self.reader.last_epoch = epochs.stop - 1
        self.chain_index.remove_unsettled()
        self.chain_index.verify_optimistic(self.connection.api)
        every = [connection.find_starts(self.tables) for connection, _, _ in self.nodes]
        starts = {name: max(each[name] for each in every) for name in self.tables}
        tasks = self.chain_index.find_tasks(self.tables, epochs, starts=starts)
        builders = [
            EpochBuilder(reader, amounts, build_address(connection, reader, self.validators))
            for connection, reader, amounts in self.nodes
        ]
        written = write_epochs(
            self.chain_index.dataset, builders, tasks, executor, settled=status.settled_epoch
        )
        try:
            with closing(written), show_epochs("index", len(tasks)) as count:
                for done, task in enumerate(written, start=1):
                    count()
                    if on_epoch is not None:
                        on_epoch(IndexProgress(task.epoch, done, len(tasks)))
                    if stop is not None and stop.is_set():
                        break
            optimistic = clip_intervals(
                self.chain_index.optimistic_epochs, epochs.start, epochs.stop - 1
            )
            if tasks and optimistic:
                warnings.warn(build_optimistic_warning(optimistic), stacklevel=find_caller_level())
        except BeaconframesError as error:
            error.hint = f"{error.hint}. {CONTINUE_HINT}" if error.hint else CONTINUE_HINT
            # What came before is stored: its head makes it a dataset that can be served.
            reader = self.connection.open_reader(status, self.validators)
            with suppress(BeaconframesError), closing(reader):
                self._write_head(reader)
            raise

    def write_head(self) -> None:
        """Write the tables of the last indexed epoch, and the tables that follow from others."""
        state = self._write_head(self.reader)
        if self.has_deposits:
            is_whole = self.chain_index.validators is None
            write_deposits(self.chain_index, self.connection, state if is_whole else None)

    def _write_head(self, reader: ChainReader) -> BeaconState | None:
        """Write the tables of the head; return the state of its epoch, if the node has states."""
        chain_index = self.chain_index
        covered = chain_index.get_coverage().epochs
        if not covered:
            return None
        last = covered[-1][1]
        slot = chain_index.chain.last_slot_of(last)
        pending: Any = None
        state = None
        if reader.has_states:
            state = reader.state(last)
            validators, pending = read_state_validators(state), state.pending_deposits
            if chain_index.validators is not None:
                validators = validators.filter(
                    pl.col("validator_index").is_in(sorted(chain_index.validators))
                )
        else:
            ids = None if chain_index.validators is None else sorted(chain_index.validators)
            rows = reader.request_state(
                slot, lambda slot: self.connection.api.validators(slot, ids)
            )
            validators = read_validators(rows)
            pending = reader.request_state(
                slot, lambda slot: self.connection.read_pending_deposits(slot, slot)
            )
        proposed = list(reader.block_messages(last)) or [slot]
        chain_index.update_head(
            head=Head(last, last, slot),
            last_proposed_slot=proposed[-1],
            is_syncing=False,
            validators=validators,
            pending_deposits=pending,
        )
        chain_index.derive()
        return state
