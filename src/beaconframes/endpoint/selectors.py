"""Selectors: an argument of a loader is a selection of rows.

Each has two halves. The client's half, ``batches``, turns what the user wrote into wire fields;
the server's half, ``apply``, keeps the rows that those fields select. The declaration of an
endpoint lists them once, in the order in which the rows are narrowed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import polars as pl

from beaconframes.endpoint import identifiers
from beaconframes.errors import BeaconframesError, UsageError

if TYPE_CHECKING:
    from beaconframes.calendar import Chain
    from beaconframes.endpoint.horizon import Head, Horizon
    from beaconframes.schema import Column

Fields = Mapping[str, str]
"""Path placeholders and query parameters by wire name."""


class Refused(BeaconframesError):
    """A request that the local explorer answers with an error; the text is the service's."""


class View(Protocol):
    """What the server's half may look at besides the rows."""

    @property
    def chain(self) -> Chain:
        """Return the chain of the dataset."""

    @property
    def head(self) -> Head:
        """Return the end of the dataset."""

    def index_of(self, pubkey: str) -> int | None:
        """Return the validator index of a public key, or None."""


@dataclass(frozen=True)
class Wanted:
    """The values that a request selects: a row belongs to it when any of the columns has one.

    ``every`` says that each value must come back in at least one row, which is what makes a
    missing one noticeable.
    """

    values: Mapping[str, Collection[Any]]
    every: bool = True


@dataclass(frozen=True)
class Batch:
    """What one request sends for one selector, and what it selects with that."""

    fields: Fields = field(default_factory=dict)
    wanted: tuple[Wanted, ...] = ()


@dataclass(frozen=True)
class Selector:
    """One argument, or a pair of them, that narrows the rows."""

    args: ClassVar[tuple[str, ...]] = ()

    def arguments(self) -> tuple[str, ...]:
        """Return the names of the loader's arguments that belong to this selector."""
        return self.args

    def batches(self, values: Mapping[str, Any], horizon: Horizon) -> list[Batch]:
        """Return what to send, a batch for each request that it takes."""
        raise NotImplementedError  # pragma: no cover

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the *rows* that the wire *fields* select; raise Refused for bad ones."""
        raise NotImplementedError  # pragma: no cover

    def finish(self, rows: pl.DataFrame, values: Mapping[str, Any]) -> pl.DataFrame:
        """Return *rows* of several requests as if they had been one. Usually nothing to do."""
        return rows


@dataclass(frozen=True)
class Identifiers(Selector):
    """Validators by index or public key, in batches; ``arg`` is also the path placeholder."""

    arg: str
    column: Column
    _: KW_ONLY
    pubkey: Column | None = None
    at_most: int = 100
    longest: int | None = 7_500

    def arguments(self) -> tuple[str, ...]:
        """Return the one argument."""
        return (self.arg,)

    def batches(self, values: Mapping[str, Any], horizon: Horizon) -> list[Batch]:
        """Return batches of at most ``at_most`` identifiers that still fit into a URL."""
        return [
            Batch({self.arg: ",".join(batch)}, self.wanted(batch))
            for batch in identifiers.batches(
                identifiers.normalise(values[self.arg]), self.at_most, self.longest
            )
        ]

    def wanted(self, batch: list[str]) -> tuple[Wanted, ...]:
        """Return the indices and keys of *batch*, as far as the rows can be checked for them."""
        indices = [int(item) for item in batch if not item.startswith("0x")]
        keys = [item for item in batch if item.startswith("0x")]
        if self.pubkey is not None:
            return (Wanted({self.column.name: indices, self.pubkey.name: keys}),)
        return () if keys else (Wanted({self.column.name: indices}),)

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the identified validators."""
        items = fields[self.arg].split(",")
        if len(items) > self.at_most:
            raise Refused(f"only a maximum of {self.at_most} query parameters are allowed")
        found: list[int] = []
        for item in items:
            if identifiers.is_pubkey(item):
                index = view.index_of(f"0x{item.lower().removeprefix('0x')}")
                found += [] if index is None else [index]
            elif item.isascii() and item.isdigit():
                found.append(int(item))
            else:
                raise Refused(f"invalid validator-parameter: {item}")
        if not found:
            raise Refused(
                "invalid validator argument, pubkey(s) did not resolve to a validator index"
            )
        return rows.filter(pl.col(self.column.name).is_in(sorted(set(found))))


@dataclass(frozen=True)
class Values(Selector):
    """Numbers asked for one by one, such as periods: one request each.

    ``tags`` are the words that the service takes instead of a number.
    """

    arg: str
    column: Column
    _: KW_ONLY
    wire: str
    tags: tuple[str, ...] = ("latest",)
    error: str = "invalid request"

    def arguments(self) -> tuple[str, ...]:
        """Return the one argument."""
        return (self.arg,)

    def batches(self, values: Mapping[str, Any], horizon: Horizon) -> list[Batch]:
        """Return one batch for each number or word."""
        asked = identifiers.numbers(values[self.arg], self.arg, self.tags)
        for item in asked:
            if isinstance(item, int) and self.column.unit == "slot":
                horizon.refuse_future("slot", item)
        return [
            Batch({self.wire: str(item)}, (Wanted({self.column.name: [item]}),))
            if isinstance(item, int)
            else Batch({self.wire: item})
            for item in asked
        ]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the rows of the one number."""
        return one_number(self.column, rows, fields[self.wire], self.tags, view, self.error)


@dataclass(frozen=True)
class Region(Selector):
    """A rectangle of the graffiti wall, both corners included."""

    x: Column
    y: Column
    size: int = 1000

    args = ("region",)
    names: ClassVar = ("startx", "starty", "endx", "endy")

    def batches(self, values: Mapping[str, Any], horizon: Horizon) -> list[Batch]:
        """Return the four coordinates, or nothing for the whole wall."""
        region = values["region"]
        if region is None:
            return [Batch()]
        try:
            corners = [identifiers.natural(n, "region") for n in region]
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
        left, top, right, bottom = corners
        return [
            Batch(
                dict(zip(self.names, map(str, corners), strict=True)),
                (
                    Wanted({self.x.name: range(left, right + 1)}, every=False),
                    Wanted({self.y.name: range(top, bottom + 1)}, every=False),
                ),
            )
        ]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the pixels inside; a corner that makes no sense is the corner of the wall."""
        last = self.size - 1
        left, top, right, bottom = (
            min(int(text), last) if (text := fields.get(name, "")).isdigit() else default
            for name, default in zip(self.names, (0, 0, last, last), strict=True)
        )
        if left > right or top > bottom:
            raise Refused("invalid area provided by the coordinates")
        return rows.filter(
            pl.col(self.x.name).is_between(left, right), pl.col(self.y.name).is_between(top, bottom)
        )


@dataclass(frozen=True)
class Switch(Selector):
    """A yes or no that changes which rows are kept; always sent, since its default is disputed."""

    arg: str
    _: KW_ONLY
    wire: str
    keep: Callable[[pl.LazyFrame], pl.LazyFrame]
    default: bool = False

    def arguments(self) -> tuple[str, ...]:
        """Return the one argument."""
        return (self.arg,)

    def batches(self, values: Mapping[str, Any], horizon: Horizon) -> list[Batch]:
        """Return ``true`` or ``false``."""
        value = values[self.arg]
        if not isinstance(value, bool):
            raise UsageError(f"{self.arg}={value!r} is neither True nor False")
        return [Batch({self.wire: "true" if value else "false"})]

    def apply(self, rows: pl.LazyFrame, fields: Fields, view: View) -> pl.LazyFrame:
        """Return the kept rows when the switch is on."""
        text = fields.get(self.wire, str(self.default)).lower()
        if text not in ("true", "false", "t", "f", "1", "0"):
            raise Refused(f"invalid value for {self.wire} provided")
        return self.keep(rows) if text in ("true", "t", "1") else rows

    def finish(self, rows: pl.DataFrame, values: Mapping[str, Any]) -> pl.DataFrame:
        """Return what is kept of several requests' rows together."""
        return self.keep(rows.lazy()).collect() if values[self.arg] else rows


def one_number(
    column: Column, rows: pl.LazyFrame, text: str, tags: tuple[str, ...], view: View, error: str
) -> pl.LazyFrame:
    """Return the rows with the number, or with what the word *text* stands for."""
    if text in tags:
        unit: Any = column.unit
        if text == "next":
            number = view.head.latest(unit, view.chain) + 1
        elif column.unit == "day":
            return rows.filter(pl.col(column.name) == pl.col(column.name).max())
        else:
            number = view.head.latest(unit, view.chain, finalized=text == "finalized")
    elif text.isascii() and text.isdigit():
        number = int(text)
    else:
        raise Refused(error)
    return rows.filter(pl.col(column.name) == number)
