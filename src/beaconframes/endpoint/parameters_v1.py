"""Parameters of V1 that several endpoints share: validators, numbers, texts, ranges."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from beaconframes.endpoint import identifiers
from beaconframes.endpoint.parameter import (
    NATURAL,
    Batch,
    ColumnParameter,
    ExpectedRows,
    Fields,
    JsonSchema,
    NamedParameter,
    Role,
    UnitRange,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.schema import Column

UNRESOLVED = "did not resolve to a validator index"
"""The service's message when no identifier is the index or the public key of a validator."""

HEX = re.compile(r"0x([0-9a-f]{2})*", re.ASCII | re.IGNORECASE)
UNKNOWN_PUBKEY = "0x" + "00" * 48
"""A public key that no validator has: it is not a point of the curve."""


PUBKEY = r"(0[xX])?[0-9a-fA-F]{96}"


def describe_list(about: str, *patterns: str) -> JsonSchema:
    """Return the JSON Schema of items that match one of the *patterns*, separated by commas."""
    item = f"({'|'.join(patterns)})"
    about = f"{about} Separated by commas."
    return {"type": "string", "pattern": f"^{item}(,{item})*$", "description": about}


@dataclass(frozen=True)
class Identifiers(NamedParameter, ColumnParameter):
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

    @property
    def pubkey_column(self) -> Column | None:
        """Return the column of the public key."""
        return self.pubkey

    def batch_limit(self, chain_head: ChainHead) -> int:
        """Return how many validators one request may name."""
        return min(self.at_most, chain_head.batch_limit)

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
            UNKNOWN_PUBKEY if HEX.fullmatch(item) and not identifiers.is_pubkey(item) else item
            for item in fields[self.arg].split(",")
        ]
        return {**fields, self.arg: ",".join(items)}

    @property
    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        about = f"Indices and public keys of validators: at most {self.at_most}."
        return {self.arg: describe_list(about, "[0-9]+", PUBKEY)}

    def public_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field; hex of any length is an unknown public key."""
        about = f"Indices and public keys of validators: at most {self.at_most}."
        return {self.arg: describe_list(about, "[0-9]+", PUBKEY, "0[xX]([0-9a-fA-F]{2})*")}


@dataclass(frozen=True)
class Numbers(NamedParameter, ColumnParameter):
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

    @property
    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        return {self.wire: describe_number(self.tags)}


def describe_number(tags: tuple[str, ...]) -> JsonSchema:
    """Return the JSON Schema of a number, or of one of the *tags* in its place."""
    return {"anyOf": [NATURAL, {"type": "string", "enum": list(tags)}]} if tags else NATURAL


@dataclass(frozen=True)
class EpochWindow(UnitRange):
    """At most 100 epochs per request, counted back by ``latest_epoch``, ``offset``, ``limit``."""

    column: Column
    _: KW_ONLY
    finalized: bool = False

    window = 100
    field_schemas: ClassVar = {
        "latest_epoch": NATURAL,
        "offset": NATURAL,
        "limit": {"type": "integer", "minimum": 1, "maximum": window},
    }

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the fewest windows that cover the range."""
        epochs = self.epochs(values, chain_head)
        windows = []
        for start in range(0, len(epochs), self.window):
            part = epochs[start : start + self.window]
            fields = {"latest_epoch": str(part[-1]), "limit": str(len(part))}
            windows.append(Batch(fields, (ExpectedRows({self.column.name: part}),)))
        return windows

    def requested_units(
        self, values: Mapping[str, Any], chain_head: ChainHead
    ) -> list[ExpectedRows]:
        """Return the range as one: a load from the store is not divided."""
        return [ExpectedRows({self.column.name: self.epochs(values, chain_head)})]

    def epochs(self, values: Mapping[str, Any], chain_head: ChainHead) -> range:
        """Return the requested epochs. Default: the last ``window`` epochs."""
        span = chain_head.span(
            values["since"], values["until"], "epoch", length=self.window, finalized=self.finalized
        )
        return range(span.first, span.last + 1)


@dataclass(frozen=True)
class UnitPerRequest(UnitRange):
    """A range with one request for each epoch or day.

    ``wire`` is the placeholder in the path. It also takes the words in ``tags``.
    """

    column: Column
    _: KW_ONLY
    wire: str
    tags: tuple[str, ...] = ("latest",)
    error: str = "invalid request"
    refuses_future: bool = False

    window = 1

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

    @property
    def field_schemas(self) -> Mapping[str, JsonSchema]:
        """Return the JSON Schema of each field, by wire name."""
        return {self.wire: describe_number(self.tags)}


@dataclass(frozen=True)
class LastEpochs(UnitRange):
    """A range in requests for the ``length`` epochs that end with the epoch in the field ``epoch``.

    The service always returns all of them. Rows outside of the requested range are dropped.
    """

    column: Column
    _: KW_ONLY
    length: int

    field_schemas: ClassVar = {"epoch": NATURAL}

    @property
    def window(self) -> int | None:
        """Return how many epochs one request covers."""
        return self.length

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
            batches.append(Batch({"epoch": str(last)}, (wanted,)))
        return batches
