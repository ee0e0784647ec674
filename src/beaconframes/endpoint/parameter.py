"""The base class of parameters: arguments of a loader that select rows.

Each has two halves. The client's half, ``batches``, turns the user's value into wire fields. The
server's half, ``apply``, selects the rows of those fields. An endpoint lists its parameters once,
in the order in which they are applied.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias

import polars as pl

from beaconframes.errors import BeaconframesError

if TYPE_CHECKING:
    from beaconframes.calendar import Chain
    from beaconframes.endpoint.chain_head import ChainHead, End, Head
    from beaconframes.endpoint.request import Page
    from beaconframes.schema import Column

Fields: TypeAlias = Mapping[str, Any]
"""The fields of a request by wire name: texts in a path or a query, JSON values in a body."""

JsonSchema: TypeAlias = dict[str, Any]
"""A JSON Schema, as an OpenAPI document contains it."""

NATURAL: JsonSchema = {"type": "integer", "minimum": 0}
"""The JSON Schema of a whole number from 0 up."""


def permit_any_text(schemas: Mapping[str, JsonSchema]) -> dict[str, JsonSchema]:
    """Return *schemas* that permit any other text as well."""
    about = "Any other text stands for the default."
    return {
        name: {"anyOf": [schema, {"type": "string"}], "description": about}
        for name, schema in schemas.items()
    }


def describe_object(fields: JsonSchema, *required: str) -> JsonSchema:
    """Return the JSON Schema of an object with these *fields* and no others."""
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": fields, **needed, "additionalProperties": False}


class Role(Enum):
    """The kind of selection that a parameter makes."""

    SUBJECT = "the validators, addresses or names that rows are of"
    UNITS = "slots, blocks or periods, listed one by one"
    RANGE = "an interval of epochs, slots or days"
    FILTER = "some of the rows or columns of each subject and unit"
    ORDER = "the order of rows"
    PAGE = "a part of a list"
    CONTEXT = "the same in every request, such as the chain"


class RequestRefused(BeaconframesError):
    """A request that the local explorer refuses; the text is the error of the real service."""


class ObjectNotFound(RequestRefused):
    """A request for an object that does not exist."""


class SlotNotFinal(ObjectNotFound):
    """A request for a slot that is not finalized; the service states so in its answer."""


class View(Protocol):
    """The dataset, as far as the server's half of a parameter uses it."""

    @property
    def chain(self) -> Chain:
        """Return the chain of the dataset."""

    @property
    def head(self) -> Head:
        """Return the head of the chain in the dataset."""

    @property
    def drops_old_units(self) -> bool:
        """Return whether old units are refused, as by the public service."""

    @property
    def is_simulated(self) -> bool:
        """Return whether the chain is simulated: a table of events that is missing has no rows."""

    def index_of(self, pubkey: str) -> int | None:
        """Return the validator index of a public key, or None."""

    def pubkey_of(self, index: int) -> str | None:
        """Return the public key of a validator index, or None."""

    def scan(self, table: str, schema: pl.Schema | None = None) -> pl.LazyFrame:
        """Return the rows of another table, for results that need several.

        A table that does not exist is an error, or has no rows if its *schema* is given.
        """

    def derive(
        self,
        make_rows: Callable[[View], pl.LazyFrame],
        *,
        days: str | None = None,
        needs_all: bool = False,
    ) -> pl.LazyFrame:
        """Return the rows that *make_rows* makes of other tables, which several results need.

        *days* is a column of epochs by which they can be made of some days at a time. A result
        that *needs_all* has no use for a query that reads some of them.
        """

    def has_table(self, table: str) -> bool:
        """Return whether a table exists: what follows from another one is unknown, and not 0."""


@dataclass(frozen=True)
class ExpectedRows:
    """The rows that a request selects: those with one of the values in any of the columns.

    ``required`` says that each value must have at least one row; otherwise missing rows are not
    reported. ``trim`` is the range of units of which the service may return rows, if it returns
    more than requested: the others are dropped instead of being an error. ``pubkeys`` are subjects
    requested by public key if rows have no such column; then they can only be counted. ``parts`` is
    a column and the number of its values for each unit that is final, such as the 32 slots of an
    epoch.
    """

    values: Mapping[str, Collection[Any]]
    required: bool = True
    trim: range = range(0)
    pubkeys: Collection[str] = ()
    parts: tuple[str, int] | None = None


@dataclass(frozen=True)
class Batch:
    """The fields that one request sends for one parameter, and the rows that these select.

    ``record_count`` is how many records are read, where rows are not those expected.
    ``alternative`` selects the same rows by fields that every plan includes.
    """

    fields: Fields = field(default_factory=dict)
    expected: tuple[ExpectedRows, ...] = ()
    record_count: int | None = None
    alternative: Batch | None = None


@dataclass(frozen=True)
class Parameter:
    """One argument, or a pair of them, that selects rows.

    A subclass declares its ``role``. For a filter, ``filter_storage`` says how its result is
    stored: ``"shared"``, stored rows are complete and the filter is applied after the load;
    ``"separate"``, each value has a table of its own; ``"none"``, filtered rows are not stored.
    ``unfiltered`` is the value with which a shared filter lets all rows pass.
    """

    args: ClassVar[tuple[str, ...]] = ()
    filter_storage: ClassVar[Literal["shared", "separate", "none"]] = "separate"
    unfiltered: ClassVar[Any] = None
    has_finish: ClassVar[bool] = False
    """Whether `finish` changes rows."""
    selects_numbers: ClassVar[bool] = False
    """Whether a request selects the rows of `select_eligible` with the numbers in its fields.

    The local explorer then finds rows by the number in `rows_column`, without a query.
    """
    joins_batches: ClassVar[bool] = False
    """Whether several requests select the rows with any of their numbers, whatever the order.

    One query then finds the rows of all batches in a dataset.
    """
    resolves_pubkeys: ClassVar[bool] = False
    """Whether a subject by public key may be requested by its index instead."""
    has_open_rows: ClassVar[bool] = False
    """Whether `mark_open_rows` changes rows."""
    has_split: ClassVar[bool] = False
    """Whether `split` divides a batch."""
    may_shift: ClassVar[bool] = False
    """Whether rows may move between pages while the pages are read."""
    window_moves: ClassVar[bool] = False
    """Whether a service drops its oldest units as the chain grows; a dataset does not."""

    def __init_subclass__(cls) -> None:
        """Raise TypeError for a parameter type that declares no role."""
        super().__init_subclass__()
        if not hasattr(cls, "role"):
            raise TypeError(f"{cls.__name__} declares no role: give it one of {list(Role)}")
        if {"apply", "sort"} & vars(cls).keys() and "selects_numbers" not in vars(cls):
            # The inherited answer holds for the inherited methods.
            cls.selects_numbers = False
        if "apply" in vars(cls) and "joins_batches" not in vars(cls):
            cls.joins_batches = False

    if TYPE_CHECKING:

        @property
        def role(self) -> Role:
            """Return the role of the parameter."""

    @property
    def rows_column(self) -> Column | None:
        """Return the column by which rows are selected, if rows have it."""
        return None

    @property
    def pubkey_column(self) -> Column | None:
        """Return the column with the public key of a subject, if rows have it."""
        return None

    def choices(self, argument: str) -> tuple[str, ...]:
        """Return the values that *argument* can have; none if it can have any."""
        return ()

    @property
    def window(self) -> int | None:
        """Return how many consecutive units one request covers; None for any number."""
        return None

    @property
    def page_size(self) -> int | None:
        """Return how many records one page has at most; None if there are no pages."""
        return None

    def batch_limit(self, chain_head: ChainHead) -> int:
        """Return how many subjects one request may name."""
        return 1

    def arguments(self) -> tuple[str, ...]:
        """Return the names of the loader's arguments that belong to this parameter."""
        return self.args

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the fields to send, one batch for each request."""
        raise NotImplementedError  # pragma: no cover

    def requested_units(
        self, values: Mapping[str, Any], chain_head: ChainHead
    ) -> list[ExpectedRows] | None:
        """Return the units that *values* request; None if they are not known beforehand."""
        batches = self.batches(values, chain_head)
        if any(len(batch.expected) != 1 for batch in batches):
            return None
        return [batch.expected[0] for batch in batches]

    def served_units(self, head: End, chain_head: ChainHead) -> range | None:
        """Return the units that the service accepts at a *head*; None if it accepts all."""
        return None

    def page_count(self, records: int | None) -> tuple[int, bool]:
        """Return the number of pages of *records*, and whether it is exact or a minimum."""
        return 1, True

    def next_fields(self, fields: Fields, page: Page) -> Fields | None:
        """Return the fields of the request after *page*; None at the end."""
        return None

    def is_complete(self, batch: Batch, page: Page) -> bool:
        """Return whether the pages up to *page* have all rows of *batch*, whatever may follow."""
        return False

    def split(self, batch: Batch, batch_limit: int) -> list[Batch]:
        """Return *batch* in parts of at most *batch_limit* subjects."""
        return [batch]

    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field of a request, by wire name."""
        return {}

    def public_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field on the public wire, where it permits more."""
        return self.field_schemas()

    def required_fields(self) -> Collection[str]:
        """Return the fields that every request must have, beside those in the path."""
        return ()

    def public_fields(self, fields: Fields) -> Fields:
        """Return *fields* as the public service reads them: it replaces some invalid values."""
        return fields

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the *rows* that *fields* select; raise RequestRefused for invalid fields."""
        numbers = self.find_numbers(fields, view)
        assert numbers is not None
        assert self.rows_column is not None
        column = pl.col(self.rows_column.name)
        if isinstance(numbers, range):
            return rows.filter(column.is_between(numbers.start, numbers.stop - 1))
        # With a list instead, polars compares each value of a file with each number.
        return rows.filter(column.is_in(pl.Series(sorted(numbers), dtype=pl.Int64).implode()))

    def resolve(self, fields: Fields, view: View) -> set[int]:
        """Return the validator indices in *fields*, for a subject; or raise RequestRefused."""
        raise NotImplementedError  # pragma: no cover

    def find_numbers(self, fields: Fields, view: View) -> Collection[int] | None:
        """Return the numbers that *fields* select; None if rows must be selected by `apply`.

        Raises RequestRefused for invalid fields.
        """
        return None

    def select_eligible(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Return the *rows* that a request for their number selects, in the order of an answer."""
        return rows

    def slot_range(self, fields: Fields, view: View) -> tuple[int, int] | None:
        """Return the first and the last slot that *fields* select; None if they select none."""
        return None

    def apply_to_sums(self, rows: pl.LazyFrame, fields: Fields) -> pl.LazyFrame:
        """Return the sums that *fields* select, made from the rows that `apply` returned."""
        return rows

    def omitted_fields(self, fields: Fields) -> Collection[str]:
        """Return the wire fields that are not in a response to *fields*."""
        return ()

    def sort(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Return *rows* in the order in which the service sends them."""
        return rows

    def mark_open_rows(self, rows: pl.DataFrame, chain_head: ChainHead) -> pl.DataFrame:
        """Return fetched *rows*, with marks on those whose outcome the chain head leaves open."""
        return rows

    def finish(self, rows: pl.DataFrame, values: Mapping[str, Any]) -> pl.DataFrame:
        """Return the rows of several requests as if one request had returned them."""
        return rows
