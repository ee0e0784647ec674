"""The connection to a node: what it can answer, its head, and the readers of its chain."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from beaconframes.beacon_node.amounts.replay import ReplayAmounts
from beaconframes.beacon_node.amounts.routes import RouteAmounts
from beaconframes.beacon_node.amounts.states import VERIFIED_LATER, StateAmounts
from beaconframes.beacon_node.chain.reader import ChainReader
from beaconframes.beacon_node.client.api import BeaconApi
from beaconframes.beacon_node.client.session import NodeSession
from beaconframes.beacon_node.execution.api import ExecutionApi
from beaconframes.beacon_node.probe import probe
from beaconframes.beacon_node.tables.declaration import REPLAY_NEEDS, ROUTE_NEEDS
from beaconframes.consensus.spec import is_since
from beaconframes.errors import BadRequest, NotFound, NotServed, ServerError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from beaconframes.beacon_node.amounts.epoch_amounts import AmountSource
    from beaconframes.beacon_node.capabilities import Capabilities
    from beaconframes.calendar import Chain
    from beaconframes.consensus.spec import Spec
    from beaconframes.secret import Secret

STATES, ROUTES, REPLAY = "states", "routes", "replay"
AMOUNTS: Final[Mapping[str, Callable[[ChainReader], AmountSource]]] = {
    STATES: StateAmounts,
    ROUTES: RouteAmounts,
    REPLAY: ReplayAmounts,
}
"""Where income comes from, by name."""
LARGE_REGISTRY: Final = 50_000
"""Validators of a chain from which the rewards routes are cheaper than states for chosen ones."""


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

    def __init__(
        self,
        url: str | Secret,
        execution: str | Secret | None = None,
        *,
        rate: float | None = None,
    ) -> None:
        """Check the addresses; no request is sent. *rate* limits the requests per second."""
        self.api = BeaconApi(NodeSession(url, rate=rate))
        self.execution = (
            None if execution is None else ExecutionApi(NodeSession(execution, rate=rate))
        )

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
        """Return what the node can answer, found with about 25 requests."""
        found = probe(self.api, self.execution)
        source = self._choose_source(found.oldest, ())
        return replace(found, margin=VERIFIED_LATER if source == ROUTES else 1)

    def read_status(self) -> ChainStatus:
        """Request the head and the finalized checkpoint."""
        return ChainStatus(*self.api.read_head())

    def is_syncing(self) -> bool:
        """Return whether the node is behind the head of the chain; False if it does not say."""
        with suppress(NotFound, NotServed, BadRequest, ServerError):
            return bool(self.api.syncing().get("is_syncing"))
        return False

    def find_last_block(self, slot: int, head_slot: int) -> int:
        """Return the slot of the last block up to *slot*; the block of *head_slot* is the head."""
        later = map(self.api.header, range(min(slot, head_slot), head_slot + 1))
        message = (next(filter(None, later), None) or self.api.head())["header"]["message"]
        while int(message["slot"]) > slot:
            parent = self.api.header(message["parent_root"])
            if parent is None:
                return 0  # The genesis block, whether or not the node has its header.
            message = parent["header"]["message"]
        return int(message["slot"])

    @property
    def first_epoch(self) -> int:
        """Return the first epoch whose income the node can answer."""
        return self.capabilities.find_table("income_history").oldest_epoch or 0

    def find_starts(self, tables: Iterable[str]) -> dict[str, int]:
        """Return the first epoch that the node can answer, for each of the *tables* of an index."""
        return {name: self.capabilities.find_table(name).oldest_epoch or 0 for name in tables}

    def read_pending_deposits(
        self, slot: int, state_id: int | str = "head"
    ) -> list[dict[str, Any]] | None:
        """Return the queue of deposits in a state, which is that of *slot*.

        None before Electra, or if the node does not have this route.
        """
        if not is_since(self.spec.fork_at(self.spec.epoch_of(slot)), "electra"):
            return None
        try:
            return self.api.pending_deposits(state_id)
        except NotServed:
            return None
        except ServerError:
            # A single failure may be temporary.
            if "pending" not in self.capabilities.reasons:
                raise
            return None

    @cached_property
    def deposit_contract(self) -> str:
        """Return the address of the deposit contract."""
        return str(self.api.spec()["DEPOSIT_CONTRACT_ADDRESS"])

    def read_final_block(self) -> tuple[int, str] | None:
        """Return number and hash of the last final execution block; None before the Merge."""
        block = self.api.block("finalized")
        payload = block["message"]["body"].get("execution_payload") if block else None
        number = int(payload["block_number"]) if payload else 0
        return (number, payload["block_hash"]) if payload and number else None

    @cached_property
    def has_large_registry(self) -> bool:
        """Return whether states are too large to read one per epoch for few validators."""
        return self.api.request_has_validator(LARGE_REGISTRY)

    def find_source(self, validators: Collection[int] | None) -> str | None:
        """Return where the income of chosen *validators*, or of all, comes from with least cost.

        ``states``: SSZ states, ``routes``: the rewards routes, ``replay``: all blocks since
        genesis; None if the node has none of them.
        """
        return self._choose_source(self.capabilities.oldest, validators)

    def _choose_source(
        self, oldest: Mapping[str, int], validators: Collection[int] | None
    ) -> str | None:
        """Return the source that `find_source` returns for a node with these *oldest* epochs."""
        if all(name in oldest for name in ROUTE_NEEDS):
            first = max(oldest[name] for name in ROUTE_NEEDS)
            has_older_states = "ssz" in oldest and oldest["ssz"] < first
            is_cheaper = validators is not None and not has_older_states
            if "ssz" not in oldest or (is_cheaper and self.has_large_registry):
                return ROUTES
        if "ssz" in oldest:
            return STATES
        return REPLAY if all(oldest.get(name) == 0 for name in REPLAY_NEEDS) else None

    def open_reader(
        self, status: ChainStatus, validators: Collection[int] | None = None
    ) -> ChainReader:
        """Return a reader of the chain up to the head of *status*, for `open_amounts`."""
        return self.build_reader(
            status.head_slot,
            self.find_source(validators),
            self.capabilities.oldest,
        )

    def build_reader(
        self, head_slot: int, source: str | None, oldest: Mapping[str, int]
    ) -> ChainReader:
        """Return a reader for a *source* of income, without a request.

        *oldest* has the first epoch of each ability of the node; see `Capabilities`.
        """
        return ChainReader(
            self.api,
            self.spec,
            head_slot=head_slot,
            # Where income needs no states, duties are not computed from them.
            has_states=source == STATES,
            oldest=oldest,
            execution=self.execution if "execution" in oldest else None,
        )

    def open_amounts(
        self, reader: ChainReader, validators: Collection[int] | None = None
    ) -> AmountSource:
        """Return the source of rewards for *validators*; *reader* was opened for the same ones."""
        source = self.find_source(validators)
        if source is None:
            ability = self.capabilities.find_table("income_history")
            raise NotServed(
                f"the node cannot answer income_history: {ability.reason}",
                hint="Use another node, or start this one with the flag of its client",
            )
        return AMOUNTS[source](reader)

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
