"""The connection to a node: what it can answer, its head, and the readers of its chain."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from beaconframes.beacon_node.api import BeaconApi
from beaconframes.beacon_node.execution import ExecutionApi
from beaconframes.beacon_node.probe import Capabilities, TableAbility, probe
from beaconframes.beacon_node.reader import ChainReader
from beaconframes.beacon_node.replay_amounts import ReplayAmounts
from beaconframes.beacon_node.state_amounts import VERIFIED_LATER, StateAmounts
from beaconframes.consensus.spec import FAR_FUTURE_EPOCH
from beaconframes.errors import NotServed

if TYPE_CHECKING:
    from beaconframes.beacon_node.epoch_amounts import AmountSource
    from beaconframes.calendar import Chain
    from beaconframes.consensus.spec import Spec

REPLAY_NEEDS = ("blocks", "states", "duties")
"""What a node must have since genesis, so that its blocks can be replayed."""


LOADED_TABLES = {
    "blocks": "slots",
    "deposit_requests": "slots",
    "deposit_events": "income_history",
    "transfer_events": "income_history",
    "epoch_moves": "income_history",
    "unexplained_changes": "income_history",
}
"""Tables that no loader returns, and a loaded table that a node can answer in the same cases."""


class ChainStatus(NamedTuple):
    """The head of a node's chain."""

    head_slot: int
    """The slot of the last block."""
    finalized_epoch: int
    """The epoch of the finalized checkpoint: blocks before its first slot are final."""

    @property
    def settled_epoch(self) -> int:
        """Return the last epoch whose income is final, and in final balances; -1 if none is."""
        return max(self.finalized_epoch - 1 - VERIFIED_LATER, -1)


class NodeConnection:
    """A beacon node, and the execution node beside it."""

    def __init__(self, url: str, execution: str | None = None) -> None:
        """Check the addresses; no request is sent."""
        self.api = BeaconApi(url)
        self.execution = None if execution is None else ExecutionApi(execution)

    @property
    def url(self) -> str:
        """Return the address of the beacon node, without credentials."""
        return self.api.url

    @property
    def spec(self) -> Spec:
        """Return the constants of the chain."""
        return self.api.chain_spec

    @property
    def chain(self) -> Chain:
        """Return the clock of the chain."""
        return self.spec.chain

    @cached_property
    def capabilities(self) -> Capabilities:
        """Return what the node can answer, found with about 20 requests."""
        return probe(self.api, None if self.execution is None else self.execution.session)

    def read_status(self) -> ChainStatus:
        """Request the head and the finalized checkpoint."""
        head = int(self.api.head()["header"]["message"]["slot"])
        return ChainStatus(head, int(self.api.finality("head")["finalized"]["epoch"]))

    @property
    def first_epoch(self) -> int:
        """Return the first epoch whose income the node can answer."""
        ability = self.capabilities.find_table("income_history")
        oldest, first = ability.oldest_epoch, self.capabilities.first_epoch
        # The amounts of an epoch need the state before it, or that of genesis.
        return first if oldest in (None, first) else oldest + 1

    def find_ability(self, table: str) -> TableAbility:
        """Return since when the node can answer a *table* of an index, or why not."""
        return self.capabilities.find_table(LOADED_TABLES.get(table, table))

    def can_index(self, table: str) -> bool:
        """Return whether the node can answer a *table* of an index."""
        return self.find_ability(table).oldest_epoch is not None

    def has_few_validators(self, most: int) -> bool:
        """Return whether the chain has at most *most* validators."""
        return not self.api.validators("head", [most])

    def read_pending_deposits(self) -> list[dict[str, Any]] | None:
        """Return the queue of deposits at the head; None before Electra."""
        epoch = self.spec.epoch_of(self.read_status().head_slot)
        if epoch < self.spec.fork_epochs.get("electra", FAR_FUTURE_EPOCH):
            return None
        return self.api.pending_deposits("head")

    @cached_property
    def deposit_contract(self) -> str:
        """Return the address of the deposit contract."""
        return str(self.api.spec()["DEPOSIT_CONTRACT_ADDRESS"])

    def read_final_block_number(self) -> int | None:
        """Return the number of the last final execution block; None before the Merge."""
        block = self.api.block("finalized")
        payload = block["message"]["body"].get("execution_payload") if block else None
        number = int(payload["block_number"]) if payload else 0
        return number or None

    def open_reader(self, status: ChainStatus) -> ChainReader:
        """Return a reader of the chain up to the head of *status*."""
        has_states = "ssz" in self.capabilities.oldest
        return ChainReader(
            self.api,
            self.spec,
            head_slot=status.head_slot,
            has_states=has_states,
            execution=self.execution if "execution" in self.capabilities.oldest else None,
        )

    def open_amounts(self, reader: ChainReader) -> AmountSource:
        """Return the source of rewards: states, or blocks if the node has all since genesis.

        Raises
        ------
        NotServed
            The node has neither states nor all blocks and duties.
        """
        oldest = self.capabilities.oldest
        if "ssz" in oldest:
            return StateAmounts(reader)
        if all(oldest.get(name) == 0 for name in REPLAY_NEEDS):
            return ReplayAmounts(reader)
        ability = self.capabilities.find_table("income_history")
        raise NotServed(
            f"the node cannot answer income_history: {ability.reason}",
            hint="Use another node, or start this one with the flag of its client",
        )

    @property
    def request_count(self) -> int:
        """Return the number of requests to both nodes, retries included."""
        return self.api.request_count + (
            0 if self.execution is None else self.execution.session.request_count
        )

    def close(self) -> None:
        """Close all connections; a later request opens new ones."""
        self.api.close()
        if self.execution is not None:
            self.execution.close()
