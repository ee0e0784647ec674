"""A node as the source of loads: what a load needs is indexed, and answered from the index.

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

from beaconframes.active_periods import REASON
from beaconframes.answers.dataset_source import DatasetSource
from beaconframes.beacon_node.capabilities import INDEX_HINT, WHOLE_REGISTRY
from beaconframes.beacon_node.client.slot_blocks import MISSED
from beaconframes.beacon_node.client.validator_rows import read_validators
from beaconframes.beacon_node.connection import REPLAY
from beaconframes.beacon_node.index.coverage import EpochTask, add_companions
from beaconframes.beacon_node.index.epoch_builder import EpochBuilder
from beaconframes.beacon_node.index.execution_tables import write_deposits, write_readings
from beaconframes.beacon_node.index.verdicts import build_optimistic_warning, find_unexplained
from beaconframes.beacon_node.loads.estimate import LoadEstimate
from beaconframes.beacon_node.loads.needs import BY_EPOCH, find_needs, find_tables
from beaconframes.beacon_node.tables import DEPOSITS, INDEXED_TABLES, READINGS, REWARD_TABLES
from beaconframes.cache.pubkey_index import KEYS_PATH
from beaconframes.endpoint import Envelope, Head, ObjectNotFound
from beaconframes.endpoint.absent_table import EXECUTION_TABLES
from beaconframes.endpoint.intervals import clip_intervals
from beaconframes.errors import (
    BeaconframesError,
    MissingRows,
    NotFound,
    NotServed,
    RequestLimitExceeded,
    UnreconciledRows,
)
from beaconframes.fetch.head import encode_stated_head
from beaconframes.fetch.source import RequestEstimate, plan_calls
from beaconframes.progress import PROGRESS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from beaconframes.answers.view import DatasetViews
    from beaconframes.beacon_node.connection import ChainStatus, NodeConnection
    from beaconframes.beacon_node.index.chain_index import ChainIndex
    from beaconframes.beacon_node.loads.needs import Needs
    from beaconframes.endpoint import Call, ChainHead, Endpoint, Request
    from beaconframes.fetch.served_range import ServedRange
    from beaconframes.fetch.source import FetchedRows

MAX_EPOCHS = 2_000
"""Most epochs that one load adds: about nine days of mainnet. `index` is for more."""
UPCOMING = "upcoming_duty_slots"
"""The endpoint whose rows are all after the head."""
COMMITTEES = ("sync_committees", "sync_committee", "sync_committee_validators")
"""The endpoints with sync committees."""
CONTINUE_HINT = "The same call continues after them"


class GrowingIndex:
    """The index of a node that loads extend; one load at a time."""

    def __init__(
        self, node: NodeConnection, chain_index: ChainIndex, *, has_all_validators: bool
    ) -> None:
        """Extend *chain_index* from *node*: by chosen validators, or always by all of them."""
        self.node, self.chain_index = node, chain_index
        self.has_all_validators = has_all_validators
        self.views: DatasetViews | None = None
        """The views of the index, once it is open."""
        self._status: ChainStatus | None = None
        self._read_at = 0.0
        self._validators = pl.DataFrame()
        self._lock = threading.RLock()
        self._load_count = 0
        """The loads that read rows now."""

    @property
    def head(self) -> Head:
        """Return the head of the index: the last epoch whose income is known."""
        meta = self.chain_index.dataset.meta
        return Head(meta["latest_epoch"], meta["finalized_epoch"], meta["latest_slot"])

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
                if self._status is None or status != self._status:
                    self._status = status
                    self.chain_index.remove_unsettled()
                    self.chain_index.verify_optimistic(self.node.api)
                    self._write_head(status, set())
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

    def prepare(self, endpoint: Endpoint, needs: Needs) -> None:
        """Add what a load needs and the index does not have.

        Raises
        ------
        NotServed, NotFound
            A node cannot answer the endpoint, or not yet.
        RequestLimitExceeded
            The load needs more epochs than one load can add.
        """
        with self._lock:
            status = self.refresh()
            self.check(endpoint, needs)
            self._add_validators(status, needs)
            chosen = None if self.has_all_validators else needs.validators
            tasks = self.find_tasks(needs)
            if len(tasks) > MAX_EPOCHS:
                raise RequestLimitExceeded(
                    f"load_{endpoint.name} needs {len(tasks):,} epochs of the node, and one load "
                    f"adds up to {MAX_EPOCHS:,}",
                    hint=INDEX_HINT,
                )
            if (progress := PROGRESS.get()) is not None:
                before = self.node.request_count
                progress.expect_epochs(len(tasks), lambda: self.node.request_count - before)
            is_changed = bool(tasks or needs.derived or needs.tables & {*READINGS, *DEPOSITS})
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
                    needs.indexed, chosen=not self.has_all_validators
                )
            if needs.derived:
                self.chain_index.derive(chosen)
            if readings := needs.tables & READINGS:
                write_readings(self.chain_index, self.node, readings, needs.addresses)
            if needs.tables & DEPOSITS:
                write_deposits(self.chain_index, self.node)
            if is_changed:
                self._refresh_views()

    def find_doubts(self, needs: Needs) -> list[Warning]:
        """Return a warning if balances do not confirm income that a load needs; else nothing."""
        if not needs.tables & {*REWARD_TABLES}:
            return []
        validators = needs.validators
        if needs.pubkeys:
            is_named = pl.col("pubkey").is_in(sorted(needs.pubkeys))
            named = self._validators.filter(is_named)["validator_index"]
            validators = frozenset({*(validators or ()), *named})
        changes = find_unexplained(self.chain_index.dataset, needs.epochs, validators)
        if changes.is_empty():
            return []
        first = changes.row(0, named=True)
        more = f", and {changes.height - 1:,} more" if changes.height > 1 else ""
        warning = UnreconciledRows(
            f"balances do not confirm these rows: {first['unexplained_gwei']:+,} gwei of validator "
            f"{first['validator_index']} in epoch {first['epoch']} is unexplained{more}",
            hint="Compare with another node; node.coverage() lists the epochs, and strict=True "
            "makes this an error",
        )
        warning.changes = changes
        return [warning]

    def find_optimistic(self, needs: Needs) -> list[Warning]:
        """Return a warning if the execution node has not verified what a load needs."""
        if not needs.indexed:
            is_verified = self.node.api.optimistic_slot is None
            return [] if is_verified else [build_optimistic_warning(())]
        requested = needs.epochs or (0, self.head.epoch)
        epochs = clip_intervals(self.chain_index.optimistic_epochs, min(requested), max(requested))
        return [build_optimistic_warning(epochs)] if epochs else []

    def can_answer(self, table: str) -> bool:
        """Return whether the node can answer a table."""
        if table in INDEXED_TABLES:
            return self.node.can_index(table)
        return table in DEPOSITS and self.node.find_ability(table).oldest_epoch is not None

    def find_needs(self, endpoint: Endpoint, calls: Sequence[Call]) -> Needs:
        """Return what *calls* of *endpoint* need.

        Raises
        ------
        NotFound
            A call selects what is after the head, or not final yet.
        """
        assert self.views is not None
        try:
            return find_needs(endpoint, calls, self.views.current(), self.can_answer)
        except ObjectNotFound as missing:
            raise NotFound(str(missing), endpoint=endpoint.route) from None

    def find_tasks(self, needs: Needs) -> list[EpochTask]:
        """Return the epochs that a load needs and the index does not have, without a request."""
        chosen = None if self.has_all_validators else needs.validators
        starts = self._find_starts(needs)
        return self.chain_index.find_tasks(
            tuple(starts), self._find_epochs(needs), chosen, starts=starts
        )

    def _find_starts(self, needs: Needs) -> dict[str, int]:
        """Return the tables that a load adds, each with the first epoch that the node has."""
        tables = needs.indexed
        if {*tables} & {*REWARD_TABLES} and self.node.find_source(needs.validators) == REPLAY:
            # A replay reads all blocks; they show which missed proposals it cannot count.
            tables = [*tables, "blocks"]
        return self.node.find_starts(add_companions(tables))

    def find_unknown_proposers(self, calls: Sequence[Call], needs: Needs) -> list[Warning]:
        """Return a warning if missed proposals are missing from *calls* for validators."""
        is_of_proposer = any("proposer_index" in e.values for call in calls for e in call.expected)
        is_of_validators = is_of_proposer or needs.validators is not None or needs.pubkeys
        if not is_of_validators or "blocks" not in self._find_starts(needs):
            return []
        is_unknown = (pl.col("status") == MISSED) & pl.col("proposer_index").is_null()
        if needs.epochs is not None:
            is_unknown &= pl.col("epoch").is_in(sorted(needs.epochs))
        blocks = self.chain_index.dataset.scan("blocks").filter(is_unknown)
        slots = blocks.select("slot").sort("slot").collect()
        if slots.is_empty():
            return []
        warning = MissingRows(
            f"missed proposals are incomplete: the node does not say who had to propose in "
            f"{slots.height:,} slots without a block, from slot {slots['slot'][0]} to "
            f"{slots['slot'][-1]}: it has no proposer duties of that time",
            hint=self.node.capabilities.archive_hint,
        )
        warning.missing = slots.with_columns(pl.lit("unknown proposer").alias(REASON))
        return [warning]

    def estimate(self, endpoint: Endpoint, needs: Needs) -> RequestEstimate:
        """Return what a load needs of the node, and what the node cannot answer.

        Sends no request: of the chain, it knows the head that was requested last.
        """
        try:
            self.check(endpoint, needs)
        except (NotServed, NotFound) as error:
            reason = f"{error.message}. {error.hint}"
            return RequestEstimate(0, byte_count=0, seconds=0.0, unavailable=(reason,))
        tasks, unavailable = self.find_tasks(needs), []
        first, reason = self.find_gap(needs.indexed)
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
        starts = self._find_starts(needs)
        every = [
            EpochTask(epoch, tuple(name for name, first in starts.items() if epoch >= first), None)
            for epoch in self._find_epochs(needs)
        ]
        registry = self._validators.height if self.has_all_validators else None
        estimate = LoadEstimate(self.node, self._status.head_slot, chosen, registry).build(tasks)
        without_store = LoadEstimate(self.node, self._status.head_slot, chosen, registry)
        lookups = self._find_new(needs)
        return replace(
            estimate,
            requests=estimate.requests + bool(lookups),
            requests_without_store=without_store.build(every).requests + bool(lookups),
            has_stored=len(tasks) < len(every),
            unavailable=tuple(unavailable),
        )

    def _write(
        self, status: ChainStatus, tasks: list[EpochTask], validators: Collection[int] | None
    ) -> None:
        """Add epochs; after an error or Ctrl-C, those before it are stored."""
        reader = self.node.open_reader(status, validators)
        stored, progress = 0, PROGRESS.get()
        try:
            amounts = None
            if any({*REWARD_TABLES} & {*task.tables} for task in tasks):
                amounts = self.node.open_amounts(reader, validators)
            written = self.chain_index.write(
                [EpochBuilder(reader, amounts)], tasks, settled=status.settled_epoch
            )
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
            self._refresh_views()
            state = (
                f"node {self.node.url}, epoch {tasks[stored].epoch}: {stored:,} of {len(tasks):,} "
                "epochs of this load are stored"
            )
            if isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt(f"{state}. {CONTINUE_HINT}") from None
            error.message = f"{error.message} ({state})"
            error.hint = f"{error.hint}. {CONTINUE_HINT}" if error.hint else CONTINUE_HINT
            raise
        finally:
            reader.close()

    def _refresh_views(self) -> None:
        """Show the index as it is now."""
        if self.views is not None:
            self.views.refresh()

    def explain_gap(self, endpoint: Endpoint) -> str:
        """Return why the node cannot answer *endpoint* for old epochs; empty if it can."""
        assert self.views is not None
        tables = find_tables(endpoint, self.views.current(), self.can_answer)
        return self.find_gap(tables)[1]

    def find_gap(self, tables: Iterable[str]) -> tuple[int, str]:
        """Return the first epoch that the node can answer of *tables*, and why not earlier."""
        capabilities = self.node.capabilities
        starts = self.node.find_starts(INDEXED_TABLES.keys() & {*tables})
        first = max(starts.values(), default=0)
        if first <= capabilities.first_epoch:
            return first, ""
        return first, (
            f"before epoch {first}, the oldest that this node can answer: "
            f"{capabilities.archive_hint}"
        )

    def check(self, endpoint: Endpoint, needs: Needs) -> None:
        """Raise NotServed for tables that the node cannot answer, NotFound for a future period."""
        self._check_head(endpoint, needs)
        self._check_tables(endpoint, needs)
        self._check_registry(endpoint, needs)
        self._check_coverage(endpoint, needs)

    def _check_head(self, endpoint: Endpoint, needs: Needs) -> None:
        """Raise an error for duties after the last epoch, and for a sync period after it."""
        if endpoint.name == UPCOMING:
            raise NotServed(
                f"load_{endpoint.name} needs duties after the head, and frames from a node end "
                f"with its last complete epoch, {self.head.epoch}",
                hint="Request /eth/v1/validator/duties of the node, or use the explorer API",
                endpoint=endpoint.route,
            )
        if endpoint.name in COMMITTEES and needs.epochs:
            self._check_period(endpoint, max(needs.epochs))

    def _check_period(self, endpoint: Endpoint, epoch: int) -> None:
        """Raise NotFound for the sync period of an *epoch* if it begins after the last epoch."""
        size = self.node.chain.epochs_per_sync_period
        first = epoch // size * size
        if first > self.head.epoch:
            raise NotFound(
                f"load_{endpoint.name}: sync period {epoch // size} begins in epoch {first}, and "
                f"frames from a node end with its last complete epoch, {self.head.epoch}",
                hint=f"Request /eth/v1/beacon/states/head/sync_committees?epoch={first} of the "
                "node, or use the explorer API",
                endpoint=endpoint.route,
            )

    def _check_tables(self, endpoint: Endpoint, needs: Needs) -> None:
        """Raise NotServed for tables that no node has, and for those that this one cannot answer.

        Some tables need an execution node.
        """
        of_execution = needs.tables & {*READINGS, *DEPOSITS}
        if endpoint.table.table_name in EXECUTION_TABLES:
            of_execution |= {endpoint.table.table_name}
        for name in [*needs.others, *sorted(of_execution)]:
            ability = self.node.capabilities.find_table(name)
            if ability.oldest_epoch is None:
                raise NotServed(
                    f"load_{endpoint.name} cannot be answered by a beacon node: {ability.reason}",
                    hint="print(node) lists what this node can answer",
                    endpoint=endpoint.route,
                )
        for name in needs.indexed:
            ability = self.node.find_ability(name)
            if ability.oldest_epoch is None:
                raise NotServed(
                    f"this node cannot answer load_{endpoint.name}: {ability.reason}",
                    hint="print(node) lists what this node can answer",
                    endpoint=endpoint.route,
                )

    def _check_registry(self, endpoint: Endpoint, needs: Needs) -> None:
        """Raise NotServed for tables of all validators, if the index has only chosen ones."""
        is_by_validator = any(INDEXED_TABLES[name].by_validator for name in needs.indexed)
        is_of_all = needs.tables & WHOLE_REGISTRY or (is_by_validator and needs.validators is None)
        if is_of_all and not self.has_all_validators:
            raise NotServed(
                f"load_{endpoint.name} needs all validators of the chain",
                hint=INDEX_HINT,
                endpoint=endpoint.route,
            )

    def _check_coverage(self, endpoint: Endpoint, needs: Needs) -> None:
        """Raise NotServed for old epochs, if the response cannot say that they are missing."""
        first, reason = self.find_gap(needs.indexed)
        old = [epoch for epoch in needs.epochs or () if epoch < first]
        if endpoint.name in COMMITTEES:
            # One state of a period has its committee.
            size = self.node.chain.epochs_per_sync_period
            old = [epoch for epoch in old if (epoch // size + 1) * size <= first]
        # These tables, and answers of V2, state no coverage.
        is_whole = BY_EPOCH & needs.tables or endpoint.envelope is Envelope.V2
        if old and is_whole and reason:
            raise NotServed(
                f"load_{endpoint.name} needs epochs {min(old)} to {max(old)}, {reason}",
                hint=f"Load epochs from {first} on",
                endpoint=endpoint.route,
            )

    def _find_epochs(self, needs: Needs) -> range | list[int]:
        """Return the requested epochs that the chain and the node have."""
        first, last = min(self._find_starts(needs).values(), default=0), self.head.epoch
        if needs.epochs is None:
            return range(first, self.head.finalized_epoch + 1)
        return [epoch for epoch in sorted(needs.epochs) if first <= epoch <= last]

    def _add_validators(self, status: ChainStatus, needs: Needs) -> None:
        """Add the requested validators to the table of validators."""
        if new := self._find_new(needs):
            self._write_head(status, new)

    def _find_new(self, needs: Needs) -> set[int | str]:
        """Return the requested validators that the table of validators does not have."""
        if self.has_all_validators:
            return set()
        known = set(self._validators["validator_index"]) if self._validators.height else set()
        keys = set(self._validators["pubkey"]) if self._validators.height else set()
        return {*(needs.validators or ()), *needs.pubkeys} - known - keys

    def _write_head(self, status: ChainStatus, new: set[int | str]) -> None:
        """Write the head and the validators: all of them, or the known and the *new* ones."""
        chain = self.chain_index.chain
        epoch = max((status.head_slot + 1) // chain.slots_per_epoch - 2, 0)
        slot = chain.last_slot_of(epoch)
        ids: list[int | str] | None = None
        if not self.has_all_validators:
            known = self._validators["validator_index"].to_list() if self._validators.height else []
            ids = [*known, *sorted(new, key=str)]
        self._validators = read_validators(self.node.api.validators("head", ids))
        self.chain_index.update_head(
            head=Head(epoch, max(status.settled_epoch, 0), slot),
            last_proposed_slot=self.node.find_last_block(slot, status.head_slot),
            is_syncing=self.node.is_syncing(),
            validators=self._validators,
            pending_deposits=self.node.read_pending_deposits(status.head_slot),
        )
        self._refresh_views()


class NodeSource(DatasetSource):
    """A node, by way of the dataset of its index."""

    is_node = True

    def __init__(self, index: GrowingIndex) -> None:
        """Answer from *index*, after it has what a load needs."""
        assert index.views is not None
        super().__init__(index.views)
        self._index = index

    @property
    def known_head(self) -> Head:
        """Return the head that the node has stated last."""
        return self._index.head

    def estimate(self, endpoint: Endpoint, calls: Sequence[Call]) -> RequestEstimate:
        """Return what *calls* of *endpoint* need of the node, without a request."""
        return self._index.estimate(endpoint, self._index.find_needs(endpoint, calls))

    def fetch(self, request: Request) -> bytes:
        """Return the present head, or the validators with some public keys."""
        if request.envelope is Envelope.PNG:
            raise NotServed(
                "load_chart returns a picture that the explorer draws, and a node has none",
                hint="bf.plot draws charts from frames",
                endpoint=request.endpoint,
            )
        self._index.refresh()
        if request.path == KEYS_PATH:
            return super().fetch(request)
        return encode_stated_head(request, self._index.head, self._index.chain_index.chain)

    def fetch_rows(
        self,
        endpoint: Endpoint,
        arguments: Sequence[Mapping[str, Any]],
        chain_head: ChainHead,
        served: ServedRange,
    ) -> Iterator[FetchedRows]:
        """Yield the rows of *endpoint*; what the index does not have is requested first."""
        with self._index.holding_head():
            calls = plan_calls(endpoint, arguments, chain_head)
            needs = self._index.find_needs(endpoint, calls)
            self._index.prepare(endpoint, needs)
            doubts = [
                *self._index.find_doubts(needs),
                *self._index.find_optimistic(needs),
                *self._index.find_unknown_proposers(calls, needs),
            ]
            for part in super().fetch_rows(endpoint, arguments, chain_head, served):
                yield part._replace(warnings=[*part.warnings, *doubts])
                doubts = []
