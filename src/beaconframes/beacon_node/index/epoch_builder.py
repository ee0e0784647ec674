"""Builders of epochs: the tables of one, with the readers of this process or of another one."""

from __future__ import annotations

import os
import re
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from beaconframes.beacon_node.amounts.states import VERIFIED_LATER
from beaconframes.beacon_node.connection import AMOUNTS, NodeConnection
from beaconframes.beacon_node.tables import INDEXED_TABLES, REWARD_TABLES
from beaconframes.beacon_node.tables.balance_moves import UnexplainedChanges
from beaconframes.beacon_node.tables.epoch_data import EpochData
from beaconframes.errors import BeaconframesError, UsageError
from beaconframes.http.credentials import split_address
from beaconframes.memory import trim_heap
from beaconframes.secret import Secret
from beaconframes.setting_table import VARIABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    import polars as pl

    from beaconframes.beacon_node.amounts.epoch_amounts import AmountSource
    from beaconframes.beacon_node.chain.reader import ChainReader
    from beaconframes.beacon_node.index.coverage import EpochTask

OPTIMISTIC = "the execution node of the beacon node had not verified the blocks"
"""The remark on an epoch with optimistic responses."""


@dataclass(frozen=True)
class EpochResult:
    """The rows of each table of a task."""

    frames: dict[str, pl.DataFrame]
    verified_until: int = -1
    """The last epoch whose changes of balance were compared."""
    remarks: tuple[str, ...] = ()
    """What the coverage says of the epoch besides its status."""

    @property
    def is_explained(self) -> bool:
        """Return whether no change of balance is unexplained."""
        changes = self.frames.get(UnexplainedChanges.table_name)
        return changes is None or changes.is_empty()


def build_epoch(reader: ChainReader, amounts: AmountSource | None, task: EpochTask) -> EpochResult:
    """Return the tables of an epoch; what they need is requested, and nothing else.

    Tables of income need *amounts*. An error names the client and the epoch.
    """
    try:
        return _build_epoch(reader, amounts, task)
    except BeaconframesError as error:
        client = reader.api.session.client_version
        if not re.search(r"\bepoch \d", error.message):
            error.message = f"epoch {task.epoch}: {error.message}"
        if client not in error.message:
            error.message = f"{client}: {error.message}"
        raise


def _build_epoch(reader: ChainReader, amounts: AmountSource | None, task: EpochTask) -> EpochResult:
    data = EpochData(reader, amounts, task.epoch, task.validators)
    with_amounts = {name for name in task.tables if name in REWARD_TABLES}
    verified_until = -1
    with reader.reading(task.epoch):
        if with_amounts:
            # Earlier epochs have compared this epoch as well, but not those after it.
            with_amounts.add(UnexplainedChanges.table_name)
            verified_until = data.amounts.verified_until
        frames = _build_tables(data, {*task.tables} - with_amounts)
    if with_amounts and verified_until >= task.epoch + VERIFIED_LATER:
        # All that the next epoch needs of these states is cached; its rows need much memory.
        reader.release_states(task.epoch + 1)
        if reader.has_large_states:
            trim_heap()
    frames |= _build_tables(data, with_amounts)
    optimistic_slot = reader.api.optimistic_slot
    is_optimistic = optimistic_slot is not None and optimistic_slot in range(
        reader.slots_of(task.epoch).stop
    )
    return EpochResult(frames, verified_until, (OPTIMISTIC,) if is_optimistic else ())


def _build_tables(data: EpochData, names: Collection[str]) -> dict[str, pl.DataFrame]:
    return {
        name: each.rows(data)
        for name, each in INDEXED_TABLES.items()
        if name in names and each.rows is not None
    }


@dataclass(frozen=True)
class NodeAddress:
    """What another process needs to read the same chain from the same node."""

    url: str
    """Without credentials, which are sent to no other process."""
    execution: str | None
    needs_credentials: frozenset[str]
    """The addresses whose credentials the other process has in its environment."""
    head_slot: int
    source: str
    """Where income comes from; see `NodeConnection.find_source`."""
    oldest: Mapping[str, int]
    """The first epoch of each ability of the node."""


class EpochBuilder:
    """Builds epochs with a reader of this process.

    In another process, a pickled builder is one with a reader of that process, which opens it once.
    """

    def __init__(
        self,
        reader: ChainReader,
        amounts: AmountSource | None,
        address: NodeAddress | None = None,
    ) -> None:
        """Build epochs here, and with an *address* also in other processes.

        Without *amounts*, only tables without income.
        """
        self.reader, self.amounts, self.address = reader, amounts, address

    def __call__(self, tasks: Sequence[EpochTask]) -> list[EpochResult]:
        """Return the tables of some epochs in order; neighbors share their states and blocks."""
        return self.reader.run(
            lambda: [build_epoch(self.reader, self.amounts, task) for task in tasks]
        )

    def __repr__(self) -> str:
        return f"EpochBuilder({self.reader.api.url!r})"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[NodeAddress]]:
        assert self.address is not None
        return open_builder, (self.address,)


_lock = threading.Lock()
_builders: dict[tuple[str, str], EpochBuilder] = {}


def open_builder(address: NodeAddress) -> EpochBuilder:
    """Return the builder of this process for a node; it is opened at the first call."""
    with _lock:
        builder = _builders.get((address.url, address.source))
        if builder is None or builder.address != address:
            if builder is not None:
                builder.reader.close()
            connection = NodeConnection(
                add_credentials(address, address.url, VARIABLES["node"]),
                address.execution
                and add_credentials(address, address.execution, VARIABLES["execution"]),
            )
            reader = connection.build_reader(address.head_slot, address.source, address.oldest)
            builder = EpochBuilder(reader, AMOUNTS[address.source](reader), address)
            _builders[address.url, address.source] = builder
        return builder


def add_credentials(address: NodeAddress, url: str, variable: str) -> str | Secret:
    """Return an address with the credentials that the environment of this process has for it."""
    if url not in address.needs_credentials:
        return url
    for text in os.environ.get(variable, "").split():
        if split_address(text)[0] == url:
            return Secret(text)
    raise UsageError(
        f"this process has no credentials for {url}, because they are not sent to other processes",
        hint=f"Set {variable} to the address with its credentials in the environment of each "
        "worker, separate several addresses by spaces; or use an executor of threads",
    )


def build_address(
    connection: NodeConnection, reader: ChainReader, validators: Collection[int] | None
) -> NodeAddress:
    """Return the address of the node for other processes, without its credentials."""
    sessions = [connection.api.session]
    if reader.execution is not None:
        sessions.append(reader.execution.session)
    return NodeAddress(
        connection.url,
        None if reader.execution is None else reader.execution.session.url,
        frozenset(session.url for session in sessions if session.has_credentials),
        reader.head_slot,
        str(connection.find_source(validators)),
        dict(connection.capabilities.oldest),
    )
