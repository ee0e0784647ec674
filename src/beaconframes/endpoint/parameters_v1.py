"""Parameters of V1: validators, lists of numbers, texts, and the filters of the graffiti wall."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import polars as pl

from beaconframes.endpoint import identifiers
from beaconframes.endpoint.parameter import (
    Batch,
    ExpectedRows,
    Fields,
    Parameter,
    RequestRefused,
    Role,
    View,
)
from beaconframes.errors import UsageError
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from beaconframes.endpoint.chain_head import ChainHead
    from beaconframes.schema import Column

UNRESOLVED = "did not resolve to a validator index"
"""The service's message when no identifier is the index or the public key of a validator."""

ADDRESS = r"0x[0-9a-fA-F]{40}"
TRANSACTION = r"0x[0-9a-fA-F]{64}"
CREDENTIALS = r"0x[0-9a-fA-F]{64}"
ENS_NAME = r"[^/?#\s]{3,}\.eth"
BARE_HEX = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""An address, a transaction or credentials without the 0x in front."""


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
    longest: int | None = 7_500
    required: bool = True

    role = Role.SUBJECT
    resolves_pubkeys = True

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
        return self.at_most

    def arguments(self) -> tuple[str, ...]:
        """Return the one argument."""
        return (self.arg,)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return batches of at most ``at_most`` identifiers that fit into a URL."""
        return [
            Batch({self.arg: ",".join(batch)}, self.expected(batch))
            for batch in identifiers.split_into_batches(
                identifiers.normalise_validators(values[self.arg]), self.at_most, self.longest
            )
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

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the identified validators."""
        return rows.filter(pl.col(self.column.name).is_in(sorted(self.resolve(fields, view))))

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
class Values(Parameter):
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

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the one number."""
        return filter_number(self.column, rows, fields[self.wire], self.tags, view, self.error)


def filter_number(
    column: Column, rows: pl.LazyFrame, text: str, tags: tuple[str, ...], view: View, error: str
) -> pl.LazyFrame:
    """Return the rows with the number in *text*, or with the number of a tag such as "latest"."""
    if text in tags:
        unit: Any = column.unit
        if text == "next":
            number = view.head.latest(unit, view.chain) + 1
        elif column.unit == "day":
            return rows.filter(pl.col(column.name) == pl.col(column.name).max())
        else:
            number = view.head.latest(unit, view.chain, finalized=text == "finalized")
    elif (parsed := identifiers.parse_number(text)) is not None:
        number = parsed
    else:
        raise RequestRefused(error)
    return rows.filter(pl.col(column.name) == number)


@dataclass(frozen=True)
class Texts(Parameter):
    """Subjects given as texts that match ``pattern``; one request takes ``at_once`` of them.

    ``what`` describes such a text in an error. ``column`` is the column of the text, if rows have
    it; then completeness is checked by it.
    """

    arg: str
    _: KW_ONLY
    wire: str
    pattern: str
    what: str
    column: Column | None = None
    at_once: int = 1
    error: str = "invalid request"

    role = Role.SUBJECT

    @property
    def rows_column(self) -> Column | None:
        """Return the column of the text."""
        return self.column

    def batch_limit(self, chain_head: ChainHead) -> int:
        """Return how many texts one request may name."""
        return self.at_once

    def arguments(self) -> tuple[str, ...]:
        """Return the one argument."""
        return (self.arg,)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the texts in lower case, each once, ``at_once`` in a batch."""
        texts = list(dict.fromkeys(map(self.check, identifiers.iterate_items(values[self.arg]))))
        batches = []
        for start in range(0, len(texts), self.at_once):
            batch = texts[start : start + self.at_once]
            expected = () if self.column is None else (ExpectedRows({self.column.name: batch}),)
            batches.append(Batch({self.wire: ",".join(batch)}, expected))
        return batches

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

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the subjects."""
        texts = [self.canonical(text) for text in fields[self.wire].split(",")]
        if len(texts) > self.at_once or not all(re.fullmatch(self.pattern, text) for text in texts):
            raise RequestRefused(self.error)
        return rows if self.column is None else rows.filter(pl.col(self.column.name).is_in(texts))


@dataclass(frozen=True)
class Region(Parameter):
    """A rectangle of the graffiti wall, both corners included."""

    x: Column
    y: Column
    size: int = 1000

    role = Role.FILTER
    filter_storage = "shared"
    has_finish = True
    args = ("region",)
    names: ClassVar = ("startx", "starty", "endx", "endy")

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return the four coordinates, or nothing for the whole wall."""
        corners = self.corners(values["region"])
        if corners is None:
            return [Batch()]
        left, top, right, bottom = corners
        return [
            Batch(
                dict(zip(self.names, map(str, corners), strict=True)),
                (
                    ExpectedRows({self.x.name: range(left, right + 1)}, required=False),
                    ExpectedRows({self.y.name: range(top, bottom + 1)}, required=False),
                ),
            )
        ]

    def corners(self, region: Any) -> list[int] | None:
        """Return left, top, right and bottom of *region*; None for the whole wall."""
        if region is None:
            return None
        try:
            corners = [identifiers.check_natural(n, "region") for n in region]
        except TypeError:
            corners = []
        if (
            len(corners) != 4
            or max(corners) >= self.size
            or not (corners[0] <= corners[2] and corners[1] <= corners[3])
        ):
            raise UsageError(
                f"region={region!r} is not a rectangle on the wall",
                hint=f"Write region=(left, top, right, bottom), each from 0 to {self.size - 1}",
            )
        return corners

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the pixels inside; an invalid corner becomes the corner of the wall."""
        last = self.size - 1
        left, top, right, bottom = (
            default
            if (corner := identifiers.parse_number(fields.get(name, ""))) is None
            else min(corner, last)
            for name, default in zip(self.names, (0, 0, last, last), strict=True)
        )
        if left > right or top > bottom:
            raise RequestRefused("invalid area provided by the coordinates")
        return rows.filter(self.inside(left, top, right, bottom))

    def inside(self, left: int, top: int, right: int, bottom: int) -> pl.Expr:
        """Return whether a pixel is in the rectangle."""
        return pl.col(self.x.name).is_between(left, right) & pl.col(self.y.name).is_between(
            top, bottom
        )

    def finish(self, rows: pl.DataFrame, values: Mapping[str, Any]) -> pl.DataFrame:
        """Return the pixels inside; the store has the whole wall."""
        corners = self.corners(values["region"])
        return rows if corners is None else rows.filter(self.inside(*corners))


@dataclass(frozen=True)
class Switch(Parameter):
    """A flag that selects rows; always sent, since its default differs between services."""

    arg: str
    _: KW_ONLY
    wire: str
    keep: Callable[[pl.LazyFrame], pl.LazyFrame]
    default: bool = False

    role = Role.FILTER
    filter_storage = "shared"
    unfiltered = False
    has_finish = True

    def arguments(self) -> tuple[str, ...]:
        """Return the one argument."""
        return (self.arg,)

    def batches(self, values: Mapping[str, Any], chain_head: ChainHead) -> list[Batch]:
        """Return ``true`` or ``false``."""
        value = values[self.arg]
        if not isinstance(value, bool):
            raise UsageError(f"{self.arg}={value!r} is not True or False")
        return [Batch({self.wire: "true" if value else "false"})]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the selected rows when the flag is true."""
        text = fields.get(self.wire, str(self.default)).lower()
        if text not in ("true", "false", "t", "f", "1", "0"):
            raise RequestRefused(f"invalid value for {self.wire} provided")
        return self.keep(rows) if text in ("true", "t", "1") else rows

    def finish(self, rows: pl.DataFrame, values: Mapping[str, Any]) -> pl.DataFrame:
        """Return the selected rows of several requests."""
        return self.keep(rows.lazy()).collect() if values[self.arg] else rows
