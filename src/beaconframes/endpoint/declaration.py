"""An endpoint: its facts, stated once."""

from __future__ import annotations

import json
import re
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from itertools import product
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
import polars as pl

from beaconframes.endpoint.request import Envelope, Request
from beaconframes.errors import ResponseError
from beaconframes.schema import EnvelopeContext, RequestField

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from beaconframes.calendar import Chain
    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.endpoint.parameter import Batch, Fields, Parameter, View, Wanted
    from beaconframes.endpoint.request import Page
    from beaconframes.schema import Table

PLACEHOLDER = re.compile(r"\{(\w+)\}")


class Final(Enum):
    """From when on a row can no longer change."""

    NEVER = "never: it describes the present"
    AT_FINALITY = "once its epoch is finalized"
    WHEN_PUBLISHED = "as soon as it is published"


class Shape(Enum):
    """How the specification writes the data of an answer."""

    LIST = "always a list"
    OBJECT = "one object"
    OBJECT_IF_ALONE = "an object for one identifier, a list for several"


@dataclass(frozen=True)
class Post:
    """The POST twin of a route: the same identifiers, in a field of a JSON body."""

    path: str
    arg: str
    field: str


@dataclass(frozen=True)
class Call:
    """One planned request, the fields that it sends, and the rows that these select.

    ``batches`` are what each selector said, from which the request was made.
    """

    request: Request
    wanted: tuple[Wanted, ...]
    fields: Fields
    batches: tuple[Batch, ...] = ()


@dataclass(frozen=True)
class Endpoint:
    """One endpoint of the API: what it is called, what its rows are, how they are asked for.

    Loader, request plan, data dictionary and local explorer all read this one declaration.
    ``alias`` is the path by which the public service knows it, where the specification has
    another; ``absent`` the words of the error by which it says that there is no such thing.
    ``accept`` is the media type that asks for the version of the answer that the table describes.
    ``unbroken`` says that rows follow one another without a break, so that a final one which lacks
    between two others is a fault; elsewhere the service may have no row in the middle.
    """

    name: str
    _: KW_ONLY
    route: str
    table: type[Table]
    parameters: tuple[Parameter, ...] = ()
    pagination: Parameter | None = None
    finality: Final = Final.NEVER
    envelope: Envelope = Envelope.V1
    shape: Shape = Shape.LIST
    post: Post | None = None
    alias: str | None = None
    absent: str = ""
    accept: str = ""
    unbroken: bool = False

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
        """Return every selector in the order in which rows are narrowed."""
        return self.parameters if self.pagination is None else (*self.parameters, self.pagination)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the names of the loader's arguments."""
        return tuple(name for s in self.all_parameters for name in s.arguments())

    def plan(
        self, values: Mapping[str, Any], chain_head: ChainHead, *, public: bool = False
    ) -> list[Call]:
        """Return the requests that the arguments *values* take, in order.

        With *public* they go by the public service's name of the endpoint.
        """
        choices = []
        for parameter in self.all_parameters:
            choices.append(parameter.batches(values, chain_head))
            if not choices[-1]:
                # Nothing is asked for: nobody has to be asked where the chain ends either.
                return []
        return [self.call(batches, public=public) for batches in product(*choices)]

    def call(self, batches: tuple[Batch, ...], *, public: bool = False) -> Call:
        """Return the request that says what *batches* say, one of each selector."""
        fields = {name: value for batch in batches for name, value in batch.fields.items()}
        wanted = tuple(w for batch in batches for w in batch.wanted)
        return Call(self.request(fields, public=public), wanted, fields, batches)

    def parts(self, call: Call, at_most: int, *, public: bool = False) -> list[Call]:
        """Return *call* as calls of at most so many subjects each: itself if it is one already."""
        said = zip(self.all_parameters, call.batches, strict=True)
        choices = [parameter.parts(batch, at_most) for parameter, batch in said]
        if all(len(parts) == 1 for parts in choices):
            return [call]
        return [self.call(batches, public=public) for batches in product(*choices)]

    def next_page(self, call: Call, page: Page, *, public: bool = False) -> Call | None:
        """Return the call after *call*, which brought *page*; None at the end."""
        if self.pagination is None:
            return None
        try:
            fields = self.pagination.follow(call.fields, page)
        except ResponseError as error:
            error.endpoint = self.route
            raise
        if fields is None:
            return None
        return Call(self.request(fields, public=public), call.wanted, fields, call.batches)

    def request(self, fields: Fields, *, public: bool = False) -> Request:
        """Return the request that sends *fields*: generation 2 takes all of them in its body."""
        if self.envelope is Envelope.V2:
            return Request(
                self.method,
                self.path,
                body=msgspec.json.encode(fields),
                endpoint=self.route,
                envelope=self.envelope,
                absent=self.absent,
                accept=self.accept,
            )
        if self.post is not None and len(fields[self.post.arg]) > LONGEST_IN_A_PATH:
            return Request(
                "POST",
                self.post.path,
                body=json.dumps({self.post.field: fields[self.post.arg]}).encode(),
                endpoint=f"POST {self.post.path}",
                envelope=self.envelope,
                absent=self.absent,
            )
        path = self.alias if public and self.alias else self.path
        in_path = set(PLACEHOLDER.findall(path))
        return Request(
            self.method,
            PLACEHOLDER.sub(lambda m: quote(fields[m[1]], safe=","), path),
            query=tuple((n, text) for n, text in fields.items() if n not in in_path),
            endpoint=f"{self.method} {path}",
            envelope=self.envelope,
            absent=self.absent,
        )

    def decode(self, found: Iterable[tuple[Call, Page]], chain: Chain) -> pl.DataFrame:
        """Return the rows of all pages *found*, each with the call that brought it."""
        if any(column.context for column in self.table.columns):
            pages = list(found)
            around = [EnvelopeContext(page.beside, call.fields) for call, page in pages]
            return self.table.decode((page.data for _, page in pages), chain, around)
        asked = [column for column in self.table.columns if isinstance(column, RequestField)]
        if not asked:
            return self.table.decode((page.data for _, page in found), chain)
        frames = [
            self.table.decode([page.data], chain).with_columns(
                pl.col(column.name).fill_null(pl.lit(call.fields[column.field])) for column in asked
            )
            for call, page in found
        ]
        return pl.concat([self.table.empty(), *frames])

    def leaves_out(self, fields: Fields) -> set[str]:
        """Return the wire fields that an answer to *fields* does not have."""
        return {name for parameter in self.all_parameters for name in parameter.leaves_out(fields)}

    def select(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the *rows* that a request with *fields* selects: the server's half."""
        for parameter in self.all_parameters:
            rows = parameter.apply(rows, fields, view)
        return self.in_order(rows)

    def in_order(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Return *rows* in the order in which the service sends them."""
        for parameter in self.all_parameters:
            rows = parameter.in_order(rows)
        return rows


LONGEST_IN_A_PATH = 7_500
"""Characters of identifiers that still make a URL which every proxy takes (8 KiB in all)."""
