"""The declaration of an endpoint: route, table, parameters, finality."""

from __future__ import annotations

import json
import re
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
import polars as pl

from beaconframes.endpoint.identifiers import LONGEST_IN_A_PATH
from beaconframes.endpoint.parameter import Role
from beaconframes.endpoint.request import EMPTY_LIST, Envelope, Request
from beaconframes.errors import IntegrityError, NotFound, ResponseError
from beaconframes.schema import EnvelopeContext

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from beaconframes.active_periods import Lifetime
    from beaconframes.calendar import Chain
    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.endpoint.parameter import Batch, ExpectedRows, Fields, Parameter
    from beaconframes.endpoint.request import Page
    from beaconframes.schema import Table

PLACEHOLDER = re.compile(r"\{(\w+)\}")


class Finality(Enum):
    """The moment from which a row no longer changes."""

    NEVER = "never: it describes the present"
    AT_FINALITY = "once its epoch is finalized"
    WHEN_PUBLISHED = "as soon as it is published"


class Shape(Enum):
    """The JSON form of the data in a response."""

    LIST = "always a list"
    OBJECT = "one object"
    OBJECT_IF_SINGLE = "an object for one identifier, a list for several"


@dataclass(frozen=True)
class Post:
    """The POST form of a route: the same identifiers, in a field of a JSON body."""

    path: str
    arg: str
    field: str


@dataclass(frozen=True)
class Call:
    """One planned request, its fields, and the rows that they select.

    ``batches`` has one batch of each parameter; the request is built from them.
    """

    request: Request
    expected: tuple[ExpectedRows, ...]
    fields: Fields
    batches: tuple[Batch, ...] = ()


@dataclass(frozen=True)
class Endpoint:
    """One endpoint of the API: its route, its table, its parameters, its finality.

    Loader, request plan, data dictionary and local explorer read this one declaration. ``alias``
    is the path on the public service, where it differs from the specification. ``absent`` is the
    text of the error by which the service says that an object does not exist. ``accept`` is the
    media type of the response version that the table describes. With ``is_contiguous`` a gap
    between two final rows is an error; without it, units may have no row. ``lifetime`` says in
    which epochs a requested validator must have rows. ``replaced_by`` names the loaders to use
    instead, if the service will remove the endpoint, and ``cheaper`` one that needs fewer requests
    for long ranges.
    """

    name: str
    _: KW_ONLY
    route: str
    table: type[Table]
    parameters: tuple[Parameter, ...] = ()
    pagination: Parameter | None = None
    finality: Finality = Finality.NEVER
    envelope: Envelope = Envelope.V1
    shape: Shape = Shape.LIST
    post: Post | None = None
    alias: str | None = None
    absent: str = ""
    accept: str = ""
    is_contiguous: bool = False
    lifetime: Lifetime | None = None
    replaced_by: str = ""
    cheaper: str = ""

    @property
    def method(self) -> str:
        """Return GET or POST."""
        return self.route.partition(" ")[0]

    @property
    def path(self) -> str:
        """Return the path with its placeholders."""
        return self.route.partition(" ")[2]

    @property
    def all_parameters(self) -> tuple[Parameter, ...]:
        """Return all parameters, in the order in which they are applied."""
        return self.parameters if self.pagination is None else (*self.parameters, self.pagination)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the names of the loader's arguments."""
        return tuple(name for p in self.all_parameters for name in p.arguments())

    @property
    def final_rows(self) -> tuple[pl.Expr, ...]:
        """Return the conditions under which a row states that it is final."""
        return tuple(
            pl.col(column.name).is_in(column.final_when).fill_null(value=False)
            for column in self.table.columns
            if column.final_when
        )

    def parameters_of(self, *roles: Role) -> tuple[Parameter, ...]:
        """Return the parameters that have one of the *roles*."""
        return tuple(p for p in self.all_parameters if p.role in roles)

    def plan(
        self, values: Mapping[str, Any], chain_head: ChainHead, *, public: bool = False
    ) -> list[Call]:
        """Return the requests for the arguments *values*, in order.

        With *public* they use the public service's path of the endpoint.
        """
        choices = []
        for parameter in self.all_parameters:
            choices.append(parameter.batches(values, chain_head))
            if not choices[-1]:
                # No rows are requested, so the head of the chain is not needed either.
                return []
        return [self.call(batches, public=public) for batches in product(*choices)]

    def call(self, batches: tuple[Batch, ...], *, public: bool = False) -> Call:
        """Return the request that sends *batches*, one of each parameter."""
        fields = {name: value for batch in batches for name, value in batch.fields.items()}
        expected = tuple(rows for batch in batches for rows in batch.expected)
        return Call(self.request(fields, public=public), expected, fields, batches)

    def split(self, call: Call, batch_limit: int, *, public: bool = False) -> list[Call]:
        """Return *call* as calls of at most *batch_limit* subjects each."""
        pairs = zip(self.all_parameters, call.batches, strict=True)
        choices = [parameter.split(batch, batch_limit) for parameter, batch in pairs]
        if all(len(parts) == 1 for parts in choices):
            return [call]
        return [self.call(batches, public=public) for batches in product(*choices)]

    def find_alternative(self, call: Call, *, public: bool = False) -> Call | None:
        """Return *call* by fields that every plan includes; None if it has no others."""
        if all(batch.alternative is None for batch in call.batches):
            return None
        return self.call(tuple(b.alternative or b for b in call.batches), public=public)

    def next_page(self, call: Call, page: Page, *, public: bool = False) -> Call | None:
        """Return the call after *call*, whose response was *page*; None at the end."""
        if self.pagination is None or self.pagination.role is not Role.PAGE:
            return None
        try:
            fields = self.pagination.next_fields(call.fields, page)
        except ResponseError as error:
            error.endpoint = self.route
            raise
        pairs = zip(self.all_parameters, call.batches, strict=True)
        if fields is None or any(parameter.is_complete(batch, page) for parameter, batch in pairs):
            return None
        return Call(self.request(fields, public=public), call.expected, fields, call.batches)

    def count_pages(self, call: Call) -> tuple[int, bool]:
        """Return how many pages *call* has, and whether the number is exact or a minimum."""
        if self.pagination is None:
            return 1, True
        stated = [batch.record_count for batch in call.batches if batch.record_count is not None]
        return self.pagination.page_count(stated[0] if stated else self.count_rows([call]))

    def count_rows(self, calls: Iterable[Call]) -> int | None:
        """Return how many rows *calls* request; None unless they state the whole key of each."""
        key = set(self.table.key())
        count = 0
        for call in calls:
            requested: set[str] = set()
            is_counted = any(batch.record_count is not None for batch in call.batches)
            for expected in call.expected:
                if not expected.required or (expected.trim and not is_counted):
                    return None
                requested |= {*expected.values, *([expected.parts[0]] if expected.parts else [])}
            if not key <= requested:
                return None
            count += prod(
                (sum(map(len, expected.values.values())) + len(expected.pubkeys))
                * (expected.parts[1] if expected.parts else 1)
                for expected in call.expected
            )
        return count

    def request(self, fields: Fields, *, public: bool = False) -> Request:
        """Return the request that sends *fields*; in V2 all of them are in the body."""
        method, path, query, body = self.method, self.path, {}, None
        if self.envelope is Envelope.V2:
            body = msgspec.json.encode(fields)
        elif self.post is not None and len(fields[self.post.arg]) > LONGEST_IN_A_PATH:
            method, path = "POST", self.post.path
            body = json.dumps({self.post.field: fields[self.post.arg]}).encode()
        else:
            path = self.alias if public and self.alias else path
            in_path = set(PLACEHOLDER.findall(path))
            query = {name: text for name, text in fields.items() if name not in in_path}
        return Request(
            method,
            PLACEHOLDER.sub(lambda m: quote(fields[m[1]], safe=","), path),
            query=tuple(query.items()),
            body=body,
            endpoint=f"{method} {path}",
            envelope=self.envelope,
            absent=self.absent,
            accept=self.accept,
        )

    def mark_open_rows(self, rows: pl.DataFrame, chain_head: ChainHead) -> pl.DataFrame:
        """Return fetched *rows*, with marks on those whose outcome the chain head leaves open."""
        for parameter in self.all_parameters:
            if parameter.has_open_rows and not rows.is_empty():
                rows = parameter.mark_open_rows(rows, chain_head)
        return rows

    def check_rows(
        self,
        fetched: Sequence[tuple[Call, Page]],
        rows: pl.DataFrame,
        chain: Chain,
        answered: dict[int, Call],
    ) -> None:
        """Check the *rows* of *fetched* pages before they are used or stored.

        *answered* has the call of each earlier page of the load, by the hash of the page; the
        *fetched* pages are added.

        Raises
        ------
        NotFound
            A request for the latest object, which always exists, has no row. Other requests state
            the rows that they expect, so that empty responses are missing rows.
        IntegrityError
            A row contradicts an invariant of the table, or one response answers two requests.
        """
        for call, page in fetched:
            if EMPTY_LIST.fullmatch(page.data):
                continue
            # A proxy may mix up responses. The rows of one request are then missing.
            first = answered.setdefault(hash(page.data), call)
            is_repeated = first.batches is not call.batches
            if is_repeated and not self.may_answer(first, call, page, chain):
                are_stored = all(first is not other for other, _ in fetched)
                raise IntegrityError(
                    f"the service returned the same rows for two requests: {first.request.path} "
                    f"and {call.request.path}",
                    endpoint=self.route,
                    hint="Try again later. The rows of the first request may be in the store: "
                    f"delete them with bf.store().prune({self.table.table_name!r})"
                    if are_stored
                    else "Try again later. The responses were discarded, nothing was stored",
                )
        if rows.height < len(fetched):
            for call, page in fetched:
                if EMPTY_LIST.fullmatch(page.data):
                    self.check_has_record(call)
        self.table.check(rows, chain)

    def check_has_record(self, call: Call) -> None:
        """Raise NotFound for a *call* without a record, if it requests the latest object."""
        has_one = self.shape is Shape.OBJECT or self.is_contiguous
        is_certain = has_one and not self.parameters_of(Role.PAGE)
        if is_certain and not any(expected.required for expected in call.expected):
            raise NotFound(
                "the response has no record, where there is always one",
                endpoint=self.route,
                hint="The service may not have this data. Try again later",
            )

    def may_answer(self, call: Call, other: Call, page: Page, chain: Chain) -> bool:
        """Return whether *page* may be the response to both *call* and *other*."""
        in_records = {column.name for column in self.table.columns if column.wire_paths}
        for one, two in product(call.expected, other.expected):
            names = {name for rows in (one, two) for name, values in rows.values.items() if values}
            # A public key may be that of an index.
            if len(names) != 1 or not names <= in_records or one.pubkeys or two.pubkeys:
                continue
            name = names.pop()
            requested, others = (set(rows.values.get(name, ())) for rows in (one, two))
            if not (requested and others and requested.isdisjoint(others)):
                continue
            # Windows that overlap may both have only the rows of the units that they share.
            first = max(one.trim.start, two.trim.start)
            last = min(one.trim.stop, two.trim.stop) - 1
            if not self.decode([(call, page)], chain)[name].is_between(first, last).all():
                return False
        return True

    def decode(self, fetched: Sequence[tuple[Call, Page]], chain: Chain) -> pl.DataFrame:
        """Return the rows of all *fetched* pages, each with the call that requested it."""
        contexts = []
        if self.table.spec.context_columns:
            contexts = [
                EnvelopeContext(page.envelope_fields, call.fields) for call, page in fetched
            ]
        return self.table.decode((page.data for _, page in fetched), chain, contexts)

    def omitted_fields(self, fields: Fields) -> set[str]:
        """Return the wire fields that are not in a response to *fields*."""
        return {name for p in self.all_parameters for name in p.omitted_fields(fields)}
