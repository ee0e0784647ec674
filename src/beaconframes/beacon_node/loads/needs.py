"""Needs of a load: tables, epochs and validators of its rows; and what a node refuses."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import polars as pl

from beaconframes.answers.selection import find_stored_table
from beaconframes.answers.selectors import find_numbers, find_slots
from beaconframes.answers.selectors.set_members import resolve_members
from beaconframes.answers.v2 import ROWS
from beaconframes.beacon_node.capabilities import INDEX_HINT, WHOLE_REGISTRY
from beaconframes.beacon_node.tables import (
    DEPOSITS,
    EXECUTION_TABLES,
    GROWING_TABLES,
    INDEXED_TABLES,
    NODE_TABLES,
    READINGS,
    TABLES_BY_NAME,
)
from beaconframes.derive.attestation_efficiency import find_rated_epochs
from beaconframes.derive.derivations import DERIVATIONS
from beaconframes.endpoint import Envelope
from beaconframes.endpoint.absent_table import TableAbsent
from beaconframes.endpoint.identifiers import normalize_validator
from beaconframes.endpoint.validator_sets import IDENTIFIERS
from beaconframes.errors import NotFound, NotServed
from beaconframes.intervals import intervals_of
from beaconframes.v1 import ENDPOINTS
from beaconframes.v1.attestation_efficiency import AttestationEfficiency

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from beaconframes.beacon_node.connection import NodeConnection
    from beaconframes.calendar import Unit
    from beaconframes.derive.chain_tables import View
    from beaconframes.endpoint import Call, Endpoint, Head

VALIDATORS = "validators"
COMMITTEES = ("sync_committees", "sync_committee", "sync_committee_validators")
"""The endpoints with sync committees."""
LIST_HINT = "print(node) lists what this node can answer"
BY_EPOCH = frozenset(name for name, unit in GROWING_TABLES.items() if unit == "epoch")
"""Derived tables of which an epoch follows from this epoch alone."""

_SCHEMAS = {
    table.table_name: table.schema()
    for table in (*(each.table for each in ENDPOINTS), *(each.table for each in NODE_TABLES))
}
_SOURCES = {
    derivation.table.table_name: [
        next((name for name in names if name in TABLES_BY_NAME), names[0])
        for names in derivation.sources
    ]
    for derivation in DERIVATIONS
}
"""The tables from which a derived table follows."""


@dataclass(frozen=True)
class Needs:
    """What a load needs: *epochs* is None for all, *validators* for all of the chain."""

    tables: frozenset[str]
    epochs: frozenset[int] | None
    validators: frozenset[int] | None
    pubkeys: frozenset[str]
    addresses: frozenset[str]

    @property
    def indexed(self) -> list[str]:
        """Return the tables that are written epoch by epoch, in their order."""
        return [name for name in INDEXED_TABLES if name in self.tables]

    @property
    def derived(self) -> list[str]:
        """Return the tables that follow from others."""
        return [name for name in _SOURCES if name in self.tables and name not in INDEXED_TABLES]

    @property
    def others(self) -> list[str]:
        """Return the tables that a beacon node cannot answer."""
        return sorted(self.tables - TABLES_BY_NAME.keys())


class _TableRecorder:
    """A view without rows, which records the tables that are scanned."""

    is_simulated = False

    def __init__(self, view: View, can_answer: Callable[[str], bool]) -> None:
        self.view, self.tables = view, set[str]()
        self.chain, self.head = view.chain, view.head
        self.has_table = can_answer

    def scan(self, table: str, schema: pl.Schema | None = None) -> pl.LazyFrame:
        """Return no rows."""
        if schema is None:
            self.tables.add(table)
            schema = _SCHEMAS[table]
        return pl.LazyFrame(schema=schema)

    def derive(self, make_rows: Callable[[View], pl.LazyFrame], **_: object) -> pl.LazyFrame:
        """Return no rows, and record the tables that *make_rows* scans."""
        return make_rows(self)  # type: ignore[arg-type]


def find_needs(
    endpoint: Endpoint, calls: Iterable[Call], view: View, can_answer: Callable[[str], bool]
) -> Needs:
    """Return what *calls* of an *endpoint* need; *view* has the chain and its head.

    Where rows follow also without a table, *can_answer* decides whether it is needed.
    """
    listed = list(calls)
    tables = set(find_tables(endpoint, view, can_answer))
    derived = {name for name in tables if name in _SOURCES and name not in INDEXED_TABLES}
    for name in derived:
        tables |= set(_SOURCES[name])
    ranges = [list(find_epochs(endpoint, call, view)) for call in listed]
    epochs = None
    if derived == {AttestationEfficiency.table_name}:
        epochs = frozenset(find_rated_epochs(view.head))
    elif all(ranges) and derived <= BY_EPOCH:
        epochs = frozenset(epoch for parts in ranges for part in parts for epoch in part)
    indices, pubkeys = find_subjects(listed, view)
    expected = [rows.values for call in listed for rows in call.expected]
    addresses = {str(address) for values in expected for address in values.get("address", ())}
    return Needs(frozenset(tables), epochs, indices, pubkeys, frozenset(addresses))


def find_tables(endpoint: Endpoint, view: View, can_answer: Callable[[str], bool]) -> set[str]:
    """Return the tables from which the answers of *endpoint* are computed."""
    if endpoint.envelope is not Envelope.V2:
        return {find_stored_table(endpoint), VALIDATORS}
    recorder = _TableRecorder(view, can_answer)
    # The service states the reason of a refusal.
    with suppress(TableAbsent):
        ROWS[endpoint.name](recorder)  # type: ignore[arg-type]
    return {*recorder.tables, VALIDATORS}


def find_epochs(endpoint: Endpoint, call: Call, view: View) -> Iterator[range]:
    """Yield the epochs of a call; none if it states no epochs, slots, days or periods."""
    chain = view.chain
    for parameter, batch in zip(endpoint.all_parameters, call.batches, strict=True):
        slots = find_slots([parameter], call.fields, view)
        if slots is not None:
            size = chain.slots_per_epoch
            yield range(max(slots[0], 0) // size, max(slots[1], 0) // size + 1)
            continue
        selected = [expected.values for expected in batch.expected]
        if not selected and parameter.rows_column is not None:
            # A word such as "latest" instead of a number.
            found = find_numbers(parameter, call.fields, view)
            selected = [{parameter.rows_column.name: list(found or ())}]
        for values_by_column in selected:
            for column, values in values_by_column.items():
                numbers = [value for value in values if isinstance(value, int)]
                if (unit := find_unit(column)) is None:
                    continue
                for first, last in intervals_of(numbers):
                    # Day -1 has the deposits of genesis.
                    start = chain.at("slot", chain.time_of(unit, max(first, 0)))
                    end = chain.at("slot", chain.time_of(unit, last + 1)) - 1
                    size = chain.slots_per_epoch
                    yield range(start // size, end // size + 1)


@cache
def find_unit(column: str) -> Unit | None:
    """Return the unit of a column: a slot, an epoch, a day or a period."""
    units: tuple[Unit, ...] = ("slot", "epoch", "day", "period")
    for unit in units:
        if column == unit or column.endswith(f"_{unit}"):
            return unit
    return None


def find_subjects(
    calls: Iterable[Call], view: View
) -> tuple[frozenset[int] | None, frozenset[str]]:
    """Return the indices and the public keys of the requested validators; None: of all."""
    indices, pubkeys, has_subject = set[int](), set[str](), False
    for call in calls:
        members = call.fields.get("validator")
        if isinstance(members, dict):
            indices |= set(resolve_members(members, view))
            # The view knows the keys of earlier loads only.
            given = members.get(IDENTIFIERS, ())
            pubkeys |= {normalize_validator(key) for key in given if isinstance(key, str)}
            has_subject = True
        for expected in call.expected:
            indices |= {int(value) for value in expected.values.get("validator_index", ())}
            pubkeys |= {*expected.values.get("pubkey", ()), *expected.pubkeys}
            has_subject |= bool({"validator_index", "pubkey"} & expected.values.keys())
            has_subject |= bool(expected.pubkeys)
    return (frozenset(indices) if has_subject else None), frozenset(pubkeys)


def find_gap(node: NodeConnection, tables: Iterable[str]) -> tuple[int, str]:
    """Return the first epoch that the node can answer of *tables*, and why not earlier."""
    capabilities = node.capabilities
    starts = node.find_starts(INDEXED_TABLES.keys() & {*tables})
    first = max(starts.values(), default=0)
    if first <= capabilities.first_epoch:
        return first, ""
    return first, (
        f"before epoch {first}, the oldest that this node can answer: {capabilities.archive_hint}"
    )


@dataclass(frozen=True)
class Refusals:
    """Checks of a load, before it sends a request for its rows."""

    node: NodeConnection
    endpoint: Endpoint
    needs: Needs
    head: Head
    has_all_validators: bool

    def check(self) -> None:
        """Raise NotServed for tables that the node cannot answer, NotFound for a future period."""
        self._check_head()
        self._check_tables()
        self._check_registry()
        self._check_coverage()

    def _refuse(self, reason: str, hint: str) -> NotServed:
        return NotServed(reason, hint=hint, endpoint=self.endpoint.route)

    def _check_head(self) -> None:
        """Raise an error for a sync committee that is not drawn yet, or may be drawn again.

        The first slot of a period draws the committee of the next one.
        """
        if self.endpoint.name not in COMMITTEES or not self.needs.epochs:
            return
        size = self.node.chain.epochs_per_sync_period
        period, current = max(self.needs.epochs) // size, self.head.epoch // size
        drawn_in = (period - 1) * size
        if period > current + 1:
            reason = f"begins in epoch {period * size}, and the last epoch, {self.head.epoch}, is"
            reason = f"{reason} of period {current}"
        elif period > current and drawn_in > self.head.finalized_epoch:
            reason = f"may still change: epoch {drawn_in} is not final yet"
        else:
            return
        raise NotFound(
            f"load_{self.endpoint.name}: sync period {period} {reason}",
            hint="A node has the committees up to that of the next period; try again later",
            endpoint=self.endpoint.route,
        )

    def _check_tables(self) -> None:
        """Raise NotServed for tables that no node has, and for those that this one cannot answer.

        Some tables need an execution node.
        """
        name, needs = f"load_{self.endpoint.name}", self.needs
        of_execution = needs.tables & {*READINGS, *DEPOSITS}
        of_execution |= {self.endpoint.table.table_name} & EXECUTION_TABLES
        for table in [*needs.others, *sorted(of_execution)]:
            ability = self.node.capabilities.find_table(table)
            if ability.oldest_epoch is None:
                raise self._refuse(
                    f"{name} cannot be answered by a beacon node: {ability.reason}", LIST_HINT
                )
        for table in needs.indexed:
            ability = self.node.capabilities.find_table(table)
            if ability.oldest_epoch is None:
                raise self._refuse(f"this node cannot answer {name}: {ability.reason}", LIST_HINT)

    def _check_registry(self) -> None:
        """Raise NotServed for tables of all validators, if the index has only chosen ones."""
        needs = self.needs
        is_by_validator = any(INDEXED_TABLES[name].by_validator for name in needs.indexed)
        is_of_all = needs.tables & WHOLE_REGISTRY or (is_by_validator and needs.validators is None)
        if is_of_all and not self.has_all_validators:
            raise self._refuse(
                f"load_{self.endpoint.name} needs all validators of the chain", INDEX_HINT
            )

    def _check_coverage(self) -> None:
        """Raise NotServed for old epochs, if the response cannot say that they are missing."""
        endpoint, needs = self.endpoint, self.needs
        first, reason = find_gap(self.node, needs.indexed)
        old = [epoch for epoch in needs.epochs or () if epoch < first]
        if endpoint.name in COMMITTEES:
            # One state of a period has its committee.
            size = self.node.chain.epochs_per_sync_period
            old = [epoch for epoch in old if (epoch // size + 1) * size <= first]
        # These tables, and answers of V2, state no coverage.
        is_whole = BY_EPOCH & needs.tables or endpoint.envelope is Envelope.V2
        if old and is_whole and reason:
            raise self._refuse(
                f"load_{endpoint.name} needs epochs {min(old)} to {max(old)}, {reason}",
                f"Load epochs from {first} on",
            )
