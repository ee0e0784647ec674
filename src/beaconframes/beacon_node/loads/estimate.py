"""Estimates of loads from a node: requests, bytes and time, from what a connection has measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from beaconframes.beacon_node.amounts.states import VERIFIED_LATER
from beaconframes.beacon_node.chain.cached_node import CONCURRENT_REQUESTS
from beaconframes.beacon_node.connection import REPLAY, ROUTES, STATES
from beaconframes.beacon_node.index.task_runner import WORKERS
from beaconframes.beacon_node.tables import INDEXED_TABLES
from beaconframes.beacon_node.tables.declaration import BLOCKS, DUTIES, INCOME, PAYMENTS
from beaconframes.beacon_node.tables.epoch_data import VOTING_EPOCHS
from beaconframes.fetch.source import RequestEstimate

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from beaconframes.beacon_node.connection import NodeConnection
    from beaconframes.beacon_node.index.coverage import EpochTask

STATE: Final = "/eth/v2/debug/beacon/states/{state_id}"
BLOCK: Final = "/eth/v2/beacon/blocks/{block_id}"
VALIDATORS: Final = "/eth/v1/beacon/states/{state_id}/validators"
COMMITTEES: Final = "/eth/v1/beacon/states/{state_id}/committees"
SYNC_COMMITTEE: Final = "/eth/v1/beacon/states/{state_id}/sync_committees"
PROPOSERS: Final = "/eth/v1/validator/duties/proposer/{epoch}"
REWARDS: Final = "/eth/v1/beacon/rewards/attestations/{epoch}"

BLOCK_REWARDS: Final = "/eth/v1/beacon/rewards/blocks/{block_id}"
SYNC_REWARDS: Final = "/eth/v1/beacon/rewards/sync_committee/{block_id}"
BY_SLOT: Final = {BLOCK, BLOCK_REWARDS, SYNC_REWARDS}
"""Routes with one request per slot; those of an epoch are sent at the same time."""

STATE_BYTES: Final = 145
"""Bytes of a state by validator, until a node has stated the size of one."""
RECORD_BYTES: Final = {VALIDATORS: 600, REWARDS: 115}
"""Bytes by validator of responses with one record for each."""

SEAT_BYTES: Final = 45

MORE_ROUTES: Final = (
    "blocks of the validators and their slots in a sync committee need one more request each, and "
    "balances that rewards do not explain need the blocks of their epoch"
)
MORE_DUTIES: Final = "the duties of slots without a block may need one more request per epoch"

GENESIS: Final = -1
"""Stands for the epoch of the genesis state."""


class LoadEstimate:
    """Finds the requests for epochs of an index; what epochs share is requested once."""

    def __init__(
        self,
        node: NodeConnection,
        head_slot: int,
        validators: Collection[int] | None,
        registry: int | None,
    ) -> None:
        """Estimate loads for *validators* or all (None), of a chain up to *head_slot*.

        *registry* is the number of all validators, None if it is unknown.
        """
        self._node, self._spec = node, node.spec
        self._source, self._is_chosen = node.find_source(validators), validators is not None
        self._record_count = registry
        if self._source == ROUTES and validators is not None:
            self._record_count = len(validators)
        self._head_slot = head_slot
        self._last = (head_slot + 1) // node.spec.slots_per_epoch - 1
        self._epochs: dict[str, set[int]] = {}
        self._may_be_more: dict[str, None] = {}
        self._may_be_less: dict[str, None] = {}

    def build(self, tasks: Iterable[EpochTask]) -> RequestEstimate:
        """Return the estimate for *tasks*."""
        for task in tasks:
            self._add_task(task.epoch, set(task.tables))
        slots = self._spec.slots_per_epoch
        counts = {route: len(epochs) for route, epochs in self._epochs.items()}
        for route in BY_SLOT & counts.keys():
            ends = [min((n + 1) * slots - 1, self._head_slot) for n in self._epochs[route]]
            counts[route] = sum(end % slots + 1 for end in ends)
        remarks: list[str] = []
        sizes = {route: self._find_size(route, remarks) for route in counts}
        byte_count = None
        if None not in sizes.values():
            byte_count = round(sum(counts[route] * (sizes[route] or 0) for route in counts))
        requests = sum(counts.values())
        return RequestEstimate(
            requests,
            tuple(self._may_be_more),
            tuple(self._may_be_less),
            byte_count=byte_count,
            seconds=self._estimate_seconds(counts),
            remarks=tuple(remarks),
        )

    def _find_size(self, route: str, remarks: list[str]) -> float | None:
        """Return the bytes of a response of *route*, None if unknown; add to the *remarks*."""
        session, records = self._node.api.session, self._record_count
        measured = session.measured.get(route)
        if route in RECORD_BYTES and records is not None:
            return RECORD_BYTES[route] * records
        if measured is not None and route not in RECORD_BYTES:
            return measured.byte_count / measured.requests
        if route in session.stated_sizes:
            return session.stated_sizes[route]
        if route == STATE and records is not None:
            remarks.append(f"a state has {STATE_BYTES} bytes per validator")
            return STATE_BYTES * records
        if route in {SYNC_COMMITTEE, SYNC_REWARDS}:
            return SEAT_BYTES * self._spec.sync_committee_size
        remarks.append(f"the size of {route} is unknown")
        return None

    def _estimate_seconds(self, counts: Mapping[str, int]) -> float | None:
        """Return the seconds at the speed of earlier requests; None if there were none."""
        seconds = 0.0
        for route, count in counts.items():
            measured = self._node.api.session.measured.get(route)
            if measured is not None:
                concurrent = CONCURRENT_REQUESTS if route in BY_SLOT else WORKERS
                seconds += count * measured.seconds / measured.requests / concurrent
            elif route in {BLOCK, STATE}:
                return None
        rate = self._node.api.session.rate_limiter.rate
        return seconds if rate is None else max(seconds, sum(counts.values()) / rate)

    def _add(self, route: str, first: int, last: int) -> None:
        self._epochs.setdefault(route, set()).update(range(max(first, 0), last + 1))

    def _add_task(self, epoch: int, tables: set[str]) -> None:
        needs = {INDEXED_TABLES[name].needs for name in tables}
        if self._node.execution is not None and needs & {INCOME, PAYMENTS}:
            self._may_be_more["requests to the execution node are not counted"] = None
        if INCOME in needs:
            self._add_rewards(epoch)
        if needs & {BLOCKS, DUTIES, PAYMENTS}:
            self._add_votes(epoch)
        following = VOTING_EPOCHS if BLOCKS in needs else "attestations" in tables
        for number in range(epoch + 1, min(epoch + following, self._last) + 1):
            if self._source == STATES and number > epoch + 1:
                # These votes do not need the root of the last block, which the next state has.
                self._add(BLOCK, number, number)
                self._add(STATE, number - 1, number)
            else:
                self._add_votes(number)
        if "sync_committees" in tables:
            self._add_sync_committee(epoch)

    def _add_rewards(self, epoch: int) -> None:
        """Add the requests for the amounts of an epoch, which later balances verify."""
        last = min(epoch + VERIFIED_LATER, self._last)
        if self._source == STATES:
            self._add(STATE, epoch - 1, max(last, epoch + 1))
            self._add(BLOCK, epoch, last)
            if epoch == 0:
                self._epochs[STATE].add(GENESIS)
        elif self._source == ROUTES:
            if self._is_chosen:
                self._may_be_more[MORE_ROUTES] = None
            else:
                self._may_be_less["slots without a block need fewer requests"] = None
                for route in BY_SLOT:
                    self._add(route, epoch, last)
                self._add_sync_committee(epoch)
            self._add(VALIDATORS, epoch - 1, max(last, epoch + 1))
            self._add(REWARDS, epoch - VERIFIED_LATER, epoch)
            self._add(PROPOSERS, epoch - 1, last)
        elif self._source == REPLAY:
            end = max(last, epoch + 1)
            for route in (VALIDATORS, COMMITTEES):
                self._add(route, 0, end)
            # The block after an epoch confirms its last block.
            self._add(BLOCK, 0, max(end, min(end + 1, self._last)))
            self._may_be_more[MORE_DUTIES] = None
            self._epochs[VALIDATORS].add(GENESIS)
            for number in range(0, last + 1, self._spec.epochs_per_sync_committee_period):
                self._add_sync_committee(number)

    def _add_votes(self, epoch: int) -> None:
        self._add(BLOCK, epoch, epoch)
        later = min(epoch + 1, max(self._last, epoch))
        if self._source == STATES:
            self._add(STATE, epoch - 1, later)
            return
        # The root of the last block is in the block after it.
        self._may_be_more[MORE_DUTIES] = None
        self._add(BLOCK, epoch, later)
        self._add(COMMITTEES, epoch - 1, epoch)

    def _add_sync_committee(self, epoch: int) -> None:
        if self._source == STATES and epoch <= self._last:
            known = self._epochs.get(STATE, ())
            period = self._spec.epochs_per_sync_committee_period
            if not any(other // period == epoch // period for other in known):
                self._add(STATE, epoch, epoch)
            return
        period = epoch // self._spec.epochs_per_sync_committee_period
        self._add(SYNC_COMMITTEE, period, period)
