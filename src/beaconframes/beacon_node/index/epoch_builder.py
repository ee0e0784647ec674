"""Builders of epochs: with the readers of this process, or of another one that opens its own."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from beaconframes.beacon_node.connection import AMOUNTS, NodeConnection
from beaconframes.beacon_node.index.epoch import build_epoch
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from beaconframes.beacon_node.amounts.epoch_amounts import AmountSource
    from beaconframes.beacon_node.chain.reader import ChainReader
    from beaconframes.beacon_node.index.coverage import EpochTask
    from beaconframes.beacon_node.index.epoch import EpochResult


@dataclass(frozen=True)
class NodeAddress:
    """What another process needs to read the same chain from the same node."""

    url: str
    """Without credentials, which no other process receives."""
    execution: str | None
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
        """Build epochs here, and elsewhere if the *address* has no credentials (None: it has).

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
        if self.address is None:
            raise UsageError(
                f"the credentials of {self.reader.api.url} are not sent to other processes",
                hint="Use an executor of threads, or an address without credentials, such as that "
                "of a proxy beside the workers",
            )
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
            connection = NodeConnection(address.url, address.execution)
            reader = connection.build_reader(address.head_slot, address.source, address.oldest)
            builder = EpochBuilder(reader, AMOUNTS[address.source](reader), address)
            _builders[address.url, address.source] = builder
        return builder


def build_address(
    connection: NodeConnection, reader: ChainReader, source: str
) -> NodeAddress | None:
    """Return the address of the node for other processes; None if it has credentials."""
    sessions = [connection.api.session]
    if reader.execution is not None:
        sessions.append(reader.execution.session)
    if any(session.has_credentials for session in sessions):
        return None
    execution = None if reader.execution is None else reader.execution.session.url
    oldest = dict(connection.capabilities.oldest)
    return NodeAddress(connection.url, execution, reader.head_slot, source, oldest)
