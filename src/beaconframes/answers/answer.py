"""The answer of a dataset to the calls of a load: a frame in the schema of the loader."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from beaconframes.answers.selection import (
    build_envelope,
    find_drawn_epochs,
    find_stored_table,
    select_rows,
)
from beaconframes.answers.selectors import find_numbers
from beaconframes.answers.uncovered import find_uncovered, is_uncovered
from beaconframes.answers.v2 import RECORDS, STORED, SUMMARIES, UNSENT
from beaconframes.endpoint import (
    Envelope,
    ObjectNotFound,
    RequestRefused,
    Role,
    Shape,
    SlotNotFinal,
)
from beaconframes.schema import EnvelopeContext, Json
from beaconframes.schema.envelope_context import find_cell

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Sequence

    from beaconframes.answers.view import DatasetView
    from beaconframes.endpoint import Batch, Call, Endpoint, Fields, Parameter
    from beaconframes.endpoint.uncovered import Uncovered

BAD_REQUEST = "Bad request. Please check your input and try again."
NOT_FOUND = "The requested resource was not found."
"""The error messages of V2, which states few reasons."""

EXACTLY_ONE = {"yield_index", "sync_committees"}
"""Endpoints of V1 with exactly one record; the public service has an empty list instead of none."""

ROOT_LENGTH = 64
"""Digits of a block root."""


class Answer(NamedTuple):
    """The rows of calls, and the calls without rows."""

    rows: pl.DataFrame
    refused: list[tuple[Call, RequestRefused]]
    """The calls that are not valid, or whose object does not exist, with the reasons."""
    empty: list[Call]
    """The other calls without a row, of those that state no rows that must exist."""
    uncovered: list[tuple[Call, Uncovered]]
    """The calls whose units the dataset does not all cover, with these units."""


@dataclass
class Group:
    """Calls that differ only in numbers, so that one query finds the rows of all of them.

    *cells* are those of the columns that have one value in all rows of the group.
    """

    context: EnvelopeContext
    cells: dict[str, Any]
    calls: list[Call] = field(default_factory=list)
    numbers: dict[Parameter, dict[int, Collection[int]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """The numbers of each batch, by parameter."""

    def find_empty(self, endpoint: Endpoint, rows: pl.DataFrame) -> list[Call]:
        """Return the calls that have none of the *rows*, of those that state no required rows."""
        calls = self.calls
        if not is_object(endpoint) and endpoint.name not in EXACTLY_ONE:
            calls = [call for call in calls if not any(e.required for e in call.expected)]
        if not calls or len(self.calls) == 1:
            return calls if rows.is_empty() else []
        positions = {parameter: n for n, parameter in enumerate(endpoint.all_parameters)}
        empty: set[int] = set()
        for parameter, numbers in self.numbers.items():
            assert parameter.rows_column is not None
            present = set(rows[parameter.rows_column.name])
            absent = {name for name, part in numbers.items() if present.isdisjoint(part)}
            empty |= {id(c) for c in calls if id(c.batches[positions[parameter]]) in absent}
        return [call for call in calls if id(call) in empty]


class AnswerBuilder:
    """Answers calls of one endpoint from one view of a dataset."""

    def __init__(self, endpoint: Endpoint, view: DatasetView) -> None:
        """Answer from *view*; raise TableAbsent if it does not have the table of V1."""
        self.endpoint, self.view, self.table = endpoint, view, endpoint.table
        self.is_v2 = endpoint.envelope is Envelope.V2
        if not self.is_v2:
            view.table_cache.require(find_stored_table(endpoint))
        # The key of V2 is in the rows, except where the answer does not state it.
        columns = self.table.spec.context_columns
        self._context_columns = [c for c in columns if not (self.is_v2 and c.key) or c.nullable]
        self._is_single = (
            self.table.keeps_every_field or self.table.is_ranking or endpoint.name in SUMMARIES
        )
        """Whether each call has a query of its own: its rows have an order, or are sums."""
        self._found: dict[int, Collection[int] | RequestRefused | None] = {}

    def answer(self, calls: Sequence[Call]) -> Answer:
        """Return the answer to *calls*."""
        refused: list[tuple[Call, RequestRefused]] = []
        empty: list[Call] = []
        uncovered: dict[int, Uncovered] = {}
        parts = []
        for group in self._group(calls, refused):
            try:
                rows = self._read(group)
            except RequestRefused as refusal:
                refused += [(call, refusal) for call in group.calls]
                continue
            parts.append((group, rows))
            uncovered |= {id(call): self._find_uncovered(call.fields) for call in group.calls}
            for call in group.find_empty(self.endpoint, rows):
                reason = refuse_empty(self.endpoint, call.fields, uncovered[id(call)])
                if reason is None:
                    empty.append(call)
                else:
                    refused.append((call, reason))
        stated = [(call, uncovered.get(id(call), {})) for call in calls]
        return Answer(self._join(parts), refused, empty, [pair for pair in stated if pair[1]])

    def _group(
        self, calls: Sequence[Call], refused: list[tuple[Call, RequestRefused]]
    ) -> Iterable[Group]:
        """Return *calls* in groups; those that are not valid are added to *refused* instead."""
        groups: dict[Hashable, Group] = {}
        for n, call in enumerate(calls):
            pairs = list(zip(self.endpoint.all_parameters, call.batches, strict=True))
            numbers = [self._find_numbers(*pair) for pair in pairs]
            reason = next((found for found in numbers if isinstance(found, RequestRefused)), None)
            if reason is not None:
                refused.append((call, reason))
                continue
            drawn = find_drawn_epochs(self.endpoint, call.fields, self.view)
            try:
                context, cells = self._find_context(call)
            except ObjectNotFound as refusal:
                refused.append((call, refusal))
                continue
            others = (id(b) for (_, b), found in zip(pairs, numbers, strict=True) if found is None)
            name = (n,) if self._is_single else (drawn, *others, *cells.values())
            group = groups.setdefault(name, Group(context, cells))
            group.calls.append(call)
            for (parameter, batch), found in zip(pairs, numbers, strict=True):
                if found is not None and not isinstance(found, RequestRefused):
                    group.numbers[parameter][id(batch)] = found
        return groups.values()

    def _find_numbers(
        self, parameter: Parameter, batch: Batch
    ) -> Collection[int] | RequestRefused | None:
        """Return the numbers that *batch* selects, None for another selection, or the refusal."""
        if id(batch) not in self._found:
            found: Collection[int] | RequestRefused | None = None
            try:
                found = find_numbers(parameter, batch.fields, self.view)
            except RequestRefused as refusal:
                found = refusal
            for expected in batch.expected:
                if expected.trim and isinstance(found, range):
                    # The service returns more; the loader drops it.
                    (found,) = expected.values.values()
            self._found[id(batch)] = found
        return self._found[id(batch)]

    def _find_context(self, call: Call) -> tuple[EnvelopeContext, dict[str, Any]]:
        """Return what the answer to *call* states beside its records, and the cells from there."""
        members = {}
        if self.is_v2 and self._context_columns:
            members = build_envelope(self.endpoint, call.fields, self.view)
        context = EnvelopeContext(members, call.fields)
        cells = {
            column.name: find_cell(self.table.spec, column, column.context_paths, context)
            for column in self._context_columns
        }
        key = {c.name for c in self._context_columns if c.key} if self.is_v2 else set()
        return context, {n: cell for n, cell in cells.items() if n not in key or cell is None}

    def _read(self, group: Group) -> pl.DataFrame:
        """Return the rows of a *group*, in the schema of the table or of its records."""
        endpoint, table = self.endpoint, self.table
        joined = {parameter: list(found.values()) for parameter, found in group.numbers.items()}
        rows = select_rows(endpoint, [call.fields for call in group.calls], self.view, joined)
        if table.keeps_every_field:
            return rows.collect()
        omitted = endpoint.omitted_fields(group.calls[0].fields)
        if self.is_v2:
            omitted |= set(UNSENT.get(endpoint.name, ()))
        cells = {
            column.name: column.build([group.cells[column.name]]).item()
            for column in table.columns
            if column.name in group.cells
        }
        if omitted:
            cells |= {c.name: None for c in table.columns if omitted.intersection(c.wire_paths)}
        constants = [pl.lit(cell, table.schema()[name]).alias(name) for name, cell in cells.items()]
        complete = table.complete(rows.with_columns(constants), self.view.chain).collect()
        # Stored JSON may have other spaces and digits than a decoded response.
        return complete.with_columns(
            column.build([text and text.encode() for text in complete[column.name]])
            for column in table.columns
            if isinstance(column, Json)
        )

    def _join(self, parts: Sequence[tuple[Group, pl.DataFrame]]) -> pl.DataFrame:
        table, chain = self.table, self.view.chain
        if not table.keeps_every_field:
            return pl.concat([rows for _, rows in parts]) if parts else table.empty()
        # The columns are inferred from the records, whose shape is not published.
        records = RECORDS.get(self.endpoint.name, table)
        with_rows = [(group, rows) for group, rows in parts if not rows.is_empty()]
        pages = [records.encode(rows, chain) for _, rows in with_rows]
        return table.decode(pages, chain, [group.context for group, _ in with_rows])

    def _find_uncovered(self, fields: Fields) -> Uncovered:
        """Return the units of a call that the dataset does not cover; sums of V2 need all units."""
        if not self.is_v2:
            return find_uncovered(self.endpoint, fields, self.view)
        is_stored = self.endpoint.name in STORED
        return find_uncovered(self.endpoint, {}, self.view) if is_stored else {}


def is_object(endpoint: Endpoint) -> bool:
    """Return whether an answer is one record; an object of lists has pages, and may be empty."""
    return endpoint.shape is Shape.OBJECT and not endpoint.parameters_of(Role.PAGE)


def refuse_empty(
    endpoint: Endpoint, fields: Fields, uncovered: Uncovered | None = None
) -> RequestRefused | None:
    """Return the error for a request of an object that does not exist; None if it has none.

    There is none for an object that is *uncovered*, because it may exist.
    """
    if endpoint.envelope is Envelope.V2:
        return ObjectNotFound(f"no {endpoint.name}") if is_object(endpoint) else None
    is_root = endpoint.name == "slots" and len(fields["slot"]) >= ROOT_LENGTH
    if is_root or (uncovered and is_uncovered(endpoint, fields, uncovered)):
        return None
    if is_object(endpoint):
        return RequestRefused(endpoint.absent or "invalid request")
    return RequestRefused(endpoint.absent) if endpoint.name in EXACTLY_ONE else None


def describe_refusal(endpoint: Endpoint, refusal: RequestRefused) -> tuple[int, str]:
    """Return the status and the text of the service's error for a refused request."""
    if endpoint.envelope is not Envelope.V2:
        return 400, refusal.message
    if isinstance(refusal, ObjectNotFound):
        return 404, refusal.message if isinstance(refusal, SlotNotFinal) else NOT_FOUND
    return 400, BAD_REQUEST
