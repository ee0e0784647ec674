"""The base class of parameters: arguments of a loader, and the fields that requests send for them.

An endpoint lists its parameters once, in the order in which they select rows. How a dataset selects
the rows of their fields is in `answers.selectors`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

if TYPE_CHECKING:
    import polars as pl

    from beaconframes.endpoint.chain_head import ChainHead, End
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
class Parameter(ABC):
    """One argument, or a pair of them, and the fields that requests send for it.

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
    has_open_rows: ClassVar[bool] = False
    """Whether `mark_open_rows` changes rows."""
    resolves_pubkeys: ClassVar[bool] = False
    """Whether a subject by public key may be requested by its index instead."""
    may_shift: ClassVar[bool] = False
    """Whether rows may move between pages while the pages are read."""
    window_moves: ClassVar[bool] = False
    """Whether a service drops its oldest units as the chain grows; a dataset does not."""

    @property
    @abstractmethod
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

    @abstractmethod
    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the fields to send, one batch for each request."""

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

    @property
    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field of a request, by wire name."""
        return {}

    def public_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field on the public wire, where it permits more."""
        return self.field_schemas

    @property
    def required_fields(self) -> Collection[str]:
        """Return the fields that every request must have, beside those in the path."""
        return ()

    def public_fields(self, fields: Fields) -> Fields:
        """Return *fields* as the public service reads them: it replaces some invalid values."""
        return fields

    def omitted_fields(self, fields: Fields) -> Collection[str]:
        """Return the wire fields that are not in a response to *fields*."""
        return ()

    def mark_open_rows(self, rows: pl.DataFrame, chain_head: ChainHead) -> pl.DataFrame:
        """Return fetched *rows*, with marks on those whose outcome the chain head leaves open."""
        return rows

    def finish(self, rows: pl.DataFrame, values: Mapping[str, Any]) -> pl.DataFrame:
        """Return the rows of several requests as if one request had returned them."""
        return rows


class ColumnParameter(Parameter):
    """A parameter that selects rows by a column, which rows have unless it is None."""

    column: Column | None

    @property
    def rows_column(self) -> Column | None:
        """Return the column."""
        return self.column


class NamedParameter(Parameter):
    """A parameter of one argument, called ``arg``."""

    arg: str

    def arguments(self) -> tuple[str, ...]:
        """Return the one argument."""
        return (self.arg,)


class UnitRange(ColumnParameter):
    """A range of epochs or days, ``since`` and ``until``, up to the latest one."""

    role = Role.RANGE
    args = ("since", "until")
    finalized: bool = False

    def served_units(self, head: End, chain_head: ChainHead) -> range | None:
        """Return the units up to the latest one, or the latest finalized one."""
        assert self.column is not None
        unit: Any = self.column.unit
        return range(head.latest(unit, chain_head.chain, finalized=self.finalized) + 1)
