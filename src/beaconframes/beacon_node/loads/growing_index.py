"""The index of a node that loads extend.

The index is a dataset that grows: each load adds the epochs that it needs and that are not stored
yet. So every loader of both API versions returns the rows that a complete index would have.
"""

from __future__ import annotations

import threading
import time
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.v2.duty_slots import UpcomingDuties
from beaconframes.answers.view import DatasetViews
from beaconframes.beacon_node.capabilities import INDEX_HINT
from beaconframes.beacon_node.client.validator_rows import read_validators
from beaconframes.beacon_node.connection import REPLAY
from beaconframes.beacon_node.index.coverage import EpochTask, add_companions
from beaconframes.beacon_node.index.epoch_builder import EpochBuilder
from beaconframes.beacon_node.index.epoch_writer import write_epochs
from beaconframes.beacon_node.index.execution_tables import write_deposits, write_readings
from beaconframes.beacon_node.loads.estimate import LoadEstimate
from beaconframes.beacon_node.loads.needs import Refusals, find_gap, find_needs, find_tables
from beaconframes.beacon_node.tables import DEPOSITS, INDEXED_TABLES, READINGS, REWARD_TABLES
from beaconframes.beacon_node.tables.upcoming import find_epochs, read_upcoming_duties
from beaconframes.endpoint import Head, ObjectNotFound
from beaconframes.errors import BeaconframesError, NotFound, NotServed, RequestLimitExceeded
from beaconframes.fetch.source import RequestEstimate
from beaconframes.load_context import LOAD
from beaconframes.v1.sync_committees import SyncCommittees

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from beaconframes.beacon_node.connection import ChainStatus, NodeConnection
    from beaconframes.beacon_node.index.chain_index import ChainIndex
    from beaconframes.beacon_node.loads.needs import Needs
    from beaconframes.endpoint import Call, Endpoint

MAX_EPOCHS = 2_000
"""Most epochs that one load adds: about nine days of mainnet. `index` is for more."""
_KNOWN = pl.Schema({"validator_index": pl.Int64(), "pubkey": pl.String()})
CONTINUE_HINT = "The same call continues after them"


class GrowingIndex:
    """The index of a node that loads extend; one load at a time."""

    def __init__(
        self, node: NodeConnection, chain_index: ChainIndex, *, has_all_validators: bool
    ) -> None:
        """Extend *chain_index* from *node*: by chosen validators, or always by all of them."""
        self.node, self.chain_index = node, chain_index
        self.has_all_validators = has_all_validators
        self.views = DatasetViews(chain_index.dataset)
        self._status: ChainStatus | None = None
        self._read_at = 0.0
        self._lock = threading.RLock()
        self._load_count = 0
        """The loads that read rows now."""

    @property
    def validators(self) -> pl.DataFrame:
        """Return indices and public keys of the known validators; other processes add some."""
        rows = self.chain_index.dataset.scan("validators", schema=_KNOWN)
        return rows.select(*_KNOWN).collect()

    @property
    def head(self) -> Head:
        """Return the head of the index: the last epoch whose income is known."""
        return self.chain_index.head

    def refresh(self) -> ChainStatus:
        """Request the head of the node, at most once per slot, and write it into the index.

        While a load reads its rows, the head stays: a later one removes rows that are not final.
        """
        with self._lock:
            age = time.monotonic() - self._read_at
            status = self._status
            is_old = not self._load_count and age > self.node.spec.seconds_per_slot
            if status is None or is_old:
                status = self.node.read_status()
                self._read_at = time.monotonic()
                if status != self._status:
                    self.chain_index.remove_unsettled()
                    self.chain_index.verify_optimistic(self.node.api)
                    self._write_head(status, set())
                    self._status = status
            return status

    @contextmanager
    def holding_head(self) -> Iterator[None]:
        """Request the head, and let it stay until the rows of a load are read."""
        self.refresh()
        with self._lock:
            self._load_count += 1
        try:
            yield
        finally:
            with self._lock:
                self._load_count -= 1

    def prepare(self, endpoint: Endpoint, needs: Needs) -> Needs:
        """Add what a load needs and the index does not have; return the needs by index."""
        with self._lock:
            status = self.refresh()
            self._check(endpoint, needs)
            if new := self._find_new(needs):
                self._write_head(status, new)
            needs = self._resolve_pubkeys(needs)
            chosen = None if self.has_all_validators else needs.validators
            tasks = self.find_tasks(needs)
            if len(tasks) > MAX_EPOCHS:
                raise RequestLimitExceeded(
                    f"load_{endpoint.name} needs {len(tasks):,} epochs of the node, and one load "
                    f"adds up to {MAX_EPOCHS:,}",
                    hint=INDEX_HINT,
                )
            if (progress := LOAD.get().progress) is not None:
                before = self.node.request_count
                progress.expect_epochs(len(tasks), lambda: self.node.request_count - before)
            is_changed = bool(tasks or needs.derived)
            if tasks:
                dataset = self.chain_index.dataset
                prune_mark, last = dataset.prune_mark, tasks[-1].epoch
                self._write(status, tasks, chosen)
                if dataset.prune_mark != prune_mark:
                    # Another process has removed rows that are not final, maybe of this load.
                    removed = [task for task in self.find_tasks(needs) if task.epoch <= last]
                    if removed:
                        self._write(status, removed, chosen)
            else:
                is_changed |= self.chain_index.create_tables(
                    self.find_starts(needs), chosen=not self.has_all_validators
                )
            if needs.derived:
                self.chain_index.derive(chosen)
            if is_changed | self._write_present(status, needs):
                self.views.refresh()
            return needs

    def _resolve_pubkeys(self, needs: Needs) -> Needs:
        """Return *needs* with the indices of its public keys, as far as they are known."""
        if not needs.pubkeys:
            return needs
        is_named = pl.col("pubkey").is_in(sorted(needs.pubkeys))
        named = self.validators.filter(is_named)["validator_index"]
        return replace(needs, validators=frozenset({*(needs.validators or ()), *named}))

    def _write_present(self, status: ChainStatus, needs: Needs) -> bool:
        """Replace tables that describe the present, and add deposits; return whether needed."""
        readings, upcoming = needs.tables & READINGS, needs.tables & {UpcomingDuties.table_name}
        if readings:
            write_readings(self.chain_index, self.node, readings, needs.addresses)
        if upcoming:
            duties = read_upcoming_duties(
                self.node.api, self.node.spec, status.head_slot, needs.validators or ()
            )
            self.chain_index.dataset.replace_tables({UpcomingDuties.table_name: duties})
        if deposits := needs.tables & DEPOSITS:
            write_deposits(self.chain_index, self.node)
        return bool(readings or upcoming or deposits)

    def can_answer(self, table: str) -> bool:
        """Return whether the node can answer a table."""
        if table in INDEXED_TABLES or table in DEPOSITS:
            return self.node.capabilities.find_table(table).oldest_epoch is not None
        return table == UpcomingDuties.table_name

    def find_needs(self, endpoint: Endpoint, calls: Sequence[Call]) -> Needs:
        """Return what *calls* of *endpoint* need."""
        try:
            return find_needs(endpoint, calls, self.views.current(), self.can_answer)
        except ObjectNotFound as missing:
            raise NotFound(str(missing), endpoint=endpoint.route) from None

    def find_tasks(self, needs: Needs) -> list[EpochTask]:
        """Return the epochs that a load needs and the index does not have, without a request."""
        chosen = None if self.has_all_validators else needs.validators
        starts = self.find_starts(needs)
        return self.chain_index.find_tasks(
            tuple(starts), self._find_epochs(needs), chosen, starts=starts
        )

    def find_starts(self, needs: Needs) -> dict[str, int]:
        """Return the tables that a load adds, each with the first epoch that the node has."""
        tables = needs.indexed
        if {*tables} & {*REWARD_TABLES} and self.node.find_source(needs.validators) == REPLAY:
            # A replay reads all blocks; they show which missed proposals it cannot count.
            tables = [*tables, "blocks"]
        return self.node.find_starts(add_companions(tables))

    def estimate(self, endpoint: Endpoint, needs: Needs) -> RequestEstimate:
        """Return what a load needs of the node, and what the node cannot answer.

        Sends no request: of the chain, it knows the head that was requested last.
        """
        try:
            self._check(endpoint, needs)
        except (NotServed, NotFound) as error:
            reason = f"{error.message}. {error.hint}"
            return RequestEstimate(0, byte_count=0, seconds=0.0, unavailable=(reason,))
        unknown = sum(isinstance(one, str) for one in self._find_new(needs))
        needs = self._resolve_pubkeys(needs)
        if unknown:
            # Nothing is stored of a validator whose index is not known yet.
            indices = {*(needs.validators or ()), *range(-unknown, 0)}
            needs = replace(needs, validators=frozenset(indices))
        tasks, unavailable = self.find_tasks(needs), []
        first, reason = find_gap(self.node, needs.indexed)
        old = [epoch for epoch in needs.epochs or range(first) if epoch < first]
        if old and reason:
            unavailable.append(f"epochs {min(old)} to {max(old)}, {reason}")
        if len(tasks) > MAX_EPOCHS:
            unavailable.append(
                f"one load adds up to {MAX_EPOCHS:,} epochs, and this one needs {len(tasks):,}. "
                f"{INDEX_HINT}"
            )
        assert self._status is not None
        chosen = None if self.has_all_validators else needs.validators
        starts = self.find_starts(needs)
        every = [
            EpochTask(epoch, tuple(name for name, first in starts.items() if epoch >= first), None)
            for epoch in self._find_epochs(needs)
        ]
        registry = self.validators.height if self.has_all_validators else None
        estimate = LoadEstimate(self.node, self._status.head_slot, chosen, registry).build(tasks)
        without_store = LoadEstimate(self.node, self._status.head_slot, chosen, registry)
        others = int(bool(self._find_new(needs)))
        if UpcomingDuties.table_name in needs.tables:
            epochs, committee_epochs = find_epochs(self.node.spec, self._status.head_slot)
            others += 2 * len(epochs) + len(committee_epochs)
        return replace(
            estimate,
            requests=estimate.requests + others,
            requests_without_store=without_store.build(every).requests + others,
            has_stored=len(tasks) < len(every),
            unavailable=tuple(unavailable),
        )

    def _check(self, endpoint: Endpoint, needs: Needs) -> None:
        Refusals(self.node, endpoint, needs, self.head, self.has_all_validators).check()

    def _write(
        self, status: ChainStatus, tasks: list[EpochTask], validators: Collection[int] | None
    ) -> None:
        """Add epochs; after an error or Ctrl-C, those before it are stored."""
        reader = self.node.open_reader(status, validators)
        stored, progress = 0, LOAD.get().progress
        try:
            amounts = None
            if any({*REWARD_TABLES} & {*task.tables} for task in tasks):
                amounts = self.node.open_amounts(reader, validators)
            builders, dataset = [EpochBuilder(reader, amounts)], self.chain_index.dataset
            written = write_epochs(dataset, builders, tasks, settled=status.settled_epoch)
            with closing(written):
                try:
                    for _ in written:
                        stored += 1
                        if progress is not None:
                            progress.count_epoch()
                except BaseException:
                    reader.cancel()
                    raise
        except (BeaconframesError, KeyboardInterrupt) as error:
            self.node.close()
            self.views.refresh()
            state = (
                f"node {self.node.url}, epoch {tasks[: stored + 1][-1].epoch}: {stored:,} of "
                f"{len(tasks):,} epochs of this load are stored"
            )
            if isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt(f"{state}. {CONTINUE_HINT}") from None
            error.message = f"{error.message} ({state})"
            error.hint = f"{error.hint}. {CONTINUE_HINT}" if error.hint else CONTINUE_HINT
            raise
        finally:
            reader.close()

    def explain_gap(self, endpoint: Endpoint) -> str:
        """Return why the node cannot answer *endpoint* for old epochs; empty if it can."""
        tables = find_tables(endpoint, self.views.current(), self.can_answer)
        return find_gap(self.node, tables)[1]

    def _find_epochs(self, needs: Needs) -> range | list[int]:
        """Return the requested epochs that the chain and the node have."""
        first, last = min(self.find_starts(needs).values(), default=0), self.head.epoch
        if needs.epochs is None:
            return range(first, self.head.finalized_epoch + 1)
        epochs = [epoch for epoch in sorted(needs.epochs) if first <= epoch <= last]
        if needs.indexed == [SyncCommittees.table_name]:
            # The committee of the next period is known before its epochs.
            size = self.node.chain.epochs_per_sync_period
            epochs += [e for e in sorted(needs.epochs) if e > last and e % size == 0]
        return epochs

    def _find_new(self, needs: Needs) -> set[int | str]:
        """Return the requested validators that the table of validators does not have."""
        if self.has_all_validators:
            return set()
        known = self.validators
        requested = {*(needs.validators or ()), *needs.pubkeys}
        return requested.difference(known["validator_index"], known["pubkey"])

    def _write_head(self, status: ChainStatus, new: set[int | str]) -> None:
        """Write the head and the validators: all of them, or the known and the *new* ones."""
        chain = self.chain_index.chain
        epoch = max((status.head_slot + 1) // chain.slots_per_epoch - 2, 0)
        slot = chain.last_slot_of(epoch)
        ids: list[int | str] | None = None
        if not self.has_all_validators:
            ids = [*self.validators["validator_index"], *sorted(new, key=str)]
        validators = read_validators(self.node.api.validators("head", ids))
        self.chain_index.update_head(
            head=Head(epoch, max(status.settled_epoch, 0), slot),
            last_proposed_slot=self.node.find_last_block(slot, status.head_slot),
            is_syncing=self.node.is_syncing(),
            validators=validators,
            is_of_all=self.has_all_validators,
            pending_deposits=self.node.read_pending_deposits(status.head_slot),
        )
        self.views.refresh()
