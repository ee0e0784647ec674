"""Parameters of V1 that several endpoints share: validators, numbers, texts, ranges."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from beaconframes.endpoint import identifiers
from beaconframes.endpoint.parameter import (
    NATURAL,
    Batch,
    ExpectedRows,
    Fields,
    JsonSchema,
    Parameter,
    RequestRefused,
    Role,
    View,
)
from beaconframes.errors import UsageError
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from beaconframes.endpoint.chain_head import ChainHead, End
    from beaconframes.schema import Column

UNRESOLVED = "did not resolve to a validator index"
"""The service's message when no identifier is the index or the public key of a validator."""

ADDRESS = r"0x[0-9a-fA-F]{40}"
TRANSACTION = r"0x[0-9a-fA-F]{64}"
CREDENTIALS = r"0x[0-9a-fA-F]{64}"
ENS_NAME = r"[^/?#\s]{3,}\.eth"
BARE_HEX = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""An address, a transaction or credentials without the 0x in front."""

HEX = re.compile(r"0x([0-9a-f]{2})*", re.ASCII | re.IGNORECASE)
UNKNOWN_PUBKEY = "0x" + "00" * 48
"""A public key that no validator has: it is not a point of the curve."""


PUBKEY = r"(0[xX])?[0-9a-fA-F]{96}"


def describe_list(about: str, *patterns: str) -> JsonSchema:
    """Return the JSON Schema of items that match one of the *patterns*, separated by commas."""
    item = f"({'|'.join(patterns)})"
    about = f"{about} Separated by commas."
    return {"type": "string", "pattern": f"^{item}(,{item})*$", "description": about}


def is_short_pubkey(text: str) -> bool:
    """Return whether *text* is hex of another length than that of a public key."""
    return HEX.fullmatch(text) is not None and not identifiers.is_pubkey(text)


@dataclass(frozen=True)
class Identifiers(Parameter):
    """Validators by index or public key, in batches; ``arg`` is also the path placeholder.

    ``required`` says that each validator must have rows; endpoints of events do not require any.
    """

    arg: str
    column: Column
    _: KW_ONLY
    pubkey: Column | None = None
    at_most: int = 100
    longest: int | None = identifiers.LONGEST_IN_A_PATH
    required: bool = True

    role = Role.SUBJECT
    resolves_pubkeys = True
    selects_numbers = True
    joins_batches = True
    has_split = True

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the validator."""
        return self.column

    @property
    def pubkey_column(self) -> Column | None:
        """Return the column of the public key."""
        return self.pubkey

    def batch_limit(self, chain_head: ChainHead) -> int:
        """Return how many validators one request may name."""
        return min(self.at_most, chain_head.batch_limit)

    def arguments(self) -> tuple[str, ...]:
        """Return the one argument."""
        return (self.arg,)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return batches of at most ``at_most`` identifiers that fit into a URL."""
        items = identifiers.normalize_validators(values[self.arg])
        return self.divide(items, min(self.at_most, chain_head.batch_limit))

    def split(self, batch: Batch, batch_limit: int) -> list[Batch]:
        """Return *batch* in parts of at most *batch_limit* identifiers."""
        return self.divide(batch.fields[self.arg].split(","), batch_limit)

    def divide(self, items: list[str], at_most: int) -> list[Batch]:
        """Return *items* in batches of *at_most* that fit into a URL."""
        return [
            Batch({self.arg: ",".join(batch)}, self.expected(batch))
            for batch in identifiers.split_into_batches(items, at_most, self.longest)
        ]

    def expected(self, batch: list[str]) -> tuple[ExpectedRows, ...]:
        """Return the rows expected for the indices and public keys of *batch*."""
        indices = [int(item) for item in batch if not item.startswith("0x")]
        pubkeys = [item for item in batch if item.startswith("0x")]
        if self.pubkey is not None:
            by_column: dict[str, list[Any]] = {
                self.column.name: indices,
                self.pubkey.name: pubkeys,
            }
            return (ExpectedRows(by_column, self.required),)
        return (ExpectedRows({self.column.name: indices}, self.required, pubkeys=pubkeys),)

    def public_fields(self, fields: Fields) -> Fields:
        """Return *fields* with an unknown public key for each hex text of another length."""
        if self.arg not in fields:  # A query can omit it; a path cannot.
            return fields
        items = [
            UNKNOWN_PUBKEY if is_short_pubkey(item) else item
            for item in fields[self.arg].split(",")
        ]
        return {**fields, self.arg: ",".join(items)}

    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        about = f"Indices and public keys of validators: at most {self.at_most}."
        return {self.arg: describe_list(about, "[0-9]+", PUBKEY)}

    def public_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field; hex of any length is an unknown public key."""
        about = f"Indices and public keys of validators: at most {self.at_most}."
        return {self.arg: describe_list(about, "[0-9]+", PUBKEY, "0[xX]([0-9a-fA-F]{2})*")}

    def find_numbers(self, fields: Fields, view: View) -> Collection[int] | None:
        """Return the indices of the identified validators."""
        return self.resolve(fields, view)

    def resolve(self, fields: Fields, view: View) -> set[int]:
        """Return the validator indices in a request; raise RequestRefused if all are unknown."""
        indices, pubkeys = self.parse(fields)
        known = {*indices, *(n for key in pubkeys if (n := view.index_of(key)) is not None)}
        if not known:
            raise RequestRefused(f"invalid validator argument, pubkey(s) {UNRESOLVED}")
        return known

    def parse(self, fields: Fields) -> tuple[list[int], list[str]]:
        """Return the indices and the public keys in a request, or raise RequestRefused."""
        items = fields[self.arg].split(",")
        if len(items) > self.at_most:
            raise RequestRefused(f"only a maximum of {self.at_most} query parameters are allowed")
        indices, pubkeys = [], []
        for item in items:
            if identifiers.is_pubkey(item):
                pubkeys.append(f"0x{item.lower().removeprefix('0x')}")
            elif (index := identifiers.parse_number(item)) is not None:
                indices.append(index)
            else:
                raise RequestRefused(f"invalid validator-parameter: {item}")
        return indices, pubkeys


@dataclass(frozen=True)
class Numbers(Parameter):
    """A list of numbers, such as slots or periods: one request for each.

    ``tags`` are the words that the service accepts instead of a number.
    """

    arg: str
    column: Column
    _: KW_ONLY
    wire: str
    tags: tuple[str, ...] = ("latest",)
    error: str = "invalid request"
    role: Literal[Role.UNITS, Role.SUBJECT] = Role.UNITS
    selects_numbers = True
    joins_batches = True

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the number."""
        return self.column

    def arguments(self) -> tuple[str, ...]:
        """Return the one argument."""
        return (self.arg,)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each number or word."""
        numbers = identifiers.parse_numbers(values[self.arg], self.arg, self.tags)
        for item in numbers:
            if isinstance(item, int) and self.column.unit == "slot":
                chain_head.check_not_future("slot", item)
        return [
            Batch({self.wire: str(item)}, (ExpectedRows({self.column.name: [item]}),))
            if isinstance(item, int)
            else Batch({self.wire: item})
            for item in numbers
        ]

    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        return {self.wire: describe_number(self.tags)}

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the one number."""
        return filter_number(self.column, rows, self.parse(fields, view))

    def find_numbers(self, fields: Fields, view: View) -> Collection[int] | None:
        """Return the one number, or None for the latest day."""
        number = self.parse(fields, view)
        return None if number is None else (number,)

    def resolve(self, fields: Fields, view: View) -> set[int]:
        """Return the one number."""
        return set(self.find_numbers(fields, view) or ())

    def parse(self, fields: Fields, view: View) -> int | None:
        """Return the number in *fields*, or None for the latest day."""
        return parse_number_or_tag(self.column, fields[self.wire], self.tags, view, self.error)


def describe_number(tags: tuple[str, ...]) -> JsonSchema:
    """Return the JSON Schema of a number, or of one of the *tags* in its place."""
    return {"anyOf": [NATURAL, {"type": "string", "enum": list(tags)}]} if tags else NATURAL


def parse_number_or_tag(
    column: Column, text: str, tags: tuple[str, ...], view: View, error: str
) -> int | None:
    """Return the number in *text*, or that of a tag such as "latest"; None for the latest day."""
    if text in tags:
        unit: Any = column.unit
        if text == "next":
            return view.head.latest(unit, view.chain) + 1
        if unit == "day":
            return None
        return view.head.latest(unit, view.chain, finalized=text == "finalized")
    if (number := identifiers.parse_number(text)) is None:
        raise RequestRefused(error)
    return number


def filter_number(column: Column, rows: pl.LazyFrame, number: int | None) -> pl.LazyFrame:
    """Return the rows with this *number*, or with the largest one if it is None."""
    cells = pl.col(column.name)
    return rows.filter(cells == (cells.max() if number is None else number))


@dataclass(frozen=True)
class Texts(Parameter):
    """Subjects given as texts that match ``pattern``, one per request.

    ``what`` describes such a text in an error. ``column`` is the column of the text, if rows have
    it; then completeness is checked by it.
    """

    arg: str
    _: KW_ONLY
    wire: str
    pattern: str
    what: str
    column: Column | None = None
    error: str = "invalid request"

    role = Role.SUBJECT

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the text."""
        return self.column

    def arguments(self) -> tuple[str, ...]:
        """Return the one argument."""
        return (self.arg,)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each text, in lower case and without duplicates."""
        items = identifiers.iterate_items(values[self.arg])
        texts = dict.fromkeys(self.check(item) for item in items)
        if self.column is None:
            return [Batch({self.wire: text}) for text in texts]
        return [
            Batch({self.wire: text}, (ExpectedRows({self.column.name: [text]}),)) for text in texts
        ]

    def check(self, item: Any) -> str:
        """Return one text as it is sent, or raise UsageError."""
        text = self.canonical(item) if isinstance(item, str) else ""
        if not re.fullmatch(self.pattern, text):
            raise UsageError(f"{self.arg}={shorten(item)} is not {self.what}")
        return text

    @staticmethod
    def canonical(text: str) -> str:
        """Return *text* in the one form in which it is sent and compared."""
        lower = text.lower()
        return f"0x{lower}" if BARE_HEX.fullmatch(lower) else lower

    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        pattern = self.pattern.replace("0x[", "(?:0[xX])?[")
        return {self.wire: {"type": "string", "pattern": f"^(?:{pattern})$"}}

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the subject."""
        text = self.canonical(fields[self.wire])
        if not re.fullmatch(self.pattern, text):
            raise RequestRefused(self.error)
        return rows if self.column is None else rows.filter(pl.col(self.column.name) == text)


@dataclass(frozen=True)
class EpochWindow(Parameter):
    """At most 100 epochs per request, counted back by ``latest_epoch``, ``offset``, ``limit``."""

    column: Column
    _: KW_ONLY
    at_most: int = 100
    finalized: bool = False

    role = Role.RANGE
    args = ("since", "until")
    joins_batches = True

    @property
    def window(self) -> int | None:
        """Return how many epochs one request covers."""
        return self.at_most

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the range's unit."""
        return self.column

    def served_units(self, head: End, chain_head: ChainHead) -> range | None:
        """Return the epochs up to the latest one."""
        return range(head.latest("epoch", chain_head.chain, finalized=self.finalized) + 1)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the fewest windows that cover the range. Default: the last ``at_most`` epochs."""
        span = chain_head.span(
            values["since"], values["until"], "epoch", length=self.at_most, finalized=self.finalized
        )
        windows = []
        for first in range(span.first, span.last + 1, self.at_most):
            last = min(first + self.at_most - 1, span.last)
            fields = {"latest_epoch": str(last), "limit": str(last - first + 1)}
            windows.append(
                Batch(fields, (ExpectedRows({self.column.name: range(first, last + 1)}),))
            )
        return windows

    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        limit = {"type": "integer", "minimum": 1, "maximum": self.at_most}
        return {"latest_epoch": NATURAL, "offset": NATURAL, "limit": limit}

    def find_numbers(self, fields: Fields, view: View) -> range:
        """Return the epochs of the window."""
        newest = view.head.latest("epoch", view.chain, finalized=self.finalized)
        latest = parse_field(
            fields, "latest_epoch", newest, 0, newest, "invalid latest epoch parameter"
        )
        offset = parse_field(fields, "offset", 0, 0, latest, "invalid offset parameter")
        limit = parse_field(
            fields, "limit", self.at_most, 1, self.at_most, "invalid limit parameter"
        )
        last = latest - offset
        return range(last - limit + 1, last + 1)

    def sort(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Return *rows* sorted by epoch, newest first, and then by validator."""
        return sort_newest_first(rows, self.column)


@dataclass(frozen=True)
class UnitPerRequest(Parameter):
    """A range with one request for each epoch or day.

    ``wire`` is the placeholder in the path. It also takes the words in ``tags``.
    """

    column: Column
    _: KW_ONLY
    wire: str
    tags: tuple[str, ...] = ("latest",)
    error: str = "invalid request"
    refuses_future: bool = False

    role = Role.RANGE
    args = ("since", "until")
    selects_numbers = True
    joins_batches = True

    @property
    def window(self) -> int | None:
        """Return 1: one number per request."""
        return 1

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the range's unit."""
        return self.column

    def served_units(self, head: End, chain_head: ChainHead) -> range | None:
        """Return the epochs or days up to the latest one."""
        unit: Any = self.column.unit
        return range(head.latest(unit, chain_head.chain) + 1)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return one batch for each number of the range. Default: the latest number."""
        unit: Any = self.column.unit
        since, until = values["since"], values["until"]
        if since is None and until is None:
            return [Batch({self.wire: "latest"})]
        span = chain_head.span(since, until, unit, length=1)
        return [
            Batch({self.wire: str(n)}, (self.expected(n, chain_head),))
            for n in range(span.first, span.last + 1)
        ]

    def expected(self, number: int, chain_head: ChainHead) -> ExpectedRows:
        """Return the rows that one *number* selects."""
        return ExpectedRows({self.column.name: [number]})

    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        return {self.wire: describe_number(self.tags)}

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the one number."""
        return filter_number(self.column, rows, self.parse(fields, view))

    def find_numbers(self, fields: Fields, view: View) -> Collection[int] | None:
        """Return the one number, or None for the latest day."""
        number = self.parse(fields, view)
        return None if number is None else (number,)

    def parse(self, fields: Fields, view: View) -> int | None:
        """Return the number in *fields*, or None for the latest day."""
        text = fields[self.wire]
        unit: Any = self.column.unit
        number = identifiers.parse_number(text)
        newest = view.head.latest(unit, view.chain)
        if self.refuses_future and number is not None and number > newest:
            raise RequestRefused(self.error)
        return parse_number_or_tag(self.column, text, self.tags, view, self.error)


@dataclass(frozen=True)
class LastEpochs(Parameter):
    """A range in requests for the ``length`` epochs that end with the epoch in the field ``wire``.

    The service always returns all of them. Rows outside of the requested range are dropped.
    """

    column: Column
    _: KW_ONLY
    length: int
    wire: str = "epoch"

    role = Role.RANGE
    args = ("since", "until")
    joins_batches = True

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the range's unit."""
        return self.column

    @property
    def window(self) -> int | None:
        """Return how many epochs one request covers."""
        return self.length

    def served_units(self, head: End, chain_head: ChainHead) -> range | None:
        """Return the epochs up to the latest one."""
        return range(head.latest("epoch", chain_head.chain) + 1)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the fewest windows that cover the range. Default: the last ``length`` epochs."""
        span = chain_head.span(values["since"], values["until"], "epoch", length=self.length)
        batches = []
        for last in range(span.last, span.first - 1, -self.length):
            first = max(last - self.length + 1, span.first)
            # One route returns one epoch more, and takes an epoch before its first whole window as
            # the end of that window.
            returned = range(max(last - self.length, 0), max(last, self.length) + 1)
            wanted = ExpectedRows(
                {self.column.name: range(first, last + 1)}, required=False, trim=returned
            )
            batches.append(Batch({self.wire: str(last)}, (wanted,)))
        return batches

    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        return {self.wire: NATURAL}

    def find_numbers(self, fields: Fields, view: View) -> range:
        """Return the epochs of the window."""
        newest = view.head.latest("epoch", view.chain)
        last = parse_field(fields, self.wire, newest, 0, None, f"invalid {self.wire} parameter")
        return range(last - self.length + 1, last + 1)


def parse_field(
    fields: Fields, name: str, default: int, low: int, high: int | None, error: str
) -> int:
    """Return the field *name* as a number from *low* to *high*, or raise RequestRefused."""
    if name not in fields:
        return default
    number = identifiers.parse_number(fields[name])
    if number is None or number < low or (high is not None and number > high):
        raise RequestRefused(error)
    return number


def sort_newest_first(rows: pl.LazyFrame, epoch: Column) -> pl.LazyFrame:
    """Return *rows* sorted by epoch, newest first, and then by validator."""
    return rows.sort(epoch.name, "validator_index", descending=[True, False])
